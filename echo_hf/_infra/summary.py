"""Short representations of results: a line in Python, a small table in a notebook."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Sized
from dataclasses import fields
from enum import Enum
from html import escape
from pathlib import Path
from typing import Any

MAX_ITEMS, MAX_CHARACTERS, MAX_ROWS = 4, 60, 50


def shorten(value: object) -> str:
    """Summarize a value in a few words: its size, where it is large."""
    if isinstance(value, Enum | Path):
        return shorten(str(value))
    if isinstance(value, str):
        return repr(value if len(value) <= MAX_CHARACTERS else f"{value[: MAX_CHARACTERS - 1]}…")
    if isinstance(value, float):
        return f"{value:.4g}"
    if value is None or isinstance(value, int):
        return repr(value)
    if isinstance(value, Mapping) and _is_short(value.values()):
        pairs = value.items()
        texts = [f"{shorten(name)}: {shorten(item)}" for name, item in pairs]
        return f"{{{', '.join(texts)}}}"
    if isinstance(value, Sequence) and _is_short(value):
        return f"({', '.join(map(shorten, value))})"
    name = type(value).__name__
    return f"<{name} of {len(value):,}>" if isinstance(value, Sized) else f"<{name}>"


def _is_short(items: Collection[object]) -> bool:
    """Return whether the items are few, and numbers, words or pairs of them."""
    parts = [part for item in items for part in (item if isinstance(item, tuple) else (item,))]
    plain = all(part is None or isinstance(part, int | float | str) for part in parts)
    return plain and len(items) <= MAX_ITEMS and len(parts) <= 2 * MAX_ITEMS


class SummaryMixin:
    """Mixin that shows a result's fields by `shorten`."""

    __slots__ = ()

    def _facts(self) -> dict[str, Any]:
        """Return what is shown, by name."""
        names = getattr(type(self), "model_fields", None) or [
            field.name
            for field in fields(self)  # type: ignore[arg-type] # of a dataclass, where not pydantic
        ]
        return {name: getattr(self, name) for name in names}

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        """Return the rows of the table; their keys are its headings."""
        return [{"": name, "value": value} for name, value in self._facts().items()]

    def __repr__(self) -> str:
        facts = ", ".join(f"{name}={shorten(value)}" for name, value in self._facts().items())
        return f"{type(self).__name__}({facts})"

    def _repr_html_(self) -> str:
        """Return the table that a notebook shows; all texts are escaped."""
        rows = self._rows()
        heads = dict.fromkeys(name for row in rows for name in row)
        lines = ["".join(f"<th>{escape(name)}</th>" for name in heads)]
        for row in rows[:MAX_ROWS]:
            cells = (row.get(name) for name in heads)
            texts = (str(cell) if isinstance(cell, str) else shorten(cell) for cell in cells)
            lines.append("".join(f"<td>{escape(cell)}</td>" for cell in texts))
        omitted = f"<p>{len(rows) - MAX_ROWS:,} more</p>" if len(rows) > MAX_ROWS else ""
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        return f"<table><caption>{escape(type(self).__name__)}</caption>{body}</table>{omitted}"
