"""X, asked through version 2 of its API: search, lookup, and replies by conversation."""

from __future__ import annotations

import datetime
import time
from collections.abc import Mapping, Sequence
from typing import Any, Self

import requests
from requests.adapters import HTTPAdapter

from echo_hf._infra.rate_limit import RateLimiter
from echo_hf._infra.registry import Requirements
from echo_hf.collect.fields import Fields
from echo_hf.collect.platforms.base import (
    PLATFORMS,
    SOURCES_EXTRA,
    LibraryPlatform,
    Page,
    Question,
    StaleCursorError,
    Tariff,
    UnanswerableError,
    find_missing,
    format_search_term,
    parse_object,
    read_key,
    read_posts,
)
from echo_hf.collect.sources.base import Post
from echo_hf.collect.urls import platform_of, post_id_of
from echo_hf.reasons import Missing

OLD_HOST, HOST = "https://api.twitter.com", "https://api.x.com"
KEY_ENV = "X_BEARER_TOKEN"
TIMEOUT_S = 60.0
# The recent search covers a week; a little less, as time passes until the request arrives.
RECENT_SEARCH_SPAN = datetime.timedelta(days=7) - datetime.timedelta(minutes=5)
MAX_QUERY_CHARACTERS = {"recent": 512, "all": 1024}
# Ids of posts are the milliseconds since this moment, followed by 22 bits of other data;
# older ids were counted from 1.
SNOWFLAKE_EPOCH = datetime.datetime.fromtimestamp(1288834974.657, datetime.UTC)
FIRST_SNOWFLAKE = 2**40
USD_PER_POST, USD_PER_USER, USD_PER_COUNT = 0.005, 0.010, 0.010
PAGE_SIZE = 100
LOOKUP_SIZE = 100
ARCHIVE_PAUSE_S = 1.05  # the full archive answers once a second
MIN_WINDOW_AGE = datetime.timedelta(seconds=15)  # the API refuses windows that end later
FIELDS: Mapping[str, Any] = {
    "tweet_fields": "attachments,author_id,conversation_id,created_at,edit_history_tweet_ids,"
    "entities,lang,note_tweet,possibly_sensitive,public_metrics,referenced_tweets",
    "expansions": "attachments.media_keys,author_id,referenced_tweets.id,"
    "referenced_tweets.id.attachments.media_keys,referenced_tweets.id.author_id",
    "media_fields": "alt_text,height,media_key,type,url,width",
    "user_fields": "username",
}


class _HostTransport(HTTPAdapter):
    """Sends requests for the library's old host to another one."""

    def __init__(self, host: str) -> None:
        super().__init__()
        self._host = host.rstrip("/")

    def send(self, request: requests.PreparedRequest, *args: Any, **options: Any) -> Any:
        request.url = self._host + (request.url or "").removeprefix(OLD_HOST)
        options["timeout"] = options.get("timeout") or TIMEOUT_S
        return super().send(request, *args, **options)


@PLATFORMS.register("x")
class XPlatform(LibraryPlatform):
    name = "x"
    tariff = Tariff(
        usd_per_post=USD_PER_POST, usd_per_estimate=USD_PER_COUNT, posts_per_page=PAGE_SIZE
    )
    most_refreshed = LOOKUP_SIZE

    def __init__(self, base_url: str = HOST) -> None:
        self._base_url = base_url
        self._archive = RateLimiter(60 / ARCHIVE_PAUSE_S)

    def __enter__(self) -> Self:
        Requirements("", SOURCES_EXTRA, ("tweepy",)).check_installed(f"platform {self.name!r}")
        import tweepy

        key = read_key(self.name, KEY_ENV, "an app's bearer token")

        def add_key(request: requests.PreparedRequest) -> requests.PreparedRequest:
            request.headers["Authorization"] = f"Bearer {key.get_secret_value()}"
            return request

        client = tweepy.Client(bearer_token="-", return_type=requests.Response)  # noqa: S106
        client.session.auth = add_key
        client.session.mount(OLD_HOST, _HostTransport(self._base_url))
        client.session.max_redirects = 0
        self._connect(client, {KEY_ENV: key})
        return self

    def ask(self, question: Question, cursor: str | None = None) -> Page:
        if question.kind == "posts":
            body = self._look_up(question.about, FIELDS)
        else:
            body = self._search("tweets", question, cursor, {**FIELDS, "max_results": PAGE_SIZE})
            parse_object(self.name, body, meta=dict)
        page = Fields(parse_object(self.name, body))
        data, includes = page.record.get("data"), page.part("includes")
        posts = len(data) if isinstance(data, list) else int(data is not None)
        posts += len(includes.parts("tweets")) + len(includes.parts("posts"))
        cost = posts * USD_PER_POST + len(includes.parts("users")) * USD_PER_USER
        return Page(body, page.part("meta").text("next_token"), posts, round(cost, 6))

    def around(self, posts: Sequence[Post]) -> list[Question]:
        """Ask for the posts above these by number, and for the conversations of root posts."""
        above = sorted({post_id_of(post.parent_url) for post in posts if post.parent_url})
        batches = [tuple(above[at : at + LOOKUP_SIZE]) for at in range(0, len(above), LOOKUP_SIZE)]
        roots = {post_id_of(post.url) for post in posts if post.parent_url is None}
        return [
            *(Question("posts", batch) for batch in batches),
            *(Question("replies", (root,)) for root in sorted(roots)),
        ]

    def estimate(self, question: Question) -> int | None:
        """Ask how many posts a search would find, which costs up to a cent a call."""
        total, token = 0, None
        used: set[str | None] = set()
        while token not in used:
            used.add(token)
            body = self._search("tweets_count", question, token, {"granularity": "day"})
            meta = Fields(parse_object(self.name, body, meta=dict)["meta"])
            total += meta.count("total_tweet_count") or 0
            token = meta.text("next_token")
            if token is None:
                return total
        raise ConnectionError("'x' counts the same days again and again")

    def gone(self, urls: Sequence[str]) -> dict[str, Missing]:
        """Return which posts X no longer shows; the others cost as much as collecting them."""
        ids = [post_id_of(url) for url in urls if platform_of(url) == self.name]
        body = self._look_up(ids, {}) if ids else "{}"
        return find_missing(read_posts(self.name, body), urls)

    def _search(
        self, what: str, question: Question, cursor: str | None, params: Mapping[str, Any]
    ) -> str:
        """Search posts, or count them, in the recent or the full archive."""
        query, now = build_x_query(question), datetime.datetime.now(datetime.UTC)
        archive, first = choose_archive(question, query, now), estimate_start(question)
        last = question.window.end if question.window else None
        if first is not None:
            params = {**params, "start_time": first}
        # Without `end_time` the search ends now; the API refuses an end that is too recent.
        if last and last < now - MIN_WINDOW_AGE:
            params = {**params, "end_time": last}
        if cursor:
            params = {**params, "next_token": cursor}
        if archive == "all":
            time.sleep(self._archive.wait_seconds(self._archive.reserve()))
        name = f"search_{archive}_{what}" if what == "tweets" else f"get_{archive}_{what}"
        answer = self._call(lambda client: getattr(client, name)(query, **params))
        if cursor is not None and answer.status_code == 400 and b"next_token" in answer.content:
            raise StaleCursorError
        return self._read_body(answer)

    def _look_up(self, ids: Sequence[str], params: Mapping[str, Any]) -> str:
        body = self._read_body(self._call(lambda client: client.get_tweets(list(ids), **params)))
        page = parse_object(self.name, body)
        errors = [part.record for part in Fields(page).parts("errors")]
        names_posts = any("resource_id" in error or "value" in error for error in errors)
        if "data" not in page and not names_posts:
            parse_object(self.name, body, data=list)
        return body


def build_x_query(question: Question) -> str:
    if question.kind == "replies":
        return f"conversation_id:{question.about[0]}"
    language = [f"lang:{question.language}"] if question.language else []
    return " ".join([*map(format_search_term, question.about), "-is:retweet", *language])


def choose_archive(question: Question, query: str, now: datetime.datetime) -> str:
    """Return which archive can answer a question."""
    first = estimate_start(question)
    archive = "recent" if first is not None and now - first < RECENT_SEARCH_SPAN else "all"
    limit = MAX_QUERY_CHARACTERS[archive]
    if len(query) > limit:
        size = f"the query has {len(query)} characters"
        raise UnanswerableError(f"{size}: X takes at most {limit} there")
    return archive


def estimate_start(question: Question) -> datetime.datetime | None:
    """Return when the first post that answers a question can have been written; null if unknown."""
    if question.window is not None:
        return question.window.start
    numbers = [int(name) for name in question.about if name.isascii() and name.isdigit()]
    if question.kind != "replies" or not numbers or numbers[0] < FIRST_SNOWFLAKE:
        return None
    try:
        return SNOWFLAKE_EPOCH + datetime.timedelta(milliseconds=numbers[0] >> 22)
    except OverflowError:
        return None
