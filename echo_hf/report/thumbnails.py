"""Small copies of a run's images, and the colors of each system's outputs (figure B.1)."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from echo_hf.errors import ImageError
from echo_hf.images.loader import BadImageError, load_rgb
from echo_hf.images.store import ImageStore
from echo_hf.metrics.color_shift import CHANNELS, LEVELS, Floats, Integers, histograms
from echo_hf.metrics.image_features import in_order

LONGEST_SIDE = 384
QUALITY = 80
FOLDER = "thumbs"
NAME_LENGTH = 20  # 80 bits of the digest


@dataclass(frozen=True)
class Thumbnail:
    source: str
    width: int
    height: int


Thumbnails = Mapping[str, Thumbnail]
Looked = tuple[Thumbnail, Integers | None]


def looked_at(
    digests: Iterable[str], images: ImageStore, folder: Path | None, counted: Container[str]
) -> Iterator[tuple[str, Looked | str]]:
    """A small copy of each image, and its histograms where they count; or why there is none.

    Images are decoded in several threads; only a few of them are held at a time.
    """
    if folder is not None:
        (folder / FOLDER).mkdir(parents=True, exist_ok=True)

    def look(digest: str) -> tuple[str, Looked | str]:
        try:
            image = load_rgb(images.open(digest))
        except BadImageError as error:
            return digest, str(error.reason)
        except ImageError:
            return digest, "the run does not hold it"
        sink, small = io.BytesIO(), reduced(image)
        small.save(sink, "JPEG", quality=QUALITY)
        if folder is None:
            source = "data:image/jpeg;base64," + base64.b64encode(sink.getvalue()).decode()
        else:
            source = f"{FOLDER}/{digest[:NAME_LENGTH]}.jpg"
            (folder / source).write_bytes(sink.getvalue())
        counts = histograms(image) if digest in counted else None
        return digest, (Thumbnail(source, *small.size), counts)

    yield from in_order(look, digests)


def reduced(image: Image.Image, longest: int = LONGEST_SIDE) -> Image.Image:
    """An image no larger than asked, in its own shape: whole blocks of pixels are averaged."""
    return image.reduce(math.ceil(max(image.size) / longest))


@dataclass
class MeanColors:
    """The histograms of images that come one by one; each counts once, whatever its size."""

    images: int = 0
    total: Floats | float = 0.0

    def add(self, counts: Integers) -> None:
        self.total = self.total + counts / counts.sum(axis=-1, keepdims=True)
        self.images += 1

    @property
    def shares(self) -> Floats:
        """How often each level of red, green and blue is; of no image, zeros."""
        return np.zeros((CHANNELS, LEVELS)) + self.total / max(self.images, 1)

    @property
    def mean(self) -> tuple[float, float, float]:
        """The mean red, green and blue, in levels from 0 to 255."""
        red, green, blue = self.shares @ np.arange(LEVELS)
        return float(red), float(green), float(blue)

    @property
    def hexadecimal(self) -> str:
        return "#" + "".join(f"{round(level):02x}" for level in self.mean)
