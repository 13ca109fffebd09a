"""Posts of Hacker News, as its search answers."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable

import pytest

from tests.collect.sources.conftest import Json, Reads, Real

CollectLines = Callable[..., list[Json]]
ITEM = "https://news.ycombinator.com/item?id="


@pytest.fixture
def answers(real: Real) -> list[Json]:
    recorded = json.loads(real("hackernews/algolia_fixtures.json").read_text())
    return [one["reply"] for one in recorded]


def letters(text: str) -> str:
    return re.sub(r"\W", "", text)


def test_every_hit_of_the_real_pages_is_a_post(
    answers: list[Json], collect_lines: CollectLines
) -> None:
    pages = [one for one in answers if "hits" in one]
    hits = [(page["query"], hit) for page in pages for hit in page["hits"]]
    rows = [row for page in pages for row in collect_lines("hackernews", [json.dumps(page)])]
    for (query, hit), row in zip(hits, rows, strict=True):
        above = hit["parent_id"]
        assert (row["url"], row["author"]) == (ITEM + hit["objectID"], hit["author"])
        assert row["parent_url"] == (f"{ITEM}{above}" if above else None)
        assert row["timestamp"].timestamp() == hit["created_at_i"]
        assert row["keywords"] == ([query] if query else [])
        raw = hit["comment_text"] or f"{hit['title']}{hit['story_text'] or ''}"
        for piece in re.split(r"<a .*?</a>", raw):  # links are shown cut, and stand whole here
            assert letters(html.unescape(re.sub(r"<[^>]*>", "", piece))) in letters(row["text"])
        likes = None if hit["comment_text"] else hit["points"]
        assert (row["engagement"] or {}).get("likes") == likes
    assert len(hits) == len(pages) > 20


def test_a_real_tree_is_taken_apart(answers: list[Json], reads: Reads) -> None:
    (tree,) = (one for one in answers if "children" in one)
    texts = {
        "17": (15, "Is there anywhere to eat on Sandhill Road?", ["fox"]),
        "1079": (17, "sure", []),
        "454426": (17, "This is why we can't have nice things.", []),
    }
    expected = {
        f"item?id={name}": {"parent_url": f"{ITEM}{above}", "text": text, "keywords": words}
        for name, (above, text, words) in texts.items()
    }

    reads("hackernews", tree, expected)


def test_a_deleted_item_keeps_its_place(reads: Reads) -> None:
    gone = {"id": 5, "type": "comment", "author": None, "text": None, "parent_id": 4}
    tree = {**gone, "children": [{"id": 6, "type": "comment", "text": "a", "parent_id": 5}]}
    first = {"missing": "deleted", "parent_url": f"{ITEM}4"}
    second = {"missing": None, "parent_url": f"{ITEM}5"}

    reads("hackernews", tree, {"item?id=5": first, "item?id=6": second})
