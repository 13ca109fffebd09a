"""Progress of a run in a terminal: plans, bars, stages, rows left out, the funnel."""

from __future__ import annotations

import datetime
import logging
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Self

import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

from echo_hf._infra.console import SEE_MORE, say, say_under
from echo_hf._infra.text import clean, pluralize
from echo_hf.config.sections import BUILT_IN_STAGES, STAGES
from echo_hf.engines.base import Failed
from echo_hf.pipeline.progress import ALREADY_REPORTED, ProgressListener
from echo_hf.reasons import count_unusable, find_meaning
from echo_hf.tables import Outcome

if TYPE_CHECKING:
    from echo_hf.pipeline.result import StageStats

MAX_PLACE_CHARACTERS = 60
MAX_REMARK_CHARACTERS = 400
MAX_ANSWER_CHARACTERS = 160
MAX_PLACES = 2
MAX_REASONS = 5
FAILED_SHARE_SHOWN = 0.2  # a share of a stage's requests
FAILURE_REASONS = frozenset(map(str, Failed))
NOT_FAILURES = frozenset({Failed.NEEDS_MODEL, Failed.NOT_ANSWERED})
SECONDS_BETWEEN_LINES = 30

logger = logging.getLogger(__name__)


class LeftOutRows(NamedTuple):
    """The keys of rows that do not go on, or are damaged, for one reason."""

    rows: str
    reason: str
    keys: pa.Array  # which is a tenth of what Python's own texts take

    @property
    def is_failure(self) -> bool:
        return self.reason in FAILURE_REASONS and self.reason not in NOT_FAILURES

    def __str__(self) -> str:
        return pluralize(len(self.keys), self.rows.removesuffix("s"))


class TerminalProgress(ProgressListener):
    """Shows a run in a terminal while it goes on; a context manager that restores the cursor.

    Without details, of all stages only those are shown that failed, or called a model; the second
    not where a verb sums up the calls itself.
    """

    def __init__(
        self, console: Console, *, details: bool = True, sums_up_calls: bool = False
    ) -> None:
        self.console, self.details, self._sums_up_calls = console, details, sums_up_calls
        self.stats: list[StageStats] = []
        self._losses: list[LeftOutRows] = []
        self._totals: dict[str, int] = {}
        self._bar: Progress | None = None
        self._last_line = time.monotonic()

    def report_start(self, part: str, total: int, plan: object) -> None:
        self._totals[part] = total
        if self.details and (description := str(plan)):
            say(self.console, f"{part:<12}{description}", "dim")

    def report_progress(
        self, part: str, done: int, stats: object, total: int | None = None
    ) -> None:
        total = self._totals.get(part, 0) if total is None else total
        if self.console.is_terminal:
            self._show_bar(part, done, total, str(stats))
        elif time.monotonic() - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            share = f"{done:,} of {total:,}: " if total else ""
            say(self.console, f"{'':<12}{share}{stats}", "dim")

    def report_wait(self, host: str, seconds: float) -> None:
        until = datetime.datetime.now().astimezone() + datetime.timedelta(seconds=seconds)
        self._stop()
        message = f"{host} asks to wait {seconds:,.0f} s: going on at {until:%H:%M:%S}"
        say(self.console, message, "dim")

    def report_notice(self, notice: str) -> None:
        self._stop()
        logger.info("note: %s", notice, extra=ALREADY_REPORTED)
        say_under(self.console, "note:", clean(notice, MAX_REMARK_CHARACTERS), "yellow")

    def report_result(self, result: object) -> None:
        from echo_hf.pipeline.result import StageResult
        from echo_hf.tables import arrow_rows

        self._stop()
        if not isinstance(result, StageResult):
            entries = getattr(result, "entries", ())  # of a system: what became of each task
            if self.details or not entries or any(entry.outcome != Outcome.OK for entry in entries):
                say(self.console, str(result))
            return
        self.stats.append(result.stats)
        aside = (result.rejects, result.quarantine, result.notices)
        tables = [arrow_rows(rows) for rows in aside]
        self._losses += list_losses(result.stats, tables)
        self.show_stage(result.stats, tables)

    def show_stage(self, stats: StageStats, aside: Sequence[pa.Table]) -> None:
        cause, unusable = find_commonest_failure(stats, aside[1]), count_unusable(stats.quarantined)
        calls = 0 if self._sums_up_calls else stats.fill.calls
        if not (self.details or cause or unusable or calls):
            return
        self.show_line(stats)
        for counts in (stats.rejected, stats.quarantined, stats.noted) if self.details else ():
            for reason, count in counts.items():
                rows = len(select_keys(aside, reason)) or count
                times = f" ({count:,} times)" if rows < count else ""
                places = format_reason_places(aside, reason)
                meaning = f"{reason}: {find_meaning(reason)}{times}{places}"
                say_under(self.console, f"{'':<12}{rows:>9,}", meaning, "dim")
        if cause:
            say_under(self.console, f"{'':<11}", cause, "yellow")
        if unusable:
            message = f"{pluralize(unusable, 'answer')} cannot be used: --again asks anew"
            say(self.console, f"{'':<12}{message}", "yellow")

    def show_line(self, stats: StageStats) -> None:
        line = Text.assemble(
            (f"{stats.stage:<12}", "bold"),
            f"{stats.rows_in:>9,} {stats.reads:<8} → {stats.kept:>9,} {stats.makes:<8}",
            (f"{stats.seconds:>8.1f} s", "dim"),
        )
        if stats.fill.requests:
            line.append(f"   {stats.fill}", "dim")
        self.console.print(line, soft_wrap=True)

    def collect_losses(self) -> list[LeftOutRows]:
        """Return the rows that do not go on by reason: failures first, then the commonest."""
        keys: dict[tuple[str, str], list[pa.Array]] = {}
        for loss in self._losses:
            keys.setdefault((loss.rows, loss.reason), []).append(loss.keys)
        losses = [LeftOutRows(*pair, merge_keys(parts)) for pair, parts in keys.items()]
        return sorted(losses, key=lambda loss: (not loss.is_failure, -len(loss.keys)))

    def show_losses(self, losses: Sequence[LeftOutRows]) -> None:
        """Show the first reasons why rows do not go on; failures are yellow."""
        for loss in losses[:MAX_REASONS]:
            number, _, rows = str(loss).partition(" ")
            message = f"{loss.reason}: {find_meaning(loss.reason)}{format_places(loss.keys)}"
            style = "yellow" if loss.is_failure else "dim"
            say_under(self.console, f"{number:>9} {rows:<8}", message, style)
        if others := losses[MAX_REASONS:]:
            other_rows = sum(len(loss.keys) for loss in others)
            reasons = pluralize(len(others), "other reason")
            say(self.console, f"{other_rows:>9,} more, for {reasons}: {SEE_MORE}", "dim")

    def list_headlines(self) -> list[str]:
        """Return the sentence of each stage that gives the figures of the paper."""
        by_name = {stage_stats.stage: stage_stats for stage_stats in self.stats}
        known = [STAGES.find(name) for name in by_name if name in STAGES.list_names()]
        headlines = (stage.headline(by_name) for stage in known)
        return [sentence for sentence in headlines if sentence]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def _show_bar(self, what: str, done: int, total: int, text: str) -> None:
        bar = self._bar  # which a lost node, noticed in another thread, may take away meanwhile
        if bar is not None and bar.tasks[0].description != what:
            self._stop()
            bar = None
        if bar is None:
            bar = self._bar = Progress(
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[said]}", markup=False),
                TimeRemainingColumn(),
                console=self.console,
                transient=True,
            )
            bar.add_task(what, total=total or None, said="")
            bar.start()
        bar.update(bar.task_ids[0], completed=done, said=text)

    def _stop(self) -> None:
        bar, self._bar = self._bar, None
        if bar is not None:
            bar.stop()


def list_losses(stats: StageStats, aside: Sequence[pa.Table]) -> list[LeftOutRows]:
    """List what a stage rejected or failed on, and damage of the records that are taken in."""
    lost = {**stats.rejected, **stats.quarantined}
    lost |= stats.noted if stats.stage == BUILT_IN_STAGES[0] else {}
    return [LeftOutRows(stats.reads, name, select_keys(aside, name)) for name in lost]


def find_commonest_failure(stats: StageStats, quarantine: pa.Table) -> str | None:
    """Describe the commonest failure of a stage where over a fifth of its calls failed."""
    counts = {name: n for name, n in stats.quarantined.items() if name not in NOT_FAILURES}
    failed = sum(counts.values())
    if failed <= FAILED_SHARE_SHOWN * (stats.fill.requests or stats.rows_in):
        return None
    name = max(counts, key=counts.__getitem__)
    failed_rows = quarantine.filter(pc.equal(quarantine["_reason"], name))
    example = clean(next(iter(failed_rows["_detail"].to_pylist()), None), MAX_ANSWER_CHARACTERS)
    quote = f", such as {example!r}" if example else ""
    return f"{failed:,} failed, {counts[name]:,} of them {name} ({find_meaning(name)}){quote}"


def select_keys(aside: Sequence[pa.Table], reason: str) -> pa.Array:
    """Return the keys of the rows that have a reason, each once."""
    rejects, quarantine, _ = aside
    columns = (rejects.column_names[0], quarantine.column_names[0], "_parent")
    keys = []
    for rows, column in zip(aside, columns, strict=True):
        of_reason = rows[column].filter(pc.equal(rows["_reason"], reason))
        is_list = pa.types.is_list(of_reason.type)
        keys.append(pc.list_flatten(of_reason) if is_list else of_reason)
    return merge_keys(keys)


def merge_keys(parts: Iterable[pa.Array | pa.ChunkedArray]) -> pa.Array:
    """Return each key of several columns once, in the order of arrival."""
    columns = [part if isinstance(part, pa.Array) else part.combine_chunks() for part in parts]
    return pc.unique(
        pa.chunked_array([column.cast(pa.string()) for column in columns], pa.string())
    )


def format_reason_places(aside: Sequence[pa.Table], reason: str) -> str:
    """Format the first places where a stage gave a reason."""
    return format_places(select_keys(aside, reason))


def format_places(keys: pa.Array) -> str:
    places = [clean(key, MAX_PLACE_CHARACTERS) for key in keys[:MAX_PLACES].to_pylist()]
    ellipsis = ", ..." if len(keys) > MAX_PLACES else ""
    return f" ({', '.join(places)}{ellipsis})" if places else ""
