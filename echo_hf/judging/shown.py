"""The pictures as judges see them: made small as the released code does, or left to the engine."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from PIL import Image

from echo_hf.engines.base import ImageRef
from echo_hf.errors import PictureError
from echo_hf.judging.config import Pictures
from echo_hf.open_picture import BadPictureError, open_picture
from echo_hf.pictures import PictureStore
from echo_hf.reasons import BadPicture

SHORT_SIDE = 512
QUALITY = 85
LONGEST_SIDE = 65_500  # of a JPEG
THREADS = 4
# A colour for each two by two pixels, which is what OpenCV writes.
SUBSAMPLING = "4:2:0"

Size = tuple[int, int]


def shown_pictures(
    pictures: PictureStore, digests: Iterable[str], how: Pictures
) -> dict[str, ImageRef]:
    """What judges are shown in the place of pictures.

    Args:
        pictures: Where the pictures are, and where smaller ones made from them go.
        digests: Digests of the pictures.
        how: `published`, or `model_budget` for the pictures themselves.

    Returns:
        By digest the picture to send; one that is missing or cannot be shown is not there.
    """
    wanted = dict.fromkeys(digests)

    def shown(digest: str) -> ImageRef | None:
        file = pictures.path(digest)
        if how == "model_budget":
            return ImageRef(digest, file) if file.is_file() else None
        try:
            small = pictures.put(as_published(file))
        except PictureError:
            return None
        return ImageRef(small, pictures.path(small))

    with ThreadPoolExecutor(THREADS) as threads:
        made: Mapping[str, ImageRef | None] = dict(
            zip(wanted, threads.map(shown, wanted), strict=True)
        )
    return {digest: reference for digest, reference in made.items() if reference is not None}


def as_published(picture: bytes | Path) -> bytes:
    """A picture as the released code sends it to a judge.

    The shorter side has 512 pixels, also where it had fewer; Pillow resizes as it does when told
    nothing; orientation and profiles are ignored; the file is a JPEG of quality 85.

    Args:
        picture: Bytes of an encoded picture, or its file.

    Returns:
        Bytes of the JPEG; the same for the same picture and version of Pillow.

    Raises:
        BadPictureError: It cannot be shown, or is so narrow that no JPEG would hold it.
    """
    with open_picture(picture) as opened:
        size = published_size(opened.size)
        if max(size) > LONGEST_SIDE:
            raise BadPictureError(
                BadPicture.TOO_MANY_PIXELS, f"{size[0]} x {size[1]} with a short side of 512"
            )
        small = opened.resize(size).convert("RGB")
    return _jpeg(small)


def published_size(size: Size) -> Size:
    """Width and height of a picture as the released code sends it.

    Both are cut to whole numbers, and the factor is a floating-point number: a shorter side of 49
    pixels, for one, becomes 511.

    Args:
        size: Width and height in pixels.

    Returns:
        Width and height in pixels.

    Example:
        >>> published_size((1024, 1536)), published_size((49, 100))
        ((512, 768), (511, 1044))
    """
    factor = SHORT_SIDE / min(size)
    return int(size[0] * factor), int(size[1] * factor)


def _jpeg(image: Image.Image) -> bytes:
    sink = io.BytesIO()
    # Pillow would copy the original's comment, which is a stranger's text.
    image.save(sink, "JPEG", quality=QUALITY, subsampling=SUBSAMPLING, comment=b"")
    return sink.getvalue()
