"""A thread as a model is shown it, whole or in parts."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from echo_hf.prompts import as_data
from echo_hf.samples.thread_parts import parts, rendered


def post(parent: int, author: str | None = "ana", text: str = "x" * 50) -> dict[str, Any]:
    return {
        "url": "u",
        "parent": parent,
        "author": author,
        "text": text,
        "pictures": [],
        "missing": None,
    }


@st.composite
def trees(draw: st.DrawFn) -> list[dict[str, Any]]:
    posts = [post(-1)]
    for _ in range(draw(st.integers(0, 25))):
        above = len(posts) - 1
        for _ in range(draw(st.integers(0, 3))):
            above = max(posts[above]["parent"], 0)
        author = draw(st.sampled_from(["ana", "bo", "cy"]))
        posts.append(post(above, author, "y" * draw(st.integers(0, 400))))
    return posts


@given(trees(), st.integers(2000, 6000))
def test_every_post_is_shown_and_no_other_reply_twice(
    posts: list[dict[str, Any]], room: int
) -> None:
    cut = parts(rendered(posts, room), room)
    shown = [number for part in cut for number in part]
    parents = {one["parent"] for one in posts}
    leaves = {n for n, one in enumerate(posts) if n not in parents and one["author"] != "ana"}

    assert set(shown) == set(range(len(posts)))
    assert all(shown.count(leaf) == 1 for leaf in leaves)
    assert all(0 in part for part in cut)


HUGE = st.builds(
    lambda piece, times: piece * times,
    st.sampled_from(["x", "<", "\x00", '"', "\u753b", "\\u003c ", "\U0001f525"]),
    st.sampled_from([0, 1, 40, 700, 3000, 60_000]),
)


@given(
    trees(),
    st.lists(st.tuples(HUGE, st.lists(HUGE, max_size=4)), max_size=6),
    st.integers(0, 400),
    st.sampled_from([2000, 2001, 3999, 24_000]),
)
def test_a_part_is_never_longer_than_allowed(
    posts: list[dict[str, Any]], huge: list[tuple[str, list[str]]], wordless: int, room: int
) -> None:
    for one, (text, alt_texts) in zip(posts, huge, strict=False):
        one["text"] = text
        one["pictures"] = [{"alt_text": alt_text} for alt_text in alt_texts]
    posts += [post(0, None, "") for _ in range(wordless)]
    shown = rendered(posts, room)
    cut = parts(shown, room)

    assert {number for part in cut for number in part} == set(range(len(posts)))
    for part in cut:
        _, block, _ = as_data("thread", [shown[number] for number in part]).split("\n")
        assert len(block) <= room


def test_a_post_with_a_thousand_descriptions_fits() -> None:
    shown = rendered([{**post(-1), "pictures": [{"alt_text": "a"}] * 10_000}], 2000)
    alt_texts = shown[0]["alt_texts"]
    left_out = 10_000 - (len(alt_texts) - 1)

    assert len(json.dumps(shown)) <= 2000
    assert alt_texts[:-1] == ["a"] * (len(alt_texts) - 1)
    assert alt_texts[-1] == f"[... {left_out} descriptions left out]"
    assert shown[0]["text"] == "x" * 50


def test_a_cut_text_says_how_much_is_missing() -> None:
    (shown,) = rendered([post(-1, text="ab" * 150_000)], 4000)
    begin, mark = shown["text"].split(" [... ")

    assert 500 < len(begin) <= 1000
    assert begin == ("ab" * 500)[: len(begin)]
    assert mark == f"{300_000 - len(begin)} characters left out]"


def test_the_root_authors_replies_are_in_every_part_and_ancestors_come_with_a_reply() -> None:
    readers = [post(0, f"reader{n}", "z" * 300) for n in range(20)]
    chain = [post(0, "ana", "prompt"), post(0, "bo", "hm"), post(22, "cy", "q" * 900)]
    cut = parts(rendered([post(-1), *readers, *chain], 3000), 3000)

    assert len(cut) > 1
    assert all({0, 21} <= set(part) for part in cut)
    assert all(22 in part for part in cut if 23 in part)


def test_a_part_shows_no_more_posts_than_an_answer_can_name() -> None:
    """However roomy the context is, a part has at most 256 posts, and none is left out."""
    posts = [post(-1), *(post(0, "ana" if n % 3 else f"reader{n}", "x") for n in range(1500))]
    cut = parts(rendered(posts, 1_000_000), 1_000_000)

    assert max(map(len, cut)) <= 256
    assert {number for part in cut for number in part} == set(range(len(posts)))
