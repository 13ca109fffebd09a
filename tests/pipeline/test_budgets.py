"""Whether the longest answer that a schema allows fits the tokens that a request grants it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from echo_hf.collect.relevance import MAX_ANSWER_TOKENS, NumberedRelevanceAnswer
from echo_hf.judging.compare import create_choice_schema
from echo_hf.judging.rate import create_rating_schema
from echo_hf.samples.extract import Extract
from echo_hf.samples.tasks import MAX_IMAGES, MAX_TEXTS
from tests.golden_requests import golden_requests
from tests.small_language_model import tokenizer

pytestmark = pytest.mark.models
PROSE = "The fox has a fifth leg, and the sign above the door says OPNE instead of OPEN. "
# Their answers copy what a request shows, so that it bounds them; the schema stops what is absurd.
COPYING = {"extract", "roles"}


@pytest.fixture(scope="module")
def count() -> Any:
    known = tokenizer()
    return lambda answer: len(known(json.dumps(answer, ensure_ascii=False))["input_ids"])


def prose(characters: int) -> str:
    return (PROSE * (characters // len(PROSE) + 1))[:characters]


def longest(schema: Mapping[str, Any], known: Mapping[str, Any]) -> Any:
    """The answer of most characters that a schema allows."""
    if name := schema.get("$ref"):
        return longest(known[name.rpartition("/")[2]], known)
    if kinds := schema.get("anyOf"):
        return max((longest(kind, known) for kind in kinds), key=lambda kind: len(json.dumps(kind)))
    if values := schema.get("enum"):
        return max(values, key=len)
    match schema["type"]:
        case "object":
            return {key: longest(value, known) for key, value in schema["properties"].items()}
        case "array":
            return [longest(schema["items"], known)] * schema["maxItems"]
        case "string":
            return prose(schema["maxLength"])
        case "integer" | "number":
            return schema.get("maximum") or schema["exclusiveMaximum"] - 1
        case "boolean":
            return False
    return None


def asked() -> Iterator[tuple[str, Any, int]]:
    """The answers of all stages and rubrics, each with its budget."""
    for name, request in golden_requests().items():
        if request.answer is not None and name not in {*COPYING, "relevance_packed"}:
            yield name, request.answer, request.max_tokens
    # A request about several posts has that much for each.
    yield "one of several posts", NumberedRelevanceAnswer, MAX_ANSWER_TOKENS
    for tokens in (64, 512, 8192):
        yield f"a judge with {tokens}", create_rating_schema(1, 10, True, tokens), tokens
        yield f"a judge with {tokens}", create_choice_schema(tokens), tokens


def test_the_longest_answer_fits(count: Any) -> None:
    for name, answer, tokens in asked():
        schema = answer.model_json_schema()
        assert count(longest(schema, schema.get("$defs", {}))) <= tokens, name


def test_answers_that_copy_hold_all_that_a_request_shows(count: Any) -> None:
    """Every character of a full part of a thread once, and each image of a sample in a role."""
    half, places = Extract.context_characters // 2, list(range(20))
    samples = [
        {"prompt": prose(half // 4), "quality": "Benchmark", "posts": places, "feedback": comments}
        for comments in [[{"post": at, "feedback": prose(half // 40)} for at in range(10)]] * 4
    ]
    assert count({"samples": samples}) <= Extract.max_tokens
    blanks = [{"placeholder": "[PET]", "value": prose(200)}]
    roles = [
        {
            "inputs": [2 * at],
            "outputs": [2 * at + 1],
            "posts": [at, at + 1],
            "prompt_fill_blank": blanks,
            "conversation": None,
            "collage": None,
            "may_show_minor": False,
        }
        for at in range(MAX_IMAGES // 2)
    ]
    assert sum(len(prose(200)) for _ in roles) <= MAX_TEXTS
    assert count({"samples": roles}) <= golden_requests()["roles"].max_tokens
