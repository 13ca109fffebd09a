"""Bradley-Terry strengths against a published example and another way to fit them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from echo_hf.scores import bradley_terry
from echo_hf.scores.bradley_terry import strengths
from echo_hf.scores.votes import Points
from tests.scores.ratings_for_tests import SYSTEMS, one_judge, rows_of


def by_optimiser(won: NDArray[np.float64]) -> NDArray[np.float64]:
    """The most likely strengths, by a general-purpose optimiser."""

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


@pytest.mark.parametrize("seed", range(5))
def test_they_are_the_most_likely(seed: int) -> None:
    """Fractional wins included: a tie is half a win."""
    rng = np.random.default_rng(seed)
    won = np.round(rng.random((6, 6)) * 20 * 2) / 2 + 0.5
    np.fill_diagonal(won, 0)
    assert strengths(Points(won, won + won.T)) == pytest.approx(by_optimiser(won), abs=1e-4)


def test_a_system_that_hardly_ever_wins_is_fitted() -> None:
    """Half a point in a thousand games, against each of three equals."""
    won = np.full((4, 4), 500.0)
    won[0], won[:, 0] = 0.5, 999.5
    np.fill_diagonal(won, 0)
    found = strengths(Points(won, won + won.T))
    assert found[1] - found[0] == pytest.approx(np.log(999.5 / 0.5))


def test_ratings_become_strengths_with_intervals() -> None:
    """The points of the verdicts are what is fitted; the better has the higher strength."""
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
        (
            {"ash": [5, None], "birch": [None, 5]},
            dict.fromkeys(["ash", "birch"], "nothing_in_common"),
        ),
        (
            {"ash": [1, 2, 3], "birch": [3, 2, 1], "cedar": [None] * 3},
            {"ash": "few_samples", "birch": "few_samples", "cedar": "not_rated"},
        ),
    ],
)
def test_where_there_is_no_number_there_is_a_reason(
    cube: dict[str, Any], reasons: dict[str, str]
) -> None:
    """One that always wins would have to be infinitely strong."""
    found = bradley_terry(rows_of({"judge": cube}))
    assert found.reasons == reasons
    for name, reason in reasons.items():
        assert (found.strength[name] is None) is (reason != "few_samples")
        assert found.interval[name] is None


def test_draws_without_a_finite_strength_have_no_interval() -> None:
    """One win in thirty is left out of every third draw."""
    found = bradley_terry(one_judge(ash=[1] * 29 + [9], birch=[5] * 30))
    assert found.strength["ash"] == pytest.approx(np.log(1 / 29) / 2)
    assert found.interval == {"ash": None, "birch": None}
    assert set(found.reasons.values()) == {"unbounded"}


def test_no_ratings_have_no_strengths() -> None:
    """An empty table is no mistake."""
    assert bradley_terry([]).strength == {}
