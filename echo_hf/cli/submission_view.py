"""The screens of submissions: what one holds, and those that are open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from echo_hf._infra.console import make_table, say
from echo_hf._infra.text import clean, format_interval, format_rounded

if TYPE_CHECKING:
    from echo_hf.submissions.accept import AcceptedSubmission
    from echo_hf.submissions.requests import OpenSubmission
    from echo_hf.submissions.submit import SubmitResult


def show_submission(console: Console, done: SubmitResult) -> None:
    """Show what a submission holds, what is to be said of it, and where it went."""
    checked, submission = done.checked, done.submission
    held, asked = len(checked.images), checked.asked
    say(console, f"{submission.name}: outputs of {held:,} of {asked:,} samples", "bold")
    table = make_table("what", "count", "meaning", left=("meaning",))
    for remark, samples in checked.remarks.items():
        table.add_row(str(remark), f"{len(samples):,}", remark.meaning)
    for kind, count in checked.metadata.items():
        table.add_row(f"metadata_{kind}", f"{count:,}", "removed from so many files")
    for reason, count in checked.left_out.items():
        table.add_row(str(reason), f"{count:,}", reason.meaning)
    if table.row_count:
        console.print(table)
    speech = checked.speech
    words = f"{speech.read:,} outputs read: no words speak to the judge"
    if speech.missing:
        words = f"words in outputs are not looked at: {speech.missing}"
    say(console, words, "dim")
    say(console, "sealed samples are not asked for", "dim")
    if submission.figures:
        table = make_table("split", "metric", "value", "95 %", "n", left=("split", "metric"))
        for row in submission.figures:
            ends = None if row.low is None or row.high is None else (row.low, row.high)
            cells = format_rounded(row.value), format_interval(ends), f"{row.n or 0:,}"
            table.add_row(clean(row.split), clean(row.metric), *cells)
        console.print(table)
    if done.url is not None:
        say(console, f"proposed: {done.url}")
        say(console, "its maintainers answer there; nothing is judged before they accept it")
    else:
        say(
            console,
            f"written: {done.path}" if done.path else "nothing was sent: leave out --dry-run",
        )


def show_open(console: Console, listed: Sequence[OpenSubmission]) -> None:
    """Show the open submissions, and what each waits for."""
    if not listed:
        say(console, "no submission is open")
        return
    table = make_table("number", "title", "by", "state", left=("title", "by", "state"))
    for row in listed:
        cells = (row.request.title, row.request.author, row.state)
        table.add_row(str(row.request.number), *(clean(cell, 60) for cell in cells))
    console.print(table)
    hint = "`echo-hf schedule CONFIG --once` checks and answers; --accept N has one judged"
    say(console, hint, "dim")


def show_placement(console: Console, done: AcceptedSubmission) -> None:
    """Show the place of an accepted submission, and what is left to do."""
    if done.unread:
        say(console, f"words in its outputs were not looked at: {done.unread}", "yellow")
    if done.placement is None:
        return
    say(console, f"{done.placement.name} on {done.placement.tag}, ${done.cost_usd:.2f}", "bold")
    table = make_table("split", "strength", "95 %", "place", "samples")
    for name, split in done.placement.splits.items():
        place = "-" if split.rank is None else f"{split.rank} of {split.systems}"
        cells = (
            format_rounded(split.strength),
            format_interval(split.ends),
            place,
            f"{split.rated:,}",
        )
        table.add_row(clean(name), *cells)
    console.print(table)
    say(console, f"merge it by hand: {done.url}")
