"""A system that asks for images as one asks OpenAI, and what it may be answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from echo_hf.config.systems import SystemConfig
from echo_hf.engines.base import ImageRef
from echo_hf.systems.base import GenerationResult, System
from tests.engines.openai.loopback_server import Answer
from tests.systems.drawing_for_tests import task

Make = Callable[..., System]
PRICE = {"text_in": 5, "image_in": 8, "text_out": 10, "image_out": 30, "as_of": "2026-11-21"}
USAGE = {
    "input_tokens": 1100,
    "output_tokens": 4000,
    "total_tokens": 5100,
    "input_tokens_details": {"text_tokens": 100, "image_tokens": 1000},
}
HTML = Answer(b"<!doctype html><title>Sign in</title>", headers={"Content-Type": "text/html"})


def config(parameters: dict[str, Any], **further: Any) -> SystemConfig:
    """A system of this adapter."""
    usual = {
        "name": "tiny",
        "adapter": "openai_images",
        "model": "tiny-image",
        "developer": "Northlight",
        "status": "current",
    }
    return SystemConfig.model_validate({**usual, **further, "parameters": parameters})


def drawn_by(system: System, *inputs: ImageRef) -> GenerationResult:
    """What becomes of a task with these inputs."""
    with system:
        return system.draw(task(*inputs))
