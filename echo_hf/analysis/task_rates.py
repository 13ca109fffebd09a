"""Win rates on the samples of each task, from the ratings of a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from echo_hf.analysis.figures import Estimate
from echo_hf.analysis.result import TaskRate
from echo_hf.analysis.tasks import UNKNOWN
from echo_hf.benchmark import Benchmark
from echo_hf.bootstrap import FEWEST_SAMPLES
from echo_hf.run_folder import RunFolder
from echo_hf.scores.rating_table import RUBRIC
from echo_hf.scores.rule import Protocol
from echo_hf.scores.win_rate import WinRate, win_rate
from echo_hf.scoring.run_tables import read_run
from echo_hf.tables import RATINGS

UNRATED = "no output is rated: `echo-hf judge` has judges rate them"


def rates_of_run(
    benchmark: Benchmark,
    folder: RunFolder,
    samples: Sequence[Mapping[str, Any]],
    *,
    protocol: Protocol,
    draws: int,
    seed: int,
) -> tuple[tuple[TaskRate, ...], str | None]:
    """Win rates by split and task of what a run holds.

    Args:
        benchmark: What its systems were run on.
        folder: The run's folder.
        samples: Rows of samples, with id and task.
        protocol: `published` or `corrected`.
        draws: Draws of the bootstrap.
        seed: Of the draws.

    Returns:
        The rates, and in one line why there are none.

    Raises:
        EchoError: The run's tables cannot be read, or contradict each other.
    """
    if not (folder.root / f"{RATINGS.name}.parquet").exists():
        return (), UNRATED
    tables = read_run(benchmark, folder)
    task_of = {sample["id"]: sample["task"] or UNKNOWN for sample in samples}
    found: list[TaskRate] = []
    for split in tables.tasks:
        ratings, outputs = (tables.of_split(one, split) for one in (tables.ratings, tables.outputs))
        if ratings is not None:
            found += task_rates(
                split, ratings, outputs, task_of, protocol=protocol, draws=draws, seed=seed
            )
    return tuple(found), None if found else UNRATED


def task_rates(
    split: str,
    ratings: pa.Table,
    outputs: pa.Table | None,
    task_of: Mapping[str, str],
    *,
    protocol: Protocol = "corrected",
    draws: int = 1000,
    seed: int = 0,
) -> Iterator[TaskRate]:
    """Win rates on the samples of each task of one split.

    Args:
        split: Name of the split.
        ratings: Its ratings.
        outputs: Its outputs, null when only ratings are at hand.
        task_of: Task by sample; a sample that is not there has an unknown one.
        protocol: `published` or `corrected`.
        draws: Draws of the bootstrap.
        seed: Of the draws.

    Yields:
        Rates by task, the one with the most rated samples first.
    """
    overall = ratings.filter(
        pc.and_(pc.equal(ratings["rubric"], RUBRIC), pc.is_valid(ratings["rating"]))
    )
    by_task: dict[str, list[str]] = defaultdict(list)
    for sample in sorted(overall["sample_id"].unique().to_pylist()):
        by_task[task_of.get(sample, UNKNOWN)].append(sample)
    for task, samples in sorted(by_task.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        rated, made = (_of(table, samples) for table in (overall, outputs))
        rates = win_rate(rated, made, protocol=protocol, n_boot=draws, seed=seed)
        yield _rate(split, task, len(samples), rates)


def _of(table: pa.Table | None, samples: Sequence[str]) -> pa.Table | None:
    if table is None:
        return None
    return table.filter(pc.is_in(table["sample_id"], pa.array(samples, pa.string())))


def _rate(split: str, task: str, samples: int, found: WinRate) -> TaskRate:
    estimates = {}
    for system, value in found.win_rate.items():
        low, high = found.interval[system] or (None, None)
        reason = found.reasons.get(system)
        estimates[system] = Estimate(value=value, low=low, high=high, reason=reason)
    return TaskRate(
        split=split,
        task=task,
        samples=samples,
        few=samples < FEWEST_SAMPLES,
        rates=estimates,
        coverage=dict(found.coverage),
    )
