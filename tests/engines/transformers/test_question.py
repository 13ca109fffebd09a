"""A request as a model is given it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from echo_hf.engines.base import ImageRef, Message, Request, Text
from echo_hf.engines.pixels import SentImage, sent_reference
from echo_hf.engines.transformers_model import SCHEMA_WORDS, instructed, question
from echo_hf.errors import ImageError
from tests.stages_for_tests import Color, request

IMAGES = {"a": (40, 30), "b": (20, 10)}


def _read(reference: ImageRef) -> SentImage:
    size = IMAGES[reference.sha256]
    return SentImage(Image.new("RGB", size), size)


def _shown(chat: list[dict[str, Any]]) -> str:
    return json.dumps(chat)


def test_parts_keep_their_order() -> None:
    """Text and images of each turn stand where the request has them."""
    turns = (
        Message("system", (Text("Look."),)),
        Message("user", (ImageRef("a"), Text("and"), ImageRef("b"))),
        Message("assistant", (Text("Well."),)),
    )
    made = question(Request("t", turns, None, 8), _shown, _read)
    assert json.loads(made.text) == [
        {"role": "system", "content": [{"type": "text", "text": "Look."}]},
        {
            "role": "user",
            "content": [{"type": "image"}, {"type": "text", "text": "and"}, {"type": "image"}],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "Well."}]},
    ]
    assert [image.size for image in made.images] == [(40, 30), (20, 10)]


def test_the_schema_follows_the_instructions() -> None:
    """The first turn ends with the very schema that the answer will be read by; no other does."""
    first, second = instructed(request("red", "Name a colour."))
    added = "".join(part.text for part in first.parts if isinstance(part, Text))
    start, _, schema = added.partition(f"\n\n{SCHEMA_WORDS}\n")
    assert start == "Name a colour."
    assert json.loads(schema) == Color.model_json_schema()
    assert second == request("red").messages[1]


def test_a_plain_text_answer_needs_no_schema() -> None:
    """The messages are those of the request."""
    asked = replace(request("red"), answer=None)
    assert instructed(asked) is asked.messages


def test_an_image_that_cannot_be_read_is_told() -> None:
    """The error is raised for its request, before it joins others."""

    def read(reference: ImageRef) -> SentImage:
        return sent_reference(reference, family=None)

    with pytest.raises(ImageError, match="has no file"):
        question(request("red", images=["a"]), _shown, read)
    asked = request("red")
    asked = replace(asked, messages=(Message("user", (ImageRef("a", Path("gone")),)),))
    with pytest.raises(ImageError, match="'gone' cannot be read"):
        question(asked, _shown, read)


def test_what_a_batch_must_have_in_common() -> None:
    """The token limit, whether a schema holds, and whether there are images; not how many."""

    def kind(**options: Any) -> Any:
        return question(request("red", **options), _shown, _read).kind

    plain = question(replace(request("red"), answer=None), _shown, _read).kind
    kinds = [kind(), kind(max_tokens=9), kind(images=["a"]), plain]
    assert len(set(kinds)) == 4
    assert kind(images=["a", "b"]) == kind(images=["a"])


def test_length_counts_pixels_before_characters() -> None:
    """1200 + 200 pixels, and the characters of the rendered conversation."""
    made = question(request("red", images=["a", "b"]), lambda _: "abc", _read)
    assert made.length == (1400, 3)


def test_draws_belong_to_the_question() -> None:
    """Another seed, text or image draws otherwise; a longer limit only goes on drawing."""

    def seed(line: str = "red", base: int = 0, **options: Any) -> int:
        return question(request(line, **options), _shown, _read).seed(base)

    different = [seed(), seed("blue"), seed(base=1), seed(images=["a"]), seed(images=["b"])]
    assert len(set(different)) == 5
    assert seed(max_tokens=99) == seed()
    assert all(0 <= one < 2**63 for one in different)
