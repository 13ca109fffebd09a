"""How well images are told apart, templates completed, and screenshots taken apart."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import linear_sum_assignment

from echo_hf.builder.gold.folder import GoldPosts
from echo_hf.builder.gold.inputs import (
    Answered,
    FoundRoles,
    FoundScreenshot,
    Key,
    Row,
    digest_of,
    sample_key,
)
from echo_hf.builder.gold.lines import PictureAt, RolesLine, ScreenshotLine, folded
from echo_hf.builder.gold.measures import Item, Scored, similarity
from echo_hf.samples.boxes import Pixels, intersection_over_union, shown
from echo_hf.samples.roles import NOT_ASKED
from echo_hf.samples.shown_images import pictures_of


@dataclass(frozen=True)
class GoldRoles:
    """What people said about the pictures that a stage is shown of one sample, by their digests."""

    key: Key
    roles: Mapping[str, str]
    screenshots: tuple[frozenset[str], ...]
    completions: frozenset[Answered]
    places: Mapping[str, str]
    skipped: int = 0


def gold_roles(
    samples: Sequence[Row], lines: Sequence[RolesLine], posts: GoldPosts
) -> list[GoldRoles]:
    """What people said about the pictures that `roles` is shown."""
    by_key = {line.key: line for line in lines}
    # A picture that a sample does not use may stand in the line of another one of its thread.
    role_at = {
        (one.post_url, digest_of(one, posts)): one.role for line in lines for one in line.pictures
    }
    asked = (row for row in samples if row["quality"] != NOT_ASKED)
    made = (_of_sample(row, by_key[sample_key(row)], role_at, posts) for row in asked)
    return [one for one in made if one.places]


def score_roles(gold: Sequence[GoldRoles], found: Mapping[Key, FoundRoles]) -> list[Scored]:
    """Compares the roles of pictures."""
    answered = [(one, found[one.key]) for one in gold if one.key in found]
    shots = _covered(gold, found, [len(one.screenshots) for one in gold])
    blanks = _covered(gold, found, [len(one.completions) for one in gold])
    skipped = sum(one.skipped for one in gold)
    return [
        Scored("picture_role_accuracy", [*_roles(gold, found)], skipped=skipped),
        Scored("screenshot_precision", [*_claimed_shots(answered)], shots),
        Scored("screenshot_recall", [*_wanted_shots(gold, found)]),
        Scored("completion_precision", [*_claimed_completions(answered)], blanks),
        Scored("blanks_filled", [*_wanted_completions(gold, found)]),
    ]


def _of_sample(
    sample: Row, line: RolesLine, role_at: Mapping[tuple[str, str | None], str], posts: GoldPosts
) -> GoldRoles:
    urls = {one.sha256: sample["context"][one.post]["url"] for one in pictures_of(sample)}
    places = {digest: _place(url, digest, posts) for digest, url in urls.items()}
    roles = {
        digest: role_at[url, digest] for digest, url in urls.items() if (url, digest) in role_at
    }
    chat = [line.conversation, *line.duplicates_of_conversation] if line.conversation else []
    groups = (_shown(some, urls, posts) for some in (chat, [line.collage]))
    filled = [(digest_of(one.output, posts), folded(one.prompt)) for one in line.filled]
    return GoldRoles(
        sample_key(sample),
        roles,
        tuple(group for group in groups if group),
        frozenset((digest, prompt) for digest, prompt in filled if digest and digest in urls),
        places,
        len(urls) - len(roles),
    )


def _place(url: str, digest: str, posts: GoldPosts) -> str:
    placed = posts.pictures[url]
    return f"{url} picture {placed.index(digest) if digest in placed else digest}"


def _shown(
    pictures: Sequence[PictureAt | None], shown: Collection[str], posts: GoldPosts
) -> frozenset[str]:
    found = (digest_of(one, posts) for one in pictures if one)
    return frozenset(digest for digest in found if digest and digest in shown)


def _covered(
    gold: Sequence[GoldRoles], found: Mapping[Key, FoundRoles], counts: Sequence[int]
) -> tuple[int, int]:
    answered = (n for one, n in zip(gold, counts, strict=True) if one.key in found)
    return sum(answered), sum(counts)


def _roles(gold: Sequence[GoldRoles], found: Mapping[Key, FoundRoles]) -> Iterator[Item]:
    for one in gold:
        mine = found.get(one.key)
        for digest, role in one.roles.items():
            given = mine.role_of(digest) if mine else ""
            score = float(given == role) if mine else None
            yield Item(one.key[0], one.places[digest], role, given, score)


def _claimed_shots(answered: Sequence[tuple[GoldRoles, FoundRoles]]) -> Iterator[Item]:
    for one, mine in answered:
        known = frozenset[str]().union(*one.screenshots)
        for digest in mine.screenshots:
            expected = "screenshot" if digest in known else "no screenshot"
            place = one.places.get(digest, digest)
            yield Item(one.key[0], place, expected, "screenshot", float(digest in known))


def _wanted_shots(gold: Sequence[GoldRoles], found: Mapping[Key, FoundRoles]) -> Iterator[Item]:
    for one in gold:
        mine = found.get(one.key)
        for group in one.screenshots:
            place = min(one.places[digest] for digest in group)
            seen = mine is not None and not group.isdisjoint(mine.screenshots)
            given = "screenshot" if seen else "no screenshot"
            yield Item(one.key[0], place, "screenshot", given, float(seen) if mine else None)


def _claimed_completions(answered: Sequence[tuple[GoldRoles, FoundRoles]]) -> Iterator[Item]:
    for one, mine in answered:
        for digest, prompt in mine.completions:
            expected = _prompt_of(digest, one.completions) or "no completion"
            score = float((digest, prompt) in one.completions)
            yield Item(one.key[0], one.places.get(digest, digest), expected, prompt, score)


def _wanted_completions(
    gold: Sequence[GoldRoles], found: Mapping[Key, FoundRoles]
) -> Iterator[Item]:
    for one in gold:
        mine = found.get(one.key)
        for digest, prompt in one.completions:
            given = _prompt_of(digest, mine.completions) if mine else ""
            score = float((digest, prompt) in mine.completions) if mine else None
            yield Item(one.key[0], one.places[digest], prompt, given, score)


def _prompt_of(digest: str, completions: Collection[Answered]) -> str:
    return next((prompt for one, prompt in sorted(completions) if one == digest), "")


FOUND_FROM = 0.5
NO_BOX = "no box"
RoleBox = tuple[str, Pixels]


@dataclass(frozen=True)
class Comparison:
    """A screenshot as people took it apart, and as an engine did."""

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
        """For boxes that people drew, by number, the engine's and how far the two are the same."""
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
    """Puts what an engine said beside what people wrote down."""
    line_of = {(posts.root_of[line.post_url], digest_of(line, posts)): line for line in lines}
    keyed = [(row, (sample_key(row)[0], row["screenshot"])) for row in samples]
    made = [
        Comparison(key[0], line_of[key], found.get(row["id"]))
        for row, key in keyed
        if key in line_of
    ]
    return made, len(samples) - len(made)


def score_screenshots(every: Sequence[Comparison], skipped: int = 0) -> list[Scored]:
    """Compares boxes, roles and prompts."""
    wanted = sum(len(one.wanted) for one in every)
    answered = sum(len(one.wanted) for one in every if one.found)
    return [
        Scored("box_iou", [*_same(every)], graded=True, skipped=skipped),
        Scored("box_precision", [*_claimed(every)], (answered, wanted)),
        Scored("box_recall", [*_wanted(every)]),
        Scored("role_accuracy", [*_screenshot_roles(every)]),
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


def _screenshot_roles(every: Sequence[Comparison]) -> Iterator[Item]:
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
