"""The schema that answers are held to while they are written."""

from __future__ import annotations

import importlib.util
import json
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from echo_hf.collect.relevance import RelevanceAnswer
from echo_hf.engines.schema import grammar_schema
from echo_hf.samples.thread_parts import ExtractAnswer

ANSWERS = (RelevanceAnswer, ExtractAnswer)
needs_xgrammar = pytest.mark.skipif(
    importlib.util.find_spec("xgrammar") is None, reason="needs vLLM's grammars: make test-vllm"
)

QUOTED = 'A sign that says "BLUE HOUR"\n\tback\\slash, 青い時間'
RELEVANT = {"score": 3, "note": QUOTED}
EXTRACTED = {
    "samples": [
        {
            "prompt": QUOTED,
            "quality": "Benchmark",
            "posts": [0, 12],
            "feedback": [{"post": 3, "feedback": QUOTED}, {"post": 4, "feedback": ""}],
        },
        {"prompt": "a fox", "quality": "Trash", "posts": []},
    ]
}


class Odd(BaseModel):
    """Fields that are called like the bounds which are left out."""

    maxLength: Annotated[str, Field(max_length=3)]  # noqa: N815 - that is the point
    minLength: Annotated[list[Annotated[str, Field(min_length=2)]], Field(max_length=4)]  # noqa: N815


def bounds_in(schema: Any) -> list[str]:
    """Bounds on the length of strings, wherever they stand."""
    if isinstance(schema, list):
        return [bound for one in schema for bound in bounds_in(one)]
    if not isinstance(schema, dict):
        return []
    own = [key for key, value in schema.items() if key.endswith("Length") and type(value) is int]
    return own + [bound for value in schema.values() for bound in bounds_in(value)]


@pytest.mark.parametrize("answer", [*ANSWERS, Odd])
def test_no_bound_on_a_string_is_left(answer: type[BaseModel]) -> None:
    """The declared shapes have such bounds, their grammars do not; all else stays."""
    declared, held = answer.model_json_schema(), json.loads(grammar_schema(answer))
    assert bounds_in(declared)
    assert bounds_in(held) == []
    assert list(held["properties"]) == list(declared["properties"])
    assert held["required"] == declared["required"]


def test_bounds_on_lists_and_numbers_stay() -> None:
    """Only what a grammar reads wrongly is left out."""
    assert json.loads(grammar_schema(RelevanceAnswer))["properties"]["score"]["maximum"] == 5
    assert json.loads(grammar_schema(ExtractAnswer))["properties"]["samples"]["maxItems"] == 256
    assert json.loads(grammar_schema(Odd))["properties"]["minLength"]["maxItems"] == 4


def accepts(schema: str, text: str) -> bool:
    """Whether a text can be written under a schema, character by character."""
    import xgrammar

    letters = [bytes([value]) for value in range(256)]
    known = xgrammar.TokenizerInfo([*letters, b"<end>"], stop_token_ids=[256])
    compiled = xgrammar.GrammarCompiler(known).compile_json_schema(
        schema, any_whitespace=False, separators=(",", ":")
    )
    matcher = xgrammar.GrammarMatcher(compiled)
    return all(matcher.accept_token(byte) for byte in [*text.encode(), 256])


def written(value: Any) -> str:
    """The value as JSON without white space."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


@pytest.mark.vllm
@needs_xgrammar
@pytest.mark.parametrize(("answer", "value"), [*zip(ANSWERS, (RELEVANT, EXTRACTED), strict=True)])
def test_a_quotation_and_a_second_line_can_be_written(
    answer: type[BaseModel], value: dict[str, Any]
) -> None:
    """Every answer of the project compiles; under the declared bounds no quotation could pass."""
    assert answer.model_validate_json(written(value))
    assert accepts(grammar_schema(answer), written(value))
    assert not accepts(json.dumps(answer.model_json_schema()), written(value))


@pytest.mark.vllm
@needs_xgrammar
@pytest.mark.parametrize(
    "text",
    [
        '{"score":6}',
        '{"score":0,"note":null}',
        '{"note":null}',
        '{"score":5,"note":"a\tb"}',
        '{"score":5,"note":"a\nb"}',
        '{ "score":5}',
        '{"score":5}\n',
    ],
)
def test_what_is_no_answer_cannot_be_written(text: str) -> None:
    """Scores off the scale, raw control characters, and white space between the parts."""
    assert not accepts(grammar_schema(RelevanceAnswer), text)
