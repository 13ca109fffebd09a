"""Places and shared places, against scipy's."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from echo_hf.scores.ranks import mid_ranks, without_ties

VALUES = st.lists(st.integers(-2, 2).map(float) | st.just(float("nan")), min_size=1, max_size=9)


@given(VALUES)
def test_ties_share_the_mean_of_their_places(values: list[float]) -> None:
    """As scipy's average ranks, of what is there."""
    found = mid_ranks(np.array(values))
    expected = rankdata(values, method="average", nan_policy="omit")
    np.testing.assert_array_equal(found, expected)


@given(VALUES, st.integers(0, 99))
def test_broken_ties_leave_no_tie_and_no_other_order(values: list[float], seed: int) -> None:
    """Places are 1 to n, and smaller values stay in front of larger ones."""
    found = without_ties(np.array(values), seed)
    there = ~np.isnan(values)
    assert sorted(found[there]) == list(range(1, there.sum() + 1))
    assert np.isnan(found[~there]).all()
    in_order = np.array(values)[there][found[there].argsort()]
    assert (np.diff(in_order) >= 0).all()


def test_chance_prefers_nobody() -> None:
    """Of 2,000 tied pairs either system comes first about as often; the seed decides which."""
    tied = np.zeros((2000, 2))
    first = without_ties(tied, 0)[:, 0] == 1
    assert 0.45 < first.mean() < 0.55
    np.testing.assert_array_equal(without_ties(tied, 0), without_ties(tied, 0))
    assert (without_ties(tied, 0) != without_ties(tied, 1)).any()
