"""All orders of a few systems, and what each costs, one comparison at a time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations

Ranks = Sequence[Sequence[float | None]]


def cost(order: Sequence[int], ranks: Ranks) -> float:
    """What an order of systems contradicts in people's ranks; a tie is half a contradiction."""
    total = 0.0
    for person in ranks:
        for better, worse in combinations(order, 2):
            one, other = person[better], person[worse]
            if one is not None and other is not None:
                total += 1.0 if one > other else 0.5 if one == other else 0.0
    return total


def best_orders(ranks: Ranks) -> tuple[float, list[tuple[int, ...]]]:
    """The least cost, and every order that has it, in alphabetical order."""
    costs = {order: cost(order, ranks) for order in permutations(range(len(ranks[0])))}
    least = min(costs.values())
    return least, sorted(order for order, found in costs.items() if found == least)
