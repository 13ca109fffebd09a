"""The systems that there are: what each stands for, and what is missing to run it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from echo_hf.errors import EchoError
from echo_hf.evaluation import load_evaluation
from echo_hf.systems.config import SystemConfig
from echo_hf.systems.config_files import OWN_FOLDER, read_system, shipped_systems
from echo_hf.systems.registry import Needs, adapter_needs, make_system

KEY_OPTION = "api_key_env"


@dataclass(frozen=True)
class Listed:
    """One system, and whether it can be run here.

    Attributes:
        config: The system.
        file: The file that describes it, null for one inside another config.
        known: Whether its adapter is there.
        extra: What to install, null when nothing is missing.
        keys: For each environment variable that holds a key of it: whether it is set.
        no_folder: Name of the folder that it is to be found in and that is not there, null when
            nothing is missing.
        usd_per_image: Price of an output in US dollars, null when unknown.
        determinism: What the same seed gives; null where the system cannot be made here.
    """

    config: SystemConfig
    file: Path | None
    known: bool
    extra: str | None
    keys: Mapping[str, bool]
    no_folder: str | None
    usd_per_image: float | None
    determinism: str | None = None


def list_systems(
    config: Path | str | None = None, environment: Mapping[str, str] = os.environ
) -> list[Listed]:
    """The systems that a config names, or those that echo-hf brings.

    Args:
        config: A config; null for all that echo-hf brings.
        environment: Where keys are looked for; only their presence is told.

    Returns:
        The systems, in the order of the config, or of their names.

    Raises:
        ConfigError: A file cannot be read, or is no config.
    """
    needs = adapter_needs()
    found = [_listed(one, file, needs, environment) for one, file in _systems(config)]
    if config is None:
        return found
    return [replace(one, determinism=_determinism(one.config)) for one in found]


def _determinism(config: SystemConfig) -> str | None:
    try:
        return make_system(config).determinism
    except EchoError:  # what is missing is told beside it
        return None


def _systems(config: Path | str | None) -> Iterable[tuple[SystemConfig, Path | None]]:
    if config is not None:
        return [(one, None) for one in load_evaluation(config).systems]
    return [(read_system(file), file) for file in shipped_systems()]


def _listed(
    config: SystemConfig,
    file: Path | None,
    needs: Mapping[str, Needs],
    environment: Mapping[str, str],
) -> Listed:
    parts = [needs[name] for name in _adapters(config) if name in needs]
    missing = sorted({one.extra for one in parts if one.extra and one.missing})
    keys = dict.fromkeys(_keys(config, needs))
    return Listed(
        config=config,
        file=file,
        known=config.adapter in needs,
        extra=",".join(missing) or None,
        keys={name: bool(environment.get(name, "").strip()) for name in keys},
        no_folder=_no_folder(config),
        usd_per_image=config.usd_per_image,
    )


def _no_folder(config: SystemConfig) -> str | None:
    folder = config.parameters.get(OWN_FOLDER)
    return Path(folder).name if isinstance(folder, str) and not Path(folder).is_dir() else None


def _adapters(config: SystemConfig) -> Iterator[str]:
    yield config.adapter
    yield from (str(one["adapter"]) for one in _mappings(config.parameters) if "adapter" in one)


def _keys(config: SystemConfig, needs: Mapping[str, Needs]) -> Iterator[str]:
    """Environment variables of keys: those that are named, else those that adapters ask for."""
    own = needs.get(config.adapter, Needs()).key
    yield from _key_of(config.parameters, own)
    for one in _mappings(config.parameters):
        yield from _key_of(one, needs.get(str(one.get("adapter")), Needs()).key)


def _key_of(options: Mapping[str, Any], default: str | None) -> Iterator[str]:
    name = options.get(KEY_OPTION, default)
    if name is not None:
        yield str(name)


def _mappings(options: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for value in options.values():
        if isinstance(value, Mapping):
            yield value
            yield from _mappings(value)
        elif isinstance(value, list | tuple):
            yield from _mappings({"": dict(enumerate(value))})
