"""The figures of a run in a terminal: the board of each split, and what people complain about."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter

from rich.console import Console
from rich.table import Table
from rich.text import Text

from echo_hf.auditing.flagged import KEY
from echo_hf.metrics import ColorShiftResult
from echo_hf.metrics.result import MetricResult
from echo_hf.reasons import Unscored
from echo_hf.scoring.judge_names import judge_names
from echo_hf.scoring.measured import Measured
from echo_hf.scoring.pairwise_view import show_pairwise
from echo_hf.scoring.score import Scores
from echo_hf.scoring.win_rates import SplitWinRates
from echo_hf.thread_view import plain

NOTHING = "-"
LONGEST = 40
HIGHER, LOWER = "↑", "↓"  # is better
BETTER = {
    "color_shift": LOWER,
    "face_identity": HIGHER,
    "structure_distance": LOWER,
    "text_rendering": HIGHER,
}


def show_scores(console: Console, scores: Scores) -> None:
    """Prints the figures of a run.

    Args:
        console: Where to print.
        scores: The figures.
    """
    for name, counts in sorted(scores.left_out.items()):
        for reason, count in sorted(counts.items()):
            line = f"{count:,} rows of {name} do not count, {reason}: {reason.meaning}"
            console.print(Text(line, "yellow"), soft_wrap=True)
    for split in scores.splits:
        if split.win_rates is not None:
            judges = ", ".join(judge_names(split.win_rates.rates.per_judge, scores.failed))
            said = f"{split.split}: win rate ({scores.protocol}), judged by {judges}"
            _show(console, said, win_rate_table(split.win_rates), why_not(split.win_rates))
        elif split.samples:
            said = f"{split.split}: no win rates, since no judge has rated an output of it\n"
            console.print(Text(said, "yellow"), soft_wrap=True)
        if split.pairwise is not None:
            show_pairwise(console, split.split, split.pairwise, scores.failed)
        if split.metrics:
            _show(
                console, f"{split.split}: what people complain about", metric_table(split.metrics)
            )
    directions = f"{HIGHER} higher, {LOWER} lower is better"
    console.print(Text(directions, "dim"))
    console.print(Text(f"results: {scores.path}"), soft_wrap=True)


def win_rate_table(found: SplitWinRates) -> Table:
    """Win rates with intervals and tiers, the best first.

    Args:
        found: The win rates of a split.

    Returns:
        The table.
    """
    rates = found.rates
    # Where nothing says how far others may differ, one tier for all would read as no difference.
    known = any(rates.interval.values())
    tier = {name: at for at, names in enumerate(found.tiers, 1) for name in names if known}
    table = Table(box=None, pad_edge=False)
    for heading in ("system", "win rate", "95 %", "tier", "coverage"):
        table.add_column(heading, justify="left" if heading == "system" else "right")
    for system, rate in rates.win_rate.items():
        table.add_row(
            Text(plain(system, LONGEST), "bold"),
            _number(rate),
            _interval(rates.interval[system]),
            str(tier.get(system, NOTHING)),
            _share(rates.coverage[system]),
        )
    return table


def why_not(found: SplitWinRates) -> list[str]:
    """Why systems have no win rate, or no interval, a line for each reason.

    Args:
        found: The win rates of a split.

    Returns:
        The lines; none where every number is there.
    """
    named: dict[Unscored, list[str]] = {}
    for system, reason in found.rates.reasons.items():
        named.setdefault(reason, []).append(plain(system, LONGEST))
    every = len(found.rates.win_rate)
    return [
        f"{'all systems' if len(systems) == every else ', '.join(systems)}: {reason}: "
        f"{reason.meaning}"
        for reason, systems in named.items()
    ]


def metric_table(metrics: Sequence[Measured]) -> Table:
    """The specialised metrics of each system, with the samples that they stand on.

    Args:
        metrics: Every metric of every system.

    Returns:
        The table: a line for each system below one for the metric, or one alone for a metric that
        nothing could be measured by.
    """
    table = Table("metric", box=None, pad_edge=False)
    for heading in ("value", "95 %", "samples"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("beside it")
    for metric, every in groupby(metrics, key=attrgetter("metric")):
        rows, title = list(every), Text(f"{metric} {BETTER[metric]}", "bold")
        if _same_for_all(rows):
            table.add_row(title, *_cells(rows[0]))
        else:
            table.add_row(title, "", "", "", Text(_failed(rows), "yellow"))
            for one in rows:
                table.add_row(Text(f"  {plain(one.system, LONGEST)}"), *_cells(one))
    return table


def _same_for_all(rows: Sequence[Measured]) -> bool:
    """Whether no system could be measured, all for the same reason."""
    return None not in {one.missing for one in rows} and len({one.missing for one in rows}) == 1


def _failed(rows: Sequence[Measured]) -> str:
    """The judges of a metric that failed their audits."""
    found = (one.result.definition.get(KEY, {}) for one in rows if one.result)
    failed = {judge: flags for one in found for judge, flags in one.items()}
    return ", ".join(judge_names(failed, failed))


def _cells(one: Measured) -> tuple[Text | str, ...]:
    result = one.result
    value = NOTHING if result is None else _number(result.value)
    interval = NOTHING if result is None else _interval(result.interval)
    counts = ", ".join(f"{count} {reason}" for reason, count in one.counts.items())
    beside = "" if result is None else _beside(result)
    said = "; ".join(filter(None, (one.missing, beside, counts)))
    covered = f"{one.n} of {one.about.samples}"
    return value, interval, covered, Text(said, "yellow" if one.missing else "")


def _beside(result: MetricResult) -> str:
    if not isinstance(result, ColorShiftResult) or result.tint.yellower.value is None:
        return ""
    tint = result.tint.yellower.value
    return f"{abs(tint):.1f} {'yellower' if tint >= 0 else 'bluer'}"


def _show(console: Console, title: str, table: Table, notes: Sequence[str] = ()) -> None:
    console.print(Text(title, "bold"), soft_wrap=True)
    console.print(table)
    for note in notes:
        console.print(Text(note, "dim"), soft_wrap=True)
    console.print()


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3f}"


def _interval(interval: tuple[float, float] | None) -> str:
    return NOTHING if interval is None else f"{interval[0]:.3f} to {interval[1]:.3f}"


def _share(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.0f} %"
