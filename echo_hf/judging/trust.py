"""How far to trust the win rates of a run: one line a measure, and a sentence on what it says."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from echo_hf import scores
from echo_hf._infra.bootstrap import FEWEST_SAMPLES, Interval
from echo_hf._infra.text import percent, rounded
from echo_hf.config.checks import AnsweredBy
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.judging.anchors import Anchors, fit
from echo_hf.judging.run_tables import Models
from echo_hf.reasons import Unscored
from echo_hf.scores.pairwise_agreement import PairwiseAgreement, Way
from echo_hf.scores.rating_table import RatingTable
from echo_hf.scores.votes import ProtocolName

SHOWN = 3
UNEVEN = 0.05  # a share of comparisons
SAME = 1e-9
MEANINGS: Mapping[str, str] = {
    "self_preference": "the share of points that a judge gives its own developer's systems, less "
    "what others' judges give them: above 0 it favors them, or sees what the others do not",
    "leave_one_judge_out": "the board without each judge: an order that turns hangs on that judge",
    "samples_needed": "how many samples would tell two neighbors on the board apart if they differ "
    "as they do here (power 80 %, two-sided at 5 %)",
    "bradley_terry": "strengths that explain all pairs at once: another order than by win rates "
    "says that these depend on which pairs were rated",
    "coverage": "the share of comparisons that a win rate rests on: where a system left out more "
    "than its neighbor, the two were not held against the same prompts",
    "gap": "how far the best system is ahead, as a share of the second's win rate: the paper finds "
    "less of it where no image is given",
    "pairwise": "which to trust here, ratings of one output at a time or choices between two, by "
    "the same judges on the same pairs: the nearer to people, by Kendall's tau within samples",
    "judge_drift": "what a judge says of the same images later, less what it said first: beyond 0, "
    "its older and newer ratings do not compare",
}
WAYS: Mapping[Way, str] = {"pointwise": "ratings", "pairwise": "choices"}
Said = tuple[str, Unscored | None]


@dataclass(frozen=True)
class TrustLine:
    """What one measure says of a split, or of the whole run; `reason`: why there is no figure."""

    measure: str
    split: str | None
    said: str
    reason: Unscored | None = None

    @property
    def meaning(self) -> str:
        return MEANINGS[self.measure]


@dataclass(frozen=True)
class UnevenCoverage:
    """A system whose win rate rests on clearly less than that of a neighbor on the board."""

    system: str
    coverage: float
    neighbor: str
    of_neighbor: float


@dataclass(frozen=True)
class Trust:
    self_preference: scores.SelfPreference
    leave_one_judge_out: scores.LeaveOneJudgeOut
    samples_needed: scores.SamplesNeeded
    bradley_terry: scores.BradleyTerry
    gap: scores.Gap
    uneven_coverage: tuple[UnevenCoverage, ...]

    @classmethod
    def of(
        cls,
        table: RatingTable,
        protocol: ProtocolName,
        models: Models,
        n_boot: int,
        coverage: Mapping[str, float | None],
        anchors: Anchors | None = None,
    ) -> Trust:
        judges, systems = (
            {name: known.get(name, AnsweredBy()).maker for name in names}
            for known, names in ((models.judges, table.judges), (models.systems, table.systems))
        )
        left_out = scores.leave_one_judge_out(table, protocol=protocol)
        return cls(
            scores.self_preference(table, judges, systems, n_boot=n_boot),
            left_out,
            scores.samples_needed(table, protocol=protocol),
            fit(table, protocol, n_boot, anchors),
            scores.relative_gap(left_out.win_rate),
            tuple(uneven_coverage(left_out.win_rate, coverage)),
        )

    def lines(self, split: str) -> Iterator[TrustLine]:
        yield TrustLine("self_preference", split, *self._favors())
        yield TrustLine("leave_one_judge_out", split, *self._turns())
        yield TrustLine("samples_needed", split, *self._needs())
        if len(self.order) > 2:  # of two, win rates alone decide
            yield TrustLine("bradley_terry", split, *self._explains())
        if self.uneven_coverage:
            beside = (
                f"{one.system} {percent(one.coverage)} beside {one.neighbor} "
                f"{percent(one.of_neighbor)}"
                for one in self.uneven_coverage
            )
            yield TrustLine("coverage", split, "; ".join(beside))
        if len(self.order) > 2:
            yield TrustLine("gap", split, *self._leads())

    @property
    def order(self) -> list[str]:
        rates = self.leave_one_judge_out.win_rate
        return [name for name, rate in rates.items() if rate is not None]

    def _favors(self) -> Said:
        found, definition = self.self_preference.judges, self.self_preference.definition
        said = [
            f"{judge} {one.preference:+.3f}{_ends(one.interval)} for {_listed(one.own)}"
            for judge, one in found.items()
            if one.preference is not None
        ]
        why = next((one.reason for one in found.values() if one.own), Unscored.NO_OWN_SYSTEM)
        text, reason = ("; ".join(said), None) if said else _nothing(why)
        makers = {**definition["judge_developers"], **definition["system_developers"]}
        nobody = [name for name, maker in makers.items() if maker is None]
        return text + (f"; developer unknown of {_listed(nobody)}" if nobody else ""), reason

    def _turns(self) -> Said:
        if len(self.leave_one_judge_out.without) < 2:
            return _nothing(Unscored.ONE_JUDGE)
        turned = [
            f"without {judge}: {_listed(map(' and '.join, pairs))} change places"
            for judge, pairs in self.leave_one_judge_out.flips.items()
            if pairs
        ]
        return "; ".join(turned) or "no two systems change places without any one judge", None

    def _needs(self) -> Said:
        pairs, there = self.samples_needed.pairs, self.samples_needed.definition["samples"]
        found = [(one, other, pairs[one][other]) for one, other in pairwise(self.order)]
        counts = [(at.needed, f"{one} and {other}") for one, other, at in found if at.needed]
        if not counts:
            return _nothing(next((at.reason for *_, at in found), Unscored.ONE_SYSTEM))
        short = sorted((one for one in counts if one[0] > there), reverse=True)
        said = [f"{count:,} for {names}" for count, names in short or [max(counts)]]
        lacking = len(found) - len(counts)
        said += [f"no number for {lacking} more"] if lacking else []
        return f"{_listed(said)}; there are {there:,}", None

    def _leads(self) -> Said:
        gap, rates = self.gap, self.leave_one_judge_out.win_rate
        if gap.first is None or gap.second is None or gap.gap is None:
            return _nothing(gap.reason)
        if gap.gap <= 1:
            return f"{gap.first} is {percent(gap.gap)} ahead of {gap.second}", None
        shown = (f"{rounded(rates[name])} of {name}" for name in (gap.first, gap.second))
        return f"more than twice: {' beside '.join(shown)}", None

    def _explains(self) -> Said:
        strength, reasons = self.bradley_terry.strength, self.bradley_terry.reasons
        known = {name: value for name, value in strength.items() if value is not None}
        if len(known) < 2:
            return _nothing(next(iter(reasons.values()), Unscored.ONE_SYSTEM))
        turned = [
            f"{one} above {other}"
            for one, other in pairwise(name for name in self.order if name in known)
            if known[one] < known[other] - SAME
        ]
        first, second = list(known)[:2]
        chance = percent(1 / (1 + math.exp(known[second] - known[first])))
        said = f"win rates put {_listed(turned)}, strengths below" if turned else "the same order"
        return f"{said}; {first} wins {chance} of comparisons with {second}", None


def uneven_coverage(
    board: Iterable[str], coverage: Mapping[str, float | None]
) -> Iterator[UnevenCoverage]:
    """Neighbors on a board, best first, of which one left out more than the other."""
    shares = {name: coverage[name] or 0.0 for name in board}
    for neighbors in pairwise(shares):
        system, neighbor = sorted(neighbors, key=shares.__getitem__)
        if shares[neighbor] - shares[system] > UNEVEN + SAME:
            yield UnevenCoverage(system, shares[system], neighbor, shares[neighbor])


def _nothing(reason: Unscored | None) -> Said:
    why = reason or Unscored.NOTHING_IN_COMMON
    return why.meaning, why


def _ends(interval: Interval | None) -> str:
    return "" if interval is None else f" ({interval[0]:+.3f} to {interval[1]:+.3f})"


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    return ", ".join([*every[:SHOWN], *([f"{len(every) - SHOWN} more"] * (len(every) > SHOWN))])


def drift_said(drift: Mapping[str, Any]) -> str:
    """How far a judge moved between two audits, on its own scale."""
    days = f"from {drift['first']} to {drift['newest']}"
    if drift["difference"] is None:
        return f"rated no image both times, {days}"
    changed = f"another rating for {drift['changed']} of {drift['images']} images"
    return f"{drift['difference']:+.3f} points{_ends(drift['interval'])} {days}, {changed}"


def _which(found: PairwiseAgreement) -> Said:
    """Which of two ways of judging to trust; only people say it."""
    sides = found.sides
    if sides is None:
        return _nothing(next((one.agreement.reason for one in found.judges.values()), None))
    gap, alike = sides.difference, sides.spearman
    if gap.samples < FEWEST_SAMPLES:
        other = "have no order" if alike is None else f"agree by a Spearman of {alike:.2f}"
        return (
            f"nothing decides it without people, who have to rank {FEWEST_SAMPLES} samples or more "
            f"(echo-hf rank); the two {other}"
        ), None
    apart = f"{gap.value or 0.0:+.3f}{_ends(gap.interval)} on {gap.samples} samples"
    said = f"tau of choices less that of ratings {apart}"
    if sides.nearer is None:
        return f"nothing decides it, as the difference may be none: {said}", None
    return f"{WAYS[sides.nearer]}, which are nearer to people: {said}", None


def trust_lines(
    found: Mapping[str, Trust],
    drifts: Mapping[str, Mapping[str, Any]],
    compared: Mapping[str, PairwiseAgreement],
) -> list[TrustLine]:
    """All there is to say: of each split, of one split beside the other, of judges asked again."""
    said = [one for split, trust in found.items() for one in trust.lines(split)]
    said += [TrustLine("pairwise", name, *_which(one)) for name, one in compared.items()]
    if len(found) == len(BENCHMARKS):
        gaps = [found[name].gap.gap for name in BENCHMARKS if len(found[name].order) > 2]
        if len(gaps) == len(BENCHMARKS) and all(gap is not None and gap <= 1 for gap in gaps):
            shares = zip(map(percent, gaps), BENCHMARKS, strict=True)
            beside = " beside ".join(f"{share} in {name}" for share, name in shares)
            said.append(TrustLine("gap", None, beside))
    for judge, one in drifts.items():
        why = Unscored.NOTHING_IN_COMMON if one["difference"] is None else None
        said.append(TrustLine("judge_drift", None, f"{judge} {drift_said(one)}", why))
    return sorted(said, key=lambda one: list(MEANINGS).index(one.measure))
