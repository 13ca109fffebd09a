"""Run one stage over a dataset: fill the store, map, and sort the rows by what became of them."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset, DatasetInfo, Features

from echo_hf.answers import answers_of
from echo_hf.engines.base import Engine
from echo_hf.errors import TableError
from echo_hf.fill import FillStats, Progress, fill
from echo_hf.reasons import Failed, Status
from echo_hf.stage import CONTROL, ModelStage, Stage, combined_fingerprint, keys_of
from echo_hf.store import Store
from echo_hf.tables import Table

HOPELESS = frozenset({Failed.NEEDS_MODEL.value})
SAID = ("_reason", "_detail", "_request")


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
        reads: Name of the table it reads.
        makes: Name of the table it makes.
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
    reads: str = "rows"
    makes: str = "rows"


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

    A result that is already in `cache_dir` is read back. Of a result with quarantined rows only
    those are asked again, and their stored answers read again.

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
    if isinstance(stage, ModelStage) and engine is not None:
        stage = stage.answered_by(answers_of(engine, store))
    mapped = None if anew else _cached(stage, dataset, cache_dir)
    wanted = dataset if mapped is None else _to_retry(stage, dataset, mapped)
    asked = len(wanted) > 0 and not offline
    if asked and isinstance(stage, ModelStage) and engine is not None and store is not None:
        filled = fill(stage, wanted, engine, store, again=mapped is not None, progress=progress)
    if mapped is None or len(wanted):
        # No digest tells which answers a store holds, so what was read from one is read again.
        mapped = _map(stage, dataset, cache_dir, anew=anew or isinstance(stage, ModelStage))
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


def _cached(stage: Stage, dataset: Dataset, cache_dir: Path | None) -> Dataset | None:
    file = _cache_file(stage, dataset, cache_dir)
    return _map(stage, dataset, cache_dir) if file is not None and file.exists() else None


def _map(stage: Stage, dataset: Dataset, cache_dir: Path | None, *, anew: bool = False) -> Dataset:
    if not len(dataset):  # datasets.map returns an empty dataset with its old columns
        empty = Dataset(stage.features.arrow_schema.empty_table())
        empty._fingerprint = combined_fingerprint(dataset._fingerprint, stage.digest())
        return empty
    file = _cache_file(stage, dataset, cache_dir)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
    computed = anew or file is None or not file.exists()
    mapped = dataset.with_format("arrow").map(
        stage,
        **stage.map_arguments(dataset),
        cache_file_name=str(file) if file else None,
        load_from_cache_file=not anew,
    )
    if computed:
        try:
            _check_total(stage, dataset, mapped)
        except TableError:
            if file is not None:
                file.unlink(missing_ok=True)
            raise
    return mapped


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
        rejected=_count(rejects),
        quarantined=_count(quarantine),
        noted=_count(notices),
        tally=_tally(stage, kept),
        fill=filled,
        reads=stage.inputs.name,
        makes=stage.outputs.name,
    )
    noted = _aside(notices, Features.from_arrow_schema(notices.schema), mapped, notices)
    stats.seconds = time.perf_counter() - started
    return StageResult(kept, rejects, quarantine, noted, stats)


def _check_total(stage: Stage, dataset: Dataset, mapped: Dataset) -> None:
    control = mapped.select_columns(["_parent", "_status"]).with_format("arrow")[:]
    parents = pc.unique(pc.list_flatten(control["_parent"]).combine_chunks())
    keys = _keys(stage, dataset)
    lost = keys.filter(pc.invert(pc.is_in(keys, parents)))
    if len(lost):
        raise TableError(
            f"stage {stage.name!r} lost {len(lost)} rows, the first is {lost[0].as_py()!r}: "
            "every input row must be the _parent of an output row"
        )
    strange = parents.filter(pc.invert(pc.is_in(parents, keys)))
    if len(strange) or pc.min(pc.list_value_length(control["_parent"])).as_py() == 0:
        named = repr(strange[0].as_py()) if len(strange) else "none"
        raise TableError(
            f"stage {stage.name!r} made a row with _parent {named}: expected keys of input rows"
        )
    _check_statuses(stage, control["_status"])


def _check_statuses(stage: Stage, statuses: pa.ChunkedArray) -> None:
    known = [status.value for status in Status]
    for status in pc.unique(statuses).to_pylist():
        if status not in known:
            raise TableError(
                f"stage {stage.name!r} made a row with _status {status!r}: expected one of {known}"
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
    at = list(_places(_keys(stage, dataset), parents))
    # An earlier quarantine may be what is run again: what is said now replaces what was said then.
    own = [name for name in dataset.column_names if name not in SAID]
    features = Features({name: dataset.features[name] for name in own})
    rows = dataset.select_columns(own).with_format("arrow")
    table = rows.select(at)[:] if at else features.arrow_schema.empty_table()
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


def _count(said: Dataset | pa.Table) -> dict[str, int]:
    reasons = said.with_format("arrow")[:] if isinstance(said, Dataset) else said
    return dict(sorted(Counter(reasons["_reason"].to_pylist()).items()))


def _tally(stage: Stage, kept: Dataset) -> dict[str, int]:
    total: Counter[str] = Counter()
    rows = kept.with_format("arrow")
    if type(stage).tally is not Stage.tally:
        for start in range(0, len(rows), 10_000):
            total.update(stage.tally(rows[start : start + 10_000]))
    return dict(sorted(total.items()))
