"""The index finds whatever a comparison of all with all finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.images.similarity import Contrasts, Means, SignatureIndex, same_colors


def _signatures(seed: int, count: int, spread: float) -> tuple[Means, Contrasts]:
    """Families of signatures whose members differ by about as much as is just allowed."""
    random = np.random.default_rng(seed)
    families = random.normal([128, 0, 0, 0], 60, (max(1, count // 4), 1, 1, 4))
    means = families[random.integers(0, len(families), count)]
    means = means + random.normal(0, 20, (1, 16, 16, 4))
    # What is hardest to find differs as much as is allowed all over a cell.
    steps = random.choice([-1, 1], (count, 4, 4, 4)) * random.uniform(0, spread, (count, 1, 1, 1))
    means = means + steps.repeat(4, 1).repeat(4, 2)
    contrasts = random.gamma(0.5, 30, (count, 1, 1, 1)) * random.uniform(0.9, 1, (count, 16, 16, 4))
    return means.clip(-128, 255).astype(np.float16), contrasts.clip(0, 128).astype(np.uint8)


@given(st.integers(0, 10**6), st.integers(1, 40), st.sampled_from([0.5, 1.0, 3.0, 8.0]))
def test_no_pair_with_the_same_colors_is_missed(seed: int, count: int, spread: float) -> None:
    """Each pair that a comparison of all finds is a pair of the index."""
    means, contrasts = _signatures(seed, count, spread)
    index = SignatureIndex(means, contrasts)
    for one in range(count):
        same = np.flatnonzero(same_colors(means[one], contrasts[one], means, contrasts))
        near = index.near(one)
        assert set(same.tolist()) - {one} <= set(near)
        assert near == sorted(set(near) - {one})


def test_the_families_hold_pairs_that_are_and_pairs_that_are_not_the_same() -> None:
    """The law above is about something: both kinds occur."""
    means, contrasts = _signatures(1, 400, 1.0)
    same = [same_colors(means[one], contrasts[one], means, contrasts) for one in range(100)]
    pairs = int(np.sum(same)) - 100
    assert 100 < pairs < 10_000


@pytest.mark.parametrize("contrast", [0, 40])
def test_little_is_compared_in_vain(contrast: int) -> None:
    """Among 3000 images of different colors nearly none is near another."""
    random = np.random.default_rng(0)
    cells = random.uniform([0, -60, -60, 255], [255, 60, 60, 255], (3000, 4, 4, 4))
    means = cells.repeat(4, 1).repeat(4, 2).astype(np.float16)
    index = SignatureIndex(means, np.full(means.shape, contrast, np.uint8))
    assert sum(len(index.near(one)) for one in range(300)) == 0
