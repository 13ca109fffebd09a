"""The figures of a run in a terminal: the board of each split, and what people complain about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from echo_hf.metrics import ColorShiftResult
from echo_hf.metrics.result import MetricResult
from echo_hf.scoring.picture_metrics import Measured
from echo_hf.scoring.score import Scores, SplitScores
from echo_hf.scoring.win_rates import SplitWinRates

NOTHING = "-"
DIRECTION = {
    "color_shift": "lower is better, in levels of 0 to 255",
    "face_identity": "higher is better, -1 to 1",
    "structure_distance": "lower is better, from 0",
    "text_rendering": "higher is better, 0 to 1",
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
            console.print(win_rate_table(split, split.win_rates, scores.protocol))
        if split.metrics:
            console.print(metric_table(split))
        for line in missing_lines(split.metrics):
            console.print(Text(line, "yellow"), soft_wrap=True)
    console.print(Text(f"\nresults: {scores.path}"), soft_wrap=True)


def win_rate_table(split: SplitScores, found: SplitWinRates, protocol: str) -> Table:
    """Win rates with intervals and tiers, the best first.

    Args:
        split: The split.
        found: Its win rates.
        protocol: Whose arithmetic it is.

    Returns:
        The table.
    """
    rates = found.rates
    tier = {name: at for at, names in enumerate(found.tiers, 1) for name in names}
    judges = ", ".join(rates.per_judge)
    table = _table(f"{split.split}: win rate ({protocol}), judged by {judges}")
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


def metric_table(split: SplitScores) -> Table:
    """The specialised metrics of each system, with the number of samples that they stand on.

    Args:
        split: The split.

    Returns:
        The table, a line for each metric and system.
    """
    table = _table(f"{split.split}: what people complain about")
    for heading in ("metric", "system", "value", "95 %", "coverage", "beside it"):
        left = heading in ("metric", "system", "beside it")
        table.add_column(heading, justify="left" if left else "right")
    last = None
    for one in split.metrics:
        result = one.result
        table.add_row(
            "" if one.metric == last else one.metric,
            Text(one.system, "bold"),
            NOTHING if result is None else _number(result.value),
            NOTHING if result is None else _interval(result.interval),
            _share(0.0 if result is None else result.coverage),
            "" if result is None else _beside(result),
        )
        last = one.metric
    return table


def missing_lines(metrics: Sequence[Measured]) -> Iterator[str]:
    """What has to be installed for the metrics that have no value, a line each.

    Args:
        metrics: Every metric of every system.

    Yields:
        The lines.
    """
    missing = {one.metric: one.missing for one in metrics if one.missing is not None}
    yield from (f"{name}: {said}" for name, said in missing.items())


def directions(metrics: Sequence[Measured]) -> Mapping[str, str]:
    """What is better, for each metric that has a value."""
    return {one.metric: DIRECTION[one.metric] for one in metrics if one.result is not None}


def _beside(result: MetricResult) -> str:
    if isinstance(result, ColorShiftResult):
        yellower = result.tint.yellower.value
        return "" if yellower is None else f"{yellower:+.1f} yellower"
    counts = ", ".join(f"{count} {reason}" for reason, count in result.counts.items())
    return counts


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3f}"


def _interval(interval: tuple[float, float] | None) -> str:
    return NOTHING if interval is None else f"{interval[0]:.3f} to {interval[1]:.3f}"


def _share(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.0f} %"
