"""Measure how many choices asking undecided pairs saves against asking all pairs evenly.

    python scripts/bench_choices.py RATINGS [--runs 40] [--samples 179] [--position 0.1]

RATINGS is a folder with `human_scores.jsonl`: people's scores of several systems on the same
samples. A run draws samples again; on each, a person chooses between two systems in both orders,
and now and then (`--position`) takes what comes first. Where a pair's choices end is what
`echo-hf judge` itself decides, and even asking decides by the same rule; what counts is the share
of choices that the one saves to decide as many pairs as the other did.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from echo_hf.judging.choosing import BATCH_SAMPLES, PairProgress
from echo_hf.judging.rate import OutputsToRate
from echo_hf.scores.pairwise_agreement import ORDERS
from echo_hf.scores.sequential import compute_p_values, get_pair_level
from echo_hf.scores.votes import list_pairs
from echo_hf.systems.base import Task

Array = NDArray[np.float64]
SPLIT, WINNERS = "text_to_image", {1.0: "a", 0.0: "tie", -1.0: "b"}
BUDGETS = (3000, 6000, 10_024)  # choices; the last is all on 179 samples of 8 systems


class Race(NamedTuple):
    """How many pairs even asking decides by each budget, and the share of choices saved."""

    decided: Array
    saved: Array
    wrong: int


def read_scores(folder: Path) -> Array:
    """Read people's scores [rater, system, sample], NaN where there is none."""
    lines = (folder / "human_scores.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    samples, raters = (sorted({row[key] for row in rows}) for key in ("sample_id", "rater"))
    systems = sorted({system for row in rows for system in row["scores"]})
    scores = np.full((len(raters), len(systems), len(samples)), np.nan)
    for row in rows:
        rater, sample = raters.index(row["rater"]), samples.index(row["sample_id"])
        for system, score in row["scores"].items():
            scores[rater, systems.index(system), sample] = score
    return scores


def draw_choices(scores: Array, samples: int, position: float, seed: int) -> Array:
    """Draw choices [order, pair, sample]: 1 for the first system of a pair, -1 for the other."""
    rng, (first, second) = np.random.default_rng(seed), list_pairs(scores.shape[1])
    drawn = rng.integers(0, scores.shape[2], samples)
    signs = np.sign(scores[:, first][..., drawn] - scores[:, second][..., drawn])
    choices = []
    for shown_first in (1.0, -1.0):
        rater = rng.integers(0, len(scores), signs.shape[1:])
        chosen = np.take_along_axis(signs, rater[None], axis=0)[0]
        choices.append(np.where(rng.random(chosen.shape) < position, shown_first, chosen))
    return np.array(choices)


def open_progress(pairs: int, samples: int) -> PairProgress:
    """Open what `echo-hf judge` keeps of a split in which every system drew every sample."""
    systems = math.isqrt(2 * pairs) + 1
    tasks = tuple(Task(f"{at:05}", "", SPLIT, "") for at in range(samples))
    outputs = [{"system": f"{at:03}"} for at in range(systems)]
    to_rate = OutputsToRate(dict.fromkeys((task.sample_id for task in tasks), outputs), tasks, {})
    return PairProgress(SPLIT, to_rate, 0.05, "bonferroni")


def find_stops(choices: Array, batch: int) -> Array:
    """Find the number of samples after which each pair is decided, endless where it is not.

    Choices are [judge, order, pair, sample], samples in the order in which they are asked.
    """
    progress = open_progress(*choices.shape[2:])
    judge, order, pair, sample = (at.ravel() for at in np.indices(choices.shape))
    names = np.array(progress.pairs)[pair]
    sides = dict(zip(("system_a", "system_b"), names.T, strict=True))
    columns = {
        "sample_id": np.array(progress.samples)[sample],
        **sides,
        "judge": judge.astype(str),
        "order": np.array(ORDERS)[order],
        "winner": pa.array(pd.Series(choices.ravel()).map(WINNERS), from_pandas=True),
    }
    rows = pa.table(columns)
    while progress.subjects:
        ends = np.array([progress.stop_at[name] for name in progress.pairs])
        is_asked = sample < np.minimum(ends, progress.done + batch)[pair]
        progress.update(rows.filter(pa.array(is_asked)), batch)
    ends = [progress.stop_at[name] for name in progress.pairs]
    return np.where(progress.undecided, np.inf, ends)


def race(scores: Array, runs: int, samples: int, position: float, batch: int) -> Race:
    """Race both ways of asking over draws of the samples."""
    first, second = list_pairs(scores.shape[1])
    truth = np.nanmean(np.sign(scores[:, first] - scores[:, second]), axis=(0, 2))
    decided, saved, wrong = [], [], 0
    for seed in range(runs):
        choices = draw_choices(scores, samples, position, seed)
        outcomes, stops = choices.mean(axis=0) / 2, find_stops(choices[None], batch)
        ends = [0, *range(batch, samples + batch, batch)]
        used = [2 * np.minimum(stops, min(end, samples)).sum() for end in ends]
        counts = np.array([(stops <= end).sum() for end in ends])
        pairs_by_budget, shares = [], []
        for budget in BUDGETS:
            even = min(budget // (2 * len(outcomes)), samples) // batch * batch
            even = samples if budget >= 2 * len(outcomes) * samples else even
            level = get_pair_level(0.05, "bonferroni", len(outcomes))
            reached = int((compute_p_values(outcomes[:, :even]) <= level).sum())
            pairs_by_budget.append(reached)
            at = int(np.argmax(counts >= reached))
            shares.append(1 - used[at] / (2 * len(outcomes) * even) if reached else np.nan)
        decided.append(pairs_by_budget)
        saved.append(shares)
        for pair in np.flatnonzero(np.isfinite(stops)):
            wrong += int(np.sign(outcomes[pair, : int(stops[pair])].sum()) != np.sign(truth[pair]))
    return Race(np.mean(decided, axis=0), np.nanmean(saved, axis=0), wrong)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("ratings", type=Path)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--samples", type=int, default=179)
    parser.add_argument("--position", type=float, default=0.1)
    parser.add_argument("--batch", type=int, default=BATCH_SAMPLES)
    options = parser.parse_args()
    scores = read_scores(options.ratings)
    found = race(scores, options.runs, options.samples, options.position, options.batch)
    table = Table("choices, evenly", "pairs decided", "fewer choices for as many")
    for budget, pairs, share in zip(BUDGETS, found.decided, found.saved, strict=True):
        table.add_row(f"{budget:,}", f"{pairs:.1f}", f"{100 * share:.0f} %")
    Console().print(table)
    print(f"decided the wrong way: {found.wrong} in {options.runs} runs")


if __name__ == "__main__":
    main()
