"""What drawing looks like in a terminal: the plan, progress with rate and cost, the outcomes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from echo_hf.reasons import NoTask, NotTabled, Outcome
from echo_hf.systems.generate import Generated
from echo_hf.systems.journal import Entry
from echo_hf.systems.listing import Listed
from echo_hf.systems.plan import Plan
from echo_hf.thread_view import plain

LONGEST_REMARK = 400
SECONDS_BETWEEN_LINES = 30
UNKNOWN = "?"


class Show:
    """Shows systems at work; to be left as a context, so that the cursor comes back.

    Args:
        console: Where to print.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self._todo: dict[str, int] = {}
        self._bar: Progress | None = None
        self._last_line = self._free = time.monotonic()
        self._start("")

    def planned(self, plans: Sequence[Plan], left_out: Mapping[NoTask, int]) -> None:
        """Prints what is about to be drawn."""
        self._todo = {plan.system: len(plan.todo) for plan in plans}
        self._free = time.monotonic()
        self.console.print(plan_table(plans))
        for reason, count in sorted(left_out.items()):
            line = f"{count:,} samples left out, {reason}: {reason.meaning}"
            self.console.print(Text(line, "yellow"), soft_wrap=True)
        self.console.print()

    def drawn(self, system: str, entry: Entry) -> None:
        """Shows outcomes, rate and cost so far: a bar, or a line now and then in a file."""
        if system != self._system:
            self._start(system)
        self._outcomes[entry.outcome] += 1
        if entry.outcome == Outcome.FAILED:
            code = plain(entry.code or str(entry.stage), LONGEST_REMARK)
            self._failed.setdefault(code, []).append(entry.text or "")
        self._cost_usd += entry.cost_usd or 0.0
        done, said = sum(self._outcomes.values()), self._said()
        if self.console.is_terminal:
            self._show_bar(system, done, said)
        elif time.monotonic() - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            line = f"{system}: {done:,} of {self._todo.get(system, 0):,}, {said}"
            self.console.print(Text(line, "dim"), soft_wrap=True)

    def stopping(self, system: str, running: int) -> None:
        """Says what is still waited for."""
        self._stop()
        line = f"{system}: stopping; {running} under way are waited for and kept"
        self.console.print(Text(line, "yellow"), soft_wrap=True)

    def finished(self, system: str, said: str | None) -> None:
        """Prints a line where something was drawn, or went wrong."""
        self._stop()
        self._free = time.monotonic()
        if system == self._system:
            line = Text.assemble((system, "bold"), f": {self._said()}")
            self.console.print(line, soft_wrap=True)
            for code, texts in sorted(self._failed.items()):
                example = plain(texts[0], LONGEST_REMARK)
                self.console.print(
                    Text(f"  {len(texts)} failed, {code}: {example}", "yellow"), soft_wrap=True
                )
        if said is not None:  # why, the command's error says at the end
            self.console.print(Text(f"{system} was stopped", "red"), soft_wrap=True)

    def tabled(self, kept_back: Mapping[str, Mapping[NotTabled, int]]) -> None:
        """Prints how many outputs the table does not hold, and why."""
        for system, counts in kept_back.items():
            for reason, count in counts.items():
                line = f"{system}: {count:,} outputs not in the table, {reason}: {reason.meaning}"
                self.console.print(Text(line, "yellow"), soft_wrap=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def _start(self, system: str) -> None:
        # It has been at work since the one before it was done, not since its first output.
        self._system, self._began = system, self._free
        self._outcomes: Counter[Outcome] = Counter()
        self._failed: dict[str, list[str]] = {}
        self._cost_usd = 0.0

    def _said(self) -> str:
        outcomes = ", ".join(f"{count:,} {one}" for one, count in sorted(self._outcomes.items()))
        seconds = max(time.monotonic() - self._began, 1e-9)
        per_minute = 60 * sum(self._outcomes.values()) / seconds
        cost = f", ${self._cost_usd:.2f}" if self._cost_usd else ""
        return f"{outcomes} ({per_minute:.0f} a minute){cost}"

    def _show_bar(self, system: str, done: int, said: str) -> None:
        if self._bar is None:
            self._bar = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[said]}", markup=False),
                TimeRemainingColumn(),
                console=self.console,
                transient=True,
            )
            self._bar.add_task(system, total=self._todo.get(system), said="")
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=done, said=said)

    def _stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def plan_table(plans: Sequence[Plan]) -> Table:
    """What systems are about to do, as a table.

    Args:
        plans: One of each system.

    Returns:
        The table; `?` where nothing is known of a price or a time.
    """
    table = Table(box=None, pad_edge=False)
    table.add_column("system")
    for heading in ("to draw", "kept", "to draw anew", "about $", "about"):
        table.add_column(heading, justify="right")
    for plan in plans:
        cost = UNKNOWN if plan.cost_usd is None else f"{plan.cost_usd:.2f}"
        table.add_row(
            Text(plan.system, "bold"),
            f"{len(plan.todo):,}",
            f"{plan.stored:,}",
            f"{plan.stale:,}",
            cost,
            UNKNOWN if plan.seconds is None else str(timedelta(seconds=round(plan.seconds))),
        )
    return table


def system_table(systems: Sequence[Listed]) -> Table:
    """Systems as a table: what each stands for, and what is missing to run it.

    Args:
        systems: The systems.

    Returns:
        The table.
    """
    table = Table(box=None, pad_edge=False)
    for heading in ("system", "status", "stands for", "adapter", "$ a picture", "missing"):
        right = heading == "$ a picture"
        # A narrow terminal folds names rather than leave out what is missing.
        table.add_column(heading, justify="right" if right else "left", overflow="fold")
    for one in systems:
        table.add_row(
            Text(one.config.name, "bold"),
            one.config.status,
            Text(one.config.stands_for or "-"),
            Text(one.config.adapter),
            _price(one),
            _missing(one),
        )
    return table


def what_seeds_give(systems: Sequence[Listed]) -> Iterator[str]:
    """What the same seed gives, a line for each system that says so.

    Args:
        systems: The systems.

    Yields:
        The lines.
    """
    for one in systems:
        if one.determinism is not None:
            yield f"{one.config.name}, with the same seed: {one.determinism}"


def what_to_do(systems: Sequence[Listed]) -> Iterator[str]:
    """How what is missing to run systems is come by, a line for each kind of it.

    Args:
        systems: The systems.

    Yields:
        The lines; none where nothing is missing.
    """
    extras = sorted({one.extra for one in systems if one.extra})
    if extras:
        yield f'[{extras[0]}]: pip install "echo-hf[{extras[0]}]", and so on'
    if any(not is_set for one in systems for is_set in one.keys.values()):
        yield "a name in capitals: set this environment variable to your key"
    if any(one.no_folder for one in systems):
        yield "a folder: the file of the system says what belongs there"


def _price(one: Listed) -> str:
    if one.usd_per_image is not None:
        return f"{one.usd_per_image:.3f}"
    return UNKNOWN if one.config.price is None else "by tokens"


def _missing(one: Listed) -> Text:
    unset = [name for name, is_set in one.keys.items() if not is_set]
    parts = [f"[{one.extra}]"] if one.extra else []
    parts += [] if one.known else [f"no adapter {one.config.adapter!r} is installed"]
    parts += [*unset, *([f"folder {one.no_folder!r}"] if one.no_folder else [])]
    return Text(", ".join(parts), "yellow") if parts else Text("nothing", "green")


def outcome_table(generated: Generated) -> Table:
    """What became of the tasks of each system, as a table.

    Args:
        generated: The run.

    Returns:
        The table, with a column for each outcome that there is.
    """
    there = [one for one in Outcome if any(counts.get(one) for counts in _counts(generated))]
    table = Table(box=None, pad_edge=False)
    table.add_column("system")
    for outcome in there:
        table.add_column(outcome.value, justify="right")
    for system, counts in generated.outcomes.items():
        table.add_row(Text(system, "bold"), *(f"{counts.get(one, 0):,}" for one in there))
    return table


def _counts(generated: Generated) -> Sequence[Mapping[Outcome, int]]:
    return list(generated.outcomes.values())
