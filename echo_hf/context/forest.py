"""The shape of the reply trees, from who answers whom alone.

Posts are numbered; nothing here knows their content. No step recurses: a chain of replies may be
thousands of posts long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

NO_PARENT = -1
Moment = tuple[bool, int, str]


@dataclass(frozen=True, slots=True)
class Forest:
    """Reply trees in depth-first order.

    Attributes:
        order: Numbers of the posts, tree after tree, each tree depth first.
        parent: For each place in `order`, the place of the parent within its own tree, -1 at the
            root.
        depth: For each place in `order`, the number of ancestors.
        starts: Places in `order` where a tree begins, and the end.
        self_parents: Posts whose link to themselves was cut.
        cycles: Posts at which a circle of replies was cut.
    """

    order: list[int] = field(default_factory=list)
    parent: list[int] = field(default_factory=list)
    depth: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    self_parents: list[int] = field(default_factory=list)
    cycles: list[int] = field(default_factory=list)


def plant(parents: Sequence[int], moments: Sequence[Moment]) -> Forest:
    """Orders posts into reply trees.

    Args:
        parents: For each post the number of the post it answers, -1 for none.
        moments: For each post what it is sorted by: (time unknown, time, url).

    Returns:
        The trees: roots and children ascending by moment. A post that answers itself becomes a
        root; a circle of replies is cut at its smallest moment.

    Example:
        >>> forest = plant([-1, 0, 0, 1], [(False, 1, "a"), (False, 3, "b"), (False, 2, "c"),
        ...                               (False, 4, "d")])
        >>> forest.order, forest.parent, forest.depth, forest.starts
        ([0, 2, 1, 3], [-1, 0, 0, 2], [0, 1, 1, 2], [0, 4])
    """
    forest = Forest()
    cut = list(parents)
    for post, parent in enumerate(parents):
        if post == parent:
            cut[post] = NO_PARENT
            forest.self_parents.append(post)
    for circle in _cycles(cut):
        first = min(circle, key=moments.__getitem__)
        cut[first] = NO_PARENT
        forest.cycles.append(first)
    _walk(forest, _children(cut, moments))
    return forest


def _cycles(parents: Sequence[int]) -> Iterator[list[int]]:
    seen_in = [0] * len(parents)
    for walk, start in enumerate(range(len(parents)), 1):
        path, post = [], start
        while post != NO_PARENT and not seen_in[post]:
            seen_in[post] = walk
            path.append(post)
            post = parents[post]
        if post != NO_PARENT and seen_in[post] == walk:
            yield path[path.index(post) :]


def _children(parents: Sequence[int], moments: Sequence[Moment]) -> list[list[int]]:
    children: list[list[int]] = [[] for _ in range(len(parents) + 1)]
    for post in sorted(range(len(parents)), key=moments.__getitem__, reverse=True):
        children[parents[post]].append(post)  # -1: the last list holds the roots
    return children


def _walk(forest: Forest, children: list[list[int]]) -> None:
    order, parent, depth, starts = forest.order, forest.parent, forest.depth, forest.starts
    for root in reversed(children[NO_PARENT]):
        start = len(order)
        starts.append(start)
        waiting = [(root, NO_PARENT, 0)]
        while waiting:
            post, above, level = waiting.pop()
            place = len(order) - start
            order.append(post)
            parent.append(above)
            depth.append(level)
            waiting.extend((child, place, level + 1) for child in children[post])
    starts.append(len(order))
