"""Read and write JSON that nests deeper than Python's own reader and writer go."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

TOKEN = re.compile(r'[ \t\n\r]*(?:([\[\]{},:"])|([^\s\[\]{},:"]+))')
OPENING = ("[", "{")
TEXTS = json.JSONDecoder()


def deep_loads(text: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        return _decoded(text)


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
                raise ValueError(f"{value!r}, expected a name and a colon")
            kind, held = next(tokens, ("", None))
            building.add(kind, held, value)
        else:
            building.add(mark, value)
    return building.finished()


@dataclass
class _Building:
    filled: list[Any] = field(default_factory=lambda: [[]])
    previous: Literal["nothing", "value", "comma"] = "nothing"

    def add(self, mark: str, value: Any, name: str | None = None) -> None:
        if mark not in ("value", "text", *OPENING) or self.previous == "value":
            raise ValueError(f"{mark!r} {value!r}, expected a value or its end")
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


class _Written(str):
    """A piece of the text, and no value."""

    __slots__ = ()


def deep_dumps(value: Any) -> str:
    try:
        return json.dumps(value)
    except RecursionError:
        return "".join(_pieces(value))


def _pieces(value: Any) -> list[str]:
    pieces: list[str] = []
    waiting: list[Any] = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, _Written):
            pieces.append(one)
        elif isinstance(one, dict | list):
            waiting += reversed(_opened(one))
        else:
            pieces.append(json.dumps(one))
    return pieces


def _opened(value: dict[str, Any] | list[Any]) -> list[Any]:
    """A container as what is written one after the other; the values in it are still to be."""
    is_object = isinstance(value, dict)
    parts: list[Any] = [_Written("{" if is_object else "[")]
    for number, one in enumerate(value):
        if number:
            parts.append(_Written(", "))
        if isinstance(value, dict):
            parts += [_Written(f"{json.dumps(one)}: "), value[one]]
        else:
            parts.append(one)
    return [*parts, _Written("}" if is_object else "]")]
