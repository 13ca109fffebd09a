"""Which judges and rubrics are asked, among those that a config names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from echo_hf.errors import ConfigError, unknown
from echo_hf.evaluated import Evaluated
from echo_hf.judging.config import JudgeConfig, Rubric
from echo_hf.judging.config_files import shipped_judges

RUBRICS: tuple[str, ...] = get_args(Rubric)


def chosen_judges(config: Evaluated, names: Sequence[str] | None) -> list[JudgeConfig]:
    """The judges that are asked.

    Args:
        config: The config.
        names: Names of some of its judges; null for all.

    Returns:
        The judges; all of them in the order of the config, some as they are named.

    Raises:
        ConfigError: It names no judge, or not one of these.
    """
    by_name = {one.name: one for one in config.judges}
    if not by_name:
        shipped = ", ".join(f"judges/{file.name}" for file in shipped_judges())
        raise ConfigError(
            f"config {config.name!r} names no judges: add some, for example "
            f"`judges: [judges/qwen2_5_vl_32b.yaml]`; echo-hf brings {shipped}"
        )
    for name in names or ():
        if name not in by_name:
            raise ConfigError(unknown("judge", name, by_name, "--judges"))
    return [by_name[name] for name in dict.fromkeys(names or by_name)]


def chosen_rubrics(names: Sequence[str] | None) -> Sequence[str]:
    """The rubrics that judges are asked about.

    Args:
        names: Some of them; null for all.

    Returns:
        Their names.

    Raises:
        ConfigError: There is no such rubric.
    """
    for name in names or ():
        if name not in RUBRICS:
            raise ConfigError(unknown("rubric", name, RUBRICS, "--rubric"))
    return names or RUBRICS


def check_rubrics(judges: Sequence[JudgeConfig], wanted: Sequence[str]) -> None:
    """Refuses rubrics that no judge rates by.

    Args:
        judges: The judges.
        wanted: Names of rubrics.

    Raises:
        ConfigError: None of them has one of these.
    """
    theirs = {rubric for one in judges for rubric in one.rubrics}
    if theirs.isdisjoint(wanted):
        raise ConfigError(
            f"none of the judges rates by {', '.join(map(repr, wanted))}: add it to `rubrics` of "
            f"one, such as rubrics: [overall, {wanted[0]}]"
        )
