"""Reddit: its addresses, and its posts in answers of its API, trees of clients, and archives."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from echo_hf.collect.fields import Fields, Json, Pages, plain_text, short_repr
from echo_hf.collect.sources.base import (
    Finding,
    Missing,
    Parsed,
    Post,
    PostImage,
    PostNotice,
    PostReject,
    register,
)
from echo_hf.collect.urls import Site, web_url
from echo_hf.config.collection import SITES

REDDIT_POST = re.compile(
    r"(?:/(?:r|u|user)/[\w.-]+)?/comments/([a-z0-9]{1,13})(?:/[^/]*(?:/([a-z0-9]{1,13}))?)?/?",
    re.ASCII,
)
LISTING = "Listing"
REPLY_KEYS = ("replies", "comments")  # keys that hold a post's replies
INCLUDED_KEY = "_came_along"
FULL_NAME = re.compile(r"(t[13])_([a-z0-9]{1,13})", re.ASCII)
IDENTIFIER = re.compile(r"[a-z0-9]{1,13}", re.ASCII)
IMAGE_ADDRESS = re.compile(r"https?://[^?#]+\.(?:png|jpe?g|webp)(?:[?#].*)?", re.IGNORECASE)
DELETED_TEXTS = frozenset({"[deleted]", "[removed]", "[deleted by user]", "[ Removed by Reddit ]"})
DELETED_AUTHOR = "[deleted]"
FOREIGN_HINTS = ("link", "rich:video", "hosted:video")  # whose previews are images of another page
COUNTS = {"views": "view_count", "reposts": "num_crossposts", "replies": "num_comments"}


def reddit_url(submission: str, comment: str | None = None) -> str:
    comment_path = "" if comment is None else f"/_/{comment}"
    return f"https://www.reddit.com/comments/{submission}{comment_path}"


SITES.register("reddit")(
    Site(
        platform="reddit",
        hosts=("reddit.com", "old.reddit.com", "new.reddit.com", "np.reddit.com"),
        mirrors=("redd.it",),
        post=REDDIT_POST,
        canonical=lambda post: reddit_url(post[1], post[2]),
        account_hosts=r"reddit\.com",
    )
)


@register("reddit")
class RedditSource(Pages):
    expected = (
        "a submission or a comment of Reddit: alone, in a listing, a page of comments, the answer "
        "to a request for more comments, a collection, or a tree that a client library wrote"
    )

    def split_page(self, document: Any) -> list[tuple[str, Any]] | None:
        more_replies, listing = _find_more_replies(document), _find_collection(document)
        if more_replies is not None:
            pending = [(reply, True) for reply in reversed(more_replies)]
        elif listing is not None:
            pending = [(listing, False)]
        elif isinstance(document, list):
            # A page of comments: one listing with the submission, one with its comments.
            is_thread = len(document) > 1 and None not in map(_read_listing, document)
            pending = [(part, is_thread and at > 0) for at, part in enumerate(document)][::-1]
        elif isinstance(document, dict) and (
            document.get("kind") is not None or any(name in document for name in REPLY_KEYS)
        ):
            pending = [(document, False)]
        else:
            return None
        records: list[tuple[str, Any]] = []
        while pending:
            node, included = pending.pop()
            children = _read_listing(node)
            if children is not None:
                pending += [(child, included) for child in reversed(children)]
                continue
            if isinstance(node, dict):
                is_wrapped = "kind" in node and isinstance(node.get("data"), dict)
                data = node["data"] if is_wrapped else node
                replies = (data.get(name) for name in reversed(REPLY_KEYS))
                pending += [(reply, True) for reply in replies if isinstance(reply, list | dict)]
                own_fields = {
                    name: value
                    for name, value in data.items()
                    if name not in REPLY_KEYS or (value and not isinstance(value, list | dict))
                }
                node = {"kind": node["kind"], "data": own_fields} if is_wrapped else own_fields
                node |= {INCLUDED_KEY: True} if included else {}
            records.append((f"#{len(records)}", node))
        return records or None

    def read(self, fields: Fields, keywords: Sequence[str]) -> Iterator[Parsed | Json]:
        given_kind = fields.record.get("kind")
        if "kind" in fields.record and isinstance(fields.record.get("data"), dict):
            fields = Fields(fields.record["data"], fields.findings)
        record, kind = fields.record, given_kind
        if given_kind is None:
            full_name = record.get("name")
            match = FULL_NAME.fullmatch(full_name) if isinstance(full_name, str) else None
            is_comment = "body" in record or "parent_id" in record
            is_submission = "title" in record or "selftext" in record
            kind = match[1] if match else "t1" if is_comment else "t3" if is_submission else None
        if kind == "more":
            count, names = fields.count("count"), fields.texts("children")
            detail = f"{count or len(names)} below {short_repr(fields.text('parent_id'))}"
            yield Finding(PostNotice.REPLIES_NOT_FETCHED, detail)
            yield from fields.findings
        elif kind in ("t1", "t3"):
            post = _make_post(kind, fields, keywords)
            yield post or self.reject(PostReject.NO_URL, record, "id", "link_id")
        else:
            yield self.reject(PostReject.NOT_A_POST, record)


def _find_more_replies(document: Any) -> list[Any] | None:
    """Return the replies in an answer to a request for more comments; null for another document."""
    for name in ("json", "data", "things"):
        document = document.get(name) if isinstance(document, dict) else None
    return document if isinstance(document, list) else None


def _find_collection(document: Any) -> Any:
    """Return the listing of a collection; null for another document."""
    links = document.get("sorted_links") if isinstance(document, dict) else None
    return links if _read_listing(links) is not None else None


def _read_listing(node: Any) -> list[Any] | None:
    """Return what a listing holds; null if it is not one."""
    if isinstance(node, dict) and node.get("kind") == LISTING:
        data = node.get("data")
        node = data.get("children") if isinstance(data, dict) else None
    return node if isinstance(node, list) else None


def _make_post(kind: str, fields: Fields, keywords: Sequence[str]) -> Post | None:
    record, is_comment = fields.record, kind == "t1"
    identifier = fields.text("id") or (fields.text("name") or "").rpartition("_")[2]
    link = FULL_NAME.fullmatch(fields.text("link_id") or "") if is_comment else None
    submission = link[2] if link else "" if is_comment else identifier
    if not submission or not IDENTIFIER.fullmatch(identifier):
        return None
    texts = (record.get("body"), record.get("selftext"), record.get("title"))
    is_deleted = record.get("removed_by_category") is not None or any(
        isinstance(text, str) and text in DELETED_TEXTS for text in texts
    )
    author = fields.text("author")
    return Post(
        url=reddit_url(submission, identifier if is_comment else None),
        platform="reddit",
        author=None if is_deleted or author == DELETED_AUTHOR else author,
        text=None if is_deleted else _read_text(is_comment, fields),
        timestamp=fields.moment("created_utc"),
        # False without an edit, true if the time of the edit is not known.
        edited=None if isinstance(record.get("edited"), bool) else fields.moment("edited"),
        keywords=keywords,
        pictures=[] if is_deleted else _read_images(fields),
        parent_url=_read_url(fields, "parent_id", submission) if is_comment else None,
        quoted_url=_read_url(fields, "crosspost_parent", None),
        engagement=None if is_comment else fields.engagement(COUNTS),
        missing=Missing.DELETED if is_deleted else None,
    )


def _read_url(fields: Fields, name: str, submission: str | None) -> str | None:
    """Return the address of a post by its full name; of a comment, if its submission is known."""
    full_name = fields.text(name)
    match = FULL_NAME.fullmatch(full_name or "")
    if match and match[1] == "t3":
        return reddit_url(match[2])
    if match and submission:
        return reddit_url(submission, match[2])
    if full_name is not None:
        fields.note_bad(name, full_name, "the full name of a thing")
    return None


def _read_text(is_comment: bool, fields: Fields) -> str | None:
    html_texts = (fields.record.get(name) for name in ("body_html", "selftext_html"))
    is_raw = any(isinstance(text, str) and text.startswith("<") for text in html_texts)

    def read_plain(name: str) -> str | None:
        # Reddit escapes `<`, `>` and `&` unless it was asked for `raw_json`.
        text = fields.text(name)
        if text is None:
            return None
        return text.strip() if is_raw else plain_text(text, {})

    if is_comment:
        return read_plain("body")
    link = _read_outside_url(fields)
    is_own = fields.record.get("is_self") or fields.record.get("is_gallery")
    if is_own or IMAGE_ADDRESS.fullmatch(link) or "reddit.com/" in link:
        link = ""  # no outside page: the submission is about an image or itself
    return "\n\n".join(filter(None, [read_plain("title"), read_plain("selftext"), link])) or None


def _read_outside_url(fields: Fields) -> str:
    address = fields.text("url_overridden_by_dest") or fields.text("url") or ""
    return address.replace("&amp;", "&")


def _read_images(fields: Fields) -> list[PostImage]:
    metadata, address = fields.part("media_metadata"), _read_outside_url(fields)
    items = fields.part("gallery_data").parts("items")
    captions = [(part.text("media_id") or "", part.text("caption")) for part in items]
    if captions := captions or [(name, None) for name in metadata.record]:
        images = (_read_media(name, caption, metadata) for name, caption in captions)
        return [image for image in images if image]
    if IMAGE_ADDRESS.fullmatch(address):
        links = [web_url(address)]
    elif fields.record.get("post_hint") in FOREIGN_HINTS:
        links = []
    else:
        previews = fields.part("preview").parts("images")
        links = [preview.part("source").link("url") for preview in previews]
    return [PostImage(url=link) for link in links if link]


def _read_media(name: str, caption: str | None, metadata: Fields) -> PostImage | None:
    media = metadata.part(name)
    if media.record.get("e") not in (None, "Image"):
        return None  # videos and animations
    url = media.part("s").link("u")
    if url is None:
        metadata.note(PostNotice.IMAGE_WITHOUT_ADDRESS, short_repr(name))
    return PostImage(url=url, alt_text=caption or None) if url or caption else None
