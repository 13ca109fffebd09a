"""Bluesky: its addresses, its posts, and its search as a signed-in reader."""

from __future__ import annotations

import datetime
import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ValidationError

from echo_hf._infra.registry import Requirements
from echo_hf.collect.fields import Fields, Json, Pages, read_json, read_moment, short_repr
from echo_hf.collect.platforms.base import (
    PLATFORMS,
    SOURCES_EXTRA,
    LibraryPlatform,
    Page,
    Question,
    StaleCursorError,
    Tariff,
    TimeWindow,
    clean_message,
    find_missing,
    format_search_term,
    parse_object,
    read_key,
    read_posts,
)
from echo_hf.collect.sources.base import (
    Finding,
    Missing,
    Parsed,
    Post,
    PostImage,
    PostNotice,
    PostReject,
    register,
)
from echo_hf.collect.urls import Site, canonical_url
from echo_hf.config.collection import SITES
from echo_hf.errors import PlatformError

if TYPE_CHECKING:
    import httpx
    from atproto import Client


BLUESKY_POST = re.compile(r"/profile/([\w.:%-]+)/post/([\w.:~-]+)(?:/.*)?", re.ASCII)
BLUESKY_URI = re.compile(r"at://([\w.:%-]+)/app\.bsky\.feed\.post/([\w.:~-]+)", re.ASCII)
# Lists of images: of up to four, and of a gallery.
IMAGE_LISTS = ("images", "items")
COUNTS = {
    "likes": "likeCount",
    "views": "viewCount",  # not counted so far
    "reposts": "repostCount",
    "replies": "replyCount",
    "bookmarks": "bookmarkCount",
}
POST_TYPE = "app.bsky.feed.post"
# Labels that hide a post from readers who are not signed in, or from all.
HIDING_LABELS = frozenset({"!no-unauthenticated", "!hide", "!takedown"})
CLOCK_TOLERANCE = datetime.timedelta(minutes=5)
LANGUAGE = re.compile(r"[a-z]{2,3}(?=-|$)", re.IGNORECASE)
BARE_KEYS = frozenset({"uri", "cid", "$type"})
HANDLE_ENV, PASSWORD_ENV = "BLUESKY_HANDLE", "BLUESKY_APP_PASSWORD"
HOST = "https://bsky.social"
SITE = "https://bsky.app"
TIMEOUT_S = 60.0
EXPIRED_SESSION_ERRORS = frozenset({"ExpiredToken", "InvalidToken"})
PAGE_SIZE = 100
LOOKUP_SIZE = 25
# Up and down; posts beyond are asked for in the next round. Python parses no JSON that nests
# much deeper, and each reply takes two levels.
MAX_DEPTH = 200
# `until` is exclusive, and several posts may have the same time.
CURSOR_STEP = datetime.timedelta(milliseconds=1)
# Nothing below a post like these can be asked for.
UNREACHABLE = frozenset({Missing.DELETED, Missing.BLOCKED, Missing.NOT_FOUND, Missing.REMOVED})


SITES.register("bluesky")(
    Site(
        platform="bluesky",
        hosts=("bsky.app",),
        post=BLUESKY_POST,
        canonical=lambda post: f"https://bsky.app/profile/{post[1]}/post/{post[2]}",
        uri=BLUESKY_URI,
        account_hosts=r"bsky\.app",
        account_domain="bsky.social",
    )
)


@register("bluesky")
class BlueskySource(Pages):
    expected = f"a post of Bluesky, at://.../{POST_TYPE}/..."

    def split_page(self, document: Any) -> Iterator[tuple[str, Any]] | None:
        is_page = isinstance(document, dict) and not {"posts", "thread"}.isdisjoint(document)
        return ((f"#{at}", row) for at, row in enumerate(_split(document))) if is_page else None

    def read(self, fields: Fields, keywords: Sequence[str]) -> Iterator[Parsed | Json]:
        view = fields.record
        if "_missing" in view:
            yield self._make_missing(fields.part("_missing").record, view.get("_above"))
            return
        url, uri = _post_url(view.get("uri")), view.get("uri")
        record = fields.part("record" if view.get("record") else "value")
        if url is None or record.record.get("$type", POST_TYPE) != POST_TYPE:
            is_other = isinstance(uri, str) and uri.startswith("at://")
            reason = PostReject.NO_URL if record.record and not is_other else PostReject.NOT_A_POST
            yield self.reject(reason, {**record.record, "uri": uri}, "uri", "$type")
            return
        parent_uri = record.part("reply").part("parent").record.get("uri")
        parent = _post_url(parent_uri)
        if parent_uri is not None and parent is None:
            record.note_bad("reply.parent.uri", parent_uri, "the address of a post")
        parent = parent or _post_url(view.get("_above"))
        author = fields.part("author")
        parts = fields.parts("labels") + author.parts("labels")
        parts += record.part("labels").parts("values")
        values = (label.record.get("val") for label in parts if label.record.get("neg") is not True)
        labels = sorted({value for value in values if isinstance(value, str)})
        if HIDING_LABELS.intersection(labels):
            fields.findings.clear()  # they would reveal the content
            yield Post(url=url, platform="bluesky", parent_url=parent, missing=Missing.PROTECTED)
            yield Finding(PostNotice.HIDDEN_BY_AUTHOR, url)
            return
        embed, several = fields.part("embed"), fields.parts("embeds")
        sent = record.part("embed")  # the author's own embed, if the platform shows none
        embeds = several or ([sent] if sent.record else [])
        if embed.record:
            embeds = [embed]
        quotes = [quote for quote in map(_read_quoted, embeds) if _post_url(quote.get("uri"))]
        match, languages = BLUESKY_URI.fullmatch(str(uri)), record.texts("langs")
        lang = LANGUAGE.match(languages[0]) if languages else None
        yield Post(
            url=url,
            platform="bluesky",
            author=author.text("handle") or author.text("did") or (match[1] if match else None),
            text=record.text("text"),
            timestamp=_read_time(fields, record),
            lang=lang[0].lower() if lang else None,
            keywords=keywords,
            pictures=list(_read_images(embeds)),
            parent_url=parent,
            quoted_url=_post_url(quotes[0]["uri"]) if quotes else None,
            engagement=fields.engagement(COUNTS),
        )
        if labels:
            fields.note(PostNotice.LABELLED, short_repr(labels))
        for quote in quotes:
            if "value" in quote:
                yield quote
            elif not quote.keys() <= BARE_KEYS:  # a bare reference says nothing about the post
                yield self._make_missing(quote, None)

    def _make_missing(self, node: Json, parent_uri: Any) -> Parsed:
        url, kind = _post_url(node.get("uri")), str(node.get("$type")).lower()
        if url is None:
            return self.reject(PostReject.NO_URL, node, "uri")
        missing = Missing.NOT_FETCHED
        if node.get("blocked") or "blocked" in kind:
            missing = Missing.BLOCKED
        elif node.get("notFound") or "notfound" in kind:
            missing = Missing.NOT_FOUND
        return Post(url=url, platform="bluesky", parent_url=_post_url(parent_uri), missing=missing)


def _split(document: Json) -> Iterator[Any]:
    """Yield the posts of a list and of a tree; for posts not shown, why and their parent."""
    fields = Fields(document)
    if "posts" in document:
        posts = document["posts"]
        yield from posts if isinstance(posts, list) else [posts]
    pending: deque[tuple[Any, Any, bool]] = deque()
    if "thread" in document:
        pending.append((document["thread"], None, False))
    while pending:
        node, parent_uri, included = pending.popleft()
        post = node.get("post") if isinstance(node, dict) else None
        if isinstance(post, dict):
            yield {**post, "_above": parent_uri, "_included": included}
            if node.get("parent") is not None:
                pending.append((node["parent"], None, True))
            replies = Fields(node, fields.findings, "thread.").parts("replies")
            pending.extend((reply.record, post.get("uri"), True) for reply in replies)
        else:
            yield {"_missing": node, "_above": parent_uri} if isinstance(node, dict) else node
    if fields.findings:
        yield {"_findings": [finding.detail for finding in fields.findings]}


def _post_url(uri: Any) -> str | None:
    is_post = isinstance(uri, str) and BLUESKY_URI.fullmatch(uri) is not None
    return canonical_url(uri) if is_post else None


def _read_quoted(embed: Fields) -> Json:
    """Return the record that a post embeds: a quoted post, or a list or feed that it shows."""
    record = embed.part("record").record
    # In a post with images the record is wrapped once more.
    inner = record.get("record") if "uri" not in record else None
    return inner if isinstance(inner, dict) else record


def _read_images(embeds: Sequence[Fields]) -> Iterator[PostImage]:
    """Yield the images that a post embeds, without previews of links and videos."""
    holders = [holder for embed in embeds for holder in (embed, embed.part("media"))]
    images = (part for holder in holders for name in IMAGE_LISTS for part in holder.parts(name))
    for image in images:
        if image.record.get("fullsize") is None:
            image.note(PostNotice.IMAGE_WITHOUT_ADDRESS, f"described as {image.text('alt')!r}"[:80])
        elif address := image.link("fullsize"):
            yield PostImage(url=address, alt_text=image.text("alt") or None)


def _read_time(fields: Fields, record: Fields) -> datetime.datetime | None:
    """Return when a post was written by its author's clock, but not after it was seen."""
    claimed, indexed = record.moment("createdAt"), fields.moment("indexedAt")
    if claimed is None or indexed is None:
        return claimed or indexed
    if claimed - indexed > CLOCK_TOLERANCE:
        expected = "a time that has been"
        fields.note_bad("createdAt", claimed.isoformat(), expected, PostNotice.CLAIMED_TIME)
    return min(claimed, indexed)


class SearchCursor(BaseModel):
    """The state of a search: Bluesky's cursor, and where to go on when it has no more."""

    cursor: str | None = None
    until: datetime.datetime | None = None
    oldest: datetime.datetime | None = None

    def advance(
        self, cursor: str | None, times: Iterable[datetime.datetime], window: TimeWindow | None
    ) -> SearchCursor | None:
        # Authors may write any date: ignore times outside of the window.
        inside = [time for time in times if not window or window.start <= time < window.end]
        oldest = min([*inside, *filter(None, [self.oldest])], default=None)
        if cursor is not None:
            return SearchCursor(cursor=cursor, until=self.until, oldest=oldest)
        if oldest is None or (self.until is not None and oldest + CURSOR_STEP >= self.until):
            return None
        return SearchCursor(until=oldest + CURSOR_STEP, oldest=oldest)


def sort_time(created: object, indexed: object) -> datetime.datetime | None:
    """Return the time by which Bluesky sorts a post: the author's or the platform's, if earlier."""
    return min(filter(None, map(read_moment, (created, indexed))), default=None)


@PLATFORMS.register("bluesky")
class BlueskyPlatform(LibraryPlatform):
    name = "bluesky"
    tariff = Tariff(usd_per_post=0.0, posts_per_page=PAGE_SIZE)
    most_refreshed = LOOKUP_SIZE

    def __init__(self, base_url: str = HOST) -> None:
        self._base_url = base_url

    def __enter__(self) -> Self:
        Requirements("", SOURCES_EXTRA, ("atproto",)).check_installed(f"platform {self.name!r}")
        handle = read_key(self.name, HANDLE_ENV, "the handle of an account")
        password = read_key(self.name, PASSWORD_ENV, "an app password of the account")
        self._handle, self._keys = handle.get_secret_value(), {PASSWORD_ENV: password}
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

    def ask(self, question: Question, cursor: str | None = None) -> Page:
        if question.kind == "search":
            return self._search(question, cursor)
        if question.kind == "posts":
            body = self._get_posts(question.about)
            count = len(parse_object(self.name, body, posts=list)["posts"])
            return Page(body, None, count, 0.0)
        uri = question.about[0]
        answer = self._get("getPostThread", uri=uri, depth=MAX_DEPTH, parent_height=MAX_DEPTH)
        if answer.status_code == 400 and read_error(answer) == "NotFound":
            # The error does not name the post in a field of its own.
            return Page(json.dumps({"thread": {"uri": uri, "notFound": True}}), None, 0, 0.0)
        body = self._read_body(answer)
        parse_object(self.name, body, thread=dict)
        return Page(body, None, len(read_posts(self.name, body)), 0.0)

    def around(self, posts: Sequence[Post]) -> list[Question]:
        """Ask for the whole tree of each post, which one response holds."""
        reachable = (post for post in posts if post.missing not in UNREACHABLE)
        uris = sorted({uri for post in reachable if (uri := _convert_to_uri(post.url)) is not None})
        return [Question("thread", (uri,)) for uri in uris]

    def gone(self, urls: Sequence[str]) -> dict[str, Missing]:
        """Return which posts are gone, or shown to signed-in readers only."""
        uris = {url: uri for url in urls if (uri := _convert_to_uri(url)) is not None}
        posts = read_posts(self.name, self._get_posts(list(uris.values()))) if uris else []
        missing = dict.fromkeys(uris.keys() - {post.url for post in posts}, Missing.NOT_FOUND)
        return {**missing, **find_missing(posts, urls)}

    def _search(self, question: Question, cursor: str | None) -> Page:
        window = question.window
        place = SearchCursor(until=window.end if window else None)
        if cursor is not None:
            try:
                place = SearchCursor.model_validate_json(cursor)
            except ValidationError:
                raise StaleCursorError from None
        answer = self._get(
            "searchPosts",
            q=" ".join(map(format_search_term, question.about)),
            sort="latest",
            since=_format_time(window.start) if window else None,
            until=_format_time(place.until) if place.until else None,
            lang=question.language,
            limit=PAGE_SIZE,
            cursor=place.cursor,
        )
        if answer.status_code == 400 and place.cursor is not None:
            raise StaleCursorError
        body = self._read_body(answer)
        page = Fields(parse_object(self.name, body, posts=list))
        times = (
            sort_time(post.part("record").record.get("createdAt"), post.record.get("indexedAt"))
            for post in page.parts("posts")
        )
        next_place = place.advance(page.text("cursor"), filter(None, times), window)
        count = len(page.record["posts"])
        return Page(body, next_place.model_dump_json() if next_place else None, count, 0.0)

    def _get_posts(self, uris: Sequence[str]) -> str:
        body = self._read_body(self._get("getPosts", uris=list(uris)))
        parse_object(self.name, body, posts=list)  # without it every post would seem gone
        return body

    def _get(self, name: str, **fields: Any) -> httpx.Response:
        """Send a query; return a response that is good, or says what is wrong with the question."""
        from atproto import models

        if self._client is None:
            raise PlatformError("'bluesky' is not connected: use it as a context manager")
        params = getattr(models, f"AppBskyFeed{name[0].upper()}{name[1:]}").Params(**fields)

        def call(client: Client) -> object:
            return client.invoke_query(f"app.bsky.feed.{name}", params=params)

        answer: httpx.Response = self._call(call)
        if answer.status_code in (400, 401) and read_error(answer) in EXPIRED_SESSION_ERRORS:
            self._begin_session()
            answer = self._call(call)
        if answer.status_code != 400:
            self._read_body(answer)
        return answer

    def _call(self, call: Callable[[Client], object]) -> Any:
        import httpx

        self._last = None
        try:
            call(self._client)
        # Errors of the library in reading a response do not matter: we read it ourselves.
        except Exception as error:
            # The last response may be one to another request, such as a refresh of the session.
            for cause in (error, error.__cause__):
                if isinstance(cause, httpx.TransportError):
                    message = clean_message(f"{type(cause).__name__} {cause}")
                    raise ConnectionError(f"'bluesky' is out of reach: {message}") from None
        if self._last is None:
            raise PlatformError("'bluesky' gave a session that its library cannot use")
        return self._last

    def _begin_session(self) -> None:
        from atproto import Client, Request

        def listen(response: httpx.Response) -> None:
            response.read()
            self._last = response

        self.__exit__()  # end an earlier session
        request = Request(event_hooks={"response": [listen]}, timeout=TIMEOUT_S)
        self._client = client = Client(self._base_url, request=request)
        password = self._keys[PASSWORD_ENV].get_secret_value()
        answer = self._call(lambda c: c.login(self._handle, password, fetch_bsky_profile=False))
        if answer.status_code == 400:
            answer.status_code = 401  # a wrong account, not a wrong question
        parse_object(self.name, self._read_body(answer), accessJwt=str, refreshJwt=str)
        # The account names its own server, which gets the session's token.
        host, own = client._base_url, urlsplit(self._base_url).netloc
        if not host.startswith("https://") and urlsplit(host).netloc != own:
            raise PlatformError(f"the account's server is {host!r}, expected an https address")


def read_error(answer: httpx.Response) -> str | None:
    document = read_json(answer.text)
    return str(document.get("error")) if isinstance(document, dict) else None


def _convert_to_uri(url: str) -> str | None:
    post_match = BLUESKY_POST.fullmatch(url.removeprefix(SITE))
    return f"at://{post_match[1]}/app.bsky.feed.post/{post_match[2]}" if post_match else None


def _format_time(time: datetime.datetime) -> str:
    return time.astimezone(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
