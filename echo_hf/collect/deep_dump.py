"""Write JSON that nests deeper than Python's own writer goes."""

from __future__ import annotations

import json
from typing import Any


class _Written(str):
    """A piece of the text, and no value."""

    __slots__ = ()


def deep_dumps(value: Any) -> str:
    """Encodes a value of any depth.

    Args:
        value: What `deep_loads` gives.

    Returns:
        Its text, as `json.dumps` would write it.

    Example:
        >>> deep: list = []
        >>> for _ in range(100_000):
        ...     deep = [deep]
        >>> len(deep_dumps(deep))
        200002
    """
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
