"""Images for tests of metrics, a plain count of their levels, and the paper's color shifts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from echo_hf.scores.votes import ProtocolName
from tests.images_for_tests import encoded, rgb_profile

Levels = NDArray[np.uint8]
BOTH: tuple[ProtocolName, ProtocolName] = ("corrected", "published")


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


# The mean colors of levels 5 to 250 that the paper's authors printed in the notebook of their
# release, over the inputs and over the outputs of eight systems, and the color shifts that the
# paper and its page show for them.
INPUTS = (130.19645540165164, 122.15157809824544, 113.10246908521974)
PUBLISHED = {
    "Nano Banana": ((128.8077440951207, 121.62224288530028, 113.30290608895706), 1.50),
    "Bagel": ((129.7416086726352, 124.88083116909183, 112.35250602783229), 2.87),
    "Anole": ((128.71000201106853, 121.90663525468243, 115.90742617540042), 3.18),
    "Flux Kontext": ((126.83092896702428, 120.58596165155554, 111.25209817377942), 4.15),
    "Bagel-Think": ((130.04168497089918, 125.40240884087645, 110.29793663547314), 4.30),
    "Gemini 2.0 Flash": ((130.6032150967758, 125.33250353180529, 116.92085934814034), 4.99),
    "LLM+Diffusion": ((122.2193817758066, 116.26410273544627, 105.57054995566492), 12.45),
    "4o Image Gen": ((121.31480320496527, 107.79034113129879, 91.08195396266762), 27.75),
}
