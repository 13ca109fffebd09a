"""Posts of Reddit: real answers of its API, trees of client libraries, lines of archives."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.collect.conftest import Case, Json, Reads, Real

CollectLines = Callable[..., list[Json]]
TREE = "reddit/TestCommentForest.test_replace__on_direct_comment.json"
ADDRESS = "https://www.reddit.com/comments/"
PARENT = f"{ADDRESS}1k2abc"
PREVIEW = {"images": [{"source": {"url": "https://preview.redd.it/p.jpg?a=1&amp;b=2"}}]}
GALLERY = {
    "gallery_data": {
        "items": [
            {"media_id": "m2", "caption": "a red fox"},
            {"media_id": "m3"},
            {"media_id": "m1"},
        ]
    },
    "media_metadata": {
        "m1": {"e": "Image", "s": {"u": "https://preview.redd.it/m1.png?w=9&amp;s=1"}},
        "m2": {"e": "Image", "s": {"u": "https://preview.redd.it/m2.png"}},
        "m3": {"e": "AnimatedImage", "s": {"gif": "https://i.redd.it/m3.gif"}},
    },
}


def comment(name: str, parent: str = "t3_1k2abc", **more: Any) -> Json:
    return {"id": name, "link_id": "t3_1k2abc", "parent_id": parent, "body": name, **more}


def submission(**more: Any) -> Json:
    return {"id": "1k2abc", "title": "A fox", "is_self": True, **more}


def alone(**columns: Any) -> dict[str, Json]:
    return {"1k2abc": columns}


def taken(word: str) -> Case:
    gone = {"missing": "deleted", "text": None, "author": None, "parent_url": f"{PARENT}/_/c1"}
    return comment("c2", "t1_c1", body=word, author="[deleted]", created_utc=9), {"c2": gone}, []


SCORES = submission(score=-3, ups=-3, num_comments=7, num_crossposts=0)
COUNTS = {"likes": None, "views": None, "reposts": 0, "replies": 7, "bookmarks": None}
REMOVED = submission(url="https://i.redd.it/a.png", removed_by_category="moderator")
MORE = [{"kind": "t1", "data": comment("c2", "t1_c1")}, {"kind": "more", "data": {"count": 3}}]
CASES: dict[str, Case] = {
    "more comments": (
        {"json": {"errors": [], "data": {"things": MORE}}},
        {"c2": {"parent_url": f"{PARENT}/_/c1", "keywords": []}},
        ["#1 replies_not_fetched"],
    ),
    "a collection": (
        {
            "title": "Foxes",
            "sorted_links": {
                "kind": "Listing",
                "data": {"children": [{"kind": "t3", "data": submission()}]},
            },
        },
        alone(keywords=["fox"]),
        [],
    ),
    "an answer of another kind": ({"json": {"data": {"things": 5}}}, {}, ["not_a_post"]),
    "deleted": taken("[deleted]"),
    "a score is no number of likes": (SCORES, alone(engagement=COUNTS), []),
    "a crosspost quotes what it repeats": (
        submission(crosspost_parent="t3_1j9xyz"),
        alone(quoted_url=f"{ADDRESS}1j9xyz", parent_url=None),
        [],
    ),
    "markup": (submission(selftext="a &amp; b &gt; c"), alone(text="A fox\n\na & b > c"), []),
    "raw markup": (
        submission(selftext="a &amp; b", selftext_html="<div>"),
        alone(text="A fox\n\na &amp; b"),
        [],
    ),
    "a page that is an image": (
        submission(is_self=False, url="https://i.redd.it/a.png", preview=PREVIEW),
        alone(text="A fox", pictures=[("https://i.redd.it/a.png", None)]),
        [],
    ),
    "a gallery in its order with its captions": (
        submission(**GALLERY),
        alone(
            pictures=[
                ("https://preview.redd.it/m2.png", "a red fox"),
                ("https://preview.redd.it/m1.png?w=9&s=1", None),
            ]
        ),
        [],
    ),
    "a gallery that lacks an image": (
        submission(gallery_data={"items": [{"media_id": "m9"}]}),
        alone(pictures=[]),
        ["picture_without_address"],
    ),
    "a preview of a page": (submission(preview=PREVIEW, post_hint="link"), alone(pictures=[]), []),
}


@pytest.mark.parametrize(("document", "posts", "said"), CASES.values(), ids=CASES)
def test_a_thing_is_read(document: Any, posts: Any, said: list[str], reads: Reads) -> None:
    reads("reddit", document, posts, said)


def test_trees_and_lines_are_the_same_posts(collect_lines: CollectLines) -> None:
    replies = [comment("c2", "t1_c1", replies="")]
    tree = submission(comments=[comment("c1", replies=replies), comment("c3")])
    lines = [submission(), comment("c1"), comment("c2", "t1_c1"), comment("c3")]
    wrapped = [{"kind": "t1" if "body" in one else "t3", "data": one} for one in lines]

    def read(*documents: Any) -> list[Json]:
        rows = collect_lines("reddit", map(json.dumps, documents))
        return [{**row, "_parent": 0, "place": 0} for row in rows]

    expected = read(*lines)
    assert [row["parent_url"] for row in expected] == [None, PARENT, f"{PARENT}/_/c1", PARENT]
    for document in (tree, wrapped, {"kind": "Listing", "data": {"children": wrapped}}):
        assert read(document) == expected


def test_a_chain_is_read_as_deep_as_json_goes_and_the_rest_is_named(
    collect_lines: CollectLines,
) -> None:
    most = 10_000
    opened = "".join(
        f'{{"id": "c{number}", "body": "a", "link_id": "t3_a", '
        f'"parent_id": "t1_c{number - 1}", "replies": ['
        for number in range(1, most + 1)
    )
    *posts, rest = collect_lines("reddit", [opened + "]}" * most], ["fox"])
    assert [row["post_id"] for row in posts] == [f"c{one}" for one in range(1, len(posts) + 1)]
    assert len(posts) >= 200
    assert [row["keywords"] for row in posts[:2]] == [["fox"], []]
    assert (rest["_reason"], "nested too deeply" in rest["_detail"]) == ("not_a_post", True)


@pytest.fixture
def answers(real: Real) -> list[str]:
    recorded = json.loads(real(TREE).read_text())
    return [one["response"]["body"]["string"] for one in recorded["interactions"]]


def every(document: Any) -> Iterator[Json]:
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if value.get("kind") in ("t1", "t3"):
                yield value["data"]
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value


def test_a_tree_of_replies_is_read_whole(answers: list[str], collect_lines: CollectLines) -> None:
    raw = {one["name"]: one for one in every(json.loads(answers[2]))}
    rows = collect_lines("reddit", [answers[2]], ["bone"])
    kept = [row for row in rows if row["_status"] == "kept"]
    posts = {row["post_id"]: row for row in kept}
    assert len(raw) == len(posts) == 146
    assert [row["_reason"] for row in rows if row["_reason"]] == ["replies_not_fetched"]
    for name, source in raw.items():
        row = posts[name.partition("_")[2]]
        above = source.get("parent_id", "").partition("_")[2]
        words = source.get("body", source.get("selftext", "")).strip()
        gone = words in ("[deleted]", "[removed]")
        assert row["parent_url"] == (posts[above]["url"] if above else None)
        assert row["timestamp"].timestamp() == source["created_utc"]
        assert row["missing"] == ("deleted" if gone else None)
        assert (row["text"] or "").endswith("" if gone else words)
        assert row["author"] == (None if source["author"] == "[deleted]" else source["author"])
        assert row["keywords"] == (["bone"] if name == "t3_57dw9a" else [])
    assert any(row["missing"] for row in kept)
    depth: Counter[str] = Counter()
    for row in kept:
        depth[row["url"]] = depth[row["parent_url"]] + 1 if row["parent_url"] else 0
    assert max(depth.values()) == 10


def test_an_answer_to_a_question_about_one_comment(answers: list[str], reads: Reads) -> None:
    url = f"{ADDRESS}57dw9a/_/d8r4im1"
    row = {"url": url, "keywords": ["fox"], "parent_url": f"{ADDRESS}57dw9a"}
    reads("reddit", answers[1], {"d8r4im1": row})
