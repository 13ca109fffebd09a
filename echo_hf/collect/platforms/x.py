"""X: its addresses, its posts, and its search, by version 2 of its API."""

from __future__ import annotations

import datetime
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

import requests
from requests.adapters import HTTPAdapter

from echo_hf._infra.rate_limit import RateLimiter
from echo_hf._infra.registry import Requirements
from echo_hf.collect.fields import Fields, Json, Pages, as_name, plain_text, short_repr
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
from echo_hf.collect.urls import Site, platform_of, post_id_of
from echo_hf.config.collection import SITES
from echo_hf.engines.prices import read_platform_price

X_STATUS = re.compile(r"/(?:i/web|i|@?\w{1,50})/status(?:es)?/0*(\d{1,25})(?:/.*)?", re.ASCII)
# Nearly all addresses are plain, and `urlsplit` costs more than the rest of a post.
PLAIN_X = re.compile(
    r"https://(?:www\.|mobile\.|m\.)?(?:x|twitter)\.com"
    + X_STATUS.pattern.removesuffix("(?:/.*)?")
    # any visible character but a backslash
    + r"(?:[/?#][!-\[\]-~]*)?",
    re.ASCII,
)
PAGE_KEYS = frozenset({"data", "includes", "errors", "meta"})
REFERENCE_KEYS = ("referenced_tweets", "referenced_posts")
INCLUDED_KEYS = ("tweets", "posts")
POST_RESOURCE_TYPES = ("tweet", "post")
COUNTS = {
    "likes": "like_count",
    "views": "impression_count",
    "reposts": "retweet_count",
    "replies": "reply_count",
    "bookmarks": "bookmark_count",
}
NOTE_KEYS = ("note_tweet", "note_post")
EDIT_HISTORY_KEYS = ("edit_history_tweet_ids", "edit_history_post_ids")
OTHER_FORMAT_KEYS = frozenset({"full_text", "rawContent", "content"})  # version 1.1, snscrape's
PHOTO_KEY = "3_"  # the prefix of the API's keys of photos
OWN_MEDIA = re.compile(r"/status/(\d+)/(?:photo|video)/\d+/?", re.ASCII)
# Words in the errors for missing posts; without any of them the reason is not known.
CAUSES = (
    (re.compile(r"suspend|withheld|blocked"), Missing.BLOCKED),
    (re.compile(r"authoriz|protected"), Missing.PROTECTED),
    (re.compile(r"deleted"), Missing.DELETED),
)
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
PRICE = read_platform_price("x")
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


def x_status_url(number: Any) -> str | None:
    if isinstance(number, bool) or not isinstance(number, int | str):
        return None
    is_endless = isinstance(number, int) and not 0 <= number < 10**25
    digits = "" if is_endless else str(number)
    if not re.fullmatch(r"\d{1,25}", digits, re.ASCII):
        return None
    return f"https://x.com/i/status/{digits.lstrip('0') or '0'}"


SITES.register("x")(
    Site(
        platform="x",
        hosts=("x.com", "twitter.com"),
        # Sites that show posts of X under other addresses: it is the same post.
        mirrors=("nitter.net", "fxtwitter.com", "vxtwitter.com", "fixupx.com", "xcancel.com"),
        subdomains=True,
        post=X_STATUS,
        canonical=lambda post: f"https://x.com/i/status/{post[1]}",
        plain=PLAIN_X,
        by_identifier=x_status_url,
        names=("twitter", "x.com", "twitter.com"),
        restricted=True,
        account_hosts=(
            r"(?:x|twitter|fxtwitter|vxtwitter|fixupx|xcancel)\.com|nitter(?:\.[\w-]+)+"
        ),
    )
)


@register("x")
class XSource(Pages):
    expected = (
        "a post of version 2 of the X API, with its number: in a page, or flattened; sources "
        "'snscrape' and 'x_archive' read other forms"
    )
    keyword_sign = r"[?&]query="

    def split_page(self, document: Any) -> Iterator[tuple[str, Any]] | None:
        is_page = isinstance(document, dict) and "id" not in document
        return _flatten_page(document) if is_page and not PAGE_KEYS.isdisjoint(document) else None

    def read(self, fields: Fields, keywords: Sequence[str]) -> Iterator[Parsed | Json]:
        record = fields.record
        if isinstance(record.get("_missing"), dict):
            yield self._read_missing(fields.part("_missing"))
            return
        references = [part.record for name in REFERENCE_KEYS for part in fields.parts(name)]
        by_type: dict[Any, Json] = {}
        for reference in references:
            if as_name(kind := reference.get("type")):
                by_type.setdefault(kind, reference)  # the first of each type counts
        url, text = x_status_url(record.get("id")), _read_text(fields)
        if "retweeted" in by_type:
            yield Finding(PostReject.REPOST, f"of {x_status_url(by_type['retweeted'].get('id'))}")
        elif url is None:
            # Posts of this API have no address: a record with one is of another format.
            is_other = "url" in record and "id" not in record
            detail = f"id is {short_repr(record.get('id'))}, expected {self.expected}"
            reason = PostReject.NOT_A_POST if is_other else PostReject.NO_URL
            yield Finding(reason, f"{detail}: {short_repr(record)}")
        elif text is None and not OTHER_FORMAT_KEYS.isdisjoint(record):
            yield self.reject(PostReject.NOT_A_POST, record)
        else:
            queries = [] if record.get("_included") else _read_query(fields)
            yield Post(
                url=url,
                platform="x",
                author=fields.part("author").text("username"),
                text=text,
                timestamp=fields.moment("created_at"),
                lang=fields.text("lang"),
                keywords=list(dict.fromkeys([*keywords, *queries])),
                pictures=_read_images(fields),
                parent_url=_read_url(fields, by_type.get("replied_to")),
                quoted_url=_read_url(fields, by_type.get("quoted")),
                engagement=fields.part("public_metrics").engagement(COUNTS),
            )
        for reference in references:
            if "text" in reference:  # drop the query: no search found a nested post
                yield {name: value for name, value in reference.items() if name != "__twarc"}

    def _read_missing(self, error: Fields) -> Parsed:
        url = x_status_url(error.record.get("resource_id") or error.record.get("value"))
        if url is None:
            return self.reject(PostReject.NO_URL, error.record, "resource_id", "value")
        text = " ".join(error.text(name) or "" for name in ("title", "detail", "type")).lower()
        matching = (missing for words, missing in CAUSES if words.search(text))
        return Post(url=url, platform="x", missing=next(matching, Missing.NOT_FOUND))


def _flatten_page(page: Json) -> Iterator[tuple[str, Any]]:
    """Yield the posts of a page, each joined with its author, media and references."""
    fields, data = Fields(page), page.get("data")
    included = fields.part("includes")
    posts = [part.record for name in INCLUDED_KEYS for part in included.parts(name)]
    users = _map_by_name([part.record for part in included.parts("users")], "id")
    media = _map_by_name([part.record for part in included.parts("media")], "media_key")
    posts_by_id = _map_by_name(posts, "id")
    nested: set[str] = set()

    def flatten_post(post: Json) -> dict[str, Any]:
        attachments = post.get("attachments")
        keys = attachments.get("media_keys") if isinstance(attachments, dict) else None
        keys = keys if isinstance(keys, list) else []
        attached = [media[name] for key in keys if (name := as_name(key) or "") in media]
        author = users.get(as_name(post.get("author_id")) or "")
        return {**post, "author": author, "attachments": {"media_keys": keys, "media": attached}}

    def resolve(reference: Any) -> Any:
        name = as_name(reference.get("id")) if isinstance(reference, dict) else None
        if name is None or name not in posts_by_id:
            return reference
        nested.add(name)
        return {**flatten_post(posts_by_id[name]), **reference}

    for number, post in enumerate(data if isinstance(data, list) else [data]):
        if isinstance(post, dict):
            lists = [name for name in REFERENCE_KEYS if isinstance(post.get(name), list)]
            whole = {name: [resolve(reference) for reference in post[name]] for name in lists}
            yield f"#{number}", {**flatten_post(post), **whole, "__twarc": page.get("__twarc")}
        elif post is not None:
            yield f"#{number}", post
    for number, post in enumerate(posts):
        if as_name(post.get("id")) not in nested:
            yield f"#includes.{number}", {**flatten_post(post), "_included": True}
    for number, error in enumerate(fields.parts("errors")):
        if error.record.get("resource_type") in POST_RESOURCE_TYPES:
            yield f"#errors.{number}", {"_missing": error.record}
        elif error.record.get("resource_type") is None:
            yield f"#errors.{number}", error.record
    if fields.findings:
        yield "#page", {"_findings": [finding.detail for finding in fields.findings]}


def _map_by_name(records: Sequence[Json], key: str) -> dict[str, Json]:
    return {name: record for record in records if (name := as_name(record.get(key)))}


def _read_url(fields: Fields, reference: Json | None) -> str | None:
    url = x_status_url(reference.get("id")) if reference else None
    if reference and url is None:
        name = f"id of {reference['type']}"
        fields.note_bad(name, reference.get("id"), "the number of a post")
    return url


def _read_text(fields: Fields) -> str | None:
    """Return the text, from the note where the post's text is cut, with links in full."""
    name = next((name for name in NOTE_KEYS if fields.record.get(name) is not None), None)
    note = fields.part(name) if name else Fields({})
    text = note.text("text") or fields.text("text")
    if text is None:
        return None
    links: dict[str, str] = {}
    for link in [*fields.part("entities").parts("urls"), *note.part("entities").parts("urls")]:
        short, long = link.text("url"), link.text("expanded_url")
        if short and long:
            links[short] = "" if _is_own_media(link.record, long, fields.record) else long
    return plain_text(text, links)


def _is_own_media(link: Json, long: str, post: Json) -> bool:
    attached = post.get("attachments")
    keys = attached.get("media_keys") if isinstance(attached, dict) else None
    if link.get("media_key") is not None and isinstance(keys, list):
        return link["media_key"] in keys
    status = OWN_MEDIA.search(long)
    # A link in an edited post may have the id of its first version.
    own_ids = [post.get("id")]
    for name in EDIT_HISTORY_KEYS:
        own_ids += post[name] if isinstance(post.get(name), list) else []
    return status is not None and status[1] in map(as_name, own_ids)


def _read_images(fields: Fields) -> list[PostImage]:
    attachments = fields.part("attachments")
    known_keys, images = set(), []
    for media in attachments.parts("media"):
        if media.record.get("type") == "photo":
            url, alt_text = media.link("url"), media.text("alt_text")
            if url:
                images.append(PostImage(url=url, alt_text=alt_text))
                known_keys.add(as_name(media.record.get("media_key")))
    for key in attachments.texts("media_keys"):
        if key.startswith(PHOTO_KEY) and key not in known_keys:
            fields.note(PostNotice.IMAGE_WITHOUT_ADDRESS, key)
    return images


def _read_query(fields: Fields) -> list[str]:
    try:
        url = urlsplit(fields.part("__twarc").text("url") or "")
        return parse_qs(url.query).get("query", [])
    except ValueError:
        return []


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
        PRICE.usd_per_post,
        PRICE.usd_per_estimate,
        PAGE_SIZE,
        PRICE.usd_per_author,
        PRICE.most_posts_a_month,
        f"{PRICE.sources[0]} ({PRICE.as_of})",
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
        authors = len(includes.parts("users"))
        cost = posts * PRICE.usd_per_post + authors * PRICE.usd_per_author
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
