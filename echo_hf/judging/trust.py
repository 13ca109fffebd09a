"""Say how far to trust the win rates of a run: a line for each measure, with its meaning."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from echo_hf import scores
from echo_hf._infra.bootstrap import MIN_SAMPLES, Interval, Unscored
from echo_hf._infra.text import format_rounded, percent
from echo_hf.config.checks import ModelIdentity
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.hub.run_tables import CertificateFacts
from echo_hf.judging.anchors import Anchors, fit_strengths
from echo_hf.judging.hostile import describe_faults, describe_tricks
from echo_hf.judging.results import SavedTrustLine, UnevenCoverage
from echo_hf.scores.pairwise_agreement import PairwiseAgreement, Way
from echo_hf.scores.rating_table import RatingTable
from echo_hf.scores.votes import ProtocolName
from echo_hf.systems.run_tables import Models

MAX_LISTED = 3
UNEVEN_COVERAGE_GAP = 0.05  # in shares of comparisons
TOLERANCE = 1e-9
MEANINGS: Mapping[str, str] = {
    "certificate": "how often a judge and people decide alike which of two outputs is better, on "
    "samples that people ranked: a board is worth what its judges are",
    "self_preference": "the share of points that a judge gives its own developer's systems, less "
    "what others' judges give them: above 0 it favors them, or sees what the others do not",
    "leave_one_judge_out": "the board without each judge: an order that turns hangs on that judge",
    "samples_needed": "how many samples would tell two neighbors on the board apart if they differ "
    "as they do here (power 80 %, two-sided at 5 %)",
    "bradley_terry": "strengths that explain all pairs at once: another order than by win rates "
    "says that these depend on which pairs were rated",
    "coverage": "the share of comparisons that a win rate rests on: where a system left out more "
    "than its neighbor, the two were not held against the same prompts",
    "contamination": "whether a system leads more on public samples than on sealed ones, which "
    "nobody could train on; peers that are as hard hit change nothing",
    "dated_contamination": "whether a system's lead steps down at the day up to which it may have "
    "been trained, beside a steady trend",
    "gap": "how far the best system is ahead, as a share of the second's win rate: the paper finds "
    "less of it where no image is given",
    "pairwise": "which to trust here, ratings of one output at a time or choices between two, by "
    "the same judges on the same pairs: the nearer to people, by Kendall's tau within samples",
    "judge_drift": "what a judge says of the same images later, less what it said first: beyond 0, "
    "its older and newer ratings do not compare",
    "hostile_pictures": "whether words, seals or effects in a picture, which make it no better, "
    "raise a judge's rating, and which faults drawn into outputs the judge does not see",
}
WAY_NAMES: Mapping[Way, str] = {"pointwise": "ratings", "pairwise": "choices"}
ContaminationFigure = tuple[str, str, scores.Contamination]  # measure, split, what was tested
SentenceAndReason = tuple[str, Unscored | None]


@dataclass(frozen=True)
class Trust:
    self_preference: scores.SelfPreference
    leave_one_judge_out: scores.LeaveOneJudgeOut
    samples_needed: scores.SamplesNeeded
    bradley_terry: scores.BradleyTerry
    gap: scores.Gap
    uneven_coverage: tuple[UnevenCoverage, ...]

    @classmethod
    def from_ratings(
        cls,
        table: RatingTable,
        protocol: ProtocolName,
        models: Models,
        n_boot: int,
        coverage: Mapping[str, float | None],
        anchors: Anchors | None = None,
    ) -> Trust:
        unstated = ModelIdentity()
        judges = {name: models.judges.get(name, unstated).maker for name in table.judges}
        systems = {name: models.systems.get(name, unstated).maker for name in table.systems}
        left_out = scores.leave_one_judge_out(table, protocol=protocol)
        return cls(
            scores.self_preference(table, judges, systems, n_boot=n_boot),
            left_out,
            scores.samples_needed(table, protocol=protocol),
            fit_strengths(table, protocol, n_boot, anchors),
            scores.relative_gap(left_out.win_rate),
            tuple(find_uneven_coverage(left_out.win_rate, coverage)),
        )

    def build_lines(self, split: str) -> Iterator[SavedTrustLine]:
        yield _build_line("self_preference", split, *self._describe_self_preference())
        yield _build_line("leave_one_judge_out", split, *self._describe_order_changes())
        yield _build_line("samples_needed", split, *self._describe_needed_samples())
        if len(self.order) > 2:  # two systems are ordered by their win rate alone
            yield _build_line("bradley_terry", split, *self._describe_strengths())
        if self.uneven_coverage:
            shares = (
                f"{uneven.system} {percent(uneven.coverage)} beside {uneven.neighbor} "
                f"{percent(uneven.of_neighbor)}"
                for uneven in self.uneven_coverage
            )
            yield _build_line("coverage", split, "; ".join(shares))
        if len(self.order) > 2:
            yield _build_line("gap", split, *self._describe_gap())

    @property
    def order(self) -> list[str]:
        rates = self.leave_one_judge_out.win_rate
        return [name for name, rate in rates.items() if rate is not None]

    def _describe_self_preference(self) -> SentenceAndReason:
        judges, definition = self.self_preference.judges, self.self_preference.definition
        preferences = []
        for judge, figure in judges.items():
            if figure.preference is not None:
                own, interval = _list_names(figure.own), _interval(figure.interval)
                preferences.append(f"{judge} {figure.preference:+.3f}{interval} for {own}")
        text, reason = "; ".join(preferences), None
        if not preferences:
            causes = (figure.reason for figure in judges.values() if figure.own)
            text, reason = _no_figure(next(causes, Unscored.NO_OWN_SYSTEM))
        makers = {**definition["judge_developers"], **definition["system_developers"]}
        unknown = [name for name, maker in makers.items() if maker is None]
        return text + (f"; developer unknown of {_list_names(unknown)}" if unknown else ""), reason

    def _describe_order_changes(self) -> SentenceAndReason:
        if len(self.leave_one_judge_out.without) < 2:
            return _no_figure(Unscored.ONE_JUDGE)
        swaps = [
            f"without {judge}: {_list_names(map(' and '.join, pairs))} change places"
            for judge, pairs in self.leave_one_judge_out.flips.items()
            if pairs
        ]
        return "; ".join(swaps) or "no two systems change places without any one judge", None

    def _describe_needed_samples(self) -> SentenceAndReason:
        pairs, sample_count = self.samples_needed.pairs, self.samples_needed.definition["samples"]
        counts, reasons = [], []
        for first, second in pairwise(self.order):
            need = pairs[first][second]
            reasons.append(need.reason)
            if need.needed:
                counts.append((need.needed, f"{first} and {second}"))
        if not counts:
            return _no_figure(next(iter(reasons), Unscored.ONE_SYSTEM))
        above = sorted((count for count in counts if count[0] > sample_count), reverse=True)
        phrases = [f"{count:,} for {names}" for count, names in above or [max(counts)]]
        lacking = len(reasons) - len(counts)
        phrases += [f"no number for {lacking} more"] if lacking else []
        return f"{_list_names(phrases)}; there are {sample_count:,}", None

    def _describe_gap(self) -> SentenceAndReason:
        gap, rates = self.gap, self.leave_one_judge_out.win_rate
        if gap.first is None or gap.second is None or gap.gap is None:
            return _no_figure(gap.reason)
        if gap.gap <= 1:
            return f"{gap.first} is {percent(gap.gap)} ahead of {gap.second}", None
        shares = (f"{format_rounded(rates[name])} of {name}" for name in (gap.first, gap.second))
        return f"more than twice: {' beside '.join(shares)}", None

    def _describe_strengths(self) -> SentenceAndReason:
        strength, reasons = self.bradley_terry.strength, self.bradley_terry.reasons
        fitted = {name: value for name, value in strength.items() if value is not None}
        if len(fitted) < 2:
            return _no_figure(next(iter(reasons.values()), Unscored.ONE_SYSTEM))
        swaps = [
            f"{upper} above {lower}"
            for upper, lower in pairwise(name for name in self.order if name in fitted)
            if fitted[upper] < fitted[lower] - TOLERANCE
        ]
        first, second = list(fitted)[:2]
        # In the model, the difference of two strengths is the logarithm of the odds of winning.
        chance = percent(1 / (1 + math.exp(fitted[second] - fitted[first])))
        text = f"win rates put {_list_names(swaps)}, strengths below" if swaps else "the same order"
        return f"{text}; {first} wins {chance} of comparisons with {second}", None


def _build_line(
    measure: str, split: str | None, text: str, reason: Unscored | None = None
) -> SavedTrustLine:
    meaning = MEANINGS[measure]
    return SavedTrustLine(measure=measure, split=split, said=text, meaning=meaning, reason=reason)


def find_uneven_coverage(
    board: Iterable[str], coverage: Mapping[str, float | None]
) -> Iterator[UnevenCoverage]:
    """Yield neighbors on a board, best first, whose coverage clearly differs."""
    shares = {name: coverage[name] or 0.0 for name in board}
    for neighbors in pairwise(shares):
        system, neighbor = sorted(neighbors, key=shares.__getitem__)
        if shares[neighbor] - shares[system] > UNEVEN_COVERAGE_GAP + TOLERANCE:
            yield UnevenCoverage(system, shares[system], neighbor, shares[neighbor])


def _no_figure(reason: Unscored | None) -> SentenceAndReason:
    reason = reason or Unscored.NOTHING_IN_COMMON
    return reason.meaning, reason


def _interval(interval: Interval | None) -> str:
    return "" if interval is None else f" ({interval[0]:+.3f} to {interval[1]:+.3f})"


def _list_names(names: Iterable[str]) -> str:
    listed = list(names)
    if len(listed) > MAX_LISTED:
        listed[MAX_LISTED:] = [f"{len(listed) - MAX_LISTED} more"]
    return ", ".join(listed)


def describe_drift(drift: Mapping[str, Any]) -> str:
    """Describe how far a judge's ratings moved between two audits, on its own scale."""
    days = f"from {drift['first']} to {drift['newest']}"
    if drift["difference"] is None:
        return f"rated no image both times, {days}"
    changed = f"another rating for {drift['changed']} of {drift['images']} images"
    return f"{drift['difference']:+.3f} points{_interval(drift['interval'])} {days}, {changed}"


def _pick_way(agreement: PairwiseAgreement) -> SentenceAndReason:
    """Recommend one of two ways of judging; only people's ranks can decide it."""
    sides = agreement.sides
    if sides is None:
        reasons = (judge.agreement.reason for judge in agreement.judges.values())
        return _no_figure(next(reasons, None))
    gap, rho = sides.difference, sides.spearman
    if gap.samples < MIN_SAMPLES:
        other = "have no order" if rho is None else f"agree by a Spearman of {rho:.2f}"
        return (
            f"nothing decides it without people, who have to rank {MIN_SAMPLES} samples or more "
            f"(echo-hf rank); the two {other}"
        ), None
    difference = f"{gap.value or 0.0:+.3f}{_interval(gap.interval)} on {gap.samples} samples"
    sentence = f"tau of choices less that of ratings {difference}"
    if sides.nearer is None:
        return f"nothing decides it, as the difference may be none: {sentence}", None
    return f"{WAY_NAMES[sides.nearer]}, which are nearer to people: {sentence}", None


def collect_trust_lines(
    trust_by_split: Mapping[str, Trust],
    drifts: Mapping[str, Mapping[str, Any]],
    compared: Mapping[str, PairwiseAgreement],
    trained: Iterable[ContaminationFigure] = (),
    worth: Mapping[Way, Mapping[str, CertificateFacts]] | None = None,
    pictures: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[SavedTrustLine]:
    """Collect all trust lines: of each split, of both together, and of judges audited again."""
    lines = [line for split, trust in trust_by_split.items() for line in trust.build_lines(split)]
    for split, agreement in compared.items():
        lines.append(_build_line("pairwise", split, *_pick_way(agreement)))
    if len(trust_by_split) == len(BENCHMARKS):
        trusts = [trust_by_split[name] for name in BENCHMARKS]
        gaps = [trust.gap.gap for trust in trusts if len(trust.order) > 2]
        if len(gaps) == len(BENCHMARKS) and all(gap is not None and gap <= 1 for gap in gaps):
            shares = zip(map(percent, gaps), BENCHMARKS, strict=True)
            sentence = " beside ".join(f"{share} in {name}" for share, name in shares)
            lines.append(_build_line("gap", None, sentence))
    lines += [_build_line(name, split, tested.summary) for name, split, tested in trained]
    for way, by_judge in (worth or {}).items():
        for judge, facts in by_judge.items():
            if facts.reason is None:
                text = f"{judge}, by {WAY_NAMES[way]}, {facts.summary}"
                lines.append(_build_line("certificate", None, text))
    for judge, drift in drifts.items():
        reason = Unscored.NOTHING_IN_COMMON if drift["difference"] is None else None
        lines.append(_build_line("judge_drift", None, f"{judge} {describe_drift(drift)}", reason))
    describe = {"tricks": describe_tricks, "faults": describe_faults}
    for judge, kinds in (pictures or {}).items():
        sentence = "; ".join(describe[kind](kinds[kind]) for kind in describe if kind in kinds)
        lines.append(_build_line("hostile_pictures", None, f"{judge} {sentence}"))
    return sorted(lines, key=lambda line: list(MEANINGS).index(line.measure))
