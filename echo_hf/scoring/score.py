"""All figures of a run: win rates and the four metrics, written down with how they were made."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from echo_hf.auditing.audit_file import Failures, read_failures
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.errors import ScoreError, unknown
from echo_hf.evaluated import Evaluated
from echo_hf.evaluation import benchmark_of, load_evaluation
from echo_hf.hub.results import Result
from echo_hf.hub.run_tables import RESULTS_FILE
from echo_hf.reasons import Reason
from echo_hf.run import RUNS
from echo_hf.run_folder import RunFolder
from echo_hf.scores.pairwise_agreement import PairwiseAgreement, pairwise_agreement
from echo_hf.scores.rating_table import RUBRIC
from echo_hf.scores.rule import PROTOCOLS, Protocol
from echo_hf.scoring.measured import Measured
from echo_hf.scoring.picture_metrics import measured
from echo_hf.scoring.run_tables import RunTables, read_run, systems_in
from echo_hf.scoring.text_metric import text_measured, text_ratings
from echo_hf.scoring.win_rates import SplitWinRates, win_rates

DRAWS = 1000
_, FROM_WORDS = BENCHMARKS


@dataclass(frozen=True)
class SplitScores:
    """The figures of one split.

    Attributes:
        split: Name of the split.
        samples: How many samples it has.
        win_rates: Null when no output was rated.
        metrics: Every metric of every system.
        pairwise: What judges chose between two outputs, against what they rated; null where they
            were not asked.
    """

    split: str
    samples: int
    win_rates: SplitWinRates | None
    metrics: tuple[Measured, ...]
    pairwise: PairwiseAgreement | None = None


@dataclass(frozen=True)
class Scores:
    """The figures of a run.

    Attributes:
        path: `results.json`.
        protocol: Whose arithmetic is used.
        splits: The figures by split.
        left_out: For each table, rows about other samples or older ones, by reason.
        failed: For each judge that failed its audit, the honeypots that it failed on.
    """

    path: Path
    protocol: Protocol
    splits: tuple[SplitScores, ...]
    left_out: Mapping[str, Mapping[Reason, int]] = field(default_factory=dict)
    failed: Failures = field(default_factory=dict)

    @property
    def results(self) -> list[Result]:
        """All figures, one for each metric, protocol, split and system."""
        return [row for split in self.splits for row in _rows(split, self.protocol)]


def score(
    config: Evaluated | Path | str,
    *,
    runs: Path | str = RUNS,
    protocol: str | None = None,
    n_boot: int = DRAWS,
) -> Scores:
    """Computes all figures of a run, and writes them to its `results.json`.

    No model is asked: ratings and outputs are there already. Metrics that use a network fetch its
    weights when they are not here. One whose packages or weights cannot be had has no value,
    coverage 0, and says why.

    Args:
        config: The config, or the path of its file.
        runs: Folder of runs.
        protocol: `published` or `corrected`, in place of the config's.
        n_boot: Draws of the bootstrap for every interval.

    Returns:
        The figures.

    Raises:
        RunError: There is nothing to score, or a table cannot be read.
        EchoError: The config or the benchmark cannot be read, or ratings contradict each other.
    """
    config = config if isinstance(config, Evaluated) else load_evaluation(config)
    config = _under(config, protocol)
    folder = RunFolder(Path(runs) / config.name)
    benchmark = benchmark_of(config, folder)
    tables, failed = read_run(benchmark, folder), read_failures(folder.root)
    splits = tuple(_split(config, name, tables, folder, failed, n_boot) for name in tables.tasks)
    scores = Scores(folder.root / RESULTS_FILE, config.protocol, splits, tables.left_out, failed)
    _write(scores, benchmark.identity())
    return scores


def _under(config: Evaluated, protocol: str | None) -> Evaluated:
    if protocol is None:
        return config
    if protocol not in PROTOCOLS:
        raise ScoreError(unknown("protocol", protocol, PROTOCOLS))
    return config.model_copy(update={"protocol": protocol})


def _split(
    config: Evaluated,
    name: str,
    tables: RunTables,
    folder: RunFolder,
    failed: Failures,
    n_boot: int,
) -> SplitScores:
    outputs, ratings = (tables.of_split(one, name) for one in (tables.outputs, tables.ratings))
    asked, tasks = tables.of_split(tables.applicability, name), tables.tasks[name]
    named = [system.name for system in config.systems]
    systems = sorted({*named, *systems_in((tables.outputs, tables.ratings))})
    rates, found = None, list[Measured]()
    overall = ratings if ratings is not None and RUBRIC in ratings["rubric"].to_pylist() else None
    if overall is not None:
        rates = win_rates(name, overall, outputs, config.protocol, n_boot, failed)
    chosen = tables.of_split(tables.comparisons, name)
    pairwise = None
    if chosen is not None and chosen.num_rows:
        pairwise = pairwise_agreement(chosen, overall, n_boot=n_boot)
    if tables.outputs is not None and any(task.inputs for task in tasks):
        pictures = folder.pictures
        found += measured(config, systems, tasks, outputs, asked, pictures, n_boot=n_boot)
    if tasks and (name == FROM_WORDS or text_ratings(ratings).num_rows):
        protocol = config.protocol
        found += text_measured(
            systems, tasks, ratings, asked, protocol, n_boot=n_boot, failed=failed
        )
    return SplitScores(name, len(tasks), rates, tuple(found), pairwise)


def _rows(split: SplitScores, protocol: Protocol) -> Sequence[Result]:
    rates = split.win_rates.results if split.win_rates else ()
    return [*rates, *(one.row(split.split, protocol) for one in split.metrics)]


def _write(scores: Scores, benchmark: Mapping[str, Any]) -> None:
    """Writes everything that a report shows; a killed process leaves the old file or the new."""
    details = {
        split.split: {
            "samples": split.samples,
            "win_rate": split.win_rates.details if split.win_rates else None,
            "metrics": [one.details() for one in split.metrics],
            "pairwise": asdict(split.pairwise) if split.pairwise else None,
        }
        for split in scores.splits
    }
    written = {
        "benchmark": benchmark,
        "protocol": scores.protocol,
        "left_out": scores.left_out,
        "failed_audit": scores.failed,
        "results": [row.model_dump(mode="json") for row in scores.results],
        "details": details,
    }
    text = json.dumps(written, indent=1, sort_keys=True, allow_nan=False, default=list)
    partial = scores.path.with_name(f".{scores.path.name}.partial")
    partial.write_text(text + "\n", "utf-8")
    partial.replace(scores.path)
