"""ECHO's measures as a module of Hugging Face's `evaluate`; `echo_hf` computes them."""

import echo_hf.hub.evaluate_metric


class Echo(echo_hf.hub.evaluate_metric.EchoMetric):
    """The configs are those that `echo_hf.hub.evaluate_metric.list_configs` returns."""
