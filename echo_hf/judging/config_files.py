"""Files of judges: each a YAML file of its own, which several configs may name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from echo_hf.config_check import first_error
from echo_hf.errors import ConfigError
from echo_hf.judging.config import JudgeConfig
from echo_hf.systems.config_files import place_of, shipped_configs, with_systems
from echo_hf.yaml_file import read_yaml

FOLDER = "judges"
PROMPT = "prompt_file"
EXAMPLE = "eval_configs/judges/qwen2_5_vl_32b.yaml"


def with_files(data: Any, folder: Path) -> Any:
    """A config's data with the content of the files that `systems` and `judges` name.

    Args:
        data: What the config's file holds.
        folder: Of that file; a name is looked for there, then among those that echo-hf brings.

    Returns:
        The data, with a mapping in place of each name; as it is where there is nothing to do.

    Raises:
        ConfigError: A file is missing, is not YAML, or is no system or judge.
    """
    data = with_systems(data, folder)
    if not isinstance(data, dict) or not isinstance(data.get(FOLDER), list):
        return data
    return {**data, FOLDER: [_with_file(one, folder) for one in data[FOLDER]]}


def read_judge(path: Path) -> JudgeConfig:
    """Reads the file of a judge.

    Args:
        path: A YAML file.

    Returns:
        The judge; a relative `prompt_file` is made one below the folder of the file.

    Raises:
        ConfigError: It is missing, is not YAML, or holds an unknown key or a bad value.
    """
    data = read_yaml(path, "judge", EXAMPLE)
    try:
        return JudgeConfig.model_validate(_located(data, path.resolve().parent))
    except ValidationError as error:
        raise ConfigError(first_error(error, str(path), JudgeConfig)) from None


def shipped_judges() -> Iterator[Path]:
    """The files of the judges that echo-hf brings, in alphabetical order."""
    yield from sorted((shipped_configs() / FOLDER).glob("*.yaml"))


def _with_file(given: Any, folder: Path) -> Any:
    if isinstance(given, str):
        return read_judge(place_of(given, folder)).model_dump(mode="json")
    return _located(given, folder)


def _located(judge: Any, folder: Path) -> Any:
    if not isinstance(judge, dict) or not isinstance(judge.get(PROMPT), str) or not judge[PROMPT]:
        return judge
    return {**judge, PROMPT: str(folder / judge[PROMPT])}
