"""How far a run's judges agree with people, written down with how it was computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from echo_hf._infra.atomic import write_json
from echo_hf.builder.build import RUNS
from echo_hf.config.evaluation import Evaluated
from echo_hf.errors import RunError
from echo_hf.judging.audit import Failures, read_failures
from echo_hf.judging.run_tables import opened, read_human_file, read_run
from echo_hf.reasons import Reason
from echo_hf.scores.agreement import Agreement, agreement
from echo_hf.scores.rating_table import RUBRIC
from echo_hf.tables import HUMAN

AGREEMENT_FILE = "agreement.json"
DRAWS = 1000


@dataclass(frozen=True)
class RunAgreement:
    """How far judges agree with people, over all samples and in each split."""

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
    config, folder, benchmark = opened(config, runs, protocol)
    tables = read_run(benchmark, folder, None if human is None else read_human_file(human))
    ranks, ratings = tables.human, tables.ratings
    if ranks is None or not ranks.num_rows:
        lost = sum(tables.left_out.get(HUMAN.name, {}).values())
        raise RunError(
            f"people ranked nothing of the benchmark in {str(folder.root)!r}, and {lost} ranks are "
            "of other samples: run `echo-hf rank` with this config first, or name a file of ranks "
            "with its sample_ids (--human FILE)"
        )
    folder.enter()

    def compared(ranks: pa.Table, rated: pa.Table | None) -> Agreement:
        overall = rated is not None and RUBRIC in rated["rubric"].to_pylist()
        return agreement(ranks, rated if overall else None, protocol=config.protocol, n_boot=n_boot)

    parts = {name: tables.of_split(ranks, name) for name in tables.tasks}
    ranked = {name: part for name, part in parts.items() if part}
    splits: dict[str, Agreement] = {}
    for name, part in ranked.items() if len(ranked) > 1 else ():
        samples = part["sample_id"].unique()
        rated = ratings and ratings.filter(pc.is_in(ratings["sample_id"], samples))
        splits[name] = compared(part, rated)
    path, failed = folder.root / AGREEMENT_FILE, read_failures(folder.root)
    found = RunAgreement(path, compared(ranks, ratings), splits, tables.left_out, failed)
    written = {
        "benchmark": benchmark.identity(),
        "protocol": found.merged.protocol,
        "left_out": tables.left_out,
        "failed_audit": failed,
        "merged": found.merged.as_json(),
        "splits": {name: one.as_json() for name, one in splits.items()},
    }
    write_json(path, written)
    return found
