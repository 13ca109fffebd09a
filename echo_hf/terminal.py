"""What a run looks like in a terminal: stages, funnel, one thread beside its samples.

Posts are hostile: their text is shown as plain text, with control characters and markup disarmed.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow.compute as pc
from datasets import Dataset
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.status import Status as Spinner
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from echo_hf.engines.planner import Plan
from echo_hf.filling import FillStats
from echo_hf.funnel import headlines, losses
from echo_hf.stage_result import StageResult, StageStats

LONGEST_TEXT = 160
LONGEST_PLACE = 60
MOST_PLACES = 2


def plain(text: str | None, longest: int = LONGEST_TEXT) -> str:
    r"""Somebody's text, safe to print and no longer than asked.

    Args:
        text: Any text.
        longest: Most characters.

    Returns:
        The text on one line, without control and formatting characters.

    Example:
        >>> plain("a\x1b[31m red\n\u202eword", 12)
        'a[31m red w…'
    """
    shown = " ".join((text or "").split())
    shown = "".join(
        c for c in shown if not unicodedata.category(c).startswith("C") or c == "\u200d"
    )
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def places(result: StageResult, reason: str) -> str:
    """Where a stage met a reason: the first places, so that a user knows where to look.

    Args:
        result: What the stage made.
        reason: One of its reasons.

    Returns:
        Up to two places in brackets, or nothing where there is none.
    """
    noted = (parent for row in _with(result.notices, reason) for parent in row["_parent"])
    rows = (*_with(result.rejects, reason), *_with(result.quarantine, reason))
    every = dict.fromkeys([*(next(iter(row.values())) for row in rows), *noted])
    shown = [plain(place, LONGEST_PLACE) for place in list(every)[:MOST_PLACES]]
    more = ", ..." if len(every) > MOST_PLACES else ""
    return f" ({', '.join(shown)}{more})" if shown else ""


def _with(rows: Dataset, reason: str) -> list[dict[str, Any]]:
    table = rows.with_format("arrow")[:]
    some = table.filter(pc.equal(table["_reason"], reason)).slice(0, MOST_PLACES + 1)
    return list(some.to_pylist())


class Watch:
    """Shows a run while it goes on.

    Args:
        console: Where to print.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self.stats: list[StageStats] = []
        self._spinner: Spinner | None = None

    def finished(self, result: StageResult) -> None:
        """Prints a line for a finished stage, and one for each kind of loss."""
        self._stop()
        stats = result.stats
        self.stats.append(stats)
        line = Text.assemble(
            (f"{stats.stage:<10}", "bold"),
            f"{stats.rows_in:>9,} {stats.reads:<8} → {stats.kept:>9,} {stats.makes:<8}",
            (f"{stats.seconds:>8.1f} s", "dim"),
        )
        if stats.fill.requests:
            line.append(f"   {_calls(stats.fill)}", "dim")
        self.console.print(line)
        for reason, count, meaning in losses(stats):
            loss = f"{'':<10}{count:>9,} {reason}: {meaning}{places(result, reason)}"
            self.console.print(Text(loss, "dim"), soft_wrap=True)

    def planned(self, stage: str, plan: Plan) -> None:
        """Says what a stage is about to ask, where it asks anything."""
        if plan.calls:
            line = (
                f"{stage:<10}{plan.calls:>9,} calls to make, {plan.stored:,} answered before; "
                f"about {plan.prompt_tokens:,} prompt tokens ({plan.shared_tokens:,} shared), "
                f"{plan.pictures:,} pictures"
            )
            self.console.print(Text(line, "dim"), soft_wrap=True)

    def called(self, stats: FillStats) -> None:
        """Shows calls, rate, tokens and cost so far."""
        if self._spinner is None:
            self._spinner = self.console.status("")
            self._spinner.start()
        self._spinner.update(_calls(stats))

    def funnel(self) -> None:
        """Prints the paper's figures for the run."""
        self._stop()
        self.console.print()
        for sentence in headlines(self.stats):
            self.console.print(Text(sentence))

    def _stop(self) -> None:
        if self._spinner is not None:
            self._spinner.stop()
            self._spinner = None


def thread_beside_samples(
    thread: Mapping[str, Any], samples: Sequence[Mapping[str, Any]], width: int
) -> RenderableType:
    """One thread as a tree, and the samples it became.

    Args:
        thread: A row of `threads`.
        samples: The rows of `samples` that came from it.
        width: Columns of the terminal.

    Returns:
        The two beside each other, or below each other where the terminal is narrow.
    """
    half = width // 2 - 1 if width >= 100 else width
    left = Panel(_tree(thread), title="one thread", width=half, border_style="dim")
    right = Panel(Group(*map(_sample, samples)), title="became", width=half, border_style="dim")
    return Columns([left, right], padding=(0, 1)) if width >= 100 else Group(left, right)


def _tree(thread: Mapping[str, Any]) -> Tree:
    nodes: list[Tree] = []
    root: Tree | None = None
    for post in thread["posts"]:
        label = _post(post)
        if post["parent"] < 0 or root is None:
            root = Tree(label, guide_style="dim")
            nodes.append(root)
        else:
            nodes.append(nodes[post["parent"]].add(label))
    return root if root is not None else Tree(Text("(no post)"))


def _post(post: Mapping[str, Any]) -> Text:
    if post["missing"]:
        return Text(f"({post['missing'].replace('_', ' ')})", "dim italic")
    pictures = len(post["pictures"])
    shown = f" [{pictures} picture{'s' if pictures > 1 else ''}]" if pictures else ""
    author = Text(plain(post["author"], 24) + ": ", "bold")
    return author.append(plain(post["text"]), "not bold").append(shown, "cyan not bold")


def _sample(sample: Mapping[str, Any]) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    table.add_row("prompt", Text(plain(sample["prompt"], 400), "bold"))
    table.add_row("quality", Text(sample["quality"]))
    table.add_row("modified", Text("yes" if sample["prompt_modified"] else "no"))
    table.add_row("inputs", Text(str(len(sample["input_images"]))))
    table.add_row("outputs", Text(str(len(sample["output_images"]))))
    for said in sample["community_feedback"]:
        table.add_row("feedback", Text(plain(said["feedback"]), "italic"))
    table.add_row("id", Text(sample["id"], "dim"))
    return table


def _calls(stats: FillStats) -> str:
    rate = stats.calls / stats.seconds if stats.seconds else 0.0
    tokens = stats.usage.prompt + stats.usage.completion
    cost = "" if stats.cost_usd is None else f", ${stats.cost_usd:.2f}"
    cached = f", {100 * stats.usage.cached / stats.usage.prompt:.0f} % of prompts from cache"
    return (
        f"{stats.calls:,} calls ({rate:.0f}/s), {stats.store_hits:,} answered before, "
        f"{tokens:,} tokens{cached if stats.usage.cached else ''}{cost}"
    )
