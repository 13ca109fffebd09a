"""Posts of Mastodon: timelines, answers to a search, and what stands around a status."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from echo_hf.collect.fields import Fields, short_repr, text_of_html
from echo_hf.collect.nested_json import deep_loads, shallow_dumps
from echo_hf.collect.sources.base import Finding, Parsed, Post, PostImage, json_documents, register
from echo_hf.collect.sources.x import name_of
from echo_hf.collect.urls import canonical_url
from echo_hf.reasons import Missing, Notice, Reject

LISTS = ("statuses", "ancestors", "descendants")
Json = Mapping[str, Any]


def is_page(document: Any) -> bool:
    """Whether a JSON document holds statuses, and is none itself."""
    is_list = isinstance(document, list)
    return is_list or (
        isinstance(document, dict)
        and "uri" not in document
        and not {*LISTS, "about"}.isdisjoint(document)
    )


def taken_apart(page: Any) -> Iterator[Any]:
    fields = Fields(page if isinstance(page, dict) else {"statuses": page})
    about = Fields(fields.object("about"), fields.findings, "about.")
    around = Fields(fields.object("context"), fields.findings, "context.") if about.record else None
    holder = around or fields
    found = [one for name in LISTS for one in _statuses(holder, name)]
    addresses = {name_of(one.get("id")): address_of(one) for one in found if isinstance(one, dict)}
    addresses[name_of(about.record.get("id"))] = about.text("url")
    for one in found:
        yield _linked(one, addresses, "statuses" not in holder.record)
    yield from _edge(about, holder, addresses)
    if fields.findings:
        yield {"_findings": [finding.detail for finding in fields.findings]}


def address_of(status: Json) -> Any:
    """What a status is called everywhere, or else on its own server."""
    uri = status.get("uri")
    return uri if isinstance(uri, str) and uri.startswith("http") else status.get("url")


def _statuses(holder: Fields, name: str) -> list[Any]:
    given = holder.record.get(name)
    # What is no status is rejected one by one, with its place.
    return given if isinstance(given, list) else [dict(one) for one in holder.objects(name)]


def _linked(status: Any, addresses: Mapping[str | None, Any], included: bool) -> Any:
    if not isinstance(status, dict):
        return status
    answers = name_of(status.get("in_reply_to_id"))
    parent = addresses.get(answers) if answers is not None else None
    return {**status, "_parent": parent, "_included": included}


def _edge(about: Fields, around: Fields, addresses: Mapping[str | None, Any]) -> Iterator[Any]:
    if not about.record:
        return
    if "ancestors" not in around.record:
        yield {"_missing": about.text("url"), "id": about.record.get("id")}
        return
    above = around.objects("ancestors")
    if above:
        parent = addresses.get(name_of(above[-1].get("id")))
        yield {"_edge": about.text("url"), "id": about.record.get("id"), "_parent": parent}


COUNTS = {"likes": "favourites_count", "reposts": "reblogs_count", "replies": "replies_count"}
NOT_COUNTED = ("views", "bookmarks")
CONTENT = frozenset({"content", "text"})


@register("mastodon")
class Mastodon:
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
        if not isinstance(record, dict):
            yield Finding(Reject.NOT_A_POST, f"{short_repr(record)}, expected a status of Mastodon")
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
        return Finding(Reject.NO_URL, f"the address is {short_repr(url)}, expected a status's")
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
        given = f"uri is {short_repr(status.get('uri'))}, url {short_repr(status.get('url'))}"
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
        yield Finding(Notice.HIDDEN_BY_AUTHOR, f"{short_repr(status['visibility'])}: {url}")
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
        pictures=_images(fields),
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
        detail = f"in_reply_to_id {short_repr(answers)}"
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
    # A post of images alone has an empty text, not none.
    return "\n\n".join(parts) if parts else body


def _images(fields: Fields) -> list[PostImage]:
    media = (Fields(one, fields.findings, "media.") for one in fields.objects("media_attachments"))
    images = []
    for one in (each for each in media if each.record.get("type") == "image"):
        address = one.link("url") or one.link("remote_url")
        if address is None:
            detail = f"media {short_repr(one.record.get('id'))}"
            fields.findings.append(Finding(Notice.IMAGE_WITHOUT_ADDRESS, detail))
        else:
            images.append(PostImage(url=address, alt_text=one.text("description") or None))
    return images


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
