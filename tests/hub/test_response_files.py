"""Recorded answers are read from files as they were written, or the file is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from echo_hf.engines.base import Completion, Usage
from echo_hf.errors import ReleaseError
from echo_hf.hub import responses
from echo_hf.hub.responses import (
    BATCH_ROWS,
    MOST_TEXT_BYTES,
    finish_of,
    is_recordable,
    read_responses,
)
from echo_hf.pipeline.answers import Failure, parse
from echo_hf.tables import RESPONSES
from tests.stages_for_tests import request

KEY = "ab" * 32
Row = dict[str, Any]
TOKENS = {"prompt_tokens": 7, "completion_tokens": 2, "cached_tokens": 0}


def row(**values: Any) -> Row:
    """A row that is as it should be, but for these values."""
    good = {
        "request_key": KEY,
        "task": "extract",
        "text": "{}",
        "finish_reason": "stop",
        "usage": TOKENS,
        "sources": ["https://board.example/1"],
    }
    return {**good, **values}


def written(path: Path, *rows: Row, schema: pa.Schema = RESPONSES.schema) -> Path:
    """A file with these rows."""
    pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), path)
    return path


def refused(path: Path) -> str:
    """What is said of a file that is not read; always one line that names the file."""
    with pytest.raises(ReleaseError) as raised:
        list(read_responses(path))
    assert repr(str(path)) in str(raised.value)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 1000
    return str(raised.value)


def test_rows_are_read_in_their_order(tmp_path: Path) -> None:
    """Keys, texts, endings and tokens, over several batches; an absent count is none."""
    keys = [f"{number:064x}" for number in range(2 * BATCH_ROWS + 3)]
    path = written(
        tmp_path / "a.parquet",
        *(row(request_key=key, text=f"赤 {key}") for key in keys),
        row(text=None, finish_reason="length", usage=None),
        row(text=None, finish_reason="needs_model", usage={**TOKENS, "cached_tokens": None}),
    )
    read = list(read_responses(path))
    assert [key.hex() for key, _ in read] == [*keys, KEY, KEY]
    assert [one.text for _, one in read[:-2]] == [f"赤 {key}" for key in keys]
    assert read[-2][1] == Completion(None, None, "length")
    assert read[-1][1] == Completion(None, "needs_model", "error", Usage(7, 2, 0))


def test_a_file_without_rows_holds_nothing(tmp_path: Path) -> None:
    """As of a run whose answers all came from rules."""
    assert list(read_responses(written(tmp_path / "a.parquet"))) == []


TEXTS = st.none() | st.sampled_from(["", "{}", '{"name": "red", "number": 3}', "Hm."]) | st.text()
ERRORS = st.none() | st.just("needs_model") | st.text()
ENDS = st.sampled_from(["stop", "length", "refusal", "error"]) | st.text()
COMPLETIONS = st.builds(Completion, TEXTS, ERRORS, ENDS)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(COMPLETIONS)
def test_what_is_recorded_is_read_as_it_was(tmp_path: Path, completion: Completion) -> None:
    """Whatever came back is an answer again, equal, or fails for the same reason again."""
    assert is_recordable(completion)
    text = completion.text if completion.is_answer else None
    path = written(tmp_path / "a.parquet", row(text=text, finish_reason=finish_of(completion)))
    ((_, read),) = read_responses(path)
    before, after = (parse(request("red"), one, b"\1") for one in (completion, read))
    assert read.text == text
    assert isinstance(after, Failure) == isinstance(before, Failure)
    if isinstance(before, Failure) and isinstance(after, Failure):
        assert after.reason is before.reason
    else:
        assert after == before


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("a" * MOST_TEXT_BYTES, True),
        ("a" * (MOST_TEXT_BYTES + 1), False),
        ("赤" * (MOST_TEXT_BYTES // 3 + 1), False),
        ("half \ud83d", False),
    ],
)
def test_what_could_not_be_read_back_is_told(text: str, expected: bool) -> None:
    """The limit is in bytes of UTF-8; half a character has none."""
    assert is_recordable(Completion(text)) is expected
    assert is_recordable(Completion(text, "no power", "error"))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"request_key": None}, "row 0: request_key is 'None'"),
        ({"request_key": KEY[:-1]}, "row 0: request_key is 'abab"),
        ({"request_key": KEY.upper()}, "row 0: request_key is 'ABAB"),
        ({"request_key": "../" * 22}, "row 0: request_key is '../"),
        ({"text": None}, "expected a text where finish_reason is 'stop'"),
        ({"finish_reason": "length"}, "expected a text where finish_reason is 'stop'"),
        ({"finish_reason": "because\n\x1b[31m"}, r"row 0: finish_reason is 'because\n\x1b[31m'"),
        ({"finish_reason": None}, "row 0: finish_reason is 'None'"),
        ({"usage": {**TOKENS, "prompt_tokens": -1}}, "row 0: usage.prompt_tokens is '-1'"),
        ({"text": "b" * (MOST_TEXT_BYTES + 1)}, f"a text of {MOST_TEXT_BYTES + 1} bytes"),
    ],
)
def test_a_row_that_nobody_wrote_is_refused(tmp_path: Path, values: Row, said: str) -> None:
    """With its number, its column and its value."""
    assert said in refused(written(tmp_path / "a.parquet", row(**values)))


def test_the_number_is_that_of_the_row(tmp_path: Path) -> None:
    """Counted over the whole file, from 0."""
    good = [row()] * (BATCH_ROWS + 5)
    assert f"row {BATCH_ROWS + 5}: " in refused(
        written(tmp_path / "a.parquet", *good, row(request_key="x"))
    )


def _without(name: str) -> pa.Schema:
    return pa.schema([field for field in RESPONSES.schema if field.name != name])


def _typed(name: str, kind: pa.DataType) -> pa.Schema:
    return pa.schema([field if field.name != name else pa.field(name, kind) for field in _ALL])


_ALL = list(RESPONSES.schema)


@pytest.mark.parametrize(
    "schema",
    [
        _without("usage"),
        _without("text"),
        _typed("request_key", pa.binary()),
        _typed("sources", pa.string()),
        pa.schema([*_ALL, pa.field("more", pa.string())]),
        pa.schema(_ALL[::-1]),
    ],
    ids=["no usage", "not text", "bytes", "no list", "one more", "reversed"],
)
def test_another_table_is_refused(tmp_path: Path, schema: pa.Schema) -> None:
    """The columns are named, and those that were expected."""
    pq.write_table(schema.empty_table(), tmp_path / "a.parquet")
    said = refused(tmp_path / "a.parquet")
    assert " has columns " in said
    assert "expected request_key (string)" in said


def _cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def _spoilt(data: bytes) -> bytes:
    return data[:4] + bytes(len(data) // 2) + data[4 + len(data) // 2 :]


@pytest.mark.parametrize(
    "damage", [lambda _: b"", lambda _: b"PAR1" * 9, _cut, _spoilt], ids=["0", "PAR1", "cut", "0s"]
)
def test_what_is_no_parquet_is_refused(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    """Empty, cut and overwritten files are told in one line."""
    rows = [row(request_key=f"{number:064x}", text=f"text {number}") for number in range(500)]
    path = written(tmp_path / "a.parquet", *rows)
    path.write_bytes(damage(path.read_bytes()))
    assert "cannot be read (" in refused(path)


def test_a_row_group_too_large_for_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its size is known before it is read."""
    path = written(tmp_path / "a.parquet", *(row(text="c" * 5000, request_key="x") for _ in "ab"))
    monkeypatch.setattr(responses, "MOST_GROUP_BYTES", 4000)
    assert " has a row group of " in refused(path)


def test_a_text_in_every_row_is_not_multiplied(tmp_path: Path) -> None:
    """A small file whose rows repeat one huge text is refused without holding them all."""
    texts = pa.DictionaryArray.from_arrays(
        pa.array([0] * 5000, pa.int32()), pa.array(["d" * (8 * MOST_TEXT_BYTES)])
    )
    table = pa.Table.from_pylist([row()] * 5000, schema=RESPONSES.schema)
    table = table.set_column(table.schema.get_field_index("text"), "text", texts)
    pq.write_table(table, tmp_path / "a.parquet", compression="zstd", store_schema=False)
    assert (tmp_path / "a.parquet").stat().st_size < 1 << 20
    usual = pa.default_memory_pool()
    counted = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(counted)
    try:
        assert f"a text of {8 * MOST_TEXT_BYTES} bytes" in refused(tmp_path / "a.parquet")
    finally:
        pa.set_memory_pool(usual)
    assert 8 * MOST_TEXT_BYTES <= counted.max_memory() < 10 * 8 * MOST_TEXT_BYTES
