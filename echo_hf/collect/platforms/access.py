"""What all platforms need to be asked: keys, search words, HTTP errors, raw answers."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic import SecretStr

from echo_hf._infra.http_errors import causes, may_pass
from echo_hf._infra.retry import retry_after, server_time
from echo_hf.collect.fields import Json, read_json, read_moment
from echo_hf.collect.platforms.base import Question, RateLimitedError, UnanswerableError
from echo_hf.collect.sources.base import Post, make_source, posts_in
from echo_hf.errors import PlatformError
from echo_hf.reasons import Missing

EXTRA = "sources"
HIDDEN = "[key]"
LONGEST = 200
HELP = "https://echo-hf.github.io/echo-hf/how-to/platforms/"
RESETS = ("x-rate-limit-reset", "ratelimit-reset", "x-ratelimit-reset")
TOO_SOON_S = 2.0
UNKNOWN_WAIT_S = 60.0
WORDS = ("title", "detail", "error", "message", "error_description")
KEYS_FAIL = frozenset({401, 402, 403})
PART = re.compile(r'"([^"]*)"|([^\s"]+)')
PLAIN = re.compile(r"[#$]?\w+")
# Platforms read these as something else than words.
OPERATORS = frozenset({"AND", "OR", "NOT"})


def key_of(platform: str, variable: str, what: str) -> SecretStr:
    value = os.environ.get(variable, "").strip()
    if not value:
        raise PlatformError(
            f"environment variable {variable!r} is not set, and {platform!r} wants {what}: set it, "
            f"and see {HELP} for where to get one"
        )
    if not value.isascii() or not value.isprintable():
        raise PlatformError(f"environment variable {variable!r}: expected plain letters and signs")
    return SecretStr(value)


def quiet(text: str, secrets: Iterable[SecretStr] = ()) -> str:
    """What somebody else's code said, fit for a message: one line, short, without keys."""
    for secret in secrets:
        text = text.replace(secret.get_secret_value(), HIDDEN)
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= LONGEST else line[: LONGEST - 3] + "..."


def check_answer(
    platform: str,
    status: int,
    headers: Mapping[str, str],
    body: str,
    keys: Mapping[str, SecretStr],
) -> None:
    if 200 <= status < 300:
        return
    if status == 429:
        raise RateLimitedError(seconds_to_wait(headers))
    said = quiet(f"{status} {_words(body)}", keys.values())
    if status in KEYS_FAIL:
        held = " and ".join(keys) or "no key"
        raise PlatformError(f"{platform!r} refuses {held}, or what it may do: {said}; see {HELP}")
    if 300 <= status < 400:
        said = f"{said}, which leads elsewhere: expected the address that it leads to"
    if 400 <= status < 500 and not may_pass(status):
        raise UnanswerableError(f"{platform!r} does not answer this: {said}")
    raise ConnectionError(f"{platform!r} answered {said}")


def seconds_to_wait(headers: Mapping[str, str]) -> float:
    lower = {name.lower(): value for name, value in headers.items()}
    told = retry_after(lower)
    if told is None and lower.get("x-rate-limit-remaining", "0") not in ("0", ""):
        told = TOO_SOON_S  # not the limit itself: two requests came too close together
    if told is None:
        ends = (_moment(lower[name]) for name in RESETS if name in lower)
        end = next((one for one in ends if one is not None), None)
        told = UNKNOWN_WAIT_S if end is None else end - server_time(lower) + 1
    return max(1.0, told)


def _moment(text: str) -> float | None:
    try:
        read = read_moment(float(text))
    except ValueError:
        read = read_moment(text)
    return read.timestamp() if read else None


def json_object(platform: str, body: str, **parts: type) -> Json:
    read = read_json(body)
    if not isinstance(read, dict):
        raise ConnectionError(f"{platform!r} answered something else than a JSON object")
    for name, kind in parts.items():
        if not isinstance(read.get(name), kind):
            said = quiet(f"answered without {name!r} {_words(body)}")
            raise ConnectionError(f"{platform!r} {said}")
    return read


def _words(body: str) -> str:
    read = read_json(body)
    errors = read.get("errors") if isinstance(read, dict) else None
    parts = [read, *(errors if isinstance(errors, list) else [])]
    said = [
        word
        for one in parts
        if isinstance(one, dict)
        for word in dict.fromkeys(one[name] for name in WORDS if isinstance(one.get(name), str))
    ]
    return " ".join(said)


class LibraryPlatform:
    """A platform that is asked through its client library, and whose answers are read raw."""

    name: str
    _client: Any = None
    _keys: Mapping[str, SecretStr]
    _last: Any = None

    def estimate(self, question: Question) -> int | None:
        del question
        return None

    def __exit__(self, *trouble: object) -> None:
        if self._client is not None:
            self._client.session.close()
            self._client = None

    def _connect(self, client: Any, keys: Mapping[str, SecretStr]) -> None:
        def listen(response: Any, *_: Any, **__: Any) -> None:
            self._last = response

        self._client, self._keys = client, keys
        client.session.hooks["response"].append(listen)

    def _heard(self, call: Callable[[Any], object]) -> Any:
        if self._client is None:
            raise PlatformError(f"{self.name!r} is not connected: use it as a context manager")
        self._last = None
        try:
            call(self._client)
        except Exception as error:
            # What the library makes of an answer is not needed: our own reader judges it.
            if self._last is None and isinstance(error, OSError):
                # What is raised of the first cause repeats the whole address.
                *_, first = causes(error)
                said = quiet(f"{type(first).__name__} {first}")
                raise ConnectionError(f"out of reach: {said}") from None
            if self._last is None:
                raise
        if self._last is None:
            raise ConnectionError("nobody was asked")
        return self._last

    def _good(self, answer: Any) -> str:
        body: str = answer.content.decode("utf-8", "replace")
        check_answer(self.name, answer.status_code, answer.headers, body, self._keys)
        return body


def read_posts(platform: str, body: str) -> list[Post]:
    """The posts of an answer, those included that are missing."""
    return posts_in(body, make_source(platform))


def missing_among(posts: Iterable[Post], urls: Iterable[str]) -> dict[str, Missing]:
    wanted = set(urls)
    return {
        post.url: Missing(post.missing) for post in posts if post.missing and post.url in wanted
    }


def search_words(term: str) -> str:
    """A term as platforms understand it: all its words, wherever they stand in a post."""
    words = []
    for phrase, word in PART.findall(term.replace("\\", " ")):
        if word and PLAIN.fullmatch(word) and word not in OPERATORS:
            words.append(word)
        elif re.search(r"\w", said := word or " ".join(phrase.split())):
            words.append(f'"{said}"')
    if not words:
        raise UnanswerableError(f"{term!r} has no word to search for")
    return " ".join(words)
