"""Posts of any table, through a map of its columns."""

from __future__ import annotations

import csv
import datetime
import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from echo_hf.collect.collect import Collect
from echo_hf.collect.records import read_records
from echo_hf.config.collection import Columns
from echo_hf.config.sections import Posts
from echo_hf.errors import ConfigError, SourceError
from echo_hf.pipeline.result import StageResult
from echo_hf.pipeline.stage_runner import run_stage
from echo_hf.reasons import Reject

Row = dict[str, Any]
HEADER = ["link", "body", "created", "user", "above", "tags", "shots", "hearts"]
ROWS = [
    ["https://a.example/1", 'a fox, "quoted"\nin two lines', "02.03.2026 18:12", "mira_draws", "",
     "lumen|l-image", "https://p.example/a.png", "7"],
    ["https://a.example/2", "und ein Dachs", "02.03.2026 19:00", "noor_k", "https://a.example/1",
     "", "", ""],
]  # fmt: skip
COLUMNS: Row = {
    "url": "link",
    "text": "body",
    "timestamp": {"column": "created", "format": "%d.%m.%Y %H:%M", "zone": "Europe/Berlin"},
    "author": "user",
    "parent_url": "above",
    "keywords": {"column": "tags", "separator": "|"},
    "pictures": "shots",
    "likes": "hearts",
}


def collected(collect: Collect, path: Path, columns: Row, *keywords: str) -> StageResult:
    """What the stage makes of a table."""
    entry = {"source": "table", "path": path, "columns": columns, "keywords": keywords}
    return run_stage(collect, read_records([Posts.model_validate(entry)]))


def rows_of(collect: Collect, path: Path, columns: Row, *keywords: str) -> list[Row]:
    """The posts."""
    rows: list[Row] = collected(collect, path, columns, *keywords).dataset.to_list()
    return rows


def written(path: Path, *, delimiter: str = ",", end: str = "\n") -> Path:
    """The rows as a text with a delimiter."""
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file, delimiter=delimiter, lineterminator=end).writerows([HEADER, *ROWS])
    return path


def every_form(folder: Path) -> list[Path]:
    """The same rows in all forms that are read."""
    named = [dict(zip(HEADER, row, strict=True)) for row in ROWS]
    lines = folder / "e.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in named))
    whole = folder / "f.json"
    whole.write_text(json.dumps(named, indent=1))
    packed = folder / "g.csv.gz"
    packed.write_bytes(gzip.compress(written(folder / "h.csv").read_bytes()))
    pq.write_table(pa.Table.from_pylist(named), folder / "i.parquet")
    return [
        written(folder / "a.csv"),
        written(folder / "b.csv", delimiter=";"),
        written(folder / "c.CSV", end="\r\n"),
        written(folder / "d.tsv", delimiter="\t"),
        lines,
        whole,
        packed,
        folder / "i.parquet",
    ]


def test_every_form_of_a_table_is_the_same_posts(tmp_path: Path, collect: Collect) -> None:
    """CSV with three line ends and delimiters, packed, JSON in lines or whole, Parquet."""
    for path in every_form(tmp_path):
        first, second = rows_of(collect, path, COLUMNS)

        assert first["url"] == "https://a.example/1"
        assert first["text"] == ROWS[0][1]
        # Berlin's winter is an hour ahead.
        assert first["timestamp"].isoformat() == "2026-03-02T17:12:00+00:00"
        assert (first["author"], first["parent_url"]) == ("mira_draws", None)
        assert first["keywords"] == ["lumen", "l-image"]
        assert [one["url"] for one in first["pictures"]] == ["https://p.example/a.png"]
        assert first["engagement"]["likes"] == 7
        assert second["parent_url"] == first["url"]
        assert (second["keywords"], second["pictures"], second["engagement"]) == ([], [], None)


def test_without_a_column_of_keywords_the_configs_hold(tmp_path: Path, collect: Collect) -> None:
    """And with neither, nobody says what found the posts."""
    columns = {"url": "link"}
    path = written(tmp_path / "a.csv")

    assert {tuple(row["keywords"]) for row in rows_of(collect, path, columns, "fox")} == {("fox",)}
    assert {row["keywords"] for row in rows_of(collect, path, columns)} == {None}


def test_columns_that_the_map_does_not_name_are_not_taken_in(tmp_path: Path) -> None:
    """No record holds them."""
    entry = Posts.model_validate(
        {"source": "table", "path": written(tmp_path / "a.csv"), "columns": {"url": "link"}}
    )

    assert "mira_draws" not in str(read_records([entry]).to_list())


def test_an_unknown_column_names_the_nearest(tmp_path: Path) -> None:
    """In every form."""
    for path in every_form(tmp_path):
        entry = {"source": "table", "path": path, "columns": {"url": "link", "text": "bdoy"}}
        with pytest.raises(ConfigError, match="unknown column 'bdoy'; did you mean 'body'"):
            read_records([Posts.model_validate(entry)])


def test_a_column_that_stands_twice_is_refused(tmp_path: Path) -> None:
    """Nobody knows which one was meant."""
    (tmp_path / "a.csv").write_text("link,link\nhttps://a.example/1,https://a.example/2\n")
    entry = {"source": "table", "path": tmp_path / "a.csv", "columns": {"url": "link"}}

    with pytest.raises(ConfigError, match="has 2 columns 'link': rename all but one"):
        read_records([Posts.model_validate(entry)])


@pytest.mark.parametrize(
    ("value", "options", "expected"),
    [
        ("2026-03-02 17:12", {"zone": "UTC"}, "2026-03-02T17:12:00+00:00"),
        ("2026-07-02 17:12", {"zone": "Europe/Berlin"}, "2026-07-02T15:12:00+00:00"),
        ("2026-03-02T17:12:00+02:00", {}, "2026-03-02T15:12:00+00:00"),
        ("2026-03-02T17:12:00+02:00", {"zone": "Asia/Tokyo"}, "2026-03-02T15:12:00+00:00"),
        ("2026-03-02 17:12", {}, None),
        ("1772471520", {"format": "unix"}, "2026-03-02T17:12:00+00:00"),
        ("1772471520000", {"format": "unix_ms"}, "2026-03-02T17:12:00+00:00"),
        ("02.03.26 17:12 +0100", {"format": "%d.%m.%y %H:%M %z"}, "2026-03-02T16:12:00+00:00"),
        ("2026-03-02", {"format": "%d.%m.%Y", "zone": "UTC"}, None),
        ("noon", {"zone": "UTC"}, None),
        ("nan", {"format": "unix"}, None),
        ("1e400", {"format": "unix"}, None),
    ],
)
def test_a_time_is_read_as_the_map_says_and_never_guessed(
    tmp_path: Path, collect: Collect, value: str, options: Row, expected: str | None
) -> None:
    """Without a zone it is told one, or is none; a time in another form is none."""
    (tmp_path / "a.csv").write_text(f"link,at\nhttps://a.example/1,{value}\n")
    columns = {"url": "link", "timestamp": {"column": "at", **options}}
    result = collected(collect, tmp_path / "a.csv", columns)
    (row,) = result.dataset.to_list()

    assert (row["timestamp"] and row["timestamp"].isoformat()) == expected
    assert result.notices["_reason"][:] == ([] if expected else ["bad_timestamp"])


def test_a_table_of_times_and_numbers(tmp_path: Path, collect: Collect) -> None:
    """Parquet's own times, lists, and counts that a library made fractions where some lack."""
    at = datetime.datetime(2026, 3, 2, 17, 12, tzinfo=datetime.UTC)
    rows = [{"n": 99, "at": at, "tags": ["a", "b"], "likes": 7.0}, {"n": 98, "likes": float("nan")}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    columns = {
        "url": {"column": "n", "prefix": "https://x.com/i/status/"},
        "post_id": "n",
        "timestamp": "at",
        "keywords": "tags",
        "likes": "likes",
    }
    first, second = rows_of(collect, tmp_path / "a.parquet", columns)

    assert (first["url"], first["post_id"]) == ("https://x.com/i/status/99", "99")
    assert (first["timestamp"], first["keywords"]) == (at, ["a", "b"])
    assert (first["engagement"]["likes"], second["engagement"]) == (7, None)


@pytest.mark.parametrize("number", ["1.90452E+18", "1904520000000000000.0", "a/b", ""])
def test_a_number_that_a_spreadsheet_rounded_is_no_post(
    tmp_path: Path, collect: Collect, number: str
) -> None:
    """It would be another post, or nobody's."""
    (tmp_path / "a.csv").write_text(f"n,text\n{number},a\n")
    columns = {"url": {"column": "n", "prefix": "https://x.com/i/status/"}, "text": "text"}
    result = collected(collect, tmp_path / "a.csv", columns)

    assert (len(result.dataset), dict(result.stats.rejected)) == (0, {"no_url": 1})


def test_images_are_addresses_or_files_beside_the_table(tmp_path: Path, collect: Collect) -> None:
    """A file that is not there is said."""
    (tmp_path / "a.csv").write_text("link,shots\nhttps://a.example/1,https://p.example/a;b.png\n")
    columns = {"url": "link", "pictures": {"column": "shots", "separator": ";"}}
    result = collected(collect, tmp_path / "a.csv", columns)

    assert [one["url"] for one in result.dataset[0]["pictures"]] == ["https://p.example/a", None]
    assert result.notices["_reason"][:] == ["picture_not_found"]


def test_a_bad_row_costs_no_other(tmp_path: Path, collect: Collect) -> None:
    """Too many cells, too few, a stray line end, an endless cell: each is rejected by itself."""
    good = "https://a.example/{},a\n"
    bad = ["https://a.example/7,a,b\n", "https://a.example/8\n", "a\rb,c\n", '"' + "x" * 200_000]
    text = "link,text\n" + good.format(1) + "".join(f"{one}\n{good.format(2)}" for one in bad[:3])
    (tmp_path / "a.csv").write_text(f"{text}{bad[3]}\n", newline="")
    result = collected(collect, tmp_path / "a.csv", {"url": "link", "text": "text"})

    assert {row["url"] for row in result.dataset} == {"https://a.example/1", "https://a.example/2"}
    assert dict(result.stats.rejected) == {"broken_row": 4}
    rejects = [(row["place"], row["_detail"][:53]) for row in result.rejects.to_list()]
    assert rejects[:2] == [
        ("a.csv:3", "line 3 is not a row: 3 cells, the header has 2: ['htt"),
        ("a.csv:6", "line 6 is not a row: 1 cells, the header has 2: ['htt"),
    ]
    assert not any("JSON" in Reject(row["_reason"]).meaning for row in result.rejects.to_list())


def test_lines_that_are_no_rows_are_rejected(tmp_path: Path, collect: Collect) -> None:
    """A line that is no JSON, and one that is no object."""
    (tmp_path / "a.jsonl").write_text('{"link": "https://a.example/1"}\n{"link\n[1]\n"a"\n')
    result = collected(collect, tmp_path / "a.jsonl", {"url": "link"})

    assert len(result.dataset) == 1
    assert dict(result.stats.rejected) == {"not_json": 1, "not_a_post": 2}


def test_a_changed_map_makes_other_records(tmp_path: Path) -> None:
    """So that nothing made from the old one is used again."""
    path = written(tmp_path / "a.csv")

    def fingerprint(columns: Row) -> str:
        entry = Posts.model_validate({"source": "table", "path": path, "columns": columns})
        return str(read_records([entry])._fingerprint)

    other_zone = {**COLUMNS, "timestamp": {**COLUMNS["timestamp"], "zone": "UTC"}}
    assert fingerprint(COLUMNS) == fingerprint(dict(COLUMNS))
    assert len({fingerprint(one) for one in (COLUMNS, other_zone, {"url": "link"})}) == 3


def test_a_file_that_is_no_table_stops_with_one_line(tmp_path: Path) -> None:
    """By its name, or by what is in it."""
    (tmp_path / "a.xlsx").write_bytes(b"PK")
    (tmp_path / "a.parquet").write_bytes(b"PAR1 no more")
    messages = {"a.xlsx": "is not a table by its name: expected one of", "a.parquet": "cannot read"}
    for name, message in messages.items():
        entry = {"source": "table", "path": tmp_path / name, "columns": {"url": "link"}}
        with pytest.raises(SourceError, match=message) as caught:
            read_records([Posts.model_validate(entry)])
        assert "\n" not in str(caught.value)


def test_columns_belong_to_tables_alone(tmp_path: Path) -> None:
    """A table without them cannot be read, and they mean nothing elsewhere."""
    path = written(tmp_path / "a.csv")
    with pytest.raises(ConfigError, match="'table' does not know what the columns are: expected"):
        read_records([Posts(source="table", path=path)])
    with pytest.raises(ConfigError, match="'jsonl' has a form of its own, got columns: leave"):
        read_records([Posts.model_validate({"source": "jsonl", "path": path, "columns": COLUMNS})])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({}, "Field required"),
        ({"url": "a", "txt": "b"}, "Extra inputs"),
        ({"url": "a", "timestamp": {"column": "b", "format": "day"}}, "expected unix or unix_ms"),
        ({"url": "a", "timestamp": {"column": "b", "zone": "Mars/Base"}}, "a time zone"),
        ({"url": "a", "timestamp": {"column": "b", "zone": "../UTC"}}, "a time zone"),
        ({"url": "a", "text": {"column": "b", "zone": "UTC"}}, "Extra inputs"),
    ],
)
def test_a_map_is_checked_before_any_row_is_read(columns: Row, message: str) -> None:
    """Unknown fields, forms and zones."""
    with pytest.raises(ValidationError, match=message):
        Columns.model_validate(columns)
