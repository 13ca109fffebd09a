"""The Kemeny-Young consensus: the order that contradicts people's rankings least.

Each person and each two systems: an order costs 1 where it contradicts the person, 0.5 where the
person sees a tie, and nothing where the person ranked but one of the two, or neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from echo_hf.errors import ScoreError
from echo_hf.scores.arrays import Floats
from echo_hf.scores.people.optimal_orders import OptimalOrders, optimal_orders

Ranking = Sequence[str | Sequence[str]]


@dataclass(frozen=True)
class Consensus:
    """The consensus of some rankings.

    Attributes:
        ranking: Names, the best first, without ties. Of several orders that are as good it is the
            first in the alphabet, compared name by name.
        distance: What it costs: contradicted pairs, and half the tied ones, over all rankings.
        n_optimal: How many orders cost as little.
        mean_rank: Place of each name, 1 is best, averaged over all those orders; it does not depend
            on names, and is the place in `ranking` where that is the only one.
    """

    ranking: tuple[str, ...]
    distance: float
    n_optimal: int
    mean_rank: Mapping[str, float]


def kemeny_consensus(rankings: Sequence[Ranking]) -> Consensus:
    """Finds the order that is nearest to some rankings, and says how many others are as near.

    Args:
        rankings: A list for each person, the best first; names in an inner list are tied. Names
            that a person leaves out are not compared by that person.

    Returns:
        The consensus, over all names of any ranking.

    Raises:
        ScoreError: A ranking holds a name twice or what is no name, or there are more than 14.

    Example:
        >>> found = kemeny_consensus([["a", "b", "c"], ["a", "c", "b"], [["b", "a"], "c"]])
        >>> found.ranking, found.distance, found.n_optimal
        (('a', 'b', 'c'), 1.5, 1)
        >>> kemeny_consensus([[["b", "a"]]]).mean_rank
        {'a': 1.5, 'b': 1.5}
    """
    places = [dict(_places(number, ranking)) for number, ranking in enumerate(rankings)]
    names = sorted({name for one in places for name in one})
    ranks = np.array([[one.get(name, np.nan) for name in names] for one in places])
    ranks = ranks.reshape(len(places), len(names))
    return consensus_of(names, optimal_orders(pair_costs(ranks)[None]))


def consensus_of(names: Sequence[str], orders: OptimalOrders) -> Consensus:
    """The consensus of a single profile, by name.

    Args:
        names: Names of the systems.
        orders: Best orders of one profile.

    Returns:
        The consensus.
    """
    return Consensus(
        tuple(names[at] for at in orders.order[0]),
        float(orders.cost[0]),
        int(orders.count[0]),
        dict(zip(names, orders.mean_place[0].tolist(), strict=True)),
    )


def pair_costs(ranks: Floats) -> Floats:
    """What it costs to put one system before another.

    Args:
        ranks: Array [..., person, system], lower is better, NaN where not ranked.

    Returns:
        Array [..., system, system]: how many rank the second better, and half of those who see a
        tie.

    Example:
        >>> pair_costs(np.array([[1.0, 2.0], [1.0, 1.0], [1.0, np.nan]])).tolist()
        [[1.5, 0.5], [1.5, 1.0]]
    """
    one, other = ranks[..., :, None], ranks[..., None, :]
    return np.asarray(((one > other) + (one == other) / 2).sum(axis=-3))


def sample_consensus(ranks: Floats) -> Floats:
    """The consensus of people on each sample alone.

    People see many ties, so that a sample often has several best orders; to take the first of them
    by name would put the alphabet into every figure that is made of it.

    Args:
        ranks: Array [person, system, sample], lower is better, NaN where not ranked.

    Returns:
        Array [system, sample] of places, 1 is best, averaged over all best orders, so that systems
        are tied that the rankings do not tell apart; NaN for one that nobody ranked there.

    Raises:
        ScoreError: There are more than 14 systems.

    Example:
        >>> one_sample = np.array([[[1.0], [2.0], [2.0]], [[1.0], [2.0], [2.0]]])
        >>> sample_consensus(one_sample).T.tolist()
        [[1.0, 2.5, 2.5]]
    """
    ranked = ~np.isnan(ranks).all(axis=0)
    places = np.full(ranked.shape, np.nan)
    # Samples on which the same systems are ranked are solved together.
    sets, of_sample = np.unique(ranked.T, axis=0, return_inverse=True)
    for number, systems in enumerate(sets):
        samples = np.flatnonzero(of_sample.reshape(-1) == number)
        some = ranks[:, systems][:, :, samples]
        orders = optimal_orders(pair_costs(np.moveaxis(some, -1, 0)))
        places[np.ix_(systems, samples)] = orders.mean_place.T
    return places


def _places(number: int, ranking: Ranking) -> Iterator[tuple[str, int]]:
    if isinstance(ranking, str) or not isinstance(ranking, Sequence):
        raise ScoreError(f"rankings: number {number} is {ranking!r}: expected a list of names")
    seen = set[str]()
    for place, tied in enumerate(ranking):
        for name in [tied] if isinstance(tied, str) else tied:
            if not isinstance(name, str) or name in seen:
                raise ScoreError(
                    f"rankings: number {number} holds {name!r} where a name was expected that it "
                    f"does not hold already: {ranking!r}"
                )
            seen.add(name)
            yield name, place
