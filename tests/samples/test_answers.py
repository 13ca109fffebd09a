"""What an answer about images may be, and what is none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from echo_hf.config.sections import RolesOptions
from echo_hf.prompts import load_prompt
from echo_hf.samples.shown_images import MOST_IMAGES, MOST_POSTS, RolesAnswer
from tests.samples_for_tests import TARGET

LEAST: dict[str, Any] = {"inputs": [], "outputs": [1], "posts": []}


def answer(**values: Any) -> RolesAnswer:
    """An answer with one sample, read from JSON as a model writes it."""
    return RolesAnswer.model_validate_json(json.dumps({"samples": [{**LEAST, **values}]}))


def test_the_least_answer() -> None:
    """Blanks and screenshots may be left out; further keys mean nothing."""
    (sample,) = answer(why="because").samples

    assert (sample.prompt_fill_blank, sample.conversation, sample.collage) == ([], None, None)
    assert sample.may_show_minor is None
    assert RolesAnswer.model_validate_json('{"samples": []}').samples == []


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ({"inputs": list(range(MOST_IMAGES + 1))}, "inputs"),
        ({"outputs": list(range(MOST_IMAGES + 1))}, "outputs"),
        ({"posts": list(range(MOST_POSTS + 1))}, "posts"),
        ({"inputs": [-1]}, "inputs"),
        ({"inputs": [1.5]}, "inputs"),
        ({"inputs": ["a"]}, "inputs"),
        ({"inputs": None}, "inputs"),
        ({"conversation": 10**6}, "conversation"),
        ({"conversation": ""}, "conversation"),
        ({"collage": [1]}, "collage"),
        ({"may_show_minor": "perhaps"}, "may_show_minor"),
        ({"prompt_fill_blank": [{"placeholder": "", "value": "x"}]}, "placeholder"),
        ({"prompt_fill_blank": [{"placeholder": "[X]", "value": ""}]}, "value"),
        ({"prompt_fill_blank": [{"placeholder": "[X]", "value": "x" * 1001}]}, "value"),
        ({"prompt_fill_blank": [{"placeholder": "x" * 1001, "value": "x"}]}, "placeholder"),
        ({"prompt_fill_blank": [{"placeholder": "[X]", "value": "x"}] * 33}, "prompt_fill_blank"),
        ({"prompt_fill_blank": {"[X]": "x"}}, "prompt_fill_blank"),
    ],
)
def test_what_is_out_of_bounds_is_no_answer(values: dict[str, Any], place: str) -> None:
    """Lists, numbers and texts are bounded; what is not is never cut to fit."""
    with pytest.raises(ValidationError, match=place):
        answer(**values)


@pytest.mark.parametrize("key", ["inputs", "outputs", "posts"])
def test_an_answer_without_its_lists_is_none(key: str) -> None:
    """A list that is missing is not an empty one."""
    with pytest.raises(ValidationError, match=key):
        RolesAnswer.model_validate({"samples": [{k: v for k, v in LEAST.items() if k != key}]})


def test_everything_that_a_request_shows_can_be_named() -> None:
    """The most images that a config allows fit in a list."""
    most = RolesOptions.model_json_schema()["properties"]["most_pictures"]["maximum"]

    assert most == MOST_IMAGES
    assert len(answer(inputs=list(range(most))).samples[0].inputs) == most


def test_every_list_of_the_schema_and_every_text_is_bounded() -> None:
    """An engine that enforces the schema cannot be made to talk for ever."""
    schema = RolesAnswer.model_json_schema()
    for part in [schema, *schema["$defs"].values()]:
        for name, value in part["properties"].items():
            kinds = [value, *value.get("anyOf", []), value.get("items", {})]
            for kind in kinds:
                bound = {"array": "maxItems", "string": "maxLength", "integer": "maximum"}
                assert bound.get(kind.get("type", ""), "type") in {*kind, "type"}, name


def test_the_prompt_asks_for_the_keys_of_the_answer() -> None:
    """Its last line shows the shape, with every key of it."""
    last = load_prompt("roles", TARGET).text.splitlines()[-1]
    schema = RolesAnswer.model_json_schema()
    keys = {name for part in [schema, *schema["$defs"].values()] for name in part["properties"]}

    assert {key for key in keys if f'"{key}"' not in last} == set()
