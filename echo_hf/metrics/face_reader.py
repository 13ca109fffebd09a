"""Find faces in images, say what they look like, and compare the faces of two sides."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echo_hf.engines.checkpoint import is_hub_name
from echo_hf.errors import ScoreError, WeightsError, unknown
from echo_hf.images.decode import decoding
from echo_hf.metrics.image_features import InputCache
from echo_hf.metrics.result import Unmeasured, check_extra, error_line
from echo_hf.reasons import MetricReason

Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Faces:
    """The faces of one image."""

    boxes: NDArray[np.float32]
    embeddings: NDArray[np.float32]
    failed: str = ""


@dataclass(frozen=True, slots=True)
class FaceMatch:
    """The two faces of a sample that are most alike."""

    cosine: float
    input: int
    input_box: Box
    output_box: Box
    input_faces: int
    output_faces: int


def best_match(inputs: Sequence[Faces], output: Faces) -> FaceMatch | Unmeasured:
    """The pair of a face in any input and a face in the output with the highest cosine."""
    unmeasured = _unmeasured(inputs, output)
    if unmeasured:
        return unmeasured
    shown = [(at, faces) for at, faces in enumerate(inputs) if len(faces.boxes)]
    before = np.concatenate([_directions(faces.embeddings) for _, faces in shown])
    cosines = before @ _directions(output.embeddings).T
    if np.isnan(cosines).all():
        return Unmeasured(MetricReason.ZERO_NORM)
    face, other = np.unravel_index(np.nanargmax(cosines), cosines.shape)
    owners = [(at, box) for at, faces in shown for box in faces.boxes]
    owner, box = owners[face]
    return FaceMatch(
        cosine=float(np.clip(cosines[face, other], -1, 1)),
        input=owner,
        input_box=_box(box),
        output_box=_box(output.boxes[other]),
        input_faces=len(before),
        output_faces=len(output.boxes),
    )


def _unmeasured(inputs: Sequence[Faces], output: Faces) -> Unmeasured | None:
    names = [f"input {number}" for number in range(1, len(inputs) + 1)]
    for name, faces in zip([*names, "output"], [*inputs, output], strict=True):
        if faces.failed:
            return Unmeasured(MetricReason.MODEL_FAILED, detail=f"{name}: {faces.failed}")
        if not (np.isfinite(faces.boxes).all() and np.isfinite(faces.embeddings).all()):
            detail = f"{name}: a box or an embedding is not finite"
            return Unmeasured(MetricReason.MODEL_FAILED, detail=detail)
    if not any(len(faces.boxes) for faces in inputs):
        return Unmeasured(MetricReason.NO_FACE_IN_INPUT)
    if not len(output.boxes):
        return Unmeasured(MetricReason.NO_FACE_IN_OUTPUT)
    return None


def _directions(embeddings: NDArray[np.float32]) -> NDArray[np.float64]:
    """Embeddings of length 1, NaN where one has no direction."""
    lengths = np.linalg.norm(embeddings.astype(np.float64), axis=1, keepdims=True)
    usable = lengths > 0
    return np.where(usable, embeddings, np.nan) / np.where(usable, lengths, 1)


def _box(corners: NDArray[np.float32]) -> Box:
    left, top, right, bottom = (float(corner) for corner in corners)
    return left, top, right, bottom


AURAFACE = "fal/AuraFace-v1"
# What of a pack is needed: the other networks of AuraFace are half of its bytes.
FILES = ("glintr100.onnx", "scrfd_10g_bnkps.onnx")


@dataclass(frozen=True, slots=True)
class FacePack:
    """A folder of networks that is there, and how it is called."""

    folder: Path
    name: str
    commit: str | None


def find_pack(pack: str | os.PathLike[str], revision: str | None = None) -> FacePack:
    """Finds the folder of a pack, and downloads what is missing of one on the Hub."""
    folder = Path(pack).expanduser()
    if not folder.is_dir():
        return _on_hub(os.fspath(pack), revision)
    if revision is not None:
        raise ScoreError(
            f"pack {os.fspath(pack)!r} is a folder, which has no revision {revision!r}: leave it "
            "out"
        )
    return FacePack(folder.resolve(), folder.resolve().name, None)


def _on_hub(pack: str, revision: str | None) -> FacePack:
    from huggingface_hub import snapshot_download

    if "/" not in pack or not is_hub_name(pack):
        raise ScoreError(
            f"pack {pack!r} is neither a folder nor a name on the Hub: expected a folder of ONNX "
            f"files, or a name such as {AURAFACE!r}"
        )
    try:
        found = Path(snapshot_download(pack, revision=revision, allow_patterns=list(FILES)))
    except Exception as error:  # the Hub's client passes on what its own libraries raise
        raise WeightsError(
            f"no pack {pack!r} at revision {revision or 'main'!r}: neither a folder, nor in the "
            f"cache, nor on the Hub ({error_line(error)}): check the name, or go online once"
        ) from error
    missing = [name for name in FILES if not (found / name).is_file()]
    if missing:
        raise WeightsError(
            f"pack {pack!r} at {found.name!r} lacks {', '.join(missing)}: expected a pack like "
            f"{AURAFACE!r}, or go online once if only a part of it is in the cache"
        )
    return FacePack(found, pack, found.name)


PACKAGES, EXTRA = ("insightface", "onnxruntime"), "face"
TASKS = ("detection", "recognition")
CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"
LARGEST_STRIDE = 32


@dataclass(frozen=True, slots=True)
class FaceOptions:
    """Which networks look for faces, and how.

    Attributes:
        pack: A folder, or a name on the Hub.
        revision: Branch, tag or commit on the Hub; null for the main branch.
        det_size: Pixels a side of what the detector sees; the image is fitted into it.
        det_thresh: The score from which on something is a face.
        providers: Where the networks run, as onnxruntime names it; null for CUDA where
            onnxruntime has it, and else the processor.

    Raises:
        ScoreError: A number is none of those that are possible.
    """

    pack: str | os.PathLike[str]
    revision: str | None
    det_size: int
    det_thresh: float
    providers: tuple[str, ...] | None

    def __post_init__(self) -> None:
        """Refuses what no network can work with."""
        size, threshold = self.det_size, self.det_thresh
        if not isinstance(size, int) or size < LARGEST_STRIDE or size % LARGEST_STRIDE:
            raise ScoreError(
                f"det_size is {size!r}: expected a multiple of {LARGEST_STRIDE}, such as 640"
            )
        if not isinstance(threshold, int | float) or not 0 < threshold <= 1:
            raise ScoreError(f"det_thresh is {threshold!r}: expected a number above 0, at most 1")


class FaceReader:
    """A detector and a recognizer, ready to run; threads that share them take turns."""

    def __init__(self, options: FaceOptions) -> None:
        check_extra("face_identity", EXTRA, PACKAGES)
        pack = find_pack(options.pack, options.revision)
        try:
            self._app = _loaded(pack, options)
            self.definition = _definition(self._app, pack, options)
        except ScoreError:
            raise
        except Exception as error:  # assertions, onnxruntime's own errors, a missing libGL
            raise ScoreError(
                f"pack {pack.name!r} cannot be used ({error_line(error)}): expected a detector "
                "and a "
                "recognizer of faces, in ONNX files that insightface 2 can run"
            ) from error
        self.key = json.dumps(self.definition, sort_keys=True)
        self._turn = Lock()

    def faces(self, levels: NDArray[np.uint8]) -> Faces:
        """Finds the faces of an image."""
        try:
            with self._turn:
                found = _quietly(self._app.get, levels)
        except MemoryError:
            raise  # says nothing about the image
        except Exception as error:  # OpenCV, numpy and onnxruntime raise errors of their own
            return _faces([], error_line(error))
        return _faces(found)


def _loaded(pack: FacePack, options: FaceOptions) -> Any:
    providers = _providers(options.providers)
    from insightface.app import FaceAnalysis

    app = FaceAnalysis(
        name=str(pack.folder), allowed_modules=list(TASKS), providers=list(providers)
    )
    missing = [task for task in TASKS if task not in app.models]
    if missing:
        raise ValueError(f"no network for {missing[0]}")
    size = options.det_size
    on_cpu = app.det_model.session.get_providers()[0] == CPU
    app.prepare(-1 if on_cpu else 0, det_thresh=options.det_thresh, det_size=(size, size))
    if tuple(app.det_model.input_size) != (size, size):
        raise ScoreError(
            f"det_size is {size!r}: expected {app.det_model.input_size[0]}, the only one that the "
            f"detector of pack {pack.name!r} takes"
        )
    _check_providers(app, options.providers)
    _quietly(app.get, np.zeros((size, size, 3), np.uint8))
    return app


def _providers(asked: Sequence[str] | None) -> Sequence[str]:
    import onnxruntime

    available = onnxruntime.get_available_providers()
    for name in asked or ():
        if name not in available:
            raise ScoreError(unknown("provider of onnxruntime", name, available))
    return asked or [name for name in (CUDA, CPU) if name in available]


def _check_providers(app: Any, asked: Sequence[str] | None) -> None:
    """What onnxruntime has, it may still be unable to start, and then takes the processor."""
    for task in TASKS:
        running = app.models[task].session.get_providers()
        if asked and running[0] != asked[0]:
            raise ScoreError(
                f"provider {asked[0]!r} does not start, and {running[0]!r} took its place: check "
                "its driver and libraries, or leave `providers` out"
            )


def _quietly(work: Any, levels: NDArray[np.uint8]) -> Any:
    """Runs the networks without the warning that aligning a face gives for each."""
    with decoding:
        return work(levels)


def _faces(found: Sequence[Any], failed: str = "") -> Faces:
    boxes = [np.asarray(face.bbox, np.float32) for face in found]
    embeddings = [np.asarray(face.embedding, np.float32) for face in found]
    return Faces(
        np.stack(boxes) if boxes else np.empty((0, 4), np.float32),
        np.stack(embeddings) if embeddings else np.empty((0, 0), np.float32),
        failed,
    )


def _definition(app: Any, pack: FacePack, options: FaceOptions) -> Mapping[str, Any]:
    detector, recognizer = (app.models[task] for task in TASKS)
    return {
        "pack": pack.name,
        "commit": pack.commit,
        "detector": _file(detector.model_file),
        "recognizer": _file(recognizer.model_file),
        "det_size": [options.det_size, options.det_size],
        "det_thresh": options.det_thresh,
        "nms_thresh": detector.nms_thresh,
        "providers": list(recognizer.session.get_providers()),
        "versions": _versions(),
    }


def _versions() -> dict[str, str]:
    """By module: several packages install onnxruntime, and several OpenCV."""
    names = ("insightface", "onnxruntime", "cv2", "skimage")
    return {name: str(import_module(name).__version__) for name in names}


def _file(path: str) -> dict[str, str]:
    with Path(path).open("rb") as file:
        return {
            "file": Path(path).name,
            "sha256": hashlib.file_digest(file, "sha256").hexdigest(),
        }


MOST_BYTES = 2**26


class FaceCache(InputCache[FaceReader, Faces]):
    """What was found in inputs, and the networks, so that all systems share both.

    Given to `face_identity` for one system after the other: the networks are loaded once, and look
    at each input once. An input is known by its pixels in the order in which they are fed, and by
    all that decides what is found in them. Boxes and embeddings are kept, 2 KB for each face, and
    no pixel. What no longer fits is looked at anew.

    Args:
        most_bytes: How much is kept of inputs at most; 64 MiB are some 24 000 images of one face.

    Raises:
        ScoreError: `most_bytes` is no number of bytes.

    Examples:
        >>> import numpy as np
        >>> cache = FaceCache(most_bytes=1000)
        >>> nobody = Faces(np.empty((0, 4), np.float32), np.empty((0, 512), np.float32))
        >>> for name in (b"first", b"second"):
        ...     cache.keep(("pack", name), nobody)
        >>> len(cache), cache.kept_bytes, cache.find(("pack", b"second")) is None
        (1, 640, True)
    """

    def __init__(self, *, most_bytes: int = MOST_BYTES) -> None:
        super().__init__(most_bytes=most_bytes)

    def _size(self, value: Faces) -> int:
        # A text of letters that are not Latin takes up to four bytes for each.
        return value.boxes.nbytes + value.embeddings.nbytes + 4 * len(value.failed)

    def _copied(self, value: Faces) -> Faces:
        return Faces(value.boxes.copy(), value.embeddings.copy(), value.failed)
