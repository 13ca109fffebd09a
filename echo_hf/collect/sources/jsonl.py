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

from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from echo_hf.collect.fields import Fields, short_repr
from echo_hf.collect.sources.base import Finding, Parsed, Post, PostImage, numbered_lines, register
from echo_hf.collect.urls import canonical_url
from echo_hf.reasons import Missing, Notice, Reject
from echo_hf.tables import POSTS

KNOWN = frozenset(POSTS.columns) - {"relevance"} | {"edited"}
IMAGE_FIELDS = frozenset({"path", "url", "alt_text"})
COUNTS = tuple(POSTS.schema.field("engagement").type.names)


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
        fields = Fields(record)
        given = record.get("url")
        url = canonical_url(given, fragment=True) if isinstance(given, str) else None
        if url is None:
            yield Finding(Reject.NO_URL, f"url is {short_repr(given)}, expected a web address")
            return
        fields.closed(KNOWN)
        yield _post(url, fields, keywords)
        yield from fields.findings


def _post(url: str, fields: Fields, keywords: Sequence[str]) -> Post:
    return Post(
        url=url,
        post_id=fields.text("post_id"),
        platform=fields.text("platform"),
        author=fields.text("author"),
        text=fields.text("text"),
        timestamp=fields.moment("timestamp"),
        edited=fields.moment("edited"),
        lang=fields.text("lang"),
        keywords=_keywords(fields, keywords),
        pictures=[_image(fields, one) for one in fields.objects("pictures")],
        parent_url=fields.address("parent_url"),
        quoted_url=fields.address("quoted_url"),
        engagement=_engagement(fields),
        missing=_missing(fields),
    )


def _keywords(fields: Fields, of_file: Sequence[str]) -> Sequence[str]:
    own = fields.texts("keywords")
    return own if isinstance(fields.record.get("keywords"), list) else list(of_file)


def _missing(fields: Fields) -> str | None:
    missing = fields.text("missing")
    if missing is None or missing in list(Missing):
        return missing
    fields.find(Notice.BAD_FIELD, "missing", missing, f"one of {', '.join(Missing)}")
    return None


def _image(fields: Fields, record: Mapping[str, Any]) -> PostImage:
    inner = Fields(record, fields.findings, "pictures.")
    inner.closed(IMAGE_FIELDS)
    image = PostImage(inner.text("path") or None, inner.link("url"), inner.text("alt_text"))
    if not record.get("path") and not record.get("url"):
        fields.find(Notice.BAD_FIELD, "pictures", record, "a path or a url")
    return image


def _engagement(fields: Fields) -> dict[str, int | None] | None:
    given = Fields(fields.object("engagement"), fields.findings, "engagement.")
    given.closed(COUNTS)
    return {name: given.count(name) for name in COUNTS} if given.record else None


@register("quickstart")
class Quickstart(JsonLines):
    """The posts that come with the package; they need no path."""

    @property
    def bundled(self) -> Path:
        """The file of the bundled posts."""
        return Path(str(files("echo_hf.quickstart").joinpath("posts.jsonl")))
