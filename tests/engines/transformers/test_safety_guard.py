"""A safety guard of Llama 4's kind, whose attention has no chunks, asked through transformers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from echo_hf.engines.base import Completion, Engine, ImageRef, Request, make_engine
from tests.tiny_guard import LONGEST, TOKENS, asked, noise, prompt_of

pytestmark = pytest.mark.models


def _answers(engine: Engine, requests: Sequence[Request]) -> list[Completion]:
    answers = dict(engine.stream(requests))
    return [answers[number] for number in range(len(requests))]


@pytest.fixture(scope="module")
def engine(tiny_guard: Path) -> Iterator[Engine]:
    options = {"model": str(tiny_guard), "dtype": "float32", "max_pixels": None, "batch_size": 3}
    with make_engine("transformers", **options) as entered:
        yield entered


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> list[ImageRef]:
    folder = tmp_path_factory.mktemp("pictures")
    return [noise(folder, *size) for size in TOKENS]


@pytest.fixture(scope="module")
def full(tiny_guard: Path) -> Any:
    """The same model with attention to everything, as the checkpoint means it."""
    from transformers import AutoConfig, AutoModelForImageTextToText

    config = AutoConfig.from_pretrained(tiny_guard)
    text = config.text_config
    text.attention_chunk_size = 1
    text.layer_types = ["full_attention"] * text.num_hidden_layers
    return AutoModelForImageTextToText.from_pretrained(tiny_guard, config=config, dtype="float32")


def _said(model: Any, folder: Path, request: Request) -> tuple[str, int]:
    from transformers import AutoProcessor

    processor = AutoProcessor.from_pretrained(folder)
    (message,) = request.messages
    shown = [part.file for part in message.parts if isinstance(part, ImageRef)]
    words = "".join("<|image|>" if isinstance(p, ImageRef) else p.text for p in message.parts)
    images = [Image.open(file) for file in shown if file is not None] or None
    inputs = processor(text=[prompt_of(words)], images=images, return_tensors="pt")
    read = inputs["input_ids"].shape[1]
    written = model.generate(
        **inputs.to(model.dtype), max_new_tokens=request.max_tokens, do_sample=False
    )
    return processor.decode(written[0, read:], skip_special_tokens=True), read


def test_its_answers_are_those_of_full_attention(
    tiny_guard: Path, engine: Engine, full: Any, images: list[ImageRef]
) -> None:
    config = json.loads((tiny_guard / "config.json").read_text())
    assert config["text_config"]["attention_chunk_size"] is None
    requests = [
        asked("a red cat"),
        *[asked(image, "a red cat") for image in images],
        asked(*images[:3], "three pictures"),
        asked(images[1]),
        asked("a longer description " * 20),
    ]
    answers = _answers(engine, requests)
    assert len({answer.text for answer in answers}) == len(requests)
    for request, answer in zip(requests, answers, strict=True):
        assert (answer.text, answer.usage.prompt) == _said(full, tiny_guard, request)
        assert (answer.error, answer.usage.completion) == (None, 12)


def test_the_longest_request_is_answered_and_a_longer_one_is_told(
    tiny_guard: Path, engine: Engine, full: Any
) -> None:
    words = "a red cat " * LONGEST
    room = LONGEST - len(prompt_of("")) - 30
    longest, longer = (asked(words[:length], max_tokens=30) for length in (room, room + 1))
    answers = _answers(engine, [longest, longer, asked("a red cat")])
    assert (answers[0].text, LONGEST - 30) == _said(full, tiny_guard, longest)
    assert answers[1] == Completion(
        None,
        f"a prompt of {LONGEST - 29} tokens and an answer of up to 30 are more than the model's "
        f"{LONGEST}: lower max_pixels or the stage's context",
        "error",
    )
    assert answers[2].error is None
