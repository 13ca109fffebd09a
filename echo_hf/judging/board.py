"""Agreement with people in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from echo_hf._infra.console import plain_table, say, show_table
from echo_hf._infra.text import percent, plain, rounded, rounded_interval
from echo_hf.judging.agreement import RunAgreement
from echo_hf.judging.score_board import NOTHING, judge_names
from echo_hf.scores.agreement import PROCEDURES, Agreement, HumanRanking, Taus
from echo_hf.scores.friedman import PairTest
from echo_hf.scores.rating_table import RUBRIC

ALPHA = 0.05
PEOPLE = "people"
NAMES = {
    "dunn": "Dunn's test",
    "siegel_castellan": "Siegel and Castellan's test",
    "bonferroni": "p (Bonferroni)",
    "holm": "p (Holm)",
}


def show_agreement(console: Console, agreement: RunAgreement) -> None:
    for name, counts in sorted(agreement.left_out.items()):
        for reason, count in sorted(counts.items()):
            line = f"{count:,} rows of {name} do not count, {reason}: {reason.meaning}"
            say(console, line, "yellow")
    merged = agreement.merged
    say(console, counted(merged))
    show_table(console, "mean rank by people, 1 is best", rank_table(merged.people))
    say(console, friedman_line(merged))
    pairs = differing(merged)
    if pairs:
        show_table(
            console, f"pairs that differ by {NAMES[_test(merged)]}", pair_table(merged, pairs)
        )
    if not merged.judges.with_consensus:
        said = f"no rating by the rubric {RUBRIC!r}: people are compared with each other alone"
        say(console, said, "yellow")
    show_table(console, "agreement with people, Kendall's tau-b", tau_table(merged))
    for name in judge_names(
        sorted(agreement.failed.keys() & merged.judges.with_consensus), agreement.failed
    ):
        say(console, name, "yellow")
    for line in pearson_lines(merged):
        say(console, line)
    say(console, f"agreement: {agreement.path}")


def counted(agreement: Agreement) -> str:
    """What was compared, in one line."""
    counts, people = agreement.counts, agreement.people.mean_rank_by_rater
    refused = f", {counts.refused} times impossible" if counts.refused else ""
    partial = f", {counts.partial} of them incomplete" if counts.partial else ""
    return (
        f"{len(people)} people ranked {counts.samples} samples: {counts.rankings} rankings"
        f"{partial}{refused} ({agreement.protocol})"
    )


def rank_table(people: HumanRanking) -> Table:
    """Mean ranks, in the order of the consensus over all samples."""
    raters = people.mean_rank_by_rater
    table = plain_table("system", "consensus", "95 %", *raters)
    for system in people.consensus.ranking:
        mean = people.mean_rank[system]
        by_rater = [rounded(ranks[system].value, 2) for ranks in raters.values()]
        table.add_row(
            Text(plain(system), "bold"),
            rounded(mean.value, 2),
            rounded_interval(mean.interval, 2),
            *by_rater,
        )
    return table


def friedman_line(agreement: Agreement) -> str:
    """Whether the systems differ at all, in one line."""
    test, tests = agreement.people.friedman, agreement.people.tests[_test(agreement)]
    if test.p_value is None:
        return "Friedman's test: nothing to test, as no block is in an order"
    return (
        f"Friedman's test: chi-square {rounded(test.statistic, 1)}, {test.degrees} degrees of "
        f"freedom, p {_p_value(test.p_value)}, {test.blocks} blocks; "
        f"{len(differing(agreement))} of "
        f"{len(tests)} pairs differ; Kendall's W within samples "
        f"{rounded(agreement.people.kendalls_w.value)}"
    )


def differing(agreement: Agreement) -> list[PairTest]:
    """The pairs of systems that differ by the protocol's test, after its correction."""
    adjusted = PROCEDURES[agreement.protocol].adjusted
    tests = agreement.people.tests[_test(agreement)]
    return [one for one in tests if getattr(one, adjusted) < ALPHA]


def pair_table(agreement: Agreement, pairs: Sequence[PairTest]) -> Table:
    adjusted = PROCEDURES[agreement.protocol].adjusted
    table = plain_table("better", "worse", "z", "p", NAMES[adjusted], left=("better", "worse"))
    for one in pairs:
        shown = [f"{one.z:.3f}", _p_value(one.p_value), _p_value(getattr(one, adjusted))]
        table.add_row(Text(plain(one.better), "bold"), Text(plain(one.worse)), *shown)
    return table


def tau_table(agreement: Agreement) -> Table:
    """Agreement of each judge with the consensus and with each person, and of people themselves."""
    judges, raters = agreement.judges, agreement.people.mean_rank_by_rater
    table = plain_table("", "consensus", "95 %", "p", "of people's", *raters)
    for judge, tau in judges.with_consensus.items():
        share = judges.share_of_ceiling[judge].share
        by_rater = [rounded(one.tau) for one in judges.with_raters[judge].values()]
        cells = rounded(tau.tau), rounded_interval(tau.interval), _p_value(tau.p_value)
        table.add_row(Text(plain(judge), "bold"), *cells, percent(share), *by_rater)
    ceiling = judges.people_with_others
    table.add_row(Text(PEOPLE, "bold"), rounded(ceiling.value), rounded_interval(ceiling.interval))
    for rater in raters if len(raters) > 1 else ():
        others = [_between(judges.among_raters, rater, other) for other in raters]
        table.add_row(Text(f"  {plain(rater)}"), "", "", "", "", *others)
    return table


def pearson_lines(agreement: Agreement) -> list[str]:
    """How far judges' ratings rise and fall together, a line for each two."""
    return [
        f"{plain(judge)} and {plain(other)}: "
        f"Pearson's r {rounded(one.r)} over {one.outputs:,} outputs"
        for judge, row in agreement.judges.pearson.items()
        for other, one in row.items()
    ]


def _between(taus: Taus, one: str, other: str) -> str:
    if one == other:
        return ""
    found = taus.get(one, {}).get(other) or taus[other][one]
    return rounded(found.tau)


def _test(found: Agreement) -> str:
    return PROCEDURES[found.protocol].test


def _p_value(value: float | None) -> str:
    if value is None:
        return NOTHING
    return "< 0.001" if value < 0.001 else f"{value:.3f}"
