"""Posts of Reddit: answers of its API, trees that its client libraries wrote, archives' lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from echo_hf.collect.fields import Fields, Json, Pages, plain_text, short_repr
from echo_hf.collect.sources.base import Finding, Parsed, Post, PostImage, register
from echo_hf.collect.urls import reddit_url, web_url
from echo_hf.reasons import Missing, Notice, Reject

LISTING = "Listing"
BELOW = ("replies", "comments")  # where a thing holds its replies
BESIDE = "_came_along"
NAME = re.compile(r"(t[13])_([a-z0-9]{1,13})", re.ASCII)
IDENTIFIER = re.compile(r"[a-z0-9]{1,13}", re.ASCII)
IMAGE_ADDRESS = re.compile(r"https?://[^?#]+\.(?:png|jpe?g|webp)(?:[?#].*)?", re.IGNORECASE)
GONE = frozenset({"[deleted]", "[removed]", "[deleted by user]", "[ Removed by Reddit ]"})
NOBODY = "[deleted]"
ELSEWHERE = ("link", "rich:video", "hosted:video")  # previews that are not of the post itself
COUNTS = {"views": "view_count", "reposts": "num_crossposts", "replies": "num_comments"}


@register("reddit")
class Reddit(Pages):
    expected = (
        "a submission or a comment of Reddit: alone, in a listing, a page of comments, the answer "
        "to a request for more comments, a collection, or a tree that a client library wrote"
    )

    def parts(self, document: Any) -> list[tuple[str, Any]] | None:
        more, listing = _things(document), _sorted_links(document)
        if more is not None:
            waiting = [(one, True) for one in reversed(more)]
        elif listing is not None:
            waiting = [(listing, False)]
        elif isinstance(document, list):
            # A page of comments: a listing with the submission, and one with what is below it.
            pages = len(document) > 1 and all(_listed(one) is not None for one in document)
            waiting = [(one, pages and at > 0) for at, one in enumerate(document)][::-1]
        else:
            is_page = isinstance(document, dict) and (
                document.get("kind") is not None or any(name in document for name in BELOW)
            )
            waiting = [(document, False)] * is_page
        found: list[tuple[str, Any]] = []
        while waiting:
            thing, came_along = waiting.pop()
            inner = _listed(thing)
            if inner is not None:
                waiting += [(one, came_along) for one in reversed(inner)]
                continue
            if isinstance(thing, dict):
                is_wrapped = "kind" in thing and isinstance(thing.get("data"), dict)
                data = thing["data"] if is_wrapped else thing
                below = [data[name] for name in BELOW if isinstance(data.get(name), list | dict)]
                waiting += [(one, True) for one in reversed(below)]
                alone = {
                    name: value
                    for name, value in data.items()
                    if name not in BELOW or (value and not isinstance(value, list | dict))
                }
                thing = {"kind": thing["kind"], "data": alone} if is_wrapped else alone
                thing |= {BESIDE: True} if came_along else {}
            found.append((f"#{len(found)}", thing))
        return found or None

    def read(self, fields: Fields, keywords: Sequence[str]) -> Iterator[Parsed | Json]:
        given = fields.record.get("kind")
        if "kind" in fields.record and isinstance(fields.record.get("data"), dict):
            fields = Fields(fields.record["data"], fields.findings)
        record, kind = fields.record, given
        if given is None:
            named = record.get("name")
            found = NAME.fullmatch(named) if isinstance(named, str) else None
            is_comment = "body" in record or "parent_id" in record
            is_submission = "title" in record or "selftext" in record
            kind = found[1] if found else "t1" if is_comment else "t3" if is_submission else None
        if kind == "more":
            count, names = fields.count("count"), fields.texts("children")
            below = f"{count or len(names)} below {short_repr(fields.text('parent_id'))}"
            yield Finding(Notice.REPLIES_NOT_FETCHED, below)
            yield from fields.findings
        elif kind in ("t1", "t3"):
            post = _post(kind, fields, keywords)
            yield post or self.refused(Reject.NO_URL, record, "id", "link_id")
        else:
            yield self.refused(Reject.NOT_A_POST, record)


def _things(document: Any) -> list[Any] | None:
    """The replies in an answer to a request for more comments, null for another document."""
    for name in ("json", "data", "things"):
        document = document.get(name) if isinstance(document, dict) else None
    return document if isinstance(document, list) else None


def _sorted_links(document: Any) -> Any:
    """The listing of a collection, null for another document."""
    links = document.get("sorted_links") if isinstance(document, dict) else None
    return links if _listed(links) is not None else None


def _listed(thing: Any) -> list[Any] | None:
    """What a listing holds; null when it is none."""
    if isinstance(thing, dict) and thing.get("kind") == LISTING:
        data = thing.get("data")
        thing = data.get("children") if isinstance(data, dict) else None
    return thing if isinstance(thing, list) else None


def _post(kind: str, fields: Fields, keywords: Sequence[str]) -> Post | None:
    record, is_comment = fields.record, kind == "t1"
    own = fields.text("id") or (fields.text("name") or "").rpartition("_")[2]
    link = NAME.fullmatch(fields.text("link_id") or "") if is_comment else None
    submission = link[2] if link else "" if is_comment else own
    if not submission or not IDENTIFIER.fullmatch(own):
        return None
    said_of_it = (record.get("body"), record.get("selftext"), record.get("title"))
    gone = record.get("removed_by_category") is not None or any(
        isinstance(one, str) and one in GONE for one in said_of_it
    )
    author = fields.text("author")
    return Post(
        url=reddit_url(submission, own if is_comment else None),
        platform="reddit",
        author=None if gone or author == NOBODY else author,
        text=None if gone else _text(is_comment, fields),
        timestamp=fields.moment("created_utc"),
        # Without an edit it is false; true where the moment is no longer known.
        edited=None if isinstance(record.get("edited"), bool) else fields.moment("edited"),
        keywords=keywords,
        pictures=[] if gone else _images(fields),
        parent_url=_named(fields, "parent_id", submission) if is_comment else None,
        quoted_url=_named(fields, "crosspost_parent", None),
        engagement=None if is_comment else fields.engagement(COUNTS),
        missing=Missing.DELETED if gone else None,
    )


def _named(fields: Fields, name: str, submission: str | None) -> str | None:
    """The address of a thing by its full name; of a comment, where its submission is known."""
    given = fields.text(name)
    named = NAME.fullmatch(given or "")
    if named and named[1] == "t3":
        return reddit_url(named[2])
    if named and submission:
        return reddit_url(submission, named[2])
    if given is not None:
        fields.bad(name, given, "the full name of a thing")
    return None


def _text(is_comment: bool, fields: Fields) -> str | None:
    written = (fields.record.get(one) for one in ("body_html", "selftext_html"))
    is_raw = any(isinstance(one, str) and one.startswith("<") for one in written)

    def plain(name: str) -> str | None:
        # Only who asks for `raw_json` gets signs of markup as they were typed.
        text = fields.text(name)
        return text if text is None else text.strip() if is_raw else plain_text(text, {})

    if is_comment:
        return plain("body")
    page = _outside(fields)
    own = fields.record.get("is_self") or fields.record.get("is_gallery")
    if own or IMAGE_ADDRESS.fullmatch(page) or "reddit.com/" in page:
        page = ""  # what the submission is about is an image, or its own
    return "\n\n".join(filter(None, [plain("title"), plain("selftext"), page])) or None


def _outside(fields: Fields) -> str:
    address = fields.text("url_overridden_by_dest") or fields.text("url") or ""
    return address.replace("&amp;", "&")


def _images(fields: Fields) -> list[PostImage]:
    described, address = fields.part("media_metadata"), _outside(fields)
    items = fields.part("gallery_data").parts("items")
    wanted = [(one.text("media_id") or "", one.text("caption")) for one in items]
    if wanted := wanted or [(name, None) for name in described.record]:
        return [one for name, said in wanted if (one := _described(name, said, described))]
    if IMAGE_ADDRESS.fullmatch(address):
        links = [web_url(address)]
    elif fields.record.get("post_hint") in ELSEWHERE:
        links = []
    else:
        shown = fields.part("preview").parts("images")
        links = [one.part("source").link("url") for one in shown]
    return [PostImage(url=link) for link in links if link]


def _described(name: str, caption: str | None, described: Fields) -> PostImage | None:
    media = described.part(name)
    if media.record.get("e") not in (None, "Image"):
        return None  # videos and animations
    url = media.part("s").link("u")
    if url is None:
        described.note(Notice.IMAGE_WITHOUT_ADDRESS, short_repr(name))
    return PostImage(url=url, alt_text=caption or None) if url or caption else None
