"""The text of a post of Bluesky with the links whole that its client had cut.

A link in a post is a stretch of bytes (a facet) with the address it leads to; what is shown there
is often the beginning of the address and an ellipsis.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from echo_hf.collect.fields import Fields
from echo_hf.reasons import Notice

LINK = "app.bsky.richtext.facet#link"
START = re.compile(r"https?://(?:www\.)?|www\.", re.IGNORECASE)
ELLIPSES = ("...", "…")


@dataclass(frozen=True, slots=True, order=True)
class _Link:
    start: int
    end: int
    address: str


def bluesky_text(record: Fields) -> str | None:
    """A post's text, with each cut link replaced by the address that it stands for.

    Args:
        record: The post as its author wrote it.

    Returns:
        The text; null when there is none. A link under other words stays as it is shown.

    Example:
        >>> link = {"$type": "app.bsky.richtext.facet#link", "uri": "https://example.org/foxes"}
        >>> facet = {"index": {"byteStart": 4, "byteEnd": 21}, "features": [link]}
        >>> bluesky_text(Fields({"text": "see example.org/fo...", "facets": [facet]}))
        'see https://example.org/foxes'
    """
    text = record.text("text")
    given = record.record.get("text")
    if text is None or not isinstance(given, str):
        return text
    # Facets count bytes of the text as it was sent, before what no table can hold is taken out.
    left = given.encode("utf-8", "surrogatepass")
    parts: list[bytes] = []
    for link in sorted(_links(record), reverse=True):
        shown = left[link.start : link.end]
        if link.end <= len(left) and _is_cut(shown, link.address):
            parts[:0] = [link.address.encode(), left[link.end :]]
            left = left[: link.start]
    whole = b"".join([left, *parts]).decode("utf-8", "surrogatepass")
    return whole.encode("utf-8", "replace").decode().replace("\x00", "").strip()


def _links(record: Fields) -> Iterator[_Link]:
    for facet in record.objects("facets"):
        fields = Fields(facet, record.findings, "facets.")
        index = Fields(fields.object("index"), record.findings, "facets.index.")
        start, end = index.count("byteStart"), index.count("byteEnd")
        for feature in fields.objects("features"):
            if feature.get("$type") != LINK:
                continue
            address = Fields(feature, record.findings, "facets.").link("uri")
            if start is None or end is None or end <= start:
                record.find(Notice.BAD_FIELD, "facets", facet, "a stretch of bytes")
            elif address is not None:
                yield _Link(start, end, address)


def _is_cut(shown: bytes, address: str) -> bool:
    text = shown.decode("utf-8", "replace").strip()
    stem = next((text.removesuffix(end) for end in ELLIPSES if text.endswith(end)), "")
    begun = START.sub("", stem, count=1) if START.match(stem) else stem
    whole = address[found.end() :] if (found := START.match(address)) else address
    return bool(begun) and whole.startswith(begun)
