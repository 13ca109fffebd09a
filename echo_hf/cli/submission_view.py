"""The screens of submissions: what one holds, and those that are open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from echo_hf._infra.console import make_table, say
from echo_hf._infra.text import clean
from echo_hf.submissions.described import Cells, list_counts, list_figures, list_places

if TYPE_CHECKING:
    from echo_hf.submissions.accept import AcceptedSubmission
    from echo_hf.submissions.requests import OpenSubmission
    from echo_hf.submissions.submit import SubmitResult


def show_submission(console: Console, done: SubmitResult) -> None:
    """Show what a submission holds, what is to be said of it, and where it went."""
    checked, submission = done.checked, done.submission
    held, asked = len(checked.images), checked.asked
    say(console, f"{submission.name}: outputs of {held:,} of {asked:,} samples", "bold")
    left_out = {str(reason): count for reason, count in checked.left_out.items()}
    _show(console, list_counts({**checked.counts, **left_out}))
    speech = checked.speech
    words = f"{speech.read:,} outputs read: no words speak to the judge"
    if speech.missing:
        words = f"words in outputs are not looked at: {speech.missing}"
    say(console, words, "dim")
    say(console, "sealed samples are not asked for", "dim")
    _show(console, list_figures(submission.figures))
    if done.url is not None:
        say(console, f"proposed: {done.url}")
        say(console, "its maintainers answer there; nothing is judged before they accept it")
    else:
        say(
            console,
            f"written: {done.path}" if done.path else "nothing was sent: leave out --dry-run",
        )


def _show(console: Console, cells: Cells) -> None:
    if cells.rows:
        rows = (map(clean, row) for row in cells.rows)
        console.print(make_table(*cells.heads, left=cells.heads[: cells.words], rows=rows))


def show_open(console: Console, listed: Sequence[OpenSubmission], failed: Sequence[str]) -> None:
    """Show the open submissions, what each waits for, and requests that cannot be read."""
    for problem in failed:
        say(console, clean(problem, 300), "bold")
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
    if done.placement is None:
        return
    cost = f"${done.cost_usd:.2f} in all"
    say(console, f"{done.placement.name} on {done.placement.tag}, {cost}", "bold")
    _show(console, list_places(done.placement))
    say(console, f"merge it by hand: {done.url}")
