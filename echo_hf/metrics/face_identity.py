"""Face identity: whether a face of a system's input is still that person's in its output."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from xxhash import xxh3_128

from echo_hf.errors import ScoreError
from echo_hf.metrics.face_reader import (
    AURAFACE,
    FaceCache,
    FaceMatch,
    FaceOptions,
    FaceReader,
    Faces,
    best_match,
)
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
from echo_hf.reasons import MetricReason

Found = FaceMatch | Unmeasured
# The shortest and the longest side of an image that the released code takes, in pixels.
PUBLISHED_SIDES = (10, 10_000)


class FaceRule(NamedTuple):
    """What the protocols differ in, in words."""

    loader: str
    channels: str
    inputs: str
    value: str


RULES: Mapping[Protocol, FaceRule] = {
    "published": FaceRule(
        "plain conversion to RGB",
        "red, green, blue",
        "samples with one",
        "mean over samples of the best cosine, of those above 0",
    ),
    "corrected": FaceRule(
        "echo_hf.load_rgb",
        "blue, green, red",
        "all",
        "mean over samples of the best cosine",
    ),
}


class Levels(NamedTuple):
    """An image as it is fed to the networks."""

    levels: NDArray[np.uint8]
    digest: bytes


def levels_of(image: Image.Image, protocol: Protocol) -> Levels:
    """An image's levels in the order of channels of the protocol."""
    levels = np.asarray(image)
    fed = np.ascontiguousarray(levels if protocol == "published" else levels[..., ::-1])
    return Levels(fed, xxh3_128(f"{fed.shape}".encode() + fed.tobytes()).digest())


def compared(
    sample: SampleFeatures[Levels], reader: FaceReader, cache: FaceCache, protocol: Protocol
) -> SampleFeatures[Found]:
    """Finds the faces of a sample, and the two that are most alike."""
    if sample.output is None or sample.unmeasured:
        return sample.measured(None)
    dropped = _dropped(sample) if protocol == "published" else None
    if dropped:
        return sample.measured(dropped)
    inputs = [_kept_faces(one, reader, cache) for one in sample.inputs]
    return sample.measured(best_match(inputs, reader.faces(sample.output.levels)))


def score_of(match: Found, protocol: Protocol) -> float | Unmeasured:
    """The number of a sample."""
    if isinstance(match, Unmeasured):
        return match
    if protocol == "published" and match.cosine <= 0:
        return Unmeasured(MetricReason.NOT_ABOVE_ZERO, detail=f"cosine {match.cosine:.4f}")
    return match.cosine


def _dropped(sample: SampleFeatures[Levels]) -> Unmeasured | None:
    """Why the released code makes no number of a sample that has all its images."""
    if len(sample.inputs) > 1:
        return Unmeasured(MetricReason.SEVERAL_INPUTS, detail=f"{len(sample.inputs)} inputs")
    return _outside(one.levels.shape[:2] for one in (*sample.inputs, sample.output) if one)


def _outside(shapes: Iterable[tuple[int, ...]]) -> Unmeasured | None:
    least, most = PUBLISHED_SIDES
    for height, width in shapes:
        if min(height, width) < least or max(height, width) > most:
            detail = f"{width} x {height} pixels, expected {least} to {most} a side"
            return Unmeasured(MetricReason.SIZE_NOT_TAKEN, detail=detail)
    return None


def _kept_faces(image: Levels, reader: FaceReader, cache: FaceCache) -> Faces:
    key = (reader.key, image.digest)
    faces = cache.find(key)
    if faces is None:
        faces = reader.faces(image.levels)
        cache.keep(key, faces)
    return faces


@dataclass(frozen=True, kw_only=True)
class FaceIdentityResult(MetricResult):
    """The face identity of one system.

    A face that an output lost lowers `coverage`, not `value`: the count of `no_face_in_output`
    belongs beside the number.

    Attributes:
        matches: For each sample the two faces that are most alike, also where the protocol drops
            their cosine; null where there are no two.
    """

    matches: tuple[FaceMatch | None, ...]


def result_of(
    samples: Sequence[SampleFeatures[Found]],
    rule: Callable[[Found], float | Unmeasured],
    definition: Mapping[str, Any],
    *,
    n_boot: int,
    seed: int,
) -> FaceIdentityResult:
    """The face identity of samples whose faces were compared."""
    found: list[Found] = [
        reason or sample.output or Unmeasured(MetricReason.MISSING_OUTPUT)
        for sample, reason in zip(samples, reasons_of(samples), strict=True)
    ]
    scores = [rule(one) for one in found]
    values = [None if isinstance(one, Unmeasured) else one for one in scores]
    estimate = mean_of(values, n_boot=n_boot, seed=seed)
    n = sum(value is not None for value in values)
    return FaceIdentityResult(
        value=estimate.value,
        per_sample=estimate.per_sample,
        interval=estimate.interval,
        n=n,
        coverage=coverage_of(n, len(values)),
        reasons=tuple(one if isinstance(one, Unmeasured) else None for one in scores),
        notices=notices_of(samples),
        definition=definition,
        matches=tuple(one if isinstance(one, FaceMatch) else None for one in found),
    )


class FaceIdentity:
    """The face identity of images that come in batches, or are compared in several processes.

    Of each sample two boxes and a cosine are kept; embeddings, by which people can be recognized,
    are not, except in the cache of inputs. Images are decoded in several threads; the networks
    run in the thread that adds, one image at a time, and use all processors by themselves.

    Args:
        protocol: As for `face_identity`, and so are all that follow.
        pack: As there.
        revision: As there.
        det_size: As there.
        det_thresh: As there.
        providers: As there.
        cache: As there.
        threads: As there.

    Raises:
        ScoreError: There is no such protocol, or a number is none of those that are possible.
    """

    def __init__(
        self,
        *,
        protocol: Protocol = "corrected",
        pack: str | os.PathLike[str] = AURAFACE,
        revision: str | None = None,
        det_size: int = 640,
        det_thresh: float = 0.5,
        providers: Sequence[str] | None = None,
        cache: FaceCache | None = None,
        threads: int | None = None,
    ) -> None:
        check_protocol(protocol)
        self._protocol: Protocol = protocol
        chosen = None if providers is None else tuple(providers)
        self._options = FaceOptions(os.fspath(pack), revision, det_size, det_thresh, chosen)
        self._cache = FaceCache() if cache is None else cache
        self._threads = threads
        self._reader: FaceReader | None = None
        self._networks: Mapping[str, Any] | None = None
        self._samples: list[SampleFeatures[Found]] = []

    def __len__(self) -> int:
        return len(self._samples)

    def __getstate__(self) -> dict[str, Any]:
        """Without networks: a process that only merges needs none."""
        return {**vars(self), "_reader": None}

    def add(self, inputs: Iterable[Any], outputs: Iterable[Any]) -> None:
        """Compares the faces of some more samples.

        Args:
            inputs: For each sample an image or a list of images, as for `face_identity`.
            outputs: For each sample an image, or null.

        Raises:
            MissingExtraError: insightface or onnxruntime is not installed.
            ScoreError: There is no such pack or it cannot be used, the two differ in length, or
                an element is no image; none of the samples is added then.
        """
        samples = samples_of(inputs, outputs)
        reader = self._loaded()
        look = partial(levels_of, protocol=self._protocol)
        looked = seen(samples, look, load=LOADERS[self._protocol], threads=self._threads)
        self._samples += [compared(one, reader, self._cache, self._protocol) for one in looked]

    def merge(self, other: FaceIdentity) -> None:
        """Adds the samples of another accumulator after its own.

        Args:
            other: Stays as it is.

        Raises:
            ScoreError: It follows the other protocol, or looked for faces in another way.
        """
        if other._protocol != self._protocol:
            raise ScoreError(
                f"protocol is {other._protocol!r} there and {self._protocol!r} here: expected the "
                "same, since faces are looked for in another way"
            )
        ours, theirs = self._networks, other._networks
        if ours and theirs and ours != theirs:
            differ = ", ".join(repr(key) for key in ours if ours[key] != theirs[key])
            raise ScoreError(f"{differ} differ there and here: expected the same networks")
        self._networks = ours or theirs
        self._samples += other._samples

    def compute(self, *, n_boot: int = 1000, seed: int = 0) -> FaceIdentityResult:
        """The face identity of all samples that were added.

        Args:
            n_boot: Draws of the bootstrap over samples; 0 for none.
            seed: Of the draws.

        Returns:
            The result, with the samples in the order in which they came; the numbers of the whole
            do not depend on it, nor on batches and parts.

        Raises:
            MissingExtraError: Nothing was added yet, and insightface is not installed.
            ScoreError: `n_boot` is no number of draws; or nothing was added, and there is no such
                pack.
        """
        return result_of(
            self._samples,
            partial(score_of, protocol=self._protocol),
            self._definition(n_boot, seed),
            n_boot=n_boot,
            seed=seed,
        )

    def _loaded(self) -> FaceReader:
        """The networks, at their first use."""
        if self._reader is None:
            options = self._options
            reader = self._cache.networks.get(options, lambda: FaceReader(options))
            if self._networks is not None and self._networks != reader.definition:
                raise ScoreError(
                    f"pack {reader.definition['pack']!r} is another than the samples that are "
                    "here were measured with: expected the same networks"
                )
            self._reader, self._networks = reader, reader.definition
        return self._reader

    def _definition(self, n_boot: int, seed: int) -> dict[str, Any]:
        networks = dict(self._networks or self._loaded().definition)
        versions = {**versions_of("echo-hf", "numpy"), **networks.pop("versions"), **decoders()}
        return {
            "metric": "face_identity",
            "protocol": self._protocol,
            **RULES[self._protocol]._asdict(),
            "direction": "higher is better",
            **networks,
            "blank_within": FLAT_LEVELS,
            "interval": definition_of(n_boot, seed),
            "versions": versions,
        }


def face_identity(
    inputs: Iterable[Any],
    outputs: Iterable[Any],
    *,
    protocol: Protocol = "corrected",
    pack: str | os.PathLike[str] = AURAFACE,
    revision: str | None = None,
    det_size: int = 640,
    det_thresh: float = 0.5,
    providers: Sequence[str] | None = None,
    cache: FaceCache | None = None,
    n_boot: int = 1000,
    seed: int = 0,
    threads: int | None = None,
) -> FaceIdentityResult:
    """How much the faces in a system's outputs are those of its inputs (ECHO section 5.2).

    One network finds faces, another makes an embedding of each; a sample's number is the highest
    cosine of a face in any input and a face in the output. Higher is better. `published`: as the
    released code computes it, with red and blue swapped on the way into the networks; samples of
    several inputs, and those whose cosine is not above 0, are dropped from the mean; sheets of
    one color and placeholders are left out here, too. `corrected`: images loaded by
    `echo_hf.load_rgb`, channels in the order in which the networks were trained, all inputs, and
    cosines as they are.

    Args:
        inputs: For each sample an image, a list of images, or null: images of Pillow's,
            paths, bytes of files, or dicts with `bytes` or `path`; a list, or a column of a
            Dataset.
        outputs: For each sample an image in one of these forms, or null when there is none.
        protocol: `corrected` or `published`.
        pack: The networks: a folder of ONNX files, or a name on the Hub, of which the two files
            of AuraFace (278 MB) are fetched at first use, and are in its client's cache from then
            on.
        revision: Branch, tag or commit of a pack on the Hub; null for the main branch, which may
            move. To pin the weights, give the commit that the result states as
            `definition["commit"]`.
        det_size: Pixels a side of what the detector sees; images are fitted into it.
        det_thresh: The score from which on something is a face.
        providers: Where the networks run, as onnxruntime names it; null for CUDA where
            onnxruntime has it, and else the processor.
        cache: Give the same to every system that was given the same inputs: the networks are then
            loaded once, and look at each input once.
        n_boot: Draws of the bootstrap over samples; 0 for none.
        seed: Of the draws.
        threads: How many threads decode; as many as there are processors when null.

    Returns:
        `value` and `interval` from -1 to 1. A sample without an output or a face on either side,
        with an image that cannot be decoded or is of one color, or with an output that another
        task has, too, has no number but a reason.

    Raises:
        MissingExtraError: insightface or onnxruntime is not installed.
        ScoreError: There is no such pack or it cannot be used, the two differ in length, an
            element is no image, or a choice is none of those there are.

    Examples:
        The cosine of two faces that were found, as the result has one for each sample:

        >>> import numpy as np
        >>> from echo_hf.metrics.face_reader import Faces, best_match
        >>> box = np.zeros((1, 4), np.float32)
        >>> before, after = (
        ...     Faces(box, np.array([embedding], np.float32)) for embedding in ([3, 4], [1, 0])
        ... )
        >>> round(best_match([before], after).cosine, 3)
        0.6
    """
    measured = FaceIdentity(
        protocol=protocol,
        pack=pack,
        revision=revision,
        det_size=det_size,
        det_thresh=det_thresh,
        providers=providers,
        cache=cache,
        threads=threads,
    )
    measured.add(inputs, outputs)
    return measured.compute(n_boot=n_boot, seed=seed)
