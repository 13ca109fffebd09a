"""Cutting a thread that is longer than a model's context."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from echo_hf.context.parts import parts, rendered


def post(parent: int, author: str | None = "ana", text: str = "x" * 50) -> dict[str, Any]:
    """A post as `threads` holds it."""
    return {
        "url": "u",
        "parent": parent,
        "author": author,
        "text": text,
        "pictures": [],
        "missing": None,
    }


def trees() -> st.SearchStrategy[list[dict[str, Any]]]:
    """Threads in depth-first order: each parent is the post before or one of its ancestors."""

    @st.composite
    def draw(draw: st.DrawFn) -> list[dict[str, Any]]:
        posts = [post(-1)]
        for _ in range(draw(st.integers(0, 25))):
            above = len(posts) - 1
            for _ in range(draw(st.integers(0, 3))):
                above = max(posts[above]["parent"], 0)
            author = draw(st.sampled_from(["ana", "bo", "cy"]))
            posts.append(post(above, author, "y" * draw(st.integers(0, 400))))
        return posts

    return draw()


def test_a_short_thread_is_one_part() -> None:
    """A thread that fits is shown whole."""
    assert parts(rendered([post(-1), post(0), post(1)]), 10_000) == [[0, 1, 2]]


@given(trees(), st.integers(2000, 6000))
def test_every_post_is_shown_and_no_other_reply_twice(
    posts: list[dict[str, Any]], room: int
) -> None:
    """All posts are in some part; one that is no context of another stands in exactly one."""
    cut = parts(rendered(posts), room)
    shown = [number for part in cut for number in part]
    parents = {one["parent"] for one in posts}
    leaves = {n for n, one in enumerate(posts) if n not in parents and one["author"] != "ana"}

    assert set(shown) == set(range(len(posts)))
    assert all(shown.count(leaf) == 1 for leaf in leaves)
    assert all(0 in part for part in cut)


@given(trees(), st.integers(2000, 6000))
def test_a_part_fits_unless_one_post_alone_is_too_long(
    posts: list[dict[str, Any]], room: int
) -> None:
    """A part stays within the room: no post of these threads is longer than a quarter of it."""
    shown = rendered(posts)
    sizes = [len(json.dumps(one, ensure_ascii=False, separators=(",", ":"))) for one in shown]

    for part in parts(shown, room):
        assert sum(sizes[number] for number in part) <= room + max(sizes)


def test_the_root_authors_replies_are_in_every_part() -> None:
    """What the author adds below is context for all: prompts often stand there."""
    posts = [
        post(-1),
        *(post(0, f"reader{n}", "z" * 300) for n in range(20)),
        post(0, "ana", "prompt"),
    ]
    cut = parts(rendered(posts), 3000)

    assert len(cut) > 1
    assert all({0, 21} <= set(part) for part in cut)


def test_ancestors_come_with_a_reply() -> None:
    """A deep reply is shown below what it answers."""
    wide = [post(0, f"reader{n}", "z" * 300) for n in range(10)]
    posts = [
        post(-1),
        *wide,
        post(0, "bo", "question"),
        post(11, "cy", "answer"),
        post(12, "bo", "q" * 900),
    ]
    cut = parts(rendered(posts), 4000)
    last = next(part for part in cut if 13 in part)

    assert {11, 12} <= set(last)


def test_authors_are_numbered_not_named() -> None:
    """A model is told who wrote what, but no account name."""
    shown = rendered([post(-1, "ana"), post(0, "bo"), post(1, "ana"), post(0, None)])

    assert [one["author"] for one in shown] == ["author 1", "author 2", "author 1", None]
