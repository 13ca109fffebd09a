"""People's order and how far judges agree: elections, all orders one by one, hand and scipy."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict
from itertools import combinations, permutations
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau, pearsonr

from echo_hf._infra.bootstrap import Unscored
from echo_hf.scores import agreement, kemeny_consensus
from echo_hf.scores.agreement import CeilingShare, read_human
from echo_hf.scores.kemeny import optimal_orders, sample_consensus
from echo_hf.scores.ranks import Mean
from tests.scores.ratings_for_tests import (
    RATERS,
    SYSTEMS,
    drawn,
    human_rows,
    rating_rows,
    real_people,
    real_rows,
)

FEW_DRAWS: dict[str, Any] = {"n_boot": 40, "n_resamples": 99}


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_rows_decides_nothing(seed: int) -> None:
    human, ratings = drawn(12, seed)
    mixed = (random.Random(seed).sample(rows, len(rows)) for rows in (human, ratings))
    assert agreement(*mixed, **FEW_DRAWS) == agreement(human, ratings, **FEW_DRAWS)


def test_as_published_everybody_twice_is_taken_for_evidence() -> None:
    human, ratings = drawn(20, 1)
    twice = [*human, *({**row, "rater": row["rater"] + " again"} for row in human)]
    found, doubled = (
        agreement(rows, ratings, protocol="published", **FEW_DRAWS) for rows in (human, twice)
    )
    assert (found.people.friedman.blocks, doubled.people.friedman.blocks) == (60, 120)
    assert found.people.friedman.statistic is not None
    assert doubled.people.friedman.statistic == pytest.approx(2 * found.people.friedman.statistic)


def test_what_people_could_not_rank_is_counted_and_left_out() -> None:
    ranks: dict[str, list[tuple[int | None, ...]]] = {
        "ada": [(1, 2, 3), (1, 2, 3), (1, 2, 3)],
        "ben": [(None, None, None), (1, 2, 3), (3, 2, 1)],
        "cy": [(1, 2, 3), (1, None, 2), (1, 2, 3)],
    }
    found = agreement(human_rows(ranks), rating_rows({"jay": [(3, 2, 1, 9)] * 4}), **FEW_DRAWS)
    expected = {"samples": 3, "rankings": 8, "partial": 1, "refused": 1}
    assert asdict(found.counts) == {**expected, "ratings_elsewhere": 3 + 4}
    assert found.people.mean_rank_by_rater["ben"]["ash"].samples == 2
    assert found.people.mean_rank_by_rater["cy"]["cedar"].value == 3
    assert found.judges.with_consensus["jay"].tau == 1
    assert found.judges.with_raters["jay"]["ben"].tau == 0
    rankings = [
        [[SYSTEMS[at]] for at, rank in sorted(enumerate(sample), key=lambda one: one[1]) if rank]
        for sample in [(1, 2, 3)] * 6 + [(3, 2, 1)]
    ]
    overall = kemeny_consensus([*rankings, [["ash"], ["cedar"]]])
    assert found.people.consensus == overall


GIVEN = {"ada": [(1, 2, 2), (3, 1, 2)], "ben": [(None, None, None), (1, None, 2)]}


def test_every_rank_stands_in_its_place() -> None:
    rows = human_rows(GIVEN)
    found = read_human(rows[::-1])
    assert found.raters == ("ada", "ben")
    assert found.systems == ("ash", "birch", "cedar")
    assert found.samples == ("s000", "s001")
    expected = np.array(
        [[[1, 3], [2, 1], [2, 2]], [[np.nan, 1], [np.nan, np.nan], [np.nan, 2]]], float
    )
    np.testing.assert_array_equal(found.ranks, expected)
    np.testing.assert_array_equal(found.refused, [[False, False], [True, False]])


def test_a_sample_that_a_person_was_not_shown_is_not_refused() -> None:
    rows = [row for row in human_rows(GIVEN) if (row["rater"], row["sample_id"]) != ("ben", "s000")]
    assert not read_human(rows).refused.any()


UP, SWAPPED, DOWN = (1, 2, 3), (2, 1, 3), (3, 2, 1)
LIKES = (9, 5, 1)  # a judge who says what UP says


def agreed(
    people: list[Sequence[Sequence[int]]], judge: Sequence[Sequence[float | None]] = [LIKES] * 12
) -> tuple[CeilingShare, Mean]:
    human = human_rows(dict(zip(RATERS, people, strict=False)))
    found = agreement(human, rating_rows({"jay": judge}), **FEW_DRAWS).judges
    return found.share_of_ceiling["jay"], found.people_with_others


def test_the_ceiling_by_hand() -> None:
    """Of three people two agree, and so does the judge; the third swaps a pair.

    Without one of the two, the others see that pair both ways: a tie, and tau-b is 2 / sqrt(2 * 3).
    Without the third, who has one of three pairs against the others, it is (2 - 1) / 3.
    """
    share, ceiling = agreed([[UP] * 12, [UP] * 12, [SWAPPED] * 12])
    tied = 2 / np.sqrt(6)
    assert share.people == ceiling.value == pytest.approx((2 * tied + 1 / 3) / 3)
    assert share.judge == pytest.approx((2 * tied + 1) / 3)
    assert share.share == pytest.approx((2 * tied + 1) / (2 * tied + 1 / 3))


def test_both_are_measured_on_the_same_samples() -> None:
    people = [[UP] * 24, [UP] * 12 + [SWAPPED] * 12, [UP] * 12 + [DOWN] * 12]
    share, ceiling = agreed(people, [LIKES] * 12 + [(None, None, None)] * 12)
    assert (share.people, share.share, share.samples) == (1.0, 1.0, 12)
    assert ceiling.value is not None
    assert ceiling.value < 0.8


def test_people_who_contradict_each_other_are_no_ceiling() -> None:
    share, _ = agreed([[UP] * 12, [DOWN] * 12])
    assert (share.people, share.share, share.reason) == (-1.0, None, Unscored.NO_CEILING)
    alone, ceiling = agreed([[UP] * 12])
    assert (alone.share, alone.samples, alone.reason) == (None, 0, Unscored.NO_ORDER)
    assert ceiling.value is None


def test_judges_correlate_as_scipy_says_over_what_both_rated() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, 11, (2, 40, 3)).astype(float)
    one[:5, 0], other[3:9, 1] = np.nan, np.nan
    ratings = {"x": one.tolist(), "y": other.tolist(), "z": [(5, 5, 5)] * 40}
    found = agreement(human_rows({"ada": [UP] * 40}), rating_rows(ratings), **FEW_DRAWS).judges
    common = ~np.isnan(one) & ~np.isnan(other)
    expected = pearsonr(one[common], other[common])
    assert {name: list(row) for name, row in found.pearson.items()} == {"x": ["y", "z"], "y": ["z"]}
    r = found.pearson["x"]["y"]
    assert (r.r, r.p_value) == pytest.approx((expected.statistic, expected.pvalue))
    assert (r.outputs, found.pearson["x"]["z"].r) == (120 - 11, None)


def test_equal_ratings_are_ties_up_to_what_a_sum_of_floats_loses() -> None:
    human, ratings = human_rows({"ada": [UP] * 9}), rating_rows({"jay": [(5, 0.1 + 0.2, 0.3)] * 9})
    found = agreement(human, ratings, **FEW_DRAWS).judges.with_consensus["jay"]
    assert found.tau == pytest.approx(kendalltau([1, 2, 3], [1, 2, 2]).statistic)
    broken = agreement(human, ratings, protocol="published", **FEW_DRAWS).judges
    assert broken.with_consensus["jay"].tau != pytest.approx(found.tau)


def test_judges_agree_with_the_consensus_as_with_the_mean_of_people(test_data: Path) -> None:
    """Of 179 real edits; a consensus is nearly the order of means: .595, .479, -.033 of old."""
    found = agreement(real_people(test_data), real_rows(test_data), **FEW_DRAWS)
    expected = {"gpt4o": 0.595, "gemini": 0.479, "qwenvl": -0.033}
    taus = {judge: one.tau for judge, one in found.judges.with_consensus.items()}
    assert taus == pytest.approx(expected, abs=0.002)


Ranks = Sequence[Sequence[float | None]]


def cost(order: Sequence[int], ranks: Ranks) -> float:
    total = 0.0
    for person in ranks:
        for better, worse in combinations(order, 2):
            one, other = person[better], person[worse]
            if one is not None and other is not None:
                total += 1.0 if one > other else 0.5 if one == other else 0.0
    return total


def best_orders(ranks: Ranks) -> tuple[float, list[tuple[int, ...]]]:
    costs = {order: cost(order, ranks) for order in permutations(range(len(ranks[0])))}
    least = min(costs.values())
    return least, sorted(order for order, found in costs.items() if found == least)


NAMES = "abcde"


@st.composite
def rankings(draw: st.DrawFn) -> list[list[list[str]]]:
    found = []
    for _ in range(draw(st.integers(1, 4))):
        places = {name: draw(st.none() | st.integers(1, 3)) for name in NAMES}
        found.append(
            [tied for at in (1, 2, 3) if (tied := [name for name in NAMES if places[name] == at])]
        )
    return found


def test_the_capital_of_tennessee() -> None:
    """The usual example of the method: 393 of 600 pairwise preferences are met."""
    voters = 42 * ["MNCK"] + 26 * ["NCKM"] + 15 * ["CKNM"] + 17 * ["KCNM"]
    found = kemeny_consensus([list(voter) for voter in voters])
    assert found.ranking == tuple("NCKM")
    assert found.distance == 600 - 393
    assert found.n_optimal == 1


@given(rankings())
def test_it_is_one_of_the_best_of_all_orders(given_rankings: list[list[list[str]]]) -> None:
    """Distance, count, choice and places are those of 120 orders tried one by one."""
    names = sorted({name for one in given_rankings for tied in one for name in tied})
    ranks = [
        [next((at for at, tied in enumerate(one) if name in tied), None) for name in names]
        for one in given_rankings
    ]
    found = kemeny_consensus(given_rankings)
    least, best = best_orders(ranks) if names else (0.0, [()])
    assert (found.distance, found.n_optimal) == (least, len(best))
    assert found.ranking == tuple(names[at] for at in best[0])
    places = {name: fmean(order.index(at) + 1 for order in best) for at, name in enumerate(names)}
    assert found.mean_rank == pytest.approx(places)


def test_each_sample_has_the_consensus_of_its_own_rankings() -> None:
    rng = np.random.default_rng(3)
    ranks = rng.integers(1, 5, (3, 4, 30)).astype(float)
    ranks[rng.random(ranks.shape) < 0.3] = np.nan
    ranks[:, 2, :10] = np.nan
    found = sample_consensus(ranks)
    for at in range(30):
        alone = kemeny_consensus([_as_lists(person) for person in ranks[:, :, at]])
        places = [alone.mean_rank.get("abcd"[system], np.nan) for system in range(4)]
        np.testing.assert_allclose(found[:, at], places)


def _as_lists(ranks: np.ndarray) -> list[list[str]]:
    return [
        ["abcd"[at] for at in np.flatnonzero(ranks == rank)]
        for rank in sorted(set(ranks[~np.isnan(ranks)]))
    ]


def test_where_nothing_is_said_every_order_is_best() -> None:
    """14! orders of fourteen systems are counted exactly, and nobody is in front."""
    found = optimal_orders(np.zeros((1, 14, 14)))
    assert found.number.tolist() == [87_178_291_200]
    assert found.mean_place.tolist() == [[7.5] * 14]
    assert found.order.tolist() == [list(range(14))]
