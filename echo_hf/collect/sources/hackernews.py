"""Posts of Hacker News, as the search of Algolia answers: pages of hits, and trees of items.

The site has no images. A story's text is its title, what its author wrote, and the page it
points to; the points of a story are votes for it alone, those of a comment are not likes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from echo_hf.collect.fields import Fields, short_repr, text_of_html
from echo_hf.collect.nested_json import taken_apart
from echo_hf.collect.sources.base import Finding, Parsed, Post, register
from echo_hf.reasons import Missing, Notice, Reject

ITEM = "https://news.ycombinator.com/item?id="
TITLED = frozenset({"story", "poll", "job"})
LARGEST = 10**12
Json = Mapping[str, Any]


@register("hackernews")
class HackerNews:
    keyword_sign = r'"_query": "[^"]'

    def split(self, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
        return taken_apart(lines, _items)

    def posts(self, record: Any, keywords: Sequence[str]) -> Iterator[Parsed]:
        if not isinstance(record, dict):
            yield Finding(
                Reject.NOT_A_POST, f"{short_repr(record)}, expected an item of Hacker News"
            )
            return
        fields = Fields(record)
        number = _number(record.get("objectID", record.get("id")))
        kind = _kind(fields)
        if kind is None:
            given = (
                f"type is {short_repr(record.get('type'))}, keys are {short_repr(sorted(record))}"
            )
            yield Finding(Reject.NOT_A_POST, f"{given}, expected a story or a comment")
        elif number is None:
            given = short_repr(record.get("objectID", record.get("id")))
            yield Finding(Reject.NO_URL, f"id is {given}, expected the number of an item")
        else:
            query = fields.text("_query")
            found = [] if record.get("_came_along") else [*keywords, *([query] if query else [])]
            yield _post(number, kind, fields, list(dict.fromkeys(found)))
            yield from fields.findings


def _items(document: Any) -> Iterator[tuple[str, Any]]:
    """The items of pages and trees, each without those below it."""
    waiting: list[tuple[Any, bool, Any]] = [(document, False, None)] * _holds_items(document)
    number = 0
    while waiting:
        item, came_along, query = waiting.pop()
        if isinstance(item, list):
            waiting += [(one, came_along, query) for one in reversed(item)]
        elif isinstance(item, dict) and isinstance(item.get("hits"), list):
            waiting.append((item["hits"], came_along, item.get("query")))
        else:
            alone, below = _apart(item, came_along, query)
            waiting += [(one, True, None) for one in reversed(below)]
            yield f"#{number}", alone
            number += 1


def _holds_items(document: Any) -> bool:
    if isinstance(document, dict):
        return any(isinstance(document.get(name), list) for name in ("hits", "children"))
    return isinstance(document, list)


def _apart(item: Any, came_along: bool, query: Any) -> tuple[Any, list[Any]]:
    if not isinstance(item, dict):
        return item, []
    given = item.get("children")
    below = given if isinstance(given, list) else []
    alone = {name: one for name, one in item.items() if name != "children" or one is not below}
    if came_along:
        alone["_came_along"] = True
    if isinstance(query, str) and query.strip():
        alone["_query"] = query
    return alone, below


def _kind(fields: Fields) -> str | None:
    given = fields.text("type")
    tags = fields.texts("_tags")
    for kind in ("comment", "pollopt", *sorted(TITLED)):
        if given == kind or (given is None and kind in tags):
            return kind
    return None


def _post(number: int, kind: str, fields: Fields, keywords: Sequence[str]) -> Post:
    text = _text(kind, fields)
    gone = text is None and fields.text("author") is None
    if "children" in fields.record:
        fields.find(Notice.BAD_FIELD, "children", fields.record["children"], "a list of items")
    return Post(
        url=f"{ITEM}{number}",
        post_id=str(number),
        platform="hackernews",
        author=fields.text("author"),
        text=text,
        timestamp=fields.moment("created_at") or fields.moment("created_at_i"),
        keywords=keywords,
        parent_url=_parent(fields),
        engagement=_engagement(kind, fields),
        missing=Missing.DELETED if gone else None,
    )


def _text(kind: str, fields: Fields) -> str | None:
    written = fields.text("comment_text") or fields.text("story_text") or fields.text("text")
    parts = [text_of_html(written) if written else None]
    if kind in TITLED:  # a comment that a search found names its story's title and page, too
        parts = [fields.text("title"), *parts, fields.link("url") if fields.text("url") else None]
    return "\n\n".join(part for part in parts if part) or None


def _parent(fields: Fields) -> str | None:
    given = fields.record.get("parent_id")
    number = _number(given)
    if given is not None and number is None:
        fields.find(Notice.BAD_FIELD, "parent_id", given, "the number of an item")
    return None if number is None else f"{ITEM}{number}"


def _engagement(kind: str, fields: Fields) -> dict[str, int | None] | None:
    points = fields.count("points") if kind in TITLED else None
    replies = fields.count("num_comments") if kind in TITLED else None
    if points is None and replies is None:
        return None
    none = dict.fromkeys(("views", "reposts", "bookmarks"))
    return {"likes": points, "replies": replies, **none}


def _number(given: Any) -> int | None:
    if isinstance(given, str) and given.isascii() and given.isdigit() and len(given) < 13:
        given = int(given)
    usable = isinstance(given, int) and not isinstance(given, bool) and 0 < given < LARGEST
    return given if usable else None
