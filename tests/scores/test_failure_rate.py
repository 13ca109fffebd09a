"""Failure rates: against exact sums, and against rates that were planted."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest, norm

from echo_hf.errors import ScoreError
from echo_hf.scores import Certificate, FailureRate, certify, failure_rate, failure_rate_by_people
from tests.scores.certificates_for_tests import answer_threads

DRAWN = 1000  # a coverage of 0.95 is known to 0.007
SYSTEM_OUTPUTS = 200


def certificate_of(sensitivity: float, specificity: float, threads: int) -> Certificate:
    """A certificate of so many threads of each kind, with an output each."""
    caught, passed = round(sensitivity * threads), round(specificity * threads)
    yes = [1] * caught + [0] * (threads - caught) + [0] * passed + [1] * (threads - passed)
    names = [f"{number}" for number in range(2 * threads)]
    return certify(yes, [1] * threads + [0] * threads, names, draws=99)


def covers(found: FailureRate, rate: float) -> bool:
    low, high = found.interval or (1.0, 0.0)
    return low <= rate <= high


def test_the_rate_inverts_the_share_of_yes_that_an_erring_check_gives() -> None:
    """Of 1,000 outputs 300 fail: 240 are caught, and 105 of the other 700 get a yes in vain."""
    found = failure_rate(240 + 105, 1000, certificate_of(0.8, 0.85, 100))
    assert found.raw == pytest.approx(0.345)
    assert found.value == pytest.approx(0.3)
    assert (found.method, found.outputs, found.labels, found.reason) == ("corrected", 1000, 0, None)
    assert covers(found, 0.3)


@pytest.mark.parametrize(("yes", "value"), [(0, 0.0), (1000, 1.0)])
def test_the_rate_stays_between_0_and_1(yes: int, value: float) -> None:
    found = failure_rate(yes, 1000, certificate_of(0.8, 0.85, 100))
    assert found.value == value
    assert found.interval is not None
    # As many failures, or successes, as all answers of yes, or of no, leave room for.
    end = binomtest(0, 1000).proportion_ci(method="exact").high
    ends = (0, end / 0.8) if value == 0 else (1 - end / 0.85, 1)
    assert found.interval == pytest.approx(ends)


def test_a_check_without_error_on_countless_threads_leaves_wilsons_interval() -> None:
    """What is left is the error of the share of yes, whose center Lang and Reiczigel keep."""
    certificate = replace(certificate_of(1, 1, 20), complaint_threads=10**9, praise_threads=10**9)
    found = failure_rate(30, 100, certificate)
    z = norm.ppf(0.975)
    share = (30 + z * z / 2) / (100 + z * z)
    half = z * math.sqrt(share * (1 - share) / (100 + z * z))
    assert found.interval == pytest.approx((share - half, share + half), abs=1e-6)


def test_a_wider_confidence_a_shorter_certificate_and_alike_outputs_widen_the_interval() -> None:
    def width(threads: int, confidence: float = 0.95, **changes: Any) -> float:
        certificate = replace(certificate_of(0.8, 0.85, threads), **changes)
        found = failure_rate(60, 200, certificate, confidence=confidence).interval or (0, 0)
        return found[1] - found[0]

    assert width(40) < width(20) < width(20, 0.99)
    many = {"complaints": 160, "praise": 160}
    assert width(40, **many, design_effect=1.0) < width(40, **many, design_effect=2.0)
    assert width(40, **many, design_effect=9.0) == pytest.approx(width(40, design_effect=1.0))


@pytest.mark.parametrize(
    ("certificate", "yes", "outputs", "reason"),
    [
        (certificate_of(0.8, 0.85, 14), 10, 100, "few_threads"),
        (certificate_of(0.6, 0.6, 30), 10, 100, "weak_check"),
        (certify([1], [1], ["a"]), 10, 100, "no_praise"),
        (certify([], [], []), 10, 100, "no_complaints"),
        (certificate_of(0.8, 0.85, 30), 0, 0, "not_rated"),
    ],
)
def test_no_rate_is_made_of_too_little(
    certificate: Certificate, yes: int, outputs: int, reason: str
) -> None:
    found = failure_rate(yes, outputs, certificate)
    assert (found.value, found.interval, found.reason) == (None, None, reason)
    assert found.raw == (yes / outputs if outputs else None)


@pytest.mark.parametrize("threads", [30, 60, 120])
@pytest.mark.parametrize("rate", [0.05, 0.2, 0.5])
def test_corrected_rates_cover(threads: int, rate: float) -> None:
    """93 to 97 of 100 hold the planted rate, with certificates of threads of 1 to 4 outputs."""
    rng, held = np.random.default_rng(round(1000 * rate) + threads), []
    for _ in range(DRAWN):
        certificate = certify(*answer_threads(rng, threads, 0.8, 0.85), draws=1)
        yes = rng.binomial(SYSTEM_OUTPUTS, rate * 0.8 + (1 - rate) * 0.15)
        found = failure_rate(int(yes), SYSTEM_OUTPUTS, certificate)
        if found.reason is None:
            held.append(covers(found, rate))
    assert len(held) > 0.9 * DRAWN
    assert 0.93 <= np.mean(held) <= 0.97


def test_people_see_what_a_certificate_of_posts_does_not() -> None:
    """A check that finds 6 of 10 failures of this system, and 8 of 10 of those in posts."""
    rng, corrected, by_people, errors = np.random.default_rng(4610), [], [], []
    for _ in range(DRAWN):
        is_failure = rng.random(SYSTEM_OUTPUTS) < 0.3
        yes = rng.random(SYSTEM_OUTPUTS) < np.where(is_failure, 0.6, 0.15)
        certificate = certify(*answer_threads(rng, 120, 0.8, 0.85), draws=1)
        first = failure_rate(int(yes.sum()), SYSTEM_OUTPUTS, certificate)
        second = failure_rate_by_people(yes, np.where(np.arange(200) < 60, is_failure, np.nan))
        corrected.append(covers(first, 0.3))
        by_people.append(covers(second, 0.3))
        errors.append(((first.value or 0) - 0.3, (second.value or 0) - 0.3))
    assert np.mean(corrected) < 0.9
    assert 0.93 <= np.mean(by_people) <= 0.97
    biased, unbiased = np.mean(errors, axis=0)
    assert biased < -0.07
    assert abs(unbiased) < 0.01


@pytest.mark.parametrize("labels", [60, 120])
@pytest.mark.parametrize(
    ("rate", "kind"), [(0.3, (0.8, 0.85)), (0.5, (0.8, 0.85)), (0.5, (0.6, 0.7))]
)
def test_rates_by_people_cover(labels: int, rate: float, kind: tuple[float, float]) -> None:
    rng, held = np.random.default_rng(4611 + labels), []
    for _ in range(DRAWN):
        is_failure = rng.random(SYSTEM_OUTPUTS) < rate
        yes = rng.random(SYSTEM_OUTPUTS) < np.where(is_failure, kind[0], 1 - kind[1])
        people = np.where(np.arange(SYSTEM_OUTPUTS) < labels, is_failure, np.nan)
        held.append(covers(failure_rate_by_people(yes, people), rate))
    assert 0.93 <= np.mean(held) <= 0.97


def test_few_of_a_kind_have_the_exact_interval_which_covers_at_least() -> None:
    labels = [1] * 7 + [0] * 33 + [None] * 60
    found = failure_rate_by_people([0] * 100, labels)
    exact = binomtest(7, 40).proportion_ci(method="exact")
    assert (found.method, found.value, found.labels) == ("exact", 7 / 40, 40)
    assert found.interval == pytest.approx((exact.low, exact.high))
    none = failure_rate_by_people([0] * 40, [0] * 40, confidence=0.9)
    assert none.interval == pytest.approx((0, binomtest(0, 40).proportion_ci(0.9).high))
    every = failure_rate_by_people([0] * 40, [1] * 40)
    assert every.interval == pytest.approx((binomtest(40, 40).proportion_ci().low, 1))


@pytest.mark.parametrize("yes", [[0] * 100, [1] * 100])
def test_a_check_that_always_says_the_same_leaves_people_alone(yes: list[int]) -> None:
    found = failure_rate_by_people(yes, [1] * 20 + [0] * 20 + [None] * 60)
    assert found.value == 0.5
    every = failure_rate_by_people([*yes[:20], *(1 - np.array(yes[:20]))], [1] * 20 + [0] * 20)
    assert every.value == 0.5


def test_a_check_that_is_always_right_tells_of_all_outputs_what_people_would() -> None:
    """With its weight, the error is that of 200 labels, where people gave 60."""
    answers = np.tile([1, 0, 0, 0, 0], 40)
    found = failure_rate_by_people(answers, np.where(np.arange(200) < 60, answers, np.nan))
    assert found.value == pytest.approx(0.2)
    low, high = found.interval or (0, 1)
    assert (high - low) / 2 == pytest.approx(1.96 * math.sqrt(0.2 * 0.8 / 200), rel=0.05)


def test_fewer_than_30_labels_are_too_few() -> None:
    found = failure_rate_by_people([1, 0] * 50, [1, 0] * 14 + [1] + [None] * 71)
    assert (found.value, found.labels, found.reason) == (None, 29, "few_labels")
    assert (found.raw, found.outputs) == (0.5, 100)
    assert failure_rate_by_people([], []).raw is None


def test_the_labels_for_a_width_give_that_width() -> None:
    """With as many labels as a first 200 ask for, intervals are as wide as was asked for."""
    rng = np.random.default_rng(4612)
    is_failure = rng.random(1000) < 0.3
    yes = rng.random(1000) < np.where(is_failure, 0.8, 0.15)

    def label(count: int) -> FailureRate:
        chosen = rng.permutation(1000) < count
        return failure_rate_by_people(yes, np.where(chosen, is_failure, np.nan))

    needed = round(np.mean([label(200).labels_for(0.05) for _ in range(20)]))
    assert 100 < needed < 400
    halves = [np.diff(label(needed).interval or (0, 9)) / 2 for _ in range(40)]
    assert np.mean(halves) == pytest.approx(0.05, rel=0.05)
    assert label(100).labels_for(0.5) == 30
    assert label(100).labels_for(1e-6) == 1000
    before = failure_rate(300, 1000, certificate_of(0.8, 0.85, 50))
    assert needed < before.labels_for(0.05) < 400
    assert failure_rate(3, 10, certificate_of(0.8, 0.85, 50)).labels_for(0.05) == 10


@pytest.mark.parametrize("half_width", [0, -1, math.inf, math.nan])
def test_a_width_is_above_0(half_width: float) -> None:
    with pytest.raises(ScoreError, match=r"half_width is .*: expected half an interval"):
        failure_rate_by_people([1] * 9, [1] * 9).labels_for(half_width)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c: failure_rate(5, 4, c), "yes is 5 of 4 outputs: expected 0 to 4"),
        (lambda c: failure_rate(-1, 4, c), "yes is -1 of 4 outputs: expected 0 to 4"),
        (lambda c: failure_rate(0.5, 4, c), "yes and outputs are (0.5, 4): expected whole"),
        (lambda c: failure_rate(1, 4, c, confidence=95), "confidence is 95: expected a prob"),
        (lambda _: failure_rate_by_people([1], [1, 0]), "yes has 1 values: expected 2"),
        (lambda _: failure_rate_by_people([1, 2], [1, 0]), "yes holds 2.0: expected 0 or 1"),
        (lambda _: failure_rate_by_people([1, 0], [1, 3]), "labels holds 3.0: expected 0 or 1"),
        (lambda _: failure_rate_by_people([1], ["yes"]), "labels is ['yes']: expected 0, 1 or"),
        (lambda _: failure_rate_by_people([1], [1], confidence=0), "confidence is 0: expected"),
    ],
)
def test_wrong_input_is_refused_in_a_line(call: Any, message: str) -> None:
    with pytest.raises(ScoreError, match=r"^[^\n]+$") as caught:
        call(certificate_of(0.8, 0.85, 20))
    assert str(caught.value).startswith(message)


def test_as_json_holds_what_is_shown() -> None:
    found = failure_rate_by_people([1, 0] * 50, [1, 0] * 20 + [None] * 60).as_json()
    names = ("raw", "value", "interval", "method", "outputs", "labels", "reason", "definition")
    assert tuple(found) == names
