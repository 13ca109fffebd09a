"""How well screenshots are taken apart: where the pictures are, which went in, what was typed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import linear_sum_assignment

from echo_hf.check.found import FoundScreenshot
from echo_hf.check.gold_lines import ScreenshotLine
from echo_hf.check.gold_posts import GoldPosts
from echo_hf.check.inputs import Row, digest_of, sample_key
from echo_hf.check.measures import Item, Scored
from echo_hf.check.similarity import similarity
from echo_hf.multimodal.box_conventions import shown
from echo_hf.multimodal.boxes import Pixels, intersection_over_union

FOUND_FROM = 0.5
NO_BOX = "no box"
RoleBox = tuple[str, Pixels]


@dataclass(frozen=True)
class Comparison:
    """A screenshot as people took it apart, and as an engine did.

    Attributes:
        thread: Root of its thread.
        gold: What people wrote down.
        found: What the engine said; null where it gave no answer.
    """

    thread: str
    gold: ScreenshotLine
    found: FoundScreenshot | None

    @property
    def place(self) -> str:
        """What it is called, for whoever looks for a mistake."""
        return f"{self.gold.post_url} picture {self.gold.index}"

    @property
    def wanted(self) -> list[RoleBox]:
        """Boxes that people drew, with their roles."""
        return _with_roles(self.gold.inputs, self.gold.outputs)

    @property
    def given(self) -> list[RoleBox]:
        """Boxes that the engine gave, with their roles."""
        return _with_roles(self.found.inputs, self.found.outputs) if self.found else []

    @cached_property
    def pairs(self) -> dict[int, tuple[int, float]]:
        """For boxes that people drew, by number, the engine's and how far the two are the same.

        Of all ways to pair the boxes it is the one where they are so most; boxes that share nothing
        are no pair. Roles do not count.
        """
        table = np.array(
            [
                [intersection_over_union(one, other) for _, other in self.given]
                for _, one in self.wanted
            ]
        ).reshape(len(self.wanted), len(self.given))
        rows, columns = linear_sum_assignment(table, maximize=True)
        same = [(int(a), int(b), float(table[a, b])) for a, b in zip(rows, columns, strict=True)]
        return {a: (b, shared) for a, b, shared in same if shared > 0}


def compared_screenshots(
    samples: Sequence[Row],
    lines: Sequence[ScreenshotLine],
    found: Mapping[str, FoundScreenshot],
    posts: GoldPosts,
) -> tuple[list[Comparison], int]:
    """Puts what an engine said beside what people wrote down.

    Args:
        samples: The rows that `screenshots` reads.
        lines: What people wrote down.
        found: What the engine said, by id of the row.
        posts: The posts.

    Returns:
        One for each row whose screenshot people took apart, and how many they did not.
    """
    line_of = {(posts.root_of[line.post_url], digest_of(line, posts)): line for line in lines}
    keyed = [(row, (sample_key(row)[0], row["screenshot"])) for row in samples]
    made = [
        Comparison(key[0], line_of[key], found.get(row["id"]))
        for row, key in keyed
        if key in line_of
    ]
    return made, len(samples) - len(made)


def score_screenshots(every: Sequence[Comparison], skipped: int = 0) -> list[Scored]:
    """Compares boxes, roles and prompts.

    Args:
        every: The screenshots.
        skipped: How many others the engine was shown.

    Returns:
        Over the boxes that share something with an engine's, how far they are the same
        (intersection over union); precision and recall of boxes that are so by half or more, and
        the share of these with the right role; the similarity of prompts.
    """
    wanted = sum(len(one.wanted) for one in every)
    answered = sum(len(one.wanted) for one in every if one.found)
    return [
        Scored("box_iou", [*_same(every)], graded=True, skipped=skipped),
        Scored("box_precision", [*_claimed(every)], (answered, wanted)),
        Scored("box_recall", [*_wanted(every)]),
        Scored("role_accuracy", [*_roles(every)]),
        Scored("prompt_similarity", [_prompt(one) for one in every], graded=True),
    ]


def _with_roles(inputs: Sequence[Pixels], outputs: Sequence[Pixels]) -> list[RoleBox]:
    return [*(("input", box) for box in inputs), *(("output", box) for box in outputs)]


def _same(every: Sequence[Comparison]) -> Iterator[Item]:
    for one in every:
        for number, (_, box) in enumerate(one.wanted):
            other, score = one.pairs.get(number, (None, None))
            given = "" if other is None else shown(one.given[other][1])
            yield Item(one.thread, one.place, shown(box), given, score)


def _claimed(every: Sequence[Comparison]) -> Iterator[Item]:
    for one in every:
        right = {other: a for a, (other, shared) in one.pairs.items() if shared >= FOUND_FROM}
        for number, (_, box) in enumerate(one.given):
            expected = shown(one.wanted[right[number]][1]) if number in right else NO_BOX
            yield Item(one.thread, one.place, expected, shown(box), float(number in right))


def _wanted(every: Sequence[Comparison]) -> Iterator[Item]:
    for one in every:
        for number, (_, box) in enumerate(one.wanted):
            other, shared = one.pairs.get(number, (None, 0.0))
            given = NO_BOX if other is None else shown(one.given[other][1])
            score = float(shared >= FOUND_FROM) if one.found else None
            yield Item(one.thread, one.place, shown(box), given if one.found else "", score)


def _roles(every: Sequence[Comparison]) -> Iterator[Item]:
    for one in every:
        for number, (role, box) in enumerate(one.wanted):
            other, shared = one.pairs.get(number, (None, 0.0))
            paired = other is not None and shared >= FOUND_FROM
            given = one.given[other][0] if other is not None and paired else ""
            score = float(given == role) if paired else None
            yield Item(one.thread, f"{one.place} {shown(box)}", role, given, score)


def _prompt(one: Comparison) -> Item:
    read = one.found.prompt if one.found else None
    score = None if read is None else similarity(one.gold.prompt, read)
    return Item(one.thread, one.place, one.gold.prompt, read or "", score)
