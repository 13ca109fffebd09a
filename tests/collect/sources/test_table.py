"""Posts in our own format, and of any table through a map of its columns."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.collect.collect import Collect
from echo_hf.collect.fields import COUNTS
from echo_hf.collect.records import read_records
from echo_hf.collect.sources import table
from echo_hf.collect.sources.base import Finding, PostImage, make_source
from echo_hf.collect.sources.table import read_csv_rows
from echo_hf.config.collection import SourceColumns
from echo_hf.config.sections import PostsSource
from echo_hf.errors import ConfigError, SourceError
from echo_hf.pipeline.result import StageResult
from echo_hf.pipeline.stage_runner import run_stage
from echo_hf.tables import POSTS
from tests.collect.conftest import Reads

Row = dict[str, Any]
Collected = Callable[..., StageResult]
LINK = "https://a.example/1"
URL = {"url": "link"}
HEADER = ["link", "body", "created", "user", "above", "tags", "shots", "hearts"]
ROWS = [
    [LINK, 'a fox, "quoted"\nin two lines', "02.03.2026 18:12", "mira_draws", "",
     "lumen|l-image", "https://p.example/a.png", "7"],
    ["https://a.example/2", "und ein Dachs", "02.03.2026 19:00", "noor_k", LINK, "", "", ""],
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


@pytest.fixture
def collected(collect: Collect, tmp_path: Path) -> Collected:
    def run(content: str | bytes, columns: Row, *keywords: str, name: str = "a.csv") -> StageResult:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        given = {"source": "table", "path": path, "columns": columns, "keywords": keywords}
        return run_stage(collect, read_records([PostsSource.model_validate(given)]))

    return run


def as_csv(delimiter: str = ",", end: str = "\n") -> bytes:
    file = io.StringIO(newline="")
    csv.writer(file, delimiter=delimiter, lineterminator=end).writerows([HEADER, *ROWS])
    return file.getvalue().encode("utf-8-sig")


def as_parquet(rows: pa.Table) -> bytes:
    file = io.BytesIO()
    pq.write_table(rows, file)
    return file.getvalue()


NAMED = [dict(zip(HEADER, row, strict=True)) for row in ROWS]
FORMS = {
    "a.csv": as_csv(),
    "b.csv": as_csv(delimiter=";"),
    "c.CSV": as_csv(end="\r\n"),
    "d.tsv": as_csv(delimiter="\t"),
    "e.jsonl": "".join(json.dumps(row) + "\n" for row in NAMED),
    "f.json": json.dumps(NAMED, indent=1),
    "g.csv.gz": gzip.compress(as_csv()),
    "i.parquet": as_parquet(pa.Table.from_pylist(NAMED)),
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_of_a_table_is_the_same_posts(name: str, collected: Collected) -> None:
    first, second = collected(FORMS[name], COLUMNS, name=name).dataset.to_list()
    assert (first["url"], first["text"]) == (LINK, ROWS[0][1])
    # Berlin's winter is an hour ahead.
    assert first["timestamp"].isoformat() == "2026-03-02T17:12:00+00:00"
    assert (first["author"], first["parent_url"]) == ("mira_draws", None)
    assert first["keywords"] == ["lumen", "l-image"]
    assert [one["url"] for one in first["pictures"]] == ["https://p.example/a.png"]
    assert first["engagement"]["likes"] == 7
    assert second["parent_url"] == first["url"]
    assert (second["keywords"], second["pictures"], second["engagement"]) == ([], [], None)
    with pytest.raises(ConfigError, match="unknown column 'bdoy'; did you mean 'body'"):
        collected(FORMS[name], {**URL, "text": "bdoy"}, name=name)


def test_without_a_column_of_keywords_the_configs_hold(collected: Collected) -> None:
    assert collected(as_csv(), URL, "fox").dataset["keywords"][:] == [["fox"]] * 2
    assert collected(as_csv(), URL).dataset["keywords"][:] == [None] * 2


@pytest.mark.parametrize(
    ("value", "options", "expected"),
    [
        ("2026-03-02 17:12", {"zone": "UTC"}, "2026-03-02T17:12:00+00:00"),
        ("2026-07-02 17:12", {"zone": "Europe/Berlin"}, "2026-07-02T15:12:00+00:00"),
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
    collected: Collected, value: str, options: Row, expected: str | None
) -> None:
    columns = {**URL, "timestamp": {"column": "at", **options}}
    result = collected(f"link,at\n{LINK},{value}\n", columns)
    (row,) = result.dataset.to_list()
    assert (row["timestamp"] and row["timestamp"].isoformat()) == expected
    assert result.notices["_reason"][:] == ([] if expected else ["bad_timestamp"])


@pytest.mark.parametrize("number", ["1.90452E+18", "1904520000000000000.0", "a/b", ""])
def test_a_number_that_a_spreadsheet_rounded_is_no_post(collected: Collected, number: str) -> None:
    columns = {"url": {"column": "n", "prefix": "https://x.com/i/status/"}, "text": "text"}
    result = collected(f"n,text\n{number},a\n", columns)
    assert (len(result.dataset), dict(result.stats.rejected)) == (0, {"no_url": 1})


def test_images_are_addresses_or_files_beside_the_table(collected: Collected) -> None:
    columns = {**URL, "pictures": {"column": "shots", "separator": ";"}}
    result = collected(f"link,shots\n{LINK},https://p.example/a;b.png\n", columns)
    assert [one["url"] for one in result.dataset[0]["pictures"]] == ["https://p.example/a", None]
    assert result.notices["_reason"][:] == ["picture_not_found"]


def test_a_bad_row_costs_no_other(collected: Collected) -> None:
    bad = [f"{LINK},a,b", LINK, "a\rb,c", f"{LINK},caf\udce9"]
    text = "link,text\n" + "".join(f"{LINK},a\n{one}\n" for one in bad) + '"' + "x" * 200_000
    result = collected(text.encode("utf-8", "surrogateescape"), {**URL, "text": "text"})
    assert result.dataset["url"][:] == [LINK] * 4
    assert dict(result.stats.rejected) == {"broken_row": 5}
    details = {row["place"]: row["_detail"] for row in result.rejects.to_list()}
    assert details["a.csv:3"].startswith("line 3 is not a row: 3 cells, the header has 2: ['htt")
    assert details["a.csv:9"] == "line 9 is not a row: no UTF-8: 'caf\\udce9'"


def test_lines_that_are_no_rows_are_rejected(collected: Collected) -> None:
    result = collected(f'{{"link": "{LINK}"}}\n{{"link\n[1]\n"a"\n', URL, name="a.jsonl")
    assert len(result.dataset) == 1
    assert dict(result.stats.rejected) == {"not_a_post": 3}


def test_a_value_that_python_does_not_have_costs_its_row(collected: Collected) -> None:
    times = pa.array([2**52, 0], pa.timestamp("ms"))
    written = as_parquet(pa.table({"link": [LINK, f"{LINK}2"], "at": times}))
    result = collected(written, {**URL, "timestamp": "at"}, name="a.parquet")
    assert result.dataset["url"][:] == [f"{LINK}2"]
    assert dict(result.stats.rejected) == {"broken_row": 1}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.xlsx", b"PK", "is not a table by its name: expected one of"),
        ("a.parquet", b"PAR1 no more", "cannot read"),
        ("a.csv", "link\r1\r2\r", "cannot read the header of .*: expected names of columns, and"),
        ("a.csv", '"link\n1\n', "cannot read the header of"),
        ("a.csv", "link,text\n1,2\n".encode("utf-16"), "not a UTF-8 text: save the table as UTF-8"),
        ("a.csv", "link,link\n1,2\n", "has 2 columns 'link': rename all but one"),
    ],
)
def test_a_file_that_is_no_table_stops_with_one_line(
    collected: Collected, name: str, content: str | bytes, message: str
) -> None:
    with pytest.raises((SourceError, ConfigError), match=message) as caught:
        collected(content, URL, name=name)
    assert "\n" not in str(caught.value)


def test_columns_belong_to_tables_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    with pytest.raises(ConfigError, match="'table' takes a path and columns, such as"):
        read_records([PostsSource(source="table", path=path)])
    with pytest.raises(ConfigError, match="'jsonl' takes a path and no columns"):
        read_records(
            [PostsSource.model_validate({"source": "jsonl", "path": path, "columns": COLUMNS})]
        )


CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\0"), max_size=8)


@given(st.lists(st.lists(CELLS, min_size=2, max_size=4), max_size=6))
def test_what_a_writer_wrote_is_read_as_it_was(rows: list[list[str]]) -> None:
    file = io.StringIO(newline="")
    csv.writer(file, lineterminator="\n").writerows(rows)
    lines = io.StringIO(file.getvalue(), newline="\n")
    filled = [row for row in rows if any(cell.strip() for cell in row)]
    assert [cells for _, cells in read_csv_rows(lines, ",")] == filled


def test_a_row_is_named_by_its_first_line() -> None:
    lines = ["a,b\n", '"one\n', "two\n", 'three",x\n', "\n", "c,d\n"]
    rows = [(1, ["a", "b"]), (2, ["one\ntwo\nthree", "x"]), (6, ["c", "d"])]
    assert list(read_csv_rows(lines, ",")) == rows


def test_an_open_quotation_mark_costs_one_line() -> None:
    good = [f"{number},a fox\n" for number in range(20_000)]
    read = list(read_csv_rows(['0,"open\n', *good], ","))
    assert (read[0][0], type(read[0][1])) == (1, str)
    assert read[1:] == [(number + 2, [str(number), "a fox"]) for number in range(20_000)]


@pytest.mark.parametrize("header", ["link,text", "link;text", '"text, short";link', "text;a,link"])
def test_the_delimiter_is_the_one_that_gives_the_columns(collected: Collected, header: str) -> None:
    assert len(collected(f"{header}\n", URL).dataset) == 0


OWN_URL = "https://example.org/a"
FULL: dict[str, Any] = {
    "url": "https://mobile.twitter.com/mira_draws/status/7?s=20",
    "post_id": "seven",
    "platform": "forum",
    "author": "mira_draws",
    "text": "A fox 🦊\n\nPrompt: a paper fox",
    "timestamp": "2026-03-02T19:12:40+02:00",
    "lang": "en",
    "keywords": ["lumen image"],
    "pictures": [{"url": "https://p.example/b.png?utm_source=x", "alt_text": "a fox"}],
    "parent_url": "https://x.com/tofu_lab/status/6",
    "quoted_url": "https://twitter.com/tofu_lab/status/5?s=20",
    "engagement": {"likes": 0, "views": 9, "replies": None},
    "missing": None,
}


def test_all_fields_are_read(reads: Reads) -> None:
    whole = {
        **FULL,
        "url": "https://x.com/i/status/7",
        "timestamp": "2026-03-02T17:12:40+00:00",
        "pictures": [("https://p.example/b.png?utm_source=x", "a fox")],
        "parent_url": "https://x.com/i/status/6",
        "quoted_url": "https://x.com/i/status/5",
        "engagement": {**dict.fromkeys(COUNTS), "likes": 0, "views": 9},
    }
    reads("jsonl", FULL, {"7": whole})
    assert set(FULL) == set(POSTS.columns) - {"relevance"}
    assert all(f"`{name}`" in str(table.__doc__) for name in FULL)


@pytest.mark.parametrize(
    ("record", "expected"),
    [({}, ["lumen"]), ({"keywords": []}, []), ({"keywords": ["own"]}, ["own"])],
)
def test_own_keywords_come_before_those_of_the_file(
    record: Any, expected: list[str], reads: Reads
) -> None:
    reads("jsonl", {"url": OWN_URL, **record}, {"a": {"keywords": expected}}, [], ["lumen"])


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ([], "not_a_post: list, expected an object"),
        ({}, "no_url: url is None, expected a web address"),
        ({"url": [OWN_URL]}, "no_url: url is ['https://example.org/a'], expected a web address"),
    ],
)
def test_without_an_address_there_is_no_post(record: Any, said: str) -> None:
    (found,) = make_source("jsonl").posts(record, [])
    assert isinstance(found, Finding)
    assert f"{found.reason}: {found.detail}" == said


@pytest.mark.parametrize(
    ("field", "value", "kept", "reason"),
    [
        ("text", 5, None, "bad_field"),
        ("timestamp", "soon", None, "bad_timestamp"),
        ("keywords", ["fox", 5], ["fox"], "bad_field"),
        ("parent_url", "file:///etc/passwd", None, "bad_field"),
        ("missing", "lost", None, "bad_field"),
        ("pictures", ["a.png"], [], "bad_field"),
        ("pictures", [{"alt_text": "a"}], [PostImage(None, None, "a")], "bad_field"),
        ("pictures", [{"path": "a.png", "url": "data:,"}], [PostImage("a.png")], "bad_field"),
        ("pictures", [{"path": "a.png", "alt": "a"}], [PostImage("a.png")], "unknown_field"),
        ("engagement", {"likes": -1}, dict.fromkeys(COUNTS), "bad_field"),
        ("engagement", {"stars": 5}, dict.fromkeys(COUNTS), "unknown_field"),
        ("txet", "a", None, "unknown_field"),
    ],
)
def test_a_bad_field_costs_only_itself(field: str, value: Any, kept: Any, reason: str) -> None:
    post, finding = make_source("jsonl").posts({"url": OWN_URL, field: value}, [])
    assert isinstance(finding, Finding)
    assert (getattr(post, field, None), str(finding.reason)) == (kept, reason)
    assert finding.detail.startswith(field)


def test_the_bundled_posts_are_read_without_a_path(collect: Collect) -> None:
    text = files("echo_hf.quickstart").joinpath("posts.jsonl").read_text("utf-8")
    lines = list(map(json.loads, text.splitlines()))
    result = run_stage(collect, read_records([PostsSource(source="quickstart")]))
    named = sum("path" in one for line in lines for one in line.get("pictures", []))
    taken_in = sum(one["sha256"] is not None for post in result.dataset for one in post["pictures"])
    assert len(result.dataset) == len(lines) - sum(result.stats.rejected.values()) > 0
    assert taken_in >= named - sum(result.stats.noted.values()) > 0
    with pytest.raises(ConfigError, match="named twice"):
        read_records([PostsSource(source="quickstart"), PostsSource(source="quickstart")])


HITS = [{"link": "https://example.org/1", "body": "a fox"}, {"link": "https://example.org/2"}]
OF_HITS = SourceColumns.model_validate({"url": "link", "text": "body"})


def table_of(path: Path, **more: Any) -> list[Any]:
    entry = PostsSource.model_validate(
        {"source": "table", "path": path, "columns": OF_HITS, **more}
    )
    return [json.loads(record)["row"] for record in read_records([entry])["record"]]


def test_rows_may_stand_below_a_key(tmp_path: Path) -> None:
    """Of the top, or of a key below it; of a document a line as well."""
    path = tmp_path / "hits.json"
    expected = [{"url": "https://example.org/1", "text": "a fox"}, {"url": "https://example.org/2"}]
    for document, key in (
        ({"hits": HITS, "n": 2}, "hits"),
        ({"data": {"items": HITS}}, "data.items"),
    ):
        path.write_text(json.dumps(document, indent=1))
        assert table_of(path, table={"rows": key}) == expected
    pages = "\n".join(json.dumps({"hits": [hit]}) for hit in HITS)
    path.with_suffix(".jsonl").write_text(pages)
    assert table_of(path.with_suffix(".jsonl"), table={"rows": "hits"}) == expected


@pytest.mark.parametrize(
    ("name", "text", "more", "said"),
    [
        ("a.json", json.dumps({"hits": HITS}), {}, "add `table: {rows: hits}`"),
        (
            "a.json",
            json.dumps({"hits": 5}),
            {"table": {"rows": "hits"}},
            "no list of rows below 'hits'",
        ),
        ("a.json", "[]", {"table": {"rows": "hits"}}, "it is no object"),
        ("a.csv", "link,body", {"table": {"rows": "hits"}}, "is for JSON alone"),
    ],
)
def test_where_rows_are_is_said_in_a_line(
    tmp_path: Path, name: str, text: str, more: Any, said: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises((ConfigError, SourceError), match=re.escape(said)) as raised:
        table_of(tmp_path / name, **more)
    assert "\n" not in str(raised.value)
