"""Bluesky, asked as a signed-in reader: search, and whole reply trees in one answer each."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError

from echo_hf._infra.registry import Needs
from echo_hf.collect.fields import Fields, read_json, read_moment
from echo_hf.collect.platforms.base import (
    EXTRA,
    PLATFORMS,
    Answer,
    LibraryPlatform,
    Question,
    StaleCursorError,
    Tariff,
    TimeWindow,
    json_object,
    key_of,
    missing_among,
    quiet,
    read_posts,
    search_words,
)
from echo_hf.collect.sources.base import Post
from echo_hf.collect.urls import BLUESKY_POST
from echo_hf.errors import PlatformError
from echo_hf.reasons import Missing

if TYPE_CHECKING:
    import httpx
    from atproto import Client


HANDLE, PASSWORD = "BLUESKY_HANDLE", "BLUESKY_APP_PASSWORD"
HOST = "https://bsky.social"
SITE = "https://bsky.app"
TIMEOUT_S = 60.0
EXPIRED = frozenset({"ExpiredToken", "InvalidToken"})
PAGE = 100
LOOKUP = 25
# Both ways; what stands beyond is asked for in the next round. Python reads no JSON that nests
# much deeper, and each reply nests twice.
DEEPEST = 200
# `until` is exclusive, and several posts may be of one moment.
MOMENT = datetime.timedelta(milliseconds=1)
# Nothing stands below these that could be asked for.
UNREACHABLE = frozenset({Missing.DELETED, Missing.BLOCKED, Missing.NOT_FOUND, Missing.REMOVED})


class SearchPlace(BaseModel):
    """How far a search is: Bluesky's own cursor, and where to go on when it has no more."""

    cursor: str | None = None
    until: datetime.datetime | None = None
    oldest: datetime.datetime | None = None

    def next(
        self, cursor: str | None, times: Iterable[datetime.datetime], window: TimeWindow | None
    ) -> SearchPlace | None:
        # Authors date their posts as they like: a time outside of the window says nothing.
        inside = [t for t in times if not window or window.start <= t < window.end]
        seen = min([*inside, *([self.oldest] if self.oldest else [])], default=None)
        if cursor is not None:
            return SearchPlace(cursor=cursor, until=self.until, oldest=seen)
        if seen is None or (self.until is not None and seen + MOMENT >= self.until):
            return None
        return SearchPlace(until=seen + MOMENT, oldest=seen)


def time_of(created: object, indexed: object) -> datetime.datetime | None:
    """The time by which Bluesky sorts a post: the earlier one of what author and platform say."""
    return min(filter(None, map(read_moment, (created, indexed))), default=None)


@PLATFORMS.register("bluesky")
class Bluesky(LibraryPlatform):
    name = "bluesky"
    tariff = Tariff(usd_per_post=0.0, posts_per_page=PAGE)
    most_refreshed = LOOKUP

    def __init__(self, base_url: str = HOST) -> None:
        self._base_url = base_url

    def __enter__(self) -> Self:
        Needs("", EXTRA, ("atproto",)).check_installed(f"platform {self.name!r}")
        self._handle = key_of(self.name, HANDLE, "the handle of an account").get_secret_value()
        self._keys = {PASSWORD: key_of(self.name, PASSWORD, "an app password of the account")}
        try:
            self._begin_session()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *trouble: object) -> None:
        if self._client is not None:
            self._client.request.close()
            self._client = None

    def ask(self, question: Question, cursor: str | None = None) -> Answer:
        if question.kind == "search":
            return self._search(question, cursor)
        if question.kind == "posts":
            body = self._posts(question.about)
            count = len(json_object(self.name, body, posts=list)["posts"])
            return Answer(body, None, count, 0.0)
        uri = question.about[0]
        answer = self._get("getPostThread", uri=uri, depth=DEEPEST, parent_height=DEEPEST)
        if answer.status_code == 400 and error_of(answer) == "NotFound":
            # The error names its post nowhere but in words.
            return Answer(json.dumps({"thread": {"uri": uri, "notFound": True}}), None, 0, 0.0)
        body = self._good(answer)
        json_object(self.name, body, thread=dict)
        return Answer(body, None, len(read_posts(self.name, body)), 0.0)

    def around(self, posts: Sequence[Post]) -> list[Question]:
        """The whole tree of each, which one answer holds."""
        asked = (post for post in posts if post.missing not in UNREACHABLE)
        uris = sorted({uri for post in asked if (uri := _uri(post.url)) is not None})
        return [Question("thread", (uri,)) for uri in uris]

    def gone(self, urls: Sequence[str]) -> dict[str, Missing]:
        """Which posts are no longer there, or shown to signed-in readers alone by now."""
        uris = {url: uri for url in urls if (uri := _uri(url)) is not None}
        read = read_posts(self.name, self._posts(list(uris.values()))) if uris else []
        lost = dict.fromkeys(uris.keys() - {post.url for post in read}, Missing.NOT_FOUND)
        return {**lost, **missing_among(read, urls)}

    def _search(self, question: Question, cursor: str | None) -> Answer:
        window = question.window
        place = SearchPlace(until=window.end if window else None)
        if cursor is not None:
            try:
                place = SearchPlace.model_validate_json(cursor)
            except ValidationError:
                raise StaleCursorError from None
        answer = self._get(
            "searchPosts",
            q=" ".join(map(search_words, question.about)),
            sort="latest",
            since=_written(window.start) if window else None,
            until=_written(place.until) if place.until else None,
            lang=question.language,
            limit=PAGE,
            cursor=place.cursor,
        )
        if answer.status_code == 400 and place.cursor is not None:
            raise StaleCursorError
        body = self._good(answer)
        page = Fields(json_object(self.name, body, posts=list))
        times = (
            time_of(post.part("record").record.get("createdAt"), post.record.get("indexedAt"))
            for post in page.parts("posts")
        )
        after = place.next(page.text("cursor"), filter(None, times), window)
        count = len(page.record["posts"])
        return Answer(body, after.model_dump_json() if after else None, count, 0.0)

    def _posts(self, uris: Sequence[str]) -> str:
        body = self._good(self._get("getPosts", uris=list(uris)))
        json_object(self.name, body, posts=list)  # without it, every post would seem to be gone
        return body

    def _get(self, name: str, **asked: Any) -> httpx.Response:
        """An answer, which is good or says what was wrong with the question."""
        from atproto import models

        if self._client is None:
            raise PlatformError("'bluesky' is not connected: use it as a context manager")
        params = getattr(models, f"AppBskyFeed{name[0].upper()}{name[1:]}").Params(**asked)

        def call(client: Client) -> object:
            return client.invoke_query(f"app.bsky.feed.{name}", params=params)

        answer: httpx.Response = self._heard(call)
        if answer.status_code in (400, 401) and error_of(answer) in EXPIRED:
            self._begin_session()
            answer = self._heard(call)
        if answer.status_code != 400:
            self._good(answer)
        return answer

    def _heard(self, call: Callable[[Client], object]) -> Any:
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
        if self._last is None:
            raise PlatformError("'bluesky' gave a session that its library cannot use")
        return self._last

    def _begin_session(self) -> None:
        from atproto import Client, Request

        def listen(response: httpx.Response) -> None:
            response.read()
            self._last = response

        self.__exit__()  # a session before
        request = Request(event_hooks={"response": [listen]}, timeout=TIMEOUT_S)
        self._client = client = Client(self._base_url, request=request)
        password = self._keys[PASSWORD].get_secret_value()
        answer = self._heard(lambda c: c.login(self._handle, password, fetch_bsky_profile=False))
        if answer.status_code == 400:
            answer.status_code = 401  # an account that is none: nothing to do with a question
        json_object(self.name, self._good(answer), accessJwt=str, refreshJwt=str)
        # The server of the account, which it names itself, gets the session's key.
        home, own = client._base_url, urlsplit(self._base_url).netloc
        if not home.startswith("https://") and urlsplit(home).netloc != own:
            raise PlatformError(f"the account's server is {home!r}, expected an https address")


def error_of(answer: httpx.Response) -> str | None:
    read = read_json(answer.text)
    return str(read.get("error")) if isinstance(read, dict) else None


def _uri(url: str) -> str | None:
    found = BLUESKY_POST.fullmatch(url.removeprefix(SITE))
    return f"at://{found[1]}/app.bsky.feed.post/{found[2]}" if found else None


def _written(time: datetime.datetime) -> str:
    return time.astimezone(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
