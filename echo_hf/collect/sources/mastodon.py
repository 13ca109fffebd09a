"""Posts of Mastodon: timelines, answers to a search, and what stands around a status.

Only public statuses are taken in; of the others the address and the place in the thread are kept.
A text comes as HTML, and what it hides behind a warning is preceded by the warning.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from echo_hf.collect.deep_json import deep_loads, shallow_dumps
from echo_hf.collect.fields import Fields, shown
from echo_hf.collect.html_text import text_of_html
from echo_hf.collect.sources.base import (
    Finding,
    Parsed,
    Picture,
    Post,
    json_documents,
    register,
)
from echo_hf.collect.sources.mastodon_pages import address_of, is_page, taken_apart
from echo_hf.collect.sources.x_pages import name_of
from echo_hf.collect.urls import canonical_url
from echo_hf.reasons import Missing, Notice, Reject

COUNTS = {"likes": "favourites_count", "reposts": "reblogs_count", "replies": "replies_count"}
NOT_COUNTED = ("views", "bookmarks")
CONTENT = frozenset({"content", "text"})
Json = Mapping[str, Any]


@register("mastodon")
class Mastodon:
    """Statuses of Mastodon and of servers that speak as it does."""

    def split(self, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
        """One status a record; what is no JSON stays as it is, to be rejected by name."""
        for place, text in json_documents(lines):
            page = _loaded(text)
            if not is_page(page):
                yield place, text
                continue
            for number, part in enumerate(taken_apart(page)):
                yield f"{place}#{number}", shallow_dumps(part)

    def posts(self, record: Any, keywords: Sequence[str]) -> Iterator[Parsed]:
        """The status of a record, those it quotes, and what was wrong with them."""
        if not isinstance(record, dict):
            yield Finding(Reject.NOT_A_POST, f"{shown(record)}, expected a status of Mastodon")
        elif "_findings" in record:
            for detail in Fields(record).texts("_findings"):
                yield Finding(Notice.BAD_FIELD, detail)
        elif "_missing" in record:
            yield _known(record["_missing"], record, Missing.NOT_FOUND)
        elif "_edge" in record:
            yield _known(record["_edge"], record, Missing.NOT_FETCHED)
        else:
            waiting: deque[tuple[Json, Sequence[str]]] = deque(
                [(record, () if record.get("_included") else keywords)]
            )
            while waiting:  # a quote of a quote of a quote
                status, found = waiting.popleft()
                yield from _read(status, found, waiting)


def _known(url: Any, record: Json, missing: Missing) -> Parsed:
    address = _canonical(url)
    if address is None:
        return Finding(Reject.NO_URL, f"the address is {shown(url)}, expected a status's")
    return Post(
        url=address,
        # Not the number in the address, by which another server may know another post.
        post_id=name_of(record.get("id")),
        platform="mastodon",
        parent_url=_canonical(record.get("_parent")),
        missing=missing,
    )


def _read(
    status: Json, keywords: Sequence[str], waiting: deque[tuple[Json, Sequence[str]]]
) -> Iterator[Parsed]:
    fields = Fields(status)
    url = _canonical(address_of(status))
    is_status = not CONTENT.isdisjoint(status)
    if url is None or not is_status:
        given = f"uri is {shown(status.get('uri'))}, url {shown(status.get('url'))}"
        reason = Reject.NO_URL if is_status else Reject.NOT_A_POST
        yield Finding(reason, f"{given}, expected a status")
        return
    repeated = fields.object("reblog")
    if repeated:
        yield Finding(Reject.REPOST, f"of {_canonical(address_of(repeated))}")
        return
    parent = _parent(fields)
    if status.get("visibility") not in (None, "public"):
        yield _known(url, status, Missing.PROTECTED)
        yield Finding(Notice.HIDDEN_BY_AUTHOR, f"{shown(status['visibility'])}: {url}")
        return
    quoted = Fields(fields.object("quote"), fields.findings, "quote.").object("quoted_status")
    yield Post(
        url=url,
        post_id=name_of(status.get("id")),
        platform="mastodon",
        author=_author(fields),
        text=_text(fields),
        timestamp=fields.moment("created_at"),
        edited=fields.moment("edited_at"),
        lang=fields.text("language"),
        keywords=list(keywords),
        pictures=_pictures(fields),
        parent_url=parent,
        unnamed_parent=parent is None and status.get("in_reply_to_id") is not None,
        quoted_url=_canonical(address_of(quoted)),
        engagement=_engagement(fields),
    )
    if status.get("sensitive") is True:
        fields.findings.append(Finding(Notice.LABELLED, "sensitive"))
    yield from fields.findings
    if quoted:
        waiting.append((quoted, ()))


def _canonical(address: Any) -> str | None:
    return canonical_url(address) if isinstance(address, str) else None


def _parent(fields: Fields) -> str | None:
    parent = _canonical(fields.record.get("_parent"))
    answers = fields.record.get("in_reply_to_id")
    if answers is not None and parent is None:
        detail = f"in_reply_to_id {shown(answers)}"
        fields.findings.append(Finding(Notice.UNNAMED_PARENT, detail))
    return parent


def _author(fields: Fields) -> str | None:
    """A name that no other server gives to somebody else."""
    account = Fields(fields.object("account"), fields.findings, "account.")
    name = account.text("acct") or account.text("username")
    home = _canonical(account.record.get("uri")) or _canonical(account.record.get("url"))
    if name is None or "@" in name or home is None:
        return name
    return f"{name}@{urlsplit(home).netloc}"


def _text(fields: Fields) -> str | None:
    content = fields.text("content")
    body = fields.text("text") if content is None else text_of_html(content)
    warning = (fields.text("spoiler_text") or "").strip()
    parts = [part for part in (warning, body) if part]
    # A post of pictures alone has an empty text, not none.
    return "\n\n".join(parts) if parts else body


def _pictures(fields: Fields) -> list[Picture]:
    media = (Fields(one, fields.findings, "media.") for one in fields.objects("media_attachments"))
    pictures = []
    for one in (each for each in media if each.record.get("type") == "image"):
        address = one.link("url") or one.link("remote_url")
        if address is None:
            detail = f"media {shown(one.record.get('id'))}"
            fields.findings.append(Finding(Notice.PICTURE_WITHOUT_ADDRESS, detail))
        else:
            pictures.append(Picture(url=address, alt_text=one.text("description") or None))
    return pictures


def _engagement(fields: Fields) -> dict[str, int | None] | None:
    if not any(name in fields.record for name in COUNTS.values()):
        return None
    counted = {ours: fields.count(theirs) for ours, theirs in COUNTS.items()}
    return {**counted, **dict.fromkeys(NOT_COUNTED)}


def _loaded(text: str) -> Any:
    try:
        return deep_loads(text)
    except ValueError:
        return None
