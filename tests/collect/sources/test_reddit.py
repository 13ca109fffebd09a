"""Posts of Reddit: real answers of its API, trees of client libraries, lines of archives."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Json = dict[str, Any]
Rows = list[Json]
CollectLines = Callable[..., Rows]
TREE = "TestCommentForest.test_replace__on_direct_comment.json"
ADDRESS = "https://www.reddit.com/comments/"


def comment(name: str, parent: str = "t3_1k2abc", **more: Any) -> Json:
    return {"id": name, "link_id": "t3_1k2abc", "parent_id": parent, "body": name, **more}


def submission(**more: Any) -> Json:
    return {"id": "1k2abc", "title": "A fox", "is_self": True, **more}


def only(collect_lines: CollectLines, record: Any) -> Json:
    (row,) = kept(collect_lines("reddit", [json.dumps(record)]))
    return row


def kept(rows: Rows) -> Rows:
    return [row for row in rows if row["_status"] == "kept"]


def said(rows: Rows) -> list[str]:
    return [row["_reason"] for row in rows if row["_status"] != "kept"]


def images(collect_lines: CollectLines, **post: Any) -> list[tuple[str | None, str | None]]:
    row = only(collect_lines, submission(**post))
    return [(one["url"], one["alt_text"]) for one in row["pictures"]]


# --- real answers


@pytest.fixture
def answers(test_data: Path) -> list[str]:
    file = test_data / "posts" / "reddit" / TREE
    if not file.exists():
        pytest.skip(f"no file {str(file)!r}")
    recorded = json.loads(file.read_text())
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
    posts = {row["post_id"]: row for row in kept(rows)}

    assert len(raw) == len(posts) == 146
    assert said(rows) == ["replies_not_fetched"]
    for name, source in raw.items():
        row = posts[name.partition("_")[2]]
        above = source.get("parent_id", "").partition("_")[2]
        assert row["parent_url"] == (posts[above]["url"] if above else None)
        assert row["timestamp"].timestamp() == source["created_utc"]
        words = source.get("body", source.get("selftext", "")).strip()
        gone = words in ("[deleted]", "[removed]")
        assert row["missing"] == ("deleted" if gone else None)
        assert (row["text"] or "").endswith("" if gone else words)
        assert row["author"] == (None if source["author"] == "[deleted]" else source["author"])
        assert row["keywords"] == (["bone"] if name == "t3_57dw9a" else [])
    assert any(row["missing"] for row in posts.values())
    depth: Counter[str] = Counter()
    for row in kept(rows):
        depth[row["url"]] = depth[row["parent_url"]] + 1 if row["parent_url"] else 0
    assert max(depth.values()) == 10


def test_an_answer_to_a_question_about_one_comment(
    answers: list[str], collect_lines: CollectLines
) -> None:
    (row,) = kept(collect_lines("reddit", [answers[1]], ["bone"]))

    assert (row["url"], row["keywords"]) == (f"{ADDRESS}57dw9a/_/d8r4im1", ["bone"])
    assert row["parent_url"] == f"{ADDRESS}57dw9a"


# --- forms


def test_trees_and_lines_are_the_same_posts(collect_lines: CollectLines) -> None:
    tree = submission(
        comments=[comment("c1", replies=[comment("c2", "t1_c1", replies="")]), comment("c3")]
    )
    lines = [submission(), comment("c1"), comment("c2", "t1_c1"), comment("c3")]
    wrapped = [{"kind": "t1" if "body" in one else "t3", "data": one} for one in lines]
    expected = kept(collect_lines("reddit", map(json.dumps, lines)))

    for document in (tree, wrapped, {"kind": "Listing", "data": {"children": wrapped}}):
        rows = kept(collect_lines("reddit", [json.dumps(document)]))
        assert [{**row, "_parent": 0, "place": 0} for row in rows] == [
            {**row, "_parent": 0, "place": 0} for row in expected
        ]
    assert [row["parent_url"] for row in expected] == [
        None,
        f"{ADDRESS}1k2abc",
        f"{ADDRESS}1k2abc/_/c1",
        f"{ADDRESS}1k2abc",
    ]


def test_a_chain_that_nests_deeper_than_python_goes(collect_lines: CollectLines) -> None:
    most = 10_000
    opened = "".join(
        f'{{"id": "c{number}", "body": "a", "link_id": "t3_a", '
        f'"parent_id": "t1_c{number - 1}", "replies": ['
        for number in range(1, most + 1)
    )
    posts = kept(collect_lines("reddit", [opened + "]}" * most], ["fox"]))

    assert [row["post_id"] for row in posts] == [f"c{number}" for number in range(1, most + 1)]
    assert [row["keywords"] for row in posts[:2]] == [["fox"], []]


def test_a_permalink_stands_for_missing_identifiers(collect_lines: CollectLines) -> None:
    old = {"id": "c1", "body": "a", "permalink": "/r/foxes/comments/1k2abc/a_fox/c1/"}

    assert only(collect_lines, old)["url"] == f"{ADDRESS}1k2abc/_/c1"
    assert said(collect_lines("reddit", ['{"id": "c1", "body": "a"}'])) == ["no_url"]


@pytest.mark.parametrize("word", ["[deleted]", "[removed]"])
def test_what_was_taken_away_keeps_its_place(collect_lines: CollectLines, word: str) -> None:
    row = only(collect_lines, comment("c2", "t1_c1", body=word, author="[deleted]", created_utc=9))

    assert (row["missing"], row["text"], row["author"]) == ("deleted", None, None)
    assert row["parent_url"] == f"{ADDRESS}1k2abc/_/c1"
    image = {"url": "https://i.redd.it/a.png", "removed_by_category": "moderator"}
    row = only(collect_lines, submission(**image))
    assert (row["missing"], row["text"], row["pictures"]) == ("deleted", None, [])


def test_a_score_is_no_number_of_likes(collect_lines: CollectLines) -> None:
    row = only(collect_lines, submission(score=-3, ups=-3, num_comments=7, num_crossposts=0))

    none = {"likes": None, "views": None, "bookmarks": None}
    assert row["engagement"] == {**none, "replies": 7, "reposts": 0}
    assert only(collect_lines, comment("c1", score=5))["engagement"] is None


def test_a_crosspost_quotes_what_it_repeats(collect_lines: CollectLines) -> None:
    row = only(collect_lines, submission(crosspost_parent="t3_1j9xyz"))

    assert (row["quoted_url"], row["parent_url"]) == (f"{ADDRESS}1j9xyz", None)


@pytest.mark.parametrize(
    ("post", "text"),
    [
        (submission(selftext="a &amp; b &gt; c"), "A fox\n\na & b > c"),
        (submission(selftext="a &amp; b", selftext_html="<div>"), "A fox\n\na &amp; b"),
        (submission(selftext=""), "A fox"),
        (submission(is_self=False, url="https://a.example/"), "A fox\n\nhttps://a.example/"),
        (submission(is_self=False, url="https://i.redd.it/a.png"), "A fox"),
        (comment("c1", body="&lt;3"), "<3"),
    ],
)
def test_a_text_is_as_it_was_typed(collect_lines: CollectLines, post: Json, text: str) -> None:
    assert only(collect_lines, post)["text"] == text


# --- images


def test_a_gallery_is_in_its_order_with_its_captions(collect_lines: CollectLines) -> None:
    media = {
        "m1": {"e": "Image", "s": {"u": "https://preview.redd.it/m1.png?w=9&amp;s=1"}},
        "m2": {"e": "Image", "s": {"u": "https://preview.redd.it/m2.png"}},
        "m3": {"e": "AnimatedImage", "s": {"gif": "https://i.redd.it/m3.gif"}},
    }
    items = [{"media_id": "m2", "caption": "a red fox"}, *({"media_id": m} for m in ("m3", "m1"))]
    given = {"gallery_data": {"items": items}, "media_metadata": media}

    assert images(collect_lines, **given) == [
        ("https://preview.redd.it/m2.png", "a red fox"),
        ("https://preview.redd.it/m1.png?w=9&s=1", None),
    ]
    lost = submission(gallery_data={"items": [{"media_id": "m9"}]})
    assert said(collect_lines("reddit", [json.dumps(lost)])) == ["picture_without_address"]


def test_a_direct_image_is_better_than_its_preview(collect_lines: CollectLines) -> None:
    preview = {"images": [{"source": {"url": "https://preview.redd.it/p.jpg?a=1&amp;b=2"}}]}
    direct = images(collect_lines, url="https://i.redd.it/a.png", preview=preview)
    shown = images(collect_lines, preview=preview)
    other = images(collect_lines, preview=preview, post_hint="link")

    assert direct == [("https://i.redd.it/a.png", None)]
    assert (shown, other) == ([("https://preview.redd.it/p.jpg?a=1&b=2", None)], [])
