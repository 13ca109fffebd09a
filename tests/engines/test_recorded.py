"""Answers from a file: which request each answers, and what a file must not hold."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from echo_hf.engines.base import ABSTAINED, Completion, Message, Request, Text, make_engine
from echo_hf.errors import EchoError

POST = "https://board.example/1"


def recorded(folder: Path, *lines: object) -> Path:
    path = folder / "answers.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)) + "\n\n", "utf-8")
    return path


def said(path: Path, task: str, row: str, part: int = 0) -> Completion:
    asked = Request(task, (Message("user", (Text("?"),)),), None, 8, row=row, part=part)
    with make_engine("recorded", path=str(path)) as engine:
        ((_, completion),) = engine.stream([asked])
    return completion


def test_an_answer_belongs_to_a_stage_and_a_row(tmp_path: Path) -> None:
    of_post = {"stage": "relevance", "row": POST, "answer": {"score": 5, "note": "été"}}
    of_guard = {"stage": "safety", "row": "a", "answer": "unsafe S1", "about": "a quarrel"}
    path = recorded(tmp_path, of_post, of_guard)

    assert json.loads(said(path, "relevance", POST).text or "") == of_post["answer"]
    assert said(path, "safety", "a") == Completion("unsafe S1")
    assert said(path, "extract", POST) == said(path, "relevance", "b") == ABSTAINED
    assert ABSTAINED.error == "needs_model"


def test_a_part_of_a_row_may_have_an_answer_of_its_own(tmp_path: Path) -> None:
    every = {"stage": "safety", "row": "a", "answer": "safe"}
    path = recorded(tmp_path, {**every, "part": 1, "answer": "unsafe S1"}, every)
    assert [said(path, "safety", "a", part).text for part in range(3)] == [
        "safe",
        "unsafe S1",
        "safe",
    ]


def test_the_signature_is_that_of_the_file(tmp_path: Path) -> None:
    path = recorded(tmp_path, {"stage": "relevance", "row": POST, "answer": {"score": 5}})
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    engine = make_engine("recorded", path=path)
    assert engine.signature() == {"kind": "recorded", "sha256": sha256}
    assert not engine.stored


LINE = {"stage": "safety", "row": "a", "answer": "safe"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"row": "a", "answer": "safe"}, "answers.jsonl:2: stage is missing"),
        ({**LINE, "anwser": 1}, "answers.jsonl:2: unknown key 'anwser'; did you mean 'answer'?"),
        ({**LINE, "part": -1}, "answers.jsonl:2: part is -1"),
        ({**LINE, "stage": "savety"}, "unknown stage 'savety'; did you mean 'safety'?"),
        (LINE, "answers.jsonl:2: row 'a' has an answer above: keep one of them"),
        ("safe", "answers.jsonl:2: expected a mapping"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: object, message: str) -> None:
    path = recorded(tmp_path, LINE, line)
    with pytest.raises(EchoError) as caught:
        make_engine("recorded", path=path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_has_to_be_json(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    for content, message in ((b'{"stage":', r"jsonl:1: .*JSON"), (b"\xff", "cannot read")):
        path.write_bytes(content)
        with pytest.raises(EchoError, match=message) as caught:
            make_engine("recorded", path=path)
        assert "\n" not in str(caught.value)
    with pytest.raises(EchoError, match="No such file"):
        make_engine("recorded", path=tmp_path / "none.jsonl")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "neither of path and source"),
        ({"path": "a", "source": "quickstart"}, "both path and source"),
        ({"source": "quikstart"}, "did you mean 'quickstart'?"),
        ({"paht": "a"}, "does not take ['paht']"),
    ],
)
def test_options_name_one_file(options: dict[str, str], message: str) -> None:
    with pytest.raises(EchoError) as caught:
        make_engine("recorded", **options)
    assert message in str(caught.value)
