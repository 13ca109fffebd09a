"""The answers that a build read, as a table: those that its requests have now, and no others."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from echo_hf._infra import parquet
from echo_hf._infra.sqlite import MAX_VARIABLES
from echo_hf.engines.base import Completion, Request, Usage
from echo_hf.errors import ReleaseError
from echo_hf.hub import responses
from echo_hf.hub.facts import LeftOut
from echo_hf.hub.release import Release
from echo_hf.hub.responses import (
    BATCH_ROWS,
    MAX_TEXT_BYTES,
    RecordedAnswers,
    ResponseCounts,
    get_finish_reason,
    is_recordable,
    read_recorded_answers,
    read_responses,
    write_responses,
)
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.answers import Failure, parse
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.tables import POSTS, RESPONSES
from tests.hub.conftest import Configs, Write
from tests.stages_for_tests import request

ONE, TWO, THREE = "https://board.example/1", "https://board.example/2", "https://board.example/3"
X = "https://x.com/i/status/99"
ENGINE = {"kind": "scripted"}
Asked = tuple[bytes, Request]
Row = dict[str, Any]


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "run")


@pytest.fixture
def store(folder: RunFolder) -> Iterator[Store]:
    with closing(folder.open_store()) as opened:
        yield opened


def asked(number: int, *sources: str, task: str = "extract") -> Asked:
    return number.to_bytes(32), replace(request(str(number)), task=task, sources=sources)


def answer(store: Store, question: Asked, completion: Completion) -> None:
    key, made = question
    store.add_sources((address, key) for address in made.sources)
    store.put(key, made, completion, ENGINE)


Written = Callable[..., tuple[list[Row], ResponseCounts]]


@pytest.fixture
def written(folder: RunFolder, store: Store) -> Written:
    def write(
        questions: Iterable[Asked], platforms: Mapping[str, str] | None = None, **more: Any
    ) -> tuple[list[Row], ResponseCounts]:
        places = [{"url": url, "platform": name} for url, name in (platforms or {}).items()]
        posts = Dataset(pa.Table.from_pylist(places, schema=POSTS.features.arrow_schema))
        options = {"restricted": frozenset({"x"}), **more}
        done = write_responses(folder, questions, store, posts, **options)
        return pq.read_table(folder.responses).to_pylist(), done

    return write


def test_a_row_says_what_came_back(folder: RunFolder, store: Store, written: Written) -> None:
    first, second = asked(1, TWO, ONE), asked(2, THREE, task="roles")
    answer(store, first, Completion("赤", usage=Usage(5, 6, 7)))
    answer(store, second, Completion("I will not.", "not with me", "refusal", Usage(8, 0, 0)))
    rows, done = written([first, second])
    assert rows == [
        {
            "request_key": f"{1:064x}",
            "task": "extract",
            "text": "赤",
            "finish_reason": "stop",
            "usage": {"prompt_tokens": 5, "completion_tokens": 6, "cached_tokens": 7},
            "sources": [ONE, TWO],
        },
        {
            "request_key": f"{2:064x}",
            "task": "roles",
            "text": None,
            "finish_reason": "refusal",
            "usage": {"prompt_tokens": 8, "completion_tokens": 0, "cached_tokens": 0},
            "sources": [THREE],
        },
    ]
    assert done == ResponseCounts(2, {})
    assert pq.read_schema(folder.responses).remove_metadata() == RESPONSES.schema


def test_equal_requests_are_one_row(
    store: Store, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(responses, "TABLE_BATCH_ROWS", 3)
    answer(store, asked(99, ONE), Completion("of nobody now"))
    questions = [asked(number % 10, f"https://board.example/{number % 20}") for number in range(40)]
    for question in questions[:10]:
        answer(store, question, Completion("{}"))
    rows, done = written(reversed(questions))
    assert [row["request_key"] for row in rows] == [f"{number:064x}" for number in range(10)]
    assert rows[3]["sources"] == ["https://board.example/13", "https://board.example/3"]
    assert done.rows == 10


@pytest.mark.parametrize(
    ("restricted", "kept"), [({"x"}, [1, 4]), ({"bluesky"}, [1, 2, 3]), ((), [1, 2, 3, 4, 5])]
)
def test_answers_about_restricted_posts_are_left_out(
    store: Store, written: Written, restricted: Iterable[str], kept: list[int]
) -> None:
    """Told by the address of a post or by what it says; without sources nobody can tell."""
    questions = [asked(1, ONE), asked(2, ONE, X), asked(3, TWO), asked(4, ONE, THREE), asked(5)]
    for question in questions:
        answer(store, question, Completion("{}"))
    places = {ONE: "web", TWO: "x", THREE: "bluesky"}
    rows, done = written(questions, places, restricted=frozenset(restricted))
    assert [int(row["request_key"], 16) for row in rows] == kept
    left_out = {LeftOut.MAY_QUOTE: 5 - len(kept)} if len(kept) < 5 else {}
    assert done == ResponseCounts(len(kept), left_out)


def test_a_damaged_answer_is_left_out(store: Store, written: Written) -> None:
    answer(store, question := asked(0, ONE), Completion("an answer"))
    store.close()
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        connection.execute("update answers set text = 'no answer'")
    assert written([question]) == ([], ResponseCounts(0, {LeftOut.UNFIT: 1}))


def test_what_no_reader_takes_is_left_out(store: Store, written: Written) -> None:
    unfit = ["half \ud83d", "a" * (MAX_TEXT_BYTES + 1), "赤" * (MAX_TEXT_BYTES // 3 + 1)]
    texts = ["", *unfit, "a" * MAX_TEXT_BYTES]
    questions = [asked(number, ONE) for number in range(len(texts) + 1)]
    for question, text in zip(questions, texts, strict=False):
        answer(store, question, Completion(text))
    answer(store, questions[-1], Completion("a" * (MAX_TEXT_BYTES + 1), "no power", "refusal"))
    rows, done = written(questions)
    assert [row["text"] for row in rows] == [texts[0], texts[-1], None]
    assert done == ResponseCounts(3, {LeftOut.UNFIT: 3})


def test_a_mistake_leaves_the_file_that_was_there(
    folder: RunFolder, store: Store, written: Written
) -> None:
    answer(store, asked(1, ONE), Completion("{}"))
    written([asked(1, ONE)])
    before = folder.responses.read_bytes()

    def broken() -> Iterator[Asked]:
        yield asked(1)
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        written(broken())
    assert folder.responses.read_bytes() == before


KEY = "ab" * 32
TOKENS = {"prompt_tokens": 7, "completion_tokens": 2, "cached_tokens": 0}


def row(**values: Any) -> Row:
    good = {
        "request_key": KEY,
        "task": "extract",
        "text": "{}",
        "finish_reason": "stop",
        "usage": TOKENS,
        "sources": ["https://board.example/1"],
    }
    return {**good, **values}


def file_of(path: Path, *rows: Row, schema: pa.Schema = RESPONSES.schema) -> Path:
    pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), path)
    return path


def refused(path: Path) -> str:
    with pytest.raises(ReleaseError) as raised:
        list(read_responses(path))
    assert repr(str(path)) in str(raised.value)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 1000
    return str(raised.value)


def test_rows_are_read_in_their_order(tmp_path: Path) -> None:
    keys = [f"{number:064x}" for number in range(BATCH_ROWS + 3)]
    path = file_of(
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


TEXTS = st.none() | st.sampled_from(["", "{}", '{"name": "red", "number": 3}', "Hm."]) | st.text()
ERRORS = st.none() | st.just("needs_model") | st.text()
ENDS = st.sampled_from(["stop", "length", "refusal", "error"]) | st.text()
COMPLETIONS = st.builds(Completion, TEXTS, ERRORS, ENDS)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(COMPLETIONS)
def test_what_is_recorded_is_read_as_it_was(tmp_path: Path, completion: Completion) -> None:
    assert is_recordable(completion)
    text = completion.text if completion.is_answer else None
    path = file_of(
        tmp_path / "a.parquet", row(text=text, finish_reason=get_finish_reason(completion))
    )
    ((_, read),) = read_responses(path)
    before, after = (parse(request("red"), one, b"\1") for one in (completion, read))
    assert read.text == text
    assert isinstance(after, Failure) == isinstance(before, Failure)
    if isinstance(before, Failure) and isinstance(after, Failure):
        assert after.reason is before.reason
    else:
        assert after == before


ANSWER_ALONE = "expected a text where finish_reason is 'stop'"
OTHER_SCHEMA = pa.schema([pa.field("request_key", pa.binary()), *list(RESPONSES.schema)[1:]])
STRANGE: dict[str, tuple[Row, str]] = {
    "no key": ({"request_key": None}, "row 0: request_key is 'None'"),
    "key": ({"request_key": "../" * 22}, "row 0: request_key is '../"),
    "no text": ({"text": None}, ANSWER_ALONE),
    "text of a failure": ({"finish_reason": "length"}, ANSWER_ALONE),
    "end": ({"finish_reason": "because\n\x1b[31m"}, r"row 0: finish_reason is 'because\n\x1b[31m'"),
    "tokens": ({"usage": {**TOKENS, "prompt_tokens": -1}}, "row 0: usage.prompt_tokens is '-1'"),
    "long": ({"text": "b" * (MAX_TEXT_BYTES + 1)}, f"a text of {MAX_TEXT_BYTES + 1} bytes"),
}


@pytest.mark.parametrize(("values", "said"), STRANGE.values(), ids=STRANGE)
def test_a_row_that_nobody_wrote_is_refused(tmp_path: Path, values: Row, said: str) -> None:
    assert said in refused(file_of(tmp_path / "a.parquet", row(**values)))


def test_a_file_that_nobody_wrote_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for schema in (OTHER_SCHEMA, pa.schema(list(RESPONSES.schema)[:-1])):
        pq.write_table(schema.empty_table(), tmp_path / "a.parquet")
        assert "expected request_key (string)" in refused(tmp_path / "a.parquet")
    rows = [row(request_key=f"{number:064x}", text=f"text {number}") for number in range(500)]
    path = file_of(tmp_path / "a.parquet", *rows)
    data = path.read_bytes()
    for damaged in (b"", data[: len(data) // 2], data[:4] + bytes(9000) + data[9004:]):
        path.write_bytes(damaged)
        assert "cannot be read (" in refused(path)
    monkeypatch.setattr(parquet, "MAX_GROUP_BYTES", 4000)
    file_of(path, *(row(text="c" * 5000) for _ in "ab"))
    assert re.search(r"row group 0 has [0-9,]+ bytes, expected at most 4,000", refused(path))


def test_a_text_in_every_row_is_not_multiplied(tmp_path: Path) -> None:
    texts = pa.DictionaryArray.from_arrays(
        pa.array([0] * 5000, pa.int32()), pa.array(["d" * (8 * MAX_TEXT_BYTES)])
    )
    table = pa.Table.from_pylist([row()] * 5000, schema=RESPONSES.schema)
    table = table.set_column(table.schema.get_field_index("text"), "text", texts)
    pq.write_table(table, tmp_path / "a.parquet", compression="zstd", store_schema=False)
    assert (tmp_path / "a.parquet").stat().st_size < 1 << 20
    usual = pa.default_memory_pool()
    counted = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(counted)
    try:
        assert f"a text of {8 * MAX_TEXT_BYTES} bytes" in refused(tmp_path / "a.parquet")
    finally:
        pa.set_memory_pool(usual)
    assert 8 * MAX_TEXT_BYTES <= counted.max_memory() < 10 * 8 * MAX_TEXT_BYTES


GIVEN = {
    b"\1" * 32: Completion("{}", usage=Usage(1, 2, 3)),
    b"\2" * 32: Completion(None, None, "refusal"),
    b"\3" * 32: Completion(None, "needs_model", "error"),
}


def test_what_is_recorded_is_found_for_any_number_of_keys() -> None:
    many = {n.to_bytes(32): Completion(str(n)) for n in range(9, 2 * MAX_VARIABLES + 10)}
    with RecordedAnswers() as recorded:
        recorded.add(GIVEN.items())
        recorded.add(many.items())
        assert recorded.get([*GIVEN, b"\4" * 32]) == GIVEN
        assert recorded.get([]) == {}
        assert recorded.get(list(many)) == many
        assert len(recorded) == len(GIVEN) + len(many)


@pytest.fixture
def carried(write: Write, configs: Configs) -> Callable[..., Release]:
    def release(*rows: Row) -> Release:
        answers = Dataset(pa.Table.from_pylist(list(rows), RESPONSES.features.arrow_schema))
        return write("carried", {**configs, "responses": answers}, 1)

    return release


def test_a_release_gives_its_answers_once_it_is_checked(
    carried: Callable[..., Release], configs: Configs
) -> None:
    """No other file of it has to be there."""
    with pytest.raises(ReleaseError, match=f"request_key '{KEY}' stands in two rows"):
        read_recorded_answers(carried(row(), row()).path)
    release = carried(row())
    for name in configs:
        for file in release.manifest.configs[name].files:
            (release.path / file.path).unlink()
    with read_recorded_answers(release.path) as recorded:
        assert len(recorded) == 1
    path = release.path / release.manifest.configs["responses"].files[0].path
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(ReleaseError, match="sha256 is"):
        read_recorded_answers(release.path)


def test_a_release_without_responses_is_told(release: Release) -> None:
    with pytest.raises(ReleaseError, match="carries no responses, only 'analysis'"):
        read_recorded_answers(release.path)
