"""What to carry along: samples by the formula of a mean's interval, and bridges apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from echo_hf.errors import EchoError
from echo_hf.scores import carry_plan
from tests.scores.ratings_for_tests import one_judge


def board(systems: int = 8, samples: int = 200, seed: int = 0) -> list[dict[str, Any]]:
    """Systems from the best, s0, to the worst."""
    rng = np.random.default_rng(seed)
    return one_judge(
        **{
            f"s{at}": np.round(rng.normal(8 - at / 2, 1.5, samples)).tolist()
            for at in range(systems)
        }
    )


def test_that_many_samples_give_the_width() -> None:
    """The mean of so many outcomes of the pairs' spread has that half width."""
    rows = board(2)
    first, second = (
        np.array([row["rating"] for row in rows if row["system"] == name]) for name in ("s0", "s1")
    )
    deviation = np.std(np.sign(first - second) / 2, ddof=1)
    for width in (0.02, 0.05, 0.1):
        plan = carry_plan(rows, width)
        assert plan.deviation == pytest.approx(deviation)
        half = [stats.norm.ppf(0.975) * deviation / np.sqrt(plan.samples - less) for less in (0, 1)]
        assert half[0] <= width < half[1]


def test_few_samples_leave_the_usual_spread() -> None:
    plan = carry_plan(board(2, 9), 0.1)
    assert (plan.deviation, plan.compared, plan.samples) == (0.375, 0, 55)


def test_bridges_are_apart_and_without_the_best() -> None:
    """The second and the worst, and those between at even distances."""
    assert carry_plan(board(), 0.1, bridges=2).bridges == ("s1", "s7")
    assert carry_plan(board(), 0.1).bridges == ("s1", "s4", "s7")
    assert carry_plan(board(2), 0.1).bridges == ("s1",)


@pytest.mark.parametrize("width", [0, 0.5, float("nan"), -1])
def test_a_width_that_cannot_be_is_refused_in_a_line(width: float) -> None:
    with pytest.raises(EchoError, match=r"width is .*: expected a share above 0 and below 0.5"):
        carry_plan(board(2), width)
