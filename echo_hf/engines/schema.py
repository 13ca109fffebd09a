"""The schema of an answer: as servers enforce it, as grammars hold to it, as models read it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from pydantic import BaseModel

# xgrammar reads a bound on a string's length as that many characters, none of them a quotation
# mark, a backslash or a line break (mlc-ai/xgrammar#800): a prompt with a quotation or a second
# line could not be copied. The token limit bounds the answer, and reading it checks the length.
GRAMMAR_LEFT_OUT = frozenset({"maxLength", "minLength"})
LONGEST_NAME = 64
REGEX_IN_WORDS = (
    "Answer with text that this regular expression matches from beginning to end, and nothing "
    "else:\n"
)
IN_WORDS = (
    "Answer with one JSON object and nothing else: nothing before it, nothing after it, no code "
    "fence. It must be valid against this JSON Schema:\n"
)


@dataclass(frozen=True, slots=True)
class AnswerSchema:
    """The shape of an answer without its class, which another process may not be able to import."""

    text: str

    def model_json_schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = json.loads(self.text)
        return schema


@lru_cache(maxsize=64)
def portable_answer(answer: type[BaseModel]) -> type[BaseModel]:
    return cast(type[BaseModel], AnswerSchema(json.dumps(answer.model_json_schema())))


@lru_cache(maxsize=64)
def grammar_schema(answer: type[BaseModel]) -> str:
    """The JSON schema of an answer without the bounds that grammars take too literally."""
    return json.dumps(_without_lengths(answer.model_json_schema()))


def _without_lengths(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_lengths(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    # A bound is a number; a schema under the same name is that of a field which is called so.
    return {
        key: _without_lengths(value)
        for key, value in schema.items()
        if key not in GRAMMAR_LEFT_OUT or isinstance(value, dict)
    }


@lru_cache(maxsize=256)
def response_format(answer: type[BaseModel]) -> dict[str, Any]:
    """What makes a server enforce the shape of an answer, but for the lengths of its texts."""
    name = re.sub(r"[^A-Za-z0-9_-]", "_", answer.__name__)[:LONGEST_NAME]
    schema = strict_schema(json.loads(grammar_schema(answer)))
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": schema}}


@lru_cache(maxsize=256)
def schema_in_words(answer: type[BaseModel]) -> str:
    schema = strict_schema(answer.model_json_schema())
    return IN_WORDS + json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


def strict_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema in the form that servers enforce strictly: every key wanted, no other allowed."""
    if "$ref" in schema and "$defs" in schema:  # a model that contains itself
        name = schema["$ref"].rpartition("/")[2]
        schema = {**schema["$defs"][name], "$defs": schema["$defs"]}
    strict: dict[str, Any] = {}
    for key, value in schema.items():
        match key, value:
            # A strict schema has no defaults; titles repeat the names.
            case (("title" | "default"), _):
                continue
            case (("properties" | "$defs"), _):
                strict[key] = {name: strict_schema(inner) for name, inner in value.items()}
            case (("anyOf" | "oneOf" | "allOf" | "prefixItems"), _):
                strict[key] = [strict_schema(inner) for inner in value]
            case _, dict():
                strict[key] = strict_schema(value)
            case _:
                strict[key] = value
    if "$ref" in strict and len(strict) > 1:  # a reference stands alone
        strict["anyOf"] = [{"$ref": strict.pop("$ref")}]
    if strict.get("type") == "object" and not isinstance(strict.get("additionalProperties"), dict):
        strict["additionalProperties"] = False
        strict["required"] = list(strict.setdefault("properties", {}))
    return strict
