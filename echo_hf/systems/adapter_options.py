"""What an adapter takes from the config of its system, and which of it decides a picture."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from echo_hf.config_check import first_error
from echo_hf.errors import GenerationError
from echo_hf.systems.config import SystemConfig

# Parameters of whatever adapter that say where something is, and not what.
NOT_DECIDING = frozenset({"folder", "api_key_env"})
Options = TypeVar("Options", bound=BaseModel)


def described(config: SystemConfig) -> dict[str, Any]:
    """What a config says that decides a picture: the beginning of a system's signature.

    Limits and prices decide none, nor where a folder lies or which variable holds a key: another
    machine goes on with what was drawn here.

    Args:
        config: The config of the system.

    Returns:
        Its adapter, model, parameters, size and seed, as JSON holds them.

    Example:
        >>> config = SystemConfig(name="mine", adapter="command", developer="Northlight",
        ...                       status="current", parameters={"steps": 28, "folder": "/data"})
        >>> described(config)["parameters"], described(config)["size"]
        ({'steps': 28}, 'auto')
    """
    shown = config.model_dump(mode="json", include={"adapter", "model", "size", "seed"})
    parameters = config.model_dump(mode="json", include={"parameters"})["parameters"]
    return {**shown, "parameters": _deciding(parameters)}


def deciding(options: BaseModel, but: Collection[str] = ()) -> dict[str, Any]:
    """The parameters of a system that a signature holds.

    Args:
        options: The parameters, checked.
        but: Names of those that decide no picture.

    Returns:
        Those that are not at their defaults, as JSON holds them: the number of the adapter's
        wording stands for these.
    """
    return options.model_dump(mode="json", exclude=set(but), exclude_defaults=True)


def options_of(config: SystemConfig, options: type[Options]) -> Options:
    """The parameters of a system as its adapter takes them.

    Args:
        config: The config of the system.
        options: Model of the parameters.

    Returns:
        The parameters, checked.

    Raises:
        GenerationError: One is unknown, missing, or has a bad value.
    """
    try:
        return options.model_validate(dict(config.parameters))
    except ValidationError as error:
        place = f"system {config.name!r}: parameters"
        raise GenerationError(first_error(error, place, options)) from None


def model_of(config: SystemConfig) -> str:
    """The model of a system whose adapter needs one.

    Args:
        config: The config of the system.

    Returns:
        Its model.

    Raises:
        GenerationError: It names none.
    """
    if config.model is None:
        raise GenerationError(
            f"system {config.name!r} has no model: adapter {config.adapter!r} needs one, such as "
            "`model: ORGANISATION/NAME`"
        )
    return config.model


def _deciding(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _deciding(one) for key, one in value.items() if key not in NOT_DECIDING}
    return [_deciding(one) for one in value] if isinstance(value, list) else value
