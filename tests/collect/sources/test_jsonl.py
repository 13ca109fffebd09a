"""Our own format of posts."""

from __future__ import annotations

import datetime
import json
from importlib.resources import files
from typing import Any

import pytest

from echo_hf.collect.collect import Collect
from echo_hf.collect.fields import COUNTS
from echo_hf.collect.records import read_records
from echo_hf.collect.sources import jsonl
from echo_hf.collect.sources.base import Finding, Post, PostImage, make_source
from echo_hf.config.sections import Posts
from echo_hf.errors import ConfigError
from echo_hf.pipeline.stage_runner import run_stage
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
    every = list(make_source("jsonl").posts(record, keywords))
    posts = [one for one in every if isinstance(one, Post)]
    return posts, [one for one in every if isinstance(one, Finding)]


def test_all_fields_are_read() -> None:
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
    assert set(FULL) == set(POSTS.columns) - {"relevance"}
    assert all(f"`{name}`" in str(jsonl.__doc__) for name in FULL)


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
        ("engagement", {"likes": -1}, dict.fromkeys(COUNTS), "bad_field"),
        ("engagement", {"likes": 2**63}, dict.fromkeys(COUNTS), "bad_field"),
        ("engagement", {"stars": 5}, dict.fromkeys(COUNTS), "unknown_field"),
        ("txet", "a", None, "unknown_field"),
    ],
)
def test_a_bad_field_costs_only_itself(field: str, value: Any, kept: Any, reason: str) -> None:
    (post,), (finding,) = read({"url": "https://example.org/a", field: value})

    assert getattr(post, field, None) == kept
    assert post.url == "https://example.org/a"
    assert str(finding.reason) == reason
    assert finding.detail.startswith(field)


BUNDLED = files("echo_hf.quickstart").joinpath("posts.jsonl")


def test_the_bundled_posts_are_read_without_a_path(collect: Collect) -> None:
    lines = [json.loads(line) for line in BUNDLED.read_text("utf-8").splitlines()]
    result = run_stage(collect, read_records([Posts(source="quickstart")]))
    named = sum("path" in one for line in lines for one in line.get("pictures", []))
    taken_in = sum(one["sha256"] is not None for post in result.dataset for one in post["pictures"])

    assert len(result.dataset) == len(lines) - sum(result.stats.rejected.values())
    assert len(result.dataset) > 0
    assert taken_in >= named - sum(result.stats.noted.values()) > 0


def test_a_path_of_its_own_is_not_taken_for_them(collect: Collect) -> None:
    with pytest.raises(ConfigError, match="named twice"):
        read_records([Posts(source="quickstart"), Posts(source="quickstart")])
