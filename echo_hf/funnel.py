"""The funnel: what each stage was given, kept and lost, and why (sections 3.1 and 4)."""

from __future__ import annotations

from collections.abc import Sequence

from echo_hf.reasons import Failed, Notice, Reject
from echo_hf.stage_result import StageStats

MEANINGS = {str(reason): reason.meaning for kind in (Reject, Failed, Notice) for reason in kind}


def share(part: int, whole: int) -> str:
    """A share as the paper prints it.

    Args:
        part: Count of the part.
        whole: Count of the whole.

    Returns:
        Whole percent, or a dash when there is nothing to divide.

    Example:
        >>> share(32_000, 68_000), share(0, 0)
        ('47 %', '-')
    """
    return f"{100 * part / whole:.0f} %" if whole else "-"


def headlines(stats: Sequence[StageStats]) -> list[str]:
    """The paper's figures for a run: yield of the relevance filter, shares of each quality.

    Args:
        stats: Stats of the stages that have run, in order.

    Returns:
        One sentence a stage.
    """
    by_name = {one.stage: one for one in stats}
    said = [
        _collected(by_name.get("collect")),
        _relevant(by_name.get("relevance"), by_name.get("threads")),
        _sampled(by_name.get("extract")),
        _split(by_name.get("splits")),
    ]
    return [sentence for sentence in said if sentence]


def losses(one: StageStats) -> list[tuple[str, int, str]]:
    """Everything that a stage set aside or remarked on.

    Args:
        one: Stats of a stage.

    Returns:
        Reason, number of times, meaning; rejects first, then quarantine, then notices.
    """
    every = (one.rejected, one.quarantined, one.noted)
    return [
        (reason, count, MEANINGS.get(reason, ""))
        for kind in every
        for reason, count in kind.items()
    ]


def _collected(one: StageStats | None) -> str | None:
    if one is None:
        return None
    merged = f", {one.tally['merged']:,} seen more than once" if one.tally.get("merged") else ""
    return f"{one.kept:,} posts collected from {one.rows_in:,} records{merged}"


def _relevant(scored: StageStats | None, threads: StageStats | None) -> str | None:
    if scored is None:
        return None
    of_score = {score: scored.tally.get(f"score_{score}", 0) for score in range(1, 6)}
    passed, asked = of_score[4] + of_score[5], sum(of_score.values())
    kept = ""
    if threads:
        posts = threads.tally.get("posts", 0)
        kept = f"; {threads.kept:,} threads with {posts:,} posts stay"
    return f"{passed:,} of {asked:,} scored posts are relevant ({share(passed, asked)}){kept}"


def _sampled(one: StageStats | None) -> str | None:
    if one is None:
        return None
    qualities = ("Benchmark", "Analysis", "Trash")
    shares = [f"{share(one.tally.get(name, 0), one.kept)} {name}" for name in qualities]
    return f"{one.kept:,} samples extracted: {', '.join(shares)}"


def _split(one: StageStats | None) -> str | None:
    if one is None:
        return None
    names = ("image_to_image", "text_to_image", "analysis")
    counts = [f"{one.tally.get(name, 0):,} {name}" for name in names]
    return f"{', '.join(counts)} samples released"
