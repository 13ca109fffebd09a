"""Our own format: one JSON object a line, with the columns of the posts table.

| field | value |
|---|---|
| `url` | address of the post (required) |
| `text`, `author`, `lang`, `post_id`, `platform` | texts; the last two follow from the address |
| `timestamp` | ISO 8601, or seconds since 1970; without a zone it is UTC |
| `edited` | when its text was last changed, for a post that is in the files more than once |
| `keywords` | list of the search terms that found it, empty for replies; without it the config's |
| `pictures` | list of `{"path": ...}`, relative to the file, or `{"url": ...}`; with `alt_text` |
| `parent_url`, `quoted_url` | the post it replies to; the post it quotes |
| `engagement` | `{"likes", "views", "reposts", "replies", "bookmarks"}`, whole numbers |
| `missing` | why the content is not there: deleted, protected, blocked, not_found, not_fetched |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from echo_hf.collect.fields import COUNTS, Fields, short_repr
from echo_hf.collect.sources.base import Finding, Parsed, Post, PostImage, numbered_lines, register
from echo_hf.collect.urls import canonical_url
from echo_hf.reasons import Missing, Reject
from echo_hf.tables import POSTS

KNOWN = frozenset(POSTS.columns) - {"relevance"} | {"edited"}
IMAGE_FIELDS = frozenset({"path", "url", "alt_text"})


@register("jsonl")
class JsonLines:
    """Posts in our own format."""

    keyword_sign = r'"keywords"\s*:\s*\[\s*"'
    split = staticmethod(numbered_lines)

    def posts(self, record: Any, keywords: Sequence[str]) -> Iterator[Parsed]:
        """The post of a line, and what was wrong with it."""
        if not isinstance(record, dict):
            yield Finding(Reject.NOT_A_POST, f"{type(record).__name__}, expected an object")
            return
        url = canonical_url(given := record.get("url"), fragment=True)
        if url is None:
            yield Finding(Reject.NO_URL, f"url is {short_repr(given)}, expected a web address")
            return
        fields = Fields(record)
        fields.closed(KNOWN)
        own, missing = fields.texts("keywords"), fields.text("missing")
        if missing is not None and missing not in list(Missing):
            fields.bad("missing", missing, f"one of {', '.join(Missing)}")
            missing = None
        counts = fields.part("engagement")
        counts.closed(COUNTS)
        yield Post(
            url=url,
            post_id=fields.text("post_id"),
            platform=fields.text("platform"),
            author=fields.text("author"),
            text=fields.text("text"),
            timestamp=fields.moment("timestamp"),
            edited=fields.moment("edited"),
            lang=fields.text("lang"),
            keywords=own if isinstance(record.get("keywords"), list) else list(keywords),
            pictures=[_image(fields, one) for one in fields.parts("pictures")],
            parent_url=fields.address("parent_url"),
            quoted_url=fields.address("quoted_url"),
            engagement={name: counts.count(name) for name in COUNTS} if counts.record else None,
            missing=missing,
        )
        yield from fields.findings


def _image(fields: Fields, image: Fields) -> PostImage:
    image.closed(IMAGE_FIELDS)
    if not image.record.get("path") and not image.record.get("url"):
        fields.bad("pictures", image.record, "a path or a url")
    return PostImage(image.text("path") or None, image.link("url"), image.text("alt_text"))


@register("quickstart")
class Quickstart(JsonLines):
    """The posts that come with the package; they need no path."""

    @property
    def bundled(self) -> Path:
        """The file of the bundled posts."""
        return Path(str(files("echo_hf.quickstart").joinpath("posts.jsonl")))
