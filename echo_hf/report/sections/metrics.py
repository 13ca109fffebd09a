"""The four metrics as distributions over samples (figure 8)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter

from echo_hf.reasons import MetricReason
from echo_hf.report.charts.marks import axis, distribution, dots, plot, point
from echo_hf.report.charts.scale import Scale, round_scale
from echo_hf.report.markup import Markup, element, joined
from echo_hf.report.numbers import NOTHING, interval, number
from echo_hf.report.parts import failed_note, name_of, note, section, titled
from echo_hf.report.results_file import Metric, judges_of
from echo_hf.report.run_data import RunData
from echo_hf.report.tables import Column, Row, table
from echo_hf.scoring.board import BETTER, HIGHER

FEWEST = 12  # fewer numbers are dots: a curve would claim more than they say
ABOUT = (
    "What people complained about, measured. Each shape is the distribution over samples; the dot "
    "is the metric itself with its interval at 95 %."
)
MEANINGS = {str(one): one.meaning for one in MetricReason}


def metrics(data: RunData) -> Markup | None:
    """Every metric of every split.

    Args:
        data: The run.

    Returns:
        The section; null where nothing was to be measured.
    """
    shown = [_split(data, name) for name in data.splits if data.results.details[name].metrics]
    return section("metrics", "Metrics", shown, lead=ABOUT) if shown else None


def _split(data: RunData, name: str) -> Markup:
    found = groupby(data.results.details[name].metrics, key=attrgetter("metric"))
    order = {system: at for at, system in enumerate(data.systems)}
    cards = []
    for metric, unordered in found:
        rows = sorted(unordered, key=lambda one: order.get(one.system, len(order)))
        cards.append(metric_card(metric, rows, failed_note(judges_of(rows), data.failures)))
    return joined(element("h3", titled(name)), element("div", cards, class_="cards"))


def metric_card(metric: str, rows: Sequence[Metric], warned: Markup | None = None) -> Markup:
    """One metric of all systems.

    Args:
        metric: Its name.
        rows: The metric of each system.
        warned: What is to be said of its judges; null for nothing.

    Returns:
        A table with a distribution in each row, or why there is none.
    """
    higher = BETTER.get(metric, HIGHER) == HIGHER
    title = joined(
        titled(metric),
        " ",
        element("span", "higher is better" if higher else "lower is better", class_="direction"),
    )
    missing = {one.missing for one in rows}
    if len(missing) == 1 and None not in missing:
        why = note("Not measured: ", missing.pop())
        return element("div", element("h4", title), why, class_="card")
    return element("div", warned, _table(title, rows), _counts(rows), class_="card")


def _table(title: Markup, rows: Sequence[Metric]) -> Markup:
    scale = scale_of(rows)
    columns = (
        Column("System", "name"),
        Column(axis(scale), "plot", "distribution over samples, drawn"),
        Column("Value"),
        Column("95 %", optional=True),
        Column("Samples", optional=True),
    )
    return table(title, columns, [[_row(one, scale) for one in rows]], "metric")


def scale_of(rows: Sequence[Metric]) -> Scale:
    """An axis that holds every number of every system.

    Args:
        rows: The metric of each system.

    Returns:
        The axis.
    """
    found = [one.result for one in rows if one.result]
    values = [value for one in found for value in one.per_sample if value is not None]
    values += [one.value for one in found if one.value is not None]
    values += [end for one in found if one.interval for end in one.interval]
    return round_scale(values)


def _row(one: Metric, scale: Scale) -> Row:
    if one.result is None:
        return name_of(one.system), one.missing or NOTHING, NOTHING, NOTHING, "0"
    values = [value for value in one.result.per_sample if value is not None]
    shape = len(values) >= FEWEST and len(set(values)) > 1
    marks = distribution(scale, values) if shape else dots(scale, values)
    return (
        name_of(one.system),
        plot(marks, point(scale, one.result.value, one.result.interval), scale=scale),
        element("b", number(one.result.value)),
        interval(one.result.interval),
        f"{one.result.n} of {len(one.samples)}",
    )


def _counts(rows: Sequence[Metric]) -> Markup | None:
    """How many samples have no number, by reason, where there are any."""
    said = [
        f"{one.system}: " + ", ".join(f"{count} {reason}" for reason, count in one.counts.items())
        for one in rows
        if one.counts
    ]
    reasons = sorted({reason for one in rows for reason in one.counts})
    meant = [f"{reason}: {MEANINGS[reason]}" for reason in reasons if reason in MEANINGS]
    return note("; ".join([*said, *meant])) if said else None
