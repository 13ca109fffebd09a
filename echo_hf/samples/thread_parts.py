"""Show a reply tree to a model: whole where it fits, else in parts that keep their context."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import to_json

LONGEST_PROMPT = 12_000
LONGEST_FEEDBACK = 4000
MOST_POSTS = 256  # of a part of a thread: no part shows more
MOST_SAMPLES = MOST_POSTS

Quality = Literal["Benchmark", "Analysis", "Trash"]


class PostFeedback(BaseModel):
    """What one post says about the result."""

    model_config = ConfigDict(extra="ignore")

    post: int
    feedback: Annotated[str, Field(max_length=LONGEST_FEEDBACK)]


class SampleAnswer(BaseModel):
    """One task, the posts that show it, and what was said about it."""

    model_config = ConfigDict(extra="ignore")

    prompt: Annotated[str, Field(max_length=LONGEST_PROMPT)]
    quality: Quality
    posts: Annotated[list[int], Field(max_length=MOST_POSTS)]
    feedback: Annotated[list[PostFeedback], Field(max_length=MOST_POSTS)] = []


class ExtractAnswer(BaseModel):
    """The samples of one reply tree, or of one part of it."""

    model_config = ConfigDict(extra="ignore")

    samples: Annotated[list[SampleAnswer], Field(max_length=MOST_SAMPLES)]


Post = Mapping[str, Any]
FRAME = 240  # most characters of a post's JSON without what people wrote
MARK = len("\\n [... 999999999 characters left out]")


def rendered(posts: Sequence[Post], longest: int) -> list[dict[str, Any]]:
    authors: dict[str, int] = {}
    shown = [
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
    if _fits(_sizes(shown), longest):
        return shown
    return [_bounded(post, (longest - 2) // 4) for post in shown]


def parts(shown: Sequence[Post], longest: int) -> list[list[int]]:
    sizes = _sizes(shown)
    if _fits(sizes, longest):
        return [list(range(len(shown)))]
    longest -= 2
    author = next((post["author"] for post in shown if post["author"]), None)
    own = [n for n, post in enumerate(shown) if n == 0 or (author and post["author"] == author)]
    spine = set(_fitting(own, sizes, longest // 4))
    rest = [number for number in range(len(shown)) if number not in spine]
    return [
        sorted({*spine, *_fitting(above, sizes, longest // 4), *some})
        for some, above in _slices(rest, shown, sizes, longest // 2)
    ]


def _fits(sizes: Sequence[int], longest: int) -> bool:
    # Two brackets; and no more posts than an answer can name.
    return sum(sizes) + 2 <= longest and len(sizes) <= MOST_POSTS


def _sizes(shown: Sequence[Post]) -> list[int]:
    return [_size(post) + 1 for post in shown]  # a comma each


def _size(value: Any) -> int:
    text = to_json(value).decode()
    return len(text) + 5 * text.count("<")  # sent as \u003c


def _bounded(post: dict[str, Any], room: int) -> dict[str, Any]:
    if _size(post) < room:
        return post
    room -= FRAME
    alt_texts = _shortened_all(post["alt_texts"], room // 2)
    text = _shortened(post["text"], room - _size(alt_texts)) if post["text"] else post["text"]
    return {**post, "text": text, "alt_texts": alt_texts}


def _shortened(text: str, room: int) -> str:
    if _size(text) <= room:
        return text
    within = text[:room]
    keep = bisect_right(range(room), room - MARK, key=lambda end: _size(within[:end])) - 1
    keep = max(keep, 0)
    return f"{text[:keep]} [... {len(text) - keep} characters left out]"


def _shortened_all(texts: Sequence[str], room: int) -> list[str]:
    shown: list[str] = []
    room -= MARK + 4
    for number, text in enumerate(texts):
        if room < 2 * MARK and _size(text) > room:
            return [*shown, f"[... {len(texts) - number} descriptions left out]"]
        shown.append(_shortened(text, room))
        room -= _size(shown[-1]) + 1
    return shown


def _slices(
    rest: Sequence[int], shown: Sequence[Post], sizes: Sequence[int], room: int
) -> Iterator[tuple[list[int], list[int]]]:
    some: list[int] = []
    used = 0
    for number in rest:
        if some and (used + sizes[number] > room or len(some) == MOST_POSTS // 2):
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
    for nth, number in enumerate(numbers, 1):
        room -= sizes[number]
        if number == 0 or (room >= 0 and nth < MOST_POSTS // 4):
            yield number
