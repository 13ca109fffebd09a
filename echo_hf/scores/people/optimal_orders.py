"""Every best order of a few systems, by dynamic programming over sets of systems.

The least cost of putting a set of systems in some order follows from that of each set with one
system less, which stands in front of the one that was left out. A set stands first in a best order
of all when its own least cost, that of the others, and that of standing before them add up to the
least there is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from echo_hf.errors import ScoreError
from echo_hf.scores.arrays import Bools, Floats, Integers

MOST_SYSTEMS = 14
CELLS_AT_ONCE = 2_000_000


@dataclass(frozen=True)
class OptimalOrders:
    """The best orders of each of many profiles.

    Attributes:
        order: Array [profile, place] of systems, the best first: of the best orders the first one,
            compared place by place.
        cost: Array [profile] of what any best order costs.
        count: Array [profile] of how many best orders there are.
        mean_place: Array [profile, system] of its place, from 1, averaged over all best orders.
    """

    order: Integers
    cost: Floats
    count: Integers
    mean_place: Floats


def optimal_orders(costs: Floats) -> OptimalOrders:
    """Finds the orders of systems that cost least.

    Args:
        costs: Array [profile, system, system] of what it costs to put the first before the second:
            multiples of 0.5, so that sums are exact. The diagonal does not matter.

    Returns:
        The orders.

    Raises:
        ScoreError: There are more than 14 systems: the time doubles with each.

    Example:
        >>> found = optimal_orders(np.array([[[0.0, 2.0], [1.0, 0.0]]]))
        >>> found.order.tolist(), found.cost.tolist(), found.count.tolist()
        ([[1, 0]], [1.0], [1])
    """
    profiles, systems, _ = costs.shape
    if systems > MOST_SYSTEMS:
        raise ScoreError(
            f"there are {systems} systems to put in order: expected {MOST_SYSTEMS} or fewer, as "
            "every set of them is looked at: leave some out"
        )
    batch = max(1, CELLS_AT_ONCE // ((systems + 1) << systems))
    parts = [_solved(costs[at : at + batch]) for at in range(0, max(profiles, 1), batch)]
    return OptimalOrders(
        np.concatenate([part.order for part in parts]),
        np.concatenate([part.cost for part in parts]),
        np.concatenate([part.count for part in parts]),
        np.concatenate([part.mean_place for part in parts]),
    )


def _solved(costs: Floats) -> OptimalOrders:
    member = _members(costs.shape[-1])
    # What it costs to put a system behind all those of a set: [profile, set, system].
    behind = np.asarray(member.astype(float) @ costs)
    least, count = _least(behind, member)
    rest = np.where(member, 0, behind).sum(axis=-1)
    first = least + least[:, ::-1] + rest == least[:, -1:]
    ways = np.where(first, count * count[:, ::-1], 0)
    places = ways[:, :-1] @ (~member[:-1]).astype(np.int64)
    order = _first_order(behind, least, first, member)
    return OptimalOrders(order, least[:, -1], count[:, -1], places / count[:, -1:])


def _members(systems: int) -> Bools:
    """Which systems each set holds; the complement of a set is as far from the other end."""
    return np.asarray((np.arange(1 << systems)[:, None] >> np.arange(systems)) & 1 == 1)


def _least(behind: Floats, member: Bools) -> tuple[Floats, Integers]:
    """Least cost of an order of each set alone, and how many orders have it."""
    least = np.zeros(behind.shape[:2])
    count = np.ones(behind.shape[:2], dtype=np.int64)
    sizes = member.sum(axis=-1)
    for size in range(1, member.shape[1] + 1):
        sets = np.flatnonzero(sizes == size)
        last = np.nonzero(member[sets])[1].reshape(-1, size)
        before = sets[:, None] - (1 << last)
        costs = least[:, before] + behind[:, before, last]
        least[:, sets] = costs.min(axis=-1)
        best = costs == least[:, sets, None]
        count[:, sets] = np.where(best, count[:, before], 0).sum(axis=-1)
    return least, count


def _first_order(behind: Floats, least: Floats, first: Bools, member: Bools) -> Integers:
    """The best order that takes, at each place, the first system that any of them can take."""
    profiles, _, systems = behind.shape
    row, placed = np.arange(profiles)[:, None], np.zeros((profiles, 1), dtype=np.int64)
    order = np.empty((profiles, systems), dtype=np.int64)
    for place in range(systems):
        then = placed | 1 << np.arange(systems)
        step = least[row, then] == least[row, placed] + behind[row[:, 0], placed[:, 0]]
        fits = ~member[placed[:, 0]] & first[row, then] & step
        order[:, place] = fits.argmax(axis=-1)
        placed = np.take_along_axis(then, order[:, place, None], axis=-1)
    return order
