"""Find faces in pictures and say what they look like, with insightface."""

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

from echo_hf.errors import ScoreError, unknown
from echo_hf.metrics.extras import check_extra, said
from echo_hf.metrics.face_match import Faces
from echo_hf.metrics.face_pack import FacePack, find_pack
from echo_hf.pillow_guard import decoding

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
        det_size: Pixels a side of what the detector sees; the picture is fitted into it.
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
    """A detector and a recognizer, ready to run; threads that share them take turns.

    Attributes:
        definition: What of them and of their surroundings decides what is found.
        key: The same as one string.

    Args:
        options: Which networks, and how they look.

    Raises:
        MissingExtraError: insightface or onnxruntime is not installed.
        ScoreError: There is no such pack, it lacks one of the networks, or they do not run.
    """

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
                f"pack {pack.name!r} cannot be used ({said(error)}): expected a detector and a "
                "recognizer of faces, in ONNX files that insightface 2 can run"
            ) from error
        self.key = json.dumps(self.definition, sort_keys=True)
        self._turn = Lock()

    def faces(self, levels: NDArray[np.uint8]) -> Faces:
        """Finds the faces of a picture.

        Args:
            levels: Array [row, column, channel]; blue, green, red is what the networks expect.

        Returns:
            Its faces. Where the networks fail, as they do on a picture of 3 x 2000 pixels, there
            are none, and `failed` says so: one odd picture costs no other its number.
        """
        try:
            with self._turn:
                found = _quietly(self._app.get, levels)
        except MemoryError:
            raise  # says nothing about the picture
        except Exception as error:  # OpenCV, numpy and onnxruntime raise errors of their own
            return _faces([], said(error))
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
    """Runs the networks without the warning that aligning a face gives for each.

    insightface calls a function that scikit-image is about to rename. Filters belong to the whole
    process, and other threads decode at the same time: so this goes through what they all share.
    """
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
