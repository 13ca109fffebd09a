"""Say in front of a reviewer what a sample is fit for, and what to look at first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from echo_hf.reasons import Notice

Row = Mapping[str, Any]
SHORT_PROMPT, LONG_PROMPT = 3, 300  # words
MANY_INPUTS = 5
# What was noticed on the way and changes what the task is.
DOUBTFUL = frozenset(
    {
        Notice.TWO_ROLES,
        Notice.PICTURE_USED_TWICE,
        Notice.PICTURE_NOT_THERE,
        Notice.BLANK_LEFT,
        Notice.TEMPLATE_LEFT,
        Notice.NOT_COMPLETED,
        Notice.ASSUMED_CONVENTION,
        Notice.CLAMPED_BOX,
        Notice.DUPLICATE_BOX,
        Notice.REPLACED_INPUT,
        Notice.UNKNOWN_HAZARD,
        Notice.PARTS_DISAGREE,
        Notice.EDIT_NOT_APPLIED,
    }
)
PERSONAL = {
    "may_show_minor": "a real person in a picture may be under 18",
    "personal_data": "the prompt holds personal data, such as an address or an account's name",
    "image_metadata": "an image may say where it was taken, or by whom, and cannot be cleaned",
    "removed_earlier": "an earlier version of it was removed",
    "edited_earlier": "an earlier version of it was changed; that change is not in it",
    "edited_unscreened": "no safety model has seen what was brought in: is it harmless?",
    "second_look": "somebody left it to you: read their note",
}


class Verdict(StrEnum):
    """What a sample is fit for, in the order in which people should look."""

    MANUAL = "Manual review"
    BENCHMARK = "Benchmark"
    DISCARD = "Discard"


@dataclass(frozen=True)
class Triage:
    """What a sample is fit for, as far as rules can say.

    Attributes:
        verdict: Benchmark, Manual review or Discard.
        look_at: What a person should look at, the gravest first; empty where nothing is.
    """

    verdict: Verdict
    look_at: tuple[str, ...] = ()

    @property
    def turn(self) -> tuple[int, int]:
        """Whose turn it is earlier: those for manual review, and of them those with most to see."""
        return list(Verdict).index(self.verdict), -len(self.look_at)


def triage(
    row: Row, notices: Sequence[tuple[str, str | None]] = (), duplicate_of: str | None = None
) -> Triage:
    """Says what a sample is fit for.

    Discard: it is Trash, flagged with a hazard that is removed, or equal to another sample. Manual
    review: it is for the benchmark, or has something open, and there is something to look at.
    Benchmark: it is for the benchmark, and there is nothing. What is for analysis only and has
    nothing open is Discard with respect to the benchmark, and says so.

    Args:
        row: A row of samples.
        notices: What the stages noticed about it: reason and detail.
        duplicate_of: The sample that it equals, where that one stays.

    Returns:
        The verdict and what to look at.

    Example:
        >>> row = dict.fromkeys(["review", "safety", "screenshot", "input_images"])
        >>> row |= {"quality": "Benchmark", "prompt": "a fox in the snow", "output_images": ["x"]}
        >>> row |= {"prompt_modified": False, "prompt_fill_blank": False, "has_nsfw": False}
        >>> triage({**row, "safety": {"flagged": False}}).verdict.value
        'Benchmark'
        >>> triage(row)
        Triage(verdict=<Verdict.MANUAL: 'Manual review'>, look_at=('no safety model has seen it',))
    """
    lost = _lost(row, duplicate_of)
    open_reasons = [PERSONAL.get(one, one) for one in row["review"] or ()]
    if lost:
        return Triage(Verdict.DISCARD, (lost, *open_reasons))
    look_at = (*open_reasons, *_to_see(row), *_noticed(notices))
    if row["quality"] != "Benchmark" and not open_reasons:
        return Triage(Verdict.DISCARD, ("for analysis only: not in the benchmark", *look_at))
    return Triage(Verdict.MANUAL if look_at else Verdict.BENCHMARK, look_at)


def _lost(row: Row, duplicate_of: str | None) -> str | None:
    if row["quality"] not in ("Benchmark", "Analysis"):
        return "its quality is Trash: no clear task, off topic, or another model's"
    if row["has_nsfw"]:
        categories = ", ".join((row["safety"] or {}).get("categories") or ())
        return f"flagged by the safety model: {categories or 'no label'}"
    return f"equal to sample {duplicate_of}" if duplicate_of else None


def _to_see(row: Row) -> Iterator[str]:
    words = len((row["prompt"] or "").split())
    inputs = len(row["input_images"] or ())
    if row["screenshot"] and not row["is_screenshot"]:
        yield "its pictures stand in a screenshot that is not cut: draw the boxes"
    elif row["screenshot"]:
        yield "its pictures were cut from a screenshot: check the boxes"
    if row["safety"] is None:
        yield "no safety model has seen it"
    elif row["safety"]["flagged"]:
        yield f"hazards named: {', '.join(row['safety'].get('categories') or ()) or 'no label'}"
    if not row["output_images"]:
        yield "no output: nothing shows what the target made of it"
    if row["prompt_modified"]:
        yield "the prompt has words that nobody wrote in the thread"
    if row["prompt_fill_blank"]:
        yield "a template's blanks were filled in: compare with the output"
    if words < SHORT_PROMPT and not _unspaced(row["prompt"] or ""):
        yield f"a prompt of {words} word{'' if words == 1 else 's'}: is it the whole task?"
    if words > LONG_PROMPT:
        yield f"a prompt of {words} words: is all of it the task?"
    if inputs >= MANY_INPUTS:
        yield f"{inputs} inputs: is each of them given to the model?"


def _unspaced(prompt: str) -> bool:
    """Whether it is in a script that writes no spaces: its words cannot be counted so."""
    return any(
        "\u3040" <= letter <= "\u9fff" or "\uac00" <= letter <= "\ud7af" for letter in prompt
    )


def _noticed(notices: Sequence[tuple[str, str | None]]) -> Iterator[str]:
    known = {str(one): one for one in DOUBTFUL}
    for reason in dict.fromkeys(reason for reason, _ in notices):
        if reason in known:
            yield known[reason].meaning
