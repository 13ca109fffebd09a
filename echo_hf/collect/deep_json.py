"""Read and write JSON that nests deeper than Python's own reader goes.

A platform that answers with a tree nests a reply in the post it answers, a thousand times if need
be; and anybody can write as many brackets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from echo_hf.collect.fields import shown

TOKEN = re.compile(r'[ \t\n\r]*(?:([\[\]{},:"])|([^\s\[\]{},:"]+))')
OPENING = ("[", "{")
TEXTS = json.JSONDecoder()


def deep_loads(text: str) -> Any:
    """Decodes a JSON text of any depth.

    Args:
        text: The text.

    Returns:
        What it says, as `json.loads` would give it.

    Raises:
        ValueError: It is not JSON.

    Example:
        >>> deep = deep_loads("[" * 100_000 + "]" * 100_000)
        >>> type(deep), len(deep)
        (<class 'list'>, 1)
    """
    try:
        return json.loads(text)
    except RecursionError:
        return _decoded(text)


def shallow_dumps(value: Any) -> str:
    """A value as JSON; what nests too deeply is said in its place.

    Args:
        value: Any decoded JSON.

    Returns:
        Its text, or a JSON text that says what it began with.
    """
    try:
        return json.dumps(value)
    except RecursionError:
        return json.dumps(f"nested too deeply: {shown(value)}")


def _decoded(text: str) -> Any:
    building = _Building()
    tokens = _tokens(text)
    for mark, value in tokens:
        if mark in ("]", "}"):
            building.close(mark)
        elif mark == ",":
            building.comma()
        elif isinstance(building.filled[-1], dict):
            if mark != "text" or next(tokens, ("", None))[0] != ":":
                raise ValueError(f"{shown(value)}, expected a name and a colon")
            kind, held = next(tokens, ("", None))
            building.add(kind, held, value)
        else:
            building.add(mark, value)
    return building.finished()


@dataclass
class _Building:
    """What has been read so far.

    Attributes:
        filled: What is being filled, innermost last; first of all a list that takes the answer.
        previous: What came last: nothing yet, a value, or a comma.
    """

    filled: list[Any] = field(default_factory=lambda: [[]])
    previous: Literal["nothing", "value", "comma"] = "nothing"

    def add(self, mark: str, value: Any, name: str | None = None) -> None:
        if mark not in ("value", "text", *OPENING) or self.previous == "value":
            raise ValueError(f"{mark!r} {shown(value)}, expected a value or its end")
        opened: Any = [] if mark == "[" else {} if mark == "{" else None
        held = value if opened is None else opened
        if name is None:
            self.filled[-1].append(held)
        else:
            self.filled[-1][name] = held
        if opened is not None:
            self.filled.append(opened)
        self.previous = "value" if opened is None else "nothing"

    def comma(self) -> None:
        if self.previous != "value" or len(self.filled) == 1:
            raise ValueError("a comma, expected a value")
        self.previous = "comma"

    def close(self, mark: str) -> None:
        expected = "}" if isinstance(self.filled[-1], dict) else "]"
        if len(self.filled) == 1 or mark != expected or self.previous == "comma":
            raise ValueError(f"{mark!r}, expected a value or {expected!r}")
        self.filled.pop()
        self.previous = "value"

    def finished(self) -> Any:
        if len(self.filled) != 1 or self.previous != "value":
            raise ValueError("the JSON text ends too early")
        return self.filled[0][0]


def _tokens(text: str) -> Iterator[tuple[str, Any]]:
    at = 0
    end = len(text.rstrip(" \t\n\r"))
    while at < end:
        found = TOKEN.match(text, at)
        if found is None:
            raise ValueError(f"{text[at : at + 20]!r}, expected JSON")
        mark, plain = found.groups()
        at = found.end()
        if mark == '"':
            value, at = TEXTS.raw_decode(text, at - 1)
            yield "text", value
        elif mark:
            yield mark, None
        else:
            yield "value", json.loads(plain)
