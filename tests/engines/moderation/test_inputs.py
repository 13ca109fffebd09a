"""What of a request is moderated, and which requests cannot be."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import BaseModel

from echo_hf.engines.base import ImageRef, Message, Request, Text
from echo_hf.engines.moderation import ModerationEngine
from tests.engines.moderation.moderations import ask, image

ENGINE = ModerationEngine()


def test_texts_are_one_text_and_the_image_follows(tmp_path: Path) -> None:
    """All messages, in order, an empty line between them; the image's own bytes."""
    shown = image(tmp_path)
    messages = (
        Message("system", (Text("Is it harmful?"),)),
        Message("user", (Text("a red cat"), shown, Text("and a hat"))),
    )
    request = Request("safety", messages, None, 64)
    assert ENGINE.unfit(request) is None
    assert shown.file is not None
    data = base64.b64encode(shown.file.read_bytes()).decode()
    assert ENGINE.prepared(request) == [
        {"type": "text", "text": "Is it harmful?\n\na red cat\n\nand a hat"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
    ]


@pytest.mark.parametrize("words", [[], [""], [" \n", ""]], ids=str)
def test_an_image_alone_has_no_text(tmp_path: Path, words: list[str]) -> None:
    """A blank text is none: an endpoint refuses it."""
    request = ask(*words, image(tmp_path))
    assert ENGINE.unfit(request) is None
    assert [part["type"] for part in ENGINE.prepared(request)] == ["image_url"]


def test_text_alone_has_no_image() -> None:
    """It is sent to the letter."""
    assert ENGINE.prepared(ask(" a red cat\n")) == [{"type": "text", "text": " a red cat\n"}]


@pytest.mark.parametrize("many", [2, 5])
def test_more_than_one_image_cannot_be_moderated(many: int) -> None:
    """None of them is left out silently; the images are not even read."""
    said = ENGINE.unfit(ask("three cats", *[ImageRef(f"{number:064}") for number in range(many)]))
    assert said == (
        f"{many} images in one request, expected at most 1: a moderation endpoint takes no more; "
        "ask about each by itself"
    )


@pytest.mark.parametrize("parts", [[], [""], [" ", "\n"]], ids=str)
def test_nothing_cannot_be_moderated(parts: list[str]) -> None:
    """An empty request would come back as safe."""
    assert (ENGINE.unfit(ask(*parts)) or "").startswith("neither text nor an image")


@pytest.mark.parametrize("form", [{"answer": BaseModel}, {"regex": "safe|unsafe"}], ids=str)
def test_an_answer_of_a_declared_form_cannot_be_given(form: dict[str, object]) -> None:
    """The stage that asks is named, and what it needs."""
    said = ENGINE.unfit(replace(ask("a red cat"), **form))  # type: ignore[arg-type]
    assert (said or "").startswith("stage 'safety' wants an answer of a declared form, which a mod")
