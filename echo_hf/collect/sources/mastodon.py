"""Posts of Mastodon: timelines, answers to a search, and what stands around a status."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from echo_hf.collect.fields import Fields, Json, Pages, name_of, short_repr, text_of_html
from echo_hf.collect.sources.base import Finding, Parsed, Post, PostImage, register
from echo_hf.collect.urls import canonical_url
from echo_hf.reasons import Missing, Notice, Reject

LISTS = ("statuses", "ancestors", "descendants")
COUNTS = {"likes": "favourites_count", "reposts": "reblogs_count", "replies": "replies_count"}
CONTENT = frozenset({"content", "text"})


@register("mastodon")
class Mastodon(Pages):
    expected = "a status of Mastodon, with its address"

    def parts(self, document: Any) -> Iterator[tuple[str, Any]] | None:
        if isinstance(document, list):
            document = {"statuses": document}
        is_page = isinstance(document, dict) and "uri" not in document
        found = is_page and not {*LISTS, "about"}.isdisjoint(document)
        return ((f"#{at}", one) for at, one in enumerate(_records(document))) if found else None

    def read(self, fields: Fields, keywords: Sequence[str]) -> Iterator[Parsed | Json]:
        status = fields.record
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
        if status.get("visibility") not in (None, "public"):
            fields.findings.clear()  # what they show is of its content
            yield _without_content(url, status, Missing.PROTECTED)
            yield Finding(Notice.HIDDEN_BY_AUTHOR, f"{short_repr(status['visibility'])}: {url}")
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
