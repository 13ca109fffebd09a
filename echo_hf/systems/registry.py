"""The registry of adapters: what they need, their options, and what they cost."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from echo_hf._infra import registry
from echo_hf._infra.renamed import make_module_getattr
from echo_hf._infra.worker_pool import assign_gpus, visible_gpus
from echo_hf.config.checks import first_error
from echo_hf.config.systems import OutputPrice, SystemConfig
from echo_hf.engines.planner import (
    NO_WORK,
    TEXT_FACTORS,
    ZERO,
    ExpectedCost,
    ImagePrices,
    Range,
    estimate_tokens,
    read_image_prices,
)
from echo_hf.engines.prices import MILLION
from echo_hf.engines.server import Server
from echo_hf.errors import GenerationError
from echo_hf.systems.base import System, Task

SystemFactory = Callable[[SystemConfig], System]


@dataclass(frozen=True, slots=True)
class AdapterRequirements(registry.Requirements):
    """The purpose and the requirements of an adapter, such as the variable of its key."""

    key: str | None = None
    devices: bool = False


MODULES = ("anole", "command", "diffusers", "files", "openai_images", "rewrite")
SYSTEMS: registry.Registry[SystemFactory, AdapterRequirements] = registry.Registry(
    "adapter",
    "echo_hf.systems",
    {
        "google": f"{__package__}.google_images",
        **{name: f"{__package__}.{name}" for name in MODULES},
    },
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
    """Register an adapter; other packages use the `echo_hf.systems` entry points.

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
    return SYSTEMS.register(name, AdapterRequirements(about, extra, packages, key, devices))


def adapter_requirements() -> dict[str, AdapterRequirements]:
    """Return what each adapter is for and needs, by name in order."""
    return {
        name: SYSTEMS.facts(name) or AdapterRequirements("from another package")
        for name in SYSTEMS.list_names()
    }


def make_system(config: SystemConfig) -> System:
    """Make the system of a config; its model is not loaded before its first `draw`."""
    place = f"system {config.name!r}"
    factory = SYSTEMS.find(config.adapter, place)
    requirements = SYSTEMS.facts(config.adapter) or AdapterRequirements()
    requirements.check_installed(place)
    if config.limits.devices is not None and not requirements.devices:
        raise GenerationError(
            f"{place}: limits.devices is {config.limits.devices!r}, and adapter "
            f"{config.adapter!r} runs no model on devices of this machine: leave it out"
        )
    return factory(config)


def assign_devices(config: SystemConfig, is_on_processor: bool = False) -> list[str | None]:
    """Return `CUDA_VISIBLE_DEVICES` for each process of a system; empty without devices."""
    if config.limits.devices is None:
        return []
    try:
        return assign_gpus(config.limits.devices, [] if is_on_processor else visible_gpus())
    except ValueError as error:
        raise GenerationError(f"system {config.name!r}: limits.devices is {error}") from None


# Parameters of any adapter about where something is, which do not decide an image.
IGNORED = frozenset({"folder", "api_key_env"})
OptionsT = TypeVar("OptionsT", bound=BaseModel)


def describe_config(config: SystemConfig) -> dict[str, Any]:
    """Return what decides an image in a config: the beginning of a system's signature.

    Limits and prices decide none, nor where a folder lies or which variable holds a key: another
    machine goes on with what was drawn here.

    Returns:
        Its adapter, model, parameters, size and seed, as JSON holds them.

    Examples:
        >>> config = SystemConfig(name="mine", adapter="command", developer="Northlight",
        ...                       status="current", parameters={"steps": 28, "folder": "/data"})
        >>> describe_config(config)["parameters"], describe_config(config)["size"]
        ({'steps': 28}, 'auto')
    """

    def select(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: select(part) for key, part in value.items() if key not in IGNORED}
        return [select(part) for part in value] if isinstance(value, list) else value

    fields = ("adapter", "model", "parameters", "size", "seed")
    settings = config.model_dump(mode="json", include=set(fields))
    return {**settings, "parameters": select(settings["parameters"])}


def parse_options(config: SystemConfig, options: type[OptionsT]) -> OptionsT:
    """Check the parameters of a system, and return them as its adapter's options."""
    try:
        return options.model_validate(dict(config.parameters))
    except ValidationError as error:
        place = f"system {config.name!r}: parameters"
        raise GenerationError(first_error(error, place, options)) from None


def require_model(config: SystemConfig) -> str:
    """Return the model of a system whose adapter needs one."""
    if config.model is None:
        raise GenerationError(
            f"system {config.name!r} has no model: adapter {config.adapter!r} needs one, such as "
            "`model: ORGANISATION/NAME`"
        )
    return config.model


SIZE = "1K"  # the size for which prices list tokens


def find_listed_row(config: SystemConfig) -> ImagePrices | None:
    """Find the price list's row for a system: its model, at its maker's server."""
    parameters, host = ChainMap[str, Any](*map(dict, iterate_mappings(config.parameters))), None
    if (address := parameters.get("base_url")) is not None:
        with suppress(ValueError):  # the adapter reports an address that is none
            host = Server(str(address)).label
    for row in read_image_prices():
        at_server = row.server is None or host in (None, row.server)
        as_said = all(parameters.get(name) == value for name, value in row.when.items())
        if config.model in row.models and at_server and as_said:
            return row
    return None


def iterate_mappings(parameters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield parameters, and all mappings inside them."""
    yield parameters
    for value in parameters.values():
        if isinstance(value, Mapping):
            yield from iterate_mappings(value)


def get_price(config: SystemConfig) -> OutputPrice | None:
    """Return the price of an image from the config, or else the list; null where it is unknown."""
    row = find_listed_row(config)
    if config.price or row is None:
        return config.price
    if row.gpu is None:
        return OutputPrice(**row.price, as_of=row.as_of)
    # Weights cost nothing where they run locally; a server may charge anything for them.
    is_served = any("base_url" in mapping for mapping in iterate_mappings(config.parameters))
    return None if is_served else OutputPrice(usd_per_image=0, as_of=row.as_of)


def estimate_cost(config: SystemConfig, tasks: Sequence[Task]) -> ExpectedCost:
    """Estimate what it takes to draw tasks one after another."""
    if not tasks or config.adapter == "files":
        return NO_WORK
    row, price = find_listed_row(config), get_price(config)
    expected = ExpectedCost(basis="no price or time is listed")
    if row is not None:
        seconds = row.seconds.scale(len(tasks))
        expected = ExpectedCost(None, seconds, row.gpu, row.rests_on)
    if config.price is not None:
        basis = f"price of {config.price.as_of} in the config"
        basis = basis if row is None else f"{basis}; {expected.basis}"
        expected = replace(expected, basis=basis)
    if price is None:
        return expected
    if price.usd_per_image is not None:
        return replace(expected, usd=Range.exactly(price.usd_per_image * len(tasks)))
    # Token counts are listed for images of one size alone.
    if row is None or not row.tokens or config.parameters.get("image_size", SIZE) != SIZE:
        return expected
    number = {"image_in": sum(len(task.inputs) for task in tasks)}
    prompt_tokens = sum(estimate_tokens(task.prompt) for task in tasks)
    by_kind = {"text_in": Range(*TEXT_FACTORS).scale(prompt_tokens)}
    for kind, tokens in row.tokens.items():
        by_kind[kind] = tokens.scale(number.get(kind, len(tasks)))
    parts = []
    for name, amount in by_kind.items():
        usd_per_million = getattr(price, name)
        if usd_per_million is None and amount != ZERO:
            return expected
        parts.append(amount.scale((usd_per_million or 0) / MILLION))
    return replace(expected, usd=Range.total(parts))


__getattr__ = make_module_getattr(__name__, {"described": "describe_config"})
