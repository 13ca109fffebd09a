"""The schema of an answer, as servers enforce it and as grammars hold to it."""

from __future__ import annotations

import importlib.util
import json
from typing import Annotated, Any, Generic, TypeVar

import pytest
from pydantic import BaseModel, ConfigDict, Field

from echo_hf.collect.relevance import PackedRelevanceAnswer, RelevanceAnswer
from echo_hf.engines.schema import (
    build_grammar_schema,
    build_response_format,
    describe_schema,
    make_strict,
)
from echo_hf.samples.extract import ExtractAnswer

Thing = TypeVar("Thing")
needs_xgrammar = pytest.mark.skipif(
    importlib.util.find_spec("xgrammar") is None, reason="needs vLLM's grammars: make test-vllm"
)


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


class Pair(BaseModel, Generic[Thing]):
    """Two of a kind."""

    first: Thing


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
    strict = make_strict(Tree.model_json_schema())
    assert strict == {**TREE, "$defs": {"Leaf": LEAF, "Tree": TREE}}
    assert json.loads(describe_schema(Leaf).splitlines()[-1]) == LEAF


def test_a_server_is_told_to_be_strict() -> None:
    told = build_response_format(Tree)
    assert (told["type"], told["json_schema"]["strict"]) == ("json_schema", True)
    schema = told["json_schema"]["schema"]
    assert list(schema["properties"]) == list(Tree.model_fields)
    assert "maxLength" not in json.dumps(schema)
    assert build_response_format(Pair[int])["json_schema"]["name"] == "Pair_int_"
    assert build_response_format(type("L" * 80, (Leaf,), {}))["json_schema"]["name"] == "L" * 64


# --- grammars ---

QUOTED = 'A sign that says "BLUE HOUR"\n\tback\\slash, 青い時間'
SAMPLE = {
    "prompt": QUOTED,
    "quality": "Benchmark",
    "posts": [0, 12],
    "feedback": [{"post": 3, "feedback": QUOTED}, {"post": 4, "feedback": ""}],
}
ANSWERS = (
    (RelevanceAnswer, {"score": 3, "note": QUOTED}),
    (
        PackedRelevanceAnswer,
        {"posts": [{"number": 417, "score": 3, "note": QUOTED}, {"number": 999, "score": 5}]},
    ),
    (ExtractAnswer, {"samples": [SAMPLE, {"prompt": "a fox", "quality": "Trash", "posts": []}]}),
)


class Odd(BaseModel):
    """Fields that are called like the bounds which are left out."""

    maxLength: Annotated[str, Field(max_length=3)]  # noqa: N815 - that is the point
    minLength: Annotated[list[Annotated[str, Field(min_length=2)]], Field(max_length=4)]  # noqa: N815


def test_no_bound_on_a_string_is_left() -> None:
    held = json.loads(build_grammar_schema(Odd))
    assert held["properties"]["maxLength"].keys() == {"title", "type"}
    assert held["properties"]["minLength"]["maxItems"] == 4
    assert held["properties"]["minLength"]["items"] == {"type": "string"}
    assert held["required"] == ["maxLength", "minLength"]
    assert json.loads(build_grammar_schema(RelevanceAnswer))["properties"]["score"]["maximum"] == 5
    assert '"maxLength"' not in build_grammar_schema(ExtractAnswer)


def accepts(schema: str, text: str) -> bool:
    import xgrammar

    letters = [bytes([value]) for value in range(256)]
    known = xgrammar.TokenizerInfo([*letters, b"<end>"], stop_token_ids=[256])
    compiled = xgrammar.GrammarCompiler(known).compile_json_schema(
        schema, any_whitespace=False, separators=(",", ":")
    )
    matcher = xgrammar.GrammarMatcher(compiled)
    return all(matcher.accept_token(byte) for byte in [*text.encode(), 256])


@pytest.mark.vllm
@needs_xgrammar
@pytest.mark.parametrize(("answer", "value"), ANSWERS)
def test_a_quotation_and_a_second_line_can_be_written(answer: Any, value: dict[str, Any]) -> None:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    assert answer.model_validate_json(text)
    assert accepts(build_grammar_schema(answer), text)
    assert not accepts(json.dumps(answer.model_json_schema()), text)
    for wrong in ('{"score":6}', '{"note":null}', '{ "score":5}', '{"score":5}\n'):
        assert not accepts(build_grammar_schema(RelevanceAnswer), wrong)
