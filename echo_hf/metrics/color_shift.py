"""Color shift: whether a system's outputs have, on the whole, the colors of its inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from echo_hf._infra.bootstrap import Interval, drawn_weights, percentiles
from echo_hf.errors import ScoreError
from echo_hf.images.color import ciede2000, lab_of
from echo_hf.metrics.color_histograms import (
    CHANNELS,
    FIRST_LEVEL,
    LAST_LEVEL,
    Floats,
    Integers,
    color_distance,
    histograms,
    kept_pixels,
    mean_levels,
    pooled,
    wasserstein,
)
from echo_hf.metrics.image_features import SampleFeatures, notices_of, reasons_of, seen
from echo_hf.metrics.result import (
    Estimate,
    MetricResult,
    Unmeasured,
    coverage_of,
    definition_of,
    means_of,
    versions_of,
)
from echo_hf.metrics.samples import (
    FLAT_LEVELS,
    LOADERS,
    Protocol,
    check_protocol,
    decoders,
    samples_of,
)
from echo_hf.reasons import MetricReason


@dataclass(frozen=True)
class ByChannel:
    """One estimate for each channel."""

    red: Estimate
    green: Estimate
    blue: Estimate


def wasserstein_of(pairs: Sequence[Integers | None], *, n_boot: int, seed: int) -> ByChannel:
    """The mean 1-Wasserstein distance of samples."""
    rows = [None if pair is None else wasserstein(pair[0], pair[1]).tolist() for pair in pairs]
    return ByChannel(*means_of(rows, CHANNELS, n_boot=n_boot, seed=seed))


SIDES = 2


class Pooled(NamedTuple):
    """The color shift of pooled images."""

    shift: float | None
    interval: Interval | None
    per_sample: tuple[float | None, ...]


def pool(pairs: Sequence[Integers], *, n_boot: int, seed: int) -> Pooled:
    """Pools samples and compares the mean colors of both sides."""
    pixels = np.zeros((len(pairs), SIDES, CHANNELS, 2), np.int64)
    for at, pair in enumerate(pairs):
        pixels[at] = kept_pixels(pair)
    return Pooled(
        _numbers(_shifts(pixels.sum(axis=0)))[0],
        _interval(pixels, n_boot, seed),
        _numbers(_shifts(pixels)),
    )


def _shifts(pixels: Integers | Floats) -> Floats:
    """Distances, NaN where a channel of either side has no pixel."""
    before, after = np.moveaxis(mean_levels(pixels), -2, 0)
    return color_distance(before, after)


def _interval(pixels: Integers, n_boot: int, seed: int) -> Interval | None:
    flat = pixels.reshape(len(pixels), SIDES * CHANNELS * 2)
    used = flat[flat.any(axis=1)]
    # In an order of their own, so that that of the samples does not matter.
    ordered = used[np.lexsort(used.T)]
    form = (-1, *pixels.shape[1:])
    drawn = [
        _shifts((weights @ ordered).reshape(form))
        for weights in drawn_weights(len(ordered), n_boot, seed)
    ]
    complete = (pixels[..., 0].sum(axis=2) > 0).all(axis=1).sum()
    return percentiles(np.concatenate([np.empty(0), *drawn]), int(complete))[0]


def _numbers(values: Floats) -> tuple[float | None, ...]:
    return tuple(None if np.isnan(one) else float(one) for one in np.atleast_1d(values))


@dataclass(frozen=True)
class Tint:
    """How the mean color of outputs differs from that of inputs, as the mean over samples."""

    lighter: Estimate
    redder: Estimate
    yellower: Estimate
    difference: Estimate


def tints(inputs: ArrayLike, outputs: ArrayLike) -> Floats:
    """The tint of each pair of mean colors."""
    before, after = lab_of(inputs), lab_of(outputs)
    return np.concatenate([after - before, ciede2000(before, after)[..., None]], axis=-1)


def tint_of(pairs: Sequence[Integers | None], *, n_boot: int, seed: int) -> Tint:
    """The mean tint of samples, from the mean of all levels of either side."""
    rows = [None if pair is None else _of_pair(pair) for pair in pairs]
    return Tint(*means_of(rows, 4, n_boot=n_boot, seed=seed))


def _of_pair(pair: Integers) -> list[float]:
    before, after = mean_levels(kept_pixels(pair, 0, 255))
    return [float(one) for one in tints(before, after)]


class _Rule(NamedTuple):
    loader: str
    inputs: str
    input_pool: str


RULES: Mapping[Protocol, _Rule] = {
    "published": _Rule("plain conversion to RGB", "the first", "every sample"),
    "corrected": _Rule("echo_hf.load_rgb", "all", "samples whose output counts"),
}


@dataclass(frozen=True, kw_only=True)
class ColorShiftResult(MetricResult):
    """The color shift of one system, and beside it what it does not tell.

    `value` pools all images, so that opposite shifts of two samples cancel out; `per_sample`
    is the same formula for each sample alone, 10 to 50 times as large, whose mean is another
    number. A sample in which a channel has no level from 5 to 250 counts in `value` and in `n`,
    and has the reason `no_levels` in place of a number of its own.

    Attributes:
        wasserstein: Mean over samples of the 1-Wasserstein distance of a pair's levels, in levels
            of 0 to 255: the average difference of two histograms, which sees contrast, too.
        tint: Mean over samples of where the colors move to, in CIELAB.
    """

    wasserstein: ByChannel
    tint: Tint


class ColorShift:
    """The color shift of images that come in batches, or are counted in several processes.

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
        >>> result = first.compute()
        >>> result.value, result.coverage
        (61.5, 0.5)
    """

    def __init__(self, *, protocol: Protocol = "corrected", threads: int | None = None) -> None:
        check_protocol(protocol)
        self._protocol: Protocol = protocol
        self._threads = threads
        self._samples: list[SampleFeatures[Integers]] = []

    def __len__(self) -> int:
        return len(self._samples)

    def add(self, inputs: Iterable[Any], outputs: Iterable[Any]) -> None:
        """Counts the levels of some more samples.

        Args:
            inputs: For each sample an image or a list of images, as for `color_shift`.
            outputs: For each sample an image, or null.

        Raises:
            ScoreError: The two differ in length, or an element is no image; none of the samples
                is added then.
        """
        published = self._protocol == "published"
        samples = samples_of(inputs, outputs)
        if published:
            samples = (replace(one, inputs=one.inputs[:1]) for one in samples)
        load = LOADERS[self._protocol]
        looked = seen(samples, histograms, load=load, threads=self._threads, lone_inputs=published)
        self._samples += [_with_pooled_inputs(one) for one in looked]

    def merge(self, other: ColorShift) -> None:
        """Adds the samples of another accumulator after its own.

        Args:
            other: Stays as it is.

        Raises:
            ScoreError: It follows the other protocol.
        """
        if other._protocol != self._protocol:
            raise ScoreError(
                f"protocol is {other._protocol!r} there and {self._protocol!r} here: expected the "
                "same, since images are read in another way"
            )
        self._samples += other._samples

    def compute(self, *, n_boot: int = 1000, seed: int = 0) -> ColorShiftResult:
        """The color shift of all samples that were added.

        Args:
            n_boot: Draws of the bootstrap over samples; 0 for none.
            seed: Of the draws.

        Returns:
            The result, with the samples in the order in which they came; the numbers of the whole
            do not depend on it, nor on batches and parts.

        Raises:
            ScoreError: `n_boot` is no number of draws.
        """
        reasons = reasons_of(self._samples)
        pairs = [_pair(*both, self._protocol) for both in zip(self._samples, reasons, strict=True)]
        counted = [None if reason else pair for pair, reason in zip(pairs, reasons, strict=True)]
        whole, n = pool(pairs, n_boot=n_boot, seed=seed), reasons.count(None)
        return ColorShiftResult(
            value=whole.shift,
            per_sample=whole.per_sample,
            interval=whole.interval,
            n=n,
            coverage=coverage_of(n, len(reasons)),
            reasons=_with_no_levels(reasons, whole.per_sample),
            notices=notices_of(self._samples),
            definition=_definition(self._protocol, n_boot, seed),
            wasserstein=wasserstein_of(counted, n_boot=n_boot, seed=seed),
            tint=tint_of(counted, n_boot=n_boot, seed=seed),
        )


def color_shift(
    inputs: Iterable[Any],
    outputs: Iterable[Any],
    *,
    protocol: Protocol = "corrected",
    n_boot: int = 1000,
    seed: int = 0,
    threads: int | None = None,
) -> ColorShiftResult:
    """How far the mean color of a system's outputs is from that of its inputs (ECHO section 5.2).

    The pixels of all inputs are taken together, and those of all outputs; levels below 5 and
    above 250 are left out; what remains has a mean red, green and blue on either side, and the
    color shift is the Euclidean distance of the two. Lower is better. `published`: as the
    released code computes it, from the first input of every sample, whether or not its output
    counts, with images converted to RGB and no more; but sheets of one color and placeholders
    are left out here, too. `corrected`: from all inputs of the samples whose output counts, with
    images loaded by `echo_hf.load_rgb`, so that profiles, 16 bits and transparency do not pass
    for a shift.

    It is the difference of two averages, not an average of differences: opposite shifts cancel
    out, larger images count for more, and no direction is seen. `wasserstein` and `tint` of the
    result answer these; they are means over samples on scales of their own.

    Args:
        inputs: For each sample an image, a list of images, or null: images of Pillow's,
            paths, bytes of files, or dicts with `bytes` or `path`; a list, or a column of a
            Dataset.
        outputs: For each sample an image in one of these forms, or null when there is none.
        protocol: `corrected` or `published`.
        n_boot: Draws of the bootstrap over samples; 0 for none.
        seed: Of the draws.
        threads: How many threads decode; as many as there are processors when null.

    Returns:
        `value` and `interval` in levels, from 0 to 425. A sample without an output, with a
        image that cannot be decoded or is of one color, or with an output that another task
        has, too, has no number but a reason.

    Raises:
        ScoreError: The two differ in length, an element is no image, or a choice is none of
            those there are.

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
    counted = ColorShift(protocol=protocol, threads=threads)
    counted.add(inputs, outputs)
    return counted.compute(n_boot=n_boot, seed=seed)


def _with_pooled_inputs(sample: SampleFeatures[Integers]) -> SampleFeatures[Integers]:
    return replace(sample, inputs=(pooled(sample.inputs),)) if sample.inputs else sample


def _pair(
    sample: SampleFeatures[Integers], reason: Unmeasured | None, protocol: Protocol
) -> Integers:
    """What is pooled of a sample: array [input or output, channel, level]."""
    nothing = pooled(())
    before, *_ = sample.inputs or (nothing,)
    if reason is None:
        return np.stack([before, nothing if sample.output is None else sample.output])
    return np.stack([before if protocol == "published" else nothing, nothing])


def _with_no_levels(
    reasons: Sequence[Unmeasured | None], shifts: Sequence[float | None]
) -> tuple[Unmeasured | None, ...]:
    no_levels = Unmeasured(MetricReason.NO_LEVELS)
    return tuple(
        no_levels if reason is None and shift is None else reason
        for reason, shift in zip(reasons, shifts, strict=True)
    )


def _definition(protocol: Protocol, n_boot: int, seed: int) -> dict[str, Any]:
    return {
        "metric": "color_shift",
        "protocol": protocol,
        **RULES[protocol]._asdict(),
        "value": "Euclidean distance of the mean colours of pooled histograms, in levels",
        "direction": "lower is better",
        "levels": [FIRST_LEVEL, LAST_LEVEL],
        "blank_within": FLAT_LEVELS,
        "interval": definition_of(n_boot, seed),
        "versions": {**versions_of("echo-hf", "numpy"), **decoders()},
    }
