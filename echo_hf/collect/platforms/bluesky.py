"""Bluesky, asked as a signed-in reader: search, and whole reply trees in one answer each."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

from echo_hf.collect.fields import Fields
from echo_hf.collect.platforms.access import check_package, key_of
from echo_hf.collect.platforms.base import Answer, Question, StaleCursorError, Tariff
from echo_hf.collect.platforms.bluesky_cursor import SearchPlace, time_of
from echo_hf.collect.platforms.http_trouble import json_object
from echo_hf.collect.platforms.reading import missing_among, read_posts
from echo_hf.collect.platforms.search_words import search_words
from echo_hf.collect.sources.base import Post
from echo_hf.collect.urls import BLUESKY_POST
from echo_hf.errors import PlatformError
from echo_hf.reasons import Missing

if TYPE_CHECKING:
    import httpx

    from echo_hf.collect.platforms.bluesky_client import BlueskyClient

HANDLE, PASSWORD = "BLUESKY_HANDLE", "BLUESKY_APP_PASSWORD"
HOST = "https://bsky.social"
PAGE = 100
LOOKUP = 25
DEEPEST = 1000  # both ways; the most that may be asked for
SITE = "https://bsky.app"
# Nothing stands below these that could be asked for.
UNREACHABLE = frozenset({Missing.DELETED, Missing.BLOCKED, Missing.NOT_FOUND, Missing.REMOVED})


class Bluesky:
    """Bluesky.

    Args:
        base_url: Another server to sign in at than Bluesky's own.
    """

    name = "bluesky"
    tariff = Tariff(usd_per_post=0.0, posts_per_page=PAGE)
    most_refreshed = LOOKUP

    def __init__(self, base_url: str = HOST) -> None:
        self._base_url = base_url
        self._client: BlueskyClient | None = None

    def __enter__(self) -> Self:
        """Signs in, with the session that was kept if there is one."""
        check_package(self.name, "atproto")
        from echo_hf.collect.platforms.bluesky_client import BlueskyClient

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
        """Closes the connection; the session goes on."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def ask(self, question: Question, cursor: str | None = None) -> Answer:
        """Asks for one page; it costs nothing."""
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
        if answer.status_code == 400 and self._error(answer) == "NotFound":
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
        return _body(answer)

    def _error(self, answer: httpx.Response) -> str | None:
        return Fields(json_object(self.name, _body(answer))).text("error")

    @property
    def _connected(self) -> BlueskyClient:
        if self._client is None:
            raise PlatformError("'bluesky' is not connected: use it as a context manager")
        return self._client


def _body(answer: httpx.Response) -> str:
    content: bytes = answer.content
    return content.decode("utf-8", "replace")


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
