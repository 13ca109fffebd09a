"""How far a run's judges agree with people, written down with how it was computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from echo_hf._infra.atomic import write_json
from echo_hf.builder.build import RUNS
from echo_hf.config.evaluation import Evaluated
from echo_hf.errors import RunError
from echo_hf.hub.run_tables import left_out_reasons
from echo_hf.judging.audit_file import Failures, read_failures
from echo_hf.judging.run_tables import RunTables, read_human_file, read_run, read_table
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import LeftOut, Reason
from echo_hf.scores.agreement import Agreement, agreement
from echo_hf.scores.rating_table import RUBRIC
from echo_hf.scores.votes import Protocol
from echo_hf.systems.benchmark import benchmark_of, load_evaluation
from echo_hf.tables import HUMAN

AGREEMENT_FILE = "agreement.json"
DRAWS = 1000


@dataclass(frozen=True)
class RunAgreement:
    path: Path
    merged: Agreement
    splits: Mapping[str, Agreement]
    left_out: Mapping[str, Mapping[Reason, int]]
    failed: Failures = field(default_factory=dict)


def agree(
    config: Evaluated | Path | str,
    *,
    runs: Path | str = RUNS,
    human: Path | None = None,
    protocol: str | None = None,
    n_boot: int = DRAWS,
) -> RunAgreement:
    """Compares a run's judges with people, and writes the figures to its `agreement.json`."""
    config = config if isinstance(config, Evaluated) else load_evaluation(config)
    if protocol is not None:
        config = config.model_copy(update={"protocol": protocol})
    folder = RunFolder(Path(runs) / config.name)
    benchmark = benchmark_of(config, folder)
    ranks = _ranks(folder, human)
    tables = read_run(benchmark, folder)
    folder.enter()
    ranks, gone = _of_benchmark(ranks, tables)
    found = RunAgreement(
        folder.root / AGREEMENT_FILE,
        _compared(ranks, tables.ratings, config.protocol, n_boot),
        _by_split(ranks, tables, config.protocol, n_boot),
        {**tables.left_out, **gone},
        read_failures(folder.root),
    )
    _write(found, benchmark.identity())
    return found


def _ranks(folder: RunFolder, human: Path | None) -> pa.Table:
    ranks = read_table(folder.root, HUMAN) if human is None else read_human_file(human)
    if ranks is None:
        raise RunError(
            f"people ranked nothing in {str(folder.root)!r}: run `echo-hf rank` with this config "
            "first, or name a file of ranks (--human FILE)"
        )
    return ranks


def _of_benchmark(
    ranks: pa.Table, tables: RunTables
) -> tuple[pa.Table, Mapping[str, Mapping[Reason, int]]]:
    tasks = chain.from_iterable(tables.tasks.values())
    digests = {task.sample_id: task.sample_digest for task in tasks}
    there = [reason is None for reason in left_out_reasons(ranks, digests)]
    if not any(there):
        raise RunError(
            f"none of {len(there)} ranks is of a sample of the benchmark: expected its sample_id, "
            f"such as {next(iter(digests), None)!r}"
        )
    gone = there.count(False)
    counts: dict[str, dict[Reason, int]] = {}
    if gone:
        counts = {HUMAN.name: {LeftOut.NOT_RELEASED: gone}}
    return ranks.filter(pa.array(there)), counts


def _by_split(
    ranks: pa.Table, tables: RunTables, protocol: Protocol, n_boot: int
) -> Mapping[str, Agreement]:
    parts = {name: tables.of_split(ranks, name) for name in tables.tasks}
    ranked = {name: part for name, part in parts.items() if part is not None and part.num_rows}
    if len(ranked) < 2:
        return {}
    return {
        name: _compared(part, _of_samples(tables.ratings, part), protocol, n_boot)
        for name, part in ranked.items()
    }


def _of_samples(ratings: pa.Table | None, ranks: pa.Table) -> pa.Table | None:
    if ratings is None:
        return None
    return ratings.filter(pc.is_in(ratings["sample_id"], ranks["sample_id"].unique()))


def _compared(
    ranks: pa.Table, ratings: pa.Table | None, protocol: Protocol, n_boot: int
) -> Agreement:
    rated = ratings is not None and RUBRIC in ratings["rubric"].to_pylist()
    return agreement(ranks, ratings if rated else None, protocol=protocol, n_boot=n_boot)


def _write(found: RunAgreement, benchmark: Mapping[str, Any]) -> None:
    """Writes the figures; a killed process leaves the old file or the new."""
    written = {
        "benchmark": benchmark,
        "protocol": found.merged.protocol,
        "left_out": found.left_out,
        "failed_audit": found.failed,
        "merged": found.merged.as_json(),
        "splits": {name: one.as_json() for name, one in found.splits.items()},
    }
    write_json(found.path, written)
