"""Color shift: whether a system's outputs have, on the whole, the colors of its inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from echo_hf._infra.bootstrap import Floats, Integers, Interval, compute_interval, draw_weights
from echo_hf.errors import ScoreError
from echo_hf.metrics.base import Metric, read_card, register
from echo_hf.metrics.image_features import (
    SampleFeatures,
    check_protocol,
    common_fields,
    extract,
    pair_images,
    reasons_of,
)
from echo_hf.metrics.result import (
    Estimate,
    MetricReason,
    MetricResult,
    Unmeasured,
    coverage_of,
    estimate_mean,
)
from echo_hf.prompts import fill_prompt

if TYPE_CHECKING:  # the package of scores imports datasets
    from echo_hf.scores.votes import ProtocolName

CHANNELS, LEVELS = 3, 256
FIRST_LEVEL, LAST_LEVEL = 5, 250
_EVERY_LEVEL = np.arange(LEVELS)
ALL, COUNTED = "every sample", "samples whose output counts"
RULES: Mapping[ProtocolName, Mapping[str, str]] = {
    "published": {"loader": "plain conversion to RGB", "inputs": "the first", "input_pool": ALL},
    "corrected": {"loader": "echo_hf.load_rgb", "inputs": "all", "input_pool": COUNTED},
}
NOTHING: Integers = np.zeros((CHANNELS, LEVELS), np.int64)
# IEC 61966-2-1: the light of the three channels as XYZ.
_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
_OF_WHITE = _XYZ / _XYZ.sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class ByChannel:
    """An estimate for each channel."""

    red: Estimate
    green: Estimate
    blue: Estimate


@dataclass(frozen=True)
class Tint:
    """The difference of the mean color of outputs from that of inputs, as a mean over samples."""

    lighter: Estimate
    redder: Estimate
    yellower: Estimate
    difference: Estimate


@dataclass(frozen=True, kw_only=True, repr=False)
class ColorShiftResult(MetricResult):
    """The color shift of one system, with the tint and distances that it does not show.

    `value` pools all images; `per_sample` is the same formula for each sample alone, 10 to 50
    times as large, whose mean is another number. A sample in which a channel has no level from
    5 to 250 counts in `value` and in `n`, and has the reason `no_levels` in place of a number.

    Attributes:
        wasserstein: Mean over samples of the 1-Wasserstein distance of a pair's levels, in levels
            of 0 to 255, which sees contrast, too.
        tint: Mean over samples of where the colors move to, in CIELAB.
    """

    wasserstein: ByChannel
    tint: Tint


class ColorShift:
    """An accumulator of the color shift, for images in batches or in several processes.

    It keeps histograms, 12 KB a sample, and no image: results of several parts merge to the
    result of the whole, to the last bit.

    Args:
        protocol: `corrected` or `published`, as for `color_shift`.
        threads: How many threads decode; as many as there are processors when null.

    Raises:
        ScoreError: There is no such protocol.

    Examples:
        >>> from PIL import Image
        >>> grey = Image.linear_gradient("L")
        >>> yellow = Image.merge("RGB", [grey, grey, grey.point(lambda level: level // 2)])
        >>> first, second = ColorShift(), ColorShift()
        >>> first.add([grey], [yellow])
        >>> second.add([grey], [None])
        >>> first.merge(second)
        >>> first.compute().value, first.compute().coverage
        (61.5, 0.5)
    """

    def __init__(self, *, protocol: ProtocolName = "corrected", threads: int | None = None) -> None:
        check_protocol(protocol)
        self._protocol: ProtocolName = protocol
        self._threads = threads
        self._samples: list[SampleFeatures[Integers]] = []

    def __len__(self) -> int:
        """Return how many samples are counted."""
        return len(self._samples)

    def add(self, inputs: Iterable[Any], outputs: Iterable[Any]) -> None:
        """Count the levels of more samples, as `color_shift` takes them: all or none."""
        published = self._protocol == "published"
        samples = pair_images(inputs, outputs)
        if published:
            samples = (replace(sample, inputs=sample.inputs[:1]) for sample in samples)
        options: dict[str, Any] = {"protocol": self._protocol, "threads": self._threads}
        looked = extract(samples, compute_histograms, lone_inputs=published, **options)
        self._samples += [
            replace(features, inputs=(sum(features.inputs, NOTHING),)) for features in looked
        ]

    def merge(self, other: ColorShift) -> None:
        """Add the samples of another accumulator after its own.

        Raises:
            ScoreError: It follows the other protocol.
        """
        if self._protocol != other._protocol:
            raise ScoreError(
                f"protocol is {other._protocol!r} there and {self._protocol!r} here: expected the "
                "same"
            )
        self._samples += other._samples

    def compute(self, *, n_boot: int = 1000, seed: int = 0) -> ColorShiftResult:
        """Return the color shift of all samples; it depends on no order and no batches."""
        reasons = reasons_of(self._samples)
        pairs, numbers = list[Integers](), list[list[float | None]]()
        for sample, reason in zip(self._samples, reasons, strict=True):
            output = None if reason else sample.output
            source = (
                NOTHING if output is None and self._protocol == "corrected" else sample.inputs[0]
            )
            pairs.append(np.stack([source, NOTHING if output is None else output]))
            numbers.append([None] * 7 if output is None else [*measure_shift_and_tint(pairs[-1])])
        value, interval, per_sample = pool_shifts(pairs, n_boot=n_boot, seed=seed)
        columns = np.array(numbers, object).reshape(-1, 7).T.tolist()
        estimates = [estimate_mean(column, n_boot=n_boot, seed=seed) for column in columns]
        n, no_levels = reasons.count(None), Unmeasured(MetricReason.NO_LEVELS)
        shifts = zip(reasons, per_sample, strict=True)
        definition = {
            "metric": "color_shift",
            "protocol": self._protocol,
            **RULES[self._protocol],
            "value": "Euclidean distance of the mean colours of pooled histograms, in levels",
            "direction": "lower is better",
            "levels": [FIRST_LEVEL, LAST_LEVEL],
        }
        return ColorShiftResult(
            value=value,
            per_sample=per_sample,
            interval=interval,
            n=n,
            coverage=coverage_of(n, len(reasons)),
            reasons=tuple(
                reason or (no_levels if shift is None else None) for reason, shift in shifts
            ),
            **common_fields(self._samples, definition, {}, n_boot, seed),
            wasserstein=ByChannel(*estimates[:3]),
            tint=Tint(*estimates[3:]),
        )


def color_shift(
    inputs: Iterable[Any],
    outputs: Iterable[Any],
    *,
    protocol: ProtocolName = "corrected",
    n_boot: int = 1000,
    seed: int = 0,
    threads: int | None = None,
) -> ColorShiftResult:
    """Measure how far the mean color of outputs is from that of inputs (ECHO section 5.2).

    The pixels of all inputs are taken together, and those of all outputs, without levels below 5
    and above 250; the color shift is the Euclidean distance of the mean red, green and blue of
    the two. Lower is better. `published`: as the released code computes it, from the first input
    of every sample, whether or not its output counts, with images converted to RGB and no more;
    but sheets of one color and placeholders are left out here, too. `corrected`: from all inputs
    of the samples whose output counts, with images loaded by `echo_hf.load_rgb`.

    Opposite shifts cancel out, larger images count for more, and no direction is seen:
    `wasserstein` and `tint` of the result, means over samples, answer these.

    Args:
        inputs: For each sample an image, a list of images, or null: images of Pillow's, paths,
            bytes of files, or dicts with `bytes` or `path`; a list, or a column of a Dataset.
        outputs: For each sample an image in one of these forms, or null when there is none.
        protocol: `corrected` or `published`.
        n_boot: Draws of the bootstrap over samples; 0 for none.
        seed: Of the draws.
        threads: How many threads decode; as many as there are processors when null.

    Returns:
        `value` and `interval` in levels, from 0 to 425. A sample without an output, with an image
        that cannot be decoded or is of one color, or with an output that another task has, too,
        has no number but a reason.

    Raises:
        ScoreError: The two differ in length, an element is no image, or a choice is unknown.

    Examples:
        >>> from PIL import Image
        >>> grey = Image.linear_gradient("L")
        >>> yellow = Image.merge("RGB", [grey, grey, grey.point(lambda level: level // 2)])
        >>> result = color_shift([grey, grey], [yellow, None])
        >>> result.value, round(result.tint.yellower.value, 1), result.coverage
        (61.5, 34.5, 0.5)
        >>> result.reasons[1].reason
        <MetricReason.MISSING_OUTPUT: 'missing_output'>
    """
    accumulator = ColorShift(protocol=protocol, threads=threads)
    accumulator.add(inputs, outputs)
    return accumulator.compute(n_boot=n_boot, seed=seed)


def compute_histograms(image: Image.Image) -> Integers:
    """Count the pixels of each level."""
    return np.array(image.histogram(), np.int64).reshape(CHANNELS, LEVELS)


def select_pixels(counts: Integers, first: int = FIRST_LEVEL, last: int = LAST_LEVEL) -> Integers:
    """Return the number of pixels within a range of levels, and the sum of their levels."""
    selected = counts[..., first : last + 1]
    return np.stack([selected.sum(-1), selected @ _EVERY_LEVEL[first : last + 1]], axis=-1)


def compute_mean_levels(pixels: ArrayLike) -> Floats:
    """Return the mean level of some pixels, NaN where there are none."""
    numbers, sums = np.moveaxis(np.asarray(pixels, np.float64), -1, 0)
    means: Floats = np.full(numbers.shape, np.nan)
    np.divide(sums, numbers, out=means, where=numbers > 0)
    return means


def measure_color_distance(first: ArrayLike, second: ArrayLike) -> Floats:
    """Return the Euclidean distance of the levels of two mean colors."""
    gaps: Floats = np.linalg.norm(np.asarray(second, float) - np.asarray(first, float), axis=-1)
    return gaps


def measure_wasserstein(first: Integers, second: Integers) -> Floats:
    """Return how far the levels of one image's pixels must move to become the other's."""
    first_cdf, second_cdf = (np.cumsum(counts, axis=-1) for counts in (first, second))
    gaps: Floats = np.abs(first_cdf / first_cdf[..., -1:] - second_cdf / second_cdf[..., -1:]).sum(
        -1
    )
    return gaps


def compute_tints(inputs: ArrayLike, outputs: ArrayLike) -> Floats:
    """Return the tint of each pair of mean colors: lighter, redder, yellower, and CIEDE2000."""
    source, target = convert_to_lab(inputs), convert_to_lab(outputs)
    return np.concatenate([target - source, ciede2000(source, target)[..., None]], axis=-1)


def measure_shift_and_tint(pair: Integers) -> list[float]:
    """Return the 1-Wasserstein distance of a pair by channel, and the tint of its mean colors."""
    tint = compute_tints(*compute_mean_levels(select_pixels(pair, 0, LEVELS - 1)))
    return [*measure_wasserstein(pair[0], pair[1]).tolist(), *tint.tolist()]


def pool_shifts(
    pairs: Sequence[Integers], *, n_boot: int, seed: int
) -> tuple[float | None, Interval | None, tuple[float | None, ...]]:
    """Return the shift of all samples pooled, its interval, and the shift of each sample alone."""
    pixels = np.zeros((len(pairs), 2, CHANNELS, 2), np.int64)
    for index, pair in enumerate(pairs):
        pixels[index] = select_pixels(pair)
    # In an order of their own, so that that of the samples does not matter.
    flat = pixels.reshape(len(pixels), 2 * CHANNELS * 2)
    with_pixels = flat[flat.any(axis=1)]
    ordered = with_pixels[np.lexsort(with_pixels.T)]
    draws = [
        _compute_shifts((weights @ ordered).reshape(-1, *pixels.shape[1:]))
        for weights in draw_weights(len(ordered), n_boot, seed)
    ]
    complete = (pixels[..., 0].sum(axis=2) > 0).all(axis=1).sum()
    interval, _ = compute_interval(np.concatenate([np.empty(0), *draws]), int(complete))
    shifts = [_compute_shifts(pixels.sum(axis=0)), *_compute_shifts(pixels)]
    pooled, *per_sample = (None if np.isnan(shift) else float(shift) for shift in shifts)
    return pooled, interval, tuple(per_sample)


def _compute_shifts(pixels: NDArray[Any]) -> Floats:
    """Return distances, NaN where a channel of either side has no pixel."""
    input_means, output_means = np.moveaxis(compute_mean_levels(pixels), -2, 0)
    return measure_color_distance(input_means, output_means)


def convert_to_lab(levels: ArrayLike) -> Floats:
    """Convert levels of sRGB (IEC 61966-2-1) to CIELAB."""
    share = np.asarray(levels, np.float64) / 255
    light = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    ratio = light @ _OF_WHITE.T
    scaled = np.where(ratio > 216 / 24389, np.cbrt(ratio), (24389 / 27 * ratio + 16) / 116)
    x, y, z = np.moveaxis(scaled, -1, 0)
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


def ciede2000(first: ArrayLike, second: ArrayLike) -> Floats:
    """Return the difference of two colors by CIEDE2000 (CIE 142-2001), with all weights 1."""
    (l_1, a_1, b_1), (l_2, a_2, b_2) = (
        np.moveaxis(np.asarray(lab, np.float64), -1, 0) for lab in (first, second)
    )
    stretch = 1.5 - _compute_grey_weight((np.hypot(a_1, b_1) + np.hypot(a_2, b_2)) / 2) / 2
    c_1, c_2 = np.hypot(stretch * a_1, b_1), np.hypot(stretch * a_2, b_2)
    chroma = (c_1 + c_2) / 2
    squared = ((l_1 + l_2) / 2 - 50) ** 2
    lightness = (l_2 - l_1) / (1 + 0.015 * squared / np.sqrt(20 + squared))
    strength = (c_2 - c_1) / (1 + 0.045 * chroma)
    # The mean of both hues, and the shorter way from one to the other.
    circle = 2 * np.pi
    hue_1, hue_2 = (np.arctan2(b, stretch * a) for a, b in ((a_1, b_1), (a_2, b_2)))
    turn = hue_2 % circle - hue_1 % circle
    turn = np.where(turn > np.pi, turn - circle, np.where(turn < -np.pi, turn + circle, turn))
    hue = np.degrees(hue_1 + turn / 2) % 360
    waves = np.multiply.outer(hue, [1, 2, 3, 4]) + np.array([-30, 0, 6, -63])
    weight = 1 + np.cos(np.radians(waves)) @ np.array([-0.17, 0.24, 0.32, -0.20])
    # Of a grey there is no hue, and this is 0.
    shade = 2 * np.sqrt(c_1 * c_2) * np.sin(turn / 2) / (1 + 0.015 * chroma * weight)
    angle = 60 * np.exp(-(((hue - 275) / 25) ** 2))
    rotation = -2 * _compute_grey_weight(chroma) * np.sin(np.radians(angle))
    squares = lightness**2 + strength**2 + shade**2 + rotation * strength * shade
    delta: Floats = np.sqrt(np.maximum(squares, 0.0))  # rounding may leave a little less than 0
    return delta


def _compute_grey_weight(chroma: Floats) -> Floats:
    return np.sqrt(chroma**7 / (chroma**7 + 25.0**7))


@register
class ColorShiftMetric(Metric):
    """The color shift of the outputs of a run."""

    name, title, better = "color_shift", "Color shift", "lower"
    about = "how far the mean color of the outputs is from that of the inputs, in levels"
    splits = ("image_to_image",)
    question = fill_prompt("judging/measure_color_shift", {}).text
    paper_name, compares_samples = "No Color Shift", False
    card = read_card(name)
    function, result = staticmethod(color_shift), ColorShiftResult
