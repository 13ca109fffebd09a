"""A crawl of X from the query plan to the posts table, through the client library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from echo_hf.builder.build import run_until
from echo_hf.collect.crawl import crawl_posts
from echo_hf.collect.platforms.x import X
from echo_hf.config.loading import Config, parse_config
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import CrawlEnd
from tests.collect.platforms.replaying import ReplayServer
from tests.progress_for_tests import Heard

ALL, LOOKUP = "/2/tweets/search/all", "/2/tweets"
ADDRESS = "https://x.com/i/status/{}".format


def post(number: int, root: int, above: int | None = None, replies: int = 0) -> dict[str, Any]:
    """A post as the API gives it."""
    references = [{"type": "replied_to", "id": str(above)}] if above else None
    return {
        "id": str(number),
        "text": f"gpt {number}",
        "created_at": "2025-03-25T10:00:00.000Z",
        "conversation_id": str(root),
        "public_metrics": {"reply_count": replies, "like_count": 3},
        **({"referenced_tweets": references} if references else {}),
    }


def page(*posts: dict[str, Any], after: str | None = None, **rest: Any) -> dict[str, Any]:
    """A page of posts."""
    return {"data": list(posts), "meta": {"next_token": after} if after else {}, **rest}


def config_of(days: int) -> Config:
    """A config that searches the first days after the release for one term."""
    phase = {"days": days, "window": "1d", "terms": ["gpt"]}
    return parse_config(
        {
            "name": "crawled",
            "target": {"name": "A", "developer": "B", "released": "2025-03-25"},
            "posts": [{"source": "x", "search": {"phases": [phase]}}],
            "engines": {"text": {"kind": "rules"}},
        },
        "c.yaml",
    )


@pytest.mark.extras
def test_a_search_its_ancestors_and_its_conversation_become_posts(
    server: ReplayServer, keys: dict[str, str], tmp_path: Path
) -> None:
    """Two pages of a search, a look-up of what stands above, one conversation, each asked once."""
    pytest.importorskip("tweepy", reason="needs tweepy: see `make test-extras`")
    config = config_of(days=1)
    gone = {"resource_type": "tweet", "resource_id": "300", "title": "Not Found Error"}
    server.gives(
        ALL,
        page(post(101, 100, above=100, replies=1), after="more"),
        page(post(200, 200), post(301, 300, above=300)),
        page(post(101, 100, above=100, replies=1), post(102, 100, above=101)),
        {"meta": {"result_count": 0}},
    )
    server.gives(LOOKUP, page(post(100, 100, replies=1), errors=[gone]))
    folder = RunFolder(tmp_path / "crawled")
    (stats,) = crawl_posts(config, folder, Heard(), make=lambda _: X(server.url))
    (result,) = run_until(config, "collect", runs=tmp_path)
    rows = {row["url"]: row for row in result.dataset.to_list()}

    assert {url: row["parent_url"] for url, row in rows.items()} == {
        ADDRESS(100): None,
        ADDRESS(101): ADDRESS(100),
        ADDRESS(102): ADDRESS(101),
        ADDRESS(200): None,
        ADDRESS(300): None,
        ADDRESS(301): ADDRESS(300),
    }
    assert {url for url, row in rows.items() if row["keywords"]} == {
        ADDRESS(number) for number in (101, 200, 301)
    }
    assert rows[ADDRESS(300)]["missing"] == "not_found"
    assert (stats.end, stats.by_terms, stats.by_replies) == (CrawlEnd.NOTHING_LEFT, 3, 2)
    assert stats.spent.cost_usd == pytest.approx(6 * 0.005)
    asked = [query["query"][0] for query in server.queries(ALL)]
    assert asked[2:] == ["conversation_id:100", "conversation_id:300"]
    assert [query["ids"] for query in server.queries(LOOKUP)] == [["100,300"]]
    ledger = (folder.root / "collected.sqlite").read_bytes()
    assert not any(key.encode() in ledger for key in keys.values())


@pytest.mark.extras
def test_what_is_only_quoted_is_kept_and_its_replies_are_not_paid_for(
    server: ReplayServer, keys: dict[str, str], tmp_path: Path
) -> None:
    """A quote is no reply; once a reply names the quoted post, it is part of a tree."""
    pytest.importorskip("tweepy", reason="needs tweepy: see `make test-extras`")
    quoting = {**post(9, 9), "referenced_tweets": [{"type": "quoted", "id": "5"}]}
    beside = {"tweets": [post(5, 5, replies=9000)]}
    first = page(quoting, includes=beside)
    server.gives(ALL, first, page(post(6, 5, above=5)), page(post(6, 5, above=5)))

    one, two = config_of(days=1), config_of(days=2)
    folder = RunFolder(tmp_path / "crawled")
    (stats,) = crawl_posts(one, folder, Heard(), make=lambda _: X(server.url))
    before = [query["query"][0] for query in server.queries(ALL)]
    crawl_posts(two, folder, Heard(), make=lambda _: X(server.url))
    after = [query["query"][0] for query in server.queries(ALL)]

    assert (stats.by_terms, stats.by_replies) == (1, 1)
    assert before == ["gpt -is:retweet"]
    assert after[1:] == ["gpt -is:retweet", "conversation_id:5"]
