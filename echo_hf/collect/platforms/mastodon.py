"""One server of Mastodon, asked as a signed-in reader: its search, its hashtags, its threads."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Sequence
from typing import Self
from urllib.parse import parse_qs, urlsplit

from echo_hf._infra.registry import Requirements
from echo_hf.collect.fields import read_json
from echo_hf.collect.platforms.base import (
    PLATFORMS,
    SOURCES_EXTRA,
    LibraryPlatform,
    Page,
    Question,
    Tariff,
    UnanswerableError,
    find_missing,
    format_search_term,
    parse_object,
    read_key,
    read_posts,
)
from echo_hf.collect.sources.base import Post
from echo_hf.collect.urls import MASTODON_STATUS, web_url
from echo_hf.errors import PlatformError
from echo_hf.reasons import Missing

INSTANCE_ENV, TOKEN_ENV = "MASTODON_INSTANCE_URL", "MASTODON_ACCESS_TOKEN"
PAGE_SIZE = 40
HASHTAG = re.compile(r"#\w+")
STATUS_NUMBER = re.compile(r"\d{1,25}", re.ASCII)
MISSING_BY_STATUS = {404: Missing.NOT_FOUND, 410: Missing.DELETED}
# Both ends of a search by time are exclusive, and it counts whole seconds.
SECOND = datetime.timedelta(seconds=1)


@PLATFORMS.register("mastodon")
class MastodonPlatform(LibraryPlatform):
    name = "mastodon"
    tariff = Tariff(usd_per_post=0.0, posts_per_page=PAGE_SIZE)
    most_refreshed = 1

    def __init__(self, base_url: str | None = None) -> None:
        self._base_url = base_url

    def __enter__(self) -> Self:
        Requirements("", SOURCES_EXTRA, ("mastodon",)).check_installed(f"platform {self.name!r}")
        from mastodon import Mastodon as Client

        key = read_key(self.name, TOKEN_ENV, "an access token of an account")
        if self._base_url is None:
            address_key = read_key("mastodon", INSTANCE_ENV, "the address of a server")
            instance = address_key.get_secret_value()
            address = web_url(instance)
            if address is None or "@" in instance or not address.startswith("https://"):
                shown_instance = "not shown" if "@" in instance else repr(instance)
                raise PlatformError(
                    f"environment variable {INSTANCE_ENV!r} is {shown_instance}: expected an "
                    "address such as 'https://mastodon.example', without a password"
                )
            self._base_url = address.rstrip("/")
        client = Client(
            api_base_url=self._base_url,
            ratelimit_method="throw",
            request_timeout=60,
            # Without a version the client would ask for it before each search.
            mastodon_version="4.3.0",
            version_check_mode="created",
        )
        # The constructor would take the token for the name of a file.
        client.access_token = key.get_secret_value()
        client.session.max_redirects = 0  # the token must not go to another server
        self._connect(client, {TOKEN_ENV: key})
        return self

    def ask(self, question: Question, cursor: str | None = None) -> Page:
        if question.kind == "search" and len(question.about) == 1:
            term = question.about[0]
            is_tag = HASHTAG.fullmatch(term) is not None
            return self._search_tag(question, cursor) if is_tag else self._search(question, cursor)
        if question.kind == "thread":
            return self._ask_thread(question.about[0])
        raise UnanswerableError(f"'mastodon' has no answer to questions of kind {question.kind!r}")

    def around(self, posts: Sequence[Post]) -> list[Question]:
        """Ask for the thread of each post that this server has a number for."""
        known_posts = (post for post in posts if STATUS_NUMBER.fullmatch(post.post_id or ""))
        about = {f"{post.post_id} {post.url}" for post in known_posts}
        return [Question("thread", (name,)) for name in sorted(about)]

    def can_tell(self, url: str) -> bool:
        """Return whether a post, by its address, is of one of this server's own authors."""
        return self._read_own_number(url) is not None

    def gone(self, urls: Sequence[str]) -> dict[str, Missing]:
        """Return which posts of this server's own authors are gone; others are left out."""
        missing: dict[str, Missing] = {}
        for url in urls:
            number = self._read_own_number(url)
            if number is None:
                continue
            answer = self._call(lambda client: client.status(number))  # noqa: B023
            if answer.status_code in MISSING_BY_STATUS:
                missing[url] = MISSING_BY_STATUS[answer.status_code]
            else:
                missing |= find_missing(read_posts(self.name, self._read_body(answer)), [url])
        return missing

    def _read_own_number(self, url: str) -> str | None:
        parts = urlsplit(url)
        status_match = MASTODON_STATUS.fullmatch(parts.path)
        is_own_server = parts.netloc == urlsplit(self._base_url or "").netloc
        return status_match[1] if status_match and is_own_server else None

    def _search(self, question: Question, cursor: str | None) -> Page:
        language = f" language:{question.language}" if question.language else ""
        query = format_search_term(question.about[0]) + language
        offset = int(cursor or 0)
        first, last = _window_ends(question)
        answer = self._call(
            lambda client: client.search_v2(
                query,
                resolve=False,
                result_type="statuses",
                offset=offset,
                min_id=first,
                max_id=last,
                exclude_unreviewed=False,
                limit=PAGE_SIZE,
            )
        )
        body = self._read_body(answer)
        count = len(parse_object(self.name, body, statuses=list)["statuses"])
        return Page(body, str(offset + PAGE_SIZE) if count else None, count, 0.0)

    def _search_tag(self, question: Question, cursor: str | None) -> Page:
        first, last = _window_ends(question)
        answer = self._call(
            lambda client: client.timeline_hashtag(
                question.about[0][1:], max_id=cursor or last, since_id=first, limit=PAGE_SIZE
            )
        )
        body = self._read_body(answer)
        statuses = read_json(body)
        if not isinstance(statuses, list):
            raise ConnectionError("'mastodon' answered something else than a list of statuses")
        ids = parse_qs(urlsplit(answer.links.get("next", {}).get("url", "")).query).get("max_id")
        return Page(body, ids[0] if ids else None, len(statuses), 0.0)

    def _ask_thread(self, about: str) -> Page:
        number, _, url = about.partition(" ")
        answer = self._call(lambda client: client.status_context(number))
        about_json = json.dumps({"id": number, "url": url})
        if answer.status_code in MISSING_BY_STATUS:
            return Page(f'{{"about": {about_json}}}', None, 0, 0.0)
        body = self._read_body(answer)
        parse_object(self.name, body, ancestors=list, descendants=list)
        # The response does not name its status; without it no reply would have a parent.
        count = len(read_posts(self.name, body))
        return Page(f'{{"about": {about_json}, "context": {body}}}', None, count, 0.0)


def _window_ends(question: Question) -> tuple[datetime.datetime | None, datetime.datetime | None]:
    window = question.window
    return (window.start - SECOND, window.end) if window else (None, None)
