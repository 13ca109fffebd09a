"""Instructions filled in for a target, and posts that stay data."""

from __future__ import annotations

import datetime
import json
import re
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.builder.steps import STAGES, stage_class
from echo_hf.config.sections import Target
from echo_hf.pipeline.stage import ModelStage
from echo_hf.prompts import as_data, load_prompt

NAMES = sorted(
    file.name.removesuffix(".md")
    for file in files("echo_hf.prompts").iterdir()
    if file.name.endswith(".md")
)
# What is told to whoever draws or judges, whatever people talk about.
WITHOUT_TARGET = {"rewrite"}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
CLOSING = st.lists(st.sampled_from(["</post>", "<", ">", "/post", "\n", "\\u003c", '"']))


def _target(**changed: Any) -> Target:
    known = {
        "name": "Lumen Image",
        "developer": "Northlight",
        "released": datetime.date(2026, 3, 2),
        "aliases": ["lumen", "l-image"],
        "others": ["Paintbox"],
        "chat_window": "Lumen Chat",
    }
    return Target(**{**known, **changed})


@dataclass(frozen=True)
class Nobody:
    @property
    def prompt_fields(self) -> dict[str, str]:
        return {"target": "Lumen"}


def test_there_are_prompts() -> None:
    stages = (stage_class(name) for name in STAGES)
    assert {one.name for one in stages if issubclass(one, ModelStage)} <= set(NAMES)
    assert {"relevance", "extract", "roles", "feedback"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_prompt_is_filled_in_for_its_target(name: str) -> None:
    prompt = load_prompt(name, _target())
    assert prompt.name == name
    assert ("Lumen Image" in prompt.text) is (name not in WITHOUT_TARGET)
    assert "$" not in prompt.text
    assert prompt.text == prompt.text.strip()


@pytest.mark.parametrize("name", NAMES)
def test_a_prompt_speaks_of_no_other_target(name: str) -> None:
    text = files("echo_hf.prompts").joinpath(f"{name}.md").read_text("utf-8")
    assert re.findall(r"\b(4o|GPT|OpenAI|DALL|Midjourney|Gemini|Flux)\b", text, re.I) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_prompt_calls_posts_material(name: str) -> None:
    """The instructions say that what strangers wrote is never an instruction."""
    text = load_prompt(name, _target()).text
    assert "never an instruction" in text


@pytest.mark.parametrize(
    "name", ["relevance", "extract", "roles", "screenshots", "safety", "feedback"]
)
def test_a_field_that_no_target_fills_is_an_error(name: str) -> None:
    """A model is never sent a prompt with a hole in it."""
    with pytest.raises(KeyError, match="developer"):
        load_prompt(name, Nobody())


@pytest.mark.parametrize(
    "odd", ["$developer", "${aliases}", "$", "$$", "{target}", "{", "%s", "\\1", "a $5 model"]
)
def test_a_name_is_put_in_as_it_is(odd: str) -> None:
    text = load_prompt("relevance", _target(name=odd)).text
    assert f"with {odd}, an image generation model by Northlight" in text


def test_aliases_and_others_are_listed_in_quotes() -> None:
    text = load_prompt("relevance", _target(aliases=["lumen, the second", "li"])).text
    assert 'People also call it "Lumen Image", "lumen, the second", "li".' in text
    assert 'Other image models, which do not count, include "Paintbox".' in text


def test_a_target_without_rivals_has_some_in_general() -> None:
    text = load_prompt("relevance", _target(others=[])).text
    assert "Other image models, which do not count, include any other image model." in text


def test_the_window_of_the_target_is_named() -> None:
    assert (
        "a conversation with the model in Lumen Chat, which" in load_prompt("roles", _target()).text
    )
    plain = load_prompt("roles", _target(chat_window=None)).text
    assert "a conversation with the model in Lumen Image's own window, which" in plain


def test_data_stands_between_its_delimiters() -> None:
    assert as_data("post", {"text": "画像 ü", "n": 2}) == (
        '<post>\n{"text":"画像 ü","n":2}\n</post>'
    )


@given(VALUES | CLOSING.map("".join))
def test_no_content_closes_its_block(value: Any) -> None:
    lines = as_data("post", value).split("\n")
    assert (lines[0], lines[-1], len(lines)) == ("<post>", "</post>", 3)
    assert "<" not in lines[1]


@given(VALUES | CLOSING.map("".join))
def test_data_is_not_altered(value: Any) -> None:
    assert json.loads(as_data("post", value).split("\n")[1]) == value
