"""The specialised metrics (ECHO section 5.2), each a function from images to numbers.

To add one: a module and a line of `LISTED` here; `image_metrics` in `judging/score.py` gives it
samples; a column of `APPLICABILITY` in `tables.py` and `prompts/judging/measure_NAME.md` say which
samples it fits; `cards/NAME.md` and `CONFIGS` in `hub/evaluate_metric.py` make it loadable by
`evaluate`.
"""

from typing import NamedTuple

from echo_hf.metrics.color_shift import ColorShift, ColorShiftResult, color_shift
from echo_hf.metrics.face_identity import FaceIdentityResult, face_identity
from echo_hf.metrics.image_features import InputCache
from echo_hf.metrics.ocr_accuracy import OcrAccuracyResult, ocr_accuracy
from echo_hf.metrics.result import Estimate, MetricResult, Unmeasured
from echo_hf.metrics.structure_distance import StructureDistanceResult, structure_distance
from echo_hf.metrics.text_rendering import TextRenderingResult, text_rendering

__all__ = [
    "ColorShift",
    "ColorShiftResult",
    "Estimate",
    "FaceIdentityResult",
    "InputCache",
    "MetricResult",
    "OcrAccuracyResult",
    "StructureDistanceResult",
    "TextRenderingResult",
    "Unmeasured",
    "color_shift",
    "face_identity",
    "ocr_accuracy",
    "structure_distance",
    "text_rendering",
]

HIGHER, LOWER = "↑", "↓"  # is better
TEXT_RENDERING = "text_rendering"


class Named(NamedTuple):
    """A metric with its title and direction, in the order in which judges are asked about them."""

    name: str
    title: str
    better: str


LISTED = (
    Named("face_identity", "Face identity", HIGHER),
    Named("color_shift", "Color shift", LOWER),
    Named("structure_distance", "Structure distance", LOWER),
    Named(TEXT_RENDERING, "Text rendering", HIGHER),
)
METRICS = tuple(metric.name for metric in LISTED)
TITLES = {metric.name: metric.title for metric in LISTED}
BETTER = {metric.name: metric.better for metric in LISTED}
