"""Bradley-Terry strengths against a published example and another way to fit them; gaps."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from echo_hf.scores import BradleyTerry, bradley_terry, relative_gap
from echo_hf.scores.bradley_terry import fit_strengths
from echo_hf.scores.votes import Points
from tests.scores.ratings_for_tests import SYSTEMS, Row, one_judge, rows_of

# How each system takes what is hard in a sample, and how good it is.
PLACES = ((1.0, 0.0), (0.5, -0.4), (-0.5, 0.4))


def by_optimiser(
    won: NDArray[np.float64], fixed: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    free = np.ones(len(won), dtype=bool) if fixed is None else np.isnan(fixed)

    def whole(some: NDArray[np.float64]) -> NDArray[np.float64]:
        strength = np.zeros(len(won)) if fixed is None else fixed.copy()
        strength[free] = some
        return strength

    def surprise(some: NDArray[np.float64]) -> float:
        gap = whole(some)[:, None] - whole(some)
        return float((won * np.logaddexp(0, -gap)).sum() + 1e-9 * some @ some)

    found = whole(minimize(surprise, np.zeros(free.sum()), tol=1e-12).x)
    return found if fixed is not None else np.asarray(found - found.mean())


def test_the_textbook_example() -> None:
    """Four teams and 22 games, as in Wikipedia's article; strengths have geometric mean 1."""
    won = np.array([[0, 2, 0, 1], [3, 0, 5, 0], [0, 3, 0, 1], [4, 0, 3, 0]], dtype=float)
    found = np.exp(fit_strengths(Points(won, won + won.T)))
    assert found.round(3).tolist() == [0.640, 1.043, 0.660, 2.270]


def test_draws_are_fitted_apart_from_each_other() -> None:
    """One in which a system was never met, and one in which a system never wins, among others."""
    rng = np.random.default_rng(7)
    won = rng.integers(1, 30, (5, 4, 4)).astype(float) * (1 - np.eye(4))
    won[1, 2], won[1, :, 2] = 0, 0
    won[3, 0] = 0
    found = fit_strengths(Points(won, won + won.swapaxes(1, 2)))
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


def random_wins(seed: int, systems: int) -> NDArray[np.float64]:
    won = np.round(np.random.default_rng(seed).random((systems, systems)) * 40) / 2 + 0.5
    np.fill_diagonal(won, 0)
    return won


@pytest.mark.parametrize("seed", range(3))
def test_with_anchors_the_others_are_the_most_likely(seed: int) -> None:
    won = random_wins(seed, 6)
    fixed = np.array([np.nan, 1.5, np.nan, -0.25, np.nan, 3.0])
    found = fit_strengths(Points(won, won + won.T), fixed)
    assert found == pytest.approx(by_optimiser(won, fixed), abs=1e-4)
    assert found[[1, 3, 5]].tolist() == [1.5, -0.25, 3.0]


def test_who_has_no_strength_takes_it_from_nobody_else() -> None:
    """One who joins never wins, and two meet each other alone: as if they were not there."""
    won = random_wins(5, 6)
    won[3] = 0
    won[4:, :4], won[:4, 4:] = 0, 0
    fixed = np.array([0.5, -0.5, *[np.nan] * 4])
    found = fit_strengths(Points(won, won + won.T), fixed)
    assert found[:3] == pytest.approx(by_optimiser(won[:3, :3], fixed[:3]), abs=1e-4)
    assert np.isnan(found[3:]).all()


def joined(seed: int, **skill: float) -> list[Row]:
    """Ratings of 80 samples, in which each system is as good as its skill."""
    rng = np.random.default_rng(seed)
    return one_judge(**{name: list(rng.normal(at, 1, 80)) for name, at in skill.items()})


def test_who_joins_moves_nobody_and_has_an_interval() -> None:
    before = bradley_terry(joined(1, ash=0, birch=0.5, cedar=-0.5), n_boot=0)
    anchors = {name: value for name, value in before.strength.items() if value is not None}
    rows = joined(2, ash=0, birch=0.5, cedar=-0.5, dogwood=2)
    found = bradley_terry(rows, anchors={**anchors, "elm": 4.0})
    assert {name: found.strength[name] for name in anchors} == anchors
    assert bradley_terry(rows, n_boot=0).strength["ash"] != pytest.approx(anchors["ash"], abs=0.05)
    assert list(found.strength) == ["elm", "dogwood", "birch", "ash", "cedar"]
    assert found.reasons == dict.fromkeys((*anchors, "elm"), "anchored")
    ends = found.interval["dogwood"]
    assert ends is not None
    assert ends[0] < (found.strength["dogwood"] or 0) < ends[1]
    assert found.definition["anchors"] == {**anchors, "elm": 4.0}
    assert "anchors" not in before.definition


@pytest.mark.slow
def test_intervals_of_who_joins_hold_the_strength_of_all_samples() -> None:
    """95 % of them, given the anchors: of 60 samples drawn 300 times from 20,000."""
    rng, systems = np.random.default_rng(9), ("ash", "birch", "cedar")
    hard = rng.normal(0, 1, 20_000)  # what all systems share in a sample
    every = np.array([hard * by + rng.normal(at, 1, hard.size) for by, at in PLACES])
    known = {"ash": 0.3, "birch": -0.3}

    def fitted(samples: NDArray[Any], n_boot: int) -> BradleyTerry:
        rows = one_judge(**dict(zip(systems, every[:, samples].tolist(), strict=True)))
        return bradley_terry(rows, anchors=known, n_boot=n_boot)

    truth = fitted(np.arange(hard.size), 0).strength["cedar"] or 0.0
    held = 0
    for _ in range(300):
        low, high = fitted(rng.choice(hard.size, 60), 400).interval["cedar"] or (1.0, 0.0)
        held += low <= truth <= high
    assert 0.92 <= held / 300 <= 0.98


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({}, "one_system"),
        ({"a": 1.0, "b": None}, "one_system"),
        ({"a": 1.0, "b": 0.0}, "zero_second"),
        ({"a": 1.0, "b": -2.0}, "zero_second"),
    ],
)
def test_where_there_is_no_gap_there_is_a_reason(
    values: dict[str, float | None], reason: str
) -> None:
    assert (relative_gap(values).gap, relative_gap(values).reason) == (None, reason)
