"""A thread whose samples were all reviewed, as lines of gold."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from echo_hf.check.picture_places import Digests
from echo_hf.context.spans import SpanIndex, squeezed
from echo_hf.reasons import NotGold

Row = Mapping[str, Any]
Line = dict[str, Any]


@dataclass(frozen=True)
class ReviewedThread:
    """A thread and its samples.

    Attributes:
        root: Address of its topmost known post.
        samples: Rows of its samples, with what reviewers changed.
        kept: Ids of those that were kept; all others were removed.
        posts: Its posts, depth first.
    """

    root: str
    samples: Sequence[Row]
    kept: Collection[str]
    posts: Sequence[Row]

    @cached_property
    def written(self) -> SpanIndex:
        """What people wrote in it."""
        texts = [post["text"] or "" for post in self.posts]
        return SpanIndex(
            [*texts, *(one["alt_text"] or "" for post in self.posts for one in post["pictures"])]
        )

    @property
    def listed(self) -> list[Row]:
        """The samples that gold lists: those kept, and those removed whose words stand there."""
        own = {squeezed(row["prompt"]) for row in self.samples if row["id"] in self.kept}
        return [
            row
            for row in self.samples
            if row["id"] in self.kept
            or (self.written.holds(row["prompt"]) and squeezed(row["prompt"]) not in own)
        ]

    @property
    def has_screenshot(self) -> bool:
        """Whether a sample has one; whether it shows a conversation or a collage nobody says."""
        return any(row["screenshot"] for row in self.samples)


def why_not(thread: ReviewedThread) -> NotGold | None:
    """Why a thread cannot be gold.

    Args:
        thread: The thread.

    Returns:
        The reason; null where it can.
    """
    kept = [row for row in thread.samples if row["id"] in thread.kept]
    if any(row["prompt_fill_blank"] for row in thread.samples):
        return NotGold.COMPLETION
    if not all(thread.written.holds(row["prompt"]) for row in kept):
        return NotGold.NOT_COPIED
    prompts = [squeezed(row["prompt"]) for row in thread.listed]
    return NotGold.SAME_PROMPT if len(set(prompts)) < len(prompts) else None


def extract_line(thread: ReviewedThread) -> Line:
    """The line of `extract.jsonl`.

    Args:
        thread: A thread that can be gold.

    Returns:
        The line; feedback that was found may be read so or not, since nobody reviewed it.
    """
    said: set[str] = set()
    return {
        "root_url": thread.root,
        "samples": [_sample(thread, row, said) for row in thread.listed],
    }


def roles_lines(thread: ReviewedThread, pictures: Mapping[str, Digests]) -> Iterator[Line]:
    """The lines of `roles.jsonl`.

    Args:
        thread: A thread that can be gold, without a screenshot.
        pictures: Digests of each post's pictures in the order of its file.

    Yields:
        A line for each sample that was kept. Pictures of removed ones stand in none.
    """
    kept = [row for row in thread.samples if row["id"] in thread.kept]
    lost = {one for row in thread.samples if row["id"] not in thread.kept for one in _shown(row)}
    lines: dict[str, list[Line]] = {row["id"]: [] for row in kept}
    for place, post in enumerate(thread.posts):
        for index, digest in enumerate(pictures.get(post["url"], ())):
            owner = next((row for row in kept if digest in _shown(row)), None)
            if digest is None or (owner is None and digest in lost) or not kept:
                continue
            role = _shown(owner)[digest] if owner else "neither"
            row = owner or _near(thread, place, kept)
            at = {"post_url": post["url"], "index": index, "role": role}
            lines[row["id"]].append(at)
    for row in kept:
        yield {"root_url": thread.root, "prompt": row["prompt"], "pictures": lines[row["id"]]}


def _sample(thread: ReviewedThread, row: Row, said: set[str]) -> Line:
    urls = dict.fromkeys(one["post_url"] for one in row["community_feedback"] or ())
    feedback = [url for url in urls if url not in said]
    said.update(feedback)
    return {
        "prompt": row["prompt"],
        "quality": row["quality"],
        "post_urls": list(row["post_urls"]),
        "feedback_optional": feedback,
        "optional": row["id"] not in thread.kept,
    }


def _shown(row: Row) -> dict[str, str]:
    roles = (("input", row["input_images"]), ("output", row["output_images"]))
    return {digest: role for role, digests in roles for digest in digests or ()}


def _near(thread: ReviewedThread, place: int, kept: Sequence[Row]) -> Row:
    """The sample that a post belongs to, or that it stands below; else the first."""
    while place >= 0:
        url = thread.posts[place]["url"]
        found = next((row for row in kept if url in row["post_urls"]), None)
        if found is not None:
            return found
        place = thread.posts[place]["parent"]
    return kept[0]
