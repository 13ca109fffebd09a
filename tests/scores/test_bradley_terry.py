"""Bradley-Terry strengths against a published example and another way to fit them; gaps."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from echo_hf.errors import ScoreError
from echo_hf.scores import bradley_terry, gap_ratio, relative_gap
from echo_hf.scores.bradley_terry import strengths
from echo_hf.scores.votes import Points
from tests.scores.ratings_for_tests import SYSTEMS, one_judge, rows_of


def by_optimiser(won: NDArray[np.float64]) -> NDArray[np.float64]:
    def surprise(strength: NDArray[np.float64]) -> float:
        gap = strength[:, None] - strength
        return float((won * np.logaddexp(0, -gap)).sum() + 1e-9 * strength @ strength)

    found = minimize(surprise, np.zeros(len(won)), tol=1e-12).x
    return np.asarray(found - found.mean())


def test_the_textbook_example() -> None:
    """Four teams and 22 games, as in Wikipedia's article; strengths have geometric mean 1."""
    won = np.array([[0, 2, 0, 1], [3, 0, 5, 0], [0, 3, 0, 1], [4, 0, 3, 0]], dtype=float)
    found = np.exp(strengths(Points(won, won + won.T)))
    assert found.round(3).tolist() == [0.640, 1.043, 0.660, 2.270]


@pytest.mark.parametrize("seed", range(3))
def test_they_are_the_most_likely(seed: int) -> None:
    rng = np.random.default_rng(seed)
    won = np.round(rng.random((6, 6)) * 20 * 2) / 2 + 0.5
    np.fill_diagonal(won, 0)
    assert strengths(Points(won, won + won.T)) == pytest.approx(by_optimiser(won), abs=1e-4)


def test_a_system_that_hardly_ever_wins_is_fitted() -> None:
    won = np.full((4, 4), 500.0)
    won[0], won[:, 0] = 0.5, 999.5
    np.fill_diagonal(won, 0)
    found = strengths(Points(won, won + won.T))
    assert found[1] - found[0] == pytest.approx(np.log(999.5 / 0.5))


def test_draws_are_fitted_apart_from_each_other() -> None:
    """One in which a system was never met, and one in which a system never wins, among others."""
    rng = np.random.default_rng(7)
    won = rng.integers(1, 30, (5, 4, 4)).astype(float) * (1 - np.eye(4))
    won[1, 2], won[1, :, 2] = 0, 0
    won[3, 0] = 0
    found = strengths(Points(won, won + won.swapaxes(1, 2)))
    for draw in (0, 2, 4):
        assert found[draw] == pytest.approx(by_optimiser(won[draw]), abs=1e-4)
    assert np.isnan(found[1]).tolist() == [False, False, True, False]
    met = np.delete(np.delete(won[1], 2, 0), 2, 1)
    assert np.delete(found[1], 2) == pytest.approx(by_optimiser(met), abs=1e-4)
    assert np.isnan(found[3]).all()


def test_ratings_become_strengths_with_intervals() -> None:
    rng = np.random.default_rng(3)
    rows = one_judge(
        **{name: list(rng.integers(0, 10, 60) + 2 * at) for at, name in enumerate(SYSTEMS)}
    )
    found = bradley_terry(rows)
    assert list(found.strength) == list(SYSTEMS)[::-1]
    assert sum(value or 0 for value in found.strength.values()) == pytest.approx(0)
    for name, value in found.strength.items():
        ends = found.interval[name]
        assert ends is not None
        assert ends[0] < (value or 0) < ends[1]
    assert bradley_terry(rows) == found
    assert json.loads(json.dumps(found.definition))["measure"] == "bradley_terry"


@pytest.mark.parametrize(
    ("cube", "reasons"),
    [
        ({"ash": [5] * 20, "birch": [1] * 20}, {"ash": "unbounded", "birch": "unbounded"}),
        ({"ash": [5] * 20}, {"ash": "one_system"}),
        ({"ash": [5, None], "birch": [None, 5]}, dict.fromkeys(SYSTEMS[:2], "nothing_in_common")),
        (
            {"ash": [1, 2, 3], "birch": [3, 2, 1], "cedar": [None] * 3},
            {"ash": "few_samples", "birch": "few_samples", "cedar": "not_rated"},
        ),
    ],
)
def test_where_there_is_no_number_there_is_a_reason(
    cube: dict[str, Any], reasons: dict[str, str]
) -> None:
    found = bradley_terry(rows_of({"judge": cube}))
    assert found.reasons == reasons
    for name, reason in reasons.items():
        assert (found.strength[name] is None) is (reason != "few_samples")
        assert found.interval[name] is None


def test_draws_without_a_finite_strength_have_no_interval() -> None:
    found = bradley_terry(one_judge(ash=[1] * 29 + [9], birch=[5] * 30))
    assert found.strength["ash"] == pytest.approx(np.log(1 / 29) / 2)
    assert found.interval == {"ash": None, "birch": None}
    assert set(found.reasons.values()) == {"unbounded"}


# Printed win rates of the paper's figure 6, image to image.
PRINTED = {"4o Image Gen": 0.81, "Nano Banana": 0.66, "Gemini 2.0 Flash": 0.53, "Anole": 0.07}


def test_the_gap_is_a_share_of_the_second_and_the_papers_ratio_fits_the_printed_rates() -> None:
    """3.2 times the gap of a benchmark whose best two are 7.1 % apart."""
    found = gap_ratio(PRINTED, {"a": 7.5, "b": 7.5 / 1.071, "c": 3.0})
    assert (found.here.first, found.here.second) == ("4o Image Gen", "Nano Banana")
    assert found.here.gap == pytest.approx(0.15 / 0.66)
    assert found.ratio == pytest.approx(3.2, abs=0.05)


def test_the_ratio_does_not_depend_on_scale_or_order() -> None:
    there = {"a": 70.0, "b": None, "c": 60.0}
    tenth = {"c": 6.0, "a": 7.0}
    assert gap_ratio(PRINTED, there).ratio == pytest.approx(gap_ratio(PRINTED, tenth).ratio)


@pytest.mark.parametrize(
    ("here", "there", "reason"),
    [
        ({}, PRINTED, "one_system"),
        ({"a": 1.0, "b": None}, PRINTED, "one_system"),
        (PRINTED, {"a": 1.0}, "one_system"),
        ({"a": 1.0, "b": 0.0}, PRINTED, "zero_second"),
        (PRINTED, {"a": 1.0, "b": -2.0}, "zero_second"),
        (PRINTED, {"a": 1.0, "b": 1.0}, "no_gap"),
    ],
)
def test_where_there_is_no_ratio_there_is_a_reason(
    here: dict[str, float | None], there: dict[str, float | None], reason: str
) -> None:
    found = gap_ratio(here, there)
    assert found.ratio is None
    assert found.reason == reason


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_number_is_refused(value: float) -> None:
    with pytest.raises(ScoreError, match=f"the value of 'a' is {value!r}"):
        relative_gap({"a": value, "b": 1.0})
