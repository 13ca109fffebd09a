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
    if _fits([_size(post) + 1 for post in shown], longest):
        return shown
    return [_bounded(post, (longest - 2) // 4) for post in shown]


def parts(shown: Sequence[Post], longest: int) -> list[list[int]]:
    sizes = [_size(post) + 1 for post in shown]  # a comma each
    if _fits(sizes, longest):
        return [list(range(len(shown)))]
    longest -= 2
    author = next((post["author"] for post in shown if post["author"]), None)
    own = [n for n, post in enumerate(shown) if n == 0 or (author and post["author"] == author)]
    spine = set(_fitting(own, sizes, longest // 4))
    slices: list[list[int]] = []
    used = 0
    for number in range(len(shown)):
        if number in spine:
            continue
        full = used + sizes[number] > longest // 2
        if not slices or full or len(slices[-1]) == MOST_POSTS // 2:
            slices.append([])
            used = 0
        slices[-1].append(number)
        used += sizes[number]
    every = []
    for some in slices:
        # In depth-first order this is all that a slice needs from outside itself.
        above, number = list[int](), some[0]
        while (number := shown[number]["parent"]) >= 0:
            above.append(number)
        every.append(sorted({*spine, *_fitting(above, sizes, longest // 4), *some}))
    return every


def _fits(sizes: Sequence[int], longest: int) -> bool:
    # Two brackets; and no more posts than an answer can name.
    return sum(sizes) + 2 <= longest and len(sizes) <= MOST_POSTS


def _size(value: Any) -> int:
    text = to_json(value).decode()
    return len(text) + 5 * text.count("<")  # sent as \u003c


def _bounded(post: dict[str, Any], room: int) -> dict[str, Any]:
    """A post that takes no more room: its descriptions get half of it, its text the rest."""
    if _size(post) < room:
        return post
    room -= FRAME
    alt_texts: list[str] = []
    left = room // 2 - MARK - 4
    for number, alt_text in enumerate(post["alt_texts"]):
        if left < 2 * MARK and _size(alt_text) > left:
            alt_texts.append(f"[... {len(post['alt_texts']) - number} descriptions left out]")
            break
        alt_texts.append(_shortened(alt_text, left))
        left -= _size(alt_texts[-1]) + 1
    text = post["text"] and _shortened(post["text"], room - _size(alt_texts))
    return {**post, "text": text, "alt_texts": alt_texts}


def _shortened(text: str, room: int) -> str:
    if _size(text) <= room:
        return text
    within = text[:room]
    keep = bisect_right(range(room), room - MARK, key=lambda end: _size(within[:end])) - 1
    keep = max(keep, 0)
    return f"{text[:keep]} [... {len(text) - keep} characters left out]"


def _fitting(numbers: Sequence[int], sizes: Sequence[int], room: int) -> Iterator[int]:
    for nth, number in enumerate(numbers, 1):
        room -= sizes[number]
        if number == 0 or (room >= 0 and nth < MOST_POSTS // 4):
            yield number
