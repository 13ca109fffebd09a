"""Every best order, against all orders tried one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.errors import ScoreError
from echo_hf.scores.kemeny import optimal_orders, pair_costs
from tests.scores.brute_force import Ranks, best_orders


@st.composite
def profiles(draw: st.DrawFn, systems: int = 5) -> list[list[int | None]]:
    """Ranks of some people, with ties and gaps."""
    count = draw(st.integers(1, systems))
    person = st.lists(st.none() | st.integers(1, 4), min_size=count, max_size=count)
    return draw(st.lists(person, min_size=1, max_size=5))


def costs_of(ranks: Ranks) -> np.ndarray:
    """What the code under test starts from."""
    return pair_costs(np.array(ranks, dtype=float))


@given(profiles())
def test_cost_count_first_and_mean_place_are_those_of_all_orders(ranks: Ranks) -> None:
    """Of up to five systems, whether people tie them or leave them out."""
    least, best = best_orders(ranks)
    found = optimal_orders(costs_of(ranks)[None])
    assert found.cost.tolist() == [least]
    assert found.count.tolist() == [len(best)]
    assert tuple(found.order[0]) == best[0]
    places = np.mean([np.argsort(order) + 1 for order in best], axis=0)
    np.testing.assert_allclose(found.mean_place[0], places, rtol=1e-12)


def test_eight_systems_as_40320_orders_say() -> None:
    """The size of the paper's: five people who contradict each other."""
    rng = np.random.default_rng(8)
    ranks = rng.integers(1, 7, (3, 8)).tolist()
    least, best = best_orders(ranks)
    found = optimal_orders(costs_of(ranks)[None])
    assert (found.cost[0], found.count[0]) == (least, len(best))
    assert tuple(found.order[0]) == best[0]
    assert len(best) > 1


def test_many_profiles_are_solved_as_each_alone() -> None:
    """Also where they are too many for one batch."""
    ranks = np.random.default_rng(1).integers(1, 9, (10, 4, 13)).astype(float)
    together = optimal_orders(pair_costs(ranks))
    for at, profile in enumerate(ranks):
        alone = optimal_orders(pair_costs(profile)[None])
        np.testing.assert_array_equal(together.order[at], alone.order[0])
        assert together.count[at] == alone.count[0]
        assert together.cost[at] == alone.cost[0]
        np.testing.assert_array_equal(together.mean_place[at], alone.mean_place[0])


def test_where_nothing_is_said_every_order_is_best() -> None:
    """14! orders of fourteen systems are counted exactly, and nobody is in front."""
    found = optimal_orders(np.zeros((1, 14, 14)))
    assert found.count.tolist() == [87_178_291_200]
    assert found.mean_place.tolist() == [[7.5] * 14]
    assert found.order.tolist() == [list(range(14))]


def test_no_profile_gives_no_order() -> None:
    """The arrays are there, and empty."""
    found = optimal_orders(np.zeros((0, 3, 3)))
    assert found.order.shape == (0, 3)
    assert found.mean_place.shape == (0, 3)


def test_fifteen_systems_are_refused() -> None:
    """In one line, which says how many there may be."""
    with pytest.raises(ScoreError, match="there are 15 systems to put in order: expected 14 or"):
        optimal_orders(np.zeros((1, 15, 15)))
