"""Take JSON documents that hold many posts apart into records that stand alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from echo_hf.collect.deep_json import deep_loads, shallow_dumps
from echo_hf.collect.sources.base import json_documents

Parts = Iterable[tuple[str, Any]]


def taken_apart(
    lines: Iterable[str], parts_of: Callable[[Any], Parts]
) -> Iterator[tuple[str, str]]:
    """The records of a file of documents.

    Args:
        lines: The file: one document a line, or one in all.
        parts_of: Gives (place within the document, record) for each post of a document; nothing
            for a document that is a record by itself.

    Yields:
        (place within the file, record as text). What is no JSON, or holds nothing, stays as it
        is, to be rejected by name.
    """
    for place, text in json_documents(lines):
        empty = True
        for part, record in parts_of(_loaded(text)):
            empty = False
            yield f"{place}{part}", shallow_dumps(record)
        if empty:
            yield place, text


def _loaded(text: str) -> Any:
    try:
        return deep_loads(text)
    except ValueError:
        return None
