"""Tasks with more or fewer input pictures than a system takes, the same for every adapter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import Drawn, Task
from echo_hf.systems.config import SystemConfig

TOO_FEW = "too_few_inputs"
TOO_MANY = "too_many_inputs"
# In the details of an outcome: what the config said of the two numbers.
LIMITS = "limits"
NUMBERS = ("fewest_inputs", "most_inputs")


def misfit(task: Task, fewest: int, most: int | None, taker: str = "the system") -> Drawn | None:
    """Why a system does not take a task, by the number of its input pictures.

    Args:
        task: The task.
        fewest: Fewest inputs that the system takes.
        most: Most inputs that it takes, null for any number.
        taker: What the message calls it.

    Returns:
        An outcome `unsupported`: inputs are never dropped to make a task fit. Null where it fits.

    Example:
        >>> misfit(Task("s1", "d" * 64, "image_to_image", "add a hat"), 1, 1).text
        'the task has 0 input pictures, and the system takes at least 1'
    """
    number = len(task.inputs)
    if number < fewest:
        code, takes = TOO_FEW, f"at least {fewest}"
    elif most is not None and number > most:
        code, takes = TOO_MANY, f"at most {most}" if most else "none"
    else:
        return None
    text = f"the task has {number} input pictures, and {taker} takes {takes}"
    return Drawn(Outcome.UNSUPPORTED, stage=OutcomeStage.TASK, code=code, text=text)


def by_config(unfit: Drawn, config: SystemConfig) -> Drawn:
    """A task that was turned away for numbers which the config may set.

    They are no part of a signature, so that raising one draws nothing anew: the outcome tells them,
    and `may_fit_now` whether they are others now.

    Args:
        unfit: What became of the task.
        config: The config of the system.

    Returns:
        The same, with what the config says of the two numbers in its details.
    """
    return replace(unfit, details={**unfit.details, LIMITS: _stated(config)})


def may_fit_now(details: Mapping[str, Any], config: SystemConfig) -> bool:
    """Whether a task was turned away for limits of a config that now says something else.

    Args:
        details: Of the outcome.
        config: The config of the system now.

    Returns:
        False where no such limits are told.
    """
    return LIMITS in details and details[LIMITS] != _stated(config)


def _stated(config: SystemConfig) -> dict[str, Any]:
    return {name: config.parameters[name] for name in NUMBERS if name in config.parameters}
