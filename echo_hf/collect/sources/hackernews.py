"""Posts of Hacker News, as the search of Algolia answers: pages of hits, and trees of items.

The site has no images. A story's text is its title, what its author wrote, and the page it
points to; the points of a story are votes for it alone, those of a comment are not likes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from echo_hf.collect.fields import Fields, Json, Pages, text_of_html
from echo_hf.collect.sources.base import Parsed, Post, register
from echo_hf.reasons import Missing, Reject

ITEM = "https://news.ycombinator.com/item?id="
TITLED = frozenset({"story", "poll", "job"})
KINDS = ("comment", "pollopt", *sorted(TITLED))
LARGEST = 10**12


@register("hackernews")
class HackerNews(Pages):
    expected = "a story or a comment of Hacker News, with its number"
    keyword_sign = r'"_query": "[^"]'

    def parts(self, document: Any) -> list[tuple[str, Any]] | None:
        """The items of pages and trees, each without those below it."""
        is_page = isinstance(document, dict) and any(
            isinstance(document.get(name), list) for name in ("hits", "children")
        )
        waiting = [(document, False, None)] if is_page or isinstance(document, list) else []
        found: list[tuple[str, Any]] = []
        while waiting:
            item, came_along, query = waiting.pop()
            if isinstance(item, dict) and isinstance(item.get("hits"), list):
                item, query = item["hits"], item.get("query")
            if isinstance(item, list):
                waiting += [(one, came_along, query) for one in reversed(item)]
                continue
            if isinstance(item, dict):
                item = dict(item)
                if isinstance(item.get("children"), list):
                    waiting += [(one, True, None) for one in reversed(item.pop("children"))]
                if came_along:
                    item["_came_along"] = True
                if isinstance(query, str) and query.strip():
                    item["_query"] = query
            found.append((f"#{len(found)}", item))
        return found or None

    def read(self, fields: Fields, keywords: Sequence[str]) -> Iterator[Parsed | Json]:
        record = fields.record
        number = _number(record.get("objectID", record.get("id")))
        said, tags = fields.text("type"), fields.texts("_tags")
        kind = next((one for one in KINDS if one == said or (not said and one in tags)), None)
        if kind is None:
            yield self.refused(Reject.NOT_A_POST, record, "type", "_tags")
            return
        if number is None:
            yield self.refused(Reject.NO_URL, record, "objectID", "id")
            return
        query = [] if record.get("_came_along") else [fields.text("_query") or ""]
        written = fields.text("comment_text") or fields.text("story_text") or fields.text("text")
        texts, engagement = [text_of_html(written) if written else None], None
        if kind in TITLED:  # a comment that a search found names its story's title and page, too
            page = fields.link("url") if fields.text("url") else None
            texts = [fields.text("title"), *texts, page]
            engagement = fields.engagement({"likes": "points", "replies": "num_comments"})
        text = "\n\n".join(filter(None, texts)) or None
        author, above = fields.text("author"), record.get("parent_id")
        parent = _number(above)
        if above is not None and parent is None:
            fields.bad("parent_id", above, "the number of an item")
        if "children" in record:
            fields.bad("children", record["children"], "a list of items")
        yield Post(
            url=f"{ITEM}{number}",
            post_id=str(number),
            platform="hackernews",
            author=author,
            text=text,
            timestamp=fields.moment("created_at") or fields.moment("created_at_i"),
            keywords=list(dict.fromkeys([*keywords, *filter(None, query)])),
            parent_url=None if parent is None else f"{ITEM}{parent}",
            engagement=engagement,
            missing=Missing.DELETED if text is None and author is None else None,
        )


def _number(given: Any) -> int | None:
    if isinstance(given, str) and given.isascii() and given.isdigit() and len(given) < 13:
        given = int(given)
    usable = isinstance(given, int) and not isinstance(given, bool) and 0 < given < LARGEST
    return given if usable else None
