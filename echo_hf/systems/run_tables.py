"""Read what is scored: the tasks of a benchmark, and a run's tables about them."""

from __future__ import annotations

import csv
import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import TextIOWrapper
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, ValidationError

from echo_hf._infra.parquet import open_parquet, read_parquet
from echo_hf._infra.regular_file import open_regular
from echo_hf._infra.text import one_line
from echo_hf.config.checks import ANSWERED_BY, ModelIdentity, Section, Words, first_error
from echo_hf.config.evaluation import EvaluationBase, JudgeConfig
from echo_hf.config.rubrics import OVERALL, RUBRICS
from echo_hf.config.systems import SystemConfig
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.errors import RunError, TableError
from echo_hf.hub.facts import LeftOut
from echo_hf.hub.manifest import READ_ERRORS
from echo_hf.hub.run_tables import DIGEST_COLUMN, SAMPLE_COLUMN, find_left_out_reasons
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import Reason
from echo_hf.scores.rating_table import DrawChoice, IgnoredRating, read_outputs
from echo_hf.systems.base import Task
from echo_hf.systems.benchmark import Benchmark
from echo_hf.tables import (
    APPLICABILITY,
    COMPARISONS,
    DRAW,
    HUMAN,
    LABELS,
    OUTPUTS,
    RATINGS,
    Outcome,
    Row,
    Table,
    is_wide,
    lengthen_rows,
    make_wide_table,
    select_first_draws,
)

# Columns that a table cannot do without; others are filled with a default or null.
REQUIRED: Mapping[str, tuple[str, ...]] = {
    "outputs": ("sample_id", "system", "outcome"),
    "ratings": ("sample_id", "system", "judge", "rating"),
    "comparisons": ("sample_id", "system_a", "system_b", "judge", "order", "winner"),
    "human": ("sample_id", "rater", "system", "rank"),
    "labels": (*LABELS.key, "answer"),
}
EXTRA = "(too many fields)"
DEFAULTS: Mapping[str, Any] = {"rubric": "overall", "repeat": 0, DRAW: 0}
PAGE = "https://echo-hf.github.io/echo-hf/reference/tables/ lists them"


def read_table(root: Path, table: Table) -> pa.Table | None:
    """Read a table of a run with all its declared columns; null where there is none."""
    path = root / f"{table.name}.parquet"
    if not path.exists():
        return None
    try:
        rows = read_parquet(path)
    except (OSError, pa.ArrowException) as error:
        reason = one_line(error)
        raise RunError(
            f"{str(path)!r} is not a table of {table.name} ({reason}): make it again, or move it "
            "away"
        ) from None
    return _convert_columns(rows, table, path)


def _convert_columns(rows: pa.Table, table: Table, path: Path | str) -> pa.Table:
    if is_wide(table, rows.column_names):
        wide = _cast_columns(rows, make_wide_table(rows.schema), path)
        return pa.Table.from_pylist([*lengthen_rows(wide.to_pylist())], table.schema)
    return _cast_columns(rows, table, path)


def _cast_columns(rows: pa.Table, table: Table, path: Path | str) -> pa.Table:
    required = REQUIRED.get(table.name, table.key)
    missing = [name for name in required if name not in rows.column_names]
    if missing:
        raise RunError(f"{str(path)!r} has no column {', '.join(map(repr, missing))}: {PAGE}")
    columns = []
    for field in table.schema:
        if field.name not in rows.column_names:
            default = pa.scalar(DEFAULTS.get(field.name), field.type)
            columns.append(pa.repeat(default, rows.num_rows))
            continue
        actual_type = rows[field.name].type
        is_other = pa.types.is_string(actual_type) != pa.types.is_string(field.type)
        try:
            # A cast would parse numbers out of text.
            if is_other and not pa.types.is_null(actual_type):
                raise ValueError
            values = rows[field.name].cast(field.type)
            columns.append(values.fill_null(0) if field.name == DRAW else values)
        except (pa.ArrowException, ValueError):
            raise RunError(
                f"{str(path)!r}: column {field.name!r} is of type {str(actual_type)[:80]!r}, "
                f"expected {str(field.type)[:80]!r}: {PAGE}"
            ) from None
    return pa.table(columns, schema=table.schema)


ApplicabilitySource = Literal["run", "release"]


def read_applicability(
    benchmark: Benchmark, folder: RunFolder
) -> tuple[pa.Table | None, ApplicabilitySource | None]:
    """Read which metrics fit which sample, from the run or else its benchmark; name the source.

    Answers of the run count once there are any: one question has one answerer.
    """
    own = read_table(folder.root, APPLICABILITY)
    if own is not None and own["applies"].null_count < own.num_rows:
        return own, "run"
    released = benchmark.table(APPLICABILITY.name)
    if released is None:
        return own, None
    return _convert_columns(released, APPLICABILITY, benchmark.reference), "release"


# Outputs first: rows of the other tables are checked against them.
SCORED_TABLES = (OUTPUTS, RATINGS, APPLICABILITY, COMPARISONS, HUMAN, LABELS)
# For each table of judgements: the column of its verdict, and a map from the columns of systems
# to those of their images.
VERDICT_COLUMNS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "ratings": ("rating", {"system": "output_sha256"}),
    "comparisons": ("winner", {"system_a": "output_a_sha256", "system_b": "output_b_sha256"}),
    "labels": ("answer", {"system": "output_sha256"}),
}
OutputsByKey = Mapping[tuple[str, str, int], Row]  # by sample, system and draw


@dataclass(frozen=True)
class RunTables:
    """The rows of a run that count; `left_out` counts the others by table and reason.

    `outputs` and `ratings` are about the first output of each system for each sample; `all_outputs`
    and `all_ratings` about every one.
    """

    tasks: Mapping[str, tuple[Task, ...]]
    outputs: pa.Table | None
    ratings: pa.Table | None
    applicability: pa.Table | None
    comparisons: pa.Table | None
    human: pa.Table | None
    left_out: Mapping[str, Mapping[Reason, int]]
    labels: pa.Table | None = None
    fits_from: ApplicabilitySource | None = None  # where `applicability` comes from
    all_outputs: pa.Table | None = None
    all_ratings: pa.Table | None = None

    def of_draws(self, draws: DrawChoice) -> tuple[pa.Table | None, pa.Table | None]:
        """Return the outputs and ratings that boards of these draws are made of."""
        if draws == "first":
            return self.outputs, self.ratings
        return self.all_outputs, self.all_ratings

    def select_split(self, table: pa.Table | None, split: str) -> pa.Table | None:
        if table is None:
            return None
        ids = pa.array([task.sample_id for task in self.tasks[split]], pa.string())
        return table.filter(pc.is_in(table["sample_id"], ids))


def read_run(
    benchmark: Benchmark,
    folder: RunFolder,
    rubrics: Collection[str] = (),
    human: pa.Table | None = None,
) -> RunTables:
    """Read the tables of a run, by its config's rubrics too, or with ranks that are given."""
    tables = {table.name: read_table(folder.root, table) for table in SCORED_TABLES}
    tables[APPLICABILITY.name], fits_from = read_applicability(benchmark, folder)
    if human is not None:
        tables[HUMAN.name] = human
    if tables["outputs"] is not None:
        read_outputs(tables["outputs"].select([*REQUIRED["outputs"], DRAW]))
    elif tables["ratings"] is None and tables["comparisons"] is None:
        raise RunError(
            f"there is nothing to score in {str(folder.root)!r}: run `echo-hf generate`, or put "
            "outputs.parquet and ratings.parquet there"
        )
    all_tasks = benchmark.tasks(folder.images).tasks
    digests = {task.sample_id: task.sample_digest for task in all_tasks}
    left_out: dict[str, Mapping[Reason, int]] = {}
    outputs: OutputsByKey | None = None
    known_rubrics = {*rubrics, *RUBRICS.list_names()}
    for name, rows in tables.items():
        if rows is None:
            continue
        filled_rows = rows
        if DIGEST_COLUMN in rows.column_names:
            # A row without a digest is about the sample as it is now.
            keys = rows.select([SAMPLE_COLUMN, DIGEST_COLUMN]).to_pylist()
            filled = [key[DIGEST_COLUMN] or digests.get(key[SAMPLE_COLUMN]) for key in keys]
            index = rows.column_names.index(DIGEST_COLUMN)
            filled_rows = rows.set_column(index, DIGEST_COLUMN, pa.array(filled, pa.string()))
        reasons: list[Reason | None] = list(find_left_out_reasons(filled_rows, digests))
        if name in VERDICT_COLUMNS:
            verdict, image_columns = VERDICT_COLUMNS[name]
            for index, row in enumerate(rows.to_pylist()):
                if reasons[index] is None and row[verdict] is not None:
                    reasons[index] = _find_reason(row, image_columns, outputs, known_rubrics)
        tables[name] = kept = rows.filter(pa.array([why is None for why in reasons], pa.bool_()))
        if name == OUTPUTS.name:
            drawn = itemgetter(*OUTPUTS.key)
            outputs = {drawn(row): row for row in kept.to_pylist()}
        if counts := Counter(filter(None, reasons)):
            left_out[name] = counts
    tasks = {name: tuple(task for task in all_tasks if task.split == name) for name in BENCHMARKS}
    all_draws = {f"all_{name}": tables[name] for name in (OUTPUTS.name, RATINGS.name)}
    for name in (OUTPUTS.name, RATINGS.name):
        if (rows := tables[name]) is not None:
            tables[name] = select_first_draws(rows)
    return RunTables(tasks, **tables, left_out=left_out, fits_from=fits_from, **all_draws)


def _find_reason(
    row: Row,
    image_columns: Mapping[str, str],
    outputs: OutputsByKey | None,
    rubrics: Collection[str],
) -> Reason | None:
    """Return why a judgement does not count: its rubric, or its output is not the present one."""
    if row.get("rubric", OVERALL) not in rubrics:
        return IgnoredRating.OTHER_RUBRIC
    if outputs is None:
        return None
    for system_column, column in image_columns.items():
        output = outputs.get((row["sample_id"], row[system_column], row.get(DRAW, 0)))
        if output is None:
            return IgnoredRating.NO_OUTPUT
        if output["outcome"] != Outcome.OK:
            return IgnoredRating.NO_IMAGE
        if None not in (row[column], output["image"]) and row[column] != output["image"]:
            return LeftOut.OTHER_OUTPUT
    return None


# Anywhere in a provenance: an object of strings and nulls.
IDENTITY = rf'"{ANSWERED_BY}": (?P<known>\{{(?:[^"{{}}]|"(?:[^"\\]|\\.)*")*\}})'


class Models(NamedTuple):
    """The model behind each system and each judge."""

    systems: Mapping[str, ModelIdentity]
    judges: Mapping[str, ModelIdentity]


UNKNOWN = Models({}, {})


def read_models(config: EvaluationBase, tables: RunTables) -> Models:
    """Read the models behind systems and judges of a run; fields that nobody states are null."""
    systems = read_model_identities(config.systems, tables.outputs, "system")
    if tables.ratings is not None:
        rated = dict.fromkeys(tables.ratings["system"].to_pylist(), ModelIdentity())
        systems = dict(sorted({**rated, **systems}.items()))
    return Models(systems, read_model_identities(config.judges, tables.ratings, "judge"))


def read_model_identities(
    configs: Iterable[SystemConfig | JudgeConfig], rows: pa.Table | None, kind: str
) -> dict[str, ModelIdentity]:
    """Read the model behind each name: from its rows, or else from the config."""
    configured = {config.name: config.answered_by for config in configs}
    stated, names = dict[str, ModelIdentity](), {*configured}
    if rows is not None:
        identities = pc.struct_field(pc.extract_regex(rows["provenance"], IDENTITY), "known")
        pairs = pa.table({"name": rows[kind], "known": identities}).group_by(["name", "known"])
        for row in pairs.aggregate([]).to_pylist():
            names.add(row["name"])
            try:
                model = ModelIdentity.model_validate_json(row["known"] or "{}")
            except ValidationError as error:
                place = f"provenance of {kind} {row['name']!r}"
                message = first_error(error, place, ModelIdentity)
                raise RunError(f"{message}: make its rows again") from None
            if model == ModelIdentity():
                continue
            earlier = stated.setdefault(row["name"], model)
            if (model.model, model.status) != (earlier.model, earlier.status):
                models = sorted(f"{each.model} ({each.status})" for each in (model, earlier))
                raise RunError(
                    f"{kind} {row['name']!r} names two models in the rows of this run, "
                    f"{' and '.join(models)}: expected one; give each a name of its own, or make "
                    "its rows again"
                )
    unstated = ModelIdentity()
    return {name: stated.get(name) or configured.get(name, unstated) for name in sorted(names)}


MAX_COUNT = 2**31 - 1
# Sums and squares of such numbers stay finite, whatever their scale.
MAX_FIGURE = 1e9
BoundedFloat = Annotated[float, Field(allow_inf_nan=False, ge=-MAX_FIGURE, le=MAX_FIGURE)]


class HumanRow(Section):
    """One person's rank for a system's output, from 1; or a score, where higher is better."""

    sample_id: Words
    rater: Words
    system: Words
    rank: Annotated[int, Field(ge=1, le=MAX_COUNT)] | None = None
    cannot_rank: bool | None = None
    score: BoundedFloat | None = None


def read_human_file(path: Path) -> pa.Table:
    """Read ranks from a person's file, `.jsonl` or `.csv`."""
    kind, rows = path.suffix.lower(), []
    if kind not in (".jsonl", ".csv"):
        raise TableError(f"{str(path)!r} holds no ranks: expected a file named .jsonl or .csv")
    for number, record in enumerate(read_records(path), 1):
        try:  # JSON has numbers; CSV has text alone
            row = HumanRow.model_validate(record, strict=kind == ".jsonl")
        except ValidationError as error:
            place = f"{path}, row {number}"
            raise TableError(first_error(error, place, HumanRow)) from None
        rows.append(row.model_dump())
    return pa.Table.from_pylist(rows, HUMAN.schema)


MAX_FILE_BYTES = 1 << 30  # of a file that is read line by line
MAX_DOCUMENT_BYTES = 1 << 27  # of a file that is read at once


def read_records(path: Path, folder: Path | None = None) -> Iterator[Any]:
    """Yield the records of a file: a JSON list, JSON lines, CSV, TSV or Parquet."""
    kind = path.suffix.lower()
    try:
        if kind == ".parquet":
            with open_parquet(path, folder) as file:
                for batch in file.iterate_batches(rows=100):
                    yield from batch.to_pylist()
            return
        with (
            open_regular(path, folder, max_bytes=MAX_FILE_BYTES) as binary_file,
            TextIOWrapper(binary_file, "utf-8-sig", newline="") as lines,
        ):
            if kind == ".jsonl":
                yield from (json.loads(line) for line in lines if line.strip())
            elif kind in (".csv", ".tsv"):
                delimiter = "\t" if kind == ".tsv" else ","
                rows = csv.DictReader(lines, restkey=EXTRA, delimiter=delimiter, strict=True)
                yield from ({name: cell or None for name, cell in row.items()} for row in rows)
            else:
                if os.fstat(binary_file.fileno()).st_size > MAX_DOCUMENT_BYTES:
                    raise ValueError(f"it has more than {MAX_DOCUMENT_BYTES:,} bytes")
                document = json.load(lines)
                yield from document if isinstance(document, list) else [document]
    except (*READ_ERRORS, csv.Error) as error:
        text = one_line(error)[:200]
        raise RunError(f"{str(path)!r} cannot be read ({text}): fix it, or leave it out") from None
