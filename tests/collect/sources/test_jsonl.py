"""Our own format of posts."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest

from echo_hf.collect.collect import Collect
from echo_hf.collect.fields import COUNTS
from echo_hf.collect.records import read_records
from echo_hf.collect.sources import table
from echo_hf.collect.sources.base import Finding, PostImage, make_source
from echo_hf.config.sections import Posts
from echo_hf.errors import ConfigError
from echo_hf.pipeline.stage_runner import run_stage
from echo_hf.tables import POSTS
from tests.collect.conftest import Reads

URL = "https://example.org/a"
FULL: dict[str, Any] = {
    "url": "https://mobile.twitter.com/mira_draws/status/7?s=20",
    "post_id": "seven",
    "platform": "forum",
    "author": "mira_draws",
    "text": "A fox 🦊\n\nPrompt: a paper fox",
    "timestamp": "2026-03-02T19:12:40+02:00",
    "lang": "en",
    "keywords": ["lumen image"],
    "pictures": [{"url": "https://p.example/b.png?utm_source=x", "alt_text": "a fox"}],
    "parent_url": "https://x.com/tofu_lab/status/6",
    "quoted_url": "https://twitter.com/tofu_lab/status/5?s=20",
    "engagement": {"likes": 0, "views": 9, "replies": None},
    "missing": None,
}


def test_all_fields_are_read(reads: Reads) -> None:
    whole = {
        **FULL,
        "url": "https://x.com/i/status/7",
        "timestamp": "2026-03-02T17:12:40+00:00",
        "pictures": [("https://p.example/b.png?utm_source=x", "a fox")],
        "parent_url": "https://x.com/i/status/6",
        "quoted_url": "https://x.com/i/status/5",
        "engagement": {**dict.fromkeys(COUNTS), "likes": 0, "views": 9},
    }

    reads("jsonl", FULL, {"7": whole})
    assert set(FULL) == set(POSTS.columns) - {"relevance"}
    assert all(f"`{name}`" in str(table.__doc__) for name in FULL)


@pytest.mark.parametrize(
    ("record", "expected"),
    [({}, ["lumen"]), ({"keywords": []}, []), ({"keywords": ["own"]}, ["own"])],
)
def test_own_keywords_come_before_those_of_the_file(
    record: Any, expected: list[str], reads: Reads
) -> None:
    reads("jsonl", {"url": URL, **record}, {"a": {"keywords": expected}}, [], ["lumen"])


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ([], "not_a_post: list, expected an object"),
        ({}, "no_url: url is None, expected a web address"),
        ({"url": [URL]}, "no_url: url is ['https://example.org/a'], expected a web address"),
    ],
)
def test_without_an_address_there_is_no_post(record: Any, said: str) -> None:
    (found,) = make_source("jsonl").posts(record, [])

    assert isinstance(found, Finding)
    assert f"{found.reason}: {found.detail}" == said


@pytest.mark.parametrize(
    ("field", "value", "kept", "reason"),
    [
        ("text", 5, None, "bad_field"),
        ("timestamp", "soon", None, "bad_timestamp"),
        ("keywords", ["fox", 5], ["fox"], "bad_field"),
        ("parent_url", "file:///etc/passwd", None, "bad_field"),
        ("missing", "lost", None, "bad_field"),
        ("pictures", ["a.png"], [], "bad_field"),
        ("pictures", [{"alt_text": "a"}], [PostImage(None, None, "a")], "bad_field"),
        ("pictures", [{"path": "a.png", "url": "data:,"}], [PostImage("a.png")], "bad_field"),
        ("pictures", [{"path": "a.png", "alt": "a"}], [PostImage("a.png")], "unknown_field"),
        ("engagement", {"likes": -1}, dict.fromkeys(COUNTS), "bad_field"),
        ("engagement", {"stars": 5}, dict.fromkeys(COUNTS), "unknown_field"),
        ("txet", "a", None, "unknown_field"),
    ],
)
def test_a_bad_field_costs_only_itself(field: str, value: Any, kept: Any, reason: str) -> None:
    post, finding = make_source("jsonl").posts({"url": URL, field: value}, [])

    assert isinstance(finding, Finding)
    assert (getattr(post, field, None), str(finding.reason)) == (kept, reason)
    assert finding.detail.startswith(field)


def test_the_bundled_posts_are_read_without_a_path(collect: Collect) -> None:
    text = files("echo_hf.quickstart").joinpath("posts.jsonl").read_text("utf-8")
    lines = list(map(json.loads, text.splitlines()))
    result = run_stage(collect, read_records([Posts(source="quickstart")]))
    named = sum("path" in one for line in lines for one in line.get("pictures", []))
    taken_in = sum(one["sha256"] is not None for post in result.dataset for one in post["pictures"])

    assert len(result.dataset) == len(lines) - sum(result.stats.rejected.values()) > 0
    assert taken_in >= named - sum(result.stats.noted.values()) > 0
    with pytest.raises(ConfigError, match="named twice"):
        read_records([Posts(source="quickstart"), Posts(source="quickstart")])
