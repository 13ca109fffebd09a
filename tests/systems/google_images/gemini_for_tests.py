"""Answers of the Gemini API, and the config of a system that gets them."""

from __future__ import annotations

from typing import Any

from echo_hf.config.systems import SystemConfig
from tests.engines.openai.loopback_server import Answer
from tests.systems.drawing_for_tests import IMAGE, base64_of


def config(parameters: dict[str, Any], **further: Any) -> SystemConfig:
    """A system of this adapter."""
    usual = {
        "name": "tiny",
        "adapter": "google",
        "model": "tiny-image",
        "developer": "Northlight",
        "status": "current",
    }
    return SystemConfig.model_validate({**usual, **further, "parameters": parameters})


def image(data: bytes = IMAGE) -> dict[str, Any]:
    """A part with an image."""
    return {"inlineData": {"data": base64_of(data), "mimeType": "image/png"}}


def candidate(*parts: dict[str, Any], reason: str = "STOP") -> dict[str, Any]:
    """What the model says."""
    return {"content": {"parts": list(parts), "role": "model"}, "finishReason": reason}


def answer(*candidates: dict[str, Any], **further: Any) -> Answer:
    """A success."""
    return Answer({"candidates": list(candidates), **further})


def fault(status: int, message: str, code: str, **further: Any) -> Answer:
    """An error as Google writes it; `headers` may be given."""
    headers = further.pop("headers", {})
    error = {"code": status, "message": message, "status": code, **further}
    return Answer({"error": error}, status, headers)
