"""ECHO's measures as a module of Hugging Face's `evaluate`; `echo_hf` computes them."""

import echo_hf.hub.evaluate_metric


class Echo(echo_hf.hub.evaluate_metric.EchoMetric):
    """A config each: win_rate, color_shift, face_identity, structure_distance, text_rendering."""
