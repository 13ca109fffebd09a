"""Tasks with images of their own, and configs of systems."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from echo_hf.config.systems import SystemConfig
from echo_hf.engines.base import ImageRef
from echo_hf.systems.base import Task


def blocks(size: tuple[int, int], seed: int) -> Image.Image:
    rng = np.random.default_rng(seed)
    levels = rng.integers(0, 256, (4, 4, 3), dtype=np.uint8)
    return Image.fromarray(levels).resize(size, Image.Resampling.NEAREST)


def image_file(folder: Path, image: Image.Image) -> ImageRef:
    file = io.BytesIO()
    image.save(file, "PNG")
    digest = hashlib.sha256(file.getvalue()).hexdigest()
    path = folder / f"{digest}.png"
    path.write_bytes(file.getvalue())
    return ImageRef(digest, path)


def task(*inputs: ImageRef, prompt: str = "make the sky violet") -> Task:
    return Task("s-1", "0" * 64, "image_to_image", prompt, inputs)


def config(adapter: str, model: str | Path | None, **more: Any) -> SystemConfig:
    name = None if model is None else str(model)
    return SystemConfig(
        name="tiny", adapter=adapter, model=name, developer="Northlight", status="current", **more
    )


def levels(data: bytes | None) -> np.ndarray[Any, np.dtype[np.uint8]]:
    assert data is not None
    return np.asarray(Image.open(io.BytesIO(data)))
