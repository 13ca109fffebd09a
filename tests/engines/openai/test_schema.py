"""Schemas as servers enforce them."""

from __future__ import annotations

import json
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from echo_hf.engines.schema import response_format, schema_in_words, strict_schema

Thing = TypeVar("Thing")


class Leaf(BaseModel):
    """A leaf."""

    model_config = ConfigDict(extra="allow")

    title: Annotated[str, Field(max_length=9, description="its name")] = "none"
    weights: dict[str, int] = {}


class Tree(BaseModel):
    """A tree."""

    leaves: Annotated[list[Leaf], Field(max_length=3)]
    best: Annotated[Leaf, Field(description="the best of them")]
    parent: Tree | None = None
    height: Annotated[float, Field(ge=0, le=9)] = 1.0


LEAF: dict[str, Any] = {
    "description": "A leaf.",
    "type": "object",
    "properties": {
        "title": {"type": "string", "maxLength": 9, "description": "its name"},
        "weights": {"type": "object", "additionalProperties": {"type": "integer"}},
    },
    "required": ["title", "weights"],
    "additionalProperties": False,
}
TREE: dict[str, Any] = {
    "description": "A tree.",
    "type": "object",
    "properties": {
        "leaves": {"type": "array", "maxItems": 3, "items": {"$ref": "#/$defs/Leaf"}},
        "best": {"anyOf": [{"$ref": "#/$defs/Leaf"}], "description": "the best of them"},
        "parent": {"anyOf": [{"$ref": "#/$defs/Tree"}, {"type": "null"}]},
        "height": {"type": "number", "minimum": 0, "maximum": 9},
    },
    "required": ["leaves", "best", "parent", "height"],
    "additionalProperties": False,
}


def test_every_key_is_wanted_and_no_other_allowed() -> None:
    """Written by hand: bounds and meanings stay, titles and defaults go, references stand alone."""
    strict = strict_schema(Tree.model_json_schema())
    assert strict == {**TREE, "$defs": {"Leaf": LEAF, "Tree": TREE}}


def test_keys_are_asked_for_in_their_order() -> None:
    """A model writes them in this order, such as an explanation before a rating."""
    schema = response_format(Tree)["json_schema"]["schema"]
    assert list(schema["properties"]) == list(Tree.model_fields)


class Pair(BaseModel, Generic[Thing]):
    """Two of a kind."""

    first: Thing


def test_a_name_has_only_what_servers_take() -> None:
    """Letters, digits, _ and -, at most 64; generic models have more in theirs."""
    assert response_format(Pair[int])["json_schema"]["name"] == "Pair_int_"
    long = type("L" * 80, (Leaf,), {})
    assert response_format(long)["json_schema"]["name"] == "L" * 64


def test_a_server_is_told_to_be_strict() -> None:
    """The schema is strict, without bounds on lengths: servers take those for bounds on letters."""
    title = {"type": "string", "description": "its name"}
    schema = {**LEAF, "properties": {**LEAF["properties"], "title": title}}
    assert response_format(Leaf) == {
        "type": "json_schema",
        "json_schema": {"name": "Leaf", "strict": True, "schema": schema},
    }


def test_in_words_the_schema_is_whole() -> None:
    """The last line of the words is the strict schema as JSON, with its bounds on lengths."""
    assert json.loads(schema_in_words(Leaf).splitlines()[-1]) == LEAF
