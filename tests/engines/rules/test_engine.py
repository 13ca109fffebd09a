"""The rules engine as the rest of the toolkit sees it."""

from __future__ import annotations

import json
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import echo_hf
from echo_hf.collect.relevance import RelevanceAnswer
from echo_hf.engines.base import Completion, Engine, Request, make_engine
from echo_hf.engines.rules import RulesEngine
from echo_hf.errors import EngineError
from echo_hf.pipeline.answers import Failure, answers_of
from echo_hf.reasons import Failed

TARGET = {
    "name": "Lumen Image",
    "developer": "Northlight",
    "aliases": ["lumen-img", "L2"],
    "others": ["Paintbox", "Dream-Mill"],
    "chat_window": "Lumen Chat",
}


def asked(text: str, task: str = "relevance", answer: type[BaseModel] = RelevanceAnswer) -> Request:
    """A request about one post without pictures."""
    inputs: dict[str, Any] = {"text": text, "alt_texts": [], "pictures": 0, "target": TARGET}
    return Request(task, (), answer, 100, inputs)


PROMPT = asked("Lumen Image is great. Prompt: a fox in the snow, photo")
RUSSIAN = asked("Сегодня мы весь день гуляли в парке и кормили уток")


def test_is_an_engine_by_its_name() -> None:
    """`kind: rules` in a config gives this engine, and it keeps to the engine contract."""
    engine = make_engine("rules")
    assert isinstance(engine, RulesEngine)
    assert isinstance(engine, Engine)
    assert engine.stored is False


def test_takes_no_options() -> None:
    """An option that the engine does not have is refused, not ignored."""
    with pytest.raises(EngineError) as caught:
        make_engine("rules", temperature=0, model="secret/value")
    assert str(caught.value) == (
        "engine 'rules' takes no options, got ['model', 'temperature']: remove them"
    )


def test_answers_come_in_the_order_of_the_requests() -> None:
    """Completions carry the numbers of their requests, ascending."""
    with RulesEngine() as engine:
        completions = list(engine.stream([PROMPT, RUSSIAN, PROMPT]))
    assert [number for number, _ in completions] == [0, 1, 2]
    assert [completion.is_answer for _, completion in completions] == [True, False, True]


def test_takes_requests_lazily() -> None:
    """No request is drawn before the answer to the one before it has been taken."""
    drawn: list[int] = []

    def requests() -> Iterator[Request]:
        for number in range(3):
            drawn.append(number)
            yield PROMPT

    next(RulesEngine().stream(requests()))
    assert drawn == [0]


@pytest.mark.parametrize("request_", [RUSSIAN, asked("a picture", task="weather")])
def test_abstains_as_a_value(request_: Request) -> None:
    """An uncovered language and a task without rules give `needs_model`, not an exception."""
    ((_, completion),) = RulesEngine().stream([request_])
    assert completion == Completion(None, error="needs_model", finish_reason="error")


def test_answers_read_as_the_declared_shape() -> None:
    """What the engine says is read like a model's answer; an abstention becomes its reason."""
    read = answers_of(RulesEngine(), None).read([PROMPT, RUSSIAN])
    assert read[0] == RelevanceAnswer(score=5)
    assert isinstance(read[1], Failure)
    assert read[1].reason is Failed.NEEDS_MODEL


def test_same_answer_every_time() -> None:
    """Two engines, and one engine twice, give byte-equal answers."""
    once = list(RulesEngine().stream([PROMPT, RUSSIAN]))
    engine = RulesEngine()
    assert list(engine.stream([PROMPT, RUSSIAN])) == once
    assert list(engine.stream([PROMPT, RUSSIAN])) == once


def test_survives_pickling() -> None:
    """A pickled engine has the same signature and gives the same answers, used or unused."""
    engine = RulesEngine()
    fresh = pickle.loads(pickle.dumps(engine))  # noqa: S301 - our own bytes
    signature = engine.signature()
    used = pickle.loads(pickle.dumps(engine))  # noqa: S301 - our own bytes
    assert fresh.signature() == used.signature() == signature
    assert list(used.stream([PROMPT])) == list(engine.stream([PROMPT]))


def test_signature_is_plain_json() -> None:
    """The signature says the kind and a sha256, and nothing about the machine."""
    signature = RulesEngine().signature()
    assert json.loads(json.dumps(signature)) == signature
    assert sorted(signature) == ["kind", "source"]
    assert signature["kind"] == "rules"
    assert len(bytes.fromhex(signature["source"])) == 32


def test_signature_follows_the_rules_source(tmp_path: Path) -> None:
    """A word added to a list changes the signature; the same source elsewhere does not."""
    package = Path(echo_hf.__file__).parent
    shutil.copytree(
        package, tmp_path / "echo_hf", ignore=shutil.ignore_patterns("pictures", "__pycache__")
    )
    program = "from echo_hf.engines.rules import RulesEngine as R; print(R().signature()['source'])"

    def source() -> str:
        command = [sys.executable, "-c", program]
        return subprocess.run(
            command, cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout.strip()

    before = source()
    lists = tmp_path / "echo_hf" / "engines" / "rules" / "words.py"
    lists.write_text(lists.read_text("utf-8") + "\nMORE = words(en='gouache')\n", "utf-8")
    assert before == RulesEngine().signature()["source"]
    assert source() != before
