"""Adapters by name: what is missing for them, what they take from a config, and what they cost."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from echo_hf._infra import registry
from echo_hf._infra.worker_pool import shared_out, visible_gpus
from echo_hf.config.checks import first_error
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
from echo_hf.errors import GenerationError
from echo_hf.systems.base import System, Task

SystemFactory = Callable[[SystemConfig], System]


@dataclass(frozen=True, slots=True)
class Needs(registry.Needs):
    """What an adapter is for and needs, as the variable that holds its key."""

    key: str | None = None
    devices: bool = False


NAMES = ("anole", "command", "diffusers", "files", "openai_images", "rewrite")
SYSTEMS: registry.Registry[SystemFactory, Needs] = registry.Registry(
    "adapter",
    "echo_hf.systems",
    {"google": f"{__package__}.google_images", **{one: f"{__package__}.{one}" for one in NAMES}},
    GenerationError,
)


def register(
    name: str,
    about: str = "",
    *,
    extra: str | None = None,
    packages: tuple[str, ...] = (),
    key: str | None = None,
    devices: bool = False,
) -> Callable[[SystemFactory], SystemFactory]:
    """Makes an adapter known by a name; other packages use the `echo_hf.systems` entry points.

    Args:
        name: The `adapter` that a config names it by.
        about: What it is for, in a few words.
        extra: The extra of echo-hf that brings its packages.
        packages: The packages it imports.
        key: Environment variable of its key, where the config names none.
        devices: Whether it does what `limits.devices` says.

    Returns:
        A decorator for a callable that takes the config of a system and returns the system.
    """
    return SYSTEMS.register(name, Needs(about, extra, packages, key, devices))


def adapter_needs() -> dict[str, Needs]:
    """What each adapter is for and needs, by name, in order."""
    return {name: SYSTEMS.facts(name) or Needs("from another package") for name in SYSTEMS.names()}


def make_system(config: SystemConfig) -> System:
    """Makes the system of a config; its model is not loaded before its first `draw`."""
    place = f"system {config.name!r}"
    factory = SYSTEMS.find(config.adapter, place)
    needs = SYSTEMS.facts(config.adapter) or Needs()
    needs.check_installed(place)
    if config.limits.devices is not None and not needs.devices:
        raise GenerationError(
            f"{place}: limits.devices is {config.limits.devices!r}, and adapter "
            f"{config.adapter!r} runs no model on devices of this machine: leave it out"
        )
    return factory(config)


def devices_of(config: SystemConfig, is_on_processor: bool = False) -> list[str | None]:
    """What each process of a system is to see in `CUDA_VISIBLE_DEVICES`; none without devices."""
    if config.limits.devices is None:
        return []
    try:
        return shared_out(config.limits.devices, [] if is_on_processor else visible_gpus())
    except ValueError as error:
        raise GenerationError(f"system {config.name!r}: limits.devices is {error}") from None


# Parameters of whatever adapter that say where something is, and not what.
NOT_DECIDING = frozenset({"folder", "api_key_env"})
Options = TypeVar("Options", bound=BaseModel)


def described(config: SystemConfig) -> dict[str, Any]:
    """What a config says that decides an image: the beginning of a system's signature.

    Limits and prices decide none, nor where a folder lies or which variable holds a key: another
    machine goes on with what was drawn here.

    Returns:
        Its adapter, model, parameters, size and seed, as JSON holds them.

    Examples:
        >>> config = SystemConfig(name="mine", adapter="command", developer="Northlight",
        ...                       status="current", parameters={"steps": 28, "folder": "/data"})
        >>> described(config)["parameters"], described(config)["size"]
        ({'steps': 28}, 'auto')
    """

    def deciding(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: deciding(one) for key, one in value.items() if key not in NOT_DECIDING}
        return [deciding(one) for one in value] if isinstance(value, list) else value

    shown = ("adapter", "model", "parameters", "size", "seed")
    said = config.model_dump(mode="json", include=set(shown))
    return {**said, "parameters": deciding(said["parameters"])}


def options_of(config: SystemConfig, options: type[Options]) -> Options:
    """The parameters of a system as its adapter takes them, checked."""
    try:
        return options.model_validate(dict(config.parameters))
    except ValidationError as error:
        place = f"system {config.name!r}: parameters"
        raise GenerationError(first_error(error, place, options)) from None


def model_of(config: SystemConfig) -> str:
    """The model of a system whose adapter needs one."""
    if config.model is None:
        raise GenerationError(
            f"system {config.name!r} has no model: adapter {config.adapter!r} needs one, such as "
            "`model: ORGANISATION/NAME`"
        )
    return config.model


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
        basis = f"price of {config.price.as_of} in the config"
        known = replace(known, basis=f"{basis}; {known.basis}" if row is not None else basis)
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
