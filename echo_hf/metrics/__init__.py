"""The specialised metrics (ECHO section 5.2), each a function from images to numbers.

To add one: a module here and a line in `names.py`; `image_metrics` in `judging/score.py` gives it
samples; a column of `APPLICABILITY` in `tables.py` and `prompts/judging/measure_NAME.md` say which
samples it fits; `cards/NAME.md` and `CONFIGS` in `hub/evaluate_metric.py` make it loadable by
`evaluate`.
"""

from echo_hf.metrics.color_shift import ColorShift, ColorShiftResult, color_shift
from echo_hf.metrics.face_identity import FaceCache, FaceIdentity, FaceIdentityResult, face_identity
from echo_hf.metrics.ocr_accuracy import OcrAccuracy, OcrAccuracyResult, ocr_accuracy
from echo_hf.metrics.result import Estimate, MetricResult, Unmeasured
from echo_hf.metrics.structure_distance import (
    SimilarityCache,
    StructureDistance,
    StructureDistanceResult,
    structure_distance,
)
from echo_hf.metrics.text_rendering import TextRenderingResult, text_rendering

__all__ = [
    "ColorShift",
    "ColorShiftResult",
    "Estimate",
    "FaceCache",
    "FaceIdentity",
    "FaceIdentityResult",
    "MetricResult",
    "OcrAccuracy",
    "OcrAccuracyResult",
    "SimilarityCache",
    "StructureDistance",
    "StructureDistanceResult",
    "TextRenderingResult",
    "Unmeasured",
    "color_shift",
    "face_identity",
    "ocr_accuracy",
    "structure_distance",
    "text_rendering",
]
