"""The schema that an answer is held to while it is written, token by token."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

# xgrammar reads a bound on a string's length as that many characters, none of them a quotation
# mark, a backslash or a line break (mlc-ai/xgrammar#800): a prompt with a quotation or a second
# line could not be copied. The token limit bounds the answer, and reading it checks the length.
LEFT_OUT = frozenset({"maxLength", "minLength"})


@lru_cache(maxsize=64)
def grammar_schema(answer: type[BaseModel]) -> str:
    """The JSON schema of an answer without the bounds that grammars take too literally.

    Args:
        answer: The declared shape of the answer.

    Returns:
        The schema as JSON; whatever fits the declared shape fits it.

    Example:
        >>> from pydantic import Field
        >>> class Colour(BaseModel):
        ...     name: str = Field(max_length=9)
        >>> json.loads(grammar_schema(Colour))["properties"]["name"]
        {'title': 'Name', 'type': 'string'}
    """
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
        if key not in LEFT_OUT or isinstance(value, dict)
    }
