"""Pairs of systems that are looked at while ratings come in, and ratings that nobody needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.stats import norm

from echo_hf.scores import bradley_terry, decisions, sensitivity, tiers, win_rate
from echo_hf.scores.rating_table import read_ratings
from echo_hf.scores.sequential import compute_p_values, confidence_half_width, find_needed_systems
from echo_hf.scores.votes import count_votes, list_pairs
from tests.scores.ratings_for_tests import Row, drawn, one_judge, real_rows

Array = NDArray[Any]
ALPHA = 0.05


@given(wins=st.integers(0, 60), losses=st.integers(0, 60), ties=st.integers(0, 9))
def test_a_p_value_is_one_over_what_a_mixture_of_bets_has_won(
    wins: int, losses: int, ties: int
) -> None:
    """Bets of all sizes, drawn from a normal distribution with variance 0.2, summed by quad."""
    total, squares = (wins - losses) / 2, (wins + losses) / 4

    def won(bet: float) -> float:
        density: float = norm.pdf(bet, scale=sqrt(0.2))
        return float(np.exp(bet * total - bet**2 * squares / 2) * density)

    expected, _ = quad(won, -30, 30, points=[total / (squares + 5)], limit=200)
    found = compute_p_values([0.5] * wins + [-0.5] * losses + [0.0] * ties + [float("nan")])
    assert found == pytest.approx(min(1.0, 1 / expected), rel=1e-5)


@given(
    deviation=st.floats(0.05, 0.5), count=st.integers(1, 5000), alpha=st.sampled_from([0.05, 0.001])
)
def test_the_width_is_that_of_the_paper(deviation: float, count: int, alpha: float) -> None:
    """Waudby-Smith et al. 2024, theorem 2.2, in its own notation."""
    t, rho2 = count, 0.2 * deviation**2
    inner = 2 * (t * rho2 + 1) / (t**2 * rho2) * log(sqrt(t * rho2 + 1) / alpha)
    expected = deviation * sqrt(inner)
    assert confidence_half_width(count * deviation**2, count, alpha) == pytest.approx(expected)


def race(outcomes: Array, systems: int, level: float, batch: int = 50) -> tuple[Array, float]:
    """Signs of decided pairs, and the share of ratings that were used."""
    first, second = list_pairs(systems)
    there, asked = np.ones((systems, outcomes.shape[1]), dtype=bool), np.ones(systems, dtype=bool)
    known, used = np.full(outcomes.shape, np.nan), 0
    for start in range(0, outcomes.shape[1], batch):
        part = slice(start, start + batch)
        rows = asked[first] & asked[second]
        known[rows, part] = outcomes[rows, part]
        used += batch * int(asked.sum())
        found = compute_p_values(known)
        asked &= find_needed_systems(found > level, there[:, start + batch :])
    signs = np.where(found <= level, np.sign(np.nansum(known, axis=1)), 0)
    return signs, used / (systems * outcomes.shape[1])


@pytest.fixture(scope="module")
def outcomes(test_data: Path) -> Array:
    """Of each pair of 8 systems on 179 samples: the vote of three judges, as .5, 0 or -.5."""
    return count_votes(real_rows(test_data)).verdicts / 2


def worlds(outcomes: Array, runs: int, count: int) -> Iterator[tuple[Array, Array]]:
    """Samples drawn again; as they are, and with each sample's outputs dealt out by chance."""
    rng, systems = np.random.default_rng(1), 8
    first, second = list_pairs(systems)
    whole = np.zeros((systems, systems, outcomes.shape[1]))
    whole[first, second], whole[second, first] = outcomes, -outcomes
    for _ in range(runs):
        draw = rng.integers(0, outcomes.shape[1], count)
        dealt = rng.permuted(np.tile(np.arange(systems), (count, 1)), axis=1).T
        yield outcomes[:, draw], whole[dealt[first], dealt[second], draw]


@pytest.mark.parametrize("runs", [60, pytest.param(2000, marks=pytest.mark.slow)])
def test_decisions_are_seldom_wrong(outcomes: Array, runs: int) -> None:
    """In at most 5 % of runs any of 28 pairs, and of one pair.

    Where systems differ, three quarters of the ratings decide 25 of 28 pairs.
    """
    truth, wrong, equal, one = np.sign(outcomes.mean(axis=1)), 0, 0, 0
    used, decided = [], []
    for real, dealt in worlds(outcomes, runs, 1000):
        signs, share = race(real, 8, ALPHA / 28)
        wrong += bool(((signs != 0) & (signs != truth)).any())
        used.append(share)
        decided.append(np.count_nonzero(signs))
        equal += bool(race(dealt, 8, ALPHA / 28)[0].any())
        one += bool(race(dealt[:1], 2, ALPHA)[0].any())
    assert max(wrong, equal, one) <= ALPHA * runs
    assert 0.5 < np.mean(used) < 0.7
    assert np.mean(decided) > 25


def stopped(rows: Sequence[Row], asked: dict[str, int]) -> list[Row]:
    """The same ratings, where systems were asked about their first samples alone."""
    return [
        {**row, "rating": None, "outcome": "not_needed"}
        if int(row["sample_id"][1:]) >= asked.get(row["system"], 10**6)
        else {**row, "outcome": "ok"}
        for row in rows
    ]


def test_win_rates_are_those_of_the_samples_that_all_share() -> None:
    _, rows = drawn(80, seed=3)
    some = stopped(rows, {"ash": 30, "cedar": 55})
    shared = [row for row in rows if row["sample_id"] < "s030"]
    for measure in (win_rate, sensitivity, bradley_terry):
        found, expected = vars(measure(some)), vars(measure(shared))  # type: ignore[operator]
        definition = found.pop("definition")
        assert found == {name: one for name, one in expected.items() if name != "definition"}
        assert (definition["samples"], definition["of_samples"]) == (30, 80)
        assert "of_samples" not in expected["definition"]


def test_pairs_are_compared_on_all_samples_that_both_were_needed_for() -> None:
    _, rows = drawn(80, seed=3)
    found = decisions(stopped(rows, {"ash": 30, "cedar": 55}))
    every = {
        count: win_rate([row for row in rows if row["sample_id"] < f"s{count:03}"])
        for count in (30, 55, 80)
    }
    counts = {("ash", "cedar"): 30, ("ash", "birch"): 30, ("birch", "cedar"): 55}
    for (one, other), count in {**counts, ("birch", "dogwood"): 80}.items():
        assert found.matrix[one][other] == every[count].matrix[one][other]
        assert found.pairs[one][other] == every[count].pairs[one][other] == count
    assert (found.not_needed, found.ratings) == (150, 640)
    assert len(found.decided) + len(found.undecided) == 6


def test_tiers_of_ratings_that_stopped_rest_on_decisions() -> None:
    """A usual test would take the number of samples for one that was chosen beforehand."""
    rows = one_judge(ash=[9] * 60, birch=[5, 4] * 30, cedar=[4, 5] * 30)
    found = tiers(stopped(rows, {"ash": 25}))
    assert found.tiers[0] == ("ash",)
    assert set(found.tiers[1]) == {"birch", "cedar"}
    p_value = compute_p_values([0.5] * 25)
    assert found.p_values["ash"]["birch"] == pytest.approx(3 * p_value)  # Holm, of three pairs
    assert found.p_values["birch"]["cedar"] == 1
    assert "confidence sequence" in found.definition["test"]


def test_ratings_without_such_rows_are_read_as_ever() -> None:
    rows = [{**row, "outcome": None} for row in one_judge(ash=[1, 2, None], birch=[2, 1, 3])]
    assert read_ratings(rows).not_asked is None
    found = decisions(rows)
    assert (found.pairs["ash"]["birch"], found.not_needed, found.undecided) == (
        2,
        0,
        (("ash", "birch"),),
    )


def test_where_all_that_is_shared_is_nothing_there_is_no_rate() -> None:
    rows = one_judge(ash=[9] * 30, birch=[1] * 30)
    some = stopped(rows, {"ash": 0})
    found = win_rate(some)
    assert (found.win_rate, found.definition["samples"]) == ({"ash": None, "birch": None}, 0)
    assert decisions(some).matrix["ash"]["birch"] is None
    assert tiers(some).tiers == ()


def test_alpha_of_each_pair_alone_decides_earlier() -> None:
    """To win all of 16 samples is enough for one pair, and not for one of three together."""
    rows = one_judge(ash=[9] * 16, birch=[5] * 16, cedar=[5] * 16)
    assert decisions(rows).decided == ()
    assert decisions(rows, family="pair").decided == (("ash", "birch"), ("ash", "cedar"))
