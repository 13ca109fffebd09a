"""Posts of Hacker News, as its search answers."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Json = dict[str, Any]
CollectLines = Callable[..., list[Json]]
ITEM = "https://news.ycombinator.com/item?id="


@pytest.fixture
def answers(test_data: Path) -> list[Json]:
    file = test_data / "posts" / "hackernews" / "algolia_fixtures.json"
    if not file.exists():
        pytest.skip(f"no file {str(file)!r}")
    recorded: list[Json] = json.loads(file.read_text())
    return recorded


def kept(rows: list[Json]) -> list[Json]:
    return [row for row in rows if row["_status"] == "kept"]


def letters(text: str) -> str:
    return re.sub(r"\W", "", text)


def test_every_hit_of_the_real_pages_is_a_post(
    answers: list[Json], collect_lines: CollectLines
) -> None:
    pages = [one["reply"] for one in answers if "hits" in one["reply"]]
    count = 0
    for page in pages:
        for hit, row in zip(
            page["hits"], kept(collect_lines("hackernews", [json.dumps(page)])), strict=True
        ):
            count += 1
            above = hit["parent_id"]
            assert (row["url"], row["author"]) == (ITEM + hit["objectID"], hit["author"])
            assert row["parent_url"] == (f"{ITEM}{above}" if above else None)
            assert row["timestamp"].timestamp() == hit["created_at_i"]
            assert row["keywords"] == ([page["query"]] if page["query"] else [])
            raw = hit["comment_text"] or f"{hit['title']}{hit['story_text'] or ''}"
            for piece in re.split(r"<a .*?</a>", raw):  # links are shown cut, and stand whole here
                plain = html.unescape(re.sub(r"<[^>]*>", "", piece))
                assert letters(plain) in letters(row["text"])
            likes = None if hit["comment_text"] else hit["points"]
            assert (row["engagement"] or {}).get("likes") == likes
    assert count == len(pages) > 20


def test_a_real_tree_is_taken_apart(answers: list[Json], collect_lines: CollectLines) -> None:
    (tree,) = (one["reply"] for one in answers if "children" in one["reply"])
    rows = collect_lines("hackernews", [json.dumps(tree)], ["lunch"])

    assert [(row["post_id"], row["parent_url"], row["text"]) for row in rows] == [
        ("17", f"{ITEM}15", "Is there anywhere to eat on Sandhill Road?"),
        ("1079", f"{ITEM}17", "sure"),
        ("454426", f"{ITEM}17", "This is why we can't have nice things."),
    ]
    assert [row["keywords"] for row in rows] == [["lunch"], [], []]


def test_a_deleted_item_keeps_its_place(collect_lines: CollectLines) -> None:
    gone = {"id": 5, "type": "comment", "author": None, "text": None, "parent_id": 4}
    tree = {**gone, "children": [{"id": 6, "type": "comment", "text": "a", "parent_id": 5}]}
    first, second = kept(collect_lines("hackernews", [json.dumps(tree)]))

    assert (first["missing"], first["parent_url"]) == ("deleted", f"{ITEM}4")
    assert (second["missing"], second["parent_url"]) == (None, first["url"])
