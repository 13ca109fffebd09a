"""People's answers to checks: what they called failures, and how many a rate still takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from echo_hf.errors import RunError
from echo_hf.judging.failure_rates import Labels, Measurer, Output, measure_system
from echo_hf.tables import LABELS

ANSWERS: Mapping[str, bool | None] = {"yes": True, "no": False, "unclear": None}


def tally_labels(labels: pa.Table | None) -> dict[str, dict[Output, float]]:
    """Return by check 1 for each output that most people called a failure, 0 for the others.

    Who finds one unclear has no say, and where as many say yes as no there is no label.
    """
    votes: dict[str, dict[Output, dict[str, bool | None]]] = {}
    for row in [] if labels is None else labels.to_pylist():
        key, answer = [row[name] for name in LABELS.key], row["answer"]
        if answer not in ANSWERS:
            raise RunError(
                f"label {key!r}: answer is {answer!r}, expected {', '.join(map(repr, ANSWERS))}"
            )
        sample, system, check, rater = key
        raters = votes.setdefault(check, {}).setdefault((sample, system), {})
        if rater in raters:
            raise RunError(f"labels have {key!r} twice: leave one")
        raters[rater] = ANSWERS[answer]
    tally: dict[str, dict[Output, float]] = {}
    for check, by_output in votes.items():
        for output, raters in by_output.items():
            answers = list(raters.values())
            if margin := answers.count(True) - answers.count(False):
                tally.setdefault(check, {})[output] = float(margin > 0)
    return tally


@dataclass(frozen=True)
class AnsweredOutputs:
    """The outputs of a system in a split to which judges answered a check."""

    split: str
    system: str
    answers: Mapping[Output, bool]
    measurer: Measurer

    def count_missing(self, labels: Labels, half_width: float) -> int:
        """Count the labels that an interval of a half width still takes."""
        labelled = sum(output in labels for output in self.answers)
        needed = measure_system(self.answers, self.measurer, labels).labels_for(half_width)
        return max(0, needed - labelled)
