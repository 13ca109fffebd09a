"""An analysis of which every text is one word, but for what a test states itself."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from enum import Enum
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from echo_hf.report.analysis.result import Analysis

MISSING = {"reason": "not_configured", "detail": "name a language model: analysis.perplexity"}
FOUND = {
    name: one.annotation.model_fields["found"].annotation
    for name, one in Analysis.model_fields.items()
    if isinstance(one.annotation, type) and "found" in getattr(one.annotation, "model_fields", ())
}
PLAIN = {int: 3, float: 0.5, bool: True, datetime.date: "2026-03-04"}


def analysis(**parts: Any) -> Analysis:
    about = {"name": "invented", "toolkit": "0.1.0", "source": {}, "samples": 40, "sets": []}
    every = {name: {"found": found} for name, found in parts.items()}
    return Analysis.model_validate({**about, **dict.fromkeys(FOUND, MISSING), **every})


def every_part(word: str) -> dict[str, Any]:
    return {name: filled(kind, word) for name, kind in FOUND.items()}


def filled(kind: Any, word: str) -> Any:
    """One of everything that a type holds; of what may be another type, the first."""
    origin, inside = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType, Annotated):
        return filled(inside[0], word)
    if origin is tuple:
        return [filled(one, word) for one in inside if one is not ...]
    if origin is Mapping:
        return {filled(inside[0], word): filled(inside[1], word)}
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        fields = kind.model_fields.items()
        found = {name: filled(one.annotation, word) for name, one in fields}
        return found | ({"post_url": f"https://example.org/{word}"} if "post_url" in found else {})
    if isinstance(kind, type) and issubclass(kind, Enum):
        return None
    return PLAIN.get(kind, word)
