"""What a run looks like in a terminal: plans, progress, stages, losses, the funnel."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from echo_hf._infra.text import disarmed, plain
from echo_hf.builder.steps import STAGES, stage_class
from echo_hf.reasons import Failed, Notice, Reject, Unfetched

if TYPE_CHECKING:
    from echo_hf.collect.fetch import FetchStats
    from echo_hf.engines.base import Needs
    from echo_hf.engines.planner import Plan
    from echo_hf.pipeline.result import FillStats, StageResult, StageStats


KINDS = (Reject, Failed, Notice, Unfetched)
MEANINGS = {str(reason): reason.meaning for kind in KINDS for reason in kind}


def headlines(stats: Sequence[StageStats]) -> list[str]:
    """The paper's figures for a run: what each stage says of itself."""
    by_name = {one.stage: one for one in stats}
    said = (stage_class(name).headline(by_name) for name in STAGES if name in by_name)
    return [sentence for sentence in said if sentence]


def losses(one: StageStats) -> list[tuple[str, int, str]]:
    """Everything that a stage set aside or remarked on."""
    every = (one.rejected, one.quarantined, one.noted)
    return [
        (reason, count, MEANINGS.get(reason, ""))
        for kind in every
        for reason, count in kind.items()
    ]


LONGEST_PLACE = 60
LONGEST_REMARK = 400
MOST_PLACES = 2
SECONDS_BETWEEN_LINES = 30


class Terminal(Console):
    """Prints what posts and models wrote as it stands: what they write as markup is text."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "markup": False, "emoji": False, "highlight": False})

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """The pieces that are printed, without control characters that are not of our own."""
        for piece in super().render(renderable, options):
            yield piece if piece.control else piece._replace(text=disarmed(piece.text))

    def on_broken_pipe(self) -> None:
        """Goes on in silence, and says so where errors are read."""
        self.quiet = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        try:
            said = "nobody reads standard output any more: it is dropped, and the work goes on"
            print(f"echo-hf: {said}", file=sys.stderr, flush=True)
        except BrokenPipeError:  # both went into that pipe
            os.dup2(nowhere, sys.stderr.fileno())


class Watch:
    """Shows a run while it goes on; to be left as a context, so that the cursor comes back."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.stats: list[StageStats] = []
        self._calls_planned = 0
        self._bar: Progress | None = None
        self._last_line = time.monotonic()

    def planned(self, stage: str, plan: Plan) -> None:
        """Says what a stage is about to ask, where it asks anything."""
        self._calls_planned = plan.calls
        if plan.calls:
            cost = "" if plan.cost_usd is None else f", ${plan.cost_usd:.2f} and the answers"
            line = (
                f"{stage:<12}{plan.calls:>9,} calls to make, {plan.stored:,} answered before; "
                f"about {plan.prompt_tokens:,} prompt tokens ({plan.shared_tokens:,} shared), "
                f"{plan.pictures:,} pictures{cost}"
            )
            self.console.print(Text(line, "dim"), soft_wrap=True)

    def called(self, stats: FillStats) -> None:
        """Shows calls, rate, tokens and cost so far: a bar, or a line now and then in a file."""
        self._show("calls", stats.calls, self._calls_planned, calls(stats))

    def fetched(self, stats: FetchStats) -> None:
        """Shows pictures, rate and what could not be had so far."""
        self._show("pictures", stats.done, stats.total, fetches(stats))

    def compared(self, done: int, total: int) -> None:
        """Shows how many pictures were looked at for copies."""
        self._show("compared", done, total, "pictures looked at for copies")

    def noticed(self, remark: str) -> None:
        """Prints the remark."""
        self._stop()
        self.console.print(Text(f"note: {plain(remark, LONGEST_REMARK)}", "yellow"), soft_wrap=True)

    def finished(self, result: StageResult) -> None:
        """Shows a finished stage."""
        from echo_hf.tables import arrow_rows

        self._stop()
        self.stats.append(result.stats)
        aside = (result.rejects, result.quarantine, result.notices)
        self.show_stage(result.stats, [arrow_rows(rows) for rows in aside])

    def show_stage(self, stats: StageStats, aside: Sequence[pa.Table]) -> None:
        """Prints a line for a stage, and one for each kind of loss."""
        line = Text.assemble(
            (f"{stats.stage:<12}", "bold"),
            f"{stats.rows_in:>9,} {stats.reads:<8} → {stats.kept:>9,} {stats.makes:<8}",
            (f"{stats.seconds:>8.1f} s", "dim"),
        )
        if stats.fill.requests:
            line.append(f"   {calls(stats.fill)}", "dim")
        self.console.print(line, soft_wrap=True)
        for reason, count, meaning in losses(stats):
            loss = f"{'':<12}{count:>9,} {reason}: {meaning}{places(aside, reason)}"
            self.console.print(Text(loss, "dim"), soft_wrap=True)

    def funnel(self) -> None:
        """Prints the paper's figures for the run."""
        self.console.print()
        for sentence in headlines(self.stats):
            self.console.print(Text(sentence))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def _show(self, what: str, done: int, total: int, said: str) -> None:
        if self.console.is_terminal:
            self._show_bar(what, done, total, said)
        elif time.monotonic() - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            line = f"{'':<12}{done:,} of {total:,}: {said}" if total else f"{'':<12}{said}"
            self.console.print(Text(line, "dim"), soft_wrap=True)

    def _show_bar(self, what: str, done: int, total: int, said: str) -> None:
        if self._bar is not None and self._bar.tasks[0].description != what:
            self._stop()
        if self._bar is None:
            self._bar = Progress(
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[said]}", markup=False),
                TimeRemainingColumn(),
                console=self.console,
                transient=True,
            )
            self._bar.add_task(what, total=total or None, said="")
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=done, said=said)

    def _stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def engine_table(engines: Mapping[str, Needs]) -> Table:
    """The engines as a table: name, purpose, and whether it is ready or what installs it."""
    table = Table("engine", "for", "state", box=None, pad_edge=False)
    for name, needs in engines.items():
        state = Text("ready", "green")
        if needs.chooses:
            taken = needs.chooses()
            state = Text(f"takes {taken}", "green") if taken else Text("finds neither", "yellow")
        elif needs.missing:
            install = f'pip install "echo-hf[{needs.extra}]"'
            state = Text(f"{', '.join(needs.missing)} missing: {install}", "yellow")
        table.add_row(Text(name, "bold"), Text(needs.about), state)
    return table


def calls(stats: FillStats) -> str:
    """Calls, rate, tokens and cost in a few words."""
    usage = stats.usage
    rate = stats.calls / stats.seconds if stats.seconds else 0.0
    parts = [
        f"{stats.calls:,} calls ({rate:.0f}/s)",
        f"{stats.store_hits:,} answered before",
        f"{usage.prompt + usage.completion:,} tokens",
    ]
    if usage.cached and usage.prompt:
        parts.append(f"{100 * usage.cached / usage.prompt:.0f} % of prompts from cache")
    if stats.cost_usd is not None:
        parts.append(f"${stats.cost_usd:.2f}")
    if stats.stage_cost_usd is not None and stats.stage_cost_usd != stats.cost_usd:
        parts.append(f"${stats.stage_cost_usd:.2f} with earlier runs")
    return ", ".join(parts)


def fetches(stats: FetchStats) -> str:
    """Pictures, rate and losses of fetching in a few words."""
    rate = stats.fetched / stats.seconds if stats.seconds else 0.0
    lost = (f"{count:,} {reason}" for reason, count in sorted(stats.reasons.items()))
    parts = [f"{stats.fetched:,} pictures ({rate:.0f}/s)", f"{stats.known:,} known before", *lost]
    return ", ".join(parts)


def places(aside: Sequence[pa.Table], reason: str) -> str:
    """Where a stage met a reason: the first places, so that a user knows where to look."""
    rejects, quarantine, _ = aside
    keys = (rejects.column_names[0], quarantine.column_names[0], "_parent")
    every = dict.fromkeys(
        place for rows, key in zip(aside, keys, strict=True) for place in _places(rows, key, reason)
    )
    shown = [plain(place, LONGEST_PLACE) for place in list(every)[:MOST_PLACES]]
    more = ", ..." if len(every) > MOST_PLACES else ""
    return f" ({', '.join(shown)}{more})" if shown else ""


def _places(rows: pa.Table, column: str, reason: str) -> list[Any]:
    found = rows[column].filter(pc.equal(rows["_reason"], reason))
    if pa.types.is_list(found.type):
        found = pc.list_flatten(found)
    # Several remarks about one place are one place: cut the list only after that.
    return list(pc.unique(found).slice(0, MOST_PLACES + 1).to_pylist())
