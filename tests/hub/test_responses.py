"""The answers that a build read, as a table: those that its requests have now, and no others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset

from echo_hf.engines.base import Completion, Request, Usage
from echo_hf.hub import responses as module
from echo_hf.hub.responses import MOST_TEXT_BYTES, Responses, write_responses
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import LeftOut
from echo_hf.tables import POSTS, RESPONSES
from tests.stages_for_tests import request

ONE, TWO, THREE = "https://board.example/1", "https://board.example/2", "https://board.example/3"
X = "https://x.com/i/status/99"
ENGINE = {"kind": "scripted"}
Asked = tuple[bytes, Request]


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """An empty run."""
    return RunFolder(tmp_path / "run")


@pytest.fixture
def store(folder: RunFolder) -> Iterator[Store]:
    """Its store."""
    with closing(folder.store()) as opened:
        yield opened


def asked(number: int, *sources: str, task: str = "extract") -> Asked:
    """A request with its key, which is the number in 32 bytes."""
    return number.to_bytes(32), replace(request(str(number)), task=task, sources=sources)


def platforms(**places: str) -> Dataset:
    """Posts with these platforms, by the last part of their address."""
    rows = [
        {"url": f"https://board.example/{name}", "platform": place}
        for name, place in places.items()
    ]
    return Dataset(pa.Table.from_pylist(rows, schema=POSTS.features.arrow_schema))


def answer(store: Store, question: Asked, completion: Completion) -> None:
    """Keeps what came back for a request."""
    store.put(*question, completion, ENGINE)


def written(
    folder: RunFolder, store: Store, questions: Iterable[Asked], **more: Any
) -> tuple[list[dict[str, Any]], Responses]:
    """The rows that are written for these requests, and the counts."""
    posts = more.pop("posts", platforms())
    done = write_responses(folder, questions, store, posts, **more)
    return pq.read_table(folder.responses).to_pylist(), done


def test_a_row_says_what_came_back(folder: RunFolder, store: Store) -> None:
    """Key, task, text, tokens, and the posts in order; of a failure that it was one."""
    first, second = asked(1, TWO, ONE), asked(2, THREE, task="roles")
    answer(store, first, Completion("赤", usage=Usage(5, 6, 7)))
    answer(store, second, Completion("I will not.", "not with me", "refusal", Usage(8, 0, 0)))
    rows, done = written(folder, store, [first, second])
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
    assert done == Responses(2, {})
    assert pq.read_schema(folder.responses).remove_metadata() == RESPONSES.schema


def test_only_what_is_asked_now_is_there(folder: RunFolder, store: Store) -> None:
    """Answers of earlier posts stay in the run, and so do their addresses."""
    old, shared = asked(1, ONE), asked(2, ONE, TWO)
    answer(store, old, Completion("old"))
    answer(store, shared, Completion("shared"))
    rows, _ = written(folder, store, [asked(2, TWO), asked(3, TWO)])
    assert [(row["text"], row["sources"]) for row in rows] == [("shared", [TWO])]


def test_equal_requests_are_one_row(
    folder: RunFolder, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the posts of all of them, in the order of keys, however many there are."""
    monkeypatch.setattr(module, "TABLE_BATCH_ROWS", 3)
    questions = [asked(number % 10, f"https://board.example/{number % 20}") for number in range(40)]
    for question in questions[:10]:
        answer(store, question, Completion("{}"))
    rows, done = written(folder, store, reversed(questions))
    assert [row["request_key"] for row in rows] == [f"{number:064x}" for number in range(10)]
    assert rows[3]["sources"] == ["https://board.example/13", "https://board.example/3"]
    assert done.rows == 10


def test_the_same_answers_give_the_same_bytes(folder: RunFolder, store: Store) -> None:
    """Whatever the order in which they were given and asked."""
    questions = [asked(number, ONE) for number in range(50)]
    for question in reversed(questions):
        answer(store, question, Completion("{}"))
    written(folder, store, questions)
    before = folder.responses.read_bytes()
    written(folder, store, [*questions[25:], *questions])
    assert folder.responses.read_bytes() == before


def test_answers_about_restricted_posts_are_left_out(folder: RunFolder, store: Store) -> None:
    """By the address, or by what the post itself says; one such post is enough, or none named."""
    questions = [asked(1, ONE), asked(2, ONE, X), asked(3, TWO), asked(4, ONE, THREE), asked(5)]
    for question in questions:
        answer(store, question, Completion("{}"))
    posts = platforms(**{"1": "web", "2": "x", "3": "bluesky"})
    rows, done = written(folder, store, questions, posts=posts)
    assert [int(row["request_key"], 16) for row in rows] == [1, 4]
    assert done == Responses(2, {LeftOut.MAY_QUOTE: 3})
    rows, _ = written(folder, store, questions, posts=posts, restricted=frozenset({"bluesky"}))
    assert [int(row["request_key"], 16) for row in rows] == [1, 2, 3]
    rows, _ = written(folder, store, questions, posts=posts, restricted=frozenset())
    assert len(rows) == 5


def test_what_no_reader_takes_is_left_out(folder: RunFolder, store: Store) -> None:
    """Half a character and an endless text are counted, and spoil no other row."""
    texts = ["half \ud83d", "a" * (MOST_TEXT_BYTES + 1), "{}"]
    questions = [asked(number, ONE) for number in range(3)]
    for question, text in zip(questions, texts, strict=True):
        answer(store, question, Completion(text))
    rows, done = written(folder, store, questions)
    assert [row["text"] for row in rows] == ["{}"]
    assert done == Responses(1, {LeftOut.UNFIT: 2})


def test_without_answers_there_is_a_table_without_rows(folder: RunFolder, store: Store) -> None:
    """As of a run that rules answered."""
    rows, done = written(folder, store, [asked(1)])
    assert (rows, done) == ([], Responses(0, {}))


def test_a_mistake_leaves_the_file_that_was_there(folder: RunFolder, store: Store) -> None:
    """What is half written takes nothing's place."""
    answer(store, asked(1, ONE), Completion("{}"))
    written(folder, store, [asked(1, ONE)])
    before = folder.responses.read_bytes()

    def broken() -> Iterator[Asked]:
        yield asked(1)
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        written(folder, store, broken())
    assert folder.responses.read_bytes() == before
