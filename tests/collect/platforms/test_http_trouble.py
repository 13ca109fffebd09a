"""What an HTTP answer that is no success means."""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest
from pydantic import SecretStr

from echo_hf.collect.platforms.access import check_answer, json_object, seconds_to_wait
from echo_hf.collect.platforms.base import UnanswerableError
from echo_hf.errors import PlatformError

KEYS = {"THE_KEY": SecretStr("s3cr3t")}


@pytest.mark.parametrize("status", [200, 204, 299])
def test_a_success_is_none(status: int) -> None:
    """Whatever it holds."""
    check_answer("x", status, {}, "error", KEYS)


@pytest.mark.parametrize(
    ("status", "error"),
    [(400, UnanswerableError), (401, PlatformError), (402, PlatformError), (403, PlatformError),
     (404, UnanswerableError), (408, OSError), (422, UnanswerableError), (500, OSError),
     (503, OSError), (302, OSError)],
)  # fmt: skip
def test_a_trouble_is_the_kind_that_helps(status: int, error: type[Exception]) -> None:
    """A key to mend, a question to put aside, or another try."""
    with pytest.raises(error, match=str(status)):
        check_answer("x", status, {}, "", KEYS)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('{"error": "a", "message": "b\\nc"}', "a b c"),
        ('{"errors": [{"message": "d"}, 5], "title": "e"}', "e d"),
        ('{"message": "key s3cr3t"}', "key [key]"),
        ('{"error": {"a": 1}}', "403;"),
        ("[1]", "403;"),
        ("<html>", "403;"),
        ('{"message": "' + "x" * 5000 + '"}', "x..."),
        ("[" * 100_000, "403;"),
    ],
    ids=range(8),
)
def test_what_was_said_is_one_short_line_without_the_key(body: str, words: str) -> None:
    """Whatever a server or somebody in between answers."""
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
        ({"x-rate-limit-reset": "soon"}, 60, 60),
        ({"x-rate-limit-reset": "nan"}, 60, 60),
        ({}, 60, 60),
    ],
    ids=range(7),
)
def test_a_wait_is_as_long_as_the_platform_says(
    headers: dict[str, str], least: float, most: float
) -> None:
    """In any of the ways in which platforms say it."""
    end = time.time() + 100
    iso = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(end))
    told = {
        name: value.replace("{epoch}", str(int(end))).replace("{iso}", iso)
        for name, value in headers.items()
    }

    assert least <= seconds_to_wait(told) <= most


@pytest.mark.parametrize("skew_s", [-9000, 9000])
def test_a_reset_is_read_by_the_servers_own_clock(skew_s: int) -> None:
    """Whether this machine's is hours behind or before."""
    there = int(time.time()) + skew_s
    headers = {"Date": formatdate(there, usegmt=True), "x-rate-limit-reset": str(there + 100)}

    assert seconds_to_wait(headers) == 101


def test_what_is_told_in_seconds_counts_more_than_what_is_left() -> None:
    """Another limit than the one that the rest is of may be reached."""
    assert seconds_to_wait({"x-rate-limit-remaining": "9", "Retry-After": "700"}) == 700
    assert seconds_to_wait({"x-rate-limit-remaining": "9"}) == 2


@pytest.mark.parametrize("body", ['{"posts": {}}', '{"error": "key"}', "[]", "", "[" * 100_000])
def test_an_answer_without_what_it_has_to_hold_is_none(body: str) -> None:
    """Whatever stands there instead."""
    with pytest.raises(ConnectionError, match="answered"):
        json_object("x", body, posts=list)


def test_an_answer_with_what_it_has_to_hold_is_read() -> None:
    """As it is."""
    assert json_object("x", '{"posts": [1]}', posts=list) == {"posts": [1]}
