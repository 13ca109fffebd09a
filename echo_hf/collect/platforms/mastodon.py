"""Mastodon: addresses of its servers, its posts, and the search of one server."""

from __future__ import annotations

import datetime
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Self
from urllib.parse import parse_qs, urlsplit

from echo_hf._infra.registry import Requirements
from echo_hf.collect.fields import Fields, Json, Pages, as_name, read_json, short_repr, text_of_html
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
from echo_hf.collect.sources.base import (
    Finding,
    Missing,
    Parsed,
    Post,
    PostImage,
    PostNotice,
    PostReject,
    register,
    split_json,
)
from echo_hf.collect.urls import Site, canonical_url, web_url
from echo_hf.config.collection import SITES
from echo_hf.errors import PlatformError

MASTODON_STATUS = re.compile(
    r"/(?:@[\w.@-]+|(?:ap/)?users/[\w.-]+/statuses)/(\d{5,25})/?", re.ASCII
)
STATUS_LISTS = ("statuses", "ancestors", "descendants")
COUNTS = {"likes": "favourites_count", "reposts": "reblogs_count", "replies": "replies_count"}
CONTENT_KEYS = frozenset({"content", "text"})
PUBLIC_AUDIENCE = frozenset({"https://www.w3.org/ns/activitystreams#Public", "as:Public", "Public"})
OUTBOX_KEY = "orderedItems"  # of an outbox, in the export of an account
INSTANCE_ENV, TOKEN_ENV = "MASTODON_INSTANCE_URL", "MASTODON_ACCESS_TOKEN"
PAGE_SIZE = 40
HASHTAG = re.compile(r"#\w+")
STATUS_NUMBER = re.compile(r"\d{1,25}", re.ASCII)
MISSING_BY_STATUS = {404: Missing.NOT_FOUND, 410: Missing.DELETED}
# Both ends of a search by time are exclusive, and it counts whole seconds.
SECOND = datetime.timedelta(seconds=1)


SITES.register("mastodon")(Site(platform="mastodon", post=MASTODON_STATUS, federated=True))


@register("mastodon")
class MastodonSource(Pages):
    expected = (
        "a status of Mastodon, with its address: alone, in a list, a search, what stands around a "
        "status, or outbox.json of an account's export"
    )
    visibilities: ClassVar[tuple[str | None, ...]] = (None, "public")  # of posts that are read

    def split(self, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Yield one status per record, with its parent's address if the file has that status."""
        text_lines = lines if isinstance(lines, io.TextIOBase) else list(lines)
        urls: dict[str, str | None] = {}
        status: Any
        for _, text in split_json(text_lines):
            status = read_json(text) if '"uri"' in text else None
            if number := _read_number(status):
                address = _read_url(status)
                # If two servers use the same number, it identifies no status.
                urls[number] = address if urls.get(number, address) == address else None
        if isinstance(text_lines, io.TextIOBase):
            text_lines.seek(0)
        for place, record in super().split(text_lines):
            status = read_json(record) if urls else None
            parent_id = as_name(status.get("in_reply_to_id")) if _read_number(status) else None
            if parent_id is not None and "_parent" not in status and urls.get(parent_id):
                record = json.dumps({**status, "_parent": urls[parent_id]})
            yield place, record

    def split_page(self, document: Any) -> Iterator[tuple[str, Any]] | None:
        if isinstance(document, list):
            document = {"statuses": document}
        if isinstance(document, dict) and isinstance(document.get(OUTBOX_KEY), list):
            return ((f"#{at}", row) for at, row in enumerate(document[OUTBOX_KEY]))
        is_page = isinstance(document, dict) and "uri" not in document
        is_list = is_page and not {*STATUS_LISTS, "about"}.isdisjoint(document)
        return ((f"#{at}", row) for at, row in enumerate(_split(document))) if is_list else None

    def read(self, fields: Fields, keywords: Sequence[str]) -> Iterator[Parsed | Json]:
        status = fields.record
        if status.get("type") in ("Create", "Announce") and "object" in status:
            yield from self._read_exported(fields, keywords)
            return
        for name, missing in (("_missing", Missing.NOT_FOUND), ("_edge", Missing.NOT_FETCHED)):
            if name in status:
                url = canonical_url(status[name])
                rejection = self.reject(PostReject.NO_URL, status, name)
                yield _make_empty_post(url, status, missing) if url else rejection
                return
        url, is_status = _read_url(status), not CONTENT_KEYS.isdisjoint(status)
        if url is None or not is_status:
            reason = PostReject.NO_URL if is_status else PostReject.NOT_A_POST
            yield self.reject(reason, status, "uri", "url")
            return
        if reposted := fields.part("reblog").record:
            yield Finding(PostReject.REPOST, f"of {_read_url(reposted)}")
            return
        parent, parent_id = canonical_url(status.get("_parent")), status.get("in_reply_to_id")
        if parent_id is not None and parent is None:
            fields.note(PostNotice.UNNAMED_PARENT, f"in_reply_to_id {short_repr(parent_id)}")
        if (visibility := status.get("visibility")) not in self.visibilities:
            fields.findings.clear()  # they would reveal the content
            yield from _report_hidden(url, status, visibility)
            return
        content, warning = fields.text("content"), (fields.text("spoiler_text") or "").strip()
        body = fields.text("text") if content is None else text_of_html(content)
        quoted = fields.part("quote").part("quoted_status").record
        yield Post(
            url=url,
            post_id=as_name(status.get("id")),
            platform="mastodon",
            author=_read_author(fields.part("account")),
            # A post with only images has an empty text, not null.
            text="\n\n".join(filter(None, [warning, body])) or body,
            timestamp=fields.moment("created_at"),
            edited=fields.moment("edited_at"),
            lang=fields.text("language"),
            keywords=keywords,
            pictures=list(_read_images(fields)),
            parent_url=parent,
            unnamed_parent=parent is None and parent_id is not None,
            quoted_url=_read_url(quoted),
            engagement=fields.engagement(COUNTS),
        )
        if status.get("sensitive") is True:
            fields.note(PostNotice.LABELLED, "sensitive")
        if quoted:
            yield quoted

    def _read_exported(self, fields: Fields, keywords: Sequence[str]) -> Iterator[Parsed]:
        """Read a post of an account's export, in the vocabulary of ActivityPub."""
        if fields.text("type") == "Announce":
            yield Finding(PostReject.REPOST, f"of {short_repr(fields.record['object'])}")
            return
        note = fields.part("object")
        url = canonical_url(note.record.get("id")) or canonical_url(note.record.get("url"))
        if url is None:
            yield self.reject(PostReject.NO_URL, note.record, "id", "url")
            return
        visibility = _read_visibility(note)
        parent = note.record.get("inReplyTo")
        if visibility not in self.visibilities:
            yield from _report_hidden(url, {"_parent": parent}, visibility)
            return
        content, warning = note.text("content"), (note.text("summary") or "").strip()
        body = None if content is None else text_of_html(content)
        languages = note.part("contentMap").record
        yield Post(
            url=url,
            post_id=url.rpartition("/")[2],
            platform="mastodon",
            author=_read_exported_author(note.text("attributedTo") or fields.text("actor")),
            text="\n\n".join(filter(None, [warning, body])) or body,
            timestamp=note.moment("published"),
            edited=note.moment("updated"),
            lang=next(iter(languages)) if len(languages) == 1 else None,
            keywords=keywords,
            pictures=[*map(_make_exported_image, _find_attached_images(note))],
            parent_url=None if parent is None else note.address("inReplyTo"),
        )
        if note.record.get("sensitive") is True:
            fields.note(PostNotice.LABELLED, "sensitive")


@register("mastodon_unlisted")
class UnlistedMastodonSource(MastodonSource):
    """Reads unlisted statuses as well: public ones that their authors keep out of searches."""

    visibilities: ClassVar[tuple[str | None, ...]] = (None, "public", "unlisted")


def _read_number(status: Any) -> str | None:
    """Return the number of a status that is alone in its document, on the server that was asked."""
    is_status = isinstance(status, dict) and "uri" in status and not CONTENT_KEYS.isdisjoint(status)
    return as_name(status.get("id")) if is_status else None


def _report_hidden(url: str, status: Json, visibility: Any) -> Iterator[Parsed]:
    yield _make_empty_post(url, status, Missing.PROTECTED)
    notice = PostNotice.UNLISTED if visibility == "unlisted" else PostNotice.HIDDEN_BY_AUTHOR
    yield Finding(notice, f"{short_repr(visibility)}: {url}")


def _read_visibility(note: Fields) -> str:
    """Return who may read an exported post: those whom it is addressed to."""
    audiences: list[set[str]] = []
    for name in ("to", "cc"):
        audience = note.record.get(name)
        audiences.append({audience} if isinstance(audience, str) else set(note.texts(name)))
    recipients, copy_recipients = audiences
    if recipients & PUBLIC_AUDIENCE:
        return "public"
    return "unlisted" if copy_recipients & PUBLIC_AUDIENCE else "private"


def _read_exported_author(account: str | None) -> str | None:
    """Return an account's name with its server, from its address."""
    address = canonical_url(account)
    name = (address or "").rpartition("/")[2].removeprefix("@")
    return f"{name}@{urlsplit(address).netloc}" if address and name else None


def _find_attached_images(note: Fields) -> list[Fields]:
    return [part for part in note.parts("attachment") if _is_image(part.record.get("mediaType"))]


def _is_image(kind: Any) -> bool:
    return isinstance(kind, str) and kind.startswith("image/")


def _make_exported_image(attachment: Fields) -> PostImage:
    """Return an image that lies beside the export, or on the server."""
    address, alt_text = attachment.text("url") or "", attachment.text("name")
    if web_url(address):
        return PostImage(url=address, alt_text=alt_text)
    return PostImage(path=address.lstrip("/"), alt_text=alt_text)


def _split(page: Json) -> Iterator[Any]:
    fields = Fields(page)
    about = fields.part("about")
    holder = fields.part("context") if about.record else fields
    posts: list[Any] = []
    for name in STATUS_LISTS:
        listed = holder.record.get(name)
        # Records that are no statuses are rejected later, one by one with their places.
        if not isinstance(listed, list):
            listed = [part.record for part in holder.parts(name)]
        posts += listed
    statuses = (post for post in posts if isinstance(post, dict))
    addresses = {as_name(status.get("id")): _read_url(status) for status in statuses}
    addresses[as_name(about.record.get("id"))] = about.text("url")
    included = "statuses" not in holder.record
    for post in posts:
        if isinstance(post, dict):
            parent_id = as_name(post.get("in_reply_to_id"))
            parent = None if parent_id is None else addresses.get(parent_id)
            post = {**post, "_parent": parent, "_included": included}
        yield post
    if about.record:
        number, ancestors = about.record.get("id"), holder.parts("ancestors")
        if "ancestors" not in holder.record:
            yield {"_missing": about.text("url"), "id": number}
        elif ancestors:
            parent = addresses.get(as_name(ancestors[-1].record.get("id")))
            yield {"_edge": about.text("url"), "id": number, "_parent": parent}
    if fields.findings:
        yield {"_findings": [finding.detail for finding in fields.findings]}


def _read_url(status: Json) -> str | None:
    """Return a status's address that is the same everywhere, else the one on its own server."""
    uri = status.get("uri")
    has_uri = isinstance(uri, str) and uri.startswith("http")
    return canonical_url(uri if has_uri else status.get("url"))


def _make_empty_post(url: str, record: Json, missing: Missing) -> Post:
    return Post(
        url=url,
        # Not the number in the address: on the server that was asked it may be another post.
        post_id=as_name(record.get("id")),
        platform="mastodon",
        parent_url=canonical_url(record.get("_parent")),
        missing=missing,
    )


def _read_author(account: Fields) -> str | None:
    """Return an author's name with its server, so that it is unique over all servers."""
    name = account.text("acct") or account.text("username")
    home = canonical_url(account.record.get("uri")) or canonical_url(account.record.get("url"))
    if name is None or "@" in name or home is None:
        return name
    return f"{name}@{urlsplit(home).netloc}"


def _read_images(fields: Fields) -> Iterator[PostImage]:
    for media in fields.parts("media_attachments"):
        if media.record.get("type") != "image":
            continue
        if address := media.link("url") or media.link("remote_url"):
            yield PostImage(url=address, alt_text=media.text("description") or None)
        else:
            detail = f"media {short_repr(media.record.get('id'))}"
            fields.note(PostNotice.IMAGE_WITHOUT_ADDRESS, detail)


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
