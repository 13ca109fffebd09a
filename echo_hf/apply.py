"""Run one stage over a dataset: fill the store, map, and sort the rows by what became of them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset

from echo_hf.answers import answers_of
from echo_hf.engines.base import Engine
from echo_hf.errors import TableError
from echo_hf.fill import FillStats, Progress, fill
from echo_hf.reasons import Failed, Status
from echo_hf.stage import CONTROL, ModelStage, Stage, combined_fingerprint, keys_of
from echo_hf.store import Store
from echo_hf.tables import Table

HOPELESS = frozenset({Failed.NEEDS_MODEL.value})


@dataclass
class StageStats:
    """What a stage did, as `stats.json` keeps it.

    Attributes:
        stage: Name of the stage.
        rows_in: Input rows.
        kept: Rows that go on.
        rejected: Rejected rows by reason.
        quarantined: Rows whose model call failed, by reason.
        noted: Remarks about rows that go on, by reason.
        tally: Counts of the stage's own, such as relevance scores.
        fill: Model calls, store hits, tokens, cost.
        seconds: Wall-clock time.
    """

    stage: str
    rows_in: int
    kept: int
    rejected: Mapping[str, int] = field(default_factory=dict)
    quarantined: Mapping[str, int] = field(default_factory=dict)
    noted: Mapping[str, int] = field(default_factory=dict)
    tally: Mapping[str, int] = field(default_factory=dict)
    fill: FillStats = field(default_factory=FillStats)
    seconds: float = 0.0


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


def run_stage(
    stage: Stage,
    dataset: Dataset,
    *,
    engine: Engine | None = None,
    store: Store | None = None,
    cache_dir: Path | None = None,
    offline: bool = False,
    anew: bool = False,
    progress: Progress | None = None,
) -> StageResult:
    """Runs a stage: asks the model what is missing, then maps without asking anything.

    A result that is already in `cache_dir` is read back; of a result with quarantined rows only
    those are asked again.

    Args:
        stage: The stage.
        dataset: Its input rows; columns beyond the declared ones are ignored.
        engine: Who answers a model stage.
        store: Where the answers are kept.
        cache_dir: Folder for the mapped Arrow files; in memory, or beside the dataset's own
            cache files, when null.
        offline: Ask nothing; what no stored answer covers goes to the quarantine.
        anew: Compute even what `cache_dir` holds, for stages that read files.
        progress: Called after each model call.

    Returns:
        The sorted rows and the stats.

    Raises:
        TableError: A declared column is missing from the dataset or has another type, or the
            stage lost a row.
    """
    started, filled = time.perf_counter(), FillStats()
    check_columns(stage.inputs, dataset, stage.name)
    if not isinstance(stage, ModelStage) or engine is None:
        mapped = _map(stage, dataset, cache_dir, anew=anew)
        return _result(stage, dataset, mapped, filled, started)
    stage = stage.answered_by(answers_of(engine, store))
    cached = _cache_file(stage, dataset, cache_dir)
    fresh = anew or cached is None or not cached.exists()
    mapped = None if fresh else _map(stage, dataset, cache_dir)
    wanted = dataset if mapped is None else _to_retry(stage, dataset, mapped)
    if store is not None and not offline and engine.stored and len(wanted):
        filled = fill(stage, wanted, engine, store, again=not fresh, progress=progress)
    if mapped is None or filled.calls:
        mapped = _map(stage, dataset, cache_dir, anew=anew or not fresh)
    return _result(stage, dataset, mapped, filled, started)


def check_columns(table: Table, dataset: Dataset, reader: str) -> None:
    """Refuses a dataset that lacks a declared column or has it with another type.

    Args:
        table: What is declared.
        dataset: What is given.
        reader: Who wants to read it, for the message.

    Raises:
        TableError: On the first column that does not fit.
    """
    given = dataset.features.arrow_schema
    for field_ in table.schema:
        at = given.get_field_index(field_.name)
        if at < 0:
            raise TableError(
                f"{reader!r} reads column {field_.name!r} of table {table.name!r}, the dataset "
                f"has {dataset.column_names!r}: add it, or run the stage before"
            )
        if given.field(at).type != field_.type:
            raise TableError(
                f"column {field_.name!r} has type {str(given.field(at).type)!r}, {reader!r} "
                f"expects {str(field_.type)!r}: cast it to echo_hf.tables' features"
            )


def _cache_file(stage: Stage, dataset: Dataset, cache_dir: Path | None) -> Path | None:
    if cache_dir is None:
        return None
    fingerprint = combined_fingerprint(dataset._fingerprint, stage.digest())
    return cache_dir / f"{stage.name}-{fingerprint}.arrow"


def _map(stage: Stage, dataset: Dataset, cache_dir: Path | None, *, anew: bool = False) -> Dataset:
    if not len(dataset):  # datasets.map returns an empty dataset with its old columns
        empty = Dataset(stage.features.arrow_schema.empty_table())
        empty._fingerprint = combined_fingerprint(dataset._fingerprint, stage.digest())
        return empty
    file = _cache_file(stage, dataset, cache_dir)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
    return dataset.with_format("arrow").map(
        stage,
        **stage.map_arguments(dataset),
        cache_file_name=str(file) if file else None,
        load_from_cache_file=not anew,
    )


def _to_retry(stage: Stage, dataset: Dataset, mapped: Dataset) -> Dataset:
    table = mapped.with_format("arrow")[:].select(["_parent", "_status", "_reason"])
    failed = table.filter(pc.equal(table["_status"], Status.QUARANTINED.value))
    hopeful = failed.filter(pc.invert(pc.is_in(failed["_reason"], pa.array(sorted(HOPELESS)))))
    return dataset.select(_rows_of(stage, dataset, hopeful))


def _rows_of(stage: Stage, dataset: Dataset, remarks: pa.Table) -> list[int]:
    wanted = pc.unique(pc.list_flatten(remarks["_parent"]).combine_chunks())
    if not len(wanted):
        return []
    mask = pc.is_in(_keys(stage, dataset), wanted)
    return np.flatnonzero(mask.to_numpy(zero_copy_only=False)).tolist()


def _keys(stage: Stage, dataset: Dataset) -> pa.Array:
    rows = dataset.select_columns(list(stage.inputs.key)).with_format("arrow")
    return keys_of(rows[:], stage.inputs)


def _result(
    stage: Stage, dataset: Dataset, mapped: Dataset, filled: FillStats, started: float
) -> StageResult:
    control = mapped.select_columns(list(CONTROL)).with_format("arrow")[:]
    _check_total(stage, dataset, control)
    by_status = {status: pc.equal(control["_status"], status.value) for status in Status}
    rest = control.filter(pc.invert(by_status[Status.KEPT]))
    of = {status: rest.filter(pc.equal(rest["_status"], status.value)) for status in Status}
    kept = _kept(stage, mapped, by_status[Status.KEPT], rest)
    stats = StageStats(
        stage=stage.name,
        rows_in=len(dataset),
        kept=len(kept),
        rejected=_count(of[Status.REJECTED]),
        quarantined=_count(of[Status.QUARANTINED]),
        noted=_count(of[Status.NOTED]),
        tally=_tally(stage, kept),
        fill=filled,
    )
    result = StageResult(
        kept,
        _with_rows(stage, dataset, of[Status.REJECTED]),
        _with_rows(stage, dataset, of[Status.QUARANTINED]),
        Dataset(of[Status.NOTED].drop_columns(["_status", "_request"])),
        stats,
    )
    stats.seconds = time.perf_counter() - started
    return result


def _check_total(stage: Stage, dataset: Dataset, control: pa.Table) -> None:
    parents = pc.unique(pc.list_flatten(control["_parent"]).combine_chunks())
    keys = _keys(stage, dataset)
    known = pc.is_in(keys, parents)
    if not pc.all(known, min_count=0).as_py():
        lost = keys.filter(pc.invert(known))
        raise TableError(
            f"stage {stage.name!r} lost {len(lost)} rows, the first is {lost[0].as_py()!r}: "
            "every input row must be the _parent of an output row"
        )


def _kept(stage: Stage, mapped: Dataset, mask: Any, rest: pa.Table) -> Dataset:
    columns = mapped.with_format(None).select_columns(list(stage.outputs.columns))
    if rest.num_rows:
        rows = np.flatnonzero(mask.to_numpy(zero_copy_only=False))
        columns = columns.select(rows, new_fingerprint=mapped._fingerprint)
    # Later answers empty the quarantine without a new stage digest: what follows must notice.
    failed = rest.filter(pc.equal(rest["_status"], Status.QUARANTINED.value))
    columns._fingerprint = combined_fingerprint(
        mapped._fingerprint, *pc.list_flatten(failed["_parent"]).to_pylist()
    )
    return columns


def _with_rows(stage: Stage, dataset: Dataset, remarks: pa.Table) -> Dataset:
    said = remarks.drop_columns(["_status"])
    parents = pc.list_flatten(said["_parent"]).combine_chunks()
    owner = pc.list_parent_indices(said["_parent"]).combine_chunks()
    at = pc.index_in(parents, value_set=_keys(stage, dataset)).to_pylist() if len(parents) else []
    rows = dataset.with_format("arrow").select(at)[:] if at else _no_rows(dataset)
    table = rows
    for name in ("_reason", "_detail", "_request"):
        table = table.append_column(name, said[name].take(owner) if at else said[name])
    return Dataset(table.replace_schema_metadata(None))


def _no_rows(dataset: Dataset) -> pa.Table:
    return dataset.features.arrow_schema.remove_metadata().empty_table()


def _count(remarks: pa.Table) -> dict[str, int]:
    return dict(sorted(Counter(remarks["_reason"].to_pylist()).items()))


def _tally(stage: Stage, kept: Dataset) -> dict[str, int]:
    total: Counter[str] = Counter()
    rows = kept.with_format("arrow")
    if type(stage).tally is not Stage.tally:
        for start in range(0, len(rows), 10_000):
            total.update(stage.tally(rows[start : start + 10_000]))
    return dict(sorted(total.items()))
