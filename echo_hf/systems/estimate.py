"""What the images of a system will cost and how long they take, before any is drawn."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from echo_hf.config.systems import Price, SystemConfig
from echo_hf.engines.planner import (
    NO_WORK,
    NOTHING,
    OF_TEXT,
    Expected,
    ListedImages,
    Range,
    estimate_tokens,
    listed_images,
)
from echo_hf.engines.prices import MILLION
from echo_hf.engines.server import Server
from echo_hf.systems.base import Task

SIZE = "1K"  # of the images that the list has tokens of


def listed_row(config: SystemConfig) -> ListedImages | None:
    """The row of the list that holds for a system: its model, at its maker's server."""
    given, host = ChainMap[str, Any](*map(dict, mappings(config.parameters))), None
    if (address := given.get("base_url")) is not None:
        with suppress(ValueError):  # what is no address, its adapter says
            host = Server(str(address)).label
    for row in listed_images():
        at_server = row.server is None or host in (None, row.server)
        as_said = all(given.get(name) == value for name, value in row.when.items())
        if config.model in row.models and at_server and as_said:
            return row
    return None


def mappings(parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Parameters, and whatever mappings stand in them."""
    yield parameters
    for value in parameters.values():
        if isinstance(value, Mapping):
            yield from mappings(value)


def price_of(config: SystemConfig) -> Price | None:
    """What an image costs: by the config, else by the list; null where nobody knows."""
    row = listed_row(config)
    if config.price or row is None:
        return config.price
    if row.gpu is None:
        return Price(**row.price, as_of=row.as_of)
    # Weights cost nothing where they are loaded; a server may charge whatever it likes for them.
    is_served = any("base_url" in one for one in mappings(config.parameters))
    return None if is_served else Price(usd_per_image=0, as_of=row.as_of)


def expected_images(config: SystemConfig, tasks: Sequence[Task]) -> Expected:
    """What drawing tasks one after the other is expected to take."""
    if not tasks or config.adapter == "files":
        return NO_WORK
    row, price = listed_row(config), price_of(config)
    known = Expected(basis="no price or time is listed")
    if row is not None:
        seconds = row.seconds.times(len(tasks))
        known = Expected(None, seconds, row.gpu, row.rests_on)
    if config.price is not None:
        known = replace(known, basis=f"price of {config.price.as_of} in the config; {known.basis}")
    if price is None:
        return known
    if price.usd_per_image is not None:
        return replace(known, usd=Range.exactly(price.usd_per_image * len(tasks)))
    # Tokens are known of images of one size alone.
    if row is None or not row.tokens or config.parameters.get("image_size", SIZE) != SIZE:
        return known
    number = {"image_in": sum(len(task.inputs) for task in tasks)}
    asked = sum(estimate_tokens(task.prompt) for task in tasks)
    by_kind = {"text_in": Range(*OF_TEXT).times(asked)}
    for kind, tokens in row.tokens.items():
        by_kind[kind] = tokens.times(number.get(kind, len(tasks)))
    parts = [one.times((getattr(price, kind) or 0) / MILLION) for kind, one in by_kind.items()]
    unpriced = [k for k, one in by_kind.items() if one != NOTHING and getattr(price, k) is None]
    return known if unpriced else replace(known, usd=Range.total(parts))
