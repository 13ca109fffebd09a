"""Posts of Mastodon: statuses, timelines, searches, contexts of a status, outboxes."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar
from urllib.parse import urlsplit

from echo_hf.collect.fields import Fields, Json, Pages, as_name, read_json, short_repr, text_of_html
from echo_hf.collect.sources.base import Finding, Parsed, Post, PostImage, register, split_json
from echo_hf.collect.urls import canonical_url, web_url
from echo_hf.reasons import Missing, Notice, Reject

STATUS_LISTS = ("statuses", "ancestors", "descendants")
COUNTS = {"likes": "favourites_count", "reposts": "reblogs_count", "replies": "replies_count"}
CONTENT_KEYS = frozenset({"content", "text"})


PUBLIC_AUDIENCE = frozenset({"https://www.w3.org/ns/activitystreams#Public", "as:Public", "Public"})
OUTBOX_KEY = "orderedItems"  # of an outbox, in the export of an account


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
                rejection = self.reject(Reject.NO_URL, status, name)
                yield _make_empty_post(url, status, missing) if url else rejection
                return
        url, is_status = _read_url(status), not CONTENT_KEYS.isdisjoint(status)
        if url is None or not is_status:
            reason = Reject.NO_URL if is_status else Reject.NOT_A_POST
            yield self.reject(reason, status, "uri", "url")
            return
        if reposted := fields.part("reblog").record:
            yield Finding(Reject.REPOST, f"of {_read_url(reposted)}")
            return
        parent, parent_id = canonical_url(status.get("_parent")), status.get("in_reply_to_id")
        if parent_id is not None and parent is None:
            fields.note(Notice.UNNAMED_PARENT, f"in_reply_to_id {short_repr(parent_id)}")
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
            fields.note(Notice.LABELLED, "sensitive")
        if quoted:
            yield quoted

    def _read_exported(self, fields: Fields, keywords: Sequence[str]) -> Iterator[Parsed]:
        """Read a post of an account's export, in the vocabulary of ActivityPub."""
        if fields.text("type") == "Announce":
            yield Finding(Reject.REPOST, f"of {short_repr(fields.record['object'])}")
            return
        note = fields.part("object")
        url = canonical_url(note.record.get("id")) or canonical_url(note.record.get("url"))
        if url is None:
            yield self.reject(Reject.NO_URL, note.record, "id", "url")
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
            fields.note(Notice.LABELLED, "sensitive")


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
    notice = Notice.UNLISTED if visibility == "unlisted" else Notice.HIDDEN_BY_AUTHOR
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
            fields.note(Notice.IMAGE_WITHOUT_ADDRESS, detail)
