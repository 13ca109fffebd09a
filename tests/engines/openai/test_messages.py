"""Requests as servers read them."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from echo_hf.engines.base import ImageRef, Message, Request, Text
from echo_hf.engines.openai_messages import Dialect, body, estimated_tokens, read_options, rendered
from tests.stages_for_tests import Color, request

ENFORCED = Dialect("json_schema", "max_tokens")


def _body(asked: Request, dialect: Dialect = ENFORCED, **options: Any) -> dict[str, Any]:
    chosen = read_options({"model": "tiny", **options})
    return body(asked, rendered(asked, None), chosen, dialect)


def test_texts_and_images_keep_their_order(tmp_path: Path) -> None:
    """A message of one text is that text, any other is a list of parts."""
    file = tmp_path / "red.png"
    Image.new("RGB", (2, 3), "red").save(file)
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    image = ImageRef(digest, file)
    asked = Request(
        "t",
        (
            Message("system", (Text("Look."),)),
            Message("user", (Text("one"), image, Text("two"), image)),
            Message("assistant", (Text("Hm."),)),
        ),
        None,
        5,
    )
    url = "data:image/png;base64," + base64.b64encode(file.read_bytes()).decode()
    shown = {"type": "image_url", "image_url": {"url": url}}
    texts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    assert rendered(asked, None) == [
        {"role": "system", "content": "Look."},
        {"role": "user", "content": [texts[0], shown, texts[1], shown]},
        {"role": "assistant", "content": "Hm."},
    ]


def test_only_what_was_chosen_is_sent() -> None:
    """What is null is left to the server; the answer's bound and the model always go."""
    sent = _body(request("red", answer=None, max_tokens=7))  # type: ignore[arg-type]
    assert set(sent) == {"model", "messages", "max_tokens", "temperature", "extra_body"}
    assert (sent["model"], sent["max_tokens"], sent["temperature"]) == ("tiny", 7, 0.0)
    assert sent["extra_body"] is None
    chosen = {"temperature": None, "top_p": 0.5, "seed": 0, "extra_body": {"top_k": 4}}
    sent = _body(request("red"), Dialect("text", "max_completion_tokens"), **chosen)
    assert set(sent) == {
        "model",
        "messages",
        "max_completion_tokens",
        "top_p",
        "seed",
        "extra_body",
    }
    assert (sent["top_p"], sent["seed"], sent["extra_body"]) == (0.5, 0, {"top_k": 4})


@pytest.mark.parametrize("structured", ["json_schema", "json_object", "text"])
def test_a_request_without_a_shape_is_sent_without_one(structured: Any) -> None:
    """The raw text is the answer."""
    sent = _body(request("red", answer=None), Dialect(structured, "max_tokens"))  # type: ignore[arg-type]
    assert "response_format" not in sent
    assert [one["content"] for one in sent["messages"]] == ["Name a colour.", "red"]


@pytest.mark.parametrize("structured", ["json_schema", "json_object", "text"])
def test_the_form_of_a_text_is_told(structured: Any) -> None:
    """Few servers enforce a regular expression: it stands behind the instructions."""
    asked = replace(request("red", answer=None), regex="[1-9]")  # type: ignore[arg-type]
    sent = _body(asked, Dialect(structured, "max_tokens"))
    assert "response_format" not in sent
    instructions = sent["messages"][0]["content"]
    assert instructions.startswith("Name a colour.\n\n")
    assert instructions.endswith("\n[1-9]")


def test_a_shape_is_enforced_or_told() -> None:
    """By the server alone, by both, or in the instructions alone."""
    sent = {
        name: _body(request("red"), Dialect(name, "max_tokens"))  # type: ignore[arg-type]
        for name in ("json_schema", "json_object", "text")
    }
    assert sent["json_schema"]["response_format"]["json_schema"]["name"] == "Color"
    assert sent["json_object"]["response_format"] == {"type": "json_object"}
    assert "response_format" not in sent["text"]
    instructions = {name: one["messages"][0]["content"] for name, one in sent.items()}
    assert instructions["json_schema"] == "Name a colour."
    assert instructions["json_object"] == instructions["text"]
    assert instructions["text"].startswith("Name a colour.\n\n")
    assert "JSON" in instructions["text"]
    assert Color.__doc__ in instructions["text"]


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (Message("user", (Text("red"),)), [("system", True), ("user", False)]),
        (
            Message("system", (Text("a"), Text("b"))),
            [("system", True)],
        ),
    ],
    ids=["no instructions", "instructions in parts"],
)
def test_the_shape_is_told_in_the_first_system_message(
    first: Message, expected: list[tuple[str, bool]]
) -> None:
    """One is put before a conversation that has none; the user's words stay as they are."""
    asked = Request("t", (first,), Color, 5)
    messages = _body(asked, Dialect("text", "max_tokens"))["messages"]
    assert [(one["role"], "JSON Schema" in str(one["content"])) for one in messages] == expected


def test_rendering_twice_is_the_same() -> None:
    """Instructions that are told the shape are a copy."""
    asked = request("red")
    messages = rendered(asked, None)
    options = read_options({"model": "tiny"})
    for _ in range(2):
        body(asked, messages, options, Dialect("text", "max_tokens"))
    assert messages == rendered(asked, None)


def test_a_prompt_is_estimated_before_it_is_sent() -> None:
    """Four Latin characters a token, and a fixed number for an image."""
    # "Name a color." is 14 characters, "red" 3: 4 + 1 tokens; two images of 1280.
    assert estimated_tokens(request("red", images=["0" * 64] * 2)) == 5 + 2560
