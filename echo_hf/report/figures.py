"""Figures for print: standalone SVG files with a style of their own."""

from __future__ import annotations

from collections.abc import Iterable

from echo_hf.report.charts.printed import printed_bars, printed_boxes
from echo_hf.report.parts import titled
from echo_hf.report.results_file import judges_of
from echo_hf.report.run_data import RunData
from echo_hf.scoring.board import BETTER, HIGHER
from echo_hf.scoring.judge_names import judge_names


def figures(data: RunData) -> dict[str, str]:
    """The figures of a run for print.

    Args:
        data: The run.

    Returns:
        SVG documents by name: win rates of each split as bars (figure 6), and each metric as
        boxes over samples (figure 8).
    """
    found: dict[str, str] = {}
    for split in data.splits:
        rates = data.results.rates(split)
        if rates is not None:
            every = ((name, rates.win_rate[name], rates.interval.get(name)) for name in rates.order)
            bars = [(name, rate, ends) for name, rate, ends in every if rate is not None]
            failed = _failed(data, rates.per_judge)
            found[f"win_rate_{split}"] = printed_bars(f"{titled(split)}: win rate", bars, failed)
        found |= _metrics(data, split)
    return found


def _metrics(data: RunData, split: str) -> dict[str, str]:
    found: dict[str, str] = {}
    metrics = data.results.details[split].metrics
    for metric in dict.fromkeys(one.metric for one in metrics):
        rows = [one for one in metrics if one.metric == metric]
        values = {
            one.system: [value for value in one.result.per_sample if value is not None]
            for one in rows
            if one.result is not None
        }
        boxes = [(name, values[name]) for name in data.systems if values.get(name)]
        if boxes:
            better = "higher" if BETTER.get(metric, HIGHER) == HIGHER else "lower"
            title = f"{titled(split)}: {titled(metric).lower()}, {better} is better"
            found[f"{metric}_{split}"] = printed_boxes(title, boxes, _failed(data, judges_of(rows)))
    return found


def _failed(data: RunData, judges: Iterable[str]) -> str:
    """Which of a figure's judges failed their audits."""
    named = ", ".join(judge_names(filter(data.failures.get, judges), data.failures))
    return f"judged by {named}" if named else ""
