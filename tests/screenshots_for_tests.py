"""Invented samples whose images stand in a screenshot that is really there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from echo_hf.images.store import ImageStore
from tests.images_for_tests import encoded
from tests.samples_for_tests import Row, digest, image, post, sample

WIDTH, HEIGHT = 400, 800
PIXELS = np.random.default_rng(7).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
# In thousandths of the sides, and the same in pixels.
INPUT, OUTPUT = [500, 100, 900, 300], [50, 400, 950, 900]
INPUT_PIXELS, OUTPUT_PIXELS = (200, 80, 360, 240), (20, 320, 380, 720)


def png(pixels: Any) -> bytes:
    return encoded(Image.fromarray(pixels), "PNG")


def store_with(folder: Path, *images: bytes) -> tuple[ImageStore, list[str]]:
    store = ImageStore(folder / "pictures")
    return store, [store.put(one) for one in images]


def shot_sample(screenshot: str, text: str = "made with lumen", **values: Any) -> Row:
    context = [post(0, -1, text), post(1, 0, "so good", "o")]
    context[0]["pictures"] = [{**image(None, "a chat about a fox"), "sha256": screenshot}]
    plain = {"prompt": "a fox", "output_images": [], "screenshot": screenshot}
    return sample(context, [0, 1], [1], **{**plain, **values})


def answer(
    inputs: Any = (INPUT,), outputs: Any = (OUTPUT,), prompt: str | None = "paint a fox"
) -> dict[str, Any]:
    return {"prompt": prompt, "inputs": list(inputs), "outputs": list(outputs)}


OTHERS = [digest("o")]
