"""Metrics: each a class that says all about itself, most over a function from images to numbers.

To add one: a module here with a subclass of `Metric`, and a card; from another package, the entry
points `echo_hf.metrics`. Nothing else changes, but its question to a model, if it has one.
"""

from echo_hf.metrics.base import Metric, measure_each, register, registered
from echo_hf.metrics.color_shift import ColorShift, ColorShiftResult, color_shift
from echo_hf.metrics.face_identity import FaceIdentityResult, face_identity
from echo_hf.metrics.image_features import InputCache
from echo_hf.metrics.ocr_accuracy import OcrAccuracyResult, ocr_accuracy
from echo_hf.metrics.result import Estimate, MetricReason, MetricResult, Unmeasured
from echo_hf.metrics.structure_distance import StructureDistanceResult, structure_distance
from echo_hf.metrics.text_rendering import TextRenderingResult, text_rendering

__all__ = [
    "ColorShift",
    "ColorShiftResult",
    "Estimate",
    "FaceIdentityResult",
    "InputCache",
    "Metric",
    "MetricReason",
    "MetricResult",
    "OcrAccuracyResult",
    "StructureDistanceResult",
    "TextRenderingResult",
    "Unmeasured",
    "color_shift",
    "face_identity",
    "measure_each",
    "ocr_accuracy",
    "register",
    "registered",
    "structure_distance",
    "text_rendering",
]
