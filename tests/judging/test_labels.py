"""What people's answers to a check come to, and how many more an interval takes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from scipy import stats

from echo_hf.errors import RunError
from echo_hf.judging.failure_rates import Measurer
from echo_hf.judging.labels import AnsweredOutputs, tally_labels
from echo_hf.tables import LABELS
from tests.judging.test_failure_rates import certificate


def table(*rows: tuple[str, str, str]) -> pa.Table:
    """Rows of sample, rater and answer."""
    fields = [
        {"sample_id": sample, "system": "amber", "check": "cast@1", "rater": rater, "answer": said}
        for sample, rater, said in rows
    ]
    return pa.Table.from_pylist(fields, LABELS.schema)


@pytest.mark.parametrize(
    ("answers", "label"),
    [
        (["yes"], 1.0),
        (["no"], 0.0),
        (["unclear"], None),
        (["yes", "no"], None),
        (["yes", "no", "unclear"], None),
        (["yes", "no", "yes"], 1.0),
        (["no", "unclear", "unclear"], 0.0),
    ],
)
def test_the_majority_decides_and_ties_and_unclear_ones_are_no_label(
    answers: list[str], label: float | None
) -> None:
    rows = [("s", f"rater{number}", answer) for number, answer in enumerate(answers)]
    expected = {} if label is None else {"cast@1": {("s", "amber"): label}}
    assert tally_labels(table(*rows)) == expected


def test_each_check_has_labels_of_its_own() -> None:
    rows = table(("s", "ann", "yes"), ("t", "ann", "no"))
    other = rows.set_column(2, "check", pa.array(["words@2", "cast@1"]))
    assert tally_labels(other) == {
        "words@2": {("s", "amber"): 1.0},
        "cast@1": {("t", "amber"): 0.0},
    }
    assert tally_labels(None) == {}


@pytest.mark.parametrize("answer", ["Yes", "", None, "<b>no</b>"])
def test_an_answer_that_is_none_is_refused(answer: Any) -> None:
    with pytest.raises(RunError, match=r"answer is .*, expected 'yes', 'no', 'unclear'"):
        tally_labels(table(("s", "ann", answer)))


def test_one_person_answers_once() -> None:
    with pytest.raises(RunError, match=r"labels have \['s', 'amber', 'cast@1', 'ann'\] twice"):
        tally_labels(table(("s", "ann", "yes"), ("s", "ann", "no")))


def group(outputs: int, yes: int) -> AnsweredOutputs:
    answers = {(f"s{number:03}", "amber"): number < yes for number in range(outputs)}
    return AnsweredOutputs("text_to_image", "amber", answers, Measurer(("m",), certificate("m")))


def test_at_least_30_labels_are_asked_for_and_never_more_than_there_are_outputs() -> None:
    assert group(200, 20).count_missing({}, 0.9) == 30
    assert group(200, 20).count_missing({("s000", "amber"): 1.0}, 0.9) == 29
    assert group(12, 3).count_missing({}, 0.01) == 12
    others = {(f"s{number:03}", "cobalt"): 1.0 for number in range(50)}
    assert group(200, 20).count_missing(others, 0.9) == 30


def test_labels_are_missing_until_the_interval_is_as_narrow_as_asked() -> None:
    """A check that knows nothing of the labels: their number is that of a share of a sample."""
    counted = group(2000, 1000)
    chosen = range(0, 2000, 10)
    labels = {(f"s{number:03}", "amber"): float(number // 10 % 2) for number in chosen}
    missing = counted.count_missing(labels, 0.05)
    n = len(labels) + missing
    half = stats.t.ppf(0.975, n - 1) * (0.25 / n) ** 0.5
    assert half == pytest.approx(0.05, abs=0.001)
    done = {output: float(number % 2) for number, output in enumerate(counted.answers)}
    assert counted.count_missing(done, 0.05) == 0
