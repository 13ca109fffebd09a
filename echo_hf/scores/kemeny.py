"""The Kemeny-Young consensus: the order that contradicts the fewest pairs of rankings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from echo_hf._infra.summary import SummaryMixin
from echo_hf.errors import ScoreError
from echo_hf.scores.rating_table import Bools, Floats, Integers

MAX_SYSTEMS = 14
MAX_CELLS_PER_BATCH = 2_000_000


class OptimalOrders(NamedTuple):
    """The cheapest orders of each of many profiles of rankings."""

    order: Integers
    cost: Floats
    number: Integers
    mean_place: Floats


def optimal_orders(costs: Floats) -> OptimalOrders:
    """Find the orders of systems that cost least."""
    profiles, systems, _ = costs.shape
    if systems > MAX_SYSTEMS:
        raise ScoreError(
            f"there are {systems} systems to put in order: expected {MAX_SYSTEMS} or fewer, as "
            "every set of them is looked at: leave some out"
        )
    batch = max(1, MAX_CELLS_PER_BATCH // ((systems + 1) << systems))
    parts = [_solve_batch(costs[at : at + batch]) for at in range(0, max(profiles, 1), batch)]
    return OptimalOrders(*map(np.concatenate, zip(*parts, strict=True)))


def _solve_batch(costs: Floats) -> OptimalOrders:
    # Which systems each set holds; the complement of a set is as far from the other end.
    systems = np.arange(costs.shape[-1])
    member = np.asarray((np.arange(1 << len(systems))[:, None] >> systems) & 1 == 1)
    # What it costs to put a system behind all those of a set: [profile, set, system].
    behind = np.asarray(member.astype(float) @ costs)
    least, count = _compute_least_costs(behind, member)
    split_cost = np.where(member, 0, behind).sum(axis=-1)
    on_path = least + least[:, ::-1] + split_cost == least[:, -1:]
    order_counts = np.where(on_path, count * count[:, ::-1], 0)
    place_sums = order_counts[:, :-1] @ (~member[:-1]).astype(np.int64)
    order = _pick_first_order(behind, least, on_path, member)
    return OptimalOrders(order, least[:, -1], count[:, -1], place_sums / count[:, -1:])


def _compute_least_costs(behind: Floats, member: Bools) -> tuple[Floats, Integers]:
    """Return the least cost of an order of each set of systems, and how many orders have it."""
    least = np.zeros(behind.shape[:2])
    count = np.ones(behind.shape[:2], dtype=np.int64)
    sizes = member.sum(axis=-1)
    for size in range(1, member.shape[1] + 1):
        sets = np.flatnonzero(sizes == size)
        last = np.nonzero(member[sets])[1].reshape(-1, size)
        without_last = sets[:, None] - (1 << last)
        costs = least[:, without_last] + behind[:, without_last, last]
        least[:, sets] = costs.min(axis=-1)
        best = costs == least[:, sets, None]
        count[:, sets] = np.where(best, count[:, without_last], 0).sum(axis=-1)
    return least, count


def _pick_first_order(behind: Floats, least: Floats, on_path: Bools, member: Bools) -> Integers:
    """Pick the optimal order that comes first when compared place by place."""
    profiles, _, systems = behind.shape
    row, placed = np.arange(profiles)[:, None], np.zeros((profiles, 1), dtype=np.int64)
    order = np.empty((profiles, systems), dtype=np.int64)
    for place in range(systems):
        sets = placed | 1 << np.arange(systems)
        is_tight = least[row, sets] == least[row, placed] + behind[row[:, 0], placed[:, 0]]
        fits = ~member[placed[:, 0]] & on_path[row, sets] & is_tight
        order[:, place] = fits.argmax(axis=-1)
        placed = np.take_along_axis(sets, order[:, place, None], axis=-1)
    return order


Ranking = Sequence[str | Sequence[str]]


@dataclass(frozen=True, repr=False)
class Consensus(SummaryMixin):
    """The consensus of some rankings.

    Attributes:
        ranking: Names, the best first, without ties; of several orders that are as good, the first
            in the alphabet.
        distance: What it costs: contradicted pairs, and half the tied ones, over all rankings.
        n_optimal: How many orders cost as little.
        mean_rank: Place of each name, 1 is best, averaged over all those orders.
    """

    ranking: tuple[str, ...]
    distance: float
    n_optimal: int
    mean_rank: Mapping[str, float]


def kemeny_consensus(rankings: Sequence[Ranking]) -> Consensus:
    """Find the order that is nearest to some rankings, and count the others that are as near.

    Args:
        rankings: A list for each person, the best first; names in an inner list are tied. Names
            that a person leaves out are not compared by that person.

    Returns:
        The order, how far the rankings are from it, and how many orders are as near.

    Raises:
        ScoreError: A ranking holds a name twice or what is no name, or there are more than 14.

    Examples:
        >>> found = kemeny_consensus([["a", "b", "c"], ["a", "c", "b"], [["b", "a"], "c"]])
        >>> found.ranking, found.distance, found.n_optimal
        (('a', 'b', 'c'), 1.5, 1)
        >>> kemeny_consensus([[["b", "a"]]]).mean_rank
        {'a': 1.5, 'b': 1.5}
    """
    places = [_parse_places(ranking) for ranking in rankings]
    names = sorted({name for ranking in places for name in ranking})
    ranks = np.array([[ranking.get(name, np.nan) for name in names] for ranking in places])
    ranks = ranks.reshape(len(places), len(names))
    return make_consensus(names, optimal_orders(pair_costs(ranks)[None]))


def make_consensus(names: Sequence[str], orders: OptimalOrders) -> Consensus:
    """Name the systems of the consensus of a single profile."""
    return Consensus(
        tuple(names[at] for at in orders.order[0]),
        float(orders.cost[0]),
        int(orders.number[0]),
        dict(zip(names, orders.mean_place[0].tolist(), strict=True)),
    )


def pair_costs(ranks: Floats) -> Floats:
    """Count the contradicted rankings for each pair, ties as a half."""
    first, second = ranks[..., :, None], ranks[..., None, :]
    return np.asarray(((first > second) + (first == second) / 2).sum(axis=-3))


def sample_consensus(ranks: Floats) -> Floats:
    """Find the consensus of people on each sample alone."""
    ranked = ~np.isnan(ranks).all(axis=0)
    places = np.full(ranked.shape, np.nan)
    # Samples on which the same systems are ranked are solved together.
    sets, set_of_sample = np.unique(ranked.T, axis=0, return_inverse=True)
    for number, systems in enumerate(sets):
        samples = np.flatnonzero(set_of_sample.reshape(-1) == number)
        subset_ranks = ranks[:, systems][:, :, samples]
        orders = optimal_orders(pair_costs(np.moveaxis(subset_ranks, -1, 0)))
        places[np.ix_(systems, samples)] = orders.mean_place.T
    return places


def _parse_places(ranking: Ranking) -> dict[str, int]:
    if isinstance(ranking, str) or not isinstance(ranking, Sequence):
        raise ScoreError(f"a ranking is {ranking!r}: expected a list of names")
    places: dict[str, int] = {}
    for place, tied in enumerate(ranking):
        for name in [tied] if isinstance(tied, str) else tied:
            if not isinstance(name, str) or name in places:
                raise ScoreError(f"a ranking is {ranking!r}: expected each name once, not {name!r}")
            places[name] = place
    return places
