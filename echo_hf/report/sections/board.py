"""The board: win rates with intervals and tiers, each pair, each judge, and how sure it all is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from echo_hf.reasons import IgnoredRating, Unscored
from echo_hf.report.charts.marks import axis, plot, point
from echo_hf.report.charts.scale import UNIT
from echo_hf.report.markup import Markup, element, joined
from echo_hf.report.numbers import NOTHING, interval, number, plural, share
from echo_hf.report.parts import (
    breakable,
    failed_note,
    folded,
    judge_name,
    name_of,
    note,
    section,
    titled,
)
from echo_hf.report.results_file import Rates, Split, WinRates
from echo_hf.report.run_data import RunData
from echo_hf.report.sections.robustness import robustness, side_by_side
from echo_hf.report.tables import Column, Row, heat_cell, table

MEANINGS = {str(one): one.meaning for one in (*Unscored, *IgnoredRating)}
ABOUT = (
    "A win rate is the share of comparisons with the other systems that a system wins, from 0 to "
    "1; a tie is half a win. Systems of one tier do not differ by the test that is named below."
)


def board(data: RunData) -> Markup:
    """The win rates of each split.

    Args:
        data: The run.

    Returns:
        The section.
    """
    return section("win-rates", "Win rates", [_split(data, one) for one in data.splits], lead=ABOUT)


def _split(data: RunData, name: str) -> Markup:
    split, rates = data.results.details[name], data.results.rates(name)
    heading = element("h3", titled(name))
    if rates is None or split.win_rate is None:
        return joined(heading, note("No judge has rated an output of this split."))
    return joined(
        heading,
        failed_note(list(rates.per_judge), data.failures),
        main_table(rates, split.win_rate),
        _notes(rates, split.win_rate),
        element(
            "div",
            element("div", pair_table(rates)),
            element("div", judge_table(rates, data)),
            class_="beside",
        ),
        folded("How sure is the order?", _how_sure(split, rates, data)),
    )


def _how_sure(split: Split, rates: Rates, data: RunData) -> Markup:
    asked = split.pairwise if split.pairwise and split.pairwise.judges else None
    return joined(
        robustness(rates, split.win_rate) if split.win_rate else None,
        side_by_side(asked, data.failures) if asked else None,
    )


def tiers_of(rates: Rates, found: WinRates) -> list[list[str]]:
    """Systems in tiers, the best first, and those without a rate at the end.

    Args:
        rates: The win rates.
        found: The same with their tiers.

    Returns:
        Names of systems; a single group where nothing says how far others may differ.
    """
    every = list(rates.order)
    if not any(rates.interval.values()):
        return [every]
    tiers = [[system for system in tier if system in every] for tier in found.tiers.tiers]
    named = {system for tier in tiers for system in tier}
    others = [system for system in every if system not in named]
    return [tier for tier in (*tiers, others) if tier]


def main_table(rates: Rates, found: WinRates) -> Markup:
    """Win rates with their intervals, in tiers.

    Args:
        rates: The win rates.
        found: The same with their tiers.

    Returns:
        The table.
    """
    known = any(rates.interval.values())
    columns = (
        Column("System", "name"),
        Column(axis(UNIT), "plot", "win rate, drawn from 0 to 1"),
        Column("Win rate"),
        Column("95 %", optional=True),
        Column("Tier"),
        Column("Coverage", optional=True),
    )
    groups = [
        [_system_row(system, rates, str(at) if known else NOTHING) for system in tier]
        for at, tier in enumerate(tiers_of(rates, found), 1)
    ]
    return table("Win rate by system", columns, groups, "board")


def _system_row(system: str, rates: Rates, tier: str) -> Row:
    value, ends = rates.win_rate[system], rates.interval.get(system)
    return (
        name_of(system),
        plot(point(UNIT, value, ends), scale=UNIT, at=0.5),
        element("b", number(value)),
        interval(ends),
        tier if value is not None else NOTHING,
        share(rates.coverage.get(system)),
    )


def _notes(rates: Rates, found: WinRates) -> Markup:
    definition = rates.definition
    drawn = definition.get("interval")
    kind = drawn.get("kind") if isinstance(drawn, Mapping) else None
    said = [
        f"Protocol {definition.get('protocol')}: vote by {definition.get('vote')}, mean over "
        f"{definition.get('average')}, missing outputs: {definition.get('missing')}. "
        f"Interval: {kind or 'none'}. Tiers: {found.tiers.definition.get('test', 'not tested')}.",
        *_why_not(rates),
    ]
    return joined([note(one) for one in said])


def _why_not(rates: Rates) -> Iterator[str]:
    """Why systems have no rate or no interval, a sentence for each reason."""
    named: dict[str, list[str]] = {}
    for system, reason in rates.reasons.items():
        named.setdefault(reason, []).append(system)
    for reason, systems in named.items():
        who = "All systems" if len(systems) == len(rates.win_rate) else ", ".join(systems)
        yield f"{who}: {reason}, {MEANINGS.get(reason, 'no further meaning is known')}."
    for reason, ratings in rates.ignored.items():
        said = plural(ratings, "rating does", "ratings do")
        yield f"{said} not count in win rates: {reason}, {MEANINGS.get(reason, NOTHING)}."


def pair_table(rates: Rates) -> Markup:
    """The share of points that each system won from each other one.

    Args:
        rates: The win rates.

    Returns:
        A table with coloured cells: blue where the system of the row wins.
    """
    systems = rates.order
    columns = [Column("", "name", "System"), *(Column(breakable(one), "heat") for one in systems)]
    rows = [[name_of(one), *(_pair(one, other, rates) for other in systems)] for one in systems]
    return table("Each pair: share that the row wins from the column", columns, [rows], "heatmap")


def _pair(one: str, other: str, rates: Rates) -> Markup:
    if one == other:
        return element("td", class_="heat self")
    value = rates.matrix.get(one, {}).get(other)
    pairs = rates.pairs.get(one, {}).get(other, 0)
    title = f"{one} wins {number(value, 2)} of {plural(pairs, 'comparison')} with {other}"
    return heat_cell(value, value, number(value, 2), title)


def judge_table(rates: Rates, data: RunData) -> Markup:
    """Win rates by each judge alone.

    Args:
        rates: The win rates.
        data: The run.

    Returns:
        The table, with a flag at judges that failed their audits.
    """
    judges = list(rates.per_judge)
    heads = [Column(judge_name(judge, data.failures), "heat") for judge in judges]
    rows = [
        [name_of(system), *(_by_judge(system, judge, rates.per_judge) for judge in judges)]
        for system in rates.order
    ]
    caption = "Each judge alone: win rate"
    return table(caption, [Column("System", "name"), *heads], [rows], "heatmap")


def _by_judge(system: str, judge: str, rates: Mapping[str, Mapping[str, float | None]]) -> Markup:
    value = rates[judge].get(system)
    return heat_cell(value, value, number(value, 2), f"{system} by {judge}: {number(value)}")
