"""The sections about the metrics, the colors, and what the figures stand on."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from echo_hf._infra.text import BETTER, HIGHER
from echo_hf.reasons import MetricReason
from echo_hf.report.charts import (
    UNIT,
    Scale,
    axis,
    bar,
    distribution,
    dots,
    highest,
    histogram,
    plot,
    point,
    round_scale,
)
from echo_hf.report.markup import (
    NOTHING,
    Markup,
    count,
    element,
    interval,
    joined,
    number,
    plural,
    share,
)
from echo_hf.report.parts import (
    Column,
    Row,
    collapsible,
    failed_note,
    judge_name,
    name_of,
    note,
    section,
    table,
    titled,
)
from echo_hf.report.results import Metric, judges_of
from echo_hf.report.run_data import RunData
from echo_hf.report.thumbnails import MeanColors, Thumbnail, Thumbnails

FEWEST = 12  # fewer numbers are dots: a curve would claim more than they say
ABOUT = (
    "What people complained about, measured. Each shape is the distribution over samples; the dot "
    "is the metric itself with its interval at 95 %."
)
MEANINGS = {str(one): one.meaning for one in MetricReason}


def metrics(data: RunData) -> Markup | None:
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


SLICE = "xMidYMid slice"
INPUTS = ""  # in the place of a system's name
COLORS_ABOUT = (
    "Top: how often each level of red, green and blue is in a system's outputs, each image "
    "counted alike. Bottom: the mean color laid over one of the inputs, to see what it does."
)
Colors = Mapping[tuple[str, str], MeanColors]


def colors(data: RunData, colors: Colors, thumbnails: Thumbnails) -> Markup | None:
    splits = [split for split in data.splits if (split, INPUTS) in colors]
    shown = [_colors_split(data, split, colors, thumbnails) for split in splits]
    return section("colors", "Colors", shown, lead=COLORS_ABOUT) if shown else None


def _colors_split(data: RunData, split: str, found: Colors, thumbnails: Thumbnails) -> Markup:
    names = [name for name in (INPUTS, *data.systems) if (split, name) in found]
    top = max(highest(found[split, name].shares.tolist()) for name in names)
    inputs = (digest for sample in data.of_split(split) for digest in sample.inputs)
    image = next((thumbnails[one] for one in inputs if one in thumbnails), None)
    cards = [_card(name, found[split, name], top, image) for name in names]
    return joined(
        element("h3", titled(split)),
        element("div", cards, class_="swatches"),
        note("Red, green and blue from level 0 at the left to 255 at the right, all to one scale."),
    )


def _card(name: str, found: MeanColors, top: float, image: Thumbnail | None) -> Markup:
    said = ", ".join(number(level, 0) for level in found.mean)
    who = element("b", "Inputs") if name == INPUTS else name_of(name)
    return element(
        "figure",
        histogram(found.shares.tolist(), top),
        _overlay(found.hexadecimal, image),
        element(
            "figcaption",
            who,
            element("span", f"mean {said} · {plural(found.images, 'image')}", class_="small"),
        ),
        class_="swatch",
    )


def _overlay(color: str, thumbnail: Thumbnail | None) -> Markup:
    box = {"viewBox": "0 0 160 90", "preserveAspectRatio": SLICE}
    size = {"width": 160, "height": 90}
    image = thumbnail and element("image", href=thumbnail.source, **size, preserveAspectRatio=SLICE)
    return element(
        "svg",
        image or None,
        element("rect", **size, fill=color, fill_opacity="0.62" if thumbnail else "1"),
        **box,
        class_="overlay",
        role="img",
        aria_label=f"mean color {color} over an image",
    )


PROVENANCE_ABOUT = (
    "What became of every task that a system was given, and what each figure is made of."
)


def provenance(data: RunData) -> Markup:
    return section(
        "provenance",
        "Provenance",
        coverage_table(data),
        _left_out(data),
        _judges(data),
        collapsible("Definitions of all figures", _definitions(data)),
        collapsible("Systems and judges as configured", _json(data.settings)),
        collapsible("Benchmark", _json(data.results.benchmark.model_dump())),
        lead=PROVENANCE_ABOUT,
    )


def coverage_table(data: RunData) -> Markup:
    ended = Counter((system, one.outcome) for (_, system), one in data.outputs.items())
    outcomes = sorted({outcome for _, outcome in ended}, key=lambda one: (one != "ok", one))
    columns = (
        Column("System", "name"),
        Column(axis(UNIT), "plot", "share of samples with an image, drawn"),
        Column("Images"),
        *(Column(outcome, optional=True) for outcome in outcomes if outcome != "ok"),
        Column("not tried", optional=True),
    )
    rows = []
    for system in data.systems:
        counts = [ended[system, outcome] for outcome in outcomes]
        made, wanted = ended[system, "ok"], len(data.samples)
        part = made / wanted if wanted else None
        rows.append(
            [
                name_of(system),
                plot(Markup() if part is None else bar(UNIT, part), scale=UNIT),
                f"{count(made)} ({share(part)})",
                *(count(ended[system, one]) for one in outcomes if one != "ok"),
                count(wanted - sum(counts)),
            ]
        )
    return table("Outputs by system", columns, [rows])


def _left_out(data: RunData) -> Markup | None:
    said = [
        f"{count(number)} rows of {name}: {reason}"
        for name, counts in sorted(data.results.left_out.items())
        for reason, number in sorted(counts.items())
    ]
    return note("Rows that do not count: " + "; ".join(said) + ".") if said else None


def _judges(data: RunData) -> Markup | None:
    counts = Counter(
        (one.judge, one.value is not None) for some in data.ratings.values() for one in some
    )
    judges = sorted({judge for judge, _ in counts})
    if not judges:
        return None
    columns = (Column("Judge", "name"), Column("Ratings"), Column("Without a number"))
    rows = [
        [judge_name(one, data.failures), count(counts[one, True]), count(counts[one, False])]
        for one in judges
    ]
    return table("Ratings by judge", columns, [rows])


def _definitions(data: RunData) -> Markup:
    found: dict[str, list[str]] = {}
    for row in data.results.results:
        text = _text(row.definition)
        found.setdefault(text, []).append(
            f"{titled(row.split)}, {titled(row.metric)}, {row.system}"
        )
    return joined(
        [
            joined(
                element("p", "; ".join(dict.fromkeys(names)), class_="small"),
                element("pre", text, tabindex=0),
            )
            for text, names in found.items()
        ]
    )


def _json(value: Mapping[str, Any]) -> Markup:
    return element("pre", _text(value), tabindex=0)


def _text(value: Any) -> str:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, default=str)
