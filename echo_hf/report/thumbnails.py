"""Small copies of a run's pictures, and how often each level of a colour is in them.

A picture is decoded once: the copy and the histogram are made from the same pixels.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from echo_hf.errors import PictureError
from echo_hf.load_rgb import load_rgb
from echo_hf.metrics.color_histograms import Integers, histograms
from echo_hf.metrics.in_order import in_order
from echo_hf.open_picture import BadPictureError
from echo_hf.pictures import PictureStore

LONGEST_SIDE = 320
QUALITY = 80
EFFORT = 0  # of WebP's 0 to 6: half the time of 2, and a tenth more bytes
FOLDER = "thumbs"
NAME_LENGTH = 20  # 80 bits of the digest


@dataclass(frozen=True)
class Thumbnail:
    """A small copy of a picture.

    Attributes:
        digest: Sha256 of the picture.
        source: Where a page finds it: a path beside it, or the picture itself.
        width: Of the copy, in pixels.
        height: Likewise.
    """

    digest: str
    source: str
    width: int
    height: int


@dataclass(frozen=True)
class Looked:
    """What came of decoding a picture.

    Attributes:
        digest: Sha256 of the picture.
        thumbnail: Its small copy; null when it cannot be shown.
        counts: Array [channel, level] of its pixels; null likewise.
        problem: Why it cannot be shown.
    """

    digest: str
    thumbnail: Thumbnail | None
    counts: Integers | None
    problem: str | None = None


def looked_at(
    digests: Iterable[str], pictures: PictureStore, folder: Path | None
) -> Iterator[Looked]:
    """Decodes pictures, in several threads, and holds only a few of them at a time.

    Args:
        digests: Sha256 of each picture, each once.
        pictures: Where they lie.
        folder: The report's folder, in which small copies are written; null to hold them in the
            page itself.

    Yields:
        What came of each, in their order.
    """
    if folder is not None:
        (folder / FOLDER).mkdir(parents=True, exist_ok=True)
    yield from in_order(lambda digest: _looked(digest, pictures, folder), digests)


def _looked(digest: str, pictures: PictureStore, folder: Path | None) -> Looked:
    try:
        picture = load_rgb(pictures.open(digest))
    except BadPictureError as error:
        return Looked(digest, None, None, str(error.reason))
    except PictureError:
        return Looked(digest, None, None, "the run does not hold it")
    counts = histograms(picture)
    small = reduced(picture)
    return Looked(digest, _kept(digest, small, folder), counts)


def reduced(picture: Image.Image, longest: int = LONGEST_SIDE) -> Image.Image:
    """A picture no larger than asked, in its own shape.

    Args:
        picture: In mode RGB.
        longest: Most pixels of a side.

    Returns:
        A copy, never larger than the picture.

    Example:
        >>> reduced(Image.new("RGB", (1000, 500)), 100).size
        (100, 50)
    """
    if max(picture.size) <= longest:
        return picture.copy()
    part = longest / max(picture.size)
    width, height = (max(1, round(side * part)) for side in picture.size)
    # Whole blocks of pixels are averaged first: a third of the time, and no difference to be seen.
    return picture.resize((width, height), Image.Resampling.HAMMING, reducing_gap=1.0)


def _kept(digest: str, small: Image.Image, folder: Path | None) -> Thumbnail:
    sink = io.BytesIO()
    small.save(sink, "WEBP", quality=QUALITY, method=EFFORT)
    if folder is None:
        source = "data:image/webp;base64," + base64.b64encode(sink.getvalue()).decode()
    else:
        source = f"{FOLDER}/{digest[:NAME_LENGTH]}.webp"
        (folder / source).write_bytes(sink.getvalue())
    return Thumbnail(digest, source, *small.size)


Thumbnails = Mapping[str, Thumbnail]
