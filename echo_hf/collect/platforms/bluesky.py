"""Bluesky, asked as a signed-in reader: search, and whole reply trees in one answer each."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from pydantic import SecretStr

from echo_hf._infra.atomic import replaced_file
from echo_hf.collect.fields import Fields, read_moment
from echo_hf.collect.platforms.access import (
    check_answer,
    check_package,
    json_object,
    key_of,
    missing_among,
    quiet,
    read_posts,
    search_words,
)
from echo_hf.collect.platforms.base import (
    PLATFORMS,
    Answer,
    Question,
    StaleCursorError,
    Tariff,
    TimeWindow,
)
from echo_hf.collect.sources.base import Post
from echo_hf.collect.urls import BLUESKY_POST
from echo_hf.errors import PlatformError
from echo_hf.reasons import Missing

if TYPE_CHECKING:
    import httpx
    from atproto import Client, Session, SessionEvent


TIMEOUT_S = 60.0
EXPIRED = frozenset({"ExpiredToken", "InvalidToken"})


class BlueskyClient:
    def __init__(self, host: str, handle: str, keys: Mapping[str, SecretStr]) -> None:
        self._host, self._handle, self._keys = host, handle, keys
        self._file = session_file(host, handle)
        self._last: httpx.Response | None = None
        self._client = self._new()

    def sign_in(self) -> None:
        """Takes up the session that was kept, or begins one."""
        kept = read_private(self._file)
        try:
            if kept is None:
                raise ValueError("no session is kept")
            self._client.login(session_string=kept, fetch_bsky_profile=False)
            self._check_home()
        except ValueError:
            self._begin_session()

    def get(self, call: Callable[[Client], object]) -> httpx.Response:
        answer = self._heard(call)
        if answer is None or (answer.status_code in (400, 401) and error_of(answer) in EXPIRED):
            self._begin_session()
            answer = self._heard(call)
        if answer is None:
            raise PlatformError("'bluesky' gave a session that its library cannot use")
        if answer.status_code != 400:
            self.check(answer)
        return answer

    def check(self, answer: httpx.Response) -> None:
        check_answer("bluesky", answer.status_code, answer.headers, body_of(answer), self._keys)

    def close(self) -> None:
        self._client.request.close()

    def _begin_session(self) -> None:
        self.close()
        self._client = self._new()
        password = next(iter(self._keys.values())).get_secret_value()
        answer = self._heard(
            lambda client: client.login(self._handle, password, fetch_bsky_profile=False)
        )
        if answer is None:
            raise PlatformError("'bluesky' gave a session that its library cannot use")
        if answer.status_code == 400:
            answer.status_code = 401  # an account that is none: nothing to do with a question
        self.check(answer)
        json_object("bluesky", body_of(answer), accessJwt=str, refreshJwt=str)
        self._check_home()

    def _heard(self, call: Callable[[Client], object]) -> httpx.Response | None:
        """The answer to a call; null where the session is so broken that none was made."""
        import httpx

        self._last = None
        try:
            call(self._client)
        # What the library makes of an answer is not needed: our own reader judges it.
        except Exception as error:
            # The last answer may be one to something else, such as a session that was prolonged.
            for lost in (error, error.__cause__):
                if isinstance(lost, httpx.TransportError):
                    said = quiet(f"{type(lost).__name__} {lost}")
                    raise ConnectionError(f"'bluesky' is out of reach: {said}") from None
        return self._last

    def _check_home(self) -> None:
        """The server of the account, which it names itself, gets the session's key."""
        home = self._client._base_url
        if not home.startswith("https://") and urlsplit(home).netloc != urlsplit(self._host).netloc:
            raise PlatformError(f"the account's server is {home!r}, expected an https address")

    def _new(self) -> Client:
        from atproto import Client, Request

        hooks = {"response": [self._listen]}
        client = Client(self._host, request=Request(event_hooks=hooks, timeout=TIMEOUT_S))
        client.on_session_change(self._keep)
        return client

    def _listen(self, response: httpx.Response) -> None:
        response.read()
        self._last = response

    def _keep(self, event: SessionEvent, session: Session) -> None:
        if event.value != "import":
            write_private(self._file, session.encode())


def error_of(answer: httpx.Response) -> str | None:
    """The name of what was wrong, as Bluesky gives it; null when it gives none."""
    try:
        return Fields(json_object("bluesky", body_of(answer))).text("error")
    except OSError:
        return None


def body_of(answer: httpx.Response) -> str:
    content: bytes = answer.content
    return content.decode("utf-8", "replace")


def session_file(host: str, handle: str) -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    name = hashlib.sha256(f"{host}\n{handle}".encode()).hexdigest()[:16]
    return Path(cache) / "echo-hf" / f"bluesky-{name}.session"


def read_private(path: Path) -> str | None:
    """A file that nobody else can read; null when it is none, or not there."""
    try:
        found = path.lstat()
        if not stat.S_ISREG(found.st_mode) or stat.S_IMODE(found.st_mode) & 0o077:
            return None
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None


def write_private(path: Path, text: str) -> None:
    """Writes a file that nobody else can read; without a place for it, nothing is kept."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with replaced_file(path) as fresh:
            fresh.touch(mode=0o600, exist_ok=False)
            fresh.write_text(text, encoding="utf-8")


# `until` is exclusive, and several posts may be of one moment.
MOMENT = datetime.timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class SearchPlace:
    theirs: str | None = None
    until: datetime.datetime | None = None
    oldest: datetime.datetime | None = None

    @classmethod
    def read(cls, cursor: str | None, window: TimeWindow | None) -> SearchPlace:
        """The place of a cursor; the beginning of a search without one."""
        if cursor is None:
            return cls(until=window.end if window else None)
        try:
            given = Fields(dict(json.loads(cursor)))
        except (ValueError, TypeError):
            raise StaleCursorError from None
        return cls(given.text("cursor"), given.moment("until"), given.moment("oldest"))

    def written(self) -> str:
        times = {"until": self.until, "oldest": self.oldest}
        written = {name: time.isoformat() if time else None for name, time in times.items()}
        return json.dumps({"cursor": self.theirs, **written})

    def next(
        self,
        theirs: str | None,
        times: Iterable[datetime.datetime],
        window: TimeWindow | None,
    ) -> SearchPlace | None:
        # Authors date their posts as they like: a time outside of the window says nothing.
        inside = [t for t in times if not window or window.start <= t < window.end]
        seen = min([*inside, *([self.oldest] if self.oldest else [])], default=None)
        if theirs is not None:
            return replace(self, theirs=theirs, oldest=seen)
        if seen is None or (self.until is not None and seen + MOMENT >= self.until):
            return None
        return SearchPlace(None, seen + MOMENT, seen)


def time_of(created: object, indexed: object) -> datetime.datetime | None:
    """The time by which Bluesky sorts a post: the earlier one of what author and platform say."""
    times = [time for time in (read_moment(created), read_moment(indexed)) if time is not None]
    return min(times, default=None)


HANDLE, PASSWORD = "BLUESKY_HANDLE", "BLUESKY_APP_PASSWORD"
HOST = "https://bsky.social"
PAGE = 100
LOOKUP = 25
DEEPEST = 1000  # both ways; the most that may be asked for
SITE = "https://bsky.app"
# Nothing stands below these that could be asked for.
UNREACHABLE = frozenset({Missing.DELETED, Missing.BLOCKED, Missing.NOT_FOUND, Missing.REMOVED})


@PLATFORMS.register("bluesky")
class Bluesky:
    name = "bluesky"
    tariff = Tariff(usd_per_post=0.0, posts_per_page=PAGE)
    most_refreshed = LOOKUP

    def __init__(self, base_url: str = HOST) -> None:
        self._base_url = base_url
        self._client: BlueskyClient | None = None

    def __enter__(self) -> Self:
        check_package(self.name, "atproto")

        handle = key_of(self.name, HANDLE, "the handle of an account").get_secret_value()
        password = key_of(self.name, PASSWORD, "an app password of the account")
        self._client = BlueskyClient(self._base_url, handle, {PASSWORD: password})
        try:
            self._client.sign_in()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *trouble: object) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def ask(self, question: Question, cursor: str | None = None) -> Answer:
        if question.kind == "search":
            return self._search(question, SearchPlace.read(cursor, question.window))
        if question.kind == "posts":
            body = self._posts(question.about)
            return Answer(body, None, _count(body), 0.0)
        return self._thread(question.about[0])

    def around(self, posts: Sequence[Post]) -> list[Question]:
        """The whole tree of each, which one answer holds."""
        asked = (post for post in posts if post.missing not in UNREACHABLE)
        uris = sorted({uri for post in asked if (uri := _uri(post.url)) is not None})
        return [Question("thread", (uri,)) for uri in uris]

    def estimate(self, question: Question) -> int | None:
        """Nothing: Bluesky says how many posts there are only with the posts."""
        del question
        return None

    def gone(self, urls: Sequence[str]) -> dict[str, Missing]:
        """Which posts are no longer there, or shown to signed-in readers alone by now."""
        uris = {url: uri for url in urls if (uri := _uri(url)) is not None}
        if not uris:
            return {}
        read = read_posts(self.name, self._posts(list(uris.values())))
        there = {post.url for post in read}
        return {
            **{url: Missing.NOT_FOUND for url in uris if url not in there},
            **missing_among(read, urls),
        }

    def _search(self, question: Question, place: SearchPlace) -> Answer:
        from atproto import models

        window = question.window
        asked = models.AppBskyFeedSearchPosts.Params(
            q=" ".join(map(search_words, question.about)),
            sort="latest",
            since=_written(window.start) if window else None,
            until=_written(place.until) if place.until else None,
            lang=question.language,
            limit=PAGE,
            cursor=place.theirs,
        )
        answer = self._get("searchPosts", asked)
        if answer.status_code == 400 and place.theirs is not None:
            raise StaleCursorError
        body = self._good(answer)
        page = json_object(self.name, body, posts=list)
        times = _times(Fields(page).objects("posts"))
        after = place.next(Fields(page).text("cursor"), times, window)
        return Answer(body, after.written() if after else None, len(page["posts"]), 0.0)

    def _thread(self, uri: str) -> Answer:
        from atproto import models

        asked = models.AppBskyFeedGetPostThread.Params(
            uri=uri, depth=DEEPEST, parent_height=DEEPEST
        )
        answer = self._get("getPostThread", asked)
        if answer.status_code == 400 and error_of(answer) == "NotFound":
            # The error names its post nowhere but in words.
            return Answer(json.dumps({"thread": {"uri": uri, "notFound": True}}), None, 0, 0.0)
        body = self._good(answer)
        json_object(self.name, body, thread=dict)
        return Answer(body, None, len(read_posts(self.name, body)), 0.0)

    def _posts(self, uris: Sequence[str]) -> str:
        from atproto import models

        asked = models.AppBskyFeedGetPosts.Params(uris=list(uris))
        body = self._good(self._get("getPosts", asked))
        json_object(self.name, body, posts=list)  # without it, every post would seem to be gone
        return body

    def _get(self, name: str, asked: Any) -> httpx.Response:
        nsid = f"app.bsky.feed.{name}"
        return self._connected.get(lambda client: client.invoke_query(nsid, params=asked))

    def _good(self, answer: httpx.Response) -> str:
        self._connected.check(answer)
        return body_of(answer)

    @property
    def _connected(self) -> BlueskyClient:
        if self._client is None:
            raise PlatformError("'bluesky' is not connected: use it as a context manager")
        return self._client


def _uri(url: str) -> str | None:
    found = BLUESKY_POST.fullmatch(url.removeprefix(SITE))
    return f"at://{found[1]}/app.bsky.feed.post/{found[2]}" if found else None


def _written(time: datetime.datetime) -> str:
    return time.astimezone(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _count(body: str) -> int:
    return len(json_object("bluesky", body, posts=list)["posts"])


def _times(posts: Sequence[Any]) -> Iterator[datetime.datetime]:
    for post in posts:
        record = post.get("record")
        created = record.get("createdAt") if isinstance(record, dict) else None
        time = time_of(created, post.get("indexedAt"))
        if time is not None:
            yield time
