"""Posts of Bluesky: real trees, and what an invented one can get wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.collect.conftest import Case, Json, Reads, Real

CollectLines = Callable[..., list[Json]]
URI = "at://did:plc:mira/app.bsky.feed.post/{}".format
ADDRESS = "https://bsky.app/profile/did:plc:mira/post/{}".format
THREAD = "bluesky/morpho_threadResponseMidThreadJson.json"
EMBEDDED = "bluesky/thread_view_post_with_embed_media.json"
SHOWN = [("https://p.example/1", "prompt: a fox"), ("https://p.example/2", None)]
IMAGES = [{"fullsize": url, "alt": alt or ""} for url, alt in SHOWN]
QUOTE = {"record": {"record": {"uri": URI("b")}}}


def view(key: Any, text: str = "a", above: str | None = None, **fields: Any) -> Json:
    reply = {"reply": {"root": {"uri": URI("root")}, "parent": {"uri": above}}} if above else {}
    record = {"$type": "app.bsky.feed.post", "text": text, **reply}
    if seen := fields.get("indexedAt"):
        record["createdAt"] = seen
    author = {"did": "did:plc:mira", "handle": "mira.example"}
    return {"uri": URI(key), "author": author, "record": record, **fields}


def page(*posts: Any) -> Json:
    return {"posts": list(posts)}


def embedding(embed: Json) -> Json:
    return page(view("a", embed=embed))


def quoted(**fields: Any) -> Json:
    return embedding({"record": {"uri": URI("b"), **fields}})


def lost(missing: str) -> dict[str, Json]:
    return {"a": {"quoted_url": ADDRESS("b")}, "b": {"missing": missing, "text": None}}


TREE = {
    "post": view("a", above=URI("gone")),
    "parent": {"$type": "app.bsky.feed.defs#notFoundPost", "uri": URI("gone"), "notFound": True},
    "replies": [
        {"$type": "app.bsky.feed.defs#blockedPost", "uri": URI("shut"), "blocked": True},
        {"post": view("b", above=URI("a")), "replies": []},
    ],
}
LABELS = [{"val": "porn"}, {"val": "!no-unauthenticated", "neg": True}, {"val": 5}]
GOOD = {"fullsize": "https://p.example/1", "alt": "prompt: a fox"}
CASES: dict[str, Case] = {
    "images": (embedding({"images": IMAGES}), {"a": {"pictures": SHOWN, "quoted_url": None}}, []),
    "a gallery beside a quote": (
        embedding({"media": {"items": IMAGES}, **QUOTE}),
        {"a": {"pictures": SHOWN, "quoted_url": ADDRESS("b")}},
        [],
    ),
    "an image of a script": (
        embedding({"images": [{"fullsize": "javascript:alert(1)"}, GOOD]}),
        {"a": {"pictures": SHOWN[:1]}},
        ["#0 bad_field"],
    ),
    "an image without an address": (
        embedding({"images": [{"image": {"ref": {"$link": "bafy"}}, "alt": "a"}, GOOD]}),
        {"a": {"pictures": SHOWN[:1]}},
        ["#0 picture_without_address"],
    ),
    "a quote not found": (quoted(notFound=True), lost("not_found"), []),
    "a tree with missing posts": (
        {"thread": TREE},
        {
            "a": {"missing": None, "parent_url": ADDRESS("gone")},
            "gone": {"missing": "not_found", "parent_url": None},
            "shut": {"missing": "blocked", "parent_url": ADDRESS("a")},
            "b": {"missing": None, "parent_url": ADDRESS("a"), "keywords": []},
        },
        [],
    ),
    "labels": (page(view("a", labels=LABELS)), {"a": {"text": "a"}}, ["#0 labelled"]),
    "no uri": (page({"record": {"text": "a"}}), {}, ["#0 no_url"]),
    "replies": ({"thread": {"post": view("a"), "replies": 5}}, {"a": {}}, ["#1 bad_field"]),
    "a parent": ({"thread": {"post": view("a"), "parent": 5}}, {"a": {}}, ["#1 not_a_post"]),
}


@pytest.mark.parametrize(("document", "posts", "said"), CASES.values(), ids=CASES)
def test_an_answer_is_read(document: Any, posts: Any, said: list[str], reads: Reads) -> None:
    reads("bluesky", document, posts, said)


@pytest.mark.parametrize(
    ("holder", "label"),
    [("post", "!no-unauthenticated"), ("author", "!hide"), ("record", "!no-unauthenticated")],
)
def test_what_authors_show_to_signed_in_readers_is_not_taken_in(
    holder: str, label: str, reads: Reads
) -> None:
    labels = [{"val": label, "src": "did:plc:mira"}]
    post = view("a", "secret", URI("b"), embed={"images": IMAGES})
    if holder == "record":
        post["record"]["labels"] = {"values": labels}
    else:
        (post if holder == "post" else post["author"])["labels"] = labels
    kept = {"missing": "protected", "parent_url": ADDRESS("b"), "pictures": [], "keywords": []}
    none = dict.fromkeys(["text", "author", "quoted_url", "engagement"])
    reads("bluesky", page(post), {"a": {**kept, **none}}, ["#0 hidden_by_author"])


@pytest.mark.parametrize(
    ("created", "seen", "time", "said"),
    [
        ("2026-03-01T10:00:00Z", "2026-03-05T10:00:00Z", "2026-03-01T10:00:00+00:00", []),
        ("2026-03-01T10:03:00Z", "2026-03-01T10:00:00Z", "2026-03-01T10:00:00+00:00", []),
        ("2036-03-01T10:00:00Z", "2026-03-01T10:00:00Z", "2026-03-01T10:00:00+00:00",
         ["#0 claimed_time"]),
        ("someday", "2026-03-01T10:00:00Z", "2026-03-01T10:00:00+00:00", ["#0 bad_timestamp"]),
        ("2026-03-01T10:00:00Z", None, "2026-03-01T10:00:00+00:00", []),
    ],
)  # fmt: skip
def test_a_post_is_no_younger_than_when_it_was_first_seen(
    created: str, seen: str | None, time: str, said: list[str], reads: Reads
) -> None:
    post = view("a", indexedAt=seen)
    post["record"]["createdAt"] = created
    reads("bluesky", page(post), {"a": {"timestamp": time}}, said)


def parents_in(node: Json) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    stack = [node]
    while stack:
        one = stack.pop()
        reply = one["post"]["record"].get("reply")
        found[one["post"]["uri"]] = reply["parent"]["uri"] if reply else None
        stack += [*one.get("replies", []), *([one["parent"]] if "parent" in one else [])]
    return found


@pytest.mark.parametrize(("name", "size"), [(THREAD, 7), (EMBEDDED, 1)])
def test_a_real_tree_is_read_whole(
    name: str, size: int, real: Real, collect_lines: CollectLines
) -> None:
    text = real(name).read_text()
    expected = parents_in(json.loads(text)["thread"])
    rows = collect_lines("bluesky", text.splitlines())
    parents = {row["url"]: row["parent_url"] for row in rows if row["_status"] == "kept"}

    def address(uri: str | None) -> str | None:
        did, _, key = (uri or "").removeprefix("at://").partition("/app.bsky.feed.post/")
        return f"https://bsky.app/profile/{did}/post/{key}" if uri else None

    assert len(expected) == size
    for uri, parent in expected.items():
        assert parents[str(address(uri))] == address(parent)


def test_the_real_posts_are_read_in_all_fields(real: Real, collect_lines: CollectLines) -> None:
    lines = real(THREAD).read_text().splitlines()
    kept = {row["author"]: row for row in collect_lines("bluesky", lines, ["elon"])}
    root, asked = kept["mattbinder.bsky.social"], kept["chadmichael.bsky.social"]
    first, quote = collect_lines("bluesky", real(EMBEDDED).read_text().splitlines())
    (image,) = first["pictures"]
    counts = {"likes": 916, "views": None, "reposts": 230, "replies": 55, "bookmarks": None}
    assert root["engagement"] == counts
    assert root["timestamp"].isoformat() == "2023-09-19T20:52:25.516000+00:00"
    assert (root["lang"], root["platform"], root["post_id"]) == ("en", "bluesky", "3k7rlrukr4w2v")
    assert (root["keywords"], asked["keywords"]) == ([], ["elon"])
    assert image["url"].startswith("https://cdn.bsky.app/img/feed_fullsize/plain/did:plc:kvwv")
    assert (first["text"], image["alt_text"]) == ("", None)
    assert (quote["url"], quote["text"]) == (first["quoted_url"], "test")
