"""Agreement with people in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from echo_hf._infra.bootstrap import Interval
from echo_hf._infra.text import plain
from echo_hf.judging.agreement import RunAgreement
from echo_hf.judging.score_board import NOTHING, judge_names
from echo_hf.scores.agreement import PROCEDURES, Agreement, Taus, Verdict
from echo_hf.scores.friedman import PairTest
from echo_hf.scores.rank_correlation import TauB
from echo_hf.scores.rating_table import RUBRIC

ALPHA = 0.05
PEOPLE = "people"
NAMES = {
    "dunn": "Dunn's test",
    "siegel_castellan": "Siegel and Castellan's test",
    "bonferroni": "p (Bonferroni)",
    "holm": "p (Holm)",
}


def show_agreement(console: Console, found: RunAgreement) -> None:
    """Prints what people say of the systems, and how far judges agree with them."""
    for name, counts in sorted(found.left_out.items()):
        for reason, count in sorted(counts.items()):
            line = f"{count:,} rows of {name} do not count, {reason}: {reason.meaning}"
            console.print(Text(line, "yellow"), soft_wrap=True)
    merged = found.merged
    console.print(Text(counted(merged)), soft_wrap=True)
    _show_agreement(console, "mean rank by people, 1 is best", rank_table(merged.people))
    console.print(Text(friedman_line(merged)), soft_wrap=True)
    pairs = differing(merged)
    if pairs:
        _show_agreement(
            console, f"pairs that differ by {NAMES[_test(merged)]}", pair_table(merged, pairs)
        )
    if not merged.judges.with_consensus:
        said = f"no rating by the rubric {RUBRIC!r}: people are compared with each other alone"
        console.print(Text(said, "yellow"), soft_wrap=True)
    _show_agreement(console, "agreement with people, Kendall's tau-b", tau_table(merged))
    for name in judge_names(
        sorted(found.failed.keys() & merged.judges.with_consensus), found.failed
    ):
        console.print(Text(name, "yellow"), soft_wrap=True)
    for line in pearson_lines(merged):
        console.print(Text(line), soft_wrap=True)
    console.print(Text(f"agreement: {found.path}"), soft_wrap=True)


def counted(found: Agreement) -> str:
    """What was compared, in one line."""
    counts, people = found.counts, found.people.mean_rank_by_rater
    refused = f", {counts.refused} times impossible" if counts.refused else ""
    partial = f", {counts.partial} of them incomplete" if counts.partial else ""
    return (
        f"{len(people)} people ranked {counts.samples} samples: {counts.rankings} rankings"
        f"{partial}{refused} ({found.protocol})"
    )


def rank_table(people: Verdict) -> Table:
    """Mean ranks, in the order of the consensus over all samples."""
    raters = people.mean_rank_by_rater
    table = _table("system", "consensus", "95 %", *raters)
    for system in people.consensus.ranking:
        mean = people.mean_rank[system]
        by_rater = [_rounded(ranks[system].value, 2) for ranks in raters.values()]
        table.add_row(
            Text(plain(system), "bold"),
            _rounded(mean.value, 2),
            _agreement_interval(mean.interval, 2),
            *by_rater,
        )
    return table


def friedman_line(found: Agreement) -> str:
    """Whether the systems differ at all, in one line."""
    test, tests = found.people.friedman, found.people.tests[_test(found)]
    if test.p_value is None:
        return "Friedman's test: nothing to test, as no block is in an order"
    return (
        f"Friedman's test: chi-square {_rounded(test.statistic, 1)}, {test.degrees} degrees of "
        f"freedom, p {_p_value(test.p_value)}, {test.blocks} blocks; {len(differing(found))} of "
        f"{len(tests)} pairs differ; Kendall's W within samples "
        f"{_rounded(found.people.kendalls_w.value)}"
    )


def differing(found: Agreement) -> list[PairTest]:
    """The pairs of systems that differ by the protocol's test, after its correction."""
    adjusted = PROCEDURES[found.protocol].adjusted
    tests = found.people.tests[_test(found)]
    return [one for one in tests if getattr(one, adjusted) < ALPHA]


def pair_table(found: Agreement, pairs: Sequence[PairTest]) -> Table:
    """Pairs of systems with their test."""
    adjusted = PROCEDURES[found.protocol].adjusted
    table = _table("better", "worse", "z", "p", NAMES[adjusted], left=("better", "worse"))
    for one in pairs:
        shown = [f"{one.z:.3f}", _p_value(one.p_value), _p_value(getattr(one, adjusted))]
        table.add_row(Text(plain(one.better), "bold"), Text(plain(one.worse)), *shown)
    return table


def tau_table(found: Agreement) -> Table:
    """Agreement of each judge with the consensus and with each person, and of people themselves."""
    judges, raters = found.judges, found.people.mean_rank_by_rater
    table = _table("", "consensus", "95 %", "p", "of people's", *raters)
    for judge, tau in judges.with_consensus.items():
        share = judges.share_of_ceiling[judge].share
        by_rater = [_rounded(one.tau) for one in judges.with_raters[judge].values()]
        table.add_row(
            Text(plain(judge), "bold"), *_agreement_cells(tau), _agreement_share(share), *by_rater
        )
    ceiling = judges.people_with_others
    table.add_row(
        Text(PEOPLE, "bold"), _rounded(ceiling.value), _agreement_interval(ceiling.interval)
    )
    for rater in raters if len(raters) > 1 else ():
        others = [_between(judges.among_raters, rater, other) for other in raters]
        table.add_row(Text(f"  {plain(rater)}"), "", "", "", "", *others)
    return table


def pearson_lines(found: Agreement) -> list[str]:
    """How far judges' ratings rise and fall together, a line for each two."""
    return [
        f"{plain(judge)} and {plain(other)}: "
        f"Pearson's r {_rounded(one.r)} over {one.outputs:,} outputs"
        for judge, row in found.judges.pearson.items()
        for other, one in row.items()
    ]


def _agreement_cells(tau: TauB) -> tuple[str, str, str]:
    return _rounded(tau.tau), _agreement_interval(tau.interval), _p_value(tau.p_value)


def _between(taus: Taus, one: str, other: str) -> str:
    if one == other:
        return ""
    found = taus.get(one, {}).get(other) or taus[other][one]
    return _rounded(found.tau)


def _test(found: Agreement) -> str:
    return PROCEDURES[found.protocol].test


def _table(*headings: str, left: Sequence[str] = ()) -> Table:
    table = Table(box=None, pad_edge=False)
    for at, heading in enumerate(headings):
        is_left = not at or heading in left
        table.add_column(Text(plain(heading)), justify="left" if is_left else "right")
    return table


def _show_agreement(console: Console, title: str, table: Table) -> None:
    console.print(Text(title, "bold"), soft_wrap=True)
    console.print(table)
    console.print()


def _rounded(value: float | None, digits: int = 3) -> str:
    return NOTHING if value is None else f"{value:.{digits}f}"


def _agreement_interval(interval: Interval | None, digits: int = 3) -> str:
    return NOTHING if interval is None else f"{interval[0]:.{digits}f} to {interval[1]:.{digits}f}"


def _p_value(value: float | None) -> str:
    if value is None:
        return NOTHING
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _agreement_share(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.0f} %"
