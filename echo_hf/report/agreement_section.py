"""What people say of the systems, and how far judges agree with them (appendix C)."""

from __future__ import annotations

from collections.abc import Iterable

from echo_hf.judging.board import ALPHA, NAMES
from echo_hf.report.charts import Scale, axis, dot, plot, point
from echo_hf.report.markup import (
    Child,
    Markup,
    element,
    interval,
    joined,
    number,
    p_value,
    plural,
    share,
)
from echo_hf.report.parts import (
    Column,
    Row,
    breakable,
    heat_cell,
    judge_name,
    name_of,
    note,
    section,
    table,
)
from echo_hf.report.results import Compared, Failed, PairTest, Tau
from echo_hf.report.run_data import RunData
from echo_hf.scores.agreement import PROCEDURES

ABOUT = (
    "People ranked the outputs of a sample from best to worst. The consensus is the order nearest "
    "to all of theirs; tau-b is 1 where two orders are the same, 0 where they have nothing in "
    "common, and −1 where one is the other reversed."
)


def agreement(data: RunData) -> Markup | None:
    if data.agreement is None:
        return None
    found = data.agreement.merged
    return section(
        "people",
        "People",
        note(_counted(found)),
        rank_table(found),
        note(_friedman(found)),
        element(
            "div",
            element("div", tau_table(found, data.failures)),
            element("div", pair_table(found)),
            class_="beside",
        ),
        note(_ceiling(found, data.failures)),
        _pearson(found, data.failures),
        lead=ABOUT,
    )


def rank_table(found: Compared) -> Markup:
    people, systems = found.people, found.people.consensus.ranking
    places = Scale(0.5, len(systems) + 0.5, tuple(range(1, len(systems) + 1)))
    raters = people.mean_rank_by_rater
    columns = [
        Column("System", "name"),
        Column(axis(places), "plot", "mean rank, drawn, 1 is best"),
        Column("Consensus"),
        Column("95 %", optional=True),
        *(Column(name_of(rater), optional=True) for rater in raters),
    ]
    rows = [_rank_row(system, found, places) for system in systems]
    return table("Mean rank by people, 1 is best; faint dots are single people", columns, [rows])


def _rank_row(system: str, found: Compared, places: Scale) -> Row:
    mean = found.people.mean_rank[system]
    each = [ranks[system].value for ranks in found.people.mean_rank_by_rater.values()]
    faint = [dot(places, value, "faint", 3.5) for value in each if value is not None]
    return (
        name_of(system),
        plot(joined(faint), point(places, mean.value, mean.interval), scale=places),
        element("b", number(mean.value, 2)),
        interval(mean.interval, 2),
        *(number(value, 2) for value in each),
    )


def tau_table(found: Compared, failures: Failed) -> Markup:
    """Tau-b of judges and people, each with each (figure C.2)."""
    judges, raters = list(found.judges.with_consensus), list(found.people.mean_rank_by_rater)
    taus = dict(_pairs(found))
    columns = [
        Column("", "name", "Judge or person"),
        *(Column(breakable(one), "heat") for one in ["consensus", *raters, *judges][:-1]),
    ]
    names = ["consensus", *raters, *judges]
    rows = [
        [
            judge_name(name, failures) if name in judges else name_of(name),
            *(
                _tau(taus.get((name, other)) if before < at else None, name, other)
                for before, other in enumerate(names[:-1])
            ),
        ]
        for at, name in enumerate(names)
        if at and (name in judges or len(raters) > 1)
    ]
    return table("Kendall's tau-b (*** p < 0.001, ** p < 0.05)", columns, [rows], "heatmap")


def _pairs(found: Compared) -> Iterable[tuple[tuple[str, str], Tau]]:
    judges = found.judges
    for judge, tau in judges.with_consensus.items():
        yield (judge, "consensus"), tau
    for taus in (judges.with_raters, judges.among_raters, judges.among_judges):
        for one, row in taus.items():
            for other, tau in row.items():
                yield (one, other), tau
                if taus is not judges.with_raters:
                    yield (other, one), tau


def _tau(tau: Tau | None, one: str, other: str) -> Markup:
    if tau is None or one == other:
        return element("td", class_="heat self")
    part = None if tau.tau is None else (tau.tau + 1) / 2
    title = f"{one} and {other}: p {p_value(tau.p_value)}, {plural(tau.samples, 'sample')}"
    return heat_cell(tau.tau, part, number(tau.tau, 2) + stars(tau.p_value), title)


def stars(p: float | None) -> str:
    """How the paper marks what is significant."""
    if p is None or p >= ALPHA:
        return ""
    return "***" if p < 0.001 else "**"


def pair_table(found: Compared) -> Markup:
    procedure = PROCEDURES[found.protocol]
    adjusted = procedure.adjusted
    tests = found.people.tests.get(procedure.test, ())
    differing = [one for one in tests if getattr(one, adjusted) < ALPHA]
    columns = (
        Column("Better", "name"),
        Column("Worse", "text"),
        Column("z"),
        Column(NAMES[adjusted]),
    )
    caption = f"{len(differing)} of {len(tests)} pairs differ by {NAMES[procedure.test]}"
    return table(caption, columns, [[_pair_row(one, adjusted) for one in differing]])


def _pair_row(one: PairTest, adjusted: str) -> list[Child]:
    return [
        name_of(one.better),
        name_of(one.worse),
        number(one.z, 2),
        p_value(getattr(one, adjusted)),
    ]


def _counted(found: Compared) -> str:
    people, counts = found.people.mean_rank_by_rater, found.counts
    partial = f", {counts.partial} of them incomplete" if counts.partial else ""
    refused = f", {counts.refused} times impossible" if counts.refused else ""
    return (
        f"{plural(len(people), 'person', 'people')} ranked {plural(counts.samples, 'sample')}: "
        f"{plural(counts.rankings, 'ranking')}{partial}{refused}. Protocol {found.protocol}."
    )


def _friedman(found: Compared) -> str:
    test = found.people.friedman
    if test.p_value is None:
        return "Friedman's test: nothing to test, as no block is in an order."
    return (
        f"Friedman's test over {plural(test.blocks, 'block')}: chi-square "
        f"{number(test.statistic, 1)}, {test.degrees} degrees of freedom, p "
        f"{p_value(test.p_value)}. Kendall's W within samples: "
        f"{number(found.people.kendalls_w.value)}."
    )


def _ceiling(found: Compared, failures: Failed) -> list[Child]:
    judges = found.judges
    people = judges.people_with_others
    said: list[Child] = [
        f"A person agrees with the consensus of the others at {number(people.value)} "
        f"({interval(people.interval)})."
    ]
    for judge, one in judges.share_of_ceiling.items():
        if one.share is not None:
            said += [" ", judge_name(judge, failures), f" reaches {share(one.share)} of that."]
    return said


def _pearson(found: Compared, failures: Failed) -> Markup | None:
    pairs = [
        (judge, other, one)
        for judge, row in found.judges.pearson.items()
        for other, one in row.items()
    ]
    lines = [
        joined(
            "; " if at else None,
            *(judge_name(judge, failures), " and ", judge_name(other, failures)),
            f": {number(one.r)} over {plural(one.outputs, 'output')}",
        )
        for at, (judge, other, one) in enumerate(pairs)
    ]
    return note("Pearson's r of judges' ratings. ", lines, ".") if lines else None
