"""The figures of a run in a terminal: boards, agreement with people, choices of judges."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter

from rich.console import Console
from rich.table import Table
from rich.text import Text

from echo_hf._infra.console import plain_table, say
from echo_hf._infra.text import percent, plain, rounded, rounded_interval
from echo_hf.judging.agreement import RunAgreement
from echo_hf.judging.audit_file import KEY
from echo_hf.judging.score import Measured, Scores, SplitWinRates
from echo_hf.metrics import ColorShiftResult
from echo_hf.metrics.result import BETTER, HIGHER, LOWER, MetricResult
from echo_hf.reasons import Unscored
from echo_hf.scores.agreement import PROCEDURES, Agreement, Taus, Verdict
from echo_hf.scores.friedman import PairTest
from echo_hf.scores.pairwise_agreement import JudgeAgreement, PairwiseAgreement, Share
from echo_hf.scores.rank_correlation import TauB
from echo_hf.scores.rating_table import RUBRIC

LONGEST = 40


def judge_names(judges: Iterable[str], failed: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """The names of judges, each with the honeypots that it failed on.

    Example:
        >>> list(judge_names(["mira", "otto"], {"mira": ("blank", "shuffled")}))
        ['mira (failed its audit: blank, shuffled)', 'otto']
    """
    for judge in judges:
        flags, name = ", ".join(failed.get(judge, ())), plain(judge, LONGEST)
        yield f"{name} (failed its audit: {flags})" if flags else name


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
    """Prints what people say of the systems, and how far judges agree with them."""
    for name, counts in sorted(found.left_out.items()):
        for reason, count in sorted(counts.items()):
            line = f"{count:,} rows of {name} do not count, {reason}: {reason.meaning}"
            say(console, line, "yellow")
    merged = found.merged
    say(console, counted(merged))
    _show(console, "mean rank by people, 1 is best", rank_table(merged.people))
    say(console, friedman_line(merged))
    pairs = differing(merged)
    if pairs:
        _show(console, f"pairs that differ by {NAMES[_test(merged)]}", pair_table(merged, pairs))
    if not merged.judges.with_consensus:
        said = f"no rating by the rubric {RUBRIC!r}: people are compared with each other alone"
        say(console, said, "yellow")
    _show(console, "agreement with people, Kendall's tau-b", tau_table(merged))
    for name in judge_names(
        sorted(found.failed.keys() & merged.judges.with_consensus), found.failed
    ):
        say(console, name, "yellow")
    for line in pearson_lines(merged):
        say(console, line)
    say(console, f"agreement: {found.path}")


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


def friedman_line(found: Agreement) -> str:
    """Whether the systems differ at all, in one line."""
    test, tests = found.people.friedman, found.people.tests[_test(found)]
    if test.p_value is None:
        return "Friedman's test: nothing to test, as no block is in an order"
    return (
        f"Friedman's test: chi-square {rounded(test.statistic, 1)}, {test.degrees} degrees of "
        f"freedom, p {_p_value(test.p_value)}, {test.blocks} blocks; {len(differing(found))} of "
        f"{len(tests)} pairs differ; Kendall's W within samples "
        f"{rounded(found.people.kendalls_w.value)}"
    )


def differing(found: Agreement) -> list[PairTest]:
    """The pairs of systems that differ by the protocol's test, after its correction."""
    adjusted = PROCEDURES[found.protocol].adjusted
    tests = found.people.tests[_test(found)]
    return [one for one in tests if getattr(one, adjusted) < ALPHA]


def pair_table(found: Agreement, pairs: Sequence[PairTest]) -> Table:
    """Pairs of systems with their test."""
    adjusted = PROCEDURES[found.protocol].adjusted
    table = plain_table("better", "worse", "z", "p", NAMES[adjusted], left=("better", "worse"))
    for one in pairs:
        shown = [f"{one.z:.3f}", _p_value(one.p_value), _p_value(getattr(one, adjusted))]
        table.add_row(Text(plain(one.better), "bold"), Text(plain(one.worse)), *shown)
    return table


def tau_table(found: Agreement) -> Table:
    """Agreement of each judge with the consensus and with each person, and of people themselves."""
    judges, raters = found.judges, found.people.mean_rank_by_rater
    table = plain_table("", "consensus", "95 %", "p", "of people's", *raters)
    for judge, tau in judges.with_consensus.items():
        share = judges.share_of_ceiling[judge].share
        by_rater = [rounded(one.tau) for one in judges.with_raters[judge].values()]
        table.add_row(Text(plain(judge), "bold"), *_agreement_cells(tau), percent(share), *by_rater)
    ceiling = judges.people_with_others
    table.add_row(Text(PEOPLE, "bold"), rounded(ceiling.value), rounded_interval(ceiling.interval))
    for rater in raters if len(raters) > 1 else ():
        others = [_between(judges.among_raters, rater, other) for other in raters]
        table.add_row(Text(f"  {plain(rater)}"), "", "", "", "", *others)
    return table


def pearson_lines(found: Agreement) -> list[str]:
    """How far judges' ratings rise and fall together, a line for each two."""
    return [
        f"{plain(judge)} and {plain(other)}: "
        f"Pearson's r {rounded(one.r)} over {one.outputs:,} outputs"
        for judge, row in found.judges.pearson.items()
        for other, one in row.items()
    ]


def _agreement_cells(tau: TauB) -> tuple[str, str, str]:
    return rounded(tau.tau), rounded_interval(tau.interval), _p_value(tau.p_value)


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


def show_pairwise(
    console: Console, split: str, found: PairwiseAgreement, failed: Mapping[str, Sequence[str]]
) -> None:
    """Prints how the choices of each judge hold together, and agree with its ratings."""
    say(console, f"{split}: two outputs side by side, in both orders", "bold")
    for name, one in zip(judge_names(found.judges, failed), found.judges.values(), strict=True):
        say(console, f"{name}: {pairwise_line(one)}")
    console.print()


def pairwise_line(found: JudgeAgreement) -> str:
    """What is found of one judge, in a line."""
    parts = (
        f"{found.pairs:,} pairs",
        f"same winner in both orders {_said(found.consistent)}",
        f"same place {_said(found.follows_position)}",
        f"agrees with its ratings {_said(found.agreement)}",
    )
    return ", ".join(parts)


def _said(share: Share) -> str:
    if share.value is None:
        return f"- ({share.reason})"
    if share.interval is None:
        return f"{share.value:.2f}"
    low, high = share.interval
    return f"{share.value:.2f} ({low:.2f} to {high:.2f})"


def show_scores(console: Console, scores: Scores) -> None:
    """Prints the figures of a run."""
    for name, counts in sorted(scores.left_out.items()):
        for reason, count in sorted(counts.items()):
            line = f"{count:,} rows of {name} do not count, {reason}: {reason.meaning}"
            say(console, line, "yellow")
    for split in scores.splits:
        if split.win_rates is not None:
            judges = ", ".join(judge_names(split.win_rates.rates.per_judge, scores.failed))
            said = f"{split.split}: win rate ({scores.protocol}), judged by {judges}"
            _show(console, said, win_rate_table(split.win_rates), why_not(split.win_rates))
        elif split.samples:
            said = f"{split.split}: no win rates, since no judge has rated an output of it\n"
            say(console, said, "yellow")
        if split.pairwise is not None:
            show_pairwise(console, split.split, split.pairwise, scores.failed)
        if split.metrics:
            _show(
                console, f"{split.split}: what people complain about", metric_table(split.metrics)
            )
    directions = f"{HIGHER} higher, {LOWER} lower is better"
    console.print(Text(directions, "dim"))
    say(console, f"results: {scores.path}")


def win_rate_table(found: SplitWinRates) -> Table:
    """Win rates with intervals and tiers, the best first."""
    rates = found.rates
    # Where nothing says how far others may differ, one tier for all would read as no difference.
    known = any(rates.interval.values())
    tier = {name: at for at, names in enumerate(found.tiers, 1) for name in names if known}
    table = plain_table("system", "win rate", "95 %", "tier", "coverage")
    for system, rate in rates.win_rate.items():
        table.add_row(
            Text(plain(system, LONGEST), "bold"),
            rounded(rate),
            rounded_interval(rates.interval[system]),
            str(tier.get(system, NOTHING)),
            percent(rates.coverage[system]),
        )
    return table


def why_not(found: SplitWinRates) -> list[str]:
    """Why systems have no win rate, or no interval, a line for each reason."""
    named: dict[Unscored, list[str]] = {}
    for system, reason in found.rates.reasons.items():
        named.setdefault(reason, []).append(plain(system, LONGEST))
    every = len(found.rates.win_rate)
    return [
        f"{'all systems' if len(systems) == every else ', '.join(systems)}: {reason}: "
        f"{reason.meaning}"
        for reason, systems in named.items()
    ]


def metric_table(metrics: Sequence[Measured]) -> Table:
    """The specialised metrics of each system, with the samples that they stand on."""
    table = Table("metric", box=None, pad_edge=False)
    for heading in ("value", "95 %", "samples"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("beside it")
    for metric, every in groupby(metrics, key=attrgetter("metric")):
        rows, title = list(every), Text(f"{metric} {BETTER[metric]}", "bold")
        if _same_for_all(rows):
            table.add_row(title, *_cells(rows[0]))
        else:
            table.add_row(title, "", "", "", Text(_failed(rows), "yellow"))
            for one in rows:
                table.add_row(Text(f"  {plain(one.system, LONGEST)}"), *_cells(one))
    return table


def _same_for_all(rows: Sequence[Measured]) -> bool:
    """Whether no system could be measured, all for the same reason."""
    return None not in {one.missing for one in rows} and len({one.missing for one in rows}) == 1


def _failed(rows: Sequence[Measured]) -> str:
    """The judges of a metric that failed their audits."""
    found = (one.result.definition.get(KEY, {}) for one in rows if one.result)
    failed = {judge: flags for one in found for judge, flags in one.items()}
    return ", ".join(judge_names(failed, failed))


def _cells(one: Measured) -> tuple[Text | str, ...]:
    result = one.result
    value = NOTHING if result is None else rounded(result.value)
    interval = NOTHING if result is None else rounded_interval(result.interval)
    counts = ", ".join(f"{count} {reason}" for reason, count in one.counts.items())
    beside = "" if result is None else _beside(result)
    said = "; ".join(filter(None, (one.missing, beside, counts)))
    covered = f"{one.n} of {one.about.samples}"
    return value, interval, covered, Text(said, "yellow" if one.missing else "")


def _beside(result: MetricResult) -> str:
    if not isinstance(result, ColorShiftResult) or result.tint.yellower.value is None:
        return ""
    tint = result.tint.yellower.value
    return f"{abs(tint):.1f} {'yellower' if tint >= 0 else 'bluer'}"


def _show(console: Console, title: str, table: Table, notes: Sequence[str] = ()) -> None:
    say(console, title, "bold")
    console.print(table)
    for note in notes:
        say(console, note, "dim")
    console.print()
