"""The contract of platforms, and what they share: API keys, search terms, HTTP errors."""

from __future__ import annotations

import datetime
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from pydantic import SecretStr

from echo_hf._infra.http_errors import is_transient, iterate_causes
from echo_hf._infra.renamed import make_module_getattr
from echo_hf._infra.retry import parse_retry_after, read_server_time
from echo_hf.collect.fields import Json, read_json, read_moment
from echo_hf.collect.sources.base import Missing, Post, make_source, read_page_posts
from echo_hf.config.collection import PLATFORMS as PLATFORMS
from echo_hf.errors import PlatformError

QuestionKind = Literal["search", "posts", "replies", "thread"]
SOURCES_EXTRA = "sources"
HIDDEN_KEY = "[key]"
MAX_MESSAGE = 200
HELP_URL = "https://echo-hf.github.io/echo-hf/how-to/platforms/"
RESET_HEADERS = ("x-rate-limit-reset", "ratelimit-reset", "x-ratelimit-reset")
TOO_SOON_WAIT_S = 2.0
UNKNOWN_WAIT_S = 60.0
ERROR_KEYS = ("title", "detail", "error", "message", "error_description")
KEY_REFUSED_STATUSES = frozenset({401, 402, 403})
TERM_PART = re.compile(r'"([^"]*)"|([^\s"]+)')
PLAIN_WORD = re.compile(r"[#$]?\w+")
# Platforms read these as operators, not as words.
OPERATORS = frozenset({"AND", "OR", "NOT"})


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """A stretch of time in UTC, from `start` until just before `end`."""

    start: datetime.datetime
    end: datetime.datetime


@dataclass(frozen=True, slots=True)
class Question:
    """A question to a platform; each of its pages answers the same question.

    Attributes:
        kind: `search`: posts that a term finds; `posts`: these posts; `replies`: what answers
            them; `thread`: everything around them.
        about: The term of a search, else identifiers as the platform knows them.
        window: When the posts of a search were written.
        language: ISO 639-1 code that a search is limited to, null for all.
    """

    kind: QuestionKind
    about: tuple[str, ...]
    window: TimeWindow | None = None
    language: str | None = None

    @property
    def key(self) -> str:
        """JSON that identifies this question, the same in every run."""
        window = self.window
        times = [window.start.isoformat(), window.end.isoformat()] if window else None
        return json.dumps([self.kind, self.about, times, self.language], ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a platform's answer, as it came.

    Attributes:
        body: The JSON text of the platform's answer; strangers wrote it.
        cursor: What to ask the next page with, null at the last one.
        posts: How many posts it holds, as the platform counts them for its bill.
        cost_usd: What it cost in US dollars, null where that is unknown.
    """

    body: str
    cursor: str | None = None
    posts: int = 0
    cost_usd: float | None = None


class RateLimitedError(Exception):
    """Raised when a platform asks to wait for this many `seconds`."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"asks to wait {seconds:.0f} s")
        self.seconds = seconds


class StaleCursorError(Exception):
    """Raised when a platform no longer knows a cursor: the question starts anew."""


class UnanswerableError(Exception):
    """Raised when a platform will never answer this question; it may answer others.

    The message is one line for the user, without content of posts; the crawl puts the question
    aside with it and goes on.
    """


@dataclass(frozen=True, slots=True)
class Tariff:
    """A platform's prices, for the plan that is shown before anything is asked.

    Attributes:
        usd_per_post: Price of a post in US dollars, 0 where it is free, null where it is unknown.
        usd_per_estimate: Price of `estimate`; null where the platform counts nothing beforehand.
        posts_per_page: Most posts of a page of a search.
        usd_per_author: Price of the author of a post, beside that of the post.
        most_posts_a_month: Most posts that may be read in a month; null without a limit.
        source: Where the prices are published, and of which day they are.
    """

    usd_per_post: float | None = None
    usd_per_estimate: float | None = None
    posts_per_page: int = 100
    usd_per_author: float = 0.0
    most_posts_a_month: int | None = None
    source: str = ""

    def compute_cost(self, posts: int) -> tuple[float, float] | None:
        """Return the least and the most that posts cost, each without its author and with one."""
        if self.usd_per_post is None:
            return None
        return posts * self.usd_per_post, posts * (self.usd_per_post + self.usd_per_author)


class Platform(Protocol):
    """A platform: a context manager that holds a connection; its class takes no arguments.

    What goes wrong is an `EchoError`, which ends the crawl (a key that is missing or refused),
    `UnanswerableError`, `RateLimitedError`, `StaleCursorError`, or, for a trouble that may pass,
    an `OSError`; the crawl tries those again.

    Attributes:
        name: Its name, and that of the source that reads its answers.
        tariff: What it charges.
    """

    name: str
    tariff: Tariff

    def __enter__(self) -> Platform: ...

    def __exit__(self, *trouble: object) -> None: ...

    def ask(self, question: Question, cursor: str | None = None) -> Page:
        """Ask for one page.

        Args:
            question: The question.
            cursor: Of the page before, null for the first one.

        Returns:
            The page.
        """
        ...

    def around(self, posts: Sequence[Post]) -> Sequence[Question]:
        """Return the questions that bring the ancestors and the replies of posts.

        Args:
            posts: Posts that an answer held, as the source read them, missing ones included.

        Returns:
            Questions; equal posts give equal ones, so that none is asked twice.
        """
        ...

    def estimate(self, question: Question) -> int | None:
        """Return how many posts a search would find; null where the platform cannot say."""
        ...


class PostChecker(Protocol):
    """A platform that says which posts are no longer there; a `Platform` may be one, too.

    A platform that cannot tell of some addresses has a method `can_tell(url)`, to be called while
    it is connected. Addresses of which it cannot tell are not counted as asked.

    Attributes:
        name: Its name.
        most_refreshed: Posts that one call, which is one request, may ask about.
    """

    name: str
    most_refreshed: int

    def gone(self, urls: Sequence[str]) -> Mapping[str, Missing]:
        """Return which posts were deleted or hidden from the public since they were collected.

        Args:
            urls: Canonical addresses, at most `most_refreshed`.

        Returns:
            Why each missing post is gone, by address. An address without a reason is there, or
            this platform cannot tell. Errors are those of `Platform`.
        """
        ...


def make_platform(name: str) -> Platform:
    """Return a platform by its name, not yet connected."""
    platform: Platform = PLATFORMS.find(name)()
    return platform


def read_key(platform: str, variable: str, description: str) -> SecretStr:
    """Read an API key from the environment; refuse with what is to be set there."""
    value = os.environ.get(variable, "").strip()
    if not value:
        raise PlatformError(
            f"environment variable {variable!r} is not set, and {platform!r} wants {description}: "
            f"set it, and see {HELP_URL} for where to get one"
        )
    if not value.isascii() or not value.isprintable():
        raise PlatformError(f"environment variable {variable!r}: expected plain letters and signs")
    return SecretStr(value)


def clean_message(text: str, secrets: Iterable[SecretStr] = ()) -> str:
    """Shorten a foreign message to one printable line without API keys."""
    for secret in secrets:
        text = text.replace(secret.get_secret_value(), HIDDEN_KEY)
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= MAX_MESSAGE else line[: MAX_MESSAGE - 3] + "..."


def check_answer(
    platform: str, status: int, headers: Mapping[str, str], body: str, keys: Mapping[str, SecretStr]
) -> None:
    """Raise what an HTTP status stands for, without the keys that an answer may repeat."""
    if 200 <= status < 300:
        return
    if status == 429:
        raise RateLimitedError(seconds_to_wait(headers))
    message = clean_message(f"{status} {_read_error_text(body)}", keys.values())
    if status in KEY_REFUSED_STATUSES:
        names = " and ".join(keys) or "no key"
        refusal = f"{platform!r} refuses {names}, or what it may do"
        raise PlatformError(f"{refusal}: {message}; see {HELP_URL}")
    if 300 <= status < 400:
        message = f"{message}, which leads elsewhere: expected the address that it leads to"
    if 400 <= status < 500 and not is_transient(status):
        raise UnanswerableError(f"{platform!r} does not answer this: {message}")
    raise ConnectionError(f"{platform!r} answered {message}")


def seconds_to_wait(headers: Mapping[str, str]) -> float:
    """Return how long to wait for a rate limit, from the headers of a response."""
    lower = {name.lower(): value for name, value in headers.items()}
    wait_s = parse_retry_after(lower)
    if wait_s is None and lower.get("x-rate-limit-remaining", "0") not in ("0", ""):
        wait_s = TOO_SOON_WAIT_S  # the limit is not used up: two requests were too close together
    if wait_s is None:
        ends = (_parse_moment(lower[name]) for name in RESET_HEADERS if name in lower)
        end = next((moment for moment in ends if moment is not None), None)
        wait_s = UNKNOWN_WAIT_S if end is None else end - read_server_time(lower) + 1
    return max(1.0, wait_s)


def _parse_moment(text: str) -> float | None:
    try:
        moment = read_moment(float(text))
    except ValueError:
        moment = read_moment(text)
    return moment.timestamp() if moment else None


def parse_object(platform: str, body: str, **parts: type) -> Json:
    """Parse an answer that has to be a JSON object with these parts of these types."""
    document = read_json(body)
    if not isinstance(document, dict):
        raise ConnectionError(f"{platform!r} answered something else than a JSON object")
    for name, kind in parts.items():
        if not isinstance(document.get(name), kind):
            message = clean_message(f"answered without {name!r} {_read_error_text(body)}")
            raise ConnectionError(f"{platform!r} {message}")
    return document


def _read_error_text(body: str) -> str:
    document = read_json(body)
    errors = document.get("errors") if isinstance(document, dict) else None
    parts = [document, *(errors if isinstance(errors, list) else [])]
    texts: list[str] = []
    for part in parts:
        if isinstance(part, dict):
            own = (part.get(name) for name in ERROR_KEYS)
            texts += dict.fromkeys(text for text in own if isinstance(text, str))
    return " ".join(texts)


class LibraryPlatform:
    """A platform that is asked through its client library; its responses are read raw."""

    name: str
    _client: Any = None
    _keys: Mapping[str, SecretStr]
    _last: Any = None

    def estimate(self, question: Question) -> int | None:  # noqa: ARG002
        """Return null: the platform counts nothing beforehand."""
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

    def _call(self, call: Callable[[Any], object]) -> Any:
        if self._client is None:
            raise PlatformError(f"{self.name!r} is not connected: use it as a context manager")
        self._last = None
        try:
            call(self._client)
        except Exception as error:
            # Errors of the library in reading a response do not matter: we read it ourselves.
            if self._last is None and isinstance(error, OSError):
                # The outer errors repeat the whole address; the first cause does not.
                *_, first = iterate_causes(error)
                message = clean_message(f"{type(first).__name__} {first}")
                raise ConnectionError(f"out of reach: {message}") from None
            if self._last is None:
                raise
        if self._last is None:
            raise ConnectionError("nobody was asked")
        return self._last

    def _read_body(self, answer: Any) -> str:
        body: str = answer.content.decode("utf-8", "replace")
        check_answer(self.name, answer.status_code, answer.headers, body, self._keys)
        return body


def read_posts(platform: str, body: str) -> list[Post]:
    """Return the posts of a response, with those that are missing."""
    return read_page_posts(body, make_source(platform))


def find_missing(posts: Iterable[Post], urls: Iterable[str]) -> dict[str, Missing]:
    """Return why posts are missing, for the missing ones of some addresses."""
    asked_urls = set(urls)
    return {
        post.url: Missing(post.missing) for post in posts if post.missing and post.url in asked_urls
    }


def format_search_term(term: str) -> str:
    """Quote a term so that platforms search for all its words, wherever they stand in a post."""
    words = []
    for phrase, word in TERM_PART.findall(term.replace("\\", " ")):
        if word and PLAIN_WORD.fullmatch(word) and word not in OPERATORS:
            words.append(word)
        elif re.search(r"\w", quoted_text := word or " ".join(phrase.split())):
            words.append(f'"{quoted_text}"')
    if not words:
        raise UnanswerableError(f"{term!r} has no word to search for")
    return " ".join(words)


__getattr__ = make_module_getattr(__name__, {"Answer": "Page", "Refreshing": "PostChecker"})
