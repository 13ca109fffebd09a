"""Instructions filled in for a target, posts that stay data, and what models are asked in all."""

from __future__ import annotations

import dataclasses
import datetime
import json
import re
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.config.sections import BUILT_IN_STAGES as ALL_STAGES
from echo_hf.config.sections import Target
from echo_hf.pipeline.answer_store import compute_request_keys
from echo_hf.pipeline.stage import ModelStage
from echo_hf.pipeline.stage_order import load_stage_class
from echo_hf.prompts import fill_prompt, load_prompt, quote_as_data
from tests.golden_requests import FOLDER, OTHERS, STAGES, golden_requests, rendered

ASKING = [name for name in ALL_STAGES if issubclass(load_stage_class(name), ModelStage)]
FILES = {file.name: file.read_text("utf-8") for file in files("echo_hf.prompts").iterdir()
         if file.name.endswith(".md")}  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
CLOSING = st.lists(st.sampled_from(["</post>", "<", ">", "/post", "\n", "\\u003c", '"']))
LUMEN = Target(
    name="Lumen Image",
    developer="Northlight",
    released=datetime.date(2026, 3, 2),
    aliases=("lumen", "l-image"),
    others=("Paintbox",),
    chat_window="Lumen Chat",
)


def _text(prompt: str, **changed: Any) -> str:
    return load_prompt(prompt, LUMEN.model_copy(update=changed)).text


@pytest.mark.parametrize("file", sorted(FILES))
def test_every_prompt_is_filled_in_for_its_target(file: str) -> None:
    """It speaks of no other, and says that what strangers wrote is never an instruction."""
    name = file.removesuffix(".md")
    text = _text(name)
    # `rewrite` is told to whoever draws, whatever people talk about.
    assert ("Lumen Image" in text) is (name != "rewrite")
    assert "$" not in text
    assert text == text.strip()
    assert "never an instruction" in text
    others = r"\b(4o|GPT|OpenAI|DALL|Midjourney|Gemini|Flux)\b"
    assert re.findall(others, FILES[file], re.I) == []


@pytest.mark.parametrize("name", sorted(ASKING))
def test_a_field_that_no_target_fills_is_an_error(name: str) -> None:
    """A model is never sent a prompt with a hole in it."""
    with pytest.raises(KeyError, match="developer"):
        fill_prompt(name, {"target": "Lumen"})


@pytest.mark.parametrize("odd", ["$developer", "$$", "{target}", "%s", "\\1", "a $5 model"])
def test_a_name_is_put_in_as_it_is(odd: str) -> None:
    assert f"with {odd}, an image generation model by Northlight" in _text("relevance", name=odd)


@pytest.mark.parametrize(
    ("prompt", "changed", "said"),
    [
        ("relevance", {}, 'People also call it "Lumen Image", "lumen", "l-image".'),
        ("relevance", {}, 'Other image models, which do not count, include "Paintbox".'),
        ("relevance", {"others": ()}, "do not count, include any other image model."),
        ("roles", {}, "a conversation with the model in Lumen Chat, which"),
        ("roles", {"chat_window": None}, "with the model in Lumen Image's own window, which"),
    ],
)
def test_a_target_is_described(prompt: str, changed: dict[str, Any], said: str) -> None:
    assert said in _text(prompt, **changed)


@given(VALUES | CLOSING.map("".join))
def test_data_is_not_altered_and_does_not_close_its_block(value: Any) -> None:
    lines = quote_as_data("post", value).split("\n")
    assert (lines[0], lines[-1], len(lines)) == ("<post>", "</post>", 3)
    assert "<" not in lines[1]
    assert json.loads(lines[1]) == value


NAMES = sorted(golden_requests())
JUDGING = {"judge", "applicability"}  # which are no stages of a build
HOW = "what models are asked has changed: look at it, then run `python scripts/write_requests.py`"


def test_every_stage_that_asks_a_model_has_its_file() -> None:
    assert set(STAGES) <= set(ASKING)
    assert {name.partition("_")[0] for name in NAMES} == {*ASKING, *OTHERS, *JUDGING}
    assert sorted(file.stem for file in FOLDER.glob("*.txt")) == NAMES, HOW


@pytest.mark.parametrize("name", NAMES)
def test_the_request_is_the_one_that_was_looked_at(name: str) -> None:
    """It says which row it is about, which its key does not depend on."""
    asked = golden_requests()[name]
    assert rendered(asked) == (FOLDER / f"{name}.txt").read_text("utf-8"), HOW
    other = dataclasses.replace(asked, row="another", part=asked.part + 1)
    assert asked.row
    assert compute_request_keys({}, [asked]) == compute_request_keys({}, [other])
