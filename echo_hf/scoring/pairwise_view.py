"""What judges chose between two outputs, in a terminal: a line for each judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.text import Text

from echo_hf.scores.pairwise_agreement import JudgeAgreement, PairwiseAgreement
from echo_hf.scores.sample_shares import Share
from echo_hf.scoring.judge_names import judge_names


def show_pairwise(
    console: Console, split: str, found: PairwiseAgreement, failed: Mapping[str, Sequence[str]]
) -> None:
    """Prints how the choices of each judge hold together, and agree with its ratings.

    Args:
        console: Where to print.
        split: Name of the split.
        found: The choices.
        failed: For each judge that failed its audit, the honeypots that it failed on.
    """
    console.print(Text(f"{split}: two outputs side by side, in both orders", "bold"))
    for name, one in zip(judge_names(found.judges, failed), found.judges.values(), strict=True):
        console.print(Text(f"{name}: {pairwise_line(one)}"), soft_wrap=True)
    console.print()


def pairwise_line(found: JudgeAgreement) -> str:
    """What is found of one judge, in a line.

    Args:
        found: The shares.

    Returns:
        The line, without the judge's name.
    """
    parts = (
        f"{found.pairs:,} pairs",
        f"same winner in both orders {_said(found.consistent)}",
        f"same place {_said(found.follows_position)}",
        f"agrees with its ratings {_said(found.agreement)}",
    )
    return ", ".join(parts)


def _said(share: Share) -> str:
    if share.value is None:
        return f"- ({share.reason})"
    if share.interval is None:
        return f"{share.value:.2f}"
    low, high = share.interval
    return f"{share.value:.2f} ({low:.2f} to {high:.2f})"
