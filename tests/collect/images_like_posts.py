"""Images that look like those in posts: soft noise as in photographs, shapes, and words."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

Size = tuple[int, int]


@cache
def photograph(seed: int, size: Size = (480, 360)) -> Image.Image:
    random = np.random.default_rng(seed)
    width, height = size
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width)[None])
    frequency[0, 0] = 1.0
    common = random.normal(size=(height, width))
    channels = [_soft(common + random.normal(size=(height, width)) / 2, frequency) for _ in "rgb"]
    image = Image.fromarray(np.stack(channels, -1).clip(0, 255).astype(np.uint8))
    draw = ImageDraw.Draw(image)
    for _ in range(6):
        x, y, side = (int(random.integers(20, limit)) for limit in (width - 90, height - 90, 70))
        color = tuple(int(level) for level in random.integers(0, 256, 3))
        draw.ellipse((x, y, x + side, y + side), fill=color)
    return image


def with_words(image: Image.Image, words: str, place: Size, height: int) -> Image.Image:
    labelled = image.copy()
    draw = ImageDraw.Draw(labelled)
    font = ImageFont.load_default(height)
    left, top, right, bottom = draw.textbbox(place, words, font=font)
    draw.rectangle((left - 8, top - 8, right + 8, bottom + 8), fill=(245, 240, 225))
    draw.text(place, words, fill=(30, 30, 60), font=font)
    return labelled


def with_disc(image: Image.Image, place: Size, side: int) -> Image.Image:
    marked = image.copy()
    box = (*place, place[0] + side, place[1] + side)
    ImageDraw.Draw(marked).ellipse(box, fill=(220, 40, 40))
    return marked


def tinted(image: Image.Image, channel: int, factor: float) -> Image.Image:
    levels = np.asarray(image, np.float64).copy()
    levels[..., channel] *= factor
    return Image.fromarray(levels.round().clip(0, 255).astype(np.uint8))


def scaled(
    image: Image.Image, factor: float, how: Image.Resampling = Image.Resampling.LANCZOS
) -> Image.Image:
    width, height = (max(1, round(side * factor)) for side in image.size)
    return image.resize((width, height), how)


def _soft(noise: NDArray[np.float64], frequency: NDArray[np.float64]) -> NDArray[np.float64]:
    soft = np.fft.ifft2(np.fft.fft2(noise) / frequency**1.1).real
    levels: NDArray[np.float64] = (soft - soft.mean()) / soft.std() * 45 + 135
    return levels
