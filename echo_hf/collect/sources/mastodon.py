"""Posts of Mastodon: statuses, timelines, searches, what stands around a status, outboxes."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar
from urllib.parse import urlsplit

from echo_hf.collect.fields import Fields, Json, Pages, name_of, read_json, short_repr, text_of_html
from echo_hf.collect.sources.base import Finding, Parsed, Post, PostImage, json_documents, register
from echo_hf.collect.urls import canonical_url, web_url
from echo_hf.reasons import Missing, Notice, Reject

LISTS = ("statuses", "ancestors", "descendants")
COUNTS = {"likes": "favourites_count", "reposts": "reblogs_count", "replies": "replies_count"}
CONTENT = frozenset({"content", "text"})


PUBLIC = frozenset({"https://www.w3.org/ns/activitystreams#Public", "as:Public", "Public"})
ACTIVITIES = "orderedItems"  # of an outbox, as an account's export holds it


@register("mastodon")
class Mastodon(Pages):
    expected = (
        "a status of Mastodon, with its address: alone, in a list, a search, what stands around a "
        "status, or outbox.json of an account's export"
    )
    shown: ClassVar[tuple[str | None, ...]] = (None, "public")  # visibilities

    def split(self, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
        """One status a record, with the address of what it answers where the file has that."""
        text_lines = lines if isinstance(lines, io.TextIOBase) else list(lines)
        known: dict[str, str | None] = {}
        status: Any
        for _, text in json_documents(text_lines):
            status = read_json(text) if '"uri"' in text else None
            if number := _number(status):
                address = _address(status)
                # Of two servers that give one number nothing is known of what a number means.
                known[number] = address if known.get(number, address) == address else None
        if isinstance(text_lines, io.TextIOBase):
            text_lines.seek(0)
        for place, record in super().split(text_lines):
            status = read_json(record) if known else None
            answers = name_of(status.get("in_reply_to_id")) if _number(status) else None
            if answers is not None and "_parent" not in status and known.get(answers):
                record = json.dumps({**status, "_parent": known[answers]})
            yield place, record

    def parts(self, document: Any) -> Iterator[tuple[str, Any]] | None:
        if isinstance(document, list):
            document = {"statuses": document}
        if isinstance(document, dict) and isinstance(document.get(ACTIVITIES), list):
            return ((f"#{at}", one) for at, one in enumerate(document[ACTIVITIES]))
        is_page = isinstance(document, dict) and "uri" not in document
        found = is_page and not {*LISTS, "about"}.isdisjoint(document)
        return ((f"#{at}", one) for at, one in enumerate(_records(document))) if found else None

    def read(self, fields: Fields, keywords: Sequence[str]) -> Iterator[Parsed | Json]:
        status = fields.record
        if status.get("type") in ("Create", "Announce") and "object" in status:
            yield from self._exported(fields, keywords)
            return
        for name, why in (("_missing", Missing.NOT_FOUND), ("_edge", Missing.NOT_FETCHED)):
            if name in status:
                url = canonical_url(status[name])
                refused = self.refused(Reject.NO_URL, status, name)
                yield _without_content(url, status, why) if url else refused
                return
        url, is_status = _address(status), not CONTENT.isdisjoint(status)
        if url is None or not is_status:
            reason = Reject.NO_URL if is_status else Reject.NOT_A_POST
            yield self.refused(reason, status, "uri", "url")
            return
        if repeated := fields.part("reblog").record:
            yield Finding(Reject.REPOST, f"of {_address(repeated)}")
            return
        parent, answers = canonical_url(status.get("_parent")), status.get("in_reply_to_id")
        if answers is not None and parent is None:
            fields.note(Notice.UNNAMED_PARENT, f"in_reply_to_id {short_repr(answers)}")
        if (visibility := status.get("visibility")) not in self.shown:
            fields.findings.clear()  # what they show is of its content
            yield from _hidden(url, status, visibility)
            return
        content, warning = fields.text("content"), (fields.text("spoiler_text") or "").strip()
        body = fields.text("text") if content is None else text_of_html(content)
        quoted = fields.part("quote").part("quoted_status").record
        yield Post(
            url=url,
            post_id=name_of(status.get("id")),
            platform="mastodon",
            author=_author(fields.part("account")),
            # A post of images alone has an empty text, not none.
            text="\n\n".join(filter(None, [warning, body])) or body,
            timestamp=fields.moment("created_at"),
            edited=fields.moment("edited_at"),
            lang=fields.text("language"),
            keywords=keywords,
            pictures=list(_images(fields)),
            parent_url=parent,
            unnamed_parent=parent is None and answers is not None,
            quoted_url=_address(quoted),
            engagement=fields.engagement(COUNTS),
        )
        if status.get("sensitive") is True:
            fields.note(Notice.LABELLED, "sensitive")
        if quoted:
            yield quoted

    def _exported(self, fields: Fields, keywords: Sequence[str]) -> Iterator[Parsed]:
        """A post of an account's export, in the words of ActivityPub."""
        if fields.text("type") == "Announce":
            yield Finding(Reject.REPOST, f"of {short_repr(fields.record['object'])}")
            return
        note = fields.part("object")
        url = canonical_url(note.record.get("id")) or canonical_url(note.record.get("url"))
        if url is None:
            yield self.refused(Reject.NO_URL, note.record, "id", "url")
            return
        visibility = _visibility(note)
        parent = note.record.get("inReplyTo")
        if visibility not in self.shown:
            yield from _hidden(url, {"_parent": parent}, visibility)
            return
        content, warning = note.text("content"), (note.text("summary") or "").strip()
        body = None if content is None else text_of_html(content)
        languages = note.part("contentMap").record
        yield Post(
            url=url,
            post_id=url.rpartition("/")[2],
            platform="mastodon",
            author=_exported_author(note.text("attributedTo") or fields.text("actor")),
            text="\n\n".join(filter(None, [warning, body])) or body,
            timestamp=note.moment("published"),
            edited=note.moment("updated"),
            lang=next(iter(languages)) if len(languages) == 1 else None,
            keywords=keywords,
            pictures=[*map(_exported_image, _attached(note))],
            parent_url=None if parent is None else note.address("inReplyTo"),
        )
        if note.record.get("sensitive") is True:
            fields.note(Notice.LABELLED, "sensitive")


@register("mastodon_unlisted")
class MastodonUnlisted(Mastodon):
    """With statuses that everybody may read and that their authors keep out of searches."""

    shown: ClassVar[tuple[str | None, ...]] = (None, "public", "unlisted")


def _number(status: Any) -> str | None:
    """The number of a status that is alone in its document, on the server that was asked."""
    is_status = isinstance(status, dict) and "uri" in status and not CONTENT.isdisjoint(status)
    return name_of(status.get("id")) if is_status else None


def _hidden(url: str, status: Json, visibility: Any) -> Iterator[Parsed]:
    yield _without_content(url, status, Missing.PROTECTED)
    notice = Notice.UNLISTED if visibility == "unlisted" else Notice.HIDDEN_BY_AUTHOR
    yield Finding(notice, f"{short_repr(visibility)}: {url}")


def _visibility(note: Fields) -> str:
    """Who may read an exported post; whoever it is not addressed to may not."""
    to, also = (
        {given} if isinstance(given := note.record.get(name), str) else set(note.texts(name))
        for name in ("to", "cc")
    )
    if to & PUBLIC:
        return "public"
    return "unlisted" if also & PUBLIC else "private"


def _exported_author(account: str | None) -> str | None:
    """An account's name with its server, from its address."""
    address = canonical_url(account)
    name = (address or "").rpartition("/")[2].removeprefix("@")
    return f"{name}@{urlsplit(address).netloc}" if address and name else None


def _attached(note: Fields) -> list[Fields]:
    return [part for part in note.parts("attachment") if _is_image(part.record.get("mediaType"))]


def _is_image(kind: Any) -> bool:
    return isinstance(kind, str) and kind.startswith("image/")


def _exported_image(attached: Fields) -> PostImage:
    """An image beside the export, or on the server."""
    address, alt_text = attached.text("url") or "", attached.text("name")
    if web_url(address):
        return PostImage(url=address, alt_text=alt_text)
    return PostImage(path=address.lstrip("/"), alt_text=alt_text)


def _records(page: Json) -> Iterator[Any]:
    fields = Fields(page)
    about = fields.part("about")
    holder = fields.part("context") if about.record else fields
    found: list[Any] = []
    for name in LISTS:
        given = holder.record.get(name)
        # What is no status is rejected one by one, with its place.
        found += given if isinstance(given, list) else [one.record for one in holder.parts(name)]
    addresses = {name_of(one.get("id")): _address(one) for one in found if isinstance(one, dict)}
    addresses[name_of(about.record.get("id"))] = about.text("url")
    included = "statuses" not in holder.record
    for one in found:
        if isinstance(one, dict):
            answers = name_of(one.get("in_reply_to_id"))
            parent = None if answers is None else addresses.get(answers)
            one = {**one, "_parent": parent, "_included": included}
        yield one
    if about.record:
        number, above = about.record.get("id"), holder.parts("ancestors")
        if "ancestors" not in holder.record:
            yield {"_missing": about.text("url"), "id": number}
        elif above:
            parent = addresses.get(name_of(above[-1].record.get("id")))
            yield {"_edge": about.text("url"), "id": number, "_parent": parent}
    if fields.findings:
        yield {"_findings": [finding.detail for finding in fields.findings]}


def _address(status: Json) -> str | None:
    """What a status is called everywhere, or else on its own server."""
    uri = status.get("uri")
    named = isinstance(uri, str) and uri.startswith("http")
    return canonical_url(uri if named else status.get("url"))


def _without_content(url: str, record: Json, missing: Missing) -> Post:
    return Post(
        url=url,
        # Not the number in the address, by which another server may know another post.
        post_id=name_of(record.get("id")),
        platform="mastodon",
        parent_url=canonical_url(record.get("_parent")),
        missing=missing,
    )


def _author(account: Fields) -> str | None:
    """A name that no other server gives to somebody else."""
    name = account.text("acct") or account.text("username")
    home = canonical_url(account.record.get("uri")) or canonical_url(account.record.get("url"))
    if name is None or "@" in name or home is None:
        return name
    return f"{name}@{urlsplit(home).netloc}"


def _images(fields: Fields) -> Iterator[PostImage]:
    for one in fields.parts("media_attachments"):
        if one.record.get("type") != "image":
            continue
        if address := one.link("url") or one.link("remote_url"):
            yield PostImage(url=address, alt_text=one.text("description") or None)
        else:
            detail = f"media {short_repr(one.record.get('id'))}"
            fields.note(Notice.IMAGE_WITHOUT_ADDRESS, detail)
