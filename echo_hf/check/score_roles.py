"""How well pictures are told apart, and templates completed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from echo_hf.check.folded import folded
from echo_hf.check.found import Answered, FoundRoles
from echo_hf.check.gold_lines import PictureAt, RolesLine
from echo_hf.check.gold_posts import GoldPosts
from echo_hf.check.inputs import Key, Row, digest_of, sample_key
from echo_hf.check.measures import Item, Scored
from echo_hf.multimodal.roles import NOT_ASKED
from echo_hf.multimodal.shown import pictures_of


@dataclass(frozen=True)
class GoldRoles:
    """What people said about the pictures that a stage is shown of one sample, by their digests.

    Attributes:
        key: The sample.
        roles: Role of each picture.
        screenshots: For each screenshot the pictures that show it, one or several.
        completions: Pictures with the completed prompts that they show.
        places: What each picture is called, for whoever looks for a mistake.
        skipped: Pictures that nobody said anything about.
    """

    key: Key
    roles: Mapping[str, str]
    screenshots: tuple[frozenset[str], ...]
    completions: frozenset[Answered]
    places: Mapping[str, str]
    skipped: int = 0


def gold_roles(
    samples: Sequence[Row], lines: Sequence[RolesLine], posts: GoldPosts
) -> list[GoldRoles]:
    """What people said about the pictures that `roles` is shown.

    Args:
        samples: The rows it reads; of Trash and of samples without pictures it is shown nothing.
        lines: What people wrote down.
        posts: The posts.

    Returns:
        One for each sample with pictures.
    """
    by_key = {line.key: line for line in lines}
    # A picture that a sample does not use may stand in the line of another one of its thread.
    role_at = {
        (one.post_url, digest_of(one, posts)): one.role for line in lines for one in line.pictures
    }
    asked = (row for row in samples if row["quality"] != NOT_ASKED)
    made = (_of_sample(row, by_key[sample_key(row)], role_at, posts) for row in asked)
    return [one for one in made if one.places]


def score_roles(gold: Sequence[GoldRoles], found: Mapping[Key, FoundRoles]) -> list[Scored]:
    """Compares the roles of pictures.

    Args:
        gold: What people wrote down.
        found: What an engine said, by sample.

    Returns:
        The share of pictures with the right role, precision and recall of screenshots, the share
        of completions whose prompt is right, and how many of those that were made are.
    """
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
