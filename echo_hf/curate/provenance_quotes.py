"""Find the words of posts in the provenance of a sample, take them out, and put them back.

The provenance is JSON, an object a stage. Of what a stage says, its digest, its engine and a few
names of our own are nobody's words; every other string is taken for a quotation.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from echo_hf.context.source_spans import text_digest
from echo_hf.errors import SpanError

# Of a stage: said by us, by the config, or by a guard in its own codes.
OURS = frozenset(
    {"digest", "engine", "convention", "replaced_inputs", "looks", "protocol", "mode", "status"}
    | {"reviewer", "at", "changed"}
)
QUOTED = "quoted"
Path = tuple[str | int, ...]
Spans = Sequence[Mapping[str, Any]]


class Quote(NamedTuple):
    """A quotation of a provenance.

    Attributes:
        path: Keys and numbers that lead to it.
        sha256: Of its text.
        spans: The text in pieces; none when it cannot be given so.
    """

    path: Path
    sha256: str
    spans: Spans


def with_quotes(provenance: str | None, spans_of: Callable[[str], Spans]) -> str | None:
    """Notes where the quotations of a provenance come from.

    Args:
        provenance: JSON, or null.
        spans_of: Gives a text as spans, none when it cannot.

    Returns:
        JSON that has all fields of a `Quote` for each quotation, under `quoted`.

    Raises:
        SpanError: It is no JSON object.
    """
    data = _parsed(provenance)
    quotes = [Quote(path, text_digest(text), spans_of(text)) for path, text in _quotations(data)]
    return _text({**data, QUOTED: [one._asdict() for one in quotes]}) if quotes else provenance


def without_quotes(provenance: str | None) -> str | None:
    """Takes the quotations out of a provenance.

    Args:
        provenance: JSON, or null.

    Returns:
        JSON with null in the place of each.

    Raises:
        SpanError: It is no JSON object, so that nobody knows what it quotes.

    Example:
        >>> without_quotes('{"roles": {"digest": "d", "template": "a [PET]"}}')
        '{"roles": {"digest": "d", "template": null}}'
    """
    data = _parsed(provenance)
    quotations = list(_quotations(data))
    for path, _ in quotations:
        _put(data, path, None)
    return _text(data) if quotations else provenance


def quotes_in(provenance: str | None) -> list[Quote]:
    """The noted quotations of a provenance, which may come from anywhere.

    Args:
        provenance: JSON, or null.

    Returns:
        The quotations in order.

    Raises:
        SpanError: It is no JSON object, or what it notes are no quotations.
    """
    noted = _parsed(provenance).get(QUOTED, [])
    try:
        quotes = [Quote(tuple(one["path"]), one["sha256"], one["spans"]) for one in noted]
        {quote.path: [dict(span) for span in quote.spans] for quote in quotes}
    except (KeyError, TypeError, ValueError):
        raise SpanError(f"{str(noted)[:80]!r} are no quotations of a provenance") from None
    return quotes


def with_texts(provenance: str | None, texts: Mapping[Path, str]) -> str | None:
    """Puts quotations back into a provenance.

    Args:
        provenance: JSON, or null.
        texts: The text of each quotation by its path.

    Returns:
        JSON; what was given when there is nothing to put.

    Raises:
        SpanError: A path does not lead to a place that is empty.

    Example:
        >>> with_texts('{"roles": {"template": null}}', {("roles", "template"): "a [PET]"})
        '{"roles": {"template": "a [PET]"}}'
    """
    data = _parsed(provenance)
    for path, text in texts.items():
        _put(data, path, text)
    return _text(data) if texts else provenance


def _parsed(provenance: str | None) -> dict[str, Any]:
    try:
        data = json.loads(provenance or "{}")
        list(_strings(data))
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict):
        raise SpanError(f"provenance {str(provenance)[:80]!r} is no JSON object a stage")
    return data


def _text(data: Mapping[str, Any]) -> str:
    return json.dumps(data, sort_keys=True)


def _quotations(data: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    for path, text in _strings({name: said for name, said in data.items() if name != QUOTED}):
        if len(path) < 2 or path[1] not in OURS:
            yield path, text


def _strings(value: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict | list):
        for name, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _strings(one, (*path, name))


def _put(data: Any, path: Path, text: str | None) -> None:
    try:
        for name in path[:-1]:
            data = data[name]
        if text is not None and data[path[-1]] is not None:
            raise KeyError(path[-1])
        data[path[-1]] = text
    except (LookupError, TypeError):
        raise SpanError(f"{str(path)[:80]} is no empty place in a provenance") from None
