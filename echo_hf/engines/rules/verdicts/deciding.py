"""Decide from everything that a comment says whether it speaks of success or of failure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from echo_hf.engines.rules.verdicts import failures
from echo_hf.engines.rules.verdicts.tones import COMPLAINTS, Said, Tone


class Verdict(NamedTuple):
    """What a comment says about the result.

    Attributes:
        verdict: success, failure, mixed or none.
        keyword: What failed, where it says so.
    """

    verdict: str
    keyword: str | None = None


NONE = Verdict("none")


def decide(said: Sequence[Said], *, contrast: bool) -> Verdict:
    """The verdict that the clauses of a comment make together.

    Args:
        said: What each says.
        contrast: Whether a word such as "but" stands between them.

    Returns:
        The verdict; none where nothing but amusement was found.
    """
    tones = {mark.tone for one in said for mark in one.marks}
    verdict = _verdict(said, tones, contrast=contrast)
    keyword = failure_of(said) if verdict in ("failure", "mixed") else None
    return Verdict(verdict, keyword)


def _verdict(said: Sequence[Said], tones: set[Tone], *, contrast: bool) -> str:
    if Tone.COMPLAINT in tones:
        return "mixed" if _praised_too(said, tones, contrast=contrast) else "failure"
    if not tones.isdisjoint({Tone.TEMPERED, Tone.SOFTENED}):
        return "mixed"
    if Tone.PRAISE in tones:
        doubted = Tone.WEAK_COMPLAINT in tones and contrast
        return "mixed" if doubted or Tone.HEDGED in tones else "success"
    if Tone.HEDGED in tones:
        return "mixed" if Tone.WEAK_PRAISE in tones else "failure"
    if Tone.WEAK_COMPLAINT in tones:
        return "failure"
    return "success" if Tone.WEAK_PRAISE in tones else "none"


def _praised_too(said: Sequence[Said], tones: set[Tone], *, contrast: bool) -> bool:
    if not tones.isdisjoint({Tone.PRAISE, Tone.TEMPERED}):
        return True
    if contrast and not tones.isdisjoint({Tone.WEAK_PRAISE, Tone.AMUSED}):
        return True
    # Weak praise counts where it stands apart from the complaint.
    return any((one.praises or _softens(one)) and not one.complains for one in said)


def _softens(one: Said) -> bool:
    return any(mark.tone is Tone.SOFTENED for mark in one.marks)


def failure_of(said: Sequence[Said]) -> str | None:
    """The most particular failure that a comment names; the first where there are several.

    Args:
        said: What each of its clauses says.

    Returns:
        The failure, null where none is named.
    """
    for one in said:
        if one.complains and (failure := next(_particular(one), None)):
            return failure
    named = [mark.failure for one in said for mark in one.marks if mark.failure]
    elsewhere = [topic for one in said if not one.praises for topic in one.topics]
    return next(iter([*named, *elsewhere]), None)


def _particular(one: Said) -> Iterator[str]:
    named = {mark.failure: None for mark in one.marks if mark.failure and mark.tone in COMPLAINTS}
    # "It doesn't look like gouache" is not about a person.
    unlike = failures.IDENTITY in named and failures.IDENTITY not in one.topics
    if unlike and failures.STYLE in one.topics:
        yield failures.STYLE
    about = (*one.topics, *one.nearby) if named.keys() <= failures.GENERAL else ()
    yield from (failure for failure in (*named, *about) if failure not in failures.GENERAL)
