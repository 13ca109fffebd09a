"""Structure distance: whether a system's outputs keep the layout of its inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from echo_hf.config.evaluation import Reduction
from echo_hf.errors import ScoreError, unknown
from echo_hf.metrics.image_features import SampleFeatures, notices_of, reasons_of, seen
from echo_hf.metrics.result import (
    MetricResult,
    Unmeasured,
    coverage_of,
    definition_of,
    mean_of,
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
from echo_hf.metrics.self_similarity import (
    MEAN,
    RESAMPLING,
    SPREAD,
    SelfSimilarities,
    Similarity,
    SimilarityCache,
    Squashed,
    resized,
)
from echo_hf.metrics.vit_loading import VitOptions
from echo_hf.reasons import MetricReason

Reduced = tuple[float | None, Unmeasured | None]


@dataclass(frozen=True, kw_only=True)
class StructureDistanceResult(MetricResult):
    """The structure distance of one system.

    Attributes:
        per_input: For each sample the distance of its output from each of its inputs, of which
            `per_sample` is the reduction; null for a sample that has no number.
    """

    per_input: tuple[tuple[float, ...] | None, ...]


def result_of(
    samples: Sequence[SampleFeatures[float]],
    rule: Callable[[Sequence[float], Unmeasured | None], Reduced],
    definition: Mapping[str, Any],
    *,
    n_boot: int,
    seed: int,
) -> StructureDistanceResult:
    """The structure distance of samples whose distances are known."""
    found = [rule(one.inputs, why) for one, why in zip(samples, reasons_of(samples), strict=True)]
    estimate = mean_of([value for value, _ in found], n_boot=n_boot, seed=seed)
    reasons = tuple(reason for _, reason in found)
    n = reasons.count(None)
    return StructureDistanceResult(
        value=estimate.value,
        per_sample=estimate.per_sample,
        interval=estimate.interval,
        n=n,
        coverage=coverage_of(n, len(reasons)),
        reasons=reasons,
        notices=notices_of(samples),
        definition=definition,
        per_input=tuple(
            None if reason else one.inputs for one, reason in zip(samples, reasons, strict=True)
        ),
    )


REDUCTIONS: Mapping[Reduction, Callable[[Sequence[float]], float]] = {
    "min": min,
    "max": max,
    "mean": fmean,
}


class Rule(NamedTuple):
    """What a protocol decides."""

    loader: str
    reduction: Reduction
    zero: str


RULES: Mapping[Protocol, Rule] = {
    "published": Rule("plain conversion to RGB", "max", "taken for a missing output"),
    "corrected": Rule("echo_hf.load_rgb", "min", "a distance"),
}


def check_choices(protocol: Protocol, reduction: Reduction | None, **numbers: int) -> None:
    """Refuses choices that there are not, and numbers that are none."""
    check_protocol(protocol)
    if reduction is not None and reduction not in REDUCTIONS:
        raise ScoreError(unknown("reduction", reduction, REDUCTIONS))
    for name, number in numbers.items():
        least = 0 if name == "layer" else 1
        if not isinstance(number, int) or number < least:
            raise ScoreError(f"{name} is {number!r}: expected a whole number from {least}")


def squared_difference(one: Similarity, other: Similarity) -> float:
    """The mean squared difference of two self-similarities."""
    return float(np.square(one - other).mean(dtype=np.float64))


def distanced(
    sample: SampleFeatures[Squashed], similarities: Mapping[bytes, Similarity]
) -> SampleFeatures[float]:
    """A sample with distances in place of its images."""
    distances: tuple[float, ...] = ()
    if sample.unmeasured is None and sample.output is not None:
        made = similarities[sample.output.digest]
        distances = tuple(
            squared_difference(similarities[one.digest], made) for one in sample.inputs
        )
    unmeasured = sample.unmeasured or failed_of(distances)
    return SampleFeatures(distances, None, unmeasured, sample.digests, sample.notices)


def failed_of(distances: Sequence[float]) -> Unmeasured | None:
    """Why distances are none: weights or sums that overflow make numbers that are not finite."""
    for number, distance in enumerate(distances, 1):
        if not math.isfinite(distance):
            detail = f"the distance from input {number} is {distance}"
            return Unmeasured(MetricReason.MODEL_FAILED, detail=detail)
    return None


def reduced(
    distances: Sequence[float], reason: Unmeasured | None, protocol: Protocol, reduction: Reduction
) -> tuple[float | None, Unmeasured | None]:
    """The distance of a sample, or why it has none."""
    if reason is not None:
        return None, reason
    distance = REDUCTIONS[reduction](distances)
    if distance == 0 and protocol == "published":
        return None, Unmeasured(MetricReason.ZERO_DISTANCE)
    return distance, None


MODEL = "facebook/dino-vits16"
LAYER, SIZE, BATCH_SIZE = 11, 224, 8


class StructureDistance:
    """The structure distance of images that come in batches, or in several processes.

    It keeps a few numbers a sample and no image; what it keeps of inputs for the next system
    stands in `cache`, within the bound that is stated there. Parts merge to the whole up to the
    rounding of float32, since an image's sums depend on the batch that it is in. A copy for
    another process has no weights, and an empty cache.

    Its arguments are those of `structure_distance`; what concerns the draws is for `compute`.

    Raises:
        ScoreError: A choice is none of those there are, or a number is none.
    """

    def __init__(
        self,
        *,
        protocol: Protocol = "corrected",
        model: str = MODEL,
        revision: str | None = None,
        layer: int = LAYER,
        size: int = SIZE,
        reduction: Reduction | None = None,
        batch_size: int = BATCH_SIZE,
        device: str | None = None,
        threads: int | None = None,
        cache: SimilarityCache | None = None,
    ) -> None:
        check_choices(protocol, reduction, layer=layer, size=size, batch_size=batch_size)
        self._protocol: Protocol = protocol
        self._reduction: Reduction = reduction or RULES[protocol].reduction
        self._size, self._batch_size, self._threads = size, batch_size, threads
        options = VitOptions(str(model), revision, layer, size, device)
        self._similarities = SelfSimilarities(options, batch_size=batch_size, cache=cache)
        self._samples: list[SampleFeatures[float]] = []

    def __len__(self) -> int:
        return len(self._samples)

    @property
    def forwards(self) -> int:
        """How many images the ViT has looked at."""
        return self._similarities.forwards

    def add(self, inputs: Iterable[Any], outputs: Iterable[Any]) -> None:
        """Measures some more samples; images are loaded in threads while the ViT runs.

        Args:
            inputs: For each sample an image or a list of images, as for `structure_distance`.
            outputs: For each sample an image, or null.

        Raises:
            MissingExtraError: torch or transformers is not installed.
            ScoreError: The two differ in length, an element is no image, or the model cannot be
                loaded; none of the samples is added then.
        """
        samples = samples_of(inputs, outputs)
        self._similarities.load()
        look = partial(resized, size=self._size)
        looked = seen(samples, look, load=LOADERS[self._protocol], threads=self._threads)
        batches = _batches(looked, self._batch_size)
        self._samples += [one for batch in batches for one in self._measured(batch)]

    def merge(self, other: StructureDistance) -> None:
        """Adds the samples of another accumulator after its own.

        Args:
            other: Stays as it is.

        Raises:
            MissingExtraError: Nothing was added yet, and torch or transformers is not installed.
            ScoreError: Something that decides numbers differs, such as the model's revision.
        """
        here, there = self._definition(), other._definition()
        for name in here:
            if here[name] != there[name]:
                raise ScoreError(
                    f"{name} is {there[name]!r} there and {here[name]!r} here: expected the same, "
                    "since it decides the numbers"
                )
        self._samples += other._samples

    def compute(self, *, n_boot: int = 1000, seed: int = 0) -> StructureDistanceResult:
        """The structure distance of all samples that were added.

        Args:
            n_boot: Draws of the bootstrap over samples; 0 for none.
            seed: Of the draws.

        Returns:
            The result, with the samples in the order in which they came.

        Raises:
            MissingExtraError: Nothing was added yet, and torch or transformers is not installed.
            ScoreError: `n_boot` is no number of draws.
        """
        definition = {**self._definition(), "interval": definition_of(n_boot, seed)}
        rule = partial(reduced, protocol=self._protocol, reduction=self._reduction)
        return result_of(self._samples, rule, definition, n_boot=n_boot, seed=seed)

    def _measured(self, batch: Sequence[SampleFeatures[Squashed]]) -> list[SampleFeatures[float]]:
        whole = [one for one in batch if one.unmeasured is None]
        found = self._similarities.of(
            (image for one in whole for image in one.inputs),
            (one.output for one in whole if one.output is not None),
        )
        return [distanced(one, found) for one in batch]

    def _definition(self) -> dict[str, Any]:
        vit = self._similarities.definition
        rule = RULES[self._protocol]
        return {
            "metric": "structure_distance",
            "protocol": self._protocol,
            **rule._replace(reduction=self._reduction)._asdict(),
            "value": "mean over samples of the mean squared difference of the cosine "
            "self-similarities of keys",
            "direction": "lower is better",
            **vit,
            "resampling": RESAMPLING.name.lower(),
            "normalised": {"mean": list(MEAN), "spread": list(SPREAD)},
            "blank_within": FLAT_LEVELS,
            "versions": {**versions_of("echo-hf", "numpy"), **vit["versions"], **decoders()},
        }


def structure_distance(
    inputs: Iterable[Any],
    outputs: Iterable[Any],
    *,
    protocol: Protocol = "corrected",
    model: str = MODEL,
    revision: str | None = None,
    layer: int = LAYER,
    size: int = SIZE,
    reduction: Reduction | None = None,
    batch_size: int = BATCH_SIZE,
    device: str | None = None,
    n_boot: int = 1000,
    seed: int = 0,
    threads: int | None = None,
    cache: SimilarityCache | None = None,
) -> StructureDistanceResult:
    """How far the layout of a system's outputs is from that of its inputs (ECHO section 5.2).

    A ViT makes a key of every place of an image; the cosines of every two keys say which places
    look alike, and hence where things are, whatever their colors. The distance of two images is
    the mean squared difference of these cosines, the structure distance is its mean over samples,
    and lower is better. Images are squashed to a square first, so that a changed aspect is not
    seen as such.

    `published`: as the released code computes it, with images converted to RGB and no more, the
    largest distance where a sample has several inputs, and without samples whose distance is 0,
    which it takes for missing outputs. `corrected`: with images loaded by `echo_hf.load_rgb`,
    and the smallest distance, since an output need keep the layout of one of its inputs only.

    Args:
        inputs: For each sample an image, a list of images, or null: images of Pillow's,
            paths, bytes of files, or dicts with `bytes` or `path`; a list, or a column of a
            Dataset.
        outputs: For each sample an image in one of these forms, or null when there is none.
        protocol: `corrected` or `published`.
        model: A ViT: its name on the Hub, or its folder. Its weights are fetched from the Hub at
            first use, and are in its client's cache from then on. No code that comes with it is
            run.
        revision: Branch, tag or commit on the Hub; null for the main branch, which may move. To
            pin the weights, give the commit that the result states as
            `definition["revision"]`.
        layer: Number of the block whose keys are compared, the first being 0.
        size: Pixels a side of the square, a multiple of the side of the model's patches. For
            another than the model's own, its positions are interpolated, as `definition` states;
            numbers of different sizes are on different scales.
        reduction: Which of the distances from several inputs counts: `min`, `max` or `mean`; null
            for that of the protocol.
        batch_size: How many images the ViT is given at once, at most.
        device: Where it runs, as torch names it; null for a GPU when there is one. The result
            states which.
        n_boot: Draws of the bootstrap over samples; 0 for none.
        seed: Of the draws.
        threads: How many threads load images; as many as there are processors when null.
        cache: Keeps the ViT and what it sees in inputs for the next call, so that several systems
            cost one loading and a look at each input; nothing is kept when null.

    Returns:
        `value` and `interval` from 0 to 4. A sample without an output, with an image that cannot
        be decoded or is of one color, or with an output that another task has, too, has no number
        but a reason.

    Raises:
        MissingExtraError: torch or transformers is not installed.
        ScoreError: The two differ in length, an element is no image, a choice is none of those
            there are, or the model is none, is no ViT, or does not have such a block or size.

    Examples:
        The distance of two tables of cosines, as the result has one for each sample:

        >>> import numpy as np
        >>> from echo_hf.metrics.structure_distance import squared_difference
        >>> squared_difference(np.eye(2, dtype=np.float32), np.ones((2, 2), np.float32))
        0.5

        Several systems with the same inputs:

        >>> cache = SimilarityCache()
        >>> values = {
        ...     name: structure_distance(inputs, outputs, cache=cache).value
        ...     for name, outputs in systems.items()
        ... }  # doctest: +SKIP
    """
    measured = StructureDistance(
        protocol=protocol,
        model=model,
        revision=revision,
        layer=layer,
        size=size,
        reduction=reduction,
        batch_size=batch_size,
        device=device,
        threads=threads,
        cache=cache,
    )
    measured.add(inputs, outputs)
    return measured.compute(n_boot=n_boot, seed=seed)


def _batches(
    samples: Iterator[SampleFeatures[Squashed]], batch_size: int
) -> Iterator[list[SampleFeatures[Squashed]]]:
    while batch := list(islice(samples, batch_size)):
        yield batch
