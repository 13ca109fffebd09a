"""Answers from a file: which request each answers, and what a file must not hold."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from echo_hf.engines.base import ABSTAINED, Completion, Message, Request, Text, make_engine
from echo_hf.errors import EchoError
from tests.errors_for_tests import said_by

POST = "https://board.example/1"
LINE = {"stage": "safety", "row": "a", "answer": "safe"}


def recorded(folder: Path, *lines: object) -> Path:
    path = folder / "answers.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)) + "\n\n", "utf-8")
    return path


def said(path: Path, task: str, row: str, part: int = 0) -> Completion:
    asked = Request(task, (Message("user", (Text("?"),)),), None, 8, row=row, part=part)
    ((_, completion),) = make_engine("recorded", path=str(path)).stream([asked])
    return completion


def test_an_answer_belongs_to_a_stage_a_row_and_maybe_a_part(tmp_path: Path) -> None:
    of_post = {"stage": "relevance", "row": POST, "answer": {"score": 5, "note": "été"}}
    of_part = {**LINE, "part": 1, "answer": "unsafe S1", "about": "a quarrel"}
    path = recorded(tmp_path, of_post, of_part, LINE)
    assert json.loads(said(path, "relevance", POST).text or "") == of_post["answer"]
    parts = [said(path, "safety", "a", part) for part in range(3)]
    assert parts == [Completion("safe"), Completion("unsafe S1"), Completion("safe")]
    assert said(path, "extract", POST) == said(path, "relevance", "b") == ABSTAINED
    assert ABSTAINED.error == "needs_model"
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    signature = make_engine("recorded", path=path).signature()
    assert signature == {"kind": "recorded", "sha256": sha256}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"row": "a", "answer": "safe"}, "answers.jsonl:2: stage is missing"),
        ({**LINE, "anwser": 1}, "answers.jsonl:2: unknown key 'anwser'; did you mean 'answer'?"),
        ({**LINE, "stage": "savety"}, "answers.jsonl:2: stage is 'savety': expected a stage that"),
        (LINE, "answers.jsonl:2: row 'a' has an answer above: keep one of them"),
        ("safe", "answers.jsonl:2: expected a mapping"),
        (b'{"stage":', "answers.jsonl:2: "),
        (b"\xff", "cannot read"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: object, message: str) -> None:
    path = recorded(tmp_path, LINE)
    more = line if isinstance(line, bytes) else json.dumps(line).encode()
    path.write_bytes(path.read_bytes().strip() + b"\n" + more)
    assert message in said_by(EchoError, make_engine, "recorded", path=path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "has path None and source None: expected {kind: recorded, path: answers.jsonl}, or"),
        ({"path": "a", "source": "quickstart"}, "has path 'a' and source 'quickstart': expected"),
        ({"source": "quikstart"}, "or source: quickstart instead of path"),
        ({"path": "/no/such/answers.jsonl"}, "No such file"),
    ],
)
def test_options_name_one_file(options: dict[str, Any], message: str) -> None:
    with pytest.raises(EchoError) as caught:
        make_engine("recorded", **options)
    assert message in str(caught.value)
