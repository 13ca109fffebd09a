"""What every kind of engine keeps to, each with a model, a server or a file of its own."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle, islice
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from PIL import Image
from pydantic import BaseModel, Field

from echo_hf.collect.relevance import RelevanceAnswer
from echo_hf.engines.base import (
    ABSTAINED,
    Completion,
    Engine,
    ImageRef,
    Message,
    Request,
    Text,
    abstains,
    make_engine,
)
from echo_hf.errors import EngineError
from echo_hf.pipeline.answers import Failure, parse
from tests.engines.openai.loopback_server import Answer, LoopbackServer, completion, running
from tests.errors_for_tests import said_by
from tests.stages_for_tests import request


class Shade(BaseModel):
    """An answer that any model can be held to."""

    name: Literal["red", "tan", "sky"]
    number: Annotated[int, Field(ge=0, le=9)]


@dataclass
class Case:
    """An engine of one kind with what can be asked of it.

    Attributes:
        engine: The engine.
        good: Requests with an answer each, told apart by `said`.
        bad: Requests that fail by themselves, with words of the error.
        said: What an answer shows of the request that it belongs to.
    """

    engine: Engine
    good: Sequence[Request]
    bad: dict[str, Request] = field(default_factory=dict)
    said: Callable[[Completion], Any] = lambda done: done.text


def image(folder: Path, red: int, size: tuple[int, int] = (60, 40)) -> ImageRef:
    file = folder / f"{red}.png"
    Image.new("RGB", size, (red, 0, 0)).save(file)
    return ImageRef(hashlib.sha256(file.read_bytes()).hexdigest(), file)


def ask(*parts: Text | ImageRef | str) -> Request:
    said = tuple(Text(part) if isinstance(part, str) else part for part in parts)
    return Request("look", (Message("user", said),), None, 60)


def shades(count: int = 6) -> list[Request]:
    """Requests of different lengths, so that an answer under another number would show."""
    lines = ["x" * (1 + number) for number in range(count)]
    return [request(line, answer=Shade, max_tokens=60) for line in lines]


def of_images(folder: Path) -> dict[str, Request]:
    (folder / "words").write_bytes(b"just words")
    words = hashlib.sha256(b"just words").hexdigest()
    return {
        "has no file": ask(ImageRef("0" * 64), "x"),
        "image 'gone' cannot be read": ask(ImageRef("0" * 64, folder / "gone"), "x"),
        "has changed": ask(ImageRef("0" * 64, folder / "words"), "x"),
        "image 'words': it is not an image": ask(ImageRef(words, folder / "words"), "x"),
    }


def recorded(folder: Path, _: Any) -> Case:
    rows = [f"r{number}" for number in range(6)]
    lines = [
        {"stage": "extract", "row": row, "answer": {"name": "red", "number": number}}
        for number, row in enumerate(rows)
    ]
    file = folder / "answers.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    good = [replace(one, task="extract", row=row) for one, row in zip(shades(), rows, strict=True)]
    return Case(make_engine("recorded", path=str(file)), good)


def rules(_: Path, __: Any) -> Case:
    target = {"name": "Lumen Image", "aliases": ["lumen"], "others": ["Paintbox 3"]}
    texts = ("a picture by Lumen Image", "Prompt: a fox, photo", "Paintbox 3 edits a photo")
    fields = [{"text": one, "alt_texts": [], "pictures": 0, "target": target} for one in texts]
    good = [Request("relevance", (), RelevanceAnswer, 60, inputs=one) for one in fields]
    return Case(make_engine("rules"), good)


def openai(folder: Path, server: LoopbackServer) -> Case:
    server.behave = lambda asked: completion(
        json.dumps({"name": "red", "number": len(asked.line)}) if "x" in asked.line else "fine"
    )
    engine = make_engine("openai", model="m", base_url=server.url, backoff_s=0.001)
    return Case(engine, shades(), of_images(folder) | {"UnicodeEncodeError": ask("\ud800")})


def moderation(folder: Path, server: LoopbackServer) -> Case:
    def behave(asked: Any) -> Answer:
        words = len(asked.body["input"][0].get("text", ""))
        result = {"flagged": False, "categories": {}, "category_scores": {"hate": words / 100}}
        return Answer({"model": "m", "results": [result]})

    server.behave = behave
    two = ask("two cats", image(folder, 1), image(folder, 2))
    no_form = "stage 'look' wants an answer of a declared form, which a moderation endpoint does"
    bad = {
        "2 images and 8 characters in one request: a moderation endpoint takes one": two,
        no_form: replace(ask("a cat"), answer=Shade),
        f"{no_form} not": replace(ask("a cat"), regex="safe"),
        "0 images and 4 characters in one request": ask(" ", "\n"),
        "UnicodeEncodeError": ask("\ud800"),
    }
    engine = make_engine("moderation", base_url=server.url, backoff_s=0.001)
    return Case(engine, [ask("x" * n) for n in range(1, 7)], of_images(folder) | bad)


def pooling(folder: Path, server: LoopbackServer) -> Case:
    def behave(asked: Any) -> Answer:
        content = asked.body["messages"][0]["content"]
        return Answer({"data": [{"probs": [len(content[0].get("text", "")) / 8]}]})

    server.behave = behave
    in_words = "stage 'look' wants an answer in words, and engine 'pooling' gives a number"
    bad = {in_words: replace(ask("a cat"), answer=Shade), "UnicodeEncodeError": ask("\ud800")}
    engine = make_engine("pooling", model="m", base_url=server.url, backoff_s=0.001)
    return Case(engine, [ask("x" * n) for n in range(1, 7)], of_images(folder) | bad)


def scalar_head(folder: Path, tiny: Path) -> Case:
    from tests.tiny_models import write_tiny_gemma_scorer

    scorer = write_tiny_gemma_scorer(folder / "scorer")
    bad = {
        "wants an answer in words, and engine 'scalar_head' gives a number": replace(
            ask("a cat"), answer=Shade
        ),
        " tokens and an answer of up to 0 are more than the model's": ask("y" * 32_770),
    }
    engine = make_engine("scalar_head", model=str(scorer), dtype="float32", batch_size=1)
    return Case(engine, [ask("x" * n) for n in range(1, 7)], of_images(folder) | bad)


def transformers(folder: Path, tiny: Path) -> Case:
    options = {"dtype": "float32", "max_pixels": 50_176, "batch_size": 3}
    bad = {
        "": ask("half a \ud800 pair"),
        " tokens and an answer of up to 60 are more than the model's": ask("y" * 32_765),
        "Iteration": ask("<|image_pad|>", image(folder, 1)),
    }
    engine = make_engine("transformers", model=str(tiny), **options)
    return Case(engine, shades(), of_images(folder) | bad)


def vllm(folder: Path, tiny: Path) -> Case:
    from tests.engines.vllm.fill_posts import tiny_engine

    good = image(folder, 1)
    bad = {
        "At most 4 image(s)": ask(*[good] * 5, "?"),
        "TextEncodeInput": ask("\ud83e"),
        "maximum context length is 32768": ask("x" * 40_000),
    }
    engine = tiny_engine(tiny)
    return Case(engine, shades(), of_images(folder) | bad, lambda done: done.usage.prompt)


KINDS = [
    recorded,
    rules,
    openai,
    moderation,
    pooling,
    pytest.param(scalar_head, marks=pytest.mark.models),
    pytest.param(transformers, marks=pytest.mark.models),
    pytest.param(vllm, marks=pytest.mark.vllm),
]
# Warnings of the libraries that run a model.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind.__name__)
def case(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Case]:
    kind, folder = request.param, tmp_path_factory.mktemp(request.param.__name__)
    if kind is vllm:
        pytest.importorskip("vllm", reason="needs vLLM: make test-vllm")
    needed = request.getfixturevalue("tiny") if kind in (scalar_head, transformers, vllm) else None
    with running() as server:
        made: Case = kind(folder, needed or server)
        with made.engine:
            yield made


def test_each_request_is_answered_once_under_its_number(case: Case) -> None:
    taken: list[int] = []

    def requests() -> Iterator[Request]:
        for number, one in enumerate(case.good):
            taken.append(number)
            yield one

    assert isinstance(case.engine, Engine)
    assert list(case.engine.stream([])) == []
    found = list(case.engine.stream(requests()))
    assert sorted(number for number, _ in found) == taken == list(range(len(case.good)))
    read = [parse(case.good[number], done, b"") for number, done in found]
    assert not any(isinstance(one, Failure) for one in read)  # each has the declared shape
    alone = [case.said(next(case.engine.stream([one]))[1]) for one in case.good]
    assert [case.said(done) for _, done in sorted(found, key=lambda one: one[0])] == alone


def test_the_signature_is_plain_and_always_the_same(case: Case) -> None:
    before = dict(case.engine.signature())
    list(case.engine.stream(case.good[:1]))
    assert case.engine.signature() == before == json.loads(json.dumps(before))
    assert "no_such_option" in said_by(EngineError, make_engine, before["kind"], no_such_option=1)


def test_only_who_is_no_model_abstains(case: Case) -> None:
    silent = abstains(case.engine.signature())
    assert case.engine.stored is not silent
    if silent:  # and travels with the stage that has it
        copy = pickle.loads(pickle.dumps(case.engine))  # noqa: S301 - our own bytes
        assert copy.signature() == case.engine.signature()
    unknown = replace(case.good[0], task="weather", row="none")
    ((_, done),) = case.engine.stream([unknown])
    assert (done == ABSTAINED) is silent


def test_a_bad_request_fails_alone_and_in_one_line(case: Case) -> None:
    mixed = [one for wrong in case.bad.values() for one in (wrong, case.good[0])]
    answers = dict(case.engine.stream(mixed))
    assert len(answers) == len(mixed)
    for number, words in enumerate(case.bad):
        failed = answers[2 * number]
        assert (failed.text, failed.finish_reason) == (None, "error")
        assert words in (failed.error or "")
        assert "\n" not in (failed.error or "")
        assert answers[2 * number + 1].is_answer


def test_an_error_in_the_requests_passes_through(case: Case) -> None:
    def requests() -> Iterator[Request]:
        yield case.good[0]
        raise LookupError("the rows are gone")

    with pytest.raises(LookupError, match="the rows are gone"):
        list(case.engine.stream(requests()))
    assert len(list(case.engine.stream(case.good))) == len(case.good)


def test_requests_are_taken_as_they_are_answered(case: Case) -> None:
    taken: list[Request] = []

    def endless() -> Iterator[Request]:
        for one in cycle(case.good):
            taken.append(one)
            yield one

    answers = case.engine.stream(endless())
    assert taken == []
    assert len(list(islice(answers, 5))) == 5
    assert len(taken) <= 40
    answers.close()  # type: ignore[attr-defined]


def test_a_left_engine_ends_its_streams_and_may_be_entered_again(case: Case) -> None:
    with case.engine:
        unread = case.engine.stream(case.good)
        next(unread)
    assert not case.engine.stored or list(unread) == []
    with case.engine:
        assert len(list(case.engine.stream(case.good))) == len(case.good)
