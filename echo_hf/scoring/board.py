"""The figures of a run in a terminal: the board of each split, and what people complain about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter

from rich.console import Console
from rich.table import Table
from rich.text import Text

from echo_hf.metrics import ColorShiftResult
from echo_hf.metrics.result import MetricResult
from echo_hf.scoring.picture_metrics import Measured
from echo_hf.scoring.score import Scores
from echo_hf.scoring.win_rates import SplitWinRates

NOTHING = "-"
EVERY = "every system"
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
            judges = ", ".join(split.win_rates.rates.per_judge)
            said = f"{split.split}: win rate ({scores.protocol}), judged by {judges}"
            _show(console, said, win_rate_table(split.win_rates))
        if split.metrics:
            _show(
                console, f"{split.split}: what people complain about", metric_table(split.metrics)
            )
    console.print(Text(f"results: {scores.path}"), soft_wrap=True)


def win_rate_table(found: SplitWinRates) -> Table:
    """Win rates with intervals and tiers, the best first.

    Args:
        found: The win rates of a split.

    Returns:
        The table.
    """
    rates = found.rates
    tier = {name: at for at, names in enumerate(found.tiers, 1) for name in names}
    table = Table(box=None, pad_edge=False)
    for heading in ("system", "win rate", "95 %", "tier", "coverage"):
        table.add_column(heading, justify="left" if heading == "system" else "right")
    for system, rate in rates.win_rate.items():
        table.add_row(
            Text(system, "bold"),
            _number(rate),
            _interval(rates.interval[system]),
            str(tier.get(system, NOTHING)),
            _share(rates.coverage[system]),
        )
    return table


def metric_table(metrics: Sequence[Measured]) -> Table:
    """The specialised metrics of each system, with the share of samples that they stand on.

    Args:
        metrics: Every metric of every system.

    Returns:
        The table, a line for each metric and system.
    """
    table = Table(box=None, pad_edge=False)
    for heading in ("metric", "system", "value", "95 %", "coverage", "beside it"):
        left = heading in ("metric", "system", "beside it")
        table.add_column(heading, justify="left" if left else "right")
    for metric, rows in groupby(metrics, key=attrgetter("metric")):
        heading = f"{metric} {BETTER[metric]}"
        for one in _told(list(rows)):
            table.add_row(heading, *_cells(one))
            heading = ""
    return table


def _told(rows: list[Measured]) -> list[Measured]:
    """The rows of a metric; one for all where no system can be measured, for the same reason."""
    missing = {one.missing for one in rows}
    if None in missing or len(missing) > 1:
        return rows
    return [replace(rows[0], system=EVERY)]


def _cells(one: Measured) -> tuple[Text | str, ...]:
    name = Text(one.system, "bold")
    if one.result is None:
        return name, NOTHING, NOTHING, _share(0.0), Text(one.missing or "", "yellow")
    result = one.result
    interval, coverage = _interval(result.interval), _share(result.coverage)
    return name, _number(result.value), interval, coverage, Text(_beside(result))


def _beside(result: MetricResult) -> str:
    if isinstance(result, ColorShiftResult):
        yellower = result.tint.yellower.value
        return "" if yellower is None else f"{yellower:+.1f} yellower"
    return ", ".join(f"{count} {reason}" for reason, count in result.counts.items())


def _show(console: Console, title: str, table: Table) -> None:
    console.print(Text(title, "bold"), soft_wrap=True)
    console.print(table)
    console.print()


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3f}"


def _interval(interval: tuple[float, float] | None) -> str:
    return NOTHING if interval is None else f"{interval[0]:.3f} to {interval[1]:.3f}"


def _share(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.0f} %"
