"""Measure what the consensus of people costs, as ratios within one run.

    python scripts/bench_consensus.py [--systems 8] [--samples 200] [--people 5]

The consensus on each sample alone (Kemeny and Young) is compared with a bare numpy search through
all orders of the systems, which is the definition; both must find the same. The aim of 60 ms is
for the sizes of the paper's study. As in `bench_metrics.py`, OMP_NUM_THREADS=1 keeps other work on
the machine out of the figures.
"""

from __future__ import annotations

import argparse
from itertools import permutations

import numpy as np
from bench_metrics import Floats, Measure, shortest, shown
from rich.console import Console

from echo_hf.scores.kemeny import pair_costs, sample_consensus

TIES = 0.3
AIM_MS = 60


def made_up(people: int, systems: int, samples: int) -> Floats:
    """Ranks [person, system, sample]: people who mostly agree, and see ties."""
    rng = np.random.default_rng(0)
    quality = rng.normal(size=(systems, samples))
    seen = quality + rng.normal(size=(people, systems, samples))
    places = 1.0 + seen.argsort(axis=1).argsort(axis=1)
    return np.where(rng.random(places.shape) < TIES, np.ceil(places / 2) * 2, places)


def searched(ranks: Floats) -> Floats:
    """Mean places [system, sample] over all best orders, by trying every order."""
    orders = np.array(list(permutations(range(ranks.shape[1]))))
    places = 1 + orders.argsort(axis=1)
    costs = np.zeros((len(orders), ranks.shape[2]))
    wanted = pair_costs(np.moveaxis(ranks, -1, 0))
    for one, other in permutations(range(ranks.shape[1]), 2):
        costs += np.outer(places[:, one] < places[:, other], wanted[:, one, other])
    best = (costs == costs.min(axis=0)).astype(float)
    return np.asarray(places.T @ best / best.sum(axis=0))


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--systems", type=int, default=8)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--people", type=int, default=5)
    given = parser.parse_args()
    ranks = made_up(given.people, given.systems, given.samples)
    np.testing.assert_allclose(sample_consensus(ranks), searched(ranks))
    bare = "bare numpy search of every order"
    measures = [
        Measure(bare, shortest(lambda: searched(ranks), rounds=3)),
        Measure("consensus on every sample", shortest(lambda: sample_consensus(ranks)), bare, 1),
    ]
    title = f"consensus: {given.systems} systems, {given.samples} samples, {given.people} people"
    console = Console(width=110)
    console.print(shown(measures, title))
    console.print(f"aim at the sizes of the paper's study: {AIM_MS} ms")


if __name__ == "__main__":
    main()
