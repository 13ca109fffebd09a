"""Which samples a metric fits, as far as somebody was asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from echo_hf.systems.base import Task


@dataclass(frozen=True)
class Applicable:
    """The samples of a split that a metric fits.

    Attributes:
        fitting: The tasks that it fits; all of them where nobody was asked.
        unknown: How many tasks more nobody gave an answer about, though there are answers about
            others: they have no number, and lower the coverage.
        asked: Whether anybody was asked.
    """

    fitting: tuple[Task, ...]
    unknown: int
    asked: bool

    @property
    def samples(self) -> int:
        """Of how many samples a number would be wanted."""
        return len(self.fitting) + self.unknown


def applicable(metric: str, tasks: Sequence[Task], applicability: pa.Table | None) -> Applicable:
    """The samples that a metric fits.

    Args:
        metric: Its name, a column of `APPLICABILITY`.
        tasks: The tasks it could be about.
        applicability: What somebody answered; null when nobody was asked.

    Returns:
        The tasks; all where no answer says anything about this metric.

    Example:
        >>> tasks = [Task(name, "", "", "") for name in "abc"]
        >>> said = pa.table({"sample_id": ["a", "b"], "color_shift": [True, None]})
        >>> found = applicable("color_shift", tasks, said)
        >>> [task.sample_id for task in found.fitting], found.unknown, found.asked
        (['a'], 2, True)
    """
    said = _said(metric, applicability)
    if all(answer is None for answer in said.values()):
        return Applicable(tuple(tasks), 0, asked=False)
    answers = [said.get(task.sample_id) for task in tasks]
    fitting = tuple(task for task, answer in zip(tasks, answers, strict=True) if answer)
    return Applicable(fitting, answers.count(None), asked=True)


def _said(metric: str, applicability: pa.Table | None) -> dict[str, bool | None]:
    if applicability is None:
        return {}
    columns = (applicability[name].to_pylist() for name in ("sample_id", metric))
    return dict(zip(*columns, strict=True))
