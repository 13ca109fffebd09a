"""Merging: one row an address, whatever came twice, in whatever order and in whatever parts."""

from __future__ import annotations

import datetime
import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from echo_hf.collect.collect import READ_POSTS, PostMerge, merge_posts
from echo_hf.collect.sources.base import Missing
from echo_hf.tables import POSTS

Row = dict[str, Any]
EMPTY: Row = {**dict.fromkeys(POSTS.columns), "keywords": [], "pictures": []}
FEW = st.none() | st.sampled_from(["", "a", "b", "aa"])
NAMES = st.none() | st.sampled_from(["a", "b"])
IMAGE = st.fixed_dictionaries({"sha256": NAMES, "url": NAMES, "alt_text": FEW})
COUNTS = dict.fromkeys(["likes", "views", "reposts", "replies", "bookmarks"])


def day(number: int) -> datetime.datetime:
    return datetime.datetime(2026, 3, number, tzinfo=datetime.UTC)


def or_none(some: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | some


ONE_ROW = {
    **dict.fromkeys(("post_id", "platform", "author", "lang", "parent_url", "quoted_url"), FEW),
    "url": st.sampled_from(["u0", "u1"]),
    "text": or_none(st.sampled_from(["", "a", " a", "a…"])),  # one text
    "timestamp": or_none(st.integers(1, 4).map(day)),
    "keywords": or_none(st.lists(st.sampled_from("ab"), max_size=3)),
    "pictures": or_none(st.lists(IMAGE, max_size=3)),
    "engagement": or_none(st.fixed_dictionaries({n: or_none(st.integers(0, 2)) for n in COUNTS})),
    "missing": or_none(st.sampled_from(list(Missing))),
    "relevance": or_none(st.fixed_dictionaries({"score": or_none(st.integers(1, 3)), "note": FEW})),
}
ROWS = st.lists(st.fixed_dictionaries(ONE_ROW), max_size=5)


def merged(*rows: Row) -> list[Row]:
    table = pa.Table.from_pylist([{**EMPTY, **row} for row in rows], schema=POSTS.schema)
    posts: list[Row] = merge_posts(table)[0].to_pylist()
    return posts


@given(ROWS, st.randoms(use_true_random=False))
def test_order_makes_no_difference(rows: list[Row], shuffle: random.Random) -> None:
    shuffled = list(rows)
    shuffle.shuffle(shuffled)

    assert merged(*shuffled) == merged(*rows)


@given(ROWS)
@example([{"pictures": [{"sha256": None, "url": None, "alt_text": None}], "url": "u0"}])
@example([{"keywords": ["b", "a"], "url": "u0"}])
def test_merging_again_changes_nothing(rows: list[Row]) -> None:
    once = merged(*rows)

    assert merged(*once) == once
    assert merged(*rows, *rows) == once
    assert merged(*once, *rows) == once


@given(ROWS)
def test_nothing_known_is_lost(rows: list[Row]) -> None:
    by_url = {post["url"]: post for post in merged(*rows)}
    assert set(by_url) == {row["url"] for row in rows}
    for url, post in by_url.items():
        group = [row for row in rows if row["url"] == url]
        for name in ("post_id", "author", "text", "parent_url", "quoted_url", "timestamp"):
            known = {row[name] for row in group if row[name] is not None}
            assert post[name] in known if known else post[name] is None
        words = {word for row in group for word in row["keywords"] or []}
        assert set(post["keywords"] or []) == words
        images = [one for row in group for one in row["pictures"] or []]
        fetched = {one["url"] for one in images if one["sha256"]}  # bytes have one address
        for name, others in (("sha256", {None}), ("url", {None, *fetched})):
            given_names = {one[name] for one in images}
            assert given_names - others <= {one[name] for one in post["pictures"] or []}
        assert (post["missing"] is None) == any(row["missing"] is None for row in group)


def test_what_one_row_lacks_the_other_fills_in() -> None:
    whole = {"text": "a long prompt, whole", "author": "mira_draws", "timestamp": day(1)}
    said = {"likes": 3, "views": None, "replies": 0}
    rows = [
        {"text": "a long pro…", "timestamp": day(2), "keywords": ["lumen"]},
        {**whole, "keywords": ["l-image"], "engagement": said},
        {"missing": "deleted", "engagement": {"likes": 1, "views": 9}},
        {"missing": "not_fetched", "parent_url": "p"},
    ]
    (post,) = merged(*({"url": "u", **row} for row in rows))
    counts = {**COUNTS, "likes": 3, "views": 9, "replies": 0}

    assert post == {
        **EMPTY,
        **whole,
        "url": "u",
        "keywords": ["l-image", "lumen"],
        "parent_url": "p",
        "engagement": counts,
    }


@pytest.mark.parametrize(
    ("first", "second", "newest"),
    [
        ({}, {}, 1),
        ({"timestamp": day(2)}, {"timestamp": day(1)}, 0),
        ({"timestamp": day(1), "edited": day(3)}, {"timestamp": day(2)}, 0),
        ({"timestamp": day(2)}, {}, 1),
        ({}, {"missing": "deleted"}, 0),
    ],
    ids=["the last", "the later", "edited", "without a time", "of what is there"],
)
def test_a_newer_text_replaces_text_and_images(first: Row, second: Row, newest: int) -> None:
    rows = [
        {**EMPTY, "url": "u", **one, "text": text, "author": text, "keywords": [text]}
        for one, text in ((first, "a fox"), (second, "a bear, drawn"))
    ]
    rows = [{**row, "pictures": [image(row["text"], None)]} for row in rows]
    seen_again = {**EMPTY, "url": "u", "engagement": {"likes": 1}}
    read = pa.Table.from_pylist([*rows, seen_again], schema=READ_POSTS.schema)
    merged_posts, replaced = merge_posts(read)
    (post,) = merged_posts.to_pylist()

    assert replaced == {1 - newest: newest}
    for name in ("text", "author", "pictures"):
        assert post[name] == rows[newest][name]
    assert (post["keywords"], post["engagement"]["likes"]) == (["a bear, drawn", "a fox"], 1)


def image(sha256: str | None, url: str | None, alt_text: str | None = None) -> Row:
    return {"sha256": sha256, "url": url, "alt_text": alt_text}


NOTHING = image(None, None)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # fetched meanwhile: the digest joins the address, the description comes along
        ([[image(None, "p", "a fox")], [image("s", "p")]], [image("s", "p", "a fox")]),
        # a local file, and the same bytes with an address
        ([[image("s", None, "a")], [image("s", "p", "a fox")]], [image("s", "p", "a fox")]),
        # the order of the fullest row stays, what only others have follows
        (
            [[image("2", None), image("1", None)], [image("0", None)]],
            [image("2", None), image("1", None), image("0", None)],
        ),
        (
            [[image(None, "q"), image(None, "p")], [image("s", "p")]],
            [image(None, "q"), image("s", "p")],
        ),
        # another image under an address that was given before: both stay
        ([[image("1", "p")], [image("2", "p")]], [image("1", "p"), image("2", "p")]),
        # images without a name are told apart by their descriptions
        (
            [[image(None, None, "b")], [image(None, None, "a")], [image(None, None, "b")]],
            [image(None, None, "a"), image(None, None, "b")],
        ),
        ([[NOTHING], [image("1", None)]], [image("1", None)]),
        # what could not be had and has no address is still an image of the post
        ([[NOTHING, image("1", None)]], [image("1", None), NOTHING]),
        (
            [[image("1", None), NOTHING], [image("2", None), image("1", None)]],
            [image("1", None), image("2", None)],
        ),
    ],
)
def test_images_are_joined_by_digest_or_address(rows: list[list[Row]], expected: list[Row]) -> None:
    (post,) = merged(*({"url": "u", "pictures": images} for images in rows))

    assert post["pictures"] == expected


def test_posts_are_in_order_of_time_then_address_and_stay_missing() -> None:
    times = {"d": None, "b": day(2), "a": day(2), "c": day(1), "0": None}
    rows = [{"url": url, "timestamp": time} for url, time in times.items()]
    lost = [{"url": "u", "missing": "not_found"}, {"url": "u", "missing": "deleted"}]

    assert [post["url"] for post in merged(*rows)] == ["c", "a", "b", "0", "d"]
    assert merged(*lost)[0]["missing"] == merged(*reversed(lost))[0]["missing"] == "deleted"


def test_the_stage_names_each_post_as_its_own_parent() -> None:
    rows = [("a.csv:2", "u", "old"), ("b.csv:2", "u", "new"), ("b.csv:3", "v", None)]
    read = [{"place": place, "url": url, "text": text} for place, url, text in rows]
    made = PostMerge()(pa.Table.from_pylist(read, schema=READ_POSTS.schema)).to_pylist()

    assert PostMerge.whole
    assert [(row["url"], row["_parent"], row["_status"], row["_reason"]) for row in made] == [
        ("u", ["b.csv:2\x1fu"], "kept", None),
        ("v", ["b.csv:3\x1fv"], "kept", None),
        (None, ["a.csv:2\x1fu"], "rejected", "superseded"),
    ]
    assert made[2]["_detail"].startswith("u: b.csv:2 ")
