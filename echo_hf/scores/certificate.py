"""Certificates of yes/no checks: whether they separate what people complain about from praise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from echo_hf._infra.bootstrap import (
    CELLS_PER_BATCH,
    LEVEL,
    MIN_SPREAD,
    Interval,
    Unscored,
    generator,
)
from echo_hf._infra.summary import SummaryMixin
from echo_hf.errors import ScoreError
from echo_hf.scores.rating_table import Bools, Floats, Integers, divide
from echo_hf.scores.tiers import adjust_holm, compute_smallest_p

MIN_THREADS = 15  # of each kind: fewer prove nothing
KEPT_P = 0.05
KEPT_J = 0.3
POWER = 0.8
TEST = "exchange of labels between whole threads, one-sided"


@dataclass(frozen=True, repr=False)
class Certificate(SummaryMixin):
    """How well a check's yes tells outputs that people complained about from those they praised.

    Attributes:
        sensitivity: Share of yes among outputs that were complained about; null without any.
        specificity: Share of no among outputs that were praised; null without any.
        j: Sensitivity plus specificity minus 1 (Youden's J): 0 for a check that tells nothing, 1
            for one that is always right; null without complaints or without praise.
        interval: Lower and upper end of J at 95 %: Newcombe's, from Wilson's intervals of both
            shares, as if each thread had one output; null as J is.
        p: Chance of such a J, or a higher one, for a check that tells nothing; null where no
            thread has mostly complaints, or none has mostly praise.
        caught: Outputs complained about that got a yes.
        complaints: Outputs complained about.
        passed: Praised outputs that got a no.
        praise: Praised outputs.
        complaint_threads: Threads with an output that was complained about.
        praise_threads: Threads with a praised output.
        design_effect: How many outputs tell as much as a single one of a thread of its own: 1
            where answers in a thread are no more alike than others.
        needed: How many more threads of each kind such a J takes to be kept in 80 of 100 cases,
            by a normal approximation on thread counts; null where it passed, and where J is below
            0.3, which no number of threads mends.
        reason: Why J is null; `few_threads` where it is no proof yet; else null.
        definition: Every parameter.
    """

    sensitivity: float | None
    specificity: float | None
    j: float | None
    interval: Interval | None
    p: float | None
    caught: int
    complaints: int
    passed: int
    praise: int
    complaint_threads: int
    praise_threads: int
    design_effect: float
    needed: int | None
    reason: Unscored | None
    definition: Mapping[str, Any]

    @property
    def lower_end(self) -> float:
        """The lower end of J's interval; -1, the lowest there is, where it has none."""
        return -1.0 if self.interval is None else self.interval[0]

    def passes(self, p: float | None = None) -> bool:
        """Return whether J and a p value are good enough to keep the check.

        Args:
            p: The p value, adjusted for all checks that were proposed; null for that of this one.

        Returns:
            Whether p is at most 0.05 and J at least 0.3, whatever the number of threads.
        """
        p = self.p if p is None else p
        return p is not None and p <= KEPT_P and self.j is not None and _is_strong(self.j)


def certify(
    yes: ArrayLike,
    complained: ArrayLike,
    threads: Sequence[str],
    *,
    draws: int = 999,
    seed: int = 0,
    checks: int = 1,
) -> Certificate:
    """Hold a check's answers against what people said of the same outputs.

    The exchange test asks how often labels that are exchanged between whole threads by chance give
    as high a J: a thread has the label of most of its outputs. One with as many complaints as
    praise has none, and is left out of the test; its outputs count in everything else.

    Args:
        yes: The check's answer to each output: 1 or true for yes, which is a failure.
        complained: Whether people complained about that output; they praised it otherwise.
        threads: The thread of each output.
        draws: Exchanges that are drawn.
        seed: Of the draws.
        checks: How many checks are proposed together, for `needed`: p has to stand Holm's
            correction.

    Returns:
        The certificate; with a reason where there is too little to certify.

    Raises:
        ScoreError: The three differ in length, an answer or a label is neither 0 nor 1, or a
            number is out of range.

    Examples:
        >>> threads = [f"{at}" for at in range(40)]
        >>> result = certify([1] * 18 + [0] * 20 + [1] * 2, [1] * 20 + [0] * 20, threads)
        >>> round(result.j, 3), round(result.lower_end, 3), result.p, result.passes()
        (0.8, 0.516, 0.001, True)
    """
    smallest_p = compute_smallest_p(draws, "draws")
    if isinstance(checks, bool) or not isinstance(checks, int) or checks < 1:
        raise ScoreError(f"checks is {checks!r}: expected a whole number, 1 or more")
    outputs = read_labels(complained, threads)
    answers = read_flags("yes", yes, len(threads)).astype(float)
    caught, flagged = outputs.sum_kinds(answers)
    complaints, praise = outputs.outputs
    sensitivity = caught / complaints if complaints else None
    specificity = 1 - flagged / praise if praise else None
    j = interval = needed = None
    if sensitivity is not None and specificity is not None:
        j = caught / complaints - flagged / praise
        interval = difference_interval(sensitivity, 1 - specificity, outputs.threads)
    p = outputs.exchange(answers, draws, seed, smallest_p)
    is_open = p is None or p > KEPT_P / checks or outputs.reason is not None
    if j is not None and _is_strong(j) and is_open:
        shares = np.array([caught / complaints, flagged / praise])
        needed = estimate_threads(shares, KEPT_P / checks) - min(outputs.threads)
    return Certificate(
        sensitivity,
        specificity,
        j,
        interval,
        p,
        int(caught),
        complaints,
        praise - int(flagged),
        praise,
        *outputs.threads,
        outputs.compute_design_effect(answers),
        None if needed is None else max(needed, 1),
        outputs.reason,
        {
            "measure": "certificate",
            "test": TEST,
            "draws": draws,
            "seed": seed,
            "checks": checks,
            "interval": "Newcombe of Wilson's on thread counts",
            "confidence": LEVEL,
            "kept": {"p": KEPT_P, "j": KEPT_J, "threads_of_each_kind": MIN_THREADS},
        },
    )


def adjust_p_values(p_values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Adjust the p values of checks that were proposed together, by Holm's method.

    Args:
        p_values: One a check; null where there is none, which takes nothing from the others.

    Returns:
        The adjusted ones in the same order. Where those of at most 0.05 are kept, one that tells
        nothing is kept in no more than 5 of 100 cases.

    Raises:
        ScoreError: One is no number from 0 to 1.

    Examples:
        >>> adjust_p_values([0.01, None, 0.02, 0.5])
        (0.03, None, 0.04, 0.5)
    """
    known = np.array([p for p in p_values if p is not None], np.float64)
    if not ((known >= 0) & (known <= 1)).all():
        raise ScoreError(f"p values are {list(p_values)!r}: expected numbers from 0 to 1")
    adjusted = iter(adjust_holm(known).tolist())
    return tuple(None if p is None else next(adjusted) for p in p_values)


class LabelledOutputs(NamedTuple):
    """Outputs complained about or praised, and the thread of each by number."""

    complained: Bools
    thread: Integers
    sizes: Floats  # outputs by thread
    kinds: Floats  # [complained or praised, thread] outputs

    @property
    def outputs(self) -> tuple[int, int]:
        complaints, praise = self.kinds.sum(axis=1).astype(int).tolist()
        return complaints, praise

    @property
    def threads(self) -> tuple[int, int]:
        complaint_threads, praise_threads = (self.kinds > 0).sum(axis=1).tolist()
        return complaint_threads, praise_threads

    @property
    def reason(self) -> Unscored | None:
        complaints, praise = self.outputs
        if not complaints:
            return Unscored.NO_COMPLAINTS
        if not praise:
            return Unscored.NO_PRAISE
        return Unscored.FEW_THREADS if min(self.threads) < MIN_THREADS else None

    def sum_threads(self, values: Floats) -> Floats:
        """Return [kind, thread] sums of a value of each output."""
        flags = np.array([self.complained, ~self.complained])
        return np.array(
            [np.bincount(self.thread, values * kind, len(self.sizes)) for kind in flags]
        )

    def sum_kinds(self, values: Floats) -> tuple[float, float]:
        complaints, praise = self.sum_threads(values).sum(axis=1).tolist()
        return complaints, praise

    def exchange(self, values: Floats, draws: int, seed: int, smallest_p: float) -> float | None:
        """Return the one-sided p of the difference of means, by exchange between threads."""
        rng, gap = generator(seed), self.kinds[0] - self.kinds[1]
        labels, sizes = (gap > 0)[gap != 0], self.sizes[gap != 0]
        if not len(labels) or labels.all() or not labels.any():
            return None
        totals = np.bincount(self.thread, values, len(self.sizes))[gap != 0]

        def compare(chosen: Floats) -> Floats:
            first, second = chosen @ totals, chosen @ sizes
            gaps: Floats = first / second - (totals.sum() - first) / (sizes.sum() - second)
            return gaps

        observed, reached = compare(labels.astype(float)), 0
        batch = max(1, CELLS_PER_BATCH // len(labels))
        for start in range(0, draws, batch):
            drawn = np.tile(labels.astype(float), (min(batch, draws - start), 1))
            rng.permuted(drawn, axis=1, out=drawn)
            reached += int((compare(drawn) >= observed - MIN_SPREAD).sum())
        return (1 + reached) * smallest_p

    def compute_design_effect(self, values: Floats) -> float:
        """Compare the variance of both shares between threads with that of outputs apart."""
        if not all(self.outputs) or min(self.threads) < 2:
            return float(self.sizes.mean()) if len(self.sizes) else 1.0
        counts = self.kinds.sum(axis=1, keepdims=True)
        sums = self.sum_threads(values)
        shares = sums.sum(axis=1, keepdims=True) / counts
        by_thread = np.array(self.threads)
        squares = ((sums - shares * self.kinds) ** 2).sum(axis=1) / counts[:, 0] ** 2
        between = (by_thread / (by_thread - 1) * squares).sum()
        apart = (shares * (1 - shares) / counts).sum()
        return max(1.0, float(divide(between, apart))) if apart else float(self.sizes.mean())


def _is_strong(j: float) -> bool:
    return j >= KEPT_J - MIN_SPREAD  # as the difference of two shares, 0.3 may fall short of it


def read_labels(complained: ArrayLike, threads: Sequence[str]) -> LabelledOutputs:
    flags = read_flags("complained", complained, len(threads))
    _, thread = np.unique(np.asarray(threads, dtype=str), return_inverse=True)
    kinds = np.array([np.bincount(thread, flags), np.bincount(thread, ~flags)], np.float64)
    return LabelledOutputs(flags, thread, kinds.sum(axis=0), kinds)


def read_flags(name: str, flags: ArrayLike, count: int) -> Bools:
    """Return flags as an array, where each is 0 or 1 and there is one for each of `count`."""
    try:
        values = np.asarray(flags, dtype=np.float64)
    except (TypeError, ValueError):
        raise ScoreError(f"{name} is {flags!r:.60}: expected a list of 0 and 1") from None
    if values.shape != (count,):
        raise ScoreError(f"{name} has {values.size} values: expected {count}, one an output")
    wrong = values[(values != 0) & (values != 1)]
    if len(wrong):
        raise ScoreError(f"{name} holds {wrong[0].item()!r}: expected 0 or 1 for each output")
    return np.asarray(values == 1)


def difference_interval(first: float, second: float, counts: tuple[int, int]) -> Interval:
    """Return Newcombe's 95 % interval of a difference of two shares, of so many threads."""
    from scipy.special import ndtri

    z = float(ndtri((1 + LEVEL) / 2))

    def wilson(share: float, count: int) -> Interval:
        center = (share + z * z / 2 / count) / (1 + z * z / count)
        half = z * math.sqrt(share * (1 - share) / count + z * z / 4 / count**2)
        return center - half / (1 + z * z / count), center + half / (1 + z * z / count)

    (low, high), (other_low, other_high) = map(wilson, (first, second), counts)
    below = math.hypot(first - low, other_high - second)
    above = math.hypot(high - first, second - other_low)
    return max(-1.0, first - second - below), min(1.0, first - second + above)


def estimate_threads(shares: Floats, alpha: float) -> int:
    """Return how many threads of each kind show two shares to differ, at POWER and one-sided."""
    from scipy.special import ndtri

    under_none = math.sqrt(2 * shares.mean() * (1 - shares.mean()))
    as_seen = math.sqrt((shares * (1 - shares)).sum())
    effect = ndtri(1 - alpha) * under_none + ndtri(POWER) * as_seen
    return max(MIN_THREADS, math.ceil(float(effect / (shares[0] - shares[1])) ** 2))
