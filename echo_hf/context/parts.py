"""Show a reply tree to a model: whole where it fits, else in parts that keep their context."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic_core import to_json

Post = Mapping[str, Any]


def rendered(posts: Sequence[Post]) -> list[dict[str, Any]]:
    """What a model is shown of a thread's posts.

    Args:
        posts: The items of `threads.posts`, depth first.

    Returns:
        One object a post: its number, its parent's, author (by a number, not by name), text,
        pictures, their descriptions, and why its content is missing.
    """
    authors: dict[str, int] = {}
    return [
        {
            "number": number,
            "parent": post["parent"],
            "author": post["author"]
            and f"author {authors.setdefault(post['author'], len(authors) + 1)}",
            "text": post["text"],
            "pictures": len(post["pictures"] or []),
            "alt_texts": [one["alt_text"] for one in post["pictures"] or [] if one["alt_text"]],
            "missing": post["missing"],
        }
        for number, post in enumerate(posts)
    ]


def parts(shown: Sequence[Post], longest: int) -> list[list[int]]:
    """Cuts a thread into parts that fit a model's context.

    Every part holds the posts of the root's author and those above its own posts, as far as half
    of the room allows; the rest of the posts stand in exactly one part each.

    Args:
        shown: The posts as `rendered`.
        longest: Most characters of a part.

    Returns:
        Numbers of the posts of each part, ascending; one part when the whole thread fits.
    """
    sizes = [len(to_json(post).decode()) for post in shown]
    if sum(sizes) <= longest:
        return [list(range(len(shown)))]
    author = next((post["author"] for post in shown if post["author"]), None)
    own = [n for n, post in enumerate(shown) if n == 0 or (author and post["author"] == author)]
    spine = set(_fitting(own, sizes, longest // 4))
    rest = [number for number in range(len(shown)) if number not in spine]
    return [
        sorted({*spine, *_fitting(above, sizes, longest // 4), *some})
        for some, above in _slices(rest, shown, sizes, longest // 2)
    ]


def _slices(
    rest: Sequence[int], shown: Sequence[Post], sizes: Sequence[int], room: int
) -> Iterator[tuple[list[int], list[int]]]:
    some: list[int] = []
    used = 0
    for number in rest:
        if some and used + sizes[number] > room:
            yield some, _above(some[0], shown)
            some, used = [], 0
        some.append(number)
        used += sizes[number]
    if some:
        yield some, _above(some[0], shown)


def _above(number: int, shown: Sequence[Post]) -> list[int]:
    # In depth-first order this is all that a slice beginning here needs from outside itself.
    chain = []
    while (number := shown[number]["parent"]) >= 0:
        chain.append(number)
    return chain


def _fitting(numbers: Sequence[int], sizes: Sequence[int], room: int) -> Iterator[int]:
    for number in numbers:
        room -= sizes[number]
        if room >= 0 or number == 0:
            yield number
