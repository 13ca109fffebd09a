"""The result of a stage: kept rows, rejects, quarantine, notices, with counts and costs."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset, Features
from datasets.table import InMemoryTable

from echo_hf._infra.atomic import store_rows
from echo_hf._infra.summary import SummaryMixin
from echo_hf.pipeline.batch_inference import FillStats
from echo_hf.pipeline.stage import (
    CONTROL,
    ROWS_PER_READ,
    Stage,
    join_digests,
    row_keys,
    table_bytes,
)
from echo_hf.reasons import Status
from echo_hf.tables import arrow_batches, arrow_rows, get_rows

ISSUE_COLUMNS = ("_reason", "_detail", "_request")


@dataclass
class StageStats:
    """Statistics of a stage, as `stats.json` holds them."""

    stage: str
    rows_in: int
    kept: int
    rejected: Mapping[str, int] = field(default_factory=dict)
    quarantined: Mapping[str, int] = field(default_factory=dict)
    noted: Mapping[str, int] = field(default_factory=dict)
    tally: Mapping[str, int] = field(default_factory=dict)
    fill: FillStats = field(default_factory=FillStats)
    seconds: float = 0.0
    reads: str = "rows"
    makes: str = "rows"

    def __str__(self) -> str:
        left_out = {**self.rejected, **self.quarantined, **self.noted}
        counts = "".join(f", {count:,} {reason}" for reason, count in left_out.items())
        kept = f"{self.stage}: {self.kept:,} {self.makes} of {self.rows_in:,} {self.reads}"
        fill = f"; {self.fill}" if self.fill.requests else ""
        return f"{kept}{counts}{fill}; {self.seconds:.1f} s"


@dataclass(frozen=True, repr=False)
class StageResult(SummaryMixin):
    """The result of a stage.

    Attributes:
        dataset: The rows that go on, with the declared columns of the stage's output.
        rejects: Input rows that do not, with `_reason` and `_detail`.
        quarantine: Input rows whose model call failed, with `_reason`, `_detail`, `_request`.
        notices: Remarks about input rows that go on: `_parent`, `_reason`, `_detail`.
        stats: Counts, calls, cost, time.
    """

    dataset: Dataset
    rejects: Dataset
    quarantine: Dataset
    notices: Dataset
    stats: StageStats


def sort_rows(
    stage: Stage, dataset: Dataset, mapped: Dataset, file: Path | None = None
) -> StageResult:
    """Split a stage's output by status; other rows than kept go into files beside `file`."""
    control = arrow_rows(mapped, list(CONTROL))
    is_kept = pc.equal(control["_status"], Status.KEPT.value)
    issues = control.filter(pc.invert(is_kept))
    rejected, quarantined, noted = (
        issues.filter(pc.equal(issues["_status"], status.value)).drop_columns(["_status"])
        for status in (Status.REJECTED, Status.QUARANTINED, Status.NOTED)
    )
    noted = noted.drop_columns(["_request"])
    schema = stage.outputs.features.arrow_schema
    rows = Dataset(
        mapped.data.select(schema.names).replace_schema_metadata(schema.metadata),
        fingerprint=mapped._fingerprint,
        indices_table=mapped._indices,
    )
    if issues.num_rows:
        positions = np.flatnonzero(is_kept.to_numpy(zero_copy_only=False))
        rows = rows.select(positions, new_fingerprint=mapped._fingerprint)
    rows._fingerprint = join_digests(mapped._fingerprint, "kept")
    rejects = _join_rows(stage, dataset, rejected, _sibling_file(file, "rejects"))
    quarantine = _join_rows(stage, dataset, quarantined, _sibling_file(file, "quarantine"))
    # With its features in the schema, and not beside it, datasets copies them once.
    features = Features.from_arrow_schema(noted.schema).arrow_schema
    noted = noted.replace_schema_metadata(features.metadata)
    notices = Dataset(noted, fingerprint=_make_fingerprint(mapped, noted))
    rejections, failures, remarks = (
        dict(sorted(Counter(dataset.data.table["_reason"].to_pylist()).items()))
        for dataset in (rejects, quarantine, notices)
    )
    tally: Counter[str] = Counter()
    if type(stage).tally is not Stage.tally:
        for batch in arrow_batches(rows, ROWS_PER_READ):
            tally.update(stage.tally(batch))
    stats = StageStats(
        stage=stage.name,
        rows_in=len(dataset),
        kept=len(rows),
        rejected=rejections,
        quarantined=failures,
        noted=remarks,
        tally=dict(sorted(tally.items())),
        reads=stage.inputs.name,
        makes=stage.outputs.name,
    )
    return StageResult(rows, rejects, quarantine, notices, stats)


def _sibling_file(file: Path | None, part: str) -> Path | None:
    return None if file is None else file.with_name(f"{file.stem}-{part}{file.suffix}")


def read_keys(stage: Stage, dataset: Dataset) -> pa.Array:
    """Return the key of each input row, as `_parent` holds it."""
    return row_keys(arrow_rows(dataset, stage.inputs.key), stage.inputs)


def _join_rows(stage: Stage, dataset: Dataset, issues: pa.Table, file: Path | None) -> Dataset:
    """Join issues to the input rows that they are about."""
    # An earlier quarantine may be what is run again: what is said now replaces what was said then.
    known_features = dataset.features  # datasets copies it at each access
    features = Features(
        {name: known_features[name] for name in known_features if name not in ISSUE_COLUMNS}
        | {name: CONTROL[name] for name in ISSUE_COLUMNS}
    )
    parents = pc.list_flatten(issues["_parent"]).combine_chunks()
    details = issues.select(ISSUE_COLUMNS).take(
        pc.list_parent_indices(issues["_parent"]).combine_chunks()
    )
    positions = pa.array([], pa.int64())
    if len(parents):
        keys = read_keys(stage, dataset)
        positions = pc.index_in(parents, value_set=keys)
        if len(pc.unique(keys)) < len(keys):  # rows with one key, one after the other
            places: dict[str | None, list[int]] = {}
            for row, key in enumerate(keys.to_pylist()):
                places.setdefault(key, []).append(row)
            queues = (places[key] for key in parents.to_pylist())
            positions = pa.array([queue.pop(0) if len(queue) > 1 else queue[0] for queue in queues])
    columns = [name for name in features if name not in ISSUE_COLUMNS]

    def make_rows() -> Iterator[pa.Table]:
        for start in range(0, len(positions), ROWS_PER_READ):
            batch = get_rows(dataset, positions[start : start + ROWS_PER_READ].to_numpy(), columns)
            for name in ISSUE_COLUMNS:
                batch = batch.append_column(name, details[name].slice(start, ROWS_PER_READ))
            yield batch

    schema = features.arrow_schema
    table = (
        store_rows(make_rows(), schema, file)
        if len(positions)
        else InMemoryTable(schema.empty_table())
    )
    return Dataset(table, fingerprint=_make_fingerprint(dataset, issues))


def _make_fingerprint(dataset: Dataset, issues: pa.Table) -> str:
    # datasets would pickle the whole table to make a fingerprint of its own.
    return join_digests(dataset._fingerprint, hashlib.sha256(table_bytes(issues)).hexdigest())
