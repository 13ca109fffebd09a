"""Posts of Reddit: answers of its API, trees that its client libraries wrote, archives' lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from echo_hf.collect.fields import Fields, short_repr
from echo_hf.collect.nested_json import taken_apart
from echo_hf.collect.sources.base import Finding, Parsed, Post, PostImage, register
from echo_hf.collect.urls import canonical_url, reddit_url
from echo_hf.reasons import Missing, Notice, Reject

Json = Mapping[str, Any]

LISTING = "Listing"
BELOW = ("replies", "comments")  # where a thing holds its replies
BESIDE = "_came_along"


def things(document: Any) -> Iterator[tuple[str, Any]]:
    waiting = _in_turn(document) if _holds_things(document) else []
    number = 0
    while waiting:
        thing, came_along = waiting.pop()
        inner = _listed(thing)
        if inner is not None:
            waiting += [(one, came_along) for one in reversed(inner)]
            continue
        alone, below = _apart(thing)
        yield f"#{number}", {**alone, BESIDE: True} if came_along and alone is not thing else alone
        number += 1
        waiting += [(one, True) for one in reversed(below)]


def _holds_things(document: Any) -> bool:
    if isinstance(document, list):
        return True
    if not isinstance(document, dict):
        return False
    return document.get("kind") is not None or any(name in document for name in BELOW)


def _in_turn(document: Any) -> list[tuple[Any, bool]]:
    if not isinstance(document, list):
        return [(document, False)]
    # A page of comments: a listing with the submission, and one with what is below it.
    pages = len(document) > 1 and all(_listed(one) is not None for one in document)
    return [(one, pages and at > 0) for at, one in reversed(list(enumerate(document)))]


def _listed(thing: Any) -> list[Any] | None:
    """What a listing holds; null when it is none."""
    if isinstance(thing, list):
        return thing
    if not isinstance(thing, dict) or thing.get("kind") != LISTING:
        return None
    data = thing.get("data")
    children = data.get("children") if isinstance(data, dict) else None
    return children if isinstance(children, list) else None


def _apart(thing: Any) -> tuple[Any, list[Any]]:
    if not isinstance(thing, dict):
        return thing, []
    data = thing.get("data")
    if "kind" in thing and isinstance(data, dict):
        alone, below = _without_replies(data)
        return {"kind": thing["kind"], "data": alone}, below
    return _without_replies(thing)


def _without_replies(data: Json) -> tuple[dict[str, Any], list[Any]]:
    below = [data[name] for name in BELOW if isinstance(data.get(name), list | dict)]
    taken = {
        name for name in BELOW if isinstance(data.get(name), list | dict) or not data.get(name)
    }
    return {name: value for name, value in data.items() if name not in taken}, below


NAME = re.compile(r"(t[13])_([a-z0-9]{1,13})", re.ASCII)
IDENTIFIER = re.compile(r"[a-z0-9]{1,13}", re.ASCII)
IMAGE_ADDRESS = re.compile(r"https?://[^?#]+\.(?:png|jpe?g|webp)(?:[?#].*)?", re.IGNORECASE)
GONE = frozenset({"[deleted]", "[removed]", "[deleted by user]", "[ Removed by Reddit ]"})
NOBODY = "[deleted]"
ELSEWHERE = ("link", "rich:video", "hosted:video")  # previews that are not of the post itself
COUNTS = {"views": "view_count", "reposts": "num_crossposts", "replies": "num_comments"}


@register("reddit")
class Reddit:
    def split(self, lines: Iterable[str]) -> Iterator[tuple[str, str]]:
        return taken_apart(lines, things)

    def posts(self, record: Any, keywords: Sequence[str]) -> Iterator[Parsed]:
        if not isinstance(record, dict):
            yield Finding(Reject.NOT_A_POST, f"{short_repr(record)}, expected a thing of Reddit")
            return
        inner = record.get("data")
        data = inner if "kind" in record and isinstance(inner, dict) else record
        kind = _kind(record.get("kind"), data)
        found = [] if record.get(BESIDE) else list(keywords)
        if kind == "more":
            yield from _more(Fields(data))
        elif kind in ("t1", "t3"):
            yield from _read(kind, Fields(data), found)
        else:
            given = f"kind is {short_repr(record.get('kind'))}, keys are {short_repr(sorted(data))}"
            yield Finding(Reject.NOT_A_POST, f"{given}, expected a submission or a comment")


def _kind(given: Any, data: Json) -> str | None:
    if given is not None:
        return given if isinstance(given, str) else None
    named = NAME.fullmatch(data["name"]) if isinstance(data.get("name"), str) else None
    if named:
        return named[1]
    if "body" in data or "parent_id" in data:
        return "t1"
    return "t3" if "title" in data or "selftext" in data else None


def _read(kind: str, fields: Fields, keywords: list[str]) -> Iterator[Parsed]:
    submission, own = _identifiers(kind, fields)
    url = _address(kind, submission, own, fields)
    if url is None:
        given = f"id is {short_repr(fields.record.get('id'))}, link_id "
        given += f"{short_repr(fields.record.get('link_id'))}, permalink "
        given += short_repr(fields.record.get("permalink"))
        yield Finding(Reject.NO_URL, f"{given}, expected identifiers of Reddit")
        return
    gone = _is_gone(fields)
    author = fields.text("author")
    yield Post(
        url=url,
        platform="reddit",
        author=None if gone or author == NOBODY else author,
        text=None if gone else _text(kind, fields),
        timestamp=_created(fields),
        # Without an edit it is false; true where the moment is no longer known.
        edited=None if isinstance(fields.record.get("edited"), bool) else fields.moment("edited"),
        keywords=keywords,
        pictures=[] if gone else _images(fields),
        parent_url=_parent(submission, fields) if kind == "t1" else None,
        quoted_url=_named(fields, "crosspost_parent"),
        engagement=_engagement(fields) if kind == "t3" else None,
        missing=Missing.DELETED if gone else None,
    )
    for name in BELOW:
        if name in fields.record:
            fields.find(Notice.BAD_FIELD, name, fields.record[name], "a listing or a list")
    yield from fields.findings


def _identifiers(kind: str, fields: Fields) -> tuple[str | None, str | None]:
    """Of the submission, and of the thing itself."""
    own = fields.text("id") or (fields.text("name") or "").rpartition("_")[2]
    own = own if IDENTIFIER.fullmatch(own) else ""
    link = NAME.fullmatch(fields.text("link_id") or "") if kind == "t1" else None
    return (own or None, own or None) if kind == "t3" else (link and link[2], own or None)


def _address(kind: str, submission: str | None, own: str | None, fields: Fields) -> str | None:
    if submission and own:
        return reddit_url(submission, own if kind == "t1" else None)
    path = fields.text("permalink") or ""
    return canonical_url(f"https://www.reddit.com{path}") if "/comments/" in path else None


def _parent(submission: str | None, fields: Fields) -> str | None:
    given = fields.text("parent_id")
    named = NAME.fullmatch(given or "")
    if named and named[1] == "t3":
        return reddit_url(named[2])
    if named and submission:
        return reddit_url(submission, named[2])
    if given is not None:
        fields.find(Notice.BAD_FIELD, "parent_id", given, "the full name of a thing")
    return None


def _named(fields: Fields, name: str) -> str | None:
    given = fields.text(name)
    named = NAME.fullmatch(given or "")
    if given is not None and (named is None or named[1] != "t3"):
        fields.find(Notice.BAD_FIELD, name, given, "the full name of a submission")
    return reddit_url(named[2]) if named and named[1] == "t3" else None


def _is_gone(fields: Fields) -> bool:
    said = fields.record.get("body"), fields.record.get("selftext"), fields.record.get("title")
    by = fields.record.get("removed_by_category")
    return by is not None or any(one in GONE for one in said if isinstance(one, str))


def _text(kind: str, fields: Fields) -> str | None:
    if kind == "t1":
        return _plain(fields, "body")
    parts = [_plain(fields, "title"), _plain(fields, "selftext"), _link(fields)]
    return "\n\n".join(part for part in parts if part) or None


def _plain(fields: Fields, name: str) -> str | None:
    text = fields.text(name)
    if text is None:
        return None
    written = (fields.record.get(one) for one in ("body_html", "selftext_html"))
    if not any(isinstance(one, str) and one.startswith("<") for one in written):
        # Only who asks for `raw_json` gets these three as they were typed.
        text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return text.strip()


def _link(fields: Fields) -> str | None:
    """The page that a submission is about, where it is no image of its own."""
    address = _unescaped(fields.text("url_overridden_by_dest") or fields.text("url"))
    own = fields.record.get("is_self") or fields.record.get("is_gallery")
    if own or not address or IMAGE_ADDRESS.fullmatch(address) or "reddit.com/" in address:
        return None
    return address


def _created(fields: Fields) -> Any:
    given = fields.record.get("created_utc")
    if isinstance(given, str) and re.fullmatch(r"\d{1,12}", given, re.ASCII):
        given = int(given)  # as some archives write it
    return Fields({"created_utc": given}, fields.findings).moment("created_utc")


def _images(fields: Fields) -> list[PostImage]:
    described = fields.object("media_metadata")
    gallery = Fields(fields.object("gallery_data"), fields.findings, "gallery_data.")
    items = gallery.objects("items")
    if items:
        return [one for item in items if (one := _of_gallery(item, described, fields))]
    if described:
        return [one for name in described if (one := _described(name, described, None, fields))]
    address = _unescaped(fields.text("url_overridden_by_dest") or fields.text("url"))
    if address and IMAGE_ADDRESS.fullmatch(address):
        own = Fields({"url": address}, fields.findings).link("url")
        return [PostImage(url=own)] if own else []
    return [] if fields.record.get("post_hint") in ELSEWHERE else _previewed(fields)


def _of_gallery(item: Json, described: Json, fields: Fields) -> PostImage | None:
    inner = Fields(item, fields.findings, "gallery_data.items.")
    name = inner.text("media_id") or ""
    if name not in described:
        fields.findings.append(Finding(Notice.IMAGE_WITHOUT_ADDRESS, short_repr(name)))
        return None
    return _described(name, described, inner.text("caption"), fields)


def _described(name: str, described: Json, caption: str | None, fields: Fields) -> PostImage | None:
    media = Fields(described, fields.findings, "media_metadata.").object(name)
    if media.get("e") not in (None, "Image"):
        return None  # videos and animations
    source = Fields(media, fields.findings, "media_metadata.").object("s")
    address = _unescaped(Fields(source, fields.findings, "media_metadata.s.").text("u"))
    url = Fields({"u": address}, fields.findings, "media_metadata.s.").link("u")
    if url is None:
        fields.findings.append(Finding(Notice.IMAGE_WITHOUT_ADDRESS, short_repr(name)))
    return PostImage(url=url, alt_text=caption or None) if url or caption else None


def _previewed(fields: Fields) -> list[PostImage]:
    preview = Fields(fields.object("preview"), fields.findings, "preview.")
    sources = [
        Fields(one, fields.findings, "preview.").object("source")
        for one in preview.objects("images")
    ]
    addresses = [_unescaped(Fields(one, fields.findings).text("url")) for one in sources]
    links = [Fields({"url": one}, fields.findings, "preview.").link("url") for one in addresses]
    return [PostImage(url=link) for link in links if link]


def _engagement(fields: Fields) -> dict[str, int | None] | None:
    given = {ours: fields.count(theirs) for ours, theirs in COUNTS.items()}
    if all(count is None for count in given.values()):
        return None
    return {"likes": None, "bookmarks": None, **given}


def _more(fields: Fields) -> Iterator[Parsed]:
    count, above = fields.count("count"), fields.text("parent_id")
    names = fields.texts("children")
    yield Finding(Notice.REPLIES_NOT_FETCHED, f"{count or len(names)} below {short_repr(above)}")
    yield from fields.findings


def _unescaped(address: str | None) -> str | None:
    return None if address is None else address.replace("&amp;", "&")
