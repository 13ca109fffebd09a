"""Intervals against published numbers and laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.builder.gold.measures import bootstrap_over_threads, wilson

# Newcombe (1998), Statistics in Medicine 17, table I, method 3.
PUBLISHED = {
    (81, 263): (0.2553, 0.3662),
    (15, 148): (0.0624, 0.1605),
    (0, 20): (0.0000, 0.1611),
    (1, 29): (0.0061, 0.1718),
}


@pytest.mark.parametrize(("counts", "ends"), PUBLISHED.items())
def test_wilson_gives_the_published_ends(
    counts: tuple[int, int], ends: tuple[float, float]
) -> None:
    """The four examples of Newcombe's comparison, to their four digits."""
    found = wilson(*counts)
    assert found is not None
    assert tuple(round(end, 4) for end in found) == ends


@given(st.integers(1, 400), st.data())
def test_wilson_solves_its_equation(count: int, data: st.DataObject) -> None:
    """Each end is where the share is 1.96 standard errors away, by the end's own variance."""
    right = data.draw(st.integers(0, count))
    low, high = wilson(right, count) or (math.nan, math.nan)
    share = right / count
    for end in {low, high} - {0.0, 1.0}:
        if 1e-9 < end < 1 - 1e-9:
            errors = abs(share - end) / math.sqrt(end * (1 - end) / count)
            assert errors == pytest.approx(1.959964, abs=1e-4)
    assert low <= share + 1e-12
    assert share <= high + 1e-12


def test_nothing_has_no_interval() -> None:
    """Of no item no share is known."""
    assert wilson(0, 0) is None
    assert bootstrap_over_threads([]) is None


def test_few_or_equal_threads_have_no_interval() -> None:
    """Nine threads are too few, and threads that do not differ say nothing about others."""
    some = [[number / 10] for number in range(10)]
    assert bootstrap_over_threads(some) is not None
    assert bootstrap_over_threads(some[:9]) is None
    assert bootstrap_over_threads([[1.0]] * 30) is None


def test_the_bootstrap_is_as_wide_as_theory_says() -> None:
    """For many threads of one item each it is the mean plus or minus 1.96 standard errors."""
    scores = np.random.default_rng(5).random(400)
    low, high = bootstrap_over_threads([[score] for score in scores]) or (0, 0)
    error = 1.96 * scores.std(ddof=1) / 20

    assert low == pytest.approx(scores.mean() - error, abs=0.005)
    assert high == pytest.approx(scores.mean() + error, abs=0.005)


def test_the_bootstrap_draws_threads() -> None:
    """Ten times the same items in each thread are no news: the interval stays as it is."""
    single = [[number / 15] for number in range(16)]
    tenfold = [thread * 10 for thread in single]

    assert bootstrap_over_threads(tenfold) == pytest.approx(bootstrap_over_threads(single))


def test_the_bootstrap_is_the_same_each_time() -> None:
    """Its seed is fixed."""
    some = [[0.1, 0.9], [0.4], [0.8, 0.7, 0.2]] * 6
    assert bootstrap_over_threads(some) == bootstrap_over_threads(some)
