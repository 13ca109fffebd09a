"""Measure what the metrics cost, as ratios within one run.

    python scripts/bench_metrics.py [--systems 8] [--samples 1000] [--judges 3] [--ranked 100]

The win rate is compared with a bare numpy count of the same ratings, from a ready array and from
the table as a user has it, and the bootstrap's draws with one count. 1,000 sequential looks have to
stay below a second. The consensus of people on each of 200 samples (Kemeny and Young) is compared
with a bare search through all orders of the systems, which is the definition. On a machine that
does other work, too, set OMP_NUM_THREADS=1: threads that wait for a processor are no cost of ours.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table as Shown

from echo_hf.scores import human_corrected, win_rate
from echo_hf.scores.kemeny import pair_costs, sample_consensus
from echo_hf.scores.rating_table import read_ratings
from echo_hf.scores.sequential import compute_p_values
from echo_hf.scores.votes import count_points, margins, plurality, rates_of

ROUNDS = 30
DRAWS = LOOKS = 1000
MISSING = 0.02
PEOPLE, PEOPLES_SAMPLES, TIES = 5, 200, 0.3
KEYS = ("judge", "system", "sample_id")
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Measure:
    name: str
    milliseconds: float
    over: str | None = None
    aim: float | None = None


def made_up(judges: int, systems: int, samples: int) -> Floats:
    """Ratings 1 to 10 [judge, system, sample], some of them missing."""
    rng = np.random.default_rng(0)
    ratings = rng.integers(1, 11, (judges, systems, samples)).astype(float)
    ratings[rng.random(ratings.shape) < MISSING] = np.nan
    return ratings


def rows_of(ratings: Floats) -> pa.Table:
    """The same as a table with a row a rating."""
    places = (place.ravel() for place in np.indices(ratings.shape))
    names = {
        key: np.char.mod(f"{key}_%05d", place) for key, place in zip(KEYS, places, strict=True)
    }
    return pa.table({**names, "rating": ratings.ravel()})


def bare_count(ratings: Floats) -> Floats:
    """Rates by the shortest numpy: every pair, plurality of judges, mean over opponents."""
    first, second = np.array(list(combinations(range(ratings.shape[1]), 2))).T
    one, other = ratings[:, first], ratings[:, second]
    lead = (one > other).sum(axis=0) - (one < other).sum(axis=0)
    rated = ((one >= other) | (one < other)).any(axis=0)
    share = ((np.sign(lead) + 1) / 2 * rated).sum(axis=1) / rated.sum(axis=1)
    matrix = np.zeros((ratings.shape[1],) * 2)
    matrix[first, second], matrix[second, first] = share, 1 - share
    return np.asarray(matrix.sum(axis=1) / (len(matrix) - 1))


def bare_read(table: pa.Table) -> Floats:
    """The array of a table, by the shortest numpy that does not need sorted rows."""
    names, places = zip(
        *(np.unique(table[key].to_numpy(), return_inverse=True) for key in KEYS), strict=True
    )
    ratings: Floats = np.full([len(one) for one in names], np.nan)
    ratings[places] = table["rating"].to_numpy()
    return ratings


def shortest(step: Callable[[], Any], rounds: int = ROUNDS) -> float:
    taken = []
    for _ in range(rounds):
        started = time.perf_counter()
        step()
        taken.append(time.perf_counter() - started)
    return 1000 * min(taken)


def ranks_of(ratings: Floats, ranked: int) -> pa.Table:
    """Ranks of some samples by as many people as there are judges, who see much as these do."""
    noise = np.random.default_rng(1).normal(0, 3, ratings.shape)
    scores = np.nan_to_num(ratings + noise)[:, :, :ranked]
    rows = rows_of(1.0 + (scores[:, None] > scores[:, :, None]).sum(axis=2))
    keys = {"rater": rows["judge"], "system": rows["system"], "sample_id": rows["sample_id"]}
    return pa.table({**keys, "rank": rows["rating"].cast(pa.int64())})


def bench(ratings: Floats, ranked: int) -> list[Measure]:
    rows, people = rows_of(ratings), ranks_of(ratings, ranked)
    table, systems = read_ratings(rows), ratings.shape[1]

    def count() -> Floats:
        return rates_of(count_points(plurality(margins(table)), systems), "opponents")

    np.testing.assert_allclose(count(), bare_count(bare_read(rows)))
    bare, read = "bare numpy count of an array", "bare numpy count of a table"
    outcomes = plurality(margins(table)) / 2
    whole = shortest(lambda: win_rate(rows, n_boot=0))
    drawn = shortest(lambda: win_rate(rows, n_boot=DRAWS))
    corrected = shortest(lambda: human_corrected(rows, people))
    return [
        Measure(bare, shortest(lambda: bare_count(ratings))),
        Measure("count of an array", shortest(count), bare, 3),
        Measure(read, shortest(lambda: bare_count(bare_read(rows)))),
        Measure("win_rate of a table, without draws", whole, read, 3),
        Measure(f"{DRAWS} draws", drawn - whole, "count of an array", 100),
        Measure(f"human_corrected, {ranked} ranked (at most 50 ms)", corrected, read, 1),
        Measure(f"{LOOKS} sequential looks", shortest(lambda: looks(outcomes), rounds=3)),
    ]


def looks(outcomes: Floats) -> None:
    """Decides every pair from ever more samples, as `judge --until decided` does after a batch."""
    for end in np.linspace(1, outcomes.shape[1], LOOKS, dtype=int):
        compute_p_values(outcomes[:, :end])


def made_up_ranks(systems: int) -> Floats:
    """Ranks [person, system, sample]: people who mostly agree, and see ties."""
    rng = np.random.default_rng(0)
    quality = rng.normal(size=(systems, PEOPLES_SAMPLES))
    seen = quality + rng.normal(size=(PEOPLE, systems, PEOPLES_SAMPLES))
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


def consensus(systems: int) -> list[Measure]:
    """The consensus of people; the aim of 60 ms is for the sizes of the paper's study."""
    ranks = made_up_ranks(systems)
    np.testing.assert_allclose(sample_consensus(ranks), searched(ranks))
    bare = "bare numpy search of every order"
    taken = shortest(lambda: sample_consensus(ranks), rounds=3)
    return [
        Measure(bare, shortest(lambda: searched(ranks), rounds=3)),
        Measure("consensus on every sample (at most 60 ms)", taken, bare, 1),
    ]


def shown(measures: list[Measure], title: str) -> Shown:
    taken = {one.name: one.milliseconds for one in measures}
    table = Shown(title=title)
    for heading in ("step", "ms", "ratio", "aim", "compared with"):
        table.add_column(heading, justify="right" if heading in ("ms", "ratio", "aim") else "left")
    for one in measures:
        ratio = f"{one.milliseconds / taken[one.over]:.2f}" if one.over else ""
        aim = f"{one.aim:g}" if one.aim else ""
        table.add_row(one.name, f"{one.milliseconds:.2f}", ratio, aim, one.over or "")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--systems", type=int, default=8)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--judges", type=int, default=3)
    parser.add_argument("--ranked", type=int, default=100)
    given = parser.parse_args()
    ratings = made_up(given.judges, given.systems, given.samples)
    title = f"win rate: {given.systems} systems, {given.samples} samples, {given.judges} judges"
    measures = [*bench(ratings, given.ranked), *consensus(given.systems)]
    Console(width=110).print(shown(measures, title))


if __name__ == "__main__":
    main()
