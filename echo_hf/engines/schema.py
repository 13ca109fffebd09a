"""JSON schemas of answers: for servers, for grammars, and in words for models."""

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
UNENFORCED_BOUNDS = frozenset({"maxLength", "minLength"})
MAX_NAME_CHARACTERS = 64
REGEX_INSTRUCTION = (
    "Answer with text that this regular expression matches from beginning to end, and nothing "
    "else:\n"
)
SCHEMA_INSTRUCTION = (
    "Answer with one JSON object and nothing else: nothing before it, nothing after it, no code "
    "fence. It must be valid against this JSON Schema:\n"
)


@dataclass(frozen=True, slots=True)
class AnswerSchema:
    """The schema of an answer without its class, which another process may not import."""

    text: str

    def model_json_schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = json.loads(self.text)
        return schema


@lru_cache(maxsize=64)
def make_portable_answer(answer: type[BaseModel]) -> type[BaseModel]:
    return cast(type[BaseModel], AnswerSchema(json.dumps(answer.model_json_schema())))


@lru_cache(maxsize=64)
def build_grammar_schema(answer: type[BaseModel]) -> str:
    """Return an answer's JSON schema without bounds that grammars take too literally."""
    return json.dumps(_remove_lengths(answer.model_json_schema()))


def _remove_lengths(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_remove_lengths(member) for member in schema]
    if not isinstance(schema, dict):
        return schema
    # A bound is a number; a schema under the same name is that of a field which is called so.
    return {
        key: _remove_lengths(value)
        for key, value in schema.items()
        if key not in UNENFORCED_BOUNDS or isinstance(value, dict)
    }


@lru_cache(maxsize=256)
def build_response_format(answer: type[BaseModel]) -> dict[str, Any]:
    """Build the request field that makes a server enforce an answer's schema, without lengths."""
    name = re.sub(r"[^A-Za-z0-9_-]", "_", answer.__name__)[:MAX_NAME_CHARACTERS]
    schema = make_strict(json.loads(build_grammar_schema(answer)))
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": schema}}


@lru_cache(maxsize=256)
def describe_schema(answer: type[BaseModel]) -> str:
    schema = make_strict(answer.model_json_schema())
    return SCHEMA_INSTRUCTION + json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


def make_strict(schema: dict[str, Any]) -> dict[str, Any]:
    """Convert a schema to the strict form of servers: all keys required, no others allowed."""
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
                strict[key] = {name: make_strict(inner) for name, inner in value.items()}
            case (("anyOf" | "oneOf" | "allOf" | "prefixItems"), _):
                strict[key] = [make_strict(inner) for inner in value]
            case _, dict():
                strict[key] = make_strict(value)
            case _:
                strict[key] = value
    if "$ref" in strict and len(strict) > 1:  # a reference stands alone
        strict["anyOf"] = [{"$ref": strict.pop("$ref")}]
    if strict.get("type") == "object" and not isinstance(strict.get("additionalProperties"), dict):
        strict["additionalProperties"] = False
        strict["required"] = list(strict.setdefault("properties", {}))
    return strict
