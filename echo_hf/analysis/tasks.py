"""Which tasks people give, which of them reference sets lack, and who wins at each (figure 3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from echo_hf.analysis.figures import Part
from echo_hf.analysis.result import TaskCount, TaskRate, Tasks

UNKNOWN = "unknown"
TaskPart = Part[Tasks]
Sample = Mapping[str, Any]


def tasks(
    samples: Sequence[Sample],
    references: Mapping[str, Counter[str]],
    rates: Sequence[TaskRate] = (),
    *,
    no_rates: str | None = None,
    no_references: str | None = None,
    engine: Mapping[str, Any] | None = None,
) -> TaskPart:
    """Counts samples by task, and says which tasks reference sets lack.

    Args:
        samples: Rows of samples, with task and kind.
        references: For each reference set, prompts by task.
        rates: Win rates by split and task.
        no_rates: Why there are none.
        no_references: Why the references' tasks are not known.
        engine: Who told the references' tasks; null for plain rules.

    Returns:
        The tasks, the most frequent first.

    Example:
        >>> samples = [{"task": "edit", "kind": "task"}, {"task": None, "kind": None}]
        >>> found = tasks(samples, {"GenEval": Counter(text_to_image=553)}).found
        >>> [(one.task, one.share, one.absent_from) for one in found.counts]
        [('edit', 0.5, ('GenEval',)), ('unknown', 0.5, ())]
    """
    counts = Counter(sample["task"] or UNKNOWN for sample in samples)
    kinds = Counter(sample["kind"] or UNKNOWN for sample in samples)
    ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    found = Tasks(
        counts=tuple(_count(task, number, len(samples), references) for task, number in ranked),
        kinds=dict(sorted(kinds.items())),
        rates=tuple(rates),
        no_rates=no_rates,
        no_references=no_references,
    )
    return TaskPart(found=found, definition=_definition(engine))


def _count(
    task: str, number: int, samples: int, references: Mapping[str, Counter[str]]
) -> TaskCount:
    known = {} if task == UNKNOWN else references
    return TaskCount(
        task=task,
        samples=number,
        share=number / samples,
        in_references={name: counts[task] for name, counts in known.items()},
        absent_from=tuple(name for name, counts in known.items() if counts and not counts[task]),
    )


def _definition(engine: Mapping[str, Any] | None) -> dict[str, Any]:
    return {
        "task": "of samples: as the stage `feedback` named it, by the engine in the manifest; null "
        "is unknown",
        "references": "of their prompts: by the question of the stage `feedback` to the engine, "
        "else by the plain rules; given the pictures that each comes with (`inputs`)",
        "engine": dict(engine) if engine else None,
        "rates": "win rate under the run's protocol among the rated samples of the task",
    }
