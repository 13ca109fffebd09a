"""The result of a stage: rows kept, rejected, quarantined and noted, with counts and costs."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset, DatasetInfo, Features

from echo_hf.pipeline.batch_inference import FillStats
from echo_hf.pipeline.stage import CONTROL, Stage, combined_fingerprint, keys_of
from echo_hf.reasons import Status
from echo_hf.tables import arrow_rows

SAID = ("_reason", "_detail", "_request")


@dataclass
class StageStats:
    """What a stage did, as `stats.json` keeps it."""

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
        aside = {**self.rejected, **self.quarantined, **self.noted}
        counts = "".join(f", {count:,} {reason}" for reason, count in aside.items())
        kept = f"{self.stage}: {self.kept:,} {self.makes} of {self.rows_in:,} {self.reads}"
        asked = f"; {self.fill}" if self.fill.requests else ""
        return f"{kept}{counts}{asked}; {self.seconds:.1f} s"


@dataclass(frozen=True)
class StageResult:
    """What a stage made of a dataset.

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


def sort_rows(stage: Stage, dataset: Dataset, mapped: Dataset) -> StageResult:
    """Sorts the rows that a stage gave by what became of them."""
    control = arrow_rows(mapped, list(CONTROL))
    by_status = {status: pc.equal(control["_status"], status.value) for status in Status}
    rest = control.filter(pc.invert(by_status[Status.KEPT]))
    of = {status: rest.filter(pc.equal(rest["_status"], status.value)) for status in Status}
    kept = _kept(stage, mapped, by_status[Status.KEPT], rest)
    rejects = _with_rows(stage, dataset, of[Status.REJECTED])
    quarantine = _with_rows(stage, dataset, of[Status.QUARANTINED])
    notices = of[Status.NOTED].drop_columns(["_status", "_request"])
    stats = StageStats(
        stage=stage.name,
        rows_in=len(dataset),
        kept=len(kept),
        rejected=_count(rejects.data.table),
        quarantined=_count(quarantine.data.table),
        noted=_count(notices),
        tally=_tally(stage, kept),
        reads=stage.inputs.name,
        makes=stage.outputs.name,
    )
    noted = _aside(notices, Features.from_arrow_schema(notices.schema), mapped, notices)
    return StageResult(kept, rejects, quarantine, noted, stats)


def keys_in(stage: Stage, dataset: Dataset) -> pa.Array:
    """The key of each of a stage's input rows, as `_parent` holds it."""
    return keys_of(arrow_rows(dataset, stage.inputs.key), stage.inputs)


def _kept(stage: Stage, mapped: Dataset, mask: Any, rest: pa.Table) -> Dataset:
    columns = mapped.with_format(None).select_columns(list(stage.outputs.columns))
    if rest.num_rows:
        rows = np.flatnonzero(mask.to_numpy(zero_copy_only=False))
        columns = columns.select(rows, new_fingerprint=mapped._fingerprint)
    columns._fingerprint = combined_fingerprint(mapped._fingerprint, "kept")
    return columns


def _with_rows(stage: Stage, dataset: Dataset, remarks: pa.Table) -> Dataset:
    said = remarks.drop_columns(["_status"])
    parents = pc.list_flatten(said["_parent"]).combine_chunks()
    owner = pc.list_parent_indices(said["_parent"]).combine_chunks()
    at = list(_places(keys_in(stage, dataset), parents)) if len(parents) else []
    # An earlier quarantine may be what is run again: what is said now replaces what was said then.
    own = [name for name in dataset.column_names if name not in SAID]
    given = dataset.features  # datasets copies it at each access
    features = Features({name: given[name] for name in own})
    table = features.arrow_schema.empty_table()
    if at:
        table = arrow_rows(dataset, own).take(at)
    for name in SAID:
        table = table.append_column(name, said[name].take(owner) if at else said[name])
    features = Features({**features, **{name: CONTROL[name] for name in SAID}})
    return _aside(table.replace_schema_metadata(None), features, dataset, said)


def _places(keys: pa.Array, parents: pa.Array) -> Iterator[int]:
    if len(pc.unique(keys)) == len(keys):
        yield from pc.index_in(parents, value_set=keys).to_pylist()
        return
    rows: dict[str | None, list[int]] = {}
    for row, key in enumerate(keys.to_pylist()):
        rows.setdefault(key, []).append(row)
    for key in parents.to_pylist():
        yield rows[key].pop(0) if len(rows[key]) > 1 else rows[key][0]


def _aside(table: pa.Table, features: Features, beside: Dataset, said: pa.Table) -> Dataset:
    # datasets would pickle the whole table to make a fingerprint of its own.
    plain = said.replace_schema_metadata(None).combine_chunks()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, plain.schema) as writer:
        writer.write_table(plain)
    content = hashlib.sha256(sink.getvalue()).hexdigest()
    fingerprint = combined_fingerprint(beside._fingerprint, content)
    return Dataset(table, DatasetInfo(features=features), fingerprint=fingerprint)


def _count(said: pa.Table) -> dict[str, int]:
    return dict(sorted(Counter(said["_reason"].to_pylist()).items()))


def _tally(stage: Stage, kept: Dataset) -> dict[str, int]:
    total: Counter[str] = Counter()
    if type(stage).tally is not Stage.tally:
        rows = kept.with_format("arrow")
        for start in range(0, len(rows), 10_000):
            total.update(stage.tally(rows[start : start + 10_000]))
    return dict(sorted(total.items()))
