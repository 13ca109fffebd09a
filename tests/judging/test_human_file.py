"""People's ranks in a file of one's own: two formats, one table, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from echo_hf.errors import TableError
from echo_hf.judging.run_tables import read_human_file
from echo_hf.tables import HUMAN

ROWS = [
    {"sample_id": "s", "rater": "Ada", "system": "a, b", "rank": 1, "cannot_rank": None},
    {"sample_id": "s", "rater": "Ada", "system": "c", "rank": None, "cannot_rank": True},
    {"sample_id": "0042", "rater": "Ada", "system": "c", "rank": 2, "cannot_rank": False},
]
JSONL = """{"sample_id": "s", "rater": "Ada", "system": "a, b", "rank": 1}

{"rater": "Ada", "sample_id": "s", "system": "c", "rank": null, "cannot_rank": true}
{"sample_id": "0042", "rater": "Ada", "system": "c", "rank": 2, "cannot_rank": false}
"""
CSV = """sample_id,rater,rank,system,cannot_rank
s,Ada,1,"a, b",
s,Ada,,c,true
0042,Ada,2,c,false
"""


@pytest.mark.parametrize(("name", "text"), [("r.jsonl", JSONL), ("r.csv", CSV), ("R.CSV", CSV)])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_both_formats_give_the_same_table(tmp_path: Path, name: str, text: str, mark: str) -> None:
    """In any order of columns, with a byte order mark or without; `0042` stays a text."""
    (tmp_path / name).write_text(mark + text, "utf-8")
    found = read_human_file(tmp_path / name)
    assert found.schema == HUMAN.schema
    assert found.to_pylist() == ROWS


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("r.jsonl", JSONL + '{"sample_id": ', r"r\.jsonl:5: no JSON .*: expected an object a line"),
        ("r.jsonl", "[1]\n", r"r\.jsonl:1: \[1\] is not an object: expected sample_id, rater"),
        ("r.jsonl", '{"smple_id": "s"}', "unknown key 'smple_id'; did you mean 'sample_id'"),
        ("r.jsonl", '{"rater": "Ada", "system": "c", "rank": 1}', ":1: sample_id is missing"),
        ("r.jsonl", JSONL.replace('"rank": 1', '"rank": 1.5'), ":1: rank is 1.5: input should be"),
        ("r.jsonl", JSONL.replace('"rank": 1', '"rank": true'), ":1: rank is True: input should"),
        ("r.jsonl", JSONL.replace('"rank": 2', '"rank": 0'), ":4: rank is 0: input should be gr"),
        ("r.jsonl", JSONL.replace("Ada", "A\\u001b[31m", 1), ":1: rater is 'A.x1b.31m': expected"),
        ("r.csv", CSV.replace("Ada,2", "Ada,second"), ":4: rank is 'second': input should be a"),
        ("r.csv", CSV.replace("Ada,,c", "Ada,,"), ":3: system is None: input should be a valid"),
        ("r.csv", CSV + "s,Ada,1,d,,x\n", ":5: unknown key '.too many fields.'"),
        ("r.csv", CSV + 's,"Ada,1,d,\n', r"r\.csv' cannot be read .unexpected end of data"),
        ("r.txt", CSV, r"r\.txt' holds no ranks: expected a file named \.jsonl or \.csv"),
    ],
)
def test_a_bad_line_is_one_line(tmp_path: Path, name: str, text: str, said: str) -> None:
    """It says where, what, and what was expected; no row is skipped for it."""
    (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(TableError, match=said) as raised:
        read_human_file(tmp_path / name)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("data", [None, b"sample_id\xff\n"])
def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path, data: bytes | None) -> None:
    """One that is not there, and one that is no text."""
    if data is not None:
        (tmp_path / "ranks.csv").write_bytes(data)
    with pytest.raises(TableError, match=r"ranks\.csv' cannot be read .*: expected UTF-8 text"):
        read_human_file(tmp_path / "ranks.csv")
