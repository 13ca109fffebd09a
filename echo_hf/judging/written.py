"""The tables that judges fill: what one has answered takes the place of what it had before."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from echo_hf.judging.asking import Answered
from echo_hf.judging.judging_stage import STAGE
from echo_hf.scoring.table_file import read_table
from echo_hf.tables import APPLICABILITY, COMPARISONS, RATINGS, Table

Row = Mapping[str, Any]


def write_ratings(root: Path, answered: Answered, asked: Collection[str]) -> Path:
    """Writes what a judge has said by a rubric into the run's table of ratings.

    Rows of other judges and rubrics stay as they are, whoever made them. Of its own, those about
    samples that it was not asked about now stay, if it would be asked in the same way.

    Args:
        root: The run's folder.
        answered: What the judge has said.
        asked: Ids of the samples that this run is about.

    Returns:
        The file.
    """

    def stays(row: Row) -> bool:
        if (row["judge"], row["rubric"]) != (answered.who, answered.rubric):
            return True
        return row["sample_id"] not in asked and _digest(row) == answered.digest

    return _write(root, RATINGS, answered.rows, stays)


def write_comparisons(root: Path, answered: Answered, asked: Collection[str]) -> Path:
    """Writes what a judge has chosen into the run's table of comparisons.

    Rows of other judges stay as they are. Of its own, those about samples that it was not asked
    about now stay, if it would be asked in the same way.

    Args:
        root: The run's folder.
        answered: What the judge has said.
        asked: Ids of the samples that this run is about.

    Returns:
        The file.
    """

    def stays(row: Row) -> bool:
        if row["judge"] != answered.who:
            return True
        return row["sample_id"] not in asked and _digest(row) == answered.digest

    return _write(root, COMPARISONS, answered.rows, stays)


def write_applicability(root: Path, answered: Answered, asked: Collection[str]) -> Path:
    """Writes which metrics fit into the run's table; rows about other samples stay.

    Args:
        root: The run's folder.
        answered: What was said.
        asked: Ids of the samples that this run is about.

    Returns:
        The file.
    """
    return _write(root, APPLICABILITY, answered.rows, lambda row: row["sample_id"] not in asked)


def _write(root: Path, table: Table, rows: pa.Table, stays: Callable[[Row], bool]) -> Path:
    before = read_table(root, table) or table.empty()
    kept = before.filter(pa.array([stays(row) for row in before.to_pylist()], pa.bool_()))
    merged = pa.concat_tables([kept, rows.select(list(table.columns)).cast(table.schema)])
    merged = merged.sort_by([(name, "ascending") for name in table.key])
    path = root / f"{table.name}.parquet"
    # Whole or not at all: a killed process leaves the old file or the new one.
    partial = path.with_name(f".{path.name}.partial")
    pq.write_table(merged, partial)
    partial.replace(path)
    return path


def _digest(row: Row) -> Any:
    try:
        return json.loads(row["provenance"])[STAGE]["digest"]
    except (ValueError, TypeError, KeyError):
        return None  # made elsewhere
