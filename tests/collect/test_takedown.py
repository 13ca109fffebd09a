"""Content of a forgotten post leaves the stored pages, and the pages stay readable."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from echo_hf.collect.crawl_ledger import CrawlLedger, forget_answers, stored_answers
from echo_hf.collect.platforms.base import Answer, Question
from echo_hf.collect.sources.base import Post, make_source, posts_in
from echo_hf.collect.takedown import page_source, without_posts

ADDRESS = "https://x.com/i/status/{}".format
STATUS = "https://social.example/users/mira_draws/statuses/{}".format


def posts_of(body: str, platform: str) -> dict[str, Post]:
    source, text = page_source(body, platform)
    return {post.url: post for post in posts_in(text, make_source(source), ["fox"])}


@pytest.mark.parametrize(
    ("platform", "name", "step", "least"),
    [
        ("x", "x_api_v2/noflat.jsonl", 40, 101),
        ("bluesky", "bluesky/morpho_threadResponseMidThreadJson.json", 1, 2),
        ("bluesky", "bluesky/thread_view_post_with_embed_media.json", 1, 2),
    ],
)
def test_of_a_real_page_every_other_post_is_left_as_it_was(
    test_data: Path, platform: str, name: str, step: int, least: int
) -> None:
    body = (test_data / "posts" / name).read_text("utf-8")
    before = posts_of(body, platform)
    for url, post in list(before.items())[::step]:
        left = without_posts(body, platform, frozenset({url}), ["fox"])
        after = posts_of(left, platform)
        others = {one: other for one, other in before.items() if one != url}

        assert {one: shown(other) for one, other in after.items()} == {
            one: shown(other) for one, other in others.items()
        }
        same = [other.text for other in others.values()]
        assert not post.text or post.text in same or json.dumps(post.text) not in left
        assert without_posts(left, platform, frozenset({url})) == left
    assert len(before) >= least


def shown(post: Post) -> tuple[Any, ...]:
    images = [(one.url, one.alt_text) for one in post.pictures]
    times = post.timestamp, post.engagement and dict(post.engagement)
    words = post.url, post.text, post.author, list(post.keywords), post.missing
    return *words, *times, post.parent_url, post.quoted_url, images


def status(number: int, text: str, **more: Any) -> dict[str, Any]:
    content = {"content": f"<p>{text}</p>", "account": {"acct": f"mira{number}"}}
    return {"id": str(number), "uri": STATUS(number), "visibility": "public", **content, **more}


REPOST = {"id": "12", "text": "RT zimt", "referenced_tweets": [{"type": "retweeted", "id": "99"}]}
ONE = {"data": [{"id": "99", "text": "zimt"}, REPOST, {"id": "98", "text": "an owl"}]}


@pytest.mark.parametrize(
    ("platform", "page", "url", "left"),
    [
        ("x", ONE, ADDRESS(99), [ADDRESS(98)]),
        ("mastodon", [status(10003, "b", reblog=status(10001, "zimt"))], STATUS(10001), []),
        ("x", '{"id": "99", "text": "zimt"', ADDRESS(99), []),
        ("x", "[" * 9999 + '{"id": "99", "text": "zimt"}', ADDRESS(99), []),
    ],
    ids=["a repost", "a boost", "half a page", "too deep"],
)
def test_what_repeats_it_goes_with_it(platform: str, page: Any, url: str, left: list[str]) -> None:
    body = page if isinstance(page, str) else json.dumps(page)
    found = without_posts(body, platform, frozenset({url}))

    assert list(posts_of(found, platform)) == left
    assert "zimt" not in found
    assert without_posts(body, platform, frozenset({ADDRESS(7)})) is body


def test_nothing_of_it_is_in_the_bytes_of_the_ledger(tmp_path: Path) -> None:
    path = tmp_path / "collected.sqlite"
    pages = [json.dumps(ONE), json.dumps({"data": [{"id": "97", "text": "a fox"}]})]
    with CrawlLedger(path) as ledger:
        ledger.add_searches("x", [Question("search", ("fox",))])
        for body, cursor in zip(pages, ("1", None), strict=True):
            asked = ledger.next_question("x")
            assert asked is not None
            ledger.keep(asked, Answer(body, cursor), posts_of(body, "x").values(), 0)
        ((before,),) = ledger.execute("select body from answers where page = 0")
    assert forget_answers(path, [ADDRESS(99)]) == 1
    first, second = stored_answers(path, "x")
    held = b"".join(file.read_bytes() for file in tmp_path.iterdir())

    assert (second.body, second.source) == (pages[1], "x")
    ((place, record),) = first.records()
    assert (place, first.source) == ('x/search "fox" page 1:1', "jsonl")
    assert (json.loads(record)["text"], json.loads(record)["keywords"]) == ("an owl", ["fox"])
    assert ADDRESS(98).encode() in held
    assert ADDRESS(99).encode() not in held
    assert "zimt" in zlib.decompress(before).decode()
    assert before not in held
    assert forget_answers(path, [ADDRESS(99)]) == 0


def test_a_run_without_a_crawl_gets_no_ledger(tmp_path: Path) -> None:
    assert forget_answers(tmp_path / "collected.sqlite", [ADDRESS(99)]) == 0
    assert list(tmp_path.iterdir()) == []
