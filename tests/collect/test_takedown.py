"""Content of a forgotten post leaves the stored pages, and the pages stay readable."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from echo_hf.collect.crawl_ledger import CrawlLedger, forget_answers, stored_answers
from echo_hf.collect.platforms.base import Answer, Question
from echo_hf.collect.sources.base import Post, make_source, posts_in
from echo_hf.collect.takedown import without_posts

SEARCH = Question("search", ("fox",))
Json = dict[str, Any]


def posts_of(body: str, platform: str) -> dict[str, Post]:
    read = posts_in(body, make_source(platform))
    return {post.url: post for post in read if post.text or post.pictures}


def as_row(post: Post) -> tuple[Any, ...]:
    images = [(one.url, one.alt_text) for one in post.pictures]
    return post.url, post.text, post.author, post.timestamp, post.parent_url, images


def check_each(body: str, platform: str, step: int = 1) -> int:
    before = posts_of(body, platform)
    for url, post in list(before.items())[::step]:
        left = without_posts(body, platform, frozenset({url}))
        assert left is not None
        after = posts_of(left, platform)
        assert url not in after
        gone = {url, *({post.quoted_url} - set(after))}
        others = {one: as_row(other) for one, other in before.items() if one not in gone}
        assert {one: as_row(other) for one, other in after.items()} == others
        if post.text and sum(other.text == post.text for other in before.values()) == 1:
            assert json.dumps(post.text) not in left
        for image in post.pictures:
            shared = any(image.url == own.url for one, other in before.items() if one != url
                         for own in other.pictures)  # fmt: skip
            assert shared or json.dumps(image.url) not in left
    return len(before)


def read(test_data: Path, name: str) -> str:
    file = test_data / "posts" / name
    if not file.exists():
        pytest.skip(f"no file {str(file)!r}")
    return file.read_text("utf-8")


@pytest.mark.parametrize(
    ("platform", "name", "step", "least"),
    [
        ("x", "x_api_v2/noflat.jsonl", 40, 101),
        ("bluesky", "bluesky/morpho_threadResponseMidThreadJson.json", 1, 2),
        ("bluesky", "bluesky/thread_view_post_with_embed_media.json", 1, 2),
    ],
)
def test_every_post_of_a_real_page(
    test_data: Path, platform: str, name: str, step: int, least: int
) -> None:
    assert check_each(read(test_data, name), platform, step) >= least


def test_reposts_of_it_go_with_it(test_data: Path) -> None:
    body = read(test_data, "x_api_v2/noflat.jsonl")
    page = json.loads(body)
    (kind, number), repost = next(
        ((one["type"], one["id"]), post)
        for post in page["data"]
        for one in post.get("referenced_tweets", [])
        if one["type"] == "retweeted"
    )
    left = without_posts(body, "x", frozenset({f"https://x.com/i/status/{number}"}))

    assert kind == "retweeted"
    assert left is not None
    (same,) = (one for one in json.loads(left)["data"] if one["id"] == repost["id"])
    assert "text" not in same
    assert json.dumps(repost["text"])[1:-1] not in left


def status(number: int, text: str, **more: Any) -> Json:
    address = f"https://social.example/users/mira_draws/statuses/{number}"
    account = {"id": "7", "acct": "mira_draws", "display_name": f"Mira {number}"}
    content = {"content": f"<p>{text}</p>", "account": account, "visibility": "public"}
    media = [{"type": "image", "url": f"https://p.example/{number}.png", "description": text}]
    base = {"id": str(number), "uri": address, "created_at": "2026-03-02T17:12:40Z", **content}
    return {**base, "in_reply_to_id": None, "media_attachments": media, **more}


def test_every_status_of_a_context_of_mastodon() -> None:
    statuses = [status(10001, "a fox"), status(10002, "an owl", in_reply_to_id="10001")]
    body = json.dumps({"statuses": statuses, "accounts": [], "hashtags": []})
    boost = status(10003, "a fox", reblog=statuses[0])
    left = without_posts(json.dumps([boost]), "mastodon", frozenset({statuses[0]["uri"]}))

    assert check_each(body, "mastodon") == 2
    assert left is not None
    assert "fox" not in left


def test_a_page_that_holds_none_of_them_is_the_very_same_text() -> None:
    page = '{"data":[{"id":"12",  "text":"id 99 is nobody"}], "includes":{"users":[{"id":"99"}]}}'
    address = frozenset({"https://x.com/i/status/99"})

    assert without_posts(page, "x", frozenset({"https://x.com/i/status/7"})) is page
    assert without_posts('{"id": "99", "text": "a"}', "mastodon", address) == (
        '{"id": "99", "text": "a"}'
    )


def test_a_page_that_cannot_be_read_goes_whole_when_it_names_one() -> None:
    address = frozenset({"https://x.com/i/status/99"})

    assert without_posts('{"id": "99", "text"', "x", address) is None
    assert without_posts('{"id": "98", "text"', "x", address) == '{"id": "98", "text"'
    assert without_posts("[" * 9999 + '{"id": "99"}', "x", address) is None


def test_entries_without_a_name_stay_beside_the_others() -> None:
    post = {"id": "99", "text": "None", "author_id": "1"}
    users = [{"username": "nameless"}, {"id": "1", "username": "mira"}]
    page = json.dumps({"data": [post], "includes": {"users": users}})
    left = without_posts(page, "x", frozenset({"https://x.com/i/status/99"}))

    assert left is not None
    assert json.loads(left)["includes"]["users"] == users[:1]


def ledger_of(path: Path, bodies: Iterable[str]) -> None:
    with CrawlLedger(path) as ledger:
        ledger.add_searches("x", [SEARCH])
        pages = list(bodies)
        for number, body in enumerate(pages, 1):
            asked = ledger.next_question("x")
            assert asked is not None
            cursor = None if number == len(pages) else str(number)
            ledger.keep(asked, Answer(body, cursor), posts_in(body, make_source("x"), ("fox",)), 0)


def test_nothing_of_it_is_in_the_bytes_of_the_ledger(tmp_path: Path) -> None:
    path = tmp_path / "collected.sqlite"
    pages = [
        json.dumps({"data": [{"id": "98", "text": "an owl"}, {"id": "99", "text": "zimtstern"}]}),
        json.dumps({"data": [{"id": "97", "text": "a fox"}]}),
    ]
    ledger_of(path, pages)
    with CrawlLedger(path) as ledger:
        ((before,),) = ledger.execute("select body from answers where page = 0")
    changed = forget_answers(path, ["https://x.com/i/status/99"])
    bodies = [one.body for one in stored_answers(path, "x")]

    assert changed == 1
    assert bodies == ['{"data": [{"id": "98", "text": "an owl"}, {"id": "99"}]}', pages[1]]
    held = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"https://x.com/i/status/98" in held
    assert b"https://x.com/i/status/99" not in held
    assert "zimtstern" in zlib.decompress(before).decode()
    assert before not in held
    assert forget_answers(path, ["https://x.com/i/status/99"]) == 0


def test_a_run_without_a_crawl_gets_no_ledger(tmp_path: Path) -> None:
    assert forget_answers(tmp_path / "collected.sqlite", ["https://x.com/i/status/99"]) == 0
    assert list(tmp_path.iterdir()) == []
