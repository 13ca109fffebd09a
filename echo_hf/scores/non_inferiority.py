"""A test whether a system is at most a margin worse than another one, on the same samples."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from echo_hf._infra.bootstrap import MIN_SAMPLES, MIN_SPREAD, Interval, Unscored, tail_share
from echo_hf._infra.summary import SummaryMixin
from echo_hf.errors import ScoreError, unknown
from echo_hf.scores import votes
from echo_hf.scores.rating_table import DrawChoice, Floats, read_outputs
from echo_hf.scores.votes import Choices
from echo_hf.tables import Outcome, select_first_draws

POWER = 0.8
RARE = 0.05  # a share of samples
FEWEST_RATED = 0.95  # a share of samples: with fewer, what is missing may decide
WIDEST = 0.5  # a rate differs from that of an equal system by no more
EDGE = 1 - 1e-12
DRAWS, AT_ONCE = 10_000, 100
Verdict = Literal["non_inferior", "worse", "undecided"]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, repr=False)
class NonInferiority(SummaryMixin):
    """The comparison of a new system with a base on the same samples, and its verdict.

    Attributes:
        verdict: `non_inferior`: the whole interval lies above minus the margin, also where it lies
            below 0; `worse`: the whole interval lies below minus the margin; else, and where the
            coverage is below 0.95 and it is not `worse`, `undecided`.
        difference: Mean over the compared samples, above 0 where the new system is better.
        interval: Lower and upper end, each at the confidence asked for; null where `reason` says
            why. Where all differences are one number, it is both ends.
        margin: By how much worse the new system may be, above 0.
        n: Samples that were compared.
        wins: Samples on which the new system is better.
        ties: Samples on which neither is.
        losses: Samples on which the base is better.
        base_n: Samples with an image of the base; without outputs, with a rating; of a metric, with
            a number.
        new_n: The same of the new system.
        coverage: Share, 0 to 1, of the samples that were asked of either system on which both have
            a rating, or a number; null where nothing was asked.
        needed: More samples that would show an equal system to be non-inferior in 80 of 100
            cases; null once it is decided, and where the spread is not known or the coverage low.
        reason: Why there is no interval or one without width, or why the verdict stays open.
        definition: Every parameter.
    """

    verdict: Verdict
    difference: float | None
    interval: Interval | None
    margin: float
    n: int
    wins: int
    ties: int
    losses: int
    base_n: int
    new_n: int
    coverage: float | None
    needed: int | None
    reason: Unscored | None
    definition: Mapping[str, Any]


def non_inferiority(
    ratings: Any,
    base: str,
    new: str,
    *,
    outputs: Any = None,
    margin: float = 0.05,
    confidence: float = 0.95,
    **choices: Unpack[Choices],
) -> NonInferiority:
    """Test whether judges prefer a base to a new system by less than a margin.

    The difference is the new system's share of the points won from the base, 1 for a win and 0.5
    for a tie by the protocol's vote, minus 0.5: from -0.5 to 0.5. Its interval is the score
    interval for paired shares (Tango 1998), one outcome a sample, which also holds where nearly all
    samples are ties, as for two precisions of one model.

    With outputs, a system without an image loses to one that has an image of the same sample,
    whatever its outcome is called: a system cannot pass by leaving out what it does badly.

    Args:
        ratings: As for `win_rate`.
        base: The system to be compared with.
        new: The system that may be no worse than the margin.
        outputs: As for `win_rate`.
        margin: Largest loss of rate that is accepted, above 0 and below 0.5.
        confidence: Of each end of the interval, from 0.5 to 1: false passes of a system that is
            worse by the margin are at most 1 minus this.
        choices: `protocol` (its vote alone), `rubric` and `judges`, as for `win_rate`; `missing` is
            of no account here.

    Returns:
        The verdict, the difference with its interval, and the samples that it is made of.

    Raises:
        TableError: A table lacks a column, or has it with another type.
        ScoreError: As for `win_rate`; a system is not there, or both are the same; the margin or
            the confidence is out of range.

    Examples:
        >>> keys = {"sample_id": [f"{at:02}" for at in range(60)] * 2, "judge": ["j"] * 120}
        >>> rated = {**keys, "system": ["a"] * 60 + ["b"] * 60, "rating": [5] * 117 + [6, 6, 4]}
        >>> found = non_inferiority(rated, "a", "b")
        >>> found.verdict, round(found.difference, 4), round(found.interval[0], 4)
        ('non_inferior', 0.0083, -0.0213)
    """
    limits = _check_limits(margin, confidence)
    if margin >= WIDEST:
        raise ScoreError(f"margin is {margin!r}: expected less than 0.5, such as 0.05")
    compared = votes.count_votes(ratings, outputs, **choices)
    table = compared.table
    for name in (base, new):
        if name not in table.systems:
            raise ScoreError(unknown("system", name, table.systems))
    if base == new:
        raise ScoreError(f"base and new are both {base!r}: expected two systems")
    old, other = table.systems.index(base), table.systems.index(new)
    first, second = votes.list_pairs(len(table.systems))
    pair = (first == min(old, other)) & (second == max(old, other))
    verdicts = compared.verdicts[pair][0] * (1 if old > other else -1)
    is_rated: Flags = ~np.isnan(table.ratings)
    rated: Flags = np.any(is_rated, axis=0)[[old, other]]
    has_image, was_asked = rated, rated
    both_rated = int((rated.all(axis=0) & ~np.isnan(verdicts)).sum())
    if outputs is not None:
        names = (base, new), table.samples
        has_image, was_asked = _read_outcomes(outputs, *names, draws=table.draws)
        verdicts = np.where(
            has_image[0] == has_image[1], verdicts, np.where(has_image[1], 1.0, -1.0)
        )
        verdicts[~has_image.any(axis=0)] = np.nan
    counts = _count_outcomes(verdicts, *has_image)
    n, wins, _, losses, *_ = counts
    interval: Interval | None = None
    reason: Unscored | None = Unscored.FEW_SAMPLES
    spreads = WIDEST, WIDEST
    if n >= MIN_SAMPLES:
        interval, reason = score_interval(wins, losses, n, confidence), None
        at_margin = _compute_score(wins, losses, n, -2 * margin)[1]
        spreads = math.sqrt(at_margin) / 2, math.sqrt((wins + losses) / n) / 2
    verdict = _decide(interval, margin)
    needed = _estimate_needed(verdict, n, MIN_SAMPLES, limits, spreads)
    coverage = _divide_or_none(both_rated, int(was_asked.any(axis=0).sum()))
    if _is_open(verdict, coverage):
        verdict, needed, reason = "undecided", None, Unscored.LOW_COVERAGE
    parameters = {"base": base, "new": new, **limits, "interval": "score of paired shares"}
    definition = compared.definition("non_inferiority", **parameters)
    difference = (wins - losses) / n / 2 if n else None
    return NonInferiority(
        verdict, difference, interval, margin, *counts, coverage, needed, reason, definition
    )


def paired_non_inferiority(
    base: Sequence[float | None],
    new: Sequence[float | None],
    *,
    margin: float,
    higher_is_better: bool,
    confidence: float = 0.95,
) -> NonInferiority:
    """Test the same for a metric, from a number a sample; null where it has none.

    The interval is scipy's accelerated bootstrap (BCa).
    Where all samples differ by one number, it is both ends from so many samples on that others
    are unlikely to differ in more than 5 of 100 cases.
    """
    from scipy.stats import bootstrap

    limits = _check_limits(margin, confidence)
    base_values, new_values = (np.array(values, np.float64) for values in (base, new))
    gaps = new_values - base_values if higher_is_better else base_values - new_values
    counts = _count_outcomes(gaps, ~np.isnan(base_values), ~np.isnan(new_values))
    gaps = np.sort(gaps[~np.isnan(gaps)])  # the draws depend on no order
    n, least, ends = len(gaps), MIN_SAMPLES, None
    reason: Unscored | None = Unscored.FEW_SAMPLES
    difference = float(gaps.mean()) if n else None
    if n >= MIN_SAMPLES and np.ptp(gaps) > MIN_SPREAD * (1 + np.abs(gaps).max()):
        level, rng = 1 - 2 * tail_share(1 - confidence, n), np.random.default_rng(0)
        options = {"confidence_level": level, "n_resamples": DRAWS, "batch": AT_ONCE, "rng": rng}
        low, high = bootstrap((gaps,), np.mean, **options).confidence_interval
        ends, reason = (float(low), float(high)), None
    elif difference is not None and n >= MIN_SAMPLES:
        least, reason = math.ceil(math.log(1 - confidence) / math.log(1 - RARE)), Unscored.NO_SPREAD
        ends = (difference, difference) if n >= least else None
    verdict = _decide(ends, margin)
    spread = float(gaps.std(ddof=1)) if n > 1 else math.nan
    needed = _estimate_needed(verdict, n, least, limits, (spread, spread))
    coverage = _divide_or_none(n, len(base_values))
    if _is_open(verdict, coverage):
        verdict, needed, reason = "undecided", None, Unscored.LOW_COVERAGE
    definition = {
        "measure": "non_inferiority",
        "difference": "mean over samples of the differences of their numbers",
        "direction": f"{'higher' if higher_is_better else 'lower'} is better",
        **limits,
        "interval": {"kind": "expanded BCa bootstrap over samples", "draws": DRAWS, "seed": 0},
    }
    return NonInferiority(
        verdict, difference, ends, margin, *counts, coverage, needed, reason, definition
    )


def _read_outcomes(
    outputs: Any, systems: Sequence[str], samples: Sequence[str], *, draws: DrawChoice
) -> tuple[Flags, Flags]:
    """Return [system, sample] whether there is an image, and whether one was asked for.

    Nothing was asked for that neither system takes. Of several draws each has to have an image.
    """
    rows = read_outputs(outputs)
    if draws == "first":
        rows = select_first_draws(rows)
    known_names = (pa.array(names, pa.string()) for names in (systems, samples))
    places = (
        pc.index_in(rows[column], names).fill_null(-1).to_numpy()
        for column, names in zip(("system", "sample_id"), known_names, strict=True)
    )
    system, sample = places
    is_known = (system >= 0) & (sample >= 0)
    cells, outcomes = (system[is_known], sample[is_known]), rows["outcome"].to_numpy()[is_known]
    has_image, was_asked = (np.zeros((len(systems), len(samples)), dtype=bool) for _ in range(2))
    np.logical_or.at(has_image, cells, outcomes == Outcome.OK.value)
    np.logical_and.at(has_image, cells, outcomes == Outcome.OK.value)
    np.logical_or.at(was_asked, cells, outcomes != Outcome.UNSUPPORTED.value)
    return has_image, was_asked


def _divide_or_none(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _is_open(verdict: Verdict, coverage: float | None) -> bool:
    """Whether too few samples count for a verdict; `worse` stays, whatever the others show."""
    return verdict != "worse" and coverage is not None and coverage < FEWEST_RATED


def _count_outcomes(gaps: Floats, base: Flags, new: Flags) -> tuple[int, int, int, int, int, int]:
    wins, ties, losses = (int((np.sign(gaps) == sign).sum()) for sign in (1, 0, -1))
    return wins + ties + losses, wins, ties, losses, int(base.sum()), int(new.sum())


def score_interval(wins: int, losses: int, n: int, confidence: float) -> Interval:
    """Return half the difference of two paired shares, by Tango's score, at the confidence."""
    from scipy.optimize import brentq
    from scipy.special import ndtri

    def find_end(quantile: float, side: float) -> float:
        def excess(difference: float) -> float:
            return _compute_score(wins, losses, n, difference)[0] - quantile

        if excess(side * EDGE) * excess(-side * EDGE) > 0:  # no difference is too far to that side
            return side / 2
        return float(brentq(excess, -EDGE, EDGE, xtol=1e-12)) / 2

    quantile = float(ndtri(confidence))
    return find_end(quantile, -1.0), find_end(-quantile, 1.0)


def _compute_score(wins: int, losses: int, n: int, difference: float) -> tuple[float, float]:
    """Return the standardized distance from a difference, and the variance under it."""
    linear = (2 * n - wins + losses) * difference - wins - losses
    spread = difference * (1 - difference)
    # The likeliest share of losses under that difference.
    share = (math.sqrt(max(linear * linear + 8 * n * losses * spread, 0.0)) - linear) / (4 * n)
    variance = max(2 * share + spread, 1e-300)
    return (wins - losses - n * difference) / math.sqrt(n * variance), variance


def _check_limits(margin: float, confidence: float) -> dict[str, float]:
    if not 1e-100 < margin < math.inf:  # the square of what is smaller is 0
        raise ScoreError(f"margin is {margin!r}: expected a number above 0, such as 0.05")
    if not 0.5 < confidence < 1:
        raise ScoreError(f"confidence is {confidence!r}: expected 0.5 to 1, such as 0.95")
    return {"margin": margin, "confidence": confidence, "power": POWER}


def _decide(interval: Interval | None, margin: float) -> Verdict:
    if interval and interval[0] > -margin:
        return "non_inferior"
    return "worse" if interval and interval[1] < -margin else "undecided"


def _estimate_needed(
    verdict: Verdict, n: int, least: int, limits: Mapping[str, float], spreads: tuple[float, float]
) -> int | None:
    """Estimate the samples missing for the power, from the spread at the margin and at 0."""
    from scipy.special import ndtri

    if verdict != "undecided" or math.isnan(sum(spreads)):
        return None
    effect = float(ndtri(limits["confidence"]) * spreads[0] + ndtri(limits["power"]) * spreads[1])
    return max(math.ceil((effect / limits["margin"]) ** 2), least, n) - n
