"""Certificates of checks: against published intervals, all exchanges, and planted checks."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from echo_hf.errors import ScoreError
from echo_hf.scores import Certificate, adjust_p_values, certify
from tests.scores.certificates_for_tests import answer_threads

BOARDS = (
    600  # so that a share of 0.02 is known to 0.006, and one of 0.64 of their good checks to 0.01
)
DRAWS = 499
GOOD, WEAK = (0.8, 0.85), (0.4, 0.75)
USELESS = tuple((share, 1 - share) for share in (0.2, 0.25, 0.3, 0.35, 0.4, 0.5))
KINDS = (GOOD,) * 4 + (WEAK,) * 2 + USELESS


def one_output_a_thread(caught: int, complaints: int, flagged: int, praise: int) -> Certificate:
    yes = [1] * caught + [0] * (complaints - caught) + [1] * flagged + [0] * (praise - flagged)
    labels = [1] * complaints + [0] * praise
    return certify(yes, labels, [f"{number}" for number in range(len(labels))])


@pytest.mark.parametrize(
    ("counts", "ends"), [((56, 70, 48, 80), (0.0524, 0.3339)), ((9, 10, 3, 10), (0.1705, 0.8090))]
)
def test_the_interval_is_newcombes(counts: Any, ends: tuple[float, float]) -> None:
    """Method 10 in table II of Newcombe (1998), of a difference of shares, as J is."""
    found = one_output_a_thread(*counts)
    assert found.j == pytest.approx(counts[0] / counts[1] - counts[2] / counts[3])
    assert np.round(found.interval, 4).tolist() == list(ends)
    assert found.lower_end == found.interval[0] if found.interval else False


def test_a_thread_counts_once_in_the_interval_however_many_outputs_it_has() -> None:
    """Wilson's interval by scipy, for shares that many outputs have and few threads."""
    yes, labels = [1, 1, 1, 0] * 10 + [1, 0, 0, 0] * 20, [1] * 40 + [0] * 80
    found = certify(yes, labels, [f"{number // 4}" for number in range(120)])
    first, second = (
        np.array(binomtest(count, of).proportion_ci(method="wilson"))
        for count, of in ((30, 40), (20, 80))
    )
    assert (found.complaint_threads, found.praise_threads) == (10, 20)
    assert found.interval is not None
    # As wide as of 10 and of 20 outputs, and about twice as wide as of 40 and of 80.
    alone = one_output_a_thread(15, 20, 5, 20)
    assert alone.interval is not None
    halves = np.ptp(found.interval), np.hypot(np.ptp(first), np.ptp(second))
    assert 1.7 < halves[0] / halves[1] < 2.1


def test_counts_are_of_outputs_and_shares_of_them() -> None:
    found = certify([1, 0, 1, 0, 0], [1, 1, 0, 0, 0], ["a", "a", "b", "c", "c"])
    assert (found.caught, found.complaints, found.passed, found.praise) == (1, 2, 2, 3)
    assert (found.sensitivity, found.specificity) == (0.5, pytest.approx(2 / 3))


def test_p_is_that_of_all_exchanges_of_whole_threads() -> None:
    """The share of the 462 ways to call 5 of 11 threads complaints that give as high a J."""
    rng = np.random.default_rng(20)
    sizes = rng.integers(1, 5, 11)
    thread = np.repeat(np.arange(11), sizes)
    yes = rng.random(len(thread)) < np.where(thread < 5, 0.6, 0.4)

    def youden(complaining: tuple[int, ...]) -> float:
        is_complaint = np.isin(thread, complaining)
        return float(yes[is_complaint].mean() - yes[~is_complaint].mean())

    observed = youden(tuple(range(5)))
    exact = np.mean([youden(chosen) >= observed - 1e-9 for chosen in combinations(range(11), 5)])
    found = certify(yes, thread < 5, [f"{number}" for number in thread], draws=20_000)
    assert 0.01 < exact < 0.6
    assert found.p == pytest.approx(exact, abs=0.012)


def test_a_thread_has_the_label_of_most_of_its_outputs() -> None:
    """Two complaints and a praised output are exchanged as complaints."""
    threads = [name for name in "abcdefgh" for _ in range(3)]
    mixed = certify([1, 1, 0] * 4 + [0] * 12, [1, 1, 0] * 4 + [0] * 12, threads, draws=20_000)
    assert (mixed.complaint_threads, mixed.praise_threads) == (4, 8)
    assert mixed.p == pytest.approx(1 / 70, abs=0.004)


def test_a_thread_with_as_many_complaints_as_praise_is_left_out_of_the_test_alone() -> None:
    yes, labels = [1, 0] * 10, [1, 0] * 10
    halves = certify(yes, labels, [f"{number // 2}" for number in range(20)])
    assert (halves.j, halves.p) == (1.0, None)
    clear = one_output_a_thread(18, 20, 5, 20)
    answers = [1] * 18 + [0] * 2 + [1] * 5 + [0] * 15
    both = certify(
        [*answers, *yes],
        [1] * 20 + [0] * 20 + labels,
        [f"{number}" for number in range(40)] + [f"half {number // 2}" for number in range(20)],
    )
    assert both.p == clear.p
    assert both.complaints == 30


def test_the_same_seed_draws_the_same_and_another_order_of_threads_too() -> None:
    answered = answer_threads(np.random.default_rng(3), 20, 0.6, 0.6)
    assert certify(*answered) == certify(*answered)
    assert certify(*answered, seed=1).p != certify(*answered, seed=2).p


def test_the_design_effect_is_1_for_threads_of_one_output_and_their_size_for_alike_ones() -> None:
    assert one_output_a_thread(15, 20, 5, 20).design_effect == pytest.approx(20 / 19)
    yes = np.repeat([1] * 15 + [0] * 5 + [1] * 5 + [0] * 15, 4)
    threads = [f"{number}" for number in np.repeat(np.arange(40), 4)]
    alike = certify(yes, [1] * 80 + [0] * 80, threads)
    assert alike.design_effect == pytest.approx(4 * 20 / 19)


@pytest.mark.parametrize(
    ("yes", "labels", "threads", "reason"),
    [
        ([], [], [], "no_complaints"),
        ([0, 1], [0, 0], ["a", "b"], "no_complaints"),
        ([0, 1], [1, 1], ["a", "b"], "no_praise"),
        ([1] * 15 + [0] * 14, [1] * 15 + [0] * 14, [*range(29)], "few_threads"),
        ([1] * 15 + [0] * 15, [1] * 15 + [0] * 15, [*range(30)], None),
    ],
)
def test_too_little_to_certify_is_a_reason(
    yes: Any, labels: Any, threads: Any, reason: Any
) -> None:
    found = certify(yes, labels, [str(name) for name in threads])
    assert found.reason == reason
    assert (found.j is None) == (reason in ("no_complaints", "no_praise"))
    if found.j is None:
        assert (found.p, found.interval, found.lower_end, found.passes()) == (None, None, -1, False)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([1], [1, 0], ["a", "b"]), {}, "yes has 1 values: expected 2, one an output"),
        (([1, 0], [1], ["a", "b"]), {}, "complained has 1 values: expected 2"),
        (([1, np.nan], [1, 0], ["a", "b"]), {}, "yes holds nan: expected 0 or 1"),
        (([1, 2], [1, 0], ["a", "b"]), {}, "yes holds 2.0: expected 0 or 1"),
        (([1, None], [1, 0], ["a", "b"]), {}, "yes holds nan"),
        (([1, "x"], [1, 0], ["a", "b"]), {}, "yes is [1, 'x']: expected a list of 0 and 1"),
        (([1, 0], [1, 0.5], ["a", "b"]), {}, "complained holds 0.5: expected 0 or 1"),
        (([1, 0], [1, 0], ["a", "b"]), {"draws": 0}, "draws is 0: expected a whole"),
        (([1, 0], [1, 0], ["a", "b"]), {"seed": -1}, "seed is -1: expected a whole number"),
        (([1, 0], [1, 0], ["a", "b"]), {"checks": 0}, "checks is 0: expected a whole number"),
    ],
)
def test_wrong_input_is_refused_in_a_line(arguments: Any, options: Any, message: str) -> None:
    with pytest.raises(ScoreError, match=r"^[^\n]+$") as caught:
        certify(*arguments, **options)
    assert str(caught.value).startswith(message)


def test_the_adjustment_is_holms_and_nulls_stay() -> None:
    """The example of R's `p.adjust`, with ties by its maximum of those before."""
    found = adjust_p_values([None, 0.05, 0.01, 0.04, None, 0.02, 0.03])
    assert found == (
        None,
        *map(pytest.approx, (0.09, 0.05, 0.09)),
        None,
        *map(pytest.approx, (0.08, 0.09)),
    )
    assert adjust_p_values([]) == ()
    with pytest.raises(ScoreError, match=r"p values are \[2\]: expected numbers from 0 to 1"):
        adjust_p_values([2])


def test_more_threads_are_needed_until_enough_keep_it_in_80_of_100() -> None:
    """What `needed` says of a weak showing is what draws of so many threads are kept by."""
    seen = one_output_a_thread(14, 20, 6, 20)
    assert seen.passes()
    assert seen.needed is None
    strict = certify(
        [1] * 14 + [0] * 6 + [1] * 6 + [0] * 14,
        [1] * 20 + [0] * 20,
        [f"{number}" for number in range(40)],
        checks=12,
    )
    assert strict.p is not None
    assert strict.p > 0.05 / 12
    assert strict.needed is not None
    rng, threads = np.random.default_rng(8), 20 + strict.needed
    passed = []
    for _ in range(400):
        flags = rng.random(2 * threads) < np.repeat([0.7, 0.3], threads)
        labels = np.repeat([1, 0], threads)
        found = certify(flags, labels, [f"{number}" for number in range(2 * threads)], draws=999)
        passed.append(found.p is not None and found.p <= 0.05 / 12)
    assert 0.72 < np.mean(passed) < 0.88


def test_no_number_of_threads_mends_a_low_j_and_few_threads_are_named() -> None:
    assert one_output_a_thread(12, 40, 10, 40).needed is None
    assert one_output_a_thread(10, 10, 0, 12).needed == 5


@cache
def planted_boards(threads: int) -> np.ndarray:
    """Whether each check of each board is kept: [board, check]."""
    rng, kept = np.random.default_rng(threads + 4600), []
    for board in range(BOARDS if threads < 60 else BOARDS // 3):
        found = [
            certify(*answer_threads(rng, threads, *kind), draws=DRAWS, seed=board) for kind in KINDS
        ]
        adjusted = adjust_p_values([certificate.p for certificate in found])
        kept.append([one.passes(p) for one, p in zip(found, adjusted, strict=True)])
    return np.array(kept)


@pytest.mark.parametrize("threads", [16, 30, 60])
def test_at_most_one_board_in_twenty_keeps_a_useless_check(threads: int) -> None:
    assert planted_boards(threads)[:, 6:].any(axis=1).mean() <= 0.05


@pytest.mark.parametrize(("threads", "share"), [(16, 0.6), (30, 0.9), (60, 0.9)])
def test_good_checks_are_kept(threads: int, share: float) -> None:
    """Four on each board; weak ones (J of 0.15) seldom are."""
    kept = planted_boards(threads)
    assert kept[:, :4].mean() >= share
    assert kept[:, 4:6].mean() < 0.15


@pytest.mark.parametrize("kind", [(0.8, 0.85), (0.95, 0.97), (0.3, 0.7)])
@pytest.mark.parametrize("threads", [16, 30, 60])
def test_the_interval_of_j_covers(threads: int, kind: tuple[float, float]) -> None:
    """At least 93 of 100 hold what was planted; it is wide, as if a thread had one output."""
    rng, held = np.random.default_rng(4601), []
    for _ in range(400):
        found = certify(*answer_threads(rng, threads, *kind), draws=1)
        low, high = found.interval or (1.0, -1.0)
        held.append(low <= sum(kind) - 1 <= high)
    assert np.mean(held) >= 0.93


def test_a_check_that_answers_by_chance_has_p_below_a_share_in_no_more_than_that_share() -> None:
    rng = np.random.default_rng(4602)
    found = [certify(*answer_threads(rng, 16, 0.3, 0.7), draws=199) for _ in range(600)]
    p_values = np.array([certificate.p for certificate in found])
    assert (p_values <= 0.05).mean() <= 0.075
    assert 0.4 < p_values.mean() < 0.62
