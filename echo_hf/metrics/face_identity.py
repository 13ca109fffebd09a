"""Face identity: whether a face in a system's output is still the person of its input."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import Field
from xxhash import xxh3_128

from echo_hf.config.checks import StrictInt, Words
from echo_hf.errors import ScoreError, WeightsError
from echo_hf.images.loader import decoding
from echo_hf.metrics.base import Metric, read_card, register
from echo_hf.metrics.image_features import (
    InputCache,
    SampleFeatures,
    check_protocol,
    common_fields,
    extract,
    pair_images,
    reasons_of,
)
from echo_hf.metrics.result import (
    MetricReason,
    MetricResult,
    Unmeasured,
    describe_error,
    make_mean_fields,
    module_versions,
)
from echo_hf.prompts import fill_prompt

if TYPE_CHECKING:  # the package of scores imports datasets
    from echo_hf.scores.votes import ProtocolName

AURAFACE = "fal/AuraFace-v1"
# What of a pack is needed: the other networks of AuraFace are half of its bytes.
FILES = ("glintr100.onnx", "scrfd_10g_bnkps.onnx")
TASKS = ("detection", "recognition")
CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"
MAX_STRIDE_PIXELS = 32
# The shortest and the longest side of an image that the released code takes, in pixels.
PUBLISHED_SIDES = (10, 10_000)
RULES: Mapping[ProtocolName, Mapping[str, str]] = {
    "published": {
        "loader": "plain conversion to RGB",
        "channels": "red, green, blue",
        "inputs": "samples with one",
        "value": "mean over samples of the best cosine, of those above 0",
    },
    "corrected": {
        "loader": "echo_hf.load_rgb",
        "channels": "blue, green, red",
        "inputs": "all",
        "value": "mean over samples of the best cosine",
    },
}
Box = tuple[float, ...]  # left, top, right, bottom


@dataclass(frozen=True, slots=True, eq=False)
class Faces:
    """The faces of one image, or why the networks failed."""

    boxes: NDArray[np.float32]
    embeddings: NDArray[np.float32]
    failed: str = ""

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays and, at four a letter, of the text."""
        return self.boxes.nbytes + self.embeddings.nbytes + 4 * len(self.failed)


@dataclass(frozen=True, slots=True)
class FaceMatch:
    """The two faces of a sample that are most alike."""

    cosine: float
    input: int
    input_box: Box
    output_box: Box
    input_faces: int
    output_faces: int


MatchOrReason = FaceMatch | Unmeasured


def best_match(inputs: Sequence[Faces], output: Faces) -> MatchOrReason:
    """Return the face in any input and the face in the output with the highest cosine."""
    names = [*(f"input {number}" for number in range(1, len(inputs) + 1)), "output"]
    for name, faces in zip(names, [*inputs, output], strict=True):
        why = faces.failed
        if not (np.isfinite(faces.boxes).all() and np.isfinite(faces.embeddings).all()):
            why = why or "a box or an embedding is not finite"
        if why:
            return Unmeasured(MetricReason.MODEL_FAILED, detail=f"{name}: {why}")
    owners = [(at, box) for at, faces in enumerate(inputs) for box in faces.boxes]
    if not owners:
        return Unmeasured(MetricReason.NO_FACE_IN_INPUT)
    if not len(output.boxes):
        return Unmeasured(MetricReason.NO_FACE_IN_OUTPUT)
    sources = np.concatenate([_units(faces.embeddings) for faces in inputs if len(faces.boxes)])
    cosines = sources @ _units(output.embeddings).T
    if np.isnan(cosines).all():
        return Unmeasured(MetricReason.ZERO_NORM)
    face, other = np.unravel_index(np.nanargmax(cosines), cosines.shape)
    owner, box = owners[face]
    return FaceMatch(
        cosine=float(np.clip(cosines[face, other], -1, 1)),
        input=owner,
        input_box=tuple(box.tolist()),
        output_box=tuple(output.boxes[other].tolist()),
        input_faces=len(owners),
        output_faces=len(output.boxes),
    )


def _units(embeddings: NDArray[np.float32]) -> NDArray[np.float64]:
    """Scale embeddings to length 1, NaN where one has no direction."""
    lengths = np.linalg.norm(embeddings.astype(np.float64), axis=1, keepdims=True)
    return np.where(lengths > 0, embeddings, np.nan) / np.where(lengths > 0, lengths, 1)


def find_pack(pack: str | os.PathLike[str], revision: str | None = None) -> tuple[Path, str | None]:
    """Return the folder of a pack and its commit; download missing files of one on the Hub."""
    from huggingface_hub import snapshot_download

    folder, name = Path(pack).expanduser(), os.fspath(pack)
    if folder.is_dir() and revision is not None:
        raise ScoreError(f"pack {name!r} is a folder, which has no revision: leave it out")
    if folder.is_dir():
        return folder.resolve(), None
    try:
        folder = Path(snapshot_download(name, revision=revision, allow_patterns=list(FILES)))
    except Exception as error:  # the Hub's client passes on what its own libraries raise
        raise WeightsError(
            f"no pack {name!r} at revision {revision or 'main'!r}: neither a folder, nor in the "
            f"cache, nor on the Hub ({describe_error(error)}): check the name, or go online once"
        ) from error
    return folder, folder.name


@dataclass(frozen=True, slots=True)
class FaceReaderOptions:
    """The networks and thresholds of `face_identity`."""

    pack: str | os.PathLike[str]
    revision: str | None
    det_size: int
    det_thresh: float
    providers: tuple[str, ...] | None

    def __post_init__(self) -> None:
        """Refuse options that no network can work with."""
        size, threshold, stride = self.det_size, self.det_thresh, MAX_STRIDE_PIXELS
        if not isinstance(size, int) or size < stride or size % stride:
            raise ScoreError(f"det_size is {size!r}: expected a multiple of {stride}, such as 640")
        if not isinstance(threshold, int | float) or not 0 < threshold <= 1:
            raise ScoreError(f"det_thresh is {threshold!r}: expected a number above 0, at most 1")


class FaceReader:
    """A detector and a recognizer of faces; threads that share them take turns."""

    def __init__(self, options: FaceReaderOptions) -> None:
        FaceIdentityMetric.check_installed()
        folder, commit = find_pack(options.pack, options.revision)
        name = folder.name if commit is None else os.fspath(options.pack)
        self._turn = Lock()
        try:
            self._app = _start_networks(folder, name, options)
            detector, recognizer = (self._app.models[task] for task in TASKS)
            self.definition: Mapping[str, Any] = {
                "pack": name,
                "commit": commit,
                "detector": _describe_file(detector.model_file),
                "recognizer": _describe_file(recognizer.model_file),
                "det_size": [options.det_size, options.det_size],
                "det_thresh": options.det_thresh,
                "nms_thresh": detector.nms_thresh,
                "providers": list(recognizer.session.get_providers()),
                "versions": module_versions("insightface", "onnxruntime", "cv2", "skimage"),
            }
        except ScoreError:
            raise
        except Exception as error:  # assertions, onnxruntime's own errors, a missing libGL
            raise ScoreError(
                f"pack {name!r} cannot be used ({describe_error(error)}): expected a detector and "
                "a recognizer of faces, in ONNX files that insightface 2 can run"
            ) from error
        self.key = json.dumps(self.definition, sort_keys=True)

    def find_faces(self, levels: NDArray[np.uint8]) -> Faces:
        detected, failed = [], ""
        try:
            with self._turn, decoding:  # without the warning that aligning a face gives for each
                detected = self._app.get(levels)
        except MemoryError:
            raise  # says nothing about the image
        except Exception as error:  # OpenCV, numpy and onnxruntime raise errors of their own
            failed = describe_error(error)
        boxes = np.array([face.bbox for face in detected], np.float32).reshape(len(detected), 4)
        embeddings = np.array([face.embedding for face in detected], np.float32)
        return Faces(boxes, embeddings.reshape(len(detected), -1 if detected else 0), failed)


def _start_networks(folder: Path, name: str, options: FaceReaderOptions) -> Any:
    import onnxruntime
    from insightface.app import FaceAnalysis

    requested, size = options.providers or (), options.det_size
    available = onnxruntime.get_available_providers()
    providers = list(requested) or [provider for provider in (CUDA, CPU) if provider in available]
    app = FaceAnalysis(name=str(folder), allowed_modules=list(TASKS), providers=providers)
    for task in TASKS:
        if task not in app.models:
            raise ValueError(f"no network for {task}")
        running = app.models[task].session.get_providers()
        # What onnxruntime has, it may still be unable to start, and then takes the processor.
        if requested and running[0] != requested[0]:
            raise ScoreError(
                f"provider {requested[0]!r} does not start, and {running[0]!r} took its place: "
                "check its driver and libraries, or leave `providers` out"
            )
    on_cpu = app.det_model.session.get_providers()[0] == CPU
    app.prepare(-1 if on_cpu else 0, det_thresh=options.det_thresh, det_size=(size, size))
    if (fixed := tuple(app.det_model.input_size)) != (size, size):
        raise ScoreError(f"det_size is {size!r}: expected {fixed[0]}, all that pack {name!r} takes")
    with decoding:
        app.get(np.zeros((size, size, 3), np.uint8))
    return app


def _describe_file(path: str) -> dict[str, str]:
    with Path(path).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"file": Path(path).name, "sha256": digest}


@dataclass(frozen=True, kw_only=True, repr=False)
class FaceIdentityResult(MetricResult):
    """The face identity of one system; a face that an output lost lowers `coverage` alone.

    Attributes:
        matches: For each sample the two faces that are most alike, also where the protocol drops
            their cosine; null where there are no two.
    """

    matches: tuple[FaceMatch | None, ...]


class PixelLevels(NamedTuple):
    """An image as the networks take it."""

    levels: NDArray[np.uint8]
    digest: bytes


def get_levels(image: Image.Image, protocol: ProtocolName) -> PixelLevels:
    """Return an image's levels in the order of channels of the protocol."""
    levels = np.asarray(image)
    ordered = np.ascontiguousarray(levels if protocol == "published" else levels[..., ::-1])
    return PixelLevels(ordered, xxh3_128(f"{ordered.shape}".encode() + ordered.tobytes()).digest())


def _explain_drop(sample: SampleFeatures[PixelLevels]) -> Unmeasured | None:
    """Return why the released code drops a sample that has all its images, or null."""
    if len(sample.inputs) > 1:
        return Unmeasured(MetricReason.SEVERAL_INPUTS, detail=f"{len(sample.inputs)} inputs")
    min_side, max_side = PUBLISHED_SIDES
    for image in filter(None, (*sample.inputs, sample.output)):
        height, width, _ = image.levels.shape
        if min(height, width) < min_side or max(height, width) > max_side:
            detail = f"{width} x {height} pixels, expected {min_side} to {max_side} a side"
            return Unmeasured(MetricReason.SIZE_NOT_TAKEN, detail=detail)
    return None


def _compare(
    sample: SampleFeatures[PixelLevels],
    reader: FaceReader,
    cache: InputCache,
    protocol: ProtocolName,
) -> MatchOrReason | None:
    if sample.output is None or sample.unmeasured:
        return None
    if protocol == "published" and (dropped := _explain_drop(sample)):
        return dropped
    inputs = []
    for image in sample.inputs:
        key = (reader.key, image.digest)
        inputs.append(cache.find(key) or reader.find_faces(image.levels))
        cache.keep(key, inputs[-1])
    return best_match(inputs, reader.find_faces(sample.output.levels))


def face_identity(
    inputs: Iterable[Any],
    outputs: Iterable[Any],
    *,
    protocol: ProtocolName = "corrected",
    pack: str | os.PathLike[str] = AURAFACE,
    revision: str | None = None,
    det_size: int = 640,
    det_thresh: float = 0.5,
    providers: Sequence[str] | None = None,
    cache: InputCache | None = None,
    n_boot: int = 1000,
    seed: int = 0,
    threads: int | None = None,
) -> FaceIdentityResult:
    """Measure how far faces in outputs are those of the inputs (ECHO section 5.2).

    A sample's number is the highest cosine of a face in any input and a face in the output.
    Higher is better. `published`: as the released code computes it, with red and blue swapped on
    the way into the networks, and without samples of several inputs and those whose cosine is not
    above 0; sheets of one color and placeholders are left out here, too. `corrected`: images
    loaded by `echo_hf.load_rgb`, channels as the networks were trained, all inputs, and cosines as
    they are.

    Args:
        inputs: As for `color_shift`.
        outputs: As for `color_shift`.
        protocol: `corrected` or `published`.
        pack: The networks: a folder of ONNX files, or a name on the Hub, of which two files
            (AuraFace: 278 MB) are fetched at first use.
        revision: Branch, tag or commit of a pack on the Hub; null for the main branch. The commit
            that was used is `definition["commit"]` of the result.
        det_size: Pixels a side of what the detector sees; images are fitted into it.
        det_thresh: The score from which on something is a face.
        providers: Where the networks run, as onnxruntime names it; null for CUDA where
            onnxruntime has it, and else the processor.
        cache: Keeps the networks and what they find in inputs for the next system.
        n_boot: Draws of the bootstrap over samples; 0 for none.
        seed: Of the draws.
        threads: How many threads decode; as many as there are processors when null.

    Returns:
        `value` and `interval` from -1 to 1; a sample without a number has a reason. Embeddings, by
        which people can be recognized, are kept in the cache alone.

    Raises:
        MissingExtraError: insightface or onnxruntime is not installed.
        ScoreError: As for `color_shift`, or there is no such pack or it cannot be used.

    Examples:
        The cosine of two faces that were found, as the result has one for each sample:

        >>> import numpy as np
        >>> from echo_hf.metrics.face_identity import Faces, best_match
        >>> box = np.zeros((1, 4), np.float32)
        >>> before, after = (
        ...     Faces(box, np.array([embedding], np.float32)) for embedding in ([3, 4], [1, 0])
        ... )
        >>> round(best_match([before], after).cosine, 3)
        0.6
    """
    check_protocol(protocol)
    pairs, store = pair_images(inputs, outputs), InputCache() if cache is None else cache
    chosen = None if providers is None else tuple(providers)
    options = FaceReaderOptions(os.fspath(pack), revision, det_size, det_thresh, chosen)
    reader = store.network(options, lambda: FaceReader(options))
    features = extract(
        pairs, partial(get_levels, protocol=protocol), protocol=protocol, threads=threads
    )
    samples = [sample.with_values(_compare(sample, reader, store, protocol)) for sample in features]
    matches, values = list[FaceMatch | None](), list[float | None]()
    reasons = list[Unmeasured | None]()
    for sample, reason in zip(samples, reasons_of(samples), strict=True):
        match_or_reason = reason or sample.output
        match = match_or_reason if isinstance(match_or_reason, FaceMatch) else None
        if match and match.cosine <= 0 and protocol == "published":
            detail = f"cosine {match.cosine:.4f}"
            match_or_reason = Unmeasured(MetricReason.NOT_ABOVE_ZERO, detail=detail)
        matches.append(match)
        values.append(match_or_reason.cosine if isinstance(match_or_reason, FaceMatch) else None)
        reasons.append(match_or_reason if isinstance(match_or_reason, Unmeasured) else None)
    definition = {
        "metric": "face_identity",
        "protocol": protocol,
        **RULES[protocol],
        "direction": "higher is better",
        **reader.definition,
    }
    fields = make_mean_fields(values, reasons, {}, n_boot=n_boot, seed=seed)
    fields |= common_fields(samples, definition, reader.definition, n_boot, seed)
    return FaceIdentityResult(**fields, matches=tuple(matches))


@register
class FaceIdentityMetric(Metric):
    """The face identity of the outputs of a run."""

    name, title = "face_identity", "Face identity"
    about = "how alike the faces in outputs and inputs are"
    splits = ("image_to_image",)
    question = fill_prompt("judging/measure_face_identity", {}).text
    paper_name = "Face Identity Preservation"
    extra, packages = "face", ("insightface", "onnxruntime")
    card = read_card(name)
    function, result = staticmethod(face_identity), FaceIdentityResult

    class Options(Metric.Options):
        """How face identity is measured.

        Attributes:
            pack: A pack of insightface's: name on the Hub, or a folder.
            revision: Branch, tag or commit of it.
            det_size: Sides in pixels of the square in which faces are looked for.
            det_thresh: Least score of a face, from 0 to 1.
        """

        folders = ("pack",)

        pack: Words = "fal/AuraFace-v1"
        revision: Words | None = None
        det_size: Annotated[StrictInt, Field(ge=32, multiple_of=32)] = 640
        det_thresh: Annotated[float, Field(gt=0, lt=1)] = 0.5
