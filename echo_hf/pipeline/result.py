"""The result of a stage: rows kept, rejected, quarantined and noted, with counts and costs."""

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

from echo_hf._infra.atomic import stored_rows
from echo_hf._infra.summary import Summarized
from echo_hf.pipeline.batch_inference import FillStats
from echo_hf.pipeline.stage import (
    CONTROL,
    ROWS_AT_ONCE,
    Stage,
    combined_fingerprint,
    keys_of,
    table_bytes,
)
from echo_hf.reasons import Status
from echo_hf.tables import arrow_batches, arrow_rows, rows_at

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


@dataclass(frozen=True, repr=False)
class StageResult(Summarized):
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


def sort_rows(
    stage: Stage, dataset: Dataset, mapped: Dataset, file: Path | None = None
) -> StageResult:
    """Sorts the rows that a stage gave by what became of them; those aside lie beside a file."""
    control = arrow_rows(mapped, list(CONTROL))
    kept = pc.equal(control["_status"], Status.KEPT.value)
    rest = control.filter(pc.invert(kept))
    rejected, quarantined, noted = (
        rest.filter(pc.equal(rest["_status"], status.value)).drop_columns(["_status"])
        for status in (Status.REJECTED, Status.QUARANTINED, Status.NOTED)
    )
    noted = noted.drop_columns(["_request"])
    schema = stage.outputs.features.arrow_schema
    rows = Dataset(
        mapped.data.select(schema.names).replace_schema_metadata(schema.metadata),
        fingerprint=mapped._fingerprint,
        indices_table=mapped._indices,
    )
    if rest.num_rows:
        at = np.flatnonzero(kept.to_numpy(zero_copy_only=False))
        rows = rows.select(at, new_fingerprint=mapped._fingerprint)
    rows._fingerprint = combined_fingerprint(mapped._fingerprint, "kept")
    rejects = _with_rows(stage, dataset, rejected, _beside(file, "rejects"))
    quarantine = _with_rows(stage, dataset, quarantined, _beside(file, "quarantine"))
    # With its features in the schema, and not beside it, datasets copies them once.
    features = Features.from_arrow_schema(noted.schema).arrow_schema
    noted = noted.replace_schema_metadata(features.metadata)
    notices = Dataset(noted, fingerprint=_aside(mapped, noted))
    rejections, failures, remarks = (
        dict(sorted(Counter(one.data.table["_reason"].to_pylist()).items()))
        for one in (rejects, quarantine, notices)
    )
    tally: Counter[str] = Counter()
    if type(stage).tally is not Stage.tally:
        for some in arrow_batches(rows, ROWS_AT_ONCE):
            tally.update(stage.tally(some))
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


def _beside(file: Path | None, part: str) -> Path | None:
    return file and file.with_name(f"{file.stem}-{part}{file.suffix}")


def keys_in(stage: Stage, dataset: Dataset) -> pa.Array:
    """The key of each of a stage's input rows, as `_parent` holds it."""
    return keys_of(arrow_rows(dataset, stage.inputs.key), stage.inputs)


def _with_rows(stage: Stage, dataset: Dataset, said: pa.Table, file: Path | None) -> Dataset:
    """The input rows that issues are about, with what is said of them."""
    # An earlier quarantine may be what is run again: what is said now replaces what was said then.
    given = dataset.features  # datasets copies it at each access
    features = Features(
        {name: given[name] for name in given if name not in SAID}
        | {name: CONTROL[name] for name in SAID}
    )
    parents = pc.list_flatten(said["_parent"]).combine_chunks()
    told = said.select(SAID).take(pc.list_parent_indices(said["_parent"]).combine_chunks())
    at = pa.array([], pa.int64())
    if len(parents):
        keys = keys_in(stage, dataset)
        at = pc.index_in(parents, value_set=keys)
        if len(pc.unique(keys)) < len(keys):  # rows with one key, one after the other
            places: dict[str | None, list[int]] = {}
            for row, key in enumerate(keys.to_pylist()):
                places.setdefault(key, []).append(row)
            some = (places[key] for key in parents.to_pylist())
            at = pa.array([one.pop(0) if len(one) > 1 else one[0] for one in some])
    columns = [name for name in features if name not in SAID]

    def rows() -> Iterator[pa.Table]:
        for start in range(0, len(at), ROWS_AT_ONCE):
            some = rows_at(dataset, at[start : start + ROWS_AT_ONCE].to_numpy(), columns)
            for name in SAID:
                some = some.append_column(name, told[name].slice(start, ROWS_AT_ONCE))
            yield some

    schema = features.arrow_schema
    table = stored_rows(rows(), schema, file) if len(at) else InMemoryTable(schema.empty_table())
    return Dataset(table, fingerprint=_aside(dataset, said))


def _aside(beside: Dataset, said: pa.Table) -> str:
    # datasets would pickle the whole table to make a fingerprint of its own.
    return combined_fingerprint(beside._fingerprint, hashlib.sha256(table_bytes(said)).hexdigest())
