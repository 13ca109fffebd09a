"""What all platforms need to be asked."""

from __future__ import annotations

import json
import time
from email.utils import formatdate

import pytest
from pydantic import SecretStr

from echo_hf.collect.platforms.base import (
    UnanswerableError,
    check_answer,
    format_search_term,
    parse_object,
    read_key,
    read_posts,
    seconds_to_wait,
)
from echo_hf.errors import PlatformError

KEYS = {"THE_KEY": SecretStr("s3cr3t")}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (" \n", "'X_BEARER_TOKEN' is not set, and 'x' wants a token"),
        ("sécret", "plain letters"),
        ("two\nlines", "plain letters"),
    ],
)
def test_what_is_no_key_is_refused_unseen(
    value: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("X_BEARER_TOKEN", value)
    with pytest.raises(PlatformError, match=words) as trouble:
        read_key("x", "X_BEARER_TOKEN", "a token")
    assert not value.strip() or value not in str(trouble.value)


@pytest.mark.parametrize(
    ("status", "error"),
    [(400, UnanswerableError), (402, PlatformError), (404, UnanswerableError), (408, OSError),
     (422, UnanswerableError), (503, OSError)],
)  # fmt: skip
def test_a_trouble_is_the_kind_that_helps(status: int, error: type[Exception]) -> None:
    with pytest.raises(error, match=str(status)):
        check_answer("x", status, {}, "", KEYS)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('{"error": "a", "message": "b\\nc"}', "a b c"),
        ('{"errors": [{"message": "d"}, 5], "title": "e"}', "e d"),
        ('{"message": "key s3cr3t"}', "key [key]"),
        ('{"error": {"a": 1}}', "403;"),
        ("<html>", "403;"),
        ('{"message": "' + "x" * 5000 + '"}', "x..."),
    ],
    ids=range(6),
)
def test_what_was_said_is_one_short_line_without_the_key(body: str, words: str) -> None:
    with pytest.raises(PlatformError) as trouble:
        check_answer("x", 403, {}, body, KEYS)
    message = str(trouble.value)
    assert words in message
    assert "s3cr3t" not in message
    assert "\n" not in message
    assert len(message) < 320


@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        ({"Retry-After": "30"}, 30, 30),
        ({"retry-after": "0"}, 1, 1),
        ({"RateLimit-Reset": "{epoch}"}, 95, 102),
        ({"X-RateLimit-Reset": "{iso}"}, 95, 102),
        # by the server's own clock
        ({"Date": "{ahead}", "x-rate-limit-reset": "{ahead_epoch}"}, 101, 101),
        ({"x-rate-limit-reset": "soon"}, 60, 60),
        ({"x-rate-limit-reset": "nan"}, 60, 60),
        ({"x-rate-limit-remaining": "7", "x-rate-limit-reset": "{epoch}"}, 2, 2),
        ({}, 60, 60),
    ],
    ids=range(9),
)
def test_a_wait_is_as_long_as_the_platform_says(
    headers: dict[str, str], least: float, most: float
) -> None:
    now = int(time.time())
    said = {
        "epoch": str(now + 100),
        "iso": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now + 100)),
        "ahead": formatdate(now + 9000, usegmt=True),
        "ahead_epoch": str(now + 9100),
    }
    told = {name: value.format(**said) for name, value in headers.items()}
    assert least <= seconds_to_wait(told) <= most


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ("4o", "4o"),
        ("create  image", "create image"),
        ("gpt-4o", '"gpt-4o"'),
        ('"image gen" fox', '"image gen" fox'),
        ("生成 画像", "生成 画像"),
        ("#AIart $echo", "#AIart $echo"),
        # what would be an operator is a word
        ("fox OR hare", 'fox "OR" hare'),
        ("-fox from:mira has:images (a", '"-fox" "from:mira" "has:images" "(a"'),
        ('fox "hare', "fox hare"),
        ("back\\slash", "back slash"),
        ("fox -", "fox"),
    ],
)
def test_a_term_is_its_words(term: str, expected: str) -> None:
    assert format_search_term(term) == expected


def test_a_term_without_a_word_is_put_aside() -> None:
    for term in ("", '""', "- (", "\\"):
        with pytest.raises(UnanswerableError, match="no word"):
            format_search_term(term)


def test_a_post_that_nests_deep_hides_no_other() -> None:
    uri = "at://did:plc:fox/app.bsky.feed.post/"
    posts = [{"uri": f"{uri}{key}", "record": {"text": key, "more": key}} for key in "ab"]
    nested = "[" * 20_000 + "]" * 20_000
    body = json.dumps({"posts": posts}).replace('"more": "a"', f'"more": {nested}')
    assert len(parse_object("bluesky", body, posts=list)["posts"]) == 2
    assert [one.text for one in read_posts("bluesky", body)] == ["a", "b"]
