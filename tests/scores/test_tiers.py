"""Which systems differ, by which test, and how many samples it takes to tell."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom, binomtest, permutation_test

from echo_hf.scores import samples_needed, tiers, win_rate
from echo_hf.scores.tiers import adjust_holm, sign_flip_test
from echo_hf.scores.votes import ProtocolName
from tests.scores.ratings_for_tests import Row, one_judge

P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=8)


def rated(shifts: dict[str, float], samples: int, seed: int) -> list[Row]:
    rng = np.random.default_rng(seed)
    hard = rng.normal(0, 3, samples)
    return one_judge(
        **{
            name: list(np.round(hard + shift + rng.normal(0, 1, samples)))
            for name, shift in shifts.items()
        }
    )


@given(values=P_VALUES)
def test_holm_rejects_as_its_steps_do(values: list[float]) -> None:
    adjusted = adjust_holm(np.array(values))
    for alpha in (0.01, 0.05, 0.4):
        rejected, left = set(), len(values)
        for at in sorted(range(len(values)), key=lambda at: values[at]):
            if values[at] * left > alpha:
                break
            rejected.add(at)
            left -= 1
        assert {at for at, p_value in enumerate(adjusted) if p_value <= alpha} == rejected


def test_a_tier_ends_where_its_top_is_left() -> None:
    names = ("ash", "birch", "cedar", "dogwood")
    rows = rated({name: 0.62 * (3 - at) for at, name in enumerate(names)}, 60, seed=4)
    found = tiers(rows)
    p_value = found.p_values
    assert found.tiers == (("ash", "birch"), ("cedar", "dogwood"))
    assert (p_value["ash"]["birch"] or 0) > 0.05 >= (p_value["ash"]["cedar"] or 1)
    assert (p_value["cedar"]["dogwood"] or 0) > 0.05 >= (p_value["birch"]["dogwood"] or 1)


def test_ten_systems_in_strict_order_are_ten_tiers() -> None:
    """Each beats the next on all of 20 samples, which has 2 chances in 2**20 by a sign test.

    So no drawn exchange reaches the difference, and Holm counts 45 pairs of smallest p values.
    """
    rows = one_judge(**{f"system_{at}": [10 - at] * 20 for at in range(10)})
    found = tiers(rows)
    assert binomtest(20, 20).pvalue == pytest.approx(2 / 2**20)
    assert found.tiers == tuple((f"system_{at}",) for at in range(10))
    assert found.p_values["system_0"]["system_1"] == pytest.approx(45 / 10_001)


def test_few_samples_separate_nobody() -> None:
    found = tiers(one_judge(ash=[5] * 9, birch=[1] * 9))
    assert found.tiers == (("ash", "birch"),)
    assert found.p_values == {"ash": {"birch": None}, "birch": {"ash": None}}


def test_systems_without_a_rate_are_unranked() -> None:
    found = tiers(one_judge(ash=[5] * 30, birch=[1] * 30, cedar=[None] * 30))
    assert found.tiers == (("ash",), ("birch",))
    assert found.unranked == ("cedar",)
    assert tiers(one_judge(ash=[1, 2])).tiers == ()


@pytest.mark.slow
@pytest.mark.parametrize("systems", [2, 5])
def test_equal_systems_differ_no_more_often_than_alpha_says(systems: int) -> None:
    """Any two of them: among 600 boards so many as alpha leaves by chance once in 1000 times."""
    trials, alpha, apart = 600, 0.05, 0
    for ratings in np.random.default_rng(3).integers(0, 5, (trials, systems, 25)).astype(float):
        rows = one_judge(**{f"system_{at}": list(one) for at, one in enumerate(ratings)})
        found = tiers(rows, alpha=alpha, n_resamples=400).p_values.values()
        apart += any((value or 0) <= alpha for others in found for value in others.values())
    assert binom.ppf(0.0005, trials, alpha / 2) < apart <= binom.ppf(0.999, trials, alpha)


@pytest.mark.parametrize("seed", range(5))
def test_p_values_are_those_of_all_exchanges(seed: int) -> None:
    """Of 11 samples scipy tries all 2048; five standard errors are left to chance."""
    differences = np.random.default_rng(seed).normal(0.2 * seed, 1, (3, 11))
    found = sign_flip_test(differences, n_resamples=40_000, seed=seed)
    for row, p_value in zip(differences, found, strict=True):
        expected = permutation_test(
            (row,), np.mean, permutation_type="samples", n_resamples=np.inf
        ).pvalue
        error = np.sqrt(expected * (1 - expected) / 40_000)
        assert p_value == pytest.approx(expected, abs=5 * error + 1 / 40_000)


Z_POWER_80, Z_POWER_90, Z_ALPHA_5, Z_ALPHA_1 = 0.841621, 1.281552, 1.959964, 2.575829


def two(wins: int, losses: int, ties: int = 0) -> list[Row]:
    return one_judge(ash=[3] * wins + [1] * losses + [2] * ties, birch=[2] * (wins + losses + ties))


@pytest.mark.parametrize(
    ("power", "alpha", "errors"),
    [
        (0.8, 0.05, Z_POWER_80 + Z_ALPHA_5),
        (0.9, 0.05, Z_POWER_90 + Z_ALPHA_5),
        (0.8, 0.01, Z_POWER_80 + Z_ALPHA_1),
    ],
)
def test_the_number_is_the_textbooks(power: float, alpha: float, errors: float) -> None:
    """((z of alpha / 2 + z of power) x deviation / difference), squared and rounded up."""
    differences = [1.0] * 60 + [-1.0] * 40 + [0.0] * 20
    deviation = np.std(differences, ddof=1)
    found = samples_needed(two(60, 40, 20), power=power, alpha=alpha).pairs["ash"]["birch"]

    assert found.difference == pytest.approx(np.mean(differences))
    assert found.deviation == pytest.approx(deviation)
    assert found.needed == math.ceil((errors * deviation / np.mean(differences)) ** 2)


def test_the_difference_is_that_of_the_rates_among_all_systems() -> None:
    rng = np.random.default_rng(1)
    names = ("ash", "birch", "cedar")
    rows = one_judge(**{name: list(rng.integers(at, 8, 60)) for at, name in enumerate(names)})
    found, rates = samples_needed(rows).pairs, win_rate(rows).win_rate
    for one in names:
        for other in set(names) - {one}:
            assert found[one][other].difference == pytest.approx(
                (rates[one] or 0) - (rates[other] or 0)
            )
            assert found[one][other].needed == found[other][one].needed


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (two(20, 20), "no_difference"),
        (two(0, 0, 30), "no_difference"),
        (two(30, 0), "no_spread"),
        (two(6, 3), "few_samples"),
        (one_judge(ash=[1, None], birch=[None, 2]), "nothing_in_common"),
    ],
)
def test_where_there_is_no_number_there_is_a_reason(rows: list[Row], reason: str) -> None:
    """Two that are as good as each other, that never differ in how, or that hardly ever met."""
    pair = samples_needed(rows).pairs["ash"]["birch"]
    assert pair.needed is None
    assert pair.reason == reason


@pytest.mark.parametrize("protocol", get_args(ProtocolName))
def test_the_deviation_says_what_leaving_a_sample_out_does(protocol: ProtocolName) -> None:
    rng = np.random.default_rng(2)
    ratings = rng.integers(0, 5, (3, 60)).astype(float)
    ratings[rng.random((3, 60)) < 0.3] = np.nan

    def rows(keep: NDArray[np.bool_]) -> list[Row]:
        return one_judge(
            **{name: list(one[keep]) for name, one in zip("abc", ratings, strict=True)}
        )

    left = []
    for at in range(60):
        rates = win_rate(rows(np.arange(60) != at), protocol=protocol, n_boot=0).win_rate
        left.append((rates["a"] or 0) - (rates["b"] or 0))
    found = samples_needed(rows(np.full(60, True)), protocol=protocol).pairs["a"]["b"]
    assert (found.deviation or 0) ** 2 / 60 == pytest.approx(np.var(left) * 59, rel=0.1)


def test_samples_without_a_comparison_are_no_evidence() -> None:
    rows = one_judge(ash=[5] * 10 + [None] * 500, birch=[1] * 10 + [None] * 500)
    p_value = tiers(rows, n_resamples=50_000).p_values["ash"]["birch"]
    assert p_value == pytest.approx(2 / 2**10, abs=5 * np.sqrt(2 / 2**10 / 50_000))


def test_batches_give_what_one_go_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    differences = np.random.default_rng(0).normal(0.3, 1, (2, 12))
    whole = sign_flip_test(differences, n_resamples=200, seed=1)
    monkeypatch.setitem(sign_flip_test.__globals__, "AT_ONCE", 96)  # of eight draws each
    assert sign_flip_test(differences, n_resamples=200, seed=1).tolist() == whole.tolist()
    assert sign_flip_test(differences, n_resamples=200, seed=2).tolist() != whole.tolist()
