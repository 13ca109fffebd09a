"""What the samples ask for, by type of task."""

from __future__ import annotations

from collections import Counter

from echo_hf.report.charts.marks import axis, bar, plot
from echo_hf.report.charts.scale import round_scale
from echo_hf.report.markup import Markup, element
from echo_hf.report.numbers import count, share
from echo_hf.report.parts import section, titled
from echo_hf.report.run_data import RunData
from echo_hf.report.tables import Column, table

UNKNOWN = "unknown"


def tasks(data: RunData) -> Markup:
    """Samples by task, split by split.

    Args:
        data: The run.

    Returns:
        The section.
    """
    cards = [element("div", _table(data, split), class_="card") for split in data.splits]
    return section("tasks", "Tasks", element("div", cards, class_="columns"))


def _table(data: RunData, split: str) -> Markup:
    counts = Counter(sample.task or UNKNOWN for sample in data.of_split(split))
    scale = round_scale(counts.values(), whole=True)
    columns = (
        Column("Task", "name"),
        Column(axis(scale), "plot", "samples, drawn"),
        Column("Samples"),
        Column("Share", optional=True),
    )
    rows = [
        [
            titled(task),
            plot(bar(scale, number), scale=scale),
            count(number),
            share(number / counts.total()),
        ]
        for task, number in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    ]
    return table(f"{titled(split)}: samples by task", columns, [rows])
