"""How sure the order of systems is: other rules, missing outputs, pairs in both orders."""

from __future__ import annotations

from collections.abc import Sequence

from echo_hf.report.charts.marks import axis, plot, point, span
from echo_hf.report.charts.scale import UNIT, Scale
from echo_hf.report.markup import Markup, joined
from echo_hf.report.numbers import NOTHING, interval, number, plural
from echo_hf.report.parts import judge_name, name_of, note
from echo_hf.report.results_file import Failed, Pairwise, Rates, WinRates
from echo_hf.report.tables import Column, Row, table


def robustness(rates: Rates, found: WinRates) -> Markup:
    """The places of each system under every rule, and the bounds of its win rate.

    Args:
        rates: The win rates.
        found: The same with what lies beside them.

    Returns:
        A table and what it means.
    """
    places = Scale(0.5, len(rates.win_rate) + 0.5, tuple(range(1, len(rates.win_rate) + 1)))
    columns = (
        Column("System", "name"),
        Column(axis(places), "plot", "best and worst place, drawn"),
        Column("Places"),
        Column(axis(UNIT), "plot", "bounds of the win rate, drawn", optional=True),
        Column("Bounds"),
    )
    rows = [_robust_row(system, found, places) for system in rates.order]
    flips = found.sensitivity.flips
    pairs = len(rates.win_rate) * (len(rates.win_rate) - 1) // 2
    return joined(
        table("How much hangs on the rule, and on what is missing", columns, [rows]),
        note(
            f"Places: best and worst over {plural(len(found.sensitivity.boards), 'rule')} of "
            "voting, ties and averaging. ",
            f"Pairs that two rules put in opposite orders: {_named(flips)}. ",
            "Bounds: the win rate if all that is missing were lost, and if all were won; "
            f"{len(found.bounds.certain)} of {pairs} pairs keep their order whatever is missing.",
        ),
    )


def _robust_row(system: str, found: WinRates, places: Scale) -> Row:
    ranks, ends = found.sensitivity.rank_range.get(system), found.bounds.bounds.get(system)
    said = NOTHING
    if ranks is not None:
        said = str(ranks[0]) if ranks[0] == ranks[1] else f"{ranks[0]} – {ranks[1]}"
    return (
        name_of(system),
        plot(_extent(places, ranks), scale=places),
        said,
        plot(_extent(UNIT, ends), scale=UNIT, at=0.5),
        interval(ends),
    )


def _extent(scale: Scale, ends: tuple[float, float] | None) -> Markup:
    if ends is None:
        return Markup()
    if ends[0] == ends[1]:
        return point(scale, ends[0], None)
    return span(scale, *ends, "extent")


def _named(pairs: Sequence[tuple[str, str]]) -> str:
    return "; ".join(f"{one} and {other}" for one, other in pairs) or "none"


def side_by_side(found: Pairwise, failures: Failed) -> Markup:
    """How steady judges are who see two outputs at once.

    Args:
        found: What they said.
        failures: For each judge that failed its audit, what it failed on.

    Returns:
        A table with a row for each judge.
    """
    columns = [
        Column(head, "name" if not at else "number")
        for at, head in enumerate(
            ("Judge", "Pairs", "Same winner in both orders", "Same place", "As it rated")
        )
    ]
    rows = [
        [
            judge_name(judge, failures),
            str(one.pairs),
            *(number(part.value, 2) for part in (one.consistent, one.follows_position)),
            number(one.agreement.value, 2),
        ]
        for judge, one in found.judges.items()
    ]
    return table("Two outputs side by side, in both orders", columns, [rows])
