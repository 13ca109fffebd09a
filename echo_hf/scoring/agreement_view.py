"""How far judges agree with people, in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from echo_hf.bootstrap import Interval
from echo_hf.scores.people.agreement import Agreement
from echo_hf.scores.people.judged import Taus
from echo_hf.scores.people.pairwise_tests import PairTest
from echo_hf.scores.people.procedure import PROCEDURES
from echo_hf.scores.people.tau import TauB
from echo_hf.scores.people.verdict import Verdict
from echo_hf.scores.rating_table import RUBRIC
from echo_hf.scoring.agree import RunAgreement
from echo_hf.scoring.judge_names import judge_names
from echo_hf.thread_view import plain

NOTHING = "-"
ALPHA = 0.05
PEOPLE = "people"
NAMES = {
    "dunn": "Dunn's test",
    "siegel_castellan": "Siegel and Castellan's test",
    "bonferroni": "p (Bonferroni)",
    "holm": "p (Holm)",
}


def show_agreement(console: Console, found: RunAgreement) -> None:
    """Prints what people say of the systems, and how far judges agree with them.

    Args:
        console: Where to print.
        found: The figures.
    """
    for name, counts in sorted(found.left_out.items()):
        for reason, count in sorted(counts.items()):
            line = f"{count:,} rows of {name} do not count, {reason}: {reason.meaning}"
            console.print(Text(line, "yellow"), soft_wrap=True)
    merged = found.merged
    console.print(Text(counted(merged)), soft_wrap=True)
    _show(console, "mean rank by people, 1 is best", rank_table(merged.people))
    console.print(Text(friedman_line(merged)), soft_wrap=True)
    pairs = differing(merged)
    if pairs:
        _show(console, f"pairs that differ by {NAMES[_test(merged)]}", pair_table(merged, pairs))
    if not merged.judges.with_consensus:
        said = f"no rating by the rubric {RUBRIC!r}: people are compared with each other alone"
        console.print(Text(said, "yellow"), soft_wrap=True)
    _show(console, "agreement with people, Kendall's tau-b", tau_table(merged))
    for name in judge_names(
        sorted(found.failed.keys() & merged.judges.with_consensus), found.failed
    ):
        console.print(Text(name, "yellow"), soft_wrap=True)
    for line in pearson_lines(merged):
        console.print(Text(line), soft_wrap=True)
    console.print(Text(f"agreement: {found.path}"), soft_wrap=True)


def counted(found: Agreement) -> str:
    """What was compared, in one line.

    Args:
        found: The figures.

    Returns:
        The line.
    """
    counts, people = found.counts, found.people.mean_rank_by_rater
    refused = f", {counts.refused} times impossible" if counts.refused else ""
    partial = f", {counts.partial} of them incomplete" if counts.partial else ""
    return (
        f"{len(people)} people ranked {counts.samples} samples: {counts.rankings} rankings"
        f"{partial}{refused} ({found.protocol})"
    )


def rank_table(people: Verdict) -> Table:
    """Mean ranks, in the order of the consensus over all samples.

    Args:
        people: What people say.

    Returns:
        The table, with a column for each person.
    """
    raters = people.mean_rank_by_rater
    table = _table("system", "consensus", "95 %", *raters)
    for system in people.consensus.ranking:
        mean = people.mean_rank[system]
        by_rater = [_number(ranks[system].value, 2) for ranks in raters.values()]
        table.add_row(
            Text(plain(system), "bold"),
            _number(mean.value, 2),
            _interval(mean.interval, 2),
            *by_rater,
        )
    return table


def friedman_line(found: Agreement) -> str:
    """Whether the systems differ at all, in one line.

    Args:
        found: The figures.

    Returns:
        The line.
    """
    test, tests = found.people.friedman, found.people.tests[_test(found)]
    if test.p_value is None:
        return "Friedman's test: nothing to test, as no block is in an order"
    return (
        f"Friedman's test: chi-square {_number(test.statistic, 1)}, {test.degrees} degrees of "
        f"freedom, p {_p_value(test.p_value)}, {test.blocks} blocks; {len(differing(found))} of "
        f"{len(tests)} pairs differ; Kendall's W within samples "
        f"{_number(found.people.kendalls_w.value)}"
    )


def differing(found: Agreement) -> list[PairTest]:
    """The pairs of systems that differ by the protocol's test, after its correction.

    Args:
        found: The figures.

    Returns:
        The tests, the largest z first.
    """
    adjusted = PROCEDURES[found.protocol].adjusted
    tests = found.people.tests[_test(found)]
    return [one for one in tests if getattr(one, adjusted) < ALPHA]


def pair_table(found: Agreement, pairs: Sequence[PairTest]) -> Table:
    """Pairs of systems with their test.

    Args:
        found: The figures.
        pairs: The tests.

    Returns:
        The table.
    """
    adjusted = PROCEDURES[found.protocol].adjusted
    table = _table("better", "worse", "z", "p", NAMES[adjusted], left=("better", "worse"))
    for one in pairs:
        shown = [f"{one.z:.3f}", _p_value(one.p_value), _p_value(getattr(one, adjusted))]
        table.add_row(Text(plain(one.better), "bold"), Text(plain(one.worse)), *shown)
    return table


def tau_table(found: Agreement) -> Table:
    """Agreement of each judge with the consensus and with each person, and of people themselves.

    The row of people is a person with the consensus of the others; below are each two people.

    Args:
        found: The figures.

    Returns:
        The table.
    """
    judges, raters = found.judges, found.people.mean_rank_by_rater
    table = _table("", "consensus", "95 %", "p", "of people's", *raters)
    for judge, tau in judges.with_consensus.items():
        share = judges.share_of_ceiling[judge].share
        by_rater = [_number(one.tau) for one in judges.with_raters[judge].values()]
        table.add_row(Text(plain(judge), "bold"), *_cells(tau), _share(share), *by_rater)
    ceiling = judges.people_with_others
    table.add_row(Text(PEOPLE, "bold"), _number(ceiling.value), _interval(ceiling.interval))
    for rater in raters if len(raters) > 1 else ():
        others = [_between(judges.among_raters, rater, other) for other in raters]
        table.add_row(Text(f"  {plain(rater)}"), "", "", "", "", *others)
    return table


def pearson_lines(found: Agreement) -> list[str]:
    """How far judges' ratings rise and fall together, a line for each two.

    Args:
        found: The figures.

    Returns:
        The lines.
    """
    return [
        f"{plain(judge)} and {plain(other)}: "
        f"Pearson's r {_number(one.r)} over {one.outputs:,} outputs"
        for judge, row in found.judges.pearson.items()
        for other, one in row.items()
    ]


def _cells(tau: TauB) -> tuple[str, str, str]:
    return _number(tau.tau), _interval(tau.interval), _p_value(tau.p_value)


def _between(taus: Taus, one: str, other: str) -> str:
    if one == other:
        return ""
    found = taus.get(one, {}).get(other) or taus[other][one]
    return _number(found.tau)


def _test(found: Agreement) -> str:
    return PROCEDURES[found.protocol].test


def _table(*headings: str, left: Sequence[str] = ()) -> Table:
    table = Table(box=None, pad_edge=False)
    for at, heading in enumerate(headings):
        is_left = not at or heading in left
        table.add_column(Text(plain(heading)), justify="left" if is_left else "right")
    return table


def _show(console: Console, title: str, table: Table) -> None:
    console.print(Text(title, "bold"), soft_wrap=True)
    console.print(table)
    console.print()


def _number(value: float | None, digits: int = 3) -> str:
    return NOTHING if value is None else f"{value:.{digits}f}"


def _interval(interval: Interval | None, digits: int = 3) -> str:
    return NOTHING if interval is None else f"{interval[0]:.{digits}f} to {interval[1]:.{digits}f}"


def _p_value(value: float | None) -> str:
    if value is None:
        return NOTHING
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _share(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.0f} %"
