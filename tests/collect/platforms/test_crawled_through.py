"""A crawl through each client library: a reply is found, and its whole tree comes in."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from echo_hf.collect.crawl import crawl_posts
from echo_hf.collect.crawl_ledger import LEDGER, stored_answers
from echo_hf.collect.platforms.bluesky import Bluesky
from echo_hf.collect.platforms.mastodon import Mastodon
from echo_hf.collect.platforms.x import X
from echo_hf.collect.sources.base import Post, make_source
from echo_hf.config.loading import parse_config
from echo_hf.pipeline.run_folder import RunFolder
from tests.collect.platforms.crawling import HURRIED
from tests.collect.platforms.replaying import ReplayServer
from tests.progress_for_tests import Heard

pytestmark = pytest.mark.extras
# Post 3, which the search finds, answers 2, which answers 1; so does 4. Nobody answers 3 or 4.
PARENTS = {1: None, 2: 1, 3: 2, 4: 1}
REPLIES = {1: 2, 2: 1, 3: 0, 4: 0}
FEED = "/xrpc/app.bsky.feed."


def on_x(server: ReplayServer) -> X:
    def post(number: int) -> dict[str, Any]:
        parent = PARENTS[number]
        above = [{"type": "replied_to", "id": str(parent)}] if parent else []
        counts = {"reply_count": REPLIES[number]}
        return {
            "id": str(number),
            "text": "fox",
            "referenced_tweets": above,
            "public_metrics": counts,
        }

    server.gives("/2/tweets", {"data": [post(2)]}, {"data": [post(1)]}, {"data": []})
    conversation = {"data": [post(4), post(3), post(2)], "meta": {}}
    server.gives("/2/tweets/search/all", {"data": [post(3)], "meta": {}}, conversation)
    return X(server.url)


def on_bluesky(server: ReplayServer) -> Bluesky:
    def post(number: int) -> dict[str, Any]:
        uri = "at://did:plc:mira/app.bsky.feed.post/{}".format
        parent = PARENTS[number]
        reply = {"reply": {"parent": {"uri": uri(parent)}}} if parent else {}
        record = {"text": "fox", "createdAt": "2025-03-25T10:00:00Z", **reply}
        return {"uri": uri(number), "record": record, "replyCount": REPLIES[number]}

    from tests.collect.platforms.test_bluesky import BEGIN, session

    server.gives(BEGIN, session("only"))
    server.gives(f"{FEED}searchPosts", {"posts": [post(3)]}, {"posts": []})
    second = {"post": post(2), "replies": [{"post": post(3)}]}
    tree = {"post": post(1), "replies": [second, {"post": post(4)}]}
    server.gives(f"{FEED}getPostThread", {"thread": tree})
    return Bluesky(server.url)


def on_mastodon(server: ReplayServer) -> Mastodon:
    def post(number: int) -> dict[str, Any]:
        parent = PARENTS[number]
        return {
            "id": str(number),
            "uri": f"https://mastodon.example/users/mira/statuses/{number}",
            "content": "fox",
            "in_reply_to_id": str(parent) if parent else None,
            "replies_count": REPLIES[number],
        }

    server.gives("/api/v2/search", {"statuses": [post(3)]}, {"statuses": []})
    near = {"ancestors": [post(1), post(2)], "descendants": []}
    whole = {"ancestors": [], "descendants": [post(2), post(3), post(4)]}
    server.gives("/api/v1/statuses/3/context", near)
    server.gives("/api/v1/statuses/1/context", whole)
    return Mastodon(server.url)


@pytest.mark.parametrize(
    ("name", "library", "make"),
    [
        ("x", "tweepy", on_x),
        ("bluesky", "atproto", on_bluesky),
        ("mastodon", "mastodon", on_mastodon),
    ],
)
def test_a_found_reply_brings_its_tree(
    name: str,
    library: str,
    make: Callable[[ReplayServer], Any],
    server: ReplayServer,
    keys: dict[str, str],
    tmp_path: Path,
) -> None:
    pytest.importorskip(library, reason="needs its library: see `make test-extras`")
    phases = [{"days": 1, "window": "1d", "terms": ["fox"]}]
    config = parse_config(
        {
            "name": "crawled",
            "target": {"name": "A", "developer": "B", "released": "2025-03-25"},
            "posts": [{"source": name, "search": {"phases": phases}}],
            "engines": {"text": {"kind": "rules"}},
        },
        "c.yaml",
    )
    platform = make(server)
    watch = Heard()
    (stats,) = crawl_posts(
        config, RunFolder(tmp_path / "run"), watch, patience=HURRIED, make=lambda _: platform
    )
    source = make_source(name)
    posts = [
        one
        for answer in stored_answers(tmp_path / "run" / LEDGER, name)
        for _, record in source.split([answer.body])
        for one in source.posts(json.loads(record), answer.keywords)
        if isinstance(one, Post)
    ]
    # What one answer does not say of a post another one does.
    known = {(post.url, post.parent_url) for post in posts if post.parent_url}
    parents = dict.fromkeys((int(post.url[-1]) for post in posts), None)
    parents |= {int(url[-1]): int(parent[-1]) for url, parent in known}
    found = {int(post.url[-1]) for post in posts if post.keywords}

    assert (parents, found) == (PARENTS, {3})
    assert stats.end == "nothing_left"
    assert watch.remarks == []
