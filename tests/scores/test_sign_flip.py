"""The sign-flip test: against scipy's, and what a sample adds against the win rate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import permutation_test

from echo_hf.scores import intervals
from echo_hf.scores.intervals import leads_of, sign_flip_test
from echo_hf.scores.judge_votes import compare
from tests.scores.ratings_for_tests import Cube, counted_rates, cubes, one_judge, rows_of


@given(cube=cubes(), protocol=st.sampled_from(["corrected", "published"]))
def test_what_samples_add_is_the_win_rate_beyond_a_half(cube: Cube, protocol: Any) -> None:
    """With the rates counted one comparison at a time; some comparisons are missing."""
    found = compare(rows_of(cube), protocol=protocol)
    leads = leads_of(found.verdicts, len(found.table.systems), found.rule.average)
    for lead, rate in zip(leads, counted_rates(cube, protocol).values(), strict=True):
        assert lead.sum() == pytest.approx(0 if rate is None else rate - 0.5)


def test_samples_without_a_comparison_are_no_evidence() -> None:
    """Ten wins are ten wins, whatever number of samples nobody rated comes with them."""
    found = compare(one_judge(ash=[5] * 10 + [None] * 500, birch=[1] * 10 + [None] * 500))
    first, second = leads_of(found.verdicts, 2, "opponents")
    (p_value,) = sign_flip_test((first - second)[None], n_resamples=50_000, seed=0)
    assert p_value == pytest.approx(2 / 2**10, abs=5 * np.sqrt(2 / 2**10 / 50_000))


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


def test_batches_give_what_one_go_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    """However little fits into memory."""
    differences = np.random.default_rng(0).normal(0.3, 1, (2, 12))
    whole = sign_flip_test(differences, n_resamples=200, seed=1)
    monkeypatch.setattr(intervals, "AT_ONCE", 96)  # of eight draws each
    assert sign_flip_test(differences, n_resamples=200, seed=1).tolist() == whole.tolist()
    assert sign_flip_test(differences, n_resamples=200, seed=2).tolist() != whole.tolist()
