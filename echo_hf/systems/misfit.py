"""Tasks with more or fewer input pictures than a system takes, the same for every adapter."""

from __future__ import annotations

from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import Drawn, Task

TOO_FEW = "too_few_inputs"
TOO_MANY = "too_many_inputs"


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
