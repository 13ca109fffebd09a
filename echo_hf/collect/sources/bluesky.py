"""Posts of Bluesky: pages of a search, lists of posts, and whole reply trees."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from echo_hf.collect.fields import Fields, short_repr
from echo_hf.collect.nested_json import deep_loads, shallow_dumps
from echo_hf.collect.sources.base import Finding, Parsed, Post, PostImage, json_documents, register
from echo_hf.collect.urls import BLUESKY_URI, canonical_url
from echo_hf.reasons import Missing, Notice, Reject

# Lists of images: of up to four, and of a gallery.
LISTS = ("images", "items")
Json = Mapping[str, Any]


def embeds_of(view: Fields, record: Fields) -> list[Json]:
    """What a post embeds, as the platform shows it, else as the author sent it."""
    shown = view.object("embed")
    several = view.objects("embeds")
    return [shown] if shown else several or [one for one in [record.object("embed")] if one]


def images_of(embeds: Sequence[Json], findings: list[Finding]) -> list[PostImage]:
    """The images among what a post embeds; images of links and of videos are none."""
    images = []
    for embed in embeds:
        whole = Fields(embed, findings, "embed.")
        beside = Fields(whole.object("media"), findings, "embed.media.")
        for holder in (whole, beside):
            for one in (image for name in LISTS for image in holder.objects(name)):
                entry = _image(Fields(one, findings, f"{holder.place}images."))
                images += [entry] if entry else []
    return images


def quoted_in(embeds: Sequence[Json], findings: list[Finding]) -> list[Json]:
    """The records that a post embeds: posts it quotes, and lists or feeds it shows."""
    found = []
    for embed in embeds:
        record = Fields(embed, findings, "embed.").object("record")
        # Beside images it is wrapped once more.
        inner = record.get("record") if "uri" not in record else None
        record = inner if isinstance(inner, dict) else record
        found += [record] if record else []
    return found


def _image(image: Fields) -> PostImage | None:
    if image.record.get("fullsize") is None:
        detail = f"described as {image.text('alt')!r}"
        image.findings.append(Finding(Notice.IMAGE_WITHOUT_ADDRESS, detail[:80]))
        return None
    address = image.link("fullsize")
    return PostImage(url=address, alt_text=image.text("alt") or None) if address else None


LINK = "app.bsky.richtext.facet#link"
START = re.compile(r"https?://(?:www\.)?|www\.", re.IGNORECASE)
ELLIPSES = ("...", "…")


@dataclass(frozen=True, slots=True, order=True)
class _Link:
    start: int
    end: int
    address: str


def bluesky_text(record: Fields) -> str | None:
    """A post's text, with each cut link replaced by the address that it stands for."""
    text = record.text("text")
    given = record.record.get("text")
    if text is None or not isinstance(given, str):
        return text
    # Facets count bytes of the text as it was sent, before what no table can hold is taken out.
    left = given.encode("utf-8", "surrogatepass")
    parts: list[bytes] = []
    for link in sorted(_links(record), reverse=True):
        shown = left[link.start : link.end]
        if link.end <= len(left) and _is_cut(shown, link.address):
            parts[:0] = [link.address.encode(), left[link.end :]]
            left = left[: link.start]
    whole = b"".join([left, *parts]).decode("utf-8", "surrogatepass")
    return whole.encode("utf-8", "replace").decode().replace("\x00", "").strip()


def _links(record: Fields) -> Iterator[_Link]:
    for facet in record.objects("facets"):
        fields = Fields(facet, record.findings, "facets.")
        index = Fields(fields.object("index"), record.findings, "facets.index.")
        start, end = index.count("byteStart"), index.count("byteEnd")
        for feature in fields.objects("features"):
            if feature.get("$type") != LINK:
                continue
            address = Fields(feature, record.findings, "facets.").link("uri")
            if start is None or end is None or end <= start:
                record.find(Notice.BAD_FIELD, "facets", facet, "a stretch of bytes")
            elif address is not None:
                yield _Link(start, end, address)


def _is_cut(shown: bytes, address: str) -> bool:
    text = shown.decode("utf-8", "replace").strip()
    stem = next((text.removesuffix(end) for end in ELLIPSES if text.endswith(end)), "")
    begun = START.sub("", stem, count=1) if START.match(stem) else stem
    whole = address[found.end() :] if (found := START.match(address)) else address
    return bool(begun) and whole.startswith(begun)


COUNTS = {
    "likes": "likeCount",
    "views": "viewCount",  # not counted so far
    "reposts": "repostCount",
    "replies": "replyCount",
    "bookmarks": "bookmarkCount",
}
POST = "app.bsky.feed.post"
# What keeps a post from readers who are not signed in, or from all.
HIDING = frozenset({"!no-unauthenticated", "!hide", "!takedown"})
CLOCKS_DIFFER = timedelta(minutes=5)
LANGUAGE = re.compile(r"[a-z]{2,3}(?=-|$)", re.IGNORECASE)


@register("bluesky")
class Bluesky:
    def split(self, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
        """One post a record; what is no JSON stays as it is, to be rejected by name."""
        for place, text in json_documents(lines):
            document = _loaded(text)
            if not isinstance(document, dict) or {"posts", "thread"}.isdisjoint(document):
                yield place, text
                continue
            for number, part in enumerate(_parts(document)):
                yield f"{place}#{number}", shallow_dumps(part)

    def posts(self, record: Any, keywords: Sequence[str]) -> Iterator[Parsed]:
        if not isinstance(record, dict):
            yield Finding(Reject.NOT_A_POST, f"{short_repr(record)}, expected a post of Bluesky")
        elif "_findings" in record:
            for detail in Fields(record).texts("_findings"):
                yield Finding(Notice.BAD_FIELD, detail)
        elif "_missing" in record:
            yield from _gone(Fields(record).object("_missing"), record.get("_above"))
        else:
            found = () if record.get("_included") else keywords
            waiting: deque[tuple[Json, Sequence[str]]] = deque([(record, found)])
            while waiting:  # a quote of a quote of a quote
                post, found = waiting.popleft()
                yield from _read(post, found, waiting)


def _parts(document: Json) -> Iterator[Any]:
    fields = Fields(document)
    if "posts" in document:
        posts = document["posts"]
        yield from posts if isinstance(posts, list) else [posts]
    if "thread" in document:
        yield from _nodes(document["thread"], fields)
    if fields.findings:
        yield {"_findings": [finding.detail for finding in fields.findings]}


def _nodes(thread: Any, fields: Fields) -> Iterator[Any]:
    """The posts of a tree; of those that cannot be shown, why and below what they stand."""
    waiting: deque[tuple[Any, Any, bool]] = deque([(thread, None, False)])
    while waiting:
        node, above, included = waiting.popleft()
        post = node.get("post") if isinstance(node, dict) else None
        if isinstance(post, dict):
            yield {**post, "_above": above, "_included": included}
            if node.get("parent") is not None:
                waiting.append((node["parent"], None, True))
            replies = Fields(node, fields.findings, "thread.").objects("replies")
            waiting.extend((reply, post.get("uri"), True) for reply in replies)
        else:
            yield {"_missing": node, "_above": above} if isinstance(node, dict) else node


def _read(
    view: Json, keywords: Sequence[str], waiting: deque[tuple[Json, Sequence[str]]]
) -> Iterator[Parsed]:
    fields = Fields(view)
    url = _url(view.get("uri"))
    record = Fields(fields.object("record") or fields.object("value"), fields.findings, "record.")
    if url is None or record.record.get("$type", POST) != POST:
        yield _no_post(view, record)
        return
    parent = _parent(fields, record)
    labels = _labels(fields, record)
    if HIDING.intersection(labels):
        yield Post(url=url, platform="bluesky", parent_url=parent, missing=Missing.PROTECTED)
        yield Finding(Notice.HIDDEN_BY_AUTHOR, url)
        return
    embeds = embeds_of(fields, record)
    quotes = [one for one in quoted_in(embeds, fields.findings) if _url(one.get("uri"))]
    yield Post(
        url=url,
        platform="bluesky",
        author=_author(fields, view["uri"]),
        text=bluesky_text(record),
        timestamp=_timestamp(fields, record),
        lang=_language(record),
        keywords=list(keywords),
        pictures=images_of(embeds, fields.findings),
        parent_url=parent,
        quoted_url=_url(quotes[0]["uri"]) if quotes else None,
        engagement=_engagement(fields),
    )
    if labels:
        fields.findings.append(Finding(Notice.LABELLED, short_repr(labels)))
    yield from fields.findings
    for quote in quotes:
        if "value" in quote:
            waiting.append((quote, ()))
        elif not quote.keys() <= {"uri", "cid", "$type"}:  # nothing is known of a reference
            yield from _gone(quote, None)


def _no_post(view: Json, record: Fields) -> Finding:
    uri = view.get("uri")
    if isinstance(uri, str) and uri.startswith("at://"):
        given = f"{short_repr(uri)} of type {short_repr(record.record.get('$type'))}"
        return Finding(Reject.NOT_A_POST, f"{given}, expected a post")
    reason = Reject.NO_URL if record.record else Reject.NOT_A_POST
    return Finding(reason, f"uri is {short_repr(uri)}, expected at://.../{POST}/...")


def _gone(node: Json, above: Any) -> Iterator[Parsed]:
    url = _url(node.get("uri"))
    if url is None:
        given = f"uri is {short_repr(node.get('uri'))}"
        yield Finding(Reject.NO_URL, f"{given} in a post's place, expected a post's")
        return
    yield Post(url=url, platform="bluesky", parent_url=_url(above), missing=_why(node))


def _why(node: Json) -> Missing:
    given = node.get("$type")
    kind = given.lower() if isinstance(given, str) else ""
    if node.get("blocked") or "blocked" in kind:
        return Missing.BLOCKED
    if node.get("notFound") or "notfound" in kind:
        return Missing.NOT_FOUND
    return Missing.NOT_FETCHED


def _url(uri: Any) -> str | None:
    is_post = isinstance(uri, str) and BLUESKY_URI.fullmatch(uri) is not None
    return canonical_url(uri) if is_post else None


def _parent(fields: Fields, record: Fields) -> str | None:
    reply = Fields(record.object("reply"), fields.findings, "record.reply.")
    given = reply.object("parent").get("uri")
    parent = _url(given)
    if given is not None and parent is None:
        reply.find(Notice.BAD_FIELD, "parent.uri", given, "the address of a post")
    return parent or _url(fields.record.get("_above"))


def _author(fields: Fields, uri: str) -> str | None:
    author = Fields(fields.object("author"), fields.findings, "author.")
    found = BLUESKY_URI.fullmatch(uri)
    return author.text("handle") or author.text("did") or (found[1] if found else None)


def _labels(fields: Fields, record: Fields) -> list[str]:
    author = Fields(fields.object("author"), fields.findings, "author.")
    own = Fields(record.object("labels"), fields.findings, "record.labels.")
    given = [*fields.objects("labels"), *author.objects("labels"), *own.objects("values")]
    values = (one.get("val") for one in given if one.get("neg") is not True)
    return sorted({value for value in values if isinstance(value, str)})


def _timestamp(fields: Fields, record: Fields) -> datetime | None:
    """When it was written, as its author says; no later than the platform first saw it."""
    claimed, seen = record.moment("createdAt"), fields.moment("indexedAt")
    if claimed is None or seen is None:
        return claimed or seen
    if claimed - seen > CLOCKS_DIFFER:
        fields.find(Notice.CLAIMED_TIME, "createdAt", claimed.isoformat(), "a time that has been")
    return min(claimed, seen)


def _language(record: Fields) -> str | None:
    first = next(iter(record.texts("langs")), "")
    found = LANGUAGE.match(first)
    return found[0].lower() if found else None


def _engagement(fields: Fields) -> dict[str, int | None] | None:
    if not any(name in fields.record for name in COUNTS.values()):
        return None
    return {ours: fields.count(theirs) for ours, theirs in COUNTS.items()}


def _loaded(text: str) -> Any:
    try:
        return deep_loads(text)
    except ValueError:
        return None
