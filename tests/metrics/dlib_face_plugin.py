"""Face distance: a metric as another package would add it, with networks that a package ships.

`pip install dlib-bin face-recognition-models`; then, in a config, `plugins: [dlib_face_plugin]` and
`metrics: {face_distance: {}}`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.util import find_spec
from itertools import chain, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import Field

from echo_hf.errors import WeightsError
from echo_hf.metrics import Metric, MetricReason, MetricResult, Unmeasured, register
from echo_hf.metrics.image_features import common_fields, extract, pair_images, reasons_of
from echo_hf.metrics.result import get_versions, make_mean_fields

SHIPPED_IN = "face_recognition_models"
# Beside these lies a network of 68 landmarks: its training pictures exclude commercial use.
LANDMARKS, RECOGNIZER = WEIGHTS = (
    "shape_predictor_5_face_landmarks.dat",
    "dlib_face_recognition_resnet_model_v1.dat",
)
SHA256 = {
    LANDMARKS: "c4b1e9804792707d3a405c2c16a80a20269e6675021f64a41d30fffafbc41888",
    RECOGNIZER: "55533b28a95800a551ba546ba62fe69625c7e95a7061c338adffead08719da30",
}
CARD = """# Face distance

How far a face in an output is from those in the inputs: the Euclidean distance of the embeddings
of dlib's ResNet, of the nearest pair. Lower is better; the network was trained to bring faces of
one person within 0.6 of each other. Faces that are turned away, hidden or below about 40 pixels
are not found. Children are mixed up more easily than adults, and how often people are differs
between ethnic groups. Half of its training pictures are FaceScrub's and VGG Face's; its author,
Davis King, has put the weights into the public domain. Embeddings are not kept.
"""
Embedding = NDArray[np.float64]


class Networks(NamedTuple):
    """A detector of faces, and the networks that place landmarks and tell people apart."""

    detector: Any
    landmarks: Any
    recognizer: Any


def check_weights(folder: Path) -> None:
    """Refuse files that are not those of Davis King's `dlib-models`."""
    for name in WEIGHTS:
        path = folder / name
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
        if digest != SHA256[name]:
            raise WeightsError(
                f"{name!r} of {SHIPPED_IN} has the SHA-256 {digest!r}: expected {SHA256[name]!r}; "
                "install face-recognition-models==0.3.0 again"
            )


@cache
def load_networks() -> Networks:
    """Load the networks, of which the detector is a part of dlib."""
    import dlib

    # The module is not imported, since it needs pkg_resources, which setuptools no longer has.
    (place,) = find_spec(SHIPPED_IN).submodule_search_locations  # type: ignore[union-attr, misc]
    folder = Path(place, "models")
    check_weights(folder)
    return Networks(
        dlib.get_frontal_face_detector(),
        dlib.shape_predictor(str(folder / LANDMARKS)),
        dlib.face_recognition_model_v1(str(folder / RECOGNIZER)),
    )


def compare_faces(inputs: Iterable[list[Embedding]], output: list[Embedding]) -> float | Unmeasured:
    """Return the distance of the nearest pair of faces."""
    if not (before := list(chain.from_iterable(inputs))):
        return Unmeasured(MetricReason.NO_FACE_IN_INPUT)
    if not output:
        return Unmeasured(MetricReason.NO_FACE_IN_OUTPUT)
    return min(float(np.linalg.norm(one - other)) for one, other in product(before, output))


@register
class FaceDistance(Metric):
    """How far the faces of outputs are from those of inputs."""

    name, title, better = "face_distance", "Face distance", "lower"
    about = "how far the nearest faces of output and inputs are apart"
    splits = ("image_to_image",)
    question = (
        "Face distance: whether a person stays the same. It fits where an input shows a face, and "
        "the prompt does not ask for another person."
    )
    extra, packages = "dlib-bin face-recognition-models", ("dlib", SHIPPED_IN)
    card = CARD

    class Options(Metric.Options):
        """How faces are found.

        Attributes:
            doublings: How often an image is doubled in size first: the detector needs 80 pixels.
            least_score: The score from which on the detector's finds are faces.
        """

        doublings: int = Field(1, ge=0, le=2)
        least_score: float = Field(0.5, ge=0)

    def measure(
        self,
        inputs: Iterable[Any],
        outputs: Iterable[Any],
        *,
        protocol: Any,
        options: Options,
        names: Sequence[str],
    ) -> MetricResult:
        del names  # images alone count
        networks = load_networks()

        def find_faces(image: Image.Image) -> list[Embedding]:
            pixels = np.asarray(image)
            boxes, *_ = networks.detector.run(pixels, options.doublings, options.least_score)
            shapes = [networks.landmarks(pixels, box) for box in boxes]
            describe = networks.recognizer.compute_face_descriptor
            return [np.asarray(describe(pixels, shape)) for shape in shapes]

        pairs = pair_images(inputs, outputs)
        samples = list(extract(pairs, find_faces, protocol=protocol, threads=1))
        numbers = [
            reason or compare_faces(sample.inputs, sample.output or [])
            for sample, reason in zip(samples, reasons_of(samples), strict=True)
        ]
        values = [None if isinstance(number, Unmeasured) else number for number in numbers]
        reasons = [number if isinstance(number, Unmeasured) else None for number in numbers]
        definition = {
            "metric": self.name,
            "protocol": protocol,
            "direction": "lower is better",
            "value": "mean over samples of the Euclidean distance of the nearest pair of faces",
            "weights": SHA256,
            **options.model_dump(),
        }
        networks_used = {"versions": get_versions("dlib-bin", "face-recognition-models")}
        fields = make_mean_fields(values, reasons, {}, n_boot=self.n_boot, seed=self.seed)
        shared = common_fields(samples, definition, networks_used, self.n_boot, self.seed)
        return MetricResult(**fields | shared)
