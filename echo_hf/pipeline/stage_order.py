"""The order of the stages; what stages of other packages may add, and how it is joined."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset, Features

from echo_hf._infra.atomic import store_rows
from echo_hf.config.sections import STAGES
from echo_hf.errors import StageError, TableError, unknown
from echo_hf.pipeline.stage import ROWS_PER_READ, Stage, join_digests, row_keys
from echo_hf.tables import SAMPLES, Table, arrow_batches, arrow_rows

COLUMN_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
# What the values of a column of a plug-in may be, alone, in lists and in structs.
PLAIN_TYPE = re.compile(
    r"string|bool|u?int(8|16|32|64)|float(32|64)|timestamp\[(s|ms|us|ns)(, tz=UTC)?\]"
)


def load_stage_class(name: str) -> type[Stage]:
    """Return a stage by its name; one of another package is checked."""
    stage: type[Stage] = STAGES.find(name)
    is_known = name in STAGES.modules and not stage.adds
    if not is_known and (problem := _find_problem(name, stage)):
        raise StageError(f"stage {name!r} cannot be used: {problem}")
    return stage


def _find_problem(name: str, stage: Any) -> str | None:
    if not (isinstance(stage, type) and issubclass(stage, Stage)):
        return f"it is {stage!r}, expected a class derived from echo_hf.Stage"
    if not COLUMN_NAME.fullmatch(name):
        return "its name is no folder's, expected small letters, digits and _"
    for column, declared in stage.adds.items():
        if not COLUMN_NAME.fullmatch(column):
            return f"it adds {column!r}, expected small letters, digits and _"
        if column in SAMPLES.columns:
            return f"it adds {column!r}, and samples have such a column: choose another name"
        if declared.content is None:
            return f"its {column!r} has no content, expected 'post_text' or 'derived'"
        if not is_plain(Features({column: declared.feature}).to_dict()[column]):
            return f"its {column!r} is {declared.feature!r}, expected plain values or lists of them"
    checks = {
        "name": (stage.name, name),
        "after": (stage.after or "no stage", stage.after or "the name of a stage"),
        "inputs.name": (stage.inputs.name, SAMPLES.name if stage.adds else stage.inputs.name),
        "joins": (stage.joins, True),
    }
    return next(
        (
            f"its {fact} is {actual!r}, expected {wanted!r}"
            for fact, (actual, wanted) in checks.items()
            if actual != wanted
        ),
        None,
    )


def is_plain(feature: Any) -> bool:
    """Return whether a feature, as JSON, is one that any reader understands: values, and lists."""
    if not isinstance(feature, dict):
        return False
    match feature.get("_type"):
        case "Value":
            dtype = feature.get("dtype")
            return len(feature) == 2 and bool(PLAIN_TYPE.fullmatch(str(dtype)))
        case "List":
            return len(feature) == 2 and is_plain(feature.get("feature"))
    names = all(map(COLUMN_NAME.fullmatch, feature))
    return bool(feature) and names and all(map(is_plain, feature.values()))


def order_stages(plugins: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the names of the built-in stages and of these others, in the order in which they run.

    Raises:
        StageError: One cannot be loaded, runs after a stage that does not run, or adds columns that
            another one has, or that no sample of the release would have.
    """
    names = (*sorted(plugins), *STAGES.modules)  # others come before what was there
    classes = {name: load_stage_class(name) for name in names}
    ordered, pending = list[str](), [name for name in names if classes[name].after is None]
    while pending:
        ordered.append(pending.pop())
        pending += [name for name in reversed(names) if classes[name].after == ordered[-1]]
    owners = {
        column: name
        for name in STAGES.modules
        if not classes[name].joins
        for column in classes[name].outputs.columns
    }
    for name in names:
        stage = classes[name]
        if name not in ordered:
            place = f"stage {name!r} runs after a stage that does not run here"
            raise StageError(unknown("stage", stage.after, ordered, place))
        later = ordered[ordered.index(name) :]
        makers = [other for other in later if classes[other].makes_rows] if stage.adds else []
        if makers:
            raise StageError(
                f"stage {name!r} adds columns after {stage.after!r}, and {makers[-1]!r} makes "
                f"other samples: expected after = {makers[-1]!r}, or a later stage"
            )
        for column in stage.adds:
            if (owner := owners.setdefault(column, name)) != name:
                raise StageError(
                    f"stage {name!r} adds column {column!r}, which {owner!r} has: rename it, or "
                    "turn one of two plug-ins off"
                )
    return tuple(ordered)


def list_stages_through(stages: Sequence[str], name: str) -> tuple[str, ...]:
    """Return the stages up to one, itself included."""
    if name not in stages:
        raise StageError(unknown("stage", name, stages))
    return tuple(stages[: stages.index(name) + 1])


def join_columns(
    rows: Dataset, added: Dataset, names: Sequence[str], table: Table, file: Path
) -> Dataset:
    """Return rows with columns of the rows of another dataset that have the same keys."""
    keys = row_keys(arrow_rows(added, table.key), table)
    columns = arrow_rows(added, names)
    features = Features({**rows.features, **{name: added.features[name] for name in names}})

    def make_batches() -> Iterator[pa.Table]:
        for batch in arrow_batches(rows, ROWS_PER_READ):
            at = pc.index_in(row_keys(batch, table), value_set=keys)
            for name in names:
                batch = batch.append_column(name, columns[name].take(at))
            yield batch

    fingerprint = join_digests(rows._fingerprint, added._fingerprint, *names)
    stored = store_rows(make_batches(), features.arrow_schema, file)
    return Dataset(stored, fingerprint=fingerprint)


def select_rows(dataset: Dataset, kept: Dataset, table: Table) -> Dataset:
    """Return the rows of a dataset that a stage of another package kept."""
    keys, kept_keys = (row_keys(arrow_rows(rows, table.key), table) for rows in (dataset, kept))
    at = pc.index_in(kept_keys, value_set=keys)
    if at.null_count or len(pc.unique(kept_keys)) < len(kept_keys):
        raise TableError(
            "a stage of another package made a row of its own: expected the key of each input row "
            "that goes on, once"
        )
    numbers = at.to_numpy()
    return dataset.select(
        numbers, new_fingerprint=join_digests(dataset._fingerprint, kept._fingerprint)
    )
