"""What the figures stand on: coverage, what was left out, and every definition."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from echo_hf.report.charts.marks import axis, bar, plot
from echo_hf.report.charts.scale import UNIT
from echo_hf.report.markup import Markup, element, joined
from echo_hf.report.numbers import count, share
from echo_hf.report.parts import folded, judge_name, name_of, note, section, titled
from echo_hf.report.run_data import RunData
from echo_hf.report.tables import Column, table

ABOUT = "What became of every task that a system was given, and what each figure is made of."


def provenance(data: RunData) -> Markup:
    """Coverage and definitions.

    Args:
        data: The run.

    Returns:
        The section.
    """
    return section(
        "provenance",
        "Provenance",
        coverage_table(data),
        _left_out(data),
        _judges(data),
        folded("Definitions of all figures", _definitions(data)),
        folded("Systems and judges as configured", _json(data.settings)),
        folded("Benchmark", _json(data.results.benchmark.model_dump())),
        lead=ABOUT,
    )


def coverage_table(data: RunData) -> Markup:
    """What became of each system's tasks.

    Args:
        data: The run.

    Returns:
        The table.
    """
    ended = Counter((system, one.outcome) for (_, system), one in data.outputs.items())
    outcomes = sorted({outcome for _, outcome in ended}, key=lambda one: (one != "ok", one))
    columns = (
        Column("System", "name"),
        Column(axis(UNIT), "plot", "share of samples with a picture, drawn"),
        Column("Pictures"),
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
    """Every definition once, with the figures that it is of."""
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
