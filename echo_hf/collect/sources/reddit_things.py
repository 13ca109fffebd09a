"""Take answers of Reddit apart into things that stand alone: submissions, comments, gaps.

Listings, pairs of listings, and trees that tools wrote with the comments inside are all walked
without recursion: a chain of replies may be as long as people are stubborn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Json = Mapping[str, Any]

LISTING = "Listing"
BELOW = ("replies", "comments")  # where a thing holds its replies
BESIDE = "_came_along"


def things(document: Any) -> Iterator[tuple[str, Any]]:
    """Takes a document apart.

    Args:
        document: A listing, a list, or a thing with others below it.

    Yields:
        (place within the document, thing without those below it). A thing that lies below
        another one, or in the second listing of a pair, was not found by a search: it is marked
        by `_came_along`. Nothing, for a document that is a thing by itself.
    """
    waiting = _in_turn(document) if _holds_things(document) else []
    number = 0
    while waiting:
        thing, came_along = waiting.pop()
        inner = _listed(thing)
        if inner is not None:
            waiting += [(one, came_along) for one in reversed(inner)]
            continue
        alone, below = _apart(thing)
        yield f"#{number}", {**alone, BESIDE: True} if came_along and alone is not thing else alone
        number += 1
        waiting += [(one, True) for one in reversed(below)]


def _holds_things(document: Any) -> bool:
    if isinstance(document, list):
        return True
    if not isinstance(document, dict):
        return False
    return document.get("kind") is not None or any(name in document for name in BELOW)


def _in_turn(document: Any) -> list[tuple[Any, bool]]:
    if not isinstance(document, list):
        return [(document, False)]
    # A page of comments: a listing with the submission, and one with what is below it.
    pages = len(document) > 1 and all(_listed(one) is not None for one in document)
    return [(one, pages and at > 0) for at, one in reversed(list(enumerate(document)))]


def _listed(thing: Any) -> list[Any] | None:
    """What a listing holds; null when it is none."""
    if isinstance(thing, list):
        return thing
    if not isinstance(thing, dict) or thing.get("kind") != LISTING:
        return None
    data = thing.get("data")
    children = data.get("children") if isinstance(data, dict) else None
    return children if isinstance(children, list) else None


def _apart(thing: Any) -> tuple[Any, list[Any]]:
    """A thing without the replies in it, and those."""
    if not isinstance(thing, dict):
        return thing, []
    data = thing.get("data")
    if "kind" in thing and isinstance(data, dict):
        alone, below = _without_replies(data)
        return {"kind": thing["kind"], "data": alone}, below
    return _without_replies(thing)


def _without_replies(data: Json) -> tuple[dict[str, Any], list[Any]]:
    below = [data[name] for name in BELOW if isinstance(data.get(name), list | dict)]
    taken = {
        name for name in BELOW if isinstance(data.get(name), list | dict) or not data.get(name)
    }
    return {name: value for name, value in data.items() if name not in taken}, below
