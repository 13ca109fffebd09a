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
IMAGE_LISTS = ("images", "items")
COUNTS = {
    "likes": "likeCount",
    "views": "viewCount",  # not counted so far
    "reposts": "repostCount",
    "replies": "replyCount",
    "bookmarks": "bookmarkCount",
}
POST_TYPE = "app.bsky.feed.post"
# Labels that hide a post from readers who are not signed in, or from all.
HIDING_LABELS = frozenset({"!no-unauthenticated", "!hide", "!takedown"})
CLOCK_TOLERANCE = timedelta(minutes=5)
LANGUAGE = re.compile(r"[a-z]{2,3}(?=-|$)", re.IGNORECASE)
BARE_KEYS = frozenset({"uri", "cid", "$type"})


@register("bluesky")
class BlueskySource(Pages):
    expected = f"a post of Bluesky, at://.../{POST_TYPE}/..."

    def split_page(self, document: Any) -> Iterator[tuple[str, Any]] | None:
        is_page = isinstance(document, dict) and not {"posts", "thread"}.isdisjoint(document)
        return ((f"#{at}", row) for at, row in enumerate(_split(document))) if is_page else None

    def read(self, fields: Fields, keywords: Sequence[str]) -> Iterator[Parsed | Json]:
        view = fields.record
        if "_missing" in view:
            yield self._make_missing(fields.part("_missing").record, view.get("_above"))
            return
        url, uri = _post_url(view.get("uri")), view.get("uri")
        record = fields.part("record" if view.get("record") else "value")
        if url is None or record.record.get("$type", POST_TYPE) != POST_TYPE:
            is_other = isinstance(uri, str) and uri.startswith("at://")
            reason = Reject.NO_URL if record.record and not is_other else Reject.NOT_A_POST
            yield self.reject(reason, {**record.record, "uri": uri}, "uri", "$type")
            return
        parent_uri = record.part("reply").part("parent").record.get("uri")
        parent = _post_url(parent_uri)
        if parent_uri is not None and parent is None:
            record.note_bad("reply.parent.uri", parent_uri, "the address of a post")
        parent = parent or _post_url(view.get("_above"))
        author = fields.part("author")
        parts = fields.parts("labels") + author.parts("labels")
        parts += record.part("labels").parts("values")
        values = (label.record.get("val") for label in parts if label.record.get("neg") is not True)
        labels = sorted({value for value in values if isinstance(value, str)})
        if HIDING_LABELS.intersection(labels):
            fields.findings.clear()  # they would reveal the content
            yield Post(url=url, platform="bluesky", parent_url=parent, missing=Missing.PROTECTED)
            yield Finding(Notice.HIDDEN_BY_AUTHOR, url)
            return
        embed, several = fields.part("embed"), fields.parts("embeds")
        sent = record.part("embed")  # the author's own embed, if the platform shows none
        embeds = several or ([sent] if sent.record else [])
        if embed.record:
            embeds = [embed]
        quotes = [quote for quote in map(_read_quoted, embeds) if _post_url(quote.get("uri"))]
        match, languages = BLUESKY_URI.fullmatch(str(uri)), record.texts("langs")
        lang = LANGUAGE.match(languages[0]) if languages else None
        yield Post(
            url=url,
            platform="bluesky",
            author=author.text("handle") or author.text("did") or (match[1] if match else None),
            text=record.text("text"),
            timestamp=_read_time(fields, record),
            lang=lang[0].lower() if lang else None,
            keywords=keywords,
            pictures=list(_read_images(embeds)),
            parent_url=parent,
            quoted_url=_post_url(quotes[0]["uri"]) if quotes else None,
            engagement=fields.engagement(COUNTS),
        )
        if labels:
            fields.note(Notice.LABELLED, short_repr(labels))
        for quote in quotes:
            if "value" in quote:
                yield quote
            elif not quote.keys() <= BARE_KEYS:  # a bare reference says nothing about the post
                yield self._make_missing(quote, None)

    def _make_missing(self, node: Json, parent_uri: Any) -> Parsed:
        url, kind = _post_url(node.get("uri")), str(node.get("$type")).lower()
        if url is None:
            return self.reject(Reject.NO_URL, node, "uri")
        missing = Missing.NOT_FETCHED
        if node.get("blocked") or "blocked" in kind:
            missing = Missing.BLOCKED
        elif node.get("notFound") or "notfound" in kind:
            missing = Missing.NOT_FOUND
        return Post(url=url, platform="bluesky", parent_url=_post_url(parent_uri), missing=missing)


def _split(document: Json) -> Iterator[Any]:
    """Yield the posts of a list and of a tree; for posts not shown, why and their parent."""
    fields = Fields(document)
    if "posts" in document:
        posts = document["posts"]
        yield from posts if isinstance(posts, list) else [posts]
    pending: deque[tuple[Any, Any, bool]] = deque()
    if "thread" in document:
        pending.append((document["thread"], None, False))
    while pending:
        node, parent_uri, included = pending.popleft()
        post = node.get("post") if isinstance(node, dict) else None
        if isinstance(post, dict):
            yield {**post, "_above": parent_uri, "_included": included}
            if node.get("parent") is not None:
                pending.append((node["parent"], None, True))
            replies = Fields(node, fields.findings, "thread.").parts("replies")
            pending.extend((reply.record, post.get("uri"), True) for reply in replies)
        else:
            yield {"_missing": node, "_above": parent_uri} if isinstance(node, dict) else node
    if fields.findings:
        yield {"_findings": [finding.detail for finding in fields.findings]}


def _post_url(uri: Any) -> str | None:
    is_post = isinstance(uri, str) and BLUESKY_URI.fullmatch(uri) is not None
    return canonical_url(uri) if is_post else None


def _read_quoted(embed: Fields) -> Json:
    """Return the record that a post embeds: a quoted post, or a list or feed that it shows."""
    record = embed.part("record").record
    # In a post with images the record is wrapped once more.
    inner = record.get("record") if "uri" not in record else None
    return inner if isinstance(inner, dict) else record


def _read_images(embeds: Sequence[Fields]) -> Iterator[PostImage]:
    """Yield the images that a post embeds, without previews of links and videos."""
    holders = [holder for embed in embeds for holder in (embed, embed.part("media"))]
    images = (part for holder in holders for name in IMAGE_LISTS for part in holder.parts(name))
    for image in images:
        if image.record.get("fullsize") is None:
            image.note(Notice.IMAGE_WITHOUT_ADDRESS, f"described as {image.text('alt')!r}"[:80])
        elif address := image.link("fullsize"):
            yield PostImage(url=address, alt_text=image.text("alt") or None)


def _read_time(fields: Fields, record: Fields) -> datetime | None:
    """Return when a post was written by its author's clock, but not after it was seen."""
    claimed, indexed = record.moment("createdAt"), fields.moment("indexedAt")
    if claimed is None or indexed is None:
        return claimed or indexed
    if claimed - indexed > CLOCK_TOLERANCE:
        expected = "a time that has been"
        fields.note_bad("createdAt", claimed.isoformat(), expected, Notice.CLAIMED_TIME)
    return min(claimed, indexed)
