"""Why a person has to look at a sample, and what does not become gold."""

from __future__ import annotations

from echo_hf.reasons.reason import Reason


class Review(Reason):
    """Why a person has to look at a sample before it is published: the values of `review`."""

    MAY_SHOW_MINOR = "may_show_minor", "a real person in one of its pictures may be under 18"
    PERSONAL_DATA = (
        "personal_data",
        "its prompt holds personal data, such as an e-mail address or the name of an account, or "
        "is too long to be searched for it",
    )
    IMAGE_METADATA = (
        "image_metadata",
        "what one of its images says beside its pixels, such as where it was taken, cannot be "
        "removed: whoever keeps the sample releases it",
    )
    REMOVED_EARLIER = (
        "removed_earlier",
        "a reviewer removed it, and its prompt or its inputs have changed since",
    )
    EDITED_EARLIER = (
        "edited_earlier",
        "a reviewer changed it, and its prompt or its inputs have changed since: that change is "
        "not in it",
    )
    EDITED_UNSCREENED = (
        "edited_unscreened",
        "a reviewer brought words or pictures into it that no safety model has seen, and nobody "
        "has kept it with them",
    )
    SECOND_LOOK = "second_look", "a reviewer left it to somebody else; the decision's note says why"


class NotGold(Reason):
    """Why a reviewed sample is not in the gold that is made of reviews."""

    NOT_REVIEWED = (
        "not_reviewed",
        "it, or another sample of its thread, was neither kept nor removed as it is now: gold "
        "speaks of whole threads",
    )
    COMPLETION = (
        "completion",
        "it, or another sample of its thread, completes a template, which is one sample in gold",
    )
    NOT_COPIED = (
        "not_copied",
        "its prompt, or that of another sample of its thread, has words that nobody wrote there",
    )
    SAME_PROMPT = (
        "same_prompt",
        "two samples of its thread have one prompt, which names a sample in gold",
    )
    NOT_IN_POSTS = "not_in_posts", "its thread is not in the files of posts that the config names"
    IN_SCREENSHOT = (
        "in_screenshot",
        "a sample of its thread has a screenshot, and no reviewer said of which layout: only its "
        "prompt and its quality are gold, not its pictures",
    )
