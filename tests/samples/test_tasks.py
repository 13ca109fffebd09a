"""Which answers speak of the same task."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

from echo_hf.samples.tasks import Task, joined, told_and_seen, tries

NAMES = st.text("abcdefgh", max_size=3).map(lambda names: "".join(dict.fromkeys(names)))


def task(inputs: str = "", outputs: str = "", posts: tuple[int, ...] = (), shot: str = "") -> Task:
    """A task whose images are named by letters."""
    return Task("p", (), list(inputs), list(outputs), list(posts), shot or None)


def test_joining_keeps_all_and_repeats_nothing() -> None:
    """Images and posts in the order they were named, the first screenshot."""
    first = task("ab", "c", (3, 1), "s")
    first.join(task("bd", "ce", (1, 2), "t"))

    assert (first.inputs, first.outputs) == (["a", "b", "d"], ["c", "e"])
    assert (first.posts, first.screenshot) == ([3, 1, 2], "s")
    assert first.images == ["c", "e", "s", "a", "b", "d"]


def test_a_joined_task_takes_the_others_screenshot_where_it_has_none() -> None:
    """A screenshot is not lost in joining."""
    first = task("a")
    first.join(task(shot="t"))
    assert (first.screenshot, first.shown_by) == ("t", ["t"])


def test_tasks_with_one_key_are_one() -> None:
    """In the order of their first appearance."""
    made = joined([("x", task("a")), ("y", task("b")), ("x", task("c"))])
    assert [one.inputs for one in made] == [["a", "c"], ["b"]]


@given(st.lists(st.tuples(NAMES, NAMES), max_size=6))
def test_tries_are_what_hangs_together(drawn: list[tuple[str, str]]) -> None:
    """Connected components of shared images; those without inputs are one, apart from others."""
    sets = [set(inputs + outputs) for inputs, outputs in drawn]
    shared = np.array([[bool(one & other) for other in sets] for one in sets], dtype=bool)
    expected: dict[int, list[set[str]]] = {}
    for number in range(len(sets)):
        label = connected_components(shared)[1][number]
        given_ = expected.setdefault(label, [set(), set()])
        given_[0].update(drawn[number][0])
        given_[1].update(drawn[number][1])
    made = tries([task(*one) for one in drawn])

    apart = [one for one in expected.values() if one[0]]
    without = set().union(*(one[1] for one in expected.values() if not one[0]))
    if without or (drawn and not apart):
        apart.append([set(), without])
    found = [[set(one.inputs), set(one.outputs)] for one in made]
    assert sorted(found, key=repr_of) == sorted(apart, key=repr_of)


def repr_of(sets: list[set[str]]) -> list[list[str]]:
    """Something to sort by."""
    return [sorted(one) for one in sets]


def test_a_try_stands_with_the_screenshot_that_shares_its_image() -> None:
    """And not with the first one; the others stay tries of their own."""
    told = [task("a", "b"), task("c", "d")]
    made = told_and_seen(told, [task(shot="s"), task("", "d", shot="t")])

    assert [(one.inputs, one.outputs, one.screenshot) for one in made] == [
        (["a"], ["b"], None),
        ([], [], "s"),
        (["c"], ["d"], "t"),
    ]


def test_words_and_a_screenshot_without_a_shared_image() -> None:
    """Are together where the words lack an input or a result: the first such try of them."""
    made = told_and_seen([task("a", "b"), task("c")], [task(shot="s"), task(shot="t")])

    assert [(one.inputs, one.screenshot) for one in made] == [
        (["a"], None),
        (["c"], "s"),
        ([], "t"),
    ]


@given(st.lists(NAMES, max_size=4), st.lists(NAMES, max_size=3))
def test_no_image_is_lost_in_joining(told: list[str], seen: list[str]) -> None:
    """Whatever is joined, each screenshot stays a task, and every image stays in one."""
    shots = [f"s{number}" for number in range(len(seen))]
    before = tries([task("", one) for one in told])
    some = [task("", one, shot=shot) for one, shot in zip(seen, shots, strict=True)]
    made = told_and_seen(before, some)

    assert [one.screenshot for one in made if one.screenshot] == shots
    assert {name for one in made for name in one.outputs} == set("".join([*told, *seen]))
