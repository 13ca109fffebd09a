"""Posts of Bluesky: real trees, and what an invented one can get wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Json = dict[str, Any]
CollectLines = Callable[..., list[Json]]
URI = "at://did:plc:mira/app.bsky.feed.post/{}".format
ADDRESS = "https://bsky.app/profile/did:plc:mira/post/{}".format
FEED = "app.bsky.feed.defs#"


def view(key: str, text: str = "a", above: str | None = None, **fields: Any) -> Json:
    reply = {"reply": {"root": {"uri": URI("root")}, "parent": {"uri": above}}} if above else {}
    return {
        "uri": URI(key),
        "author": {"did": "did:plc:mira", "handle": "mira.example"},
        "record": {"$type": "app.bsky.feed.post", "text": text, **reply},
        **fields,
    }


def rows_of(document: Any, collect_lines: CollectLines, keywords: tuple[str, ...] = ()) -> Any:
    line = document if isinstance(document, str) else json.dumps(document)
    rows = collect_lines("bluesky", [line], keywords)
    kept = {row["url"].rpartition("/")[2]: row for row in rows if row["_status"] == "kept"}
    return kept, [(row["_parent"][0], row["_reason"]) for row in rows if row["_status"] != "kept"]


def embedded(view_of: Json, collect_lines: CollectLines) -> Json:
    kept, _ = rows_of({"posts": [view("a", embed=view_of)]}, collect_lines)
    return dict(kept["a"])


def counted(node: Json) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    stack = [node]
    while stack:
        one = stack.pop()
        reply = one["post"]["record"].get("reply")
        found[one["post"]["uri"]] = reply["parent"]["uri"] if reply else None
        stack += [*one.get("replies", []), *([one["parent"]] if "parent" in one else [])]
    return found


@pytest.mark.parametrize(
    ("name", "size"),
    [("morpho_threadResponseMidThreadJson", 7), ("thread_view_post_with_embed_media", 1)],
)
def test_a_real_tree_is_read_whole(
    name: str, size: int, test_data: Path, collect_lines: CollectLines
) -> None:
    text = (test_data / "posts" / "bluesky" / f"{name}.json").read_text()
    expected = counted(json.loads(text)["thread"])
    rows = collect_lines("bluesky", text.splitlines())
    address = "https://bsky.app/profile/{}/post/{}".format
    named = {
        uri: address(*uri.removeprefix("at://").split("/app.bsky.feed.post/"))
        for uri in {*expected, *filter(None, expected.values())}
    }
    parents = {row["url"]: row["parent_url"] for row in rows if row["_status"] == "kept"}

    assert len(expected) == size
    assert {url: parents[url] for url in map(named.get, expected) if url} == {
        named[uri]: named[parent] if parent else None for uri, parent in expected.items()
    }


def test_the_real_posts_are_read_in_all_fields(
    test_data: Path, collect_lines: CollectLines
) -> None:
    path = test_data / "posts" / "bluesky" / "morpho_threadResponseMidThreadJson.json"
    kept = {
        row["author"]: row
        for row in collect_lines("bluesky", path.read_text().splitlines(), ["elon"])
    }
    root, asked = kept["mattbinder.bsky.social"], kept["chadmichael.bsky.social"]

    assert root["engagement"] == {
        "likes": 916, "views": None, "reposts": 230, "replies": 55, "bookmarks": None
    }  # fmt: skip
    assert root["text"].endswith(
        "signups https://mashable.com/article/"
        "bluesky-record-new-signups-after-musk-says-charge-x-twitter-users-fee"
    )
    assert root["timestamp"].isoformat() == "2023-09-19T20:52:25.516000+00:00"
    assert (root["lang"], root["platform"], root["post_id"]) == ("en", "bluesky", "3k7rlrukr4w2v")
    assert (root["keywords"], asked["keywords"]) == ([], ["elon"])


def test_the_real_image_beside_a_quote(test_data: Path, collect_lines: CollectLines) -> None:
    path = test_data / "posts" / "bluesky" / "thread_view_post_with_embed_media.json"
    first, quoted = collect_lines("bluesky", path.read_text().splitlines())
    (image,) = first["pictures"]

    assert image["url"].startswith("https://cdn.bsky.app/img/feed_fullsize/plain/did:plc:kvwv")
    assert (first["text"], image["alt_text"]) == ("", None)
    assert (quoted["url"], quoted["text"]) == (first["quoted_url"], "test")


def test_what_is_no_post_is_rejected(test_data: Path, collect_lines: CollectLines) -> None:
    path = test_data / "posts" / "bluesky" / "feed_record.json"
    (row,) = collect_lines("bluesky", path.read_text().splitlines())

    assert row["_reason"] == "not_a_post"


@pytest.mark.parametrize("name", ["images", "items"])
def test_images_carry_their_descriptions(name: str, collect_lines: CollectLines) -> None:
    shown = {
        name: [
            {"fullsize": "https://p.example/1", "alt": "prompt: a fox"},
            {"fullsize": "https://p.example/2", "alt": ""},
        ]
    }
    expected = [
        {"sha256": None, "url": "https://p.example/1", "alt_text": "prompt: a fox"},
        {"sha256": None, "url": "https://p.example/2", "alt_text": None},
    ]
    alone = embedded(shown, collect_lines)
    beside = embedded({"media": shown, "record": {"record": {"uri": URI("b")}}}, collect_lines)

    assert alone["pictures"] == beside["pictures"] == expected
    assert (alone["quoted_url"], beside["quoted_url"]) == (None, ADDRESS("b"))


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        ({"fullsize": "javascript:alert(1)"}, "bad_field"),
        ({"fullsize": "no address"}, "bad_field"),
        ({"fullsize": 5}, "bad_field"),
        ({"image": {"ref": {"$link": "bafy"}}, "alt": "a"}, "picture_without_address"),
    ],
)
def test_an_image_without_a_usable_address_is_counted(
    image: Json, reason: str, collect_lines: CollectLines
) -> None:
    good = {"fullsize": "https://p.example/1", "alt": "a"}
    shown = {"images": [image, good]}
    kept, said = rows_of({"posts": [view("a", embed=shown)]}, collect_lines)

    assert [one["url"] for one in kept["a"]["pictures"]] == ["https://p.example/1"]
    assert said == [("f:1#0", reason)]


def test_previews_of_links_and_videos_are_no_images(collect_lines: CollectLines) -> None:
    link = {"external": {"uri": "https://a.example/", "thumb": "https://p.example/t"}}
    video = {"playlist": "https://v.example/", "thumbnail": "https://p.example/t"}

    assert embedded(link, collect_lines)["pictures"] == []
    assert embedded(video, collect_lines)["pictures"] == []


@pytest.mark.parametrize(
    ("quoted", "missing"),
    [
        ({"$type": "app.bsky.embed.record#viewNotFound", "notFound": True}, "not_found"),
        ({"$type": "app.bsky.embed.record#viewBlocked", "blocked": True}, "blocked"),
        ({"$type": "app.bsky.embed.record#viewDetached", "detached": True}, "not_fetched"),
    ],
)
def test_a_quote_that_cannot_be_shown_keeps_its_edge(
    quoted: Json, missing: str, collect_lines: CollectLines
) -> None:
    shown = {"record": {"uri": URI("b"), **quoted}}
    kept, _ = rows_of({"posts": [view("a", embed=shown)]}, collect_lines)

    assert kept["a"]["quoted_url"] == ADDRESS("b")
    assert (kept["b"]["missing"], kept["b"]["text"]) == (missing, None)


def test_missing_posts_of_a_tree_keep_their_places(collect_lines: CollectLines) -> None:
    tree = {
        "post": view("a", above=URI("gone")),
        "parent": {"$type": f"{FEED}notFoundPost", "uri": URI("gone"), "notFound": True},
        "replies": [
            {"$type": f"{FEED}blockedPost", "uri": URI("shut"), "blocked": True},
            {"post": view("b", above=URI("a")), "replies": []},
        ],
    }
    kept, said = rows_of({"thread": tree}, collect_lines)

    assert {key: (row["missing"], row["parent_url"]) for key, row in kept.items()} == {
        "a": (None, ADDRESS("gone")),
        "gone": ("not_found", None),
        "shut": ("blocked", ADDRESS("a")),
        "b": (None, ADDRESS("a")),
    }
    assert said == []


@pytest.mark.parametrize("holder", ["post", "author", "record"])
@pytest.mark.parametrize("label", ["!no-unauthenticated", "!hide"])
def test_what_authors_show_to_signed_in_readers_is_not_taken_in(
    holder: str, label: str, collect_lines: CollectLines
) -> None:
    labels = [{"val": label, "src": "did:plc:mira"}]
    post = view("a", "secret", URI("b"), embed={"images": [{"fullsize": "https://p.example/1"}]})
    if holder == "record":
        post["record"]["labels"] = {"values": labels}
    else:
        (post if holder == "post" else post["author"])["labels"] = labels
    kept, said = rows_of({"posts": [post]}, collect_lines, ("fox",))
    row = kept["a"]

    assert (row["missing"], row["parent_url"]) == ("protected", ADDRESS("b"))
    assert [row[name] for name in ("text", "author", "quoted_url", "engagement")] == [None] * 4
    assert (row["pictures"], row["keywords"]) == ([], [])
    assert said == [("f:1#0", "hidden_by_author")]


def test_other_labels_are_noted_and_withdrawn_ones_are_not(collect_lines: CollectLines) -> None:
    labels = [{"val": "porn"}, {"val": "!no-unauthenticated", "neg": True}, {"val": 5}]
    kept, said = rows_of({"posts": [view("a", labels=labels)]}, collect_lines)

    assert kept["a"]["text"] == "a"
    assert said == [("f:1#0", "labelled")]


@pytest.mark.parametrize(
    ("created", "seen", "time", "said"),
    [
        ("2026-03-01T10:00:00Z", "2026-03-01T10:00:05Z", "2026-03-01T10:00:00+00:00", []),
        ("2026-03-01T10:00:00Z", "2026-03-05T10:00:00Z", "2026-03-01T10:00:00+00:00", []),
        ("2026-03-01T10:03:00Z", "2026-03-01T10:00:00Z", "2026-03-01T10:00:00+00:00", []),
        ("2036-03-01T10:00:00Z", "2026-03-01T10:00:00Z", "2026-03-01T10:00:00+00:00",
         ["claimed_time"]),
        ("someday", "2026-03-01T10:00:00Z", "2026-03-01T10:00:00+00:00", ["bad_timestamp"]),
        ("2026-03-01T10:00:00Z", None, "2026-03-01T10:00:00+00:00", []),
    ],
)  # fmt: skip
def test_a_post_is_no_younger_than_when_it_was_first_seen(
    created: str, seen: str | None, time: str, said: list[str], collect_lines: CollectLines
) -> None:
    post = view("a", indexedAt=seen)
    post["record"]["createdAt"] = created
    kept, remarks = rows_of({"posts": [post]}, collect_lines)

    assert kept["a"]["timestamp"].isoformat() == time
    assert [reason for _, reason in remarks] == said


LINK = "app.bsky.richtext.facet#link"


@pytest.mark.parametrize(
    ("text", "start", "end", "uri", "expected"),
    [
        ("see a.example/fo...", 4, 19, "https://a.example/foxes", "see https://a.example/foxes"),
        ("ö a.example/fo…!", 3, 18, "https://www.a.example/foxes", "ö https://www.a.example/foxes!"),
        ("read this", 5, 9, "https://a.example/foxes", "read this"),
        ("b.example/fo...", 0, 15, "https://a.example/foxes", "b.example/fo..."),
        ("a.example/foxes", 0, 15, "https://a.example/foxes", "a.example/foxes"),
        ("a.example/fo...", 0, 99, "https://a.example/foxes", "a.example/fo..."),
        ("...", 0, 3, "https://a.example/foxes", "..."),
    ],
)  # fmt: skip
def test_cut_links_are_made_whole(
    text: str, start: int, end: int, uri: str, expected: str, collect_lines: CollectLines
) -> None:
    post = view("a", text)
    index = {"byteStart": start, "byteEnd": end}
    post["record"]["facets"] = [{"index": index, "features": [{"$type": LINK, "uri": uri}]}]
    kept, said = rows_of({"posts": [post]}, collect_lines)

    assert (kept["a"]["text"], said) == (expected, [])


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"posts": []}, []),
        ({"posts": 5}, [("f:1#0", "not_a_post")]),
        ({"posts": [None, view("a")]}, [("f:1#0", "not_a_post")]),
        ({"posts": [{"uri": 5}]}, [("f:1#0", "not_a_post")]),
        ({"posts": [{"record": {"text": "a"}}]}, [("f:1#0", "no_url")]),
        ({"posts": [{**view("a"), "record": 5}]}, [("f:1#0", "bad_field")]),
        ({"thread": None}, [("f:1#0", "not_a_post")]),
        ({"thread": {"uri": 5}}, [("f:1#0", "no_url")]),
        ({"thread": {"post": view("a"), "replies": 5}}, [("f:1#1", "bad_field")]),
        ({"thread": {"post": view("a"), "parent": 5}}, [("f:1#1", "not_a_post")]),
        ({"error": "NotFound"}, [("f:1", "not_a_post")]),
        ([], [("f:1", "not_a_post")]),
        ({"_missing": 5}, [("f:1", "no_url")]),
        ("no JSON", [("f:1", "not_json")]),
    ],
)
def test_a_spoiled_answer_is_told_by_its_parts(
    document: Any, expected: list[tuple[str, str]], collect_lines: CollectLines
) -> None:
    kept, said = rows_of(document, collect_lines)

    assert said == expected
    assert ("a" in kept) == (URI("a") in json.dumps(document))
