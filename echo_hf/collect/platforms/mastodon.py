"""One server of Mastodon, asked as a signed-in reader: its search, its hashtags, its threads."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Sequence
from typing import Self
from urllib.parse import parse_qs, urlsplit

from echo_hf._infra.registry import Needs
from echo_hf.collect.fields import read_json
from echo_hf.collect.platforms.base import (
    EXTRA,
    PLATFORMS,
    Answer,
    LibraryPlatform,
    Question,
    Tariff,
    UnanswerableError,
    json_object,
    key_of,
    missing_among,
    read_posts,
    search_words,
)
from echo_hf.collect.sources.base import Post
from echo_hf.collect.urls import MASTODON_STATUS, web_url
from echo_hf.errors import PlatformError
from echo_hf.reasons import Missing

INSTANCE, TOKEN = "MASTODON_INSTANCE_URL", "MASTODON_ACCESS_TOKEN"
PAGE = 40
TAG = re.compile(r"#\w+")
NUMBER = re.compile(r"\d{1,25}", re.ASCII)
GONE = {404: Missing.NOT_FOUND, 410: Missing.DELETED}
# Both ends of a search by time are exclusive, and it counts whole seconds.
SECOND = datetime.timedelta(seconds=1)


@PLATFORMS.register("mastodon")
class Mastodon(LibraryPlatform):
    name = "mastodon"
    tariff = Tariff(usd_per_post=0.0, posts_per_page=PAGE)
    most_refreshed = 1

    def __init__(self, base_url: str | None = None) -> None:
        self._base_url = base_url

    def __enter__(self) -> Self:
        Needs("", EXTRA, ("mastodon",)).check_installed(f"platform {self.name!r}")
        from mastodon import Mastodon as Client

        key = key_of(self.name, TOKEN, "an access token of an account")
        if self._base_url is None:
            given = key_of("mastodon", INSTANCE, "the address of a server").get_secret_value()
            address = web_url(given)
            if address is None or "@" in given or not address.startswith("https://"):
                shown = "not shown" if "@" in given else repr(given)
                raise PlatformError(
                    f"environment variable {INSTANCE!r} is {shown}: expected an address such as "
                    "'https://mastodon.example', without a password"
                )
            self._base_url = address.rstrip("/")
        client = Client(
            api_base_url=self._base_url,
            ratelimit_method="throw",
            request_timeout=60,
            # Without a version it would ask for one before each search.
            mastodon_version="4.3.0",
            version_check_mode="created",
        )
        # Given to the constructor, it would be looked for as a file first.
        client.access_token = key.get_secret_value()
        client.session.max_redirects = 0  # the key is for this server alone
        self._connect(client, {TOKEN: key})
        return self

    def ask(self, question: Question, cursor: str | None = None) -> Answer:
        if question.kind == "search" and len(question.about) == 1:
            term = question.about[0]
            is_tag = TAG.fullmatch(term) is not None
            return self._tag(question, cursor) if is_tag else self._search(question, cursor)
        if question.kind == "thread":
            return self._thread(question.about[0])
        raise UnanswerableError(f"'mastodon' has no answer to questions of kind {question.kind!r}")

    def around(self, posts: Sequence[Post]) -> list[Question]:
        """What stands around each; a post that only another server has a number for is left out."""
        known = (post for post in posts if NUMBER.fullmatch(post.post_id or ""))
        about = {f"{post.post_id} {post.url}" for post in known}
        return [Question("thread", (one,)) for one in sorted(about)]

    def can_tell(self, url: str) -> bool:
        """Whether a post is one of this server's own authors, by its address."""
        return self._own_number(url) is not None

    def gone(self, urls: Sequence[str]) -> dict[str, Missing]:
        """Which posts of this server's own authors are gone; of others it says nothing."""
        found: dict[str, Missing] = {}
        for url, number in ((url, self._own_number(url)) for url in urls):
            if number is None:
                continue
            answer = self._heard(lambda client: client.status(number))  # noqa: B023
            if answer.status_code in GONE:
                found[url] = GONE[answer.status_code]
            else:
                found |= missing_among(read_posts(self.name, self._good(answer)), [url])
        return found

    def _own_number(self, url: str) -> str | None:
        parts = urlsplit(url)
        found = MASTODON_STATUS.fullmatch(parts.path)
        same = parts.netloc == urlsplit(self._base_url or "").netloc
        return found[1] if found and same else None

    def _search(self, question: Question, cursor: str | None) -> Answer:
        language = f" language:{question.language}" if question.language else ""
        query = search_words(question.about[0]) + language
        offset = int(cursor or 0)
        first, last = _ends(question)
        answer = self._heard(
            lambda client: client.search_v2(
                query,
                resolve=False,
                result_type="statuses",
                offset=offset,
                min_id=first,
                max_id=last,
                exclude_unreviewed=False,
                limit=PAGE,
            )
        )
        body = self._good(answer)
        count = len(json_object(self.name, body, statuses=list)["statuses"])
        return Answer(body, str(offset + PAGE) if count else None, count, 0.0)

    def _tag(self, question: Question, cursor: str | None) -> Answer:
        first, last = _ends(question)
        answer = self._heard(
            lambda client: client.timeline_hashtag(
                question.about[0][1:], max_id=cursor or last, since_id=first, limit=PAGE
            )
        )
        body = self._good(answer)
        statuses = read_json(body)
        if not isinstance(statuses, list):
            raise ConnectionError("'mastodon' answered something else than a list of statuses")
        older = parse_qs(urlsplit(answer.links.get("next", {}).get("url", "")).query).get("max_id")
        return Answer(body, older[0] if older else None, len(statuses), 0.0)

    def _thread(self, about: str) -> Answer:
        number, _, url = about.partition(" ")
        answer = self._heard(lambda client: client.status_context(number))
        here = json.dumps({"id": number, "url": url})
        if answer.status_code in GONE:
            return Answer(f'{{"about": {here}}}', None, 0, 0.0)
        body = self._good(answer)
        json_object(self.name, body, ancestors=list, descendants=list)
        # The answer does not say what it stands around: without it no reply would have a parent.
        count = len(read_posts(self.name, body))
        return Answer(f'{{"about": {here}, "context": {body}}}', None, count, 0.0)


def _ends(question: Question) -> tuple[datetime.datetime | None, datetime.datetime | None]:
    window = question.window
    return (window.start - SECOND, window.end) if window else (None, None)
