"""The consensus of rankings: published elections and all orders tried one by one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.scores import kemeny_consensus
from echo_hf.scores.kemeny import optimal_orders, sample_consensus

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
