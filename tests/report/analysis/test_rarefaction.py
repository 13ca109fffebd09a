"""Rarefaction."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.report.analysis.diversity import rarefied

SMALL = st.lists(st.integers(1, 4), min_size=1, max_size=4)


@given(SMALL, st.data())
def test_mean_and_deviation_are_those_of_all_subsamples(
    counts: list[int], data: st.DataObject
) -> None:
    """Every subsample is drawn and counted: its kinds' mean and deviation are the formula's."""
    members = [kind for kind, seen in enumerate(counts) for _ in range(seen)]
    size = data.draw(st.integers(0, len(members)))
    shown = [len(set(drawn)) for drawn in combinations(members, size)]
    found = rarefied(counts, size)
    assert found.expected == pytest.approx(np.mean(shown), abs=1e-9)
    assert found.deviation == pytest.approx(np.std(shown), abs=1e-6)


def test_a_large_set_equals_drawing() -> None:
    """At sizes too large to enumerate, 4,000 random subsamples agree within their own error."""
    rng = np.random.default_rng(5)
    members = rng.zipf(1.6, 3000).clip(max=4000)
    drawn = [len(np.unique(rng.choice(members, 500, replace=False))) for _ in range(4000)]
    found = rarefied(Counter(members.tolist()).values(), 500)
    assert found.expected == pytest.approx(np.mean(drawn), abs=4 * np.std(drawn) / 4000**0.5)
    assert found.deviation == pytest.approx(np.std(drawn), rel=0.05)


def test_all_members_show_all_kinds() -> None:
    """A subsample of everything shows every kind without doubt; another sample may show others."""
    found = rarefied([5, 2, 1, 1], 9)  # whose interval stays below 9
    assert (found.expected, found.deviation) == (pytest.approx(4), pytest.approx(0, abs=1e-7))
    # By hand: 4 seen, f1 = 2, f2 = 1, Chao1 = 4 + 8/9 * 4/2; variance = 4 - 16 / Chao1.
    assert found.error == pytest.approx((4 - 16 / (4 + 8 / 9 * 2)) ** 0.5)
    assert found.interval == pytest.approx((4 - 1.959964 * found.error, 4 + 1.959964 * found.error))


def test_no_sample_shows_more_kinds_than_it_has_members() -> None:
    """Of 30 members that are all different, others may be alike, but never more than 30."""
    low, high = rarefied([1] * 30, 30).interval
    assert low < 30 == high


def test_a_single_kind_is_certain() -> None:
    """A set that always says the same has one kind at any size, without an error."""
    for size in (1, 50, 553):
        found = rarefied([553], size)
        assert (found.expected, found.deviation, found.error) == (
            pytest.approx(1),
            pytest.approx(0, abs=1e-7),
            pytest.approx(0, abs=1e-7),
        )


def test_the_interval_holds_what_other_samples_show() -> None:
    """Of samples from one population about 95 % have intervals that hold the population's mean."""
    rng = np.random.default_rng(11)
    kinds = 1 / np.arange(1, 301) ** 1.1
    kinds /= kinds.sum()
    truth = float((1 - (1 - kinds) ** 60).sum())
    samples = [np.bincount(rng.choice(300, 200, p=kinds)) for _ in range(300)]
    held = [low <= truth <= high for low, high in (_interval(one) for one in samples)]
    assert 0.93 <= np.mean(held) <= 1


def _interval(seen: np.ndarray) -> tuple[float, float]:
    return rarefied(seen[seen > 0].tolist(), 60).interval


@pytest.mark.parametrize(("counts", "size"), [([1, 2], 4), ([1, 2], -1), ([0, 2], 1)])
def test_what_is_no_subsample_is_refused(counts: list[int], size: int) -> None:
    """More members than there are, fewer than none, and kinds that were never seen."""
    with pytest.raises(ValueError, match="expected 0 to"):
        rarefied(counts, size)


def test_nothing_shows_nothing() -> None:
    """No prompts have no kinds."""
    found = rarefied([], 0)
    assert (found.expected, found.deviation, found.error) == (0, 0, 0)
