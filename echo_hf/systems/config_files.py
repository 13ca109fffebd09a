"""Files of systems: each a YAML file of its own, which several configs may name."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from echo_hf.config_check import first_error
from echo_hf.errors import ConfigError
from echo_hf.systems.config import SystemConfig
from echo_hf.yaml_file import read_yaml

FOLDER = "systems"
# The one parameter, of whatever adapter, that is a place on this machine.
OWN_FOLDER = "folder"
EXAMPLE = "eval_configs/systems/flux_kontext.yaml"


def with_systems(data: Any, folder: Path) -> Any:
    """A config's data with the content of the files that `systems` names.

    Args:
        data: What the config's file holds.
        folder: Of that file; a name is looked for there, then among the systems that echo-hf
            brings.

    Returns:
        The data, with a mapping in place of each name; as it is where there is nothing to do.

    Raises:
        ConfigError: A file is missing, is not YAML, or is no system.
    """
    if not isinstance(data, dict) or not isinstance(data.get("systems"), list):
        return data
    return {**data, "systems": [_with_file(one, folder) for one in data["systems"]]}


def read_system(path: Path) -> SystemConfig:
    """Reads the file of a system.

    Args:
        path: A YAML file.

    Returns:
        The system; a relative `folder` in its parameters is made one below that of the file.

    Raises:
        ConfigError: It is missing, is not YAML, or holds an unknown key or a bad value.
    """
    data = read_yaml(path, "system", EXAMPLE)
    try:
        return SystemConfig.model_validate(_located(data, path.resolve().parent))
    except ValidationError as error:
        raise ConfigError(first_error(error, str(path), SystemConfig)) from None


def shipped_configs() -> Path:
    """The folder of the configs that echo-hf brings, in a checkout and installed."""
    package = Path(str(files("echo_hf")))
    installed = package / "eval_configs"
    return installed if installed.is_dir() else package.parent / "eval_configs"


def config_place(path: Path) -> Path:
    """Where the config is that a person names.

    Args:
        path: What the person says.

    Returns:
        The path; for `eval_configs/...` that is not there, the config that echo-hf brings, if any.
    """
    shipped = shipped_configs()
    own = path.exists() or path.parts[:1] != (shipped.name,) or ".." in path.parts
    brought = shipped.parent / path
    return path if own or not brought.is_file() else brought


def place_of(name: str, folder: Path) -> Path:
    """Where the file is that a config names.

    Args:
        name: What the config says.
        folder: Of the config's file.

    Returns:
        The file in that folder, else the one that echo-hf brings; the first where there is none.
    """
    own, shipped = folder / name, shipped_configs() / name
    return shipped if not own.exists() and shipped.is_file() else own


def shipped_systems() -> Iterator[Path]:
    """The files of the systems that echo-hf brings, in alphabetical order."""
    yield from sorted((shipped_configs() / FOLDER).glob("*.yaml"))


def _with_file(given: Any, folder: Path) -> Any:
    if isinstance(given, str):
        return read_system(place_of(given, folder)).model_dump(mode="json")
    return _located(given, folder)


def _located(system: Any, folder: Path) -> Any:
    parameters = system.get("parameters") if isinstance(system, dict) else None
    if not isinstance(parameters, dict) or not isinstance(parameters.get(OWN_FOLDER), str):
        return system
    absolute = str(folder / parameters[OWN_FOLDER])
    return {**system, "parameters": {**parameters, OWN_FOLDER: absolute}}
