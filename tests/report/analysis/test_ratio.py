"""The ratio of two numbers."""

from __future__ import annotations

import numpy as np
import pytest

from echo_hf.reasons import NotAnalyzed, Unscored
from echo_hf.report.analysis.diversity import ratio


def test_the_interval_is_that_of_drawing_both_numbers() -> None:
    """A million draws of two normal numbers far from zero have nearly the same middle 95 %."""
    rng = np.random.default_rng(2)
    drawn = rng.normal(60, 3, 1_000_000) / rng.normal(40, 2, 1_000_000)
    low, high = np.quantile(drawn, [0.025, 0.975])
    found = ratio(60, 3, 40, 2)
    assert found.value == pytest.approx(1.5)
    assert found.low == pytest.approx(low, abs=0.01)
    assert found.high == pytest.approx(high, abs=0.01)


@pytest.mark.parametrize(("value", "other"), [(0, 1), (1, 0)])
def test_nothing_has_no_ratio(value: float, other: float) -> None:
    """Neither a division by zero nor a ratio of zero."""
    found = ratio(value, 1, other, 1)
    assert (found.value, found.reason) == (None, NotAnalyzed.NO_PROMPTS)


def test_certain_numbers_have_a_certain_ratio() -> None:
    """Without an error on either side there is no interval, and it says so."""
    found = ratio(6, 0, 2, 0)
    assert (found.value, found.low, found.reason) == (3, None, Unscored.NO_SPREAD)
