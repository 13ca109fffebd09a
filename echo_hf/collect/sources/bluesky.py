"""Posts of Bluesky: pages of a search, lists of posts, and whole reply trees."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from echo_hf.collect.fields import Fields, Json, Pages, short_repr
from echo_hf.collect.sources.base import Finding, Parsed, Post, PostImage, register
from echo_hf.collect.urls import BLUESKY_URI, canonical_url
from echo_hf.reasons import Missing, Notice, Reject

# Lists of images: of up to four, and of a gallery.
LISTS = ("images", "items")
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
REFERENCE = frozenset({"uri", "cid", "$type"})


@register("bluesky")
class Bluesky(Pages):
    expected = f"a post of Bluesky, at://.../{POST}/..."

    def parts(self, document: Any) -> Iterator[tuple[str, Any]] | None:
        is_page = isinstance(document, dict) and not {"posts", "thread"}.isdisjoint(document)
        return ((f"#{at}", one) for at, one in enumerate(_records(document))) if is_page else None

    def read(self, fields: Fields, keywords: Sequence[str]) -> Iterator[Parsed | Json]:
        view = fields.record
        if "_missing" in view:
            yield self._gone(fields.part("_missing").record, view.get("_above"))
            return
        url, uri = _url(view.get("uri")), view.get("uri")
        record = fields.part("record" if view.get("record") else "value")
        if url is None or record.record.get("$type", POST) != POST:
            is_other = isinstance(uri, str) and uri.startswith("at://")
            reason = Reject.NO_URL if record.record and not is_other else Reject.NOT_A_POST
            yield self.refused(reason, {**record.record, "uri": uri}, "uri", "$type")
            return
        above = record.part("reply").part("parent").record.get("uri")
        parent = _url(above)
        if above is not None and parent is None:
            record.bad("reply.parent.uri", above, "the address of a post")
        parent = parent or _url(view.get("_above"))
        author = fields.part("author")
        said = fields.parts("labels") + author.parts("labels")
        said += record.part("labels").parts("values")
        values = (one.record.get("val") for one in said if one.record.get("neg") is not True)
        labels = sorted({value for value in values if isinstance(value, str)})
        if HIDING.intersection(labels):
            fields.findings.clear()  # what they show is of its content
            yield Post(url=url, platform="bluesky", parent_url=parent, missing=Missing.PROTECTED)
            yield Finding(Notice.HIDDEN_BY_AUTHOR, url)
            return
        shown, several = fields.part("embed"), fields.parts("embeds")
        sent = record.part("embed")  # as the author sent it, where the platform shows nothing
        embeds = [shown] if shown.record else several or ([sent] if sent.record else [])
        quotes = [one for embed in embeds if _url((one := _quoted(embed)).get("uri"))]
        found, language = BLUESKY_URI.fullmatch(str(uri)), record.texts("langs")
        known = LANGUAGE.match(language[0]) if language else None
        yield Post(
            url=url,
            platform="bluesky",
            author=author.text("handle") or author.text("did") or (found[1] if found else None),
            text=record.text("text"),
            timestamp=_timestamp(fields, record),
            lang=known[0].lower() if known else None,
            keywords=keywords,
            pictures=list(_images(embeds)),
            parent_url=parent,
            quoted_url=_url(quotes[0]["uri"]) if quotes else None,
            engagement=fields.engagement(COUNTS),
        )
        if labels:
            fields.note(Notice.LABELLED, short_repr(labels))
        for quote in quotes:
            if "value" in quote:
                yield quote
            elif not quote.keys() <= REFERENCE:  # nothing is known of a reference
                yield self._gone(quote, None)

    def _gone(self, node: Json, above: Any) -> Parsed:
        url, kind = _url(node.get("uri")), str(node.get("$type")).lower()
        if url is None:
            return self.refused(Reject.NO_URL, node, "uri")
        why = Missing.NOT_FETCHED
        if node.get("blocked") or "blocked" in kind:
            why = Missing.BLOCKED
        elif node.get("notFound") or "notfound" in kind:
            why = Missing.NOT_FOUND
        return Post(url=url, platform="bluesky", parent_url=_url(above), missing=why)


def _records(document: Json) -> Iterator[Any]:
    """The posts of a list and of a tree; of those not shown, why and below what they stand."""
    fields = Fields(document)
    if "posts" in document:
        posts = document["posts"]
        yield from posts if isinstance(posts, list) else [posts]
    waiting: deque[tuple[Any, Any, bool]] = deque()
    if "thread" in document:
        waiting.append((document["thread"], None, False))
    while waiting:
        node, above, included = waiting.popleft()
        post = node.get("post") if isinstance(node, dict) else None
        if isinstance(post, dict):
            yield {**post, "_above": above, "_included": included}
            if node.get("parent") is not None:
                waiting.append((node["parent"], None, True))
            replies = Fields(node, fields.findings, "thread.").parts("replies")
            waiting.extend((reply.record, post.get("uri"), True) for reply in replies)
        else:
            yield {"_missing": node, "_above": above} if isinstance(node, dict) else node
    if fields.findings:
        yield {"_findings": [finding.detail for finding in fields.findings]}


def _url(uri: Any) -> str | None:
    is_post = isinstance(uri, str) and BLUESKY_URI.fullmatch(uri) is not None
    return canonical_url(uri) if is_post else None


def _quoted(embed: Fields) -> Json:
    """The record that a post embeds: a post it quotes, or a list or feed it shows."""
    record = embed.part("record").record
    # Beside images it is wrapped once more.
    inner = record.get("record") if "uri" not in record else None
    return inner if isinstance(inner, dict) else record


def _images(embeds: Sequence[Fields]) -> Iterator[PostImage]:
    """The images among what a post embeds; images of links and of videos are none."""
    holders = [holder for embed in embeds for holder in (embed, embed.part("media"))]
    for image in (one for holder in holders for name in LISTS for one in holder.parts(name)):
        if image.record.get("fullsize") is None:
            image.note(Notice.IMAGE_WITHOUT_ADDRESS, f"described as {image.text('alt')!r}"[:80])
        elif address := image.link("fullsize"):
            yield PostImage(url=address, alt_text=image.text("alt") or None)


def _timestamp(fields: Fields, record: Fields) -> datetime | None:
    """When it was written, as its author says; no later than the platform first saw it."""
    claimed, seen = record.moment("createdAt"), fields.moment("indexedAt")
    if claimed is None or seen is None:
        return claimed or seen
    if claimed - seen > CLOCKS_DIFFER:
        expected = "a time that has been"
        fields.bad("createdAt", claimed.isoformat(), expected, Notice.CLAIMED_TIME)
    return min(claimed, seen)
