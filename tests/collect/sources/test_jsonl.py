"""Our own format of posts."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from typing import Any

import pytest

from echo_hf.collect.sources import jsonl
from echo_hf.collect.sources.base import Finding, Post, PostImage, make_source
from echo_hf.tables import POSTS

FULL: dict[str, Any] = {
    "url": "https://mobile.twitter.com/mira_draws/status/7?s=20",
    "post_id": "seven",
    "platform": "forum",
    "author": "mira_draws",
    "text": "A fox 🦊\n\nPrompt: a paper fox",
    "timestamp": "2026-03-02T19:12:40+02:00",
    "lang": "en",
    "keywords": ["lumen image"],
    "pictures": [
        {"path": "a.png", "alt_text": "a fox"},
        {"url": "https://p.example/b.png?utm_source=x"},
    ],
    "parent_url": "https://x.com/tofu_lab/status/6",
    "quoted_url": "https://twitter.com/tofu_lab/status/5?s=20",
    "engagement": {"likes": 0, "views": 9, "replies": None},
    "missing": None,
}


def read(record: Any, *keywords: str) -> tuple[list[Post], list[Finding]]:
    """Posts and findings of a record."""
    every = list(make_source("jsonl").posts(record, keywords))
    posts = [one for one in every if isinstance(one, Post)]
    return posts, [one for one in every if isinstance(one, Finding)]


def test_all_fields_are_read() -> None:
    """Addresses in one spelling, the time in UTC, counts that are not given null and not 0."""
    (post,), findings = read(FULL)

    assert findings == []
    assert post == Post(
        url="https://x.com/i/status/7",
        post_id="seven",
        platform="forum",
        author="mira_draws",
        text="A fox 🦊\n\nPrompt: a paper fox",
        timestamp=datetime.datetime(2026, 3, 2, 17, 12, 40, tzinfo=datetime.UTC),
        lang="en",
        keywords=["lumen image"],
        pictures=[
            PostImage("a.png", None, "a fox"),
            PostImage(None, "https://p.example/b.png?utm_source=x", None),
        ],
        parent_url="https://x.com/i/status/6",
        quoted_url="https://x.com/i/status/5",
        engagement={"likes": 0, "views": 9, "reposts": None, "replies": None, "bookmarks": None},
    )


def test_the_format_has_the_columns_of_the_posts_table() -> None:
    """All but the relevance, which is ours; each is in the documentation."""
    assert set(FULL) == set(POSTS.columns) - {"relevance"}
    assert all(f"`{name}`" in str(jsonl.__doc__) for name in FULL)


def test_only_the_address_is_needed() -> None:
    """What is absent is null or empty."""
    (post,), findings = read({"url": "https://example.org/a"})

    assert post == Post("https://example.org/a", keywords=[], pictures=[])
    assert findings == []


@pytest.mark.parametrize(
    ("record", "of_file", "expected"),
    [
        ({}, ["lumen"], ["lumen"]),
        ({"keywords": None}, ["lumen"], ["lumen"]),
        ({"keywords": []}, ["lumen"], []),
        ({"keywords": ["own"]}, ["lumen"], ["own"]),
        ({"keywords": "own"}, ["lumen"], ["lumen"]),
    ],
)
def test_own_keywords_come_before_those_of_the_file(
    record: dict[str, Any], of_file: list[str], expected: list[str]
) -> None:
    """An empty list says that no search found the post: the file's terms do not count for it."""
    (post,), _ = read({"url": "https://example.org/a", **record}, *of_file)

    assert post.keywords == expected


@pytest.mark.parametrize(
    ("record", "reason", "detail"),
    [
        ([], "not_a_post", "list, expected an object"),
        (None, "not_a_post", "NoneType, expected an object"),
        ({}, "no_url", "url is None, expected a web address"),
        ({"url": 5}, "no_url", "url is 5, expected a web address"),
        ({"url": "a"}, "no_url", "url is 'a', expected a web address"),
        (
            {"url": "javascript:alert(1)"},
            "no_url",
            "url is 'javascript:alert(1)', expected a web address",
        ),
        ({"url": ["https://example.org"]}, "no_url", None),
    ],
)
def test_without_an_address_there_is_no_post(record: Any, reason: str, detail: str | None) -> None:
    """It is rejected with the value that was found."""
    posts, (finding,) = read(record)

    assert posts == []
    assert str(finding.reason) == reason
    assert detail in (None, finding.detail)


@pytest.mark.parametrize(
    ("field", "value", "kept", "reason"),
    [
        ("text", 5, None, "bad_field"),
        ("text", ["a"], None, "bad_field"),
        ("author", {"name": "mira"}, None, "bad_field"),
        ("timestamp", "soon", None, "bad_timestamp"),
        ("timestamp", [2026], None, "bad_timestamp"),
        ("keywords", "fox", [], "bad_field"),
        ("keywords", ["fox", 5], ["fox"], "bad_field"),
        ("parent_url", "file:///etc/passwd", None, "bad_field"),
        ("quoted_url", 7, None, "bad_field"),
        ("missing", "lost", None, "bad_field"),
        ("pictures", {"path": "a.png"}, [], "bad_field"),
        ("pictures", ["a.png"], [], "bad_field"),
        ("pictures", [{"alt_text": "a"}], [PostImage(None, None, "a")], "bad_field"),
        ("pictures", [{"path": 5, "alt_text": "a"}], [PostImage(None, None, "a")], "bad_field"),
        (
            "pictures",
            [{"path": "a.png", "url": "data:image/png;base64,AA"}],
            [PostImage("a.png", None, None)],
            "bad_field",
        ),
        ("pictures", [{"path": "a.png", "alt": "a"}], [PostImage("a.png")], "unknown_field"),
        ("engagement", 5, None, "bad_field"),
        ("engagement", {"likes": -1}, dict.fromkeys(jsonl.COUNTS), "bad_field"),
        ("engagement", {"likes": 2**63}, dict.fromkeys(jsonl.COUNTS), "bad_field"),
        ("engagement", {"stars": 5}, dict.fromkeys(jsonl.COUNTS), "unknown_field"),
        ("txet", "a", None, "unknown_field"),
    ],
)
def test_a_bad_field_costs_only_itself(field: str, value: Any, kept: Any, reason: str) -> None:
    """The post stays without it, and the finding names the field."""
    (post,), (finding,) = read({"url": "https://example.org/a", field: value})

    assert getattr(post, field, None) == kept
    assert post.url == "https://example.org/a"
    assert str(finding.reason) == reason
    assert finding.detail.startswith(field)


def test_a_line_is_a_post(collect_lines: Callable[..., list[dict[str, Any]]]) -> None:
    """A line of the format ends as a row of the posts table."""
    (row, lost) = collect_lines("jsonl", [json.dumps(FULL)])

    assert row["pictures"] == [
        {"sha256": None, "url": None, "alt_text": "a fox"},
        {"sha256": None, "url": "https://p.example/b.png?utm_source=x", "alt_text": None},
    ]
    assert (row["post_id"], row["platform"], row["missing"]) == ("seven", "forum", None)
    assert lost["_reason"] == "picture_not_found"
