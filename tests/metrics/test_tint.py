"""The signed tint: its directions, and the published mean colors of which it is known."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from echo_hf.metrics.color_histograms import histograms
from echo_hf.metrics.color_shift import tint_of, tints
from tests.metrics.images_for_metrics import noise
from tests.metrics.published_colors import INPUTS, PUBLISHED

# Computed with scikit-image from the published mean colors: lightness, a, b, CIEDE2000.
BY_SKIMAGE = {"4o Image Gen": (-5.39, 1.03, 5.25, 6.63), "LLM+Diffusion": (-2.56, None, 0.67, 3.06)}


@pytest.mark.parametrize("system", BY_SKIMAGE)
def test_the_tints_of_published_colors_are_those_of_another_library(system: str) -> None:
    """The largest shift is yellow, the second is mostly darker: the shift alone does not say."""
    found = tints(INPUTS, PUBLISHED[system][0])
    for one, expected in zip(found, BY_SKIMAGE[system], strict=True):
        assert expected is None or one == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize(
    ("change", "at", "sign"),
    [
        ((20, 20, 20), 0, 1),
        ((-20, -20, -20), 0, -1),
        ((20, -10, 0), 1, 1),
        ((-20, 10, 0), 1, -1),
        ((10, 10, -20), 2, 1),
        ((-10, -10, 20), 2, -1),
    ],
)
def test_the_sign_is_the_direction(change: tuple[int, int, int], at: int, sign: int) -> None:
    """Lighter, redder and yellower are above 0, darker, greener and bluer below."""
    grey = np.full(3, 128)
    found = tints(grey, grey + change)
    assert np.sign(found[at]) == sign
    assert abs(found[at]) == np.abs(found[:3]).max()
    assert found[3] > 0


def test_opposite_tints_cancel_out_but_differences_do_not() -> None:
    """One sample turns yellow, another as much blue; what does not count is left out."""
    grey, yellow, blue = (
        histograms(Image.new("RGB", (2, 2), color)) for color in ("#808080", "#808066", "#80809a")
    )
    pairs = [np.stack([grey, yellow]), None, np.stack([grey, blue])]
    found = tint_of(pairs, n_boot=0, seed=0)
    first, nothing, second = found.yellower.per_sample
    assert nothing is None
    assert first is not None
    assert second is not None
    assert first > 10 > -10 > second
    assert found.yellower.value == pytest.approx((first + second) / 2)
    assert found.difference.value is not None
    assert found.difference.value > 5


def test_all_levels_count() -> None:
    """Black and white pixels, which the color shift leaves out, have a tint, too."""
    black, white = (histograms(Image.new("RGB", (2, 2), name)) for name in ("black", "white"))
    found = tint_of([np.stack([black, white])], n_boot=0, seed=0)
    assert found.lighter.value == pytest.approx(100, abs=0.01)
    assert found.yellower.value == pytest.approx(0, abs=0.01)


def test_intervals_hold_the_mean() -> None:
    """Over samples, for each of the four."""
    pairs = [
        np.stack([histograms(noise(seed)), histograms(noise(99 - seed, high=200))])
        for seed in range(12)
    ]
    found = tint_of(pairs, n_boot=200, seed=0)
    for one in (found.lighter, found.redder, found.yellower, found.difference):
        assert one.interval is not None
        assert one.value is not None
        assert one.interval[0] < one.value < one.interval[1]
