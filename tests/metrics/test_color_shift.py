"""The color shift: both protocols against plain counts of pixels, and the laws of its parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from PIL import Image as Pillow
from scipy.stats import bootstrap, norm, wasserstein_distance
from scipy.stats import t as student

from echo_hf._infra.bootstrap import Integers
from echo_hf.errors import ScoreError
from echo_hf.metrics import ColorShift, ColorShiftResult, color_shift
from echo_hf.metrics.color_shift import (
    ciede2000,
    compute_histograms,
    compute_mean_levels,
    compute_tints,
    convert_to_lab,
    measure_color_distance,
    measure_shift_and_tint,
    pool_shifts,
    select_pixels,
)
from echo_hf.metrics.result import MetricReason
from echo_hf.scores.votes import ProtocolName
from tests.markdown_for_tests import cells
from tests.metrics.images_for_metrics import (
    BOTH,
    CUT,
    PUBLISHED,
    Levels,
    noise,
    trimmed_mean,
    trimmed_shift,
)
from tests.metrics.images_for_metrics import INPUTS as PAPER
from tests.stages_for_tests import ROOT

INPUTS = [noise(seed, 20, 200 + seed, size=(6 + seed, 8)) for seed in range(12)]
OUTPUTS = [noise(seed + 50, 30, 240, size=(9, 7)) for seed in range(12)]
WHITE = Pillow.new("RGB", (8, 8), "white")
# What a sample may be, so that laws are tested with all that can go wrong.
SAMPLES: list[tuple[Any, Any]] = [
    *zip(INPUTS[:4], OUTPUTS[:4], strict=True),
    ([INPUTS[4], INPUTS[5]], OUTPUTS[5]),
    (INPUTS[0], None),
    (INPUTS[1], CUT),
    (INPUTS[2], WHITE),
    (INPUTS[6], OUTPUTS[0]),
    ([], OUTPUTS[6]),
    (Pillow.fromarray(np.tile(np.array([[0], [255]], np.uint8), (4, 8))), OUTPUTS[7]),
]
MANY = [*SAMPLES, *zip(INPUTS, (noise(seed) for seed in range(80, 92)), strict=True)]
PARTS = st.lists(st.sampled_from(SAMPLES), max_size=5)
PROTOCOLS = st.sampled_from(get_args(ProtocolName))


def _accumulated(samples: list[tuple[Any, Any]], protocol: ProtocolName) -> ColorShift:
    found = ColorShift(protocol=protocol, threads=1)
    found.add([given for given, _ in samples], [made for _, made in samples])
    return found


def _of_the_whole(result: ColorShiftResult) -> list[Any]:
    beside = [*vars(result.wasserstein).values(), *vars(result.tint).values()]
    means = [(one.value, one.interval) for one in beside]
    return [result.value, result.interval, result.n, result.coverage, result.counts, means]


@pytest.mark.parametrize("protocol", get_args(ProtocolName))
def test_the_number_is_that_of_all_pixels_together(protocol: ProtocolName) -> None:
    result = color_shift(INPUTS, OUTPUTS, protocol=protocol, n_boot=100)
    before, after = ([np.asarray(one) for one in side] for side in (INPUTS, OUTPUTS))
    assert result.value == pytest.approx(trimmed_shift(before, after))
    assert result.per_sample == tuple(
        pytest.approx(trimmed_shift([one], [other]))
        for one, other in zip(before, after, strict=True)
    )
    assert (result.n, result.coverage, result.counts) == (12, 1.0, {})
    assert result.interval is not None
    assert result.interval[0] < result.interval[1]


def test_several_inputs_all_count_or_the_first() -> None:
    first, second, made = (np.asarray(one) for one in (INPUTS[0], INPUTS[1], OUTPUTS[0]))
    several = [[INPUTS[0], INPUTS[1]]]
    corrected, published = (color_shift(several, OUTPUTS[:1], protocol=name).value for name in BOTH)
    assert corrected == pytest.approx(trimmed_shift([first, second], [made]))
    assert published == pytest.approx(trimmed_shift([first], [made]))
    unread = color_shift([[INPUTS[0], CUT]], OUTPUTS[:1], protocol="published")
    assert unread.value == published


def test_inputs_without_an_output_count_in_the_published_number_alone() -> None:
    inputs, outputs = INPUTS[:3], [OUTPUTS[0], None, CUT]
    before, after = ([np.asarray(one) for one in side] for side in (inputs, OUTPUTS[:1]))
    corrected, published = (color_shift(inputs, outputs, protocol=name) for name in BOTH)
    assert corrected.value == pytest.approx(trimmed_shift(before[:1], after))
    assert published.value == pytest.approx(trimmed_shift(before, after))
    for result in (corrected, published):
        assert (result.n, result.coverage) == (1, 1 / 3)
        assert result.counts == {MetricReason.BAD_OUTPUT: 1, MetricReason.MISSING_OUTPUT: 1}
        assert result.per_sample[1:] == (None, None)


@given(PARTS, PARTS, PARTS, PROTOCOLS)
def test_parts_merge_to_the_whole_in_any_grouping(
    first: list[Any], second: list[Any], third: list[Any], protocol: ProtocolName
) -> None:
    parts = [first, second, third]
    whole = _accumulated([*first, *second, *third], protocol)
    batches = _accumulated([], protocol)
    for part in parts:
        batches.add([given_ for given_, _ in part], [made for _, made in part])
    left, middle, right = (_accumulated(part, protocol) for part in parts)
    left.merge(middle)
    left.merge(right)
    start, end, last = (_accumulated(part, protocol) for part in parts)
    end.merge(last)
    start.merge(end)
    expected = whole.compute(n_boot=20)
    assert all(one.compute(n_boot=20) == expected for one in (batches, left, start))
    assert len(whole) == len(left) == len(expected.per_sample)


@given(st.permutations(MANY), PROTOCOLS)
def test_the_order_of_samples_changes_only_the_order(shuffled: Any, protocol: ProtocolName) -> None:
    straight, other = (
        _accumulated(samples, protocol).compute(n_boot=20) for samples in (MANY, shuffled)
    )
    assert straight.interval is not None
    assert _of_the_whole(other) == _of_the_whole(straight)
    moved = [MANY.index(one) for one in shuffled]
    assert other.per_sample == tuple(straight.per_sample[at] for at in moved)
    assert other.reasons == tuple(straight.reasons[at] for at in moved)


def test_a_placeholder_is_found_across_merged_parts() -> None:
    card = noise(77)
    first, second = (_accumulated([(INPUTS[at], card)], "corrected") for at in (0, 1))
    assert first.compute().coverage == 1
    first.merge(second)
    result = first.compute()
    assert (result.value, result.coverage) == (None, 0)
    assert result.counts == {MetricReason.PLACEHOLDER: 2}


def test_what_there_is_no_number_of() -> None:
    nothing = color_shift([], [])
    assert (nothing.value, nothing.n, nothing.coverage, nothing.per_sample) == (None, 0, None, ())
    blank = color_shift(INPUTS[:1], [WHITE])
    for estimate in (*vars(blank.wasserstein).values(), *vars(blank.tint).values()):
        assert (estimate.value, estimate.interval, estimate.per_sample) == (None, None, (None,))
    with pytest.raises(ScoreError, match="'published' there and 'corrected' here"):
        ColorShift().merge(ColorShift(protocol="published"))


def test_the_definition_tells_all_that_decides_the_number() -> None:
    results = [
        json.loads(json.dumps(color_shift([], [], protocol=name, seed=7).as_json()))
        for name in get_args(ProtocolName)
    ]
    published, corrected = (one["definition"] for one in results)
    assert {key for key, value in published.items() if value != corrected[key]} == {
        "protocol", "loader", "inputs", "input_pool"
    }  # fmt: skip
    assert corrected["levels"] == [5, 250]
    assert corrected["interval"]["draws"] == 1000
    assert corrected["interval"]["seed"] == 7
    assert corrected["versions"]["pillow"] == Pillow.__version__


def test_a_large_image_does_not_overflow() -> None:
    counts = np.zeros((3, 256), np.int64)
    counts[:, 250] = 10 * 100_000_000
    assert compute_mean_levels(select_pixels(counts)).tolist() == [250.0] * 3


PAIRED = [
    (noise(seed, size=(5 + seed, 9)), noise(seed + 90, high=230 + 2 * seed, size=(8, 7)))
    for seed in range(12)
]
PAIRS = [np.stack([compute_histograms(one) for one in pair]) for pair in PAIRED]
SIDES: list[tuple[Levels, Levels]] = [(np.asarray(a), np.asarray(b)) for a, b in PAIRED]
NOTHING: Integers = np.zeros((3, 256), np.int64)


def _shift(samples: list[tuple[Levels, Levels]]) -> float:
    return trimmed_shift([one for one, _ in samples], [one for _, one in samples])


def test_the_interval_draws_samples_with_both_their_sides() -> None:
    found = pool_shifts(PAIRS, n_boot=20_000, seed=0)
    numbers = np.arange(len(SIDES))
    expected = bootstrap(
        (numbers,),
        lambda drawn: _shift([SIDES[at] for at in drawn]),
        vectorized=False,
        confidence_level=1 - 2 * norm.cdf(np.sqrt(12 / 11) * student.ppf(0.025, 11)),
        n_resamples=3000,
        method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    assert found[1] == pytest.approx((expected.low, expected.high), rel=0.04)


def test_what_is_pooled_on_one_side_alone_is_no_sample() -> None:
    alone = [np.stack([pair[0], NOTHING]) for pair in PAIRS[:3]]
    nine = pool_shifts([*PAIRS[3:], *alone], n_boot=50, seed=0)
    means = [trimmed_mean([one[side] for one in SIDES[3 * side :]]) for side in (0, 1)]
    assert nine[0] == pytest.approx(np.linalg.norm(means[1] - means[0]))
    assert nine[2][9:] == (None, None, None)
    assert nine[1] is None
    ten = pool_shifts([*PAIRS[2:], *alone], n_boot=50, seed=0)
    assert ten[1] is not None


def test_without_images_there_is_no_shift() -> None:
    white = np.zeros((2, 3, 256), np.int64)
    white[:, :, 255] = 9
    for pairs in ([], [white], [white] * 20):
        assert pool_shifts(pairs, n_boot=10, seed=0)[:2] == (None, None)
    both = pool_shifts([white, PAIRS[0]], n_boot=0, seed=0)
    assert both[0] == both[2][1]
    assert both[2][0] is None


def test_each_channel_is_the_mean_of_scipys_distances() -> None:
    images = [(noise(seed), noise(seed + 50, high=150 + seed)) for seed in range(12)]
    inputs, outputs = map(list, zip(*images, strict=True))
    found = color_shift([*inputs, noise(99)], [*outputs, None], n_boot=300).wasserstein
    for channel, estimate in enumerate((found.red, found.green, found.blue)):
        expected = [
            wasserstein_distance(*(np.asarray(one)[..., channel].ravel() for one in pair))
            for pair in images
        ]
        assert estimate.per_sample == (*(pytest.approx(one) for one in expected), None)
        assert estimate.value == pytest.approx(np.mean(expected))
        assert estimate.interval is not None
        assert estimate.interval[0] < np.mean(expected) < estimate.interval[1]


def test_all_levels_count_beside_the_shift() -> None:
    counts = np.zeros((2, 3, 256), np.int64)
    counts[0, :, 128] = 10
    counts[1, :, [0, 255]] = 5
    assert measure_shift_and_tint(counts)[:3] == [127.5] * 3
    black, white = (
        compute_histograms(Image.new("RGB", (2, 2), name)) for name in ("black", "white")
    )
    assert measure_shift_and_tint(np.stack([black, white]))[3:6] == pytest.approx(
        [100, 0, 0], abs=0.01
    )


# Computed with scikit-image from the published mean colors: lightness, a, b, CIEDE2000.
BY_SKIMAGE = {"4o Image Gen": (-5.39, 1.03, 5.25, 6.63), "LLM+Diffusion": (-2.56, None, 0.67, 3.06)}


@pytest.mark.parametrize("system", BY_SKIMAGE)
def test_the_tints_of_published_colors_are_those_of_another_library(system: str) -> None:
    found = compute_tints(PAPER, PUBLISHED[system][0])
    for one, expected in zip(found, BY_SKIMAGE[system], strict=True):
        assert expected is None or one == pytest.approx(expected, abs=0.02)


def test_the_page_states_the_published_numbers_and_our_tints() -> None:
    page = (ROOT / "docs" / "explanation" / "why.md").read_text("utf-8")
    rows = {row[0]: [float(one.replace("−", "-")) for one in row[1:5]] for row in cells(page)[1:]
            if row[0] in PUBLISHED}  # fmt: skip
    for system, (mean, printed) in PUBLISHED.items():
        lighter, _, yellower, difference = compute_tints(PAPER, mean)
        assert round(float(measure_color_distance(PAPER, mean)), 2) == printed == rows[system][0]
        assert rows[system][1:] == pytest.approx([lighter, yellower, difference], abs=0.05001)


# Sharma, Wu, Dalal 2005 (Color Research and Application 30), table 1: two colors in CIELAB, and
# their difference. Each line tests another branch of the formula.
SHARMA = np.loadtxt(Path(__file__).parents[1] / "data" / "ciede2000.csv", delimiter=",")


@pytest.mark.parametrize("row", SHARMA, ids=range(1, 35))
def test_differences_are_those_of_the_published_table(row: np.ndarray) -> None:
    assert ciede2000(row[:3], row[3:6]).round(4) == row[6]


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ((255, 255, 255), (100, 0, 0)),
        ((0, 0, 0), (0, 0, 0)),
        ((255, 0, 0), (53.24, 80.09, 67.20)),
        ((0, 255, 0), (87.74, -86.18, 83.18)),
        ((0, 0, 255), (32.30, 79.19, -107.86)),
    ],
)
def test_the_corners_of_srgb_are_where_tables_have_them(levels: Any, expected: Any) -> None:
    assert convert_to_lab(levels) == pytest.approx(expected, abs=0.03)
