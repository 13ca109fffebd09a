"""The card on people: whether authors stand in it, and what nobody has looked at yet."""

from __future__ import annotations

from echo_hf.hub.manifest import Manifest

HASHED_AUTHORS = (
    "Authors stand in it as keyed hashes: they tell whether two posts are by one person, and only "
    "who made the dataset has the key that tells which. Where the address of a post holds its "
    "author's name, there is no hash: it would be undone by that row."
)
NO_AUTHORS = "No author stands in it."
OPEN_REVIEWS = (
    "**Samples that a person still has to look at: {count:,}.** Their column `review` says why; "
    "until that is done this dataset is not for publication."
)
NO_OPEN_REVIEWS = (
    "No sample waits for a person: one does while a model says that a picture may show a minor, or "
    "while its prompt holds personal data, and nobody has decided about it."
)
UNSCREENED = (
    "**Samples that no safety model has looked at: {count:,}.** Expect some that are harmful."
)
ALL_SCREENED = (
    "A safety model has looked at every sample; column `safety` says what it found. What reviewers "
    "wrote or brought into one afterwards a person has looked at instead."
)


def screening_text(manifest: Manifest) -> str:
    """How many samples no safety model has looked at, in Markdown.

    Args:
        manifest: What was written.

    Returns:
        A paragraph.
    """
    unscreened = manifest.unscreened
    return UNSCREENED.format(count=unscreened) if unscreened else ALL_SCREENED


def people_text(manifest: Manifest) -> str:
    """Whether authors stand in it, and how many samples wait for a person, in Markdown.

    Args:
        manifest: What was written.

    Returns:
        A paragraph.
    """
    waiting = manifest.open_reviews
    authors = HASHED_AUTHORS if manifest.hashed_authors else NO_AUTHORS
    return f"{authors} {OPEN_REVIEWS.format(count=waiting) if waiting else NO_OPEN_REVIEWS}"
