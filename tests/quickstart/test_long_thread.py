"""The thread that is longer than one request: for tests, not part of the quickstart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

CORPUS = Path(__file__).resolve().parents[2] / "echo_hf" / "quickstart"
LONGEST_REQUEST = 24_000


def lines(name: str) -> list[dict[str, Any]]:
    """The posts of a file."""
    return [json.loads(line) for line in (CORPUS / name).read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def posts() -> list[dict[str, Any]]:
    """The posts of the long thread."""
    return lines("long_thread.jsonl")


def test_it_is_longer_than_one_request(posts: list[dict[str, Any]]) -> None:
    """Number, parent, author and text of its 90 or more posts do not fit one request."""
    place = {post["url"]: number for number, post in enumerate(posts)}
    shown = [
        {
            "number": place[post["url"]],
            "parent": place.get(post.get("parent_url"), -1),
            "author": "author 1",
            "text": post["text"],
        }
        for post in posts
    ]
    assert len(posts) >= 90
    assert len(json.dumps(shown, ensure_ascii=False)) > LONGEST_REQUEST * 0.8
    # A model is also shown the images, their descriptions and why content is missing.
    rest = len('"pictures": 0, "alt_texts": [], "missing": null, ')
    assert len(json.dumps(shown, ensure_ascii=False)) + rest * len(posts) > LONGEST_REQUEST


def test_it_is_one_thread(posts: list[dict[str, Any]]) -> None:
    """Only the first post has no parent, and every parent is an earlier post."""
    seen: set[str] = set()
    for post in posts:
        assert (post.get("parent_url") in seen) is bool(seen), post["url"]
        seen.add(post["url"])


def test_its_posts_differ(posts: list[dict[str, Any]]) -> None:
    """No text and no address occurs twice, and no two posts in a row have one author."""
    assert len({post["text"] for post in posts}) == len(posts)
    assert len({post["url"] for post in posts}) == len(posts)
    authors = {post["url"]: post["author"] for post in posts}
    assert all(post["author"] != authors.get(post.get("parent_url", "")) for post in posts)


def test_it_is_no_part_of_the_quickstart(posts: list[dict[str, Any]]) -> None:
    """The bundled corpus holds none of its posts."""
    bundled = {post["url"] for post in lines("posts.jsonl")}
    assert not bundled & {post["url"] for post in posts}
