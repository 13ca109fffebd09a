"""Rows of tables that no careful program wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from echo_hf.collect.collect import Collect
from echo_hf.collect.records import read_records
from echo_hf.collect.sources.table import table_rows
from echo_hf.config.sections import Posts
from echo_hf.errors import ConfigError, SourceError
from echo_hf.pipeline.result import StageResult
from echo_hf.pipeline.stage_runner import run_stage

LINK = "https://a.example/1"


def collected(collect: Collect, path: Path, **columns: str) -> StageResult:
    """What the stage makes of a table."""
    entry = {"source": "table", "path": path, "columns": {"url": "link", **columns}}
    return run_stage(collect, read_records([Posts.model_validate(entry)]))


def invalid_text() -> pa.Array:
    """A text that is no UTF-8, as a program may declare it."""
    return pa.Array.from_buffers(pa.string(), 1, pa.array([b"caf\xe9"]).buffers())


@pytest.mark.parametrize(
    ("values", "field", "notice"),
    [
        (pa.array([2**52], pa.timestamp("ms")), "timestamp", "bad_timestamp"),
        (pa.array([2**30], pa.date32()), "timestamp", "bad_timestamp"),
        (pa.array([2**60], pa.duration("s")), "timestamp", "bad_timestamp"),
        (invalid_text(), "text", "bad_field"),
        (invalid_text(), "parent_url", "bad_field"),
        (invalid_text(), "keywords", "bad_field"),
    ],
)
def test_a_value_that_python_does_not_have_costs_no_post(
    tmp_path: Path, collect: Collect, values: pa.Array, field: str, notice: str
) -> None:
    """It is no value of its field, and said to be none; the rest of the row is read."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"link": [LINK], "odd": values, "who": ["mira"]}), path)
    result = collected(collect, path, author="who", **{field: "odd"})
    (row,) = result.dataset.to_list()

    assert (row["url"], row["author"], row[field] or None) == (LINK, "mira", None)
    assert result.notices["_reason"][:] == [notice]


def test_bytes_that_are_no_utf8_cost_their_row(tmp_path: Path) -> None:
    """They would be other letters; a column that is not asked for may hold any."""
    path = tmp_path / "a.csv"
    path.write_bytes(f"link,text,more\n{LINK},caf\xe9,\n{LINK},tea,\xe9\n".encode("latin-1"))
    rows = list(table_rows(path, ["link", "text"]))

    assert rows[1:] == [(":3", {"link": LINK, "text": "tea"})]
    assert json.loads(rows[0][1]) == {"broken_row": "line 2 is not a row: no UTF-8: 'caf\\udce9'"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("link\r1\r2\r", "cannot read the header of .*: expected names of columns, and lines"),
        ('"link\n1\n', "cannot read the header of"),
        ("link,text\n1,2\n".encode("utf-16"), "is not a UTF-8 text: save the table as UTF-8"),
    ],
)
def test_a_text_without_a_header_stops_with_one_line(
    tmp_path: Path, data: str | bytes, message: str
) -> None:
    """Old line ends, a header that never ends, sixteen bits a letter."""
    path = tmp_path / "a.csv"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    with pytest.raises(SourceError, match=message) as caught:
        list(table_rows(path, ["link"]))

    assert "\n" not in str(caught.value)


def test_an_empty_table_has_no_column(tmp_path: Path) -> None:
    """As if it had others."""
    (tmp_path / "a.csv").write_text(" \n\n")
    with pytest.raises(ConfigError, match="unknown column 'link'; known: none"):
        list(table_rows(tmp_path / "a.csv", ["link"]))


def test_blank_lines_count_and_are_no_rows(tmp_path: Path) -> None:
    """Before the header, and among the rows."""
    (tmp_path / "a.csv").write_text("\n \nlink,text\n1,a\n\n2,b\n")
    rows: list[tuple[str, Any]] = list(table_rows(tmp_path / "a.csv", ["text"]))

    assert rows == [(":4", {"text": "a"}), (":6", {"text": "b"})]
