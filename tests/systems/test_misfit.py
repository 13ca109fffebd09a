"""Tasks with more or fewer inputs than a system takes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.engines.base import ImageRef
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import by_config, may_fit_now, unsupported_task
from tests.systems.drawing_for_tests import task
from tests.systems.runs_for_tests import system

INPUT = ImageRef("0" * 64)


@given(st.integers(0, 4), st.integers(0, 4) | st.none(), st.integers(0, 9))
def test_a_task_fits_between_the_two_numbers(fewest: int, more: int | None, number: int) -> None:
    """Both included; anything else is unsupported, and says how many there are."""
    most = None if more is None else fewest + more
    drawn = unsupported_task(task(*[INPUT] * number), fewest, most)
    assert (drawn is None) is (number >= fewest and (most is None or number <= most))
    if drawn is not None:
        assert (drawn.outcome, drawn.stage) == (Outcome.UNSUPPORTED, OutcomeStage.TASK)
        assert drawn.code == ("too_few_inputs" if number < fewest else "too_many_inputs")
        assert f"has {number} input images" in (drawn.text or "")


@pytest.mark.parametrize(
    ("most", "takes"), [(2, "and Anole takes at most 2"), (0, "and Anole takes none")]
)
def test_the_message_names_who_does_not_take_it(most: int, takes: str) -> None:
    """And how many it takes."""
    drawn = unsupported_task(task(*[INPUT] * 3), 0, most, "Anole")
    assert drawn is not None
    assert drawn.text == f"the task has 3 input images, {takes}"


@pytest.mark.parametrize(
    ("details", "parameters", "expected"),
    [
        ({"limits": {"most_inputs": 1}}, {"most_inputs": 1, "quality": "low"}, False),
        ({"limits": {"most_inputs": 1}}, {"most_inputs": 2}, True),
        ({"limits": {"most_inputs": 1}}, {}, True),
        ({"limits": {}}, {"fewest_inputs": 0}, True),
        ({"limits": {}}, {}, False),
        ({}, {"most_inputs": 2}, False),
    ],
)
def test_other_limits_make_a_task_worth_asking_again(
    details: dict[str, Any], parameters: dict[str, Any], expected: bool
) -> None:
    """Where it was turned away for those of the config."""
    assert may_fit_now(details, system(parameters=parameters)) is expected


def test_an_outcome_tells_the_limits_of_its_config() -> None:
    """By which it is seen whether they are others now."""
    one, other = (system(parameters={"most_inputs": most, "steps": 4}) for most in (1, 2))
    drawn = unsupported_task(task(INPUT, INPUT), 0, 1)
    assert drawn is not None
    told = by_config(drawn, one)
    assert told.details == {"limits": {"most_inputs": 1}}
    assert (may_fit_now(told.details, one), may_fit_now(told.details, other)) == (False, True)
