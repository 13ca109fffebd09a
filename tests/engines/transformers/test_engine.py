"""The engine with a real model: tiny, random, and asked through the real processor."""

from __future__ import annotations

import gc
import json
import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal
from weakref import ref

import pytest
from PIL import Image
from pydantic import BaseModel, Field

from echo_hf.engines.base import Completion, Engine, ImageRef, Message, Request, Text, make_engine
from tests.tiny_guard import noise

pytestmark = pytest.mark.models

BUDGET = 50_176
INSTRUCTIONS = Message("system", (Text("Say something about what you see."),))


class Verdict(BaseModel):
    """What a judge answers."""

    kind: Literal["crop", "colour", "style"]
    score: Annotated[int, Field(ge=1, le=5)]


def _ask(
    *parts: ImageRef | str, answer: type[BaseModel] | None = None, max_tokens: int = 24
) -> Request:
    said = tuple(Text(part) if isinstance(part, str) else part for part in parts)
    return Request("judge", (INSTRUCTIONS, Message("user", said)), answer, max_tokens)


def _engine(model: Path, **options: Any) -> Engine:
    return make_engine(
        "transformers", **{"model": str(model), "dtype": "float32", "max_pixels": BUDGET} | options
    )


def _answers(engine: Engine, requests: Sequence[Request]) -> list[Completion]:
    answers = dict(engine.stream(requests))
    return [answers[number] for number in range(len(requests))]


@pytest.fixture(scope="module")
def engine(tiny: Path) -> Iterator[Engine]:
    with _engine(tiny, batch_size=3) as entered:
        yield entered


@pytest.fixture(scope="module")
def requests(tmp_path_factory: pytest.TempPathFactory) -> list[Request]:
    folder = tmp_path_factory.mktemp("pictures")
    images = [noise(folder, *size) for size in [(90, 60), (400, 300), (56, 56), (10, 30)]]
    return [
        _ask("red"),
        _ask("a much longer question " * 12),
        _ask(images[1], "a large one"),
        _ask(images[1], images[0], images[2], "three"),
        _ask("青い空", max_tokens=7),
        _ask(images[3], max_tokens=7),
        _ask("blue"),
    ]


@dataclass
class Bare:
    model: Any
    processor: Any

    @classmethod
    def loaded(cls, folder: Path, dtype: str = "float32", **sizes: Any) -> Bare:
        from transformers import AutoModelForImageTextToText, AutoProcessor

        return cls(
            AutoModelForImageTextToText.from_pretrained(folder, dtype=dtype),
            AutoProcessor.from_pretrained(folder, **sizes),
        )

    def answer(self, asked: Request) -> tuple[str, int, int]:
        chat = [
            {"role": message.role, "content": [self._part(part) for part in message.parts]}
            for message in asked.messages
        ]
        inputs = self.processor.apply_chat_template(
            chat, add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt"
        ).to(self.model.dtype)
        read = inputs["input_ids"].shape[1]
        written = self.model.generate(**inputs, max_new_tokens=asked.max_tokens, do_sample=False)
        text = self.processor.decode(written[0, read:], skip_special_tokens=True)
        return text, read, written.shape[1] - read

    @staticmethod
    def _part(part: Text | ImageRef) -> dict[str, Any]:
        if isinstance(part, Text):
            return {"type": "text", "text": part.text}
        assert part.file is not None
        return {"type": "image", "image": Image.open(part.file)}


def test_answers_are_those_of_transformers_alone(tiny: Path, engine: Engine, requests: Any) -> None:
    bare = Bare.loaded(tiny, size={"shortest_edge": 3136, "longest_edge": BUDGET})
    expected = _answers(engine, requests)
    for asked, completion in zip(requests, expected, strict=True):
        found = (completion.text, completion.usage.prompt, completion.usage.completion)
        assert found == bare.answer(asked)
        assert (completion.error, completion.cost_usd, completion.usage.cached) == (None, None, 0)
    assert len({completion.text for completion in expected}) == len(requests)
    with _engine(tiny, batch_size=10) as other:  # the size of batches changes no answer
        assert _answers(other, requests) == expected


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_without_a_rule_it_resizes(tiny_llava: Path, requests: list[Request], dtype: str) -> None:
    with _engine(tiny_llava, dtype=dtype, batch_size=1, max_pixels=None) as engine:
        assert engine.signature()["pixels"] == [1, 1, None]
        bare = Bare.loaded(tiny_llava, dtype)
        expected = [bare.answer(asked)[0] for asked in requests]
        assert [completion.text for completion in _answers(engine, requests)] == expected


def test_answers_are_held_to_their_form_and_end_or_are_cut(tiny: Path, engine: Engine) -> None:
    form = replace(_ask("rate", max_tokens=60), regex=r"\[\[[1-9]\]\]")
    asked = _ask("1", answer=Verdict, max_tokens=99)
    answer, held, cut = _answers(engine, [asked, form, replace(asked, max_tokens=9)])
    read = Verdict.model_validate_json(answer.text or "")
    assert answer.text == json.dumps(read.model_dump())  # tightly
    assert (answer.finish_reason, answer.usage.completion) == ("stop", len(answer.text) + 1)
    assert re.fullmatch(r"\[\[[1-9]\]\]", held.text or "")
    assert (cut.finish_reason, cut.usage.completion) == ("length", 9)
    with _engine(tiny, structured="none") as free:  # the schema is only told
        (said,) = _answers(free, [asked])
        assert (said.usage.prompt, said.text == answer.text) == (answer.usage.prompt, False)
        assert free.signature()["structured"] is None
        assert engine.signature()["structured"] == "xgrammar"


def test_draws_are_repeated_and_stay_with_their_request(tiny: Path, requests: Any) -> None:
    warm = {"temperature": 1.5, "top_p": 0.95}
    with _engine(tiny, **warm, batch_size=4) as one, _engine(tiny, **warm, batch_size=1) as alone:
        drawn = _answers(one, requests)
        assert drawn == _answers(alone, requests)
    with _engine(tiny, **warm, seed=1) as other, _engine(tiny) as cold:
        others = (_answers(other, requests), _answers(cold, requests))
    for answers in others:
        assert all(a.text != b.text for a, b in zip(drawn, answers, strict=True))


def test_leaving_the_context_frees_the_model(tiny: Path) -> None:
    engine = _engine(tiny, batch_size=1)
    with engine:
        list(engine.stream([_ask("red")]))
        model = ref(engine._loaded)  # type: ignore[attr-defined]
    gc.collect()
    assert model() is None


def test_only_options_and_the_signature_decide(
    tiny: Path, engine: Engine, requests: list[Request], tmp_path: Path
) -> None:
    """Neither penalties of the checkpoint, nor its template where another one is given."""
    folder = shutil.copytree(tiny, tmp_path / "model")
    settings = json.loads((folder / "generation_config.json").read_text())
    settings |= {"repetition_penalty": 9.0, "do_sample": True, "temperature": 2.0, "top_k": 3}
    (folder / "generation_config.json").write_text(json.dumps(settings))
    with _engine(folder) as other:
        assert _answers(other, requests[:3]) == _answers(engine, requests[:3])
    template = tmp_path / "short.jinja"
    template.write_text("{{ messages[1]['content'][0]['text'] + ending }}")
    changed = {"chat_template": str(template), "chat_template_kwargs": {"ending": "!!"}}
    with _engine(tiny, **changed) as other:
        assert _answers(other, [_ask("abcde")])[0].usage.prompt == 7
