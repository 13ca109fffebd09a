"""How often a system fails, from a check that errs: by its certificate, or by people's labels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from echo_hf._infra.bootstrap import LEVEL, Interval, Unscored
from echo_hf._infra.summary import SummaryMixin
from echo_hf.errors import ScoreError
from echo_hf.scores.certificate import Certificate, read_flags
from echo_hf.scores.estimate import compute_t_quantile
from echo_hf.scores.rating_table import Floats
from echo_hf.scores.sequential import check_probabilities

MIN_LABELS = 30
MIN_OF_A_KIND = 8  # labels: with fewer the interval is exact, from people alone
MIN_LOWER_END = 0.1  # of J
RateMethod = Literal["corrected", "prediction_powered", "exact"]


@dataclass(frozen=True, repr=False)
class FailureRate(SummaryMixin):
    """How often a system fails in one way, from 0 to 1; lower is better.

    Attributes:
        raw: Share of the outputs to which the check says yes; null without outputs.
        value: The rate of failures, without what the check misses or sees in vain; null where
            `reason` says why.
        interval: Lower and upper end at the confidence asked for; null as the value is.
        method: `corrected`: by the check's certificate, which is of other outputs, those in posts;
            the check may do worse or better on this system. `prediction_powered`: by people's
            labels of this system's own outputs, and the check on the others. `exact`: by people's
            labels alone, since fewer than 8 are of one kind.
        outputs: Outputs that the check answered.
        labels: Outputs that people labelled.
        reason: Why there is no value.
        definition: Every parameter.
    """

    raw: float | None
    value: float | None
    interval: Interval | None
    method: RateMethod
    outputs: int
    labels: int
    reason: Unscored | None
    definition: Mapping[str, Any]
    _explained: float = field(default=0.0, repr=False)  # share of the labels' variance

    def labels_for(self, half_width: float) -> int:
        """Return how many outputs people have to label, labelled ones included, for an interval.

        Args:
            half_width: Half of the interval that is wide enough, such as 0.05.

        Returns:
            The number, 30 to all outputs. Before people labelled any, it is for a check that helps
            them nothing, and the rate that the check gives.

        Raises:
            ScoreError: The width is not a finite number above 0.
        """
        if not 0 < half_width < math.inf:
            raise ScoreError(
                f"half_width is {half_width!r}: expected half an interval, such as 0.05"
            )
        if self.outputs <= MIN_LABELS:
            return self.outputs
        rate = self.value if self.value is not None else self.raw or 0.0
        rate = (rate * self.labels + 2) / (self.labels + 4) if self.labels else rate
        counts = np.arange(MIN_LABELS, self.outputs)
        left = 1 - self._explained * (1 - counts / self.outputs)
        half = compute_t_quantile(counts - 1, self.definition["confidence"]) * np.sqrt(
            rate * (1 - rate) * left / counts
        )
        return int(next(iter(counts[half <= half_width]), self.outputs))

    def as_json(self) -> dict[str, Any]:
        """Return the result as a dict that JSON can hold."""
        return {name: value for name, value in vars(self).items() if name[0] != "_"}


def failure_rate(
    yes: int, outputs: int, certificate: Certificate, *, confidence: float = LEVEL
) -> FailureRate:
    """Correct a check's share of yes for what it misses and for what it sees in vain.

    The rate is (share + specificity - 1) / J (Rogan and Gladen 1978), kept within 0 and 1. Its
    interval is that of Lang and Reiczigel (2014), where sensitivity and specificity are estimates
    as well: of so many outputs as tell as much as the certificate's, whose threads are alike in
    themselves (its design effect).

    Args:
        yes: Outputs of the system to which the check says yes.
        outputs: Outputs of the system that it answered.
        certificate: The check's own, by the same judge.
        confidence: Of the interval, between 0 and 1.

    Returns:
        The rate. It is null where the certificate has a reason, or where the lower end of J is
        below 0.1: the correction would divide by next to nothing.

    Raises:
        ScoreError: The counts do not fit each other, or the confidence is out of range.

    Examples:
        >>> from echo_hf.scores import certify
        >>> answers, threads = [1] * 18 + [0] * 20 + [1] * 2, [f"{at}" for at in range(40)]
        >>> result = failure_rate(30, 100, certify(answers, [1] * 20 + [0] * 20, threads))
        >>> result.raw, round(result.value, 3), [round(end, 3) for end in result.interval]
        (0.3, 0.25, [0.014, 0.413])
    """
    check_probabilities(confidence=confidence)
    counts = (yes, outputs)
    if any(isinstance(count, bool) or not isinstance(count, int | np.integer) for count in counts):
        raise ScoreError(f"yes and outputs are {counts!r}: expected whole numbers")
    if not 0 <= yes <= outputs:
        raise ScoreError(f"yes is {yes!r} of {outputs!r} outputs: expected 0 to {outputs!r}")
    reason = certificate.reason
    if reason is None and certificate.lower_end < MIN_LOWER_END:
        reason = Unscored.WEAK_CHECK
    if not outputs:
        reason = Unscored.NOT_RATED
    value = interval = None
    if reason is None:
        value, interval = _correct(yes, outputs, certificate, confidence)
        # Certain of what the certificate rules out: the check errs less on this system. There are
        # at most as many failures as its answers of yes allow, or successes as those of no.
        if interval[1] <= 0:
            end = _exact_interval(yes, outputs - yes, confidence)[1]
            interval = 0.0, min(1.0, end / (certificate.sensitivity or 1.0))
        elif interval[0] >= 1:
            end = _exact_interval(outputs - yes, yes, confidence)[1]
            interval = max(0.0, 1 - end / (certificate.specificity or 1.0)), 1.0
    definition = {
        "measure": "failure_rate",
        "rate": "Rogan-Gladen",
        "interval": "Lang-Reiczigel",
        "confidence": confidence,
        "lower_end_of_j": MIN_LOWER_END,
    }
    raw = yes / outputs if outputs else None
    return FailureRate(raw, value, interval, "corrected", outputs, 0, reason, definition)


def failure_rate_by_people(
    yes: ArrayLike, labels: ArrayLike, *, confidence: float = LEVEL
) -> FailureRate:
    """Estimate how often a system fails from people's labels of some of its outputs.

    The check answers all outputs, and tells of those that nobody labelled what its answers tell of
    the labelled ones, by a weight that is estimated (PPI++, Angelopoulos, Duchi and Zrnic 2023):
    the rate is right however the check errs on this system. The outputs to label are drawn without
    looking at them.

    Args:
        yes: The check's answer to each output: 1 or true for yes, which is a failure.
        labels: A person's: 1 for a failure, 0 for none, NaN or null where nobody labelled it.
        confidence: Of the interval, between 0 and 1.

    Returns:
        The rate; null with fewer than 30 labels. With fewer than 8 of one kind, the share of the
        labels with the exact interval of Clopper and Pearson.

    Raises:
        ScoreError: The two differ in length, an answer or a label is neither 0 nor 1, or the
            confidence is out of range.

    Examples:
        >>> labels = [1] * 20 + [0] * 40 + [None] * 140
        >>> result = failure_rate_by_people([1] * 18 + [0] * 42 + [1] * 28 + [0] * 112, labels)
        >>> result.raw, round(result.value, 3), [round(end, 3) for end in result.interval]
        (0.23, 0.267, [0.192, 0.341])
    """
    check_probabilities(confidence=confidence)
    try:
        people = np.asarray(labels, dtype=np.float64)
    except (TypeError, ValueError):
        raise ScoreError(f"labels is {labels!r:.60}: expected 0, 1 or NaN an output") from None
    answers = read_flags("yes", yes, people.size).astype(float)
    is_labelled = ~np.isnan(people)
    failures = read_flags("labels", people[is_labelled], int(is_labelled.sum())).astype(float)
    method: RateMethod = "prediction_powered"
    value = interval = None
    explained, kinds = 0.0, (int(failures.sum()), int((1 - failures).sum()))
    if len(failures) >= MIN_LABELS:
        own, others = answers[is_labelled], answers[~is_labelled]
        if min(kinds) < MIN_OF_A_KIND:
            method = "exact"
            value, interval = kinds[0] / len(failures), _exact_interval(*kinds, confidence)
        else:
            value, interval = _combine(own, others, failures, confidence)
            if own.any() and not own.all():
                explained = float(np.corrcoef(own, failures)[0, 1] ** 2)
    reason = None if value is not None else Unscored.FEW_LABELS
    definition = {
        "measure": "failure_rate",
        "rate": "PPI++, from 8 labels of each kind on; else people's share",
        "interval": "Student's t, or Clopper-Pearson",
        "confidence": confidence,
        "labels": MIN_LABELS,
    }
    raw = float(answers.mean()) if len(answers) else None
    counts = len(answers), len(failures)
    return FailureRate(raw, value, interval, method, *counts, reason, definition, explained)


def _correct(
    yes: int, outputs: int, certificate: Certificate, confidence: float
) -> tuple[float, Interval]:
    from scipy.special import ndtri

    z = float(ndtri((1 + confidence) / 2))
    sensitivity, specificity = certificate.sensitivity or 0.0, certificate.specificity or 0.0
    youden = sensitivity + specificity - 1
    value = min(max((yes / outputs + specificity - 1) / youden, 0.0), 1.0)
    sizes = np.array([certificate.complaints, certificate.praise]) / certificate.design_effect
    threads = np.array([certificate.complaint_threads, certificate.praise_threads])
    # A success and a failure are added to each; half of z squared to the outputs.
    known = np.maximum(sizes, threads) + 2
    shares = (np.array([sensitivity, specificity]) * (known - 2) + 1) / known
    asked = outputs + z * z
    share = (yes + z * z / 2) / asked
    youden = shares.sum() - 1
    rate = (share + shares[1] - 1) / youden
    variances = shares * (1 - shares) / known
    shift = 2 * z * z * (rate * variances[0] - (1 - rate) * variances[1])
    variance = share * (1 - share) / asked
    variance += rate**2 * variances[0] + (1 - rate) ** 2 * variances[1]
    half = z * math.sqrt(variance) / youden
    return value, _clip(rate + shift, half)


def _combine(
    own: Floats, others: Floats, failures: Floats, confidence: float
) -> tuple[float, Interval]:
    count, weight = len(own), 0.0
    if len(others) and own.any() and not own.all():
        weight = np.cov(own, failures)[0, 1] / own.var(ddof=1) / (1 + count / len(others))
    rest = failures - weight * own
    value, variance = rest.mean(), rest.var(ddof=1) / count
    if weight:
        value += weight * others.mean()
        variance += weight**2 * np.append(own, others).var(ddof=1) / len(others)
    half = float(compute_t_quantile(count - 1, confidence)) * math.sqrt(variance)
    return min(max(float(value), 0.0), 1.0), _clip(float(value), half)


def _exact_interval(failures: int, others: int, confidence: float) -> Interval:
    from scipy.special import betaincinv

    tail = (1 - confidence) / 2
    low = float(betaincinv(failures, others + 1, tail)) if failures else 0.0
    return low, float(betaincinv(failures + 1, others, 1 - tail)) if others else 1.0


def _clip(value: float, half: float) -> Interval:
    low, high = np.clip([value - half, value + half], 0.0, 1.0).tolist()
    return low, high
