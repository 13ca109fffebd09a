"""The shape of the reply trees."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from echo_hf.samples.threads import plant

PARENTS = st.integers(1, 24).flatmap(
    lambda n: st.lists(st.integers(-1, n - 1), min_size=n, max_size=n)
)


def moments(count: int) -> list[tuple[bool, int, str]]:
    """Distinct moments that do not follow the numbering."""
    return [(number % 5 == 0, (number * 7) % 11, f"{number:03d}") for number in range(count)]


@given(PARENTS)
def test_every_post_stands_in_one_tree(parents: list[int]) -> None:
    """Whatever the links, each post has exactly one place."""
    forest = plant(parents, moments(len(parents)))

    assert sorted(forest.order) == list(range(len(parents)))


@given(PARENTS)
def test_a_parent_stands_before_its_children_one_level_higher(parents: list[int]) -> None:
    """A post's place says its parent's place in the same tree, and the link is a given one."""
    forest = plant(parents, moments(len(parents)))

    for start, end in zip(forest.starts, forest.starts[1:], strict=False):
        for place in range(start, end):
            above = forest.parent[place]
            assert above < place - start
            if above >= 0:
                assert forest.depth[place] == forest.depth[start + above] + 1
                assert parents[forest.order[place]] == forest.order[start + above]
            else:
                assert (place, forest.depth[place]) == (start, 0)


@given(PARENTS)
def test_only_impossible_links_are_cut(parents: list[int]) -> None:
    """A root has no parent, answers itself, or is the smallest moment of a circle."""
    forest = plant(parents, moments(len(parents)))
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
    """Siblings are ordered by time, then by address; those without a time come last."""
    forest = plant(
        [-1, 0, 0, 0, 0],
        [(False, 0, "r"), (True, 0, "a"), (False, 9, "b"), (False, 3, "d"), (False, 3, "c")],
    )

    assert forest.order == [0, 4, 3, 2, 1]


def test_a_long_chain_needs_no_recursion() -> None:
    """A chain of a hundred thousand replies is one tree."""
    count = 100_000
    forest = plant(list(range(-1, count - 1)), [(False, n, "") for n in range(count)])

    assert forest.depth[-1] == count - 1
    assert forest.starts == [0, count]


def test_no_posts_make_no_trees() -> None:
    """An empty forest has no place at all."""
    forest = plant([], [])

    assert (forest.order, forest.starts) == ([], [0])
