"""Which samples a metric fits, and how many nobody gave an answer about."""

from __future__ import annotations

import pyarrow as pa
import pytest

from echo_hf.judging.score import applicable
from echo_hf.systems.base import Task
from echo_hf.tables import APPLICABILITY
from tests.judging.run_for_tests import fits

TASKS = [Task(name, "", "image_to_image", "") for name in ("a", "b", "c", "d")]


def answers(**given: bool | None) -> pa.Table:
    """What was answered about colors, by sample."""
    rows = [fits(name, color_shift=answer) for name, answer in given.items()]
    return pa.Table.from_pylist(rows, APPLICABILITY.schema)


@pytest.mark.parametrize("table", [None, answers(), answers(a=None, b=None)])
def test_where_nobody_was_asked_it_fits_all(table: pa.Table | None) -> None:
    """No table, an empty one, and one in which every call failed say nothing."""
    found = applicable("color_shift", TASKS, table)
    assert (found.fitting, found.unknown, found.asked) == (tuple(TASKS), 0, False)


def test_what_nobody_answered_is_counted_apart() -> None:
    """A failed call and a sample without a row are wanted numbers that nobody can give."""
    found = applicable("color_shift", TASKS, answers(a=True, b=False, c=None))
    assert [task.sample_id for task in found.fitting] == ["a"]
    assert (found.unknown, found.samples, found.asked) == (2, 3, True)


def test_each_metric_has_answers_of_its_own() -> None:
    """An answer about colors says nothing about faces."""
    found = applicable("face_identity", TASKS, answers(a=True, b=False))
    assert not found.asked
