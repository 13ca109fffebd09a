"""Parse the text of a model's answer: skip its thoughts, and find the JSON value in it."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

# Kimi writes its thoughts between triangles.
THOUGHT_TAG = re.compile(r"[<◁](/?)(?:think|thinking|reasoning)[>▷]", re.IGNORECASE)
MAX_BROKEN_VALUES = 1000  # beginnings of a value without its end: each may reach far
VALUE_START = re.compile(r"""\{(?=\s*["}])|\[(?=\s*\{\s*["}])""")


class RepeatedKeyError(ValueError):
    """A key of a JSON object occurs twice with two values."""


def remove_thoughts(text: str) -> str:
    """Return the text of an answer outside its thoughts.

    A thought without a beginning, which many chat templates write into the question, starts with
    the text; one without an end takes the rest of it.
    """
    kept, start, depth, is_end = list[str](), 0, 0, True
    for tag in THOUGHT_TAG.finditer(text):
        is_end = bool(tag[1])
        if not is_end:
            if depth == 0:
                kept.append(text[start : tag.start()])
            depth += 1
            continue
        if depth == 0:
            kept.clear()
        depth, start = max(depth - 1, 0), tag.end()
    # A beginning that a thought only speaks of has no end of its own.
    return "".join([*kept, text[start:]] if is_end else kept)


def find_answer_value(text: str) -> str | None:
    """Return the JSON value of an answer, null where it has none.

    Raises:
        RepeatedKeyError: A key in it occurs twice with two values.
    """
    if THOUGHT_TAG.search(text):
        with suppress(RepeatedKeyError):
            if (value := find_last_value(text)) == text.strip():
                return value  # its texts may speak of thoughts
        text = remove_thoughts(text)
    return find_last_value(text)


def find_last_value(text: str) -> str | None:
    """Return the last complete JSON object, or array of objects, in a text.

    Of a text with too many broken ones nothing is read.

    Raises:
        RepeatedKeyError: A key in it occurs twice with two values.
    """
    last: str | None = None
    repeated: RepeatedKeyError | None = None
    start = broken = 0
    while candidate := VALUE_START.search(text, start):
        start = candidate.start()
        try:
            end, repeated = _find_value_end(text, start)
            last = last if repeated else text[start:end]
        except json.JSONDecodeError as error:
            if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated"):
                break  # what follows is a part of this value, which never ends
            if (broken := broken + 1) > MAX_BROKEN_VALUES:
                return None
            end = start + 1
        except RecursionError:
            break
        start = end
    if repeated:
        raise repeated
    return last


def _find_value_end(text: str, start: int) -> tuple[int, RepeatedKeyError | None]:
    """Return where the value that begins here ends, and an error for a repeated key."""
    try:
        return DECODER.raw_decode(text, start)[1], None
    except RepeatedKeyError as error:
        return LENIENT.raw_decode(text, start)[1], error


def remove_cut_field(text: str, field: str) -> str | None:
    """Return an object cut inside a text field, without that field; null for any other."""
    start = text.find("{")
    if start < 0:
        return None
    pattern = rf',\s*"{re.escape(field)}"\s*:\s*"(?:[^"\\]|\\.)*\\?\Z'
    ending = re.compile(pattern, re.DOTALL).search(text, start)
    return None if ending is None else text[start : ending.start()] + "}"


def _check_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in pairs:
        first = values.setdefault(key, value)
        if first is not value and first != value:  # NaN is not equal to itself
            raise RepeatedKeyError(f"{key!r} occurs twice, with two values")
    return values


# Numbers of any length, as floats: they are only compared.
LENIENT = json.JSONDecoder(parse_int=float)
DECODER = json.JSONDecoder(parse_int=float, object_pairs_hook=_check_pairs)
