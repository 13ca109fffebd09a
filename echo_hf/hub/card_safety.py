"""The card on safety and privacy: what was looked at, by whom, and what that misses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from echo_hf.curate.hazards import Hazard
from echo_hf.hub.facts import ReleaseFacts
from echo_hf.hub.markdown import escaped, table
from echo_hf.reasons import Notice

SAFETY = "safety"
PRIVACY = "privacy"
NOT_SCREENED = (
    "**No safety model has looked at these samples**: the build has no `safety` stage, so "
    "`has_nsfw` and `safety` are null, and nothing was removed for what it shows or says."
)
CLEANED = (
    "- What the files of images said beside their pixels is removed: EXIF but the orientation, "
    "GPS, XMP, IPTC, comments, texts, thumbnails, signatures. Colour profiles stay. The counts of "
    "the `privacy` stage say what was found in posted ones."
)
NOT_CLEANED = (
    "- **Images are the very bytes that were posted or drawn**, with what their files say beside "
    "the pixels, such as where they were taken and by whom: this build did not remove it."
)
RULES = (
    "**Plain rules stood in for a safety model.** Where they could not decide, as the counts of "
    "the `safety` stage say, `has_nsfw` and `safety` are null: nothing has looked at those samples."
)


class GuardCard(NamedTuple):
    """What a guard's own model card says of it.

    Attributes:
        source: Where it says so.
        rates: Recall and false positive rate by what was classified, in percent.
    """

    source: str
    rates: Mapping[str, tuple[int, int]]


GUARDS: Mapping[str, GuardCard] = {
    "meta-llama/Llama-Guard-4-12B": GuardCard(
        "https://github.com/meta-llama/PurpleLlama/blob/main/Llama-Guard4/12B/MODEL_CARD.md",
        {
            "English text": (69, 11),
            "text in seven other languages": (43, 3),
            "one picture": (41, 9),
            "several pictures": (61, 9),
        },
    ),
}


def safety_text(facts: ReleaseFacts) -> str:
    """What was done about unsafe samples, in Markdown.

    Args:
        facts: What the release says of itself.

    Returns:
        Paragraphs, and a table where the guard's recall is known.
    """
    if SAFETY not in facts.provenance:
        return NOT_SCREENED
    engine = facts.provenance[SAFETY].get("engine") or {}
    if engine.get("kind") == "rules":
        return f"{RULES}\n\n{_removed(facts)}"
    model = str(engine.get("model") or "an unnamed model")
    looked = (
        f"The `safety` stage asked {escaped(model)} about the text and the pictures of each "
        "sample, as the stage's counts above say. `safety` keeps every category that it named, "
        "removed or not; `has_nsfw` is true for the removed ones."
    )
    return "\n\n".join([looked, _removed(facts), _recall(model)])


def privacy_text(facts: ReleaseFacts) -> str:
    """What was done about personal data, in Markdown.

    Args:
        facts: What the release says of itself.

    Returns:
        A list.
    """
    masked = (
        "In `community_feedback` e-mail and IP addresses, numbers of phones, cards and bank "
        "accounts, keys of services and names of accounts are masked."
        if PRIVACY in facts.provenance
        else "**Feedback stands as it was posted**: the build has no `privacy` stage, which masks "
        "personal data."
    )
    return "\n".join(
        [
            "- `author` is a keyed hash of the account's name, equal for all samples of one author "
            "in this repository; who lacks the key can neither read the name nor test a guess. It "
            "is null where no key was set.",
            f"- {masked} Prompts are not masked, because that would change the task.",
            "- `review` says why a person has to look at a sample: it may show a minor, or its "
            "prompt holds personal data. It is empty when nothing is open.",
            NOT_CLEANED if facts.metadata_stripper is None else CLEANED + _kept_uncleaned(facts),
            "- `post_urls` lead to the posts, and so to their authors: that is how a post is named "
            "and found again when its author wants it removed. Faces in pictures are not masked.",
        ]
    )


def _kept_uncleaned(facts: ReleaseFacts) -> str:
    noted = facts.funnel.get(PRIVACY, {}).get("noted")
    count = noted.get(Notice.IMAGE_NOT_CLEANED, 0) if isinstance(noted, Mapping) else 0
    if not count:
        return ""
    return (
        f" **{count:,} could not be cleaned**: a sample with one is left out, unless a reviewer "
        "kept it with all that its file says."
    )


def _removed(facts: ReleaseFacts) -> str:
    counted = facts.funnel.get("splits", {}).get("rejected")
    if isinstance(counted, Mapping):
        number = f"{counted.get('flagged', 0):,} were taken out"
    else:
        number = "how many were taken out is unknown"
    if facts.removed_categories is None:
        categories = "which categories those are is not stated by this build"
    else:
        categories = ", ".join(map(_named, facts.removed_categories)) or "no category"
    return (
        f"Samples flagged with a category that is removed are in no config: {number}. Removed: "
        f"{categories}.{_kept(facts.removed_categories)}"
    )


def _named(category: str) -> str:
    meanings = {str(one): one.meaning for one in Hazard}
    return f"{escaped(category)} ({meanings.get(category, 'on no list of ours')})"


def _kept(removed: Sequence[str] | None) -> str:
    if removed is None or Hazard.INTELLECTUAL_PROPERTY in removed:
        return ""
    return (
        " S8 (intellectual property) is named and not removed: guards give it to requests in the "
        "style of a famous studio, which are a large part of what people do, and it is a question "
        "of licences, not of harm."
    )


def _recall(model: str) -> str:
    card = GUARDS.get(model)
    if card is None:
        return "How much this model misses is not known here: see what its own card says."
    rows: list[tuple[Any, ...]] = [
        (what, f"{recall} %", f"{wrong} %") for what, (recall, wrong) in card.rates.items()
    ]
    figures = table(["What it classifies", "Recall", "False positives"], rows, numbers=2)
    return (
        f"A guard misses much. Its own [model card]({card.source}) states, for a test set of its "
        f"makers:\n\n{figures}\n\nSo what it did not flag is not thereby safe."
    )
