"""Images for tests of metrics, and a plain count of their levels to compare with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from echo_hf.metrics.image_features import Protocol
from tests.images_for_tests import encoded, rgb_profile

Levels = NDArray[np.uint8]
BOTH: tuple[Protocol, Protocol] = ("corrected", "published")


def noise(
    seed: int, low: int = 0, high: int = 256, size: tuple[int, int] = (12, 10)
) -> Image.Image:
    levels = np.random.default_rng(seed).integers(low, high, (*size, 3), dtype=np.uint8)
    return Image.fromarray(levels)


def trimmed_mean(images: list[Levels]) -> NDArray[np.float64]:
    pixels = np.concatenate([levels.reshape(-1, 3) for levels in images])
    kept = (pixels[:, channel] for channel in range(3))
    return np.array([one[(one >= 5) & (one <= 250)].mean() for one in kept])


def trimmed_shift(inputs: list[Levels], outputs: list[Levels]) -> float:
    return float(np.sqrt(((trimmed_mean(outputs) - trimmed_mean(inputs)) ** 2).sum()))


def _turned() -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = 6
    return exif


CUT = encoded(noise(2, size=(200, 200)), "PNG")[:9000]
DEEP = np.random.default_rng(1).integers(4000, 60_000, (9, 9), dtype=np.uint16)
# What only a loader that knows files reads as they are meant.
SPECIAL = {
    "turned by the camera": encoded(noise(0), "PNG", exif=_turned()),
    "Adobe RGB": encoded(noise(0), "PNG", icc_profile=rgb_profile("adobe", 2.2)),
    "half transparent": encoded(noise(0).convert("RGBA").point(lambda one: one // 2), "PNG"),
    "16 bits": encoded(Image.fromarray(DEEP), "PNG"),
}
