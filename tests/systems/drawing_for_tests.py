"""Images, tasks, configs and answers of servers for tests of systems."""

from __future__ import annotations

import base64
import hashlib
import io
from dataclasses import dataclass
from email import message_from_bytes
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from echo_hf.config.systems import SystemConfig
from echo_hf.engines.base import ImageRef
from echo_hf.systems.base import GenerationResult, System, Task
from tests.engines.openai.loopback_server import Answer, Asked
from tests.images_for_tests import encoded, noise, png_chunk

KEY = "sk-test-0123456789abcdefghij-ABCDEFGHIJ"
IMAGE = encoded(noise((40, 24)), "PNG")
# It claims 12000 x 12000 pixels and holds none.
HUGE = (
    b"\x89PNG\r\n\x1a\n"
    + png_chunk(b"IHDR", bytes.fromhex("00002ee000002ee0") + b"\x08\x02\x00\x00\x00")
    + png_chunk(b"IDAT", b"")
    + png_chunk(b"IEND", b"")
)


@dataclass(frozen=True)
class Field:
    name: str
    file_name: str | None
    mime_type: str
    data: bytes


def kept(folder: Path, data: bytes) -> ImageRef:
    digest = hashlib.sha256(data).hexdigest()
    file = folder / digest
    file.write_bytes(data)
    return ImageRef(digest, file)


def blocks(size: tuple[int, int], seed: int) -> Image.Image:
    colors = np.random.default_rng(seed).integers(0, 256, (4, 4, 3), dtype=np.uint8)
    return Image.fromarray(colors).resize(size, Image.Resampling.NEAREST)


def image_file(folder: Path, image: Image.Image) -> ImageRef:
    return kept(folder, encoded(image, "PNG"))


def levels(data: bytes | None) -> np.ndarray[Any, np.dtype[np.uint8]]:
    assert data is not None
    return np.asarray(Image.open(io.BytesIO(data)))


def task(*inputs: ImageRef, prompt: str = "a fox in the snow") -> Task:
    return Task("s1", "d" * 64, "image_to_image", prompt, inputs)


def base64_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def image_answer(data: bytes = IMAGE, **further: Any) -> Answer:
    entry = {"b64_json": base64_of(data), **further.pop("entry", {})}
    headers = further.pop("headers", {})
    return Answer({"created": 1, "data": [entry], **further}, headers=headers)


def google_image(data: bytes = IMAGE) -> dict[str, Any]:
    return {"inlineData": {"data": base64_of(data), "mimeType": "image/png"}}


def google_answer(*parts: dict[str, Any], reason: str = "STOP", **further: Any) -> Answer:
    content = {"parts": list(parts), "role": "model"}
    return Answer({"candidates": [{"content": content, "finishReason": reason}], **further})


def form(asked: Asked) -> list[Field]:
    head = f"Content-Type: {asked.headers['content-type']}\r\n\r\n".encode()
    message = message_from_bytes(head + asked.data)
    parts: Any = message.get_payload()
    return [
        Field(
            part.get_param("name", header="content-disposition"),
            part.get_filename(),
            part.get_content_type(),
            part.get_payload(decode=True),
        )
        for part in parts
    ]


HTML = Answer(b"<!doctype html><title>Sign in</title>", headers={"Content-Type": "text/html"})
PRICE = {"text_in": 5, "image_in": 8, "text_out": 10, "image_out": 30, "as_of": "2026-11-21"}
USAGE = {
    "input_tokens": 1100,
    "output_tokens": 4000,
    "total_tokens": 5100,
    "input_tokens_details": {"text_tokens": 100, "image_tokens": 1000},
}


def config(adapter: str, parameters: dict[str, Any], **further: Any) -> SystemConfig:
    given = {
        "name": "tiny",
        "adapter": adapter,
        "model": "tiny-image",
        "developer": "Northlight",
        "status": "current",
        **further,
    }
    return SystemConfig.model_validate({**given, "parameters": parameters})


def drawn_by(system: System, *inputs: ImageRef) -> GenerationResult:
    with system:
        return system.draw(task(*inputs))
