"""Terminal output of the Hub's own board, and of the benchmarks that the Hub lists."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from echo_hf._infra.console import SEE_MORE, make_table, say, show_table
from echo_hf._infra.text import clean, pluralize
from echo_hf.hub.hub_board import FiledResult, HubBoard, ListedBenchmark, Standing

MAX_ROWS = 15
MAX_NAME = 40
STYLES = {Standing.VERIFIED: "green", Standing.DIFFERS: "red"}


def show_hub_board(console: Console, board: HubBoard) -> None:
    """Print what was filed on the Hub, each beside what a release says to it."""
    rows = board.rows if getattr(console, "details", False) else board.rows[:MAX_ROWS]
    table = make_table(
        *("rank", "model", "task", "value", "standing", "released"),
        left=("model", "task", "standing", "released"),
        rows=map(_make_cells, rows),
    )
    notes = [f"{count:,} {name}: {Standing(name).meaning}" for name, count in board.counts.items()]
    if len(rows) < len(board.rows):
        notes.append(f"{len(board.rows) - len(rows):,} more rows: {SEE_MORE}")
    if board.not_read:
        notes.append(f"{pluralize(board.not_read, 'further model')} on the board were not read")
    show_table(console, f"{board.repo_id} on the Hub", table, notes)
    for tag, problem in board.unreadable.items():
        say(console, f"tag {clean(tag)} verifies nothing: {clean(problem)}", "yellow")


def _make_cells(row: FiledResult) -> Sequence[str | Text]:
    rates = sorted({f"{rate:.4f}" for rate in (row.released or {}).values()})
    model = clean(row.model, MAX_NAME) + (f" (request {row.request})" if row.request else "")
    standing = str(row.standing).replace("_", " ")
    return (
        "-" if row.rank is None else str(row.rank),
        model,
        clean(row.task, MAX_NAME) or "-",
        "-" if row.value is None else f"{row.value:.4g}",
        Text(standing, STYLES.get(row.standing, "")),
        f"{' or '.join(rates)} in {clean(row.tag, MAX_NAME)}" if rates else "-",
    )


def show_benchmarks(console: Console, benchmarks: Sequence[ListedBenchmark], others: int) -> None:
    """Print the Hub's benchmarks that are releases of echo-hf; others are counted."""
    table = make_table(
        *("dataset", "its release"),
        left=("its release",),
        rows=(
            (clean(listed.repo_id), clean(listed.problem) if listed.problem else "can be loaded")
            for listed in benchmarks
        ),
    )
    show_table(console, "benchmarks that the Hub lists", table, [f"{others:,} more of others"])
    say(console, "next: echo-hf leaderboard --hub --repo-id ORG/NAME")
