"""Joining posts into reply trees."""

from __future__ import annotations

import datetime
import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from datasets import Dataset
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.pipeline.stage_runner import run_stage
from echo_hf.samples.threads import Threads, build_forest, find_roots
from echo_hf.tables import POSTS

START = datetime.datetime(2026, 3, 2, tzinfo=datetime.UTC)
RELEVANT = {"score": 5, "note": None}


def post(url: str, parent: str | None = None, **values: Any) -> dict[str, Any]:
    plain: dict[str, Any] = {
        **dict.fromkeys(POSTS.columns),
        "keywords": [],
        "pictures": [],
        "relevance": RELEVANT,
    }
    return {**plain, "url": url, "parent_url": parent, "text": url, **values}


def join(posts: Sequence[dict[str, Any]], **options: Any) -> list[dict[str, Any]]:
    rows = Threads(**options)(pa.Table.from_pylist(list(posts), schema=POSTS.schema))
    return list(rows.to_pylist())


def trees(rows: Sequence[dict[str, Any]]) -> dict[str, list[tuple[str, int, int]]]:
    return {
        row["root_url"]: [(one["url"], one["parent"], one["depth"]) for one in row["posts"]]
        for row in rows
        if row["_status"] == "kept"
    }


def test_a_reply_hangs_below_its_parent() -> None:
    rows = join(
        [
            post("c", "a", timestamp=START),
            post("d", "b", timestamp=START),
            post("b", "a", timestamp=START + datetime.timedelta(hours=1)),
            post("a"),
        ]
    )

    assert trees(rows) == {"a": [("a", -1, 0), ("c", 0, 1), ("b", 0, 1), ("d", 2, 2)]}
    assert rows[0]["_parent"] == ["a", "c", "b", "d"]


def test_the_root_is_the_topmost_known_address() -> None:
    """A parent that was never collected is the root, without content, and no input row."""
    (row,) = join([post("b", "a"), post("c", "a")])

    assert trees([row]) == {"a": [("a", -1, 0), ("b", 0, 1), ("c", 0, 1)]}
    assert (row["posts"][0]["missing"], row["posts"][0]["text"]) == ("not_fetched", None)
    assert row["_parent"] == ["b", "c"]


def scored(score: int | None) -> dict[str, Any]:
    return {"score": score, "note": None}


def test_one_relevant_post_keeps_its_whole_tree() -> None:
    """By the scores of the config; a quoted post is no parent."""
    posts = [
        post("a", relevance=None),
        post("b", "a", relevance=scored(4)),
        post("x", relevance=scored(3)),
        post("y", "x", relevance=None, quoted_url="a"),
    ]
    rows = join(posts)
    assert set(trees(rows)) == {"a"}
    assert [(row["_reason"], row["_parent"]) for row in rows[1:]] == [("not_relevant", ["x", "y"])]
    assert set(trees(join(posts, keep=(3,)))) == {"x"}


def test_a_tree_whose_score_failed_is_told_apart() -> None:
    scores = {"a": scored(None), "b": None, "c": scored(1)}
    rows = join([post(name, relevance=score) for name, score in scores.items()])
    assert [row["_reason"] for row in rows] == ["not_scored", "not_asked", "not_relevant"]


def test_impossible_links_are_cut_and_noted() -> None:
    at = {name: START + datetime.timedelta(minutes=n) for n, name in enumerate("pqr")}
    rows = join(
        [
            post("self", "self"),
            post("p", "r", timestamp=at["p"]),
            post("q", "p", timestamp=at["q"]),
            post("r", "q", timestamp=at["r"]),
        ]
    )
    noted = [(row["_reason"], row["_parent"]) for row in rows if row["_status"] == "noted"]

    assert trees(rows) == {"p": [("p", -1, 0), ("q", 0, 1), ("r", 1, 2)], "self": [("self", -1, 0)]}
    assert noted == [("cycle", ["p"]), ("self_parent", ["self"])]


LINKS = st.integers(1, 12).flatmap(
    lambda n: st.lists(st.one_of(st.none(), st.integers(0, n + 1)), min_size=n, max_size=n)
)


def linked(links: Sequence[int | None]) -> list[dict[str, Any]]:
    return [
        post(
            f"u{n}",
            None if link is None else f"u{link}",
            timestamp=None if n % 2 else START + datetime.timedelta(minutes=(n * 5) % 7),
            relevance=None if n % 3 else RELEVANT,
        )
        for n, link in enumerate(links)
    ]


@given(LINKS, st.randoms(use_true_random=False))
def test_order_and_repetition_do_not_matter(
    links: list[int | None], shuffler: random.Random
) -> None:
    posts = linked(links)
    again = posts + shuffler.sample(posts, len(posts) // 2)
    shuffler.shuffle(again)

    assert join(again) == join(posts)


@given(LINKS)
def test_the_root_of_a_post_is_that_of_its_tree(links: list[int | None]) -> None:
    posts = [{**one, "relevance": RELEVANT} for one in linked(links)]
    columns = pa.Table.from_pylist(posts, schema=POSTS.schema)
    planted = {
        url: row["root_url"]
        for row in join(posts)
        if row["_status"] == "kept"
        for url in row["_parent"]
    }

    roots = find_roots(columns.select(["url", "parent_url", "timestamp"]))

    assert roots.to_pylist() == [planted[one["url"]] for one in posts]


PARENTS = st.integers(1, 24).flatmap(
    lambda n: st.lists(st.integers(-1, n - 1), min_size=n, max_size=n)
)


def moments(count: int) -> list[tuple[bool, int, str]]:
    return [(number % 5 == 0, (number * 7) % 11, f"{number:03d}") for number in range(count)]


@given(PARENTS)
def test_only_impossible_links_are_cut(parents: list[int]) -> None:
    forest = build_forest(parents, moments(len(parents)))
    roots = {forest.order[start] for start in forest.starts[:-1]}
    cut = {post for post in roots if parents[post] >= 0}

    assert cut == {*forest.self_parents, *forest.cycles}
    assert all(parents[post] == post for post in forest.self_parents)
    for post in forest.cycles:
        circle, at = [post], parents[post]
        while at != post:
            circle.append(at)
            at = parents[at]
        assert min(circle, key=moments(len(parents)).__getitem__) == post


def test_children_stand_by_time_then_address() -> None:
    forest = build_forest(
        [-1, 0, 0, 0, 0],
        [(False, 0, "r"), (True, 0, "a"), (False, 9, "b"), (False, 3, "d"), (False, 3, "c")],
    )

    assert forest.order == [0, 4, 3, 2, 1]


def test_a_long_chain_needs_no_recursion() -> None:
    count = 100_000
    forest = build_forest(list(range(-1, count - 1)), [(False, n, "") for n in range(count)])

    assert forest.depth[-1] == count - 1
    assert forest.starts == [0, count]


SCORES = [None, RELEVANT, {"score": 1, "note": None}, {"score": None, "note": None}]


@given(st.integers(0, 10**9), st.sampled_from([1, 7, 50]))
def test_parts_of_whole_trees_give_what_one_call_gives(seed: int, size: int) -> None:
    rng, posts = random.Random(seed), []
    for number in range(100):
        above = [None, f"u{rng.randrange(100)}", f"gone{rng.randrange(9)}", f"u{number}"]
        moment = START + datetime.timedelta(rng.randrange(30)) if rng.random() < 0.9 else None
        relevance, parent = rng.choice(SCORES), rng.choices(above, [4, 8, 2, 1])[0]
        posts.append(post(f"u{number}", parent, timestamp=moment, relevance=relevance))
    table = pa.Table.from_pylist(posts, schema=POSTS.features.arrow_schema)
    dataset = Dataset(table, fingerprint="posts")
    with pytest.MonkeyPatch.context() as patched:
        whole = run_stage(Threads(), dataset)
        patched.setattr(Threads, "part_posts", size)
        assert len(list(Threads().parts(dataset) or ())) > 1
        parted = run_stage(Threads(), dataset)

    for name in ("dataset", "rejects", "notices"):
        one, other = getattr(whole, name), getattr(parted, name)
        assert one.to_list() == other.to_list()
        assert one._fingerprint == other._fingerprint


def test_posts_that_come_twice_are_in_one_part() -> None:
    table = pa.Table.from_pylist([post("a"), post("b"), post("a")], schema=POSTS.schema)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Threads, "part_posts", 1)
        assert Threads().parts(Dataset(table)) is None
