"""Cut pictures out of a screenshot without changing a pixel.

Boxes are those of the upright picture: what a camera stored on its side is turned first.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from PIL import Image, ImageOps

from echo_hf.errors import PictureError
from echo_hf.multimodal.boxes import Pixels
from echo_hf.pictures import FORMATS, MOST_PIXELS

# Modes that a PNG holds as they are.
KEPT_MODES = frozenset({"1", "L", "LA", "P", "RGB", "RGBA", "I;16"})
UNDEFINED_MODES = frozenset({"I", "F"})  # nobody says what their black and white are
COMPRESSION = 6
ORIENTATION, ON_ITS_SIDE = 0x0112, frozenset({5, 6, 7, 8})


def upright_size(data: bytes) -> tuple[int, int]:
    """Width and height of a picture as people see it, mostly without decoding it.

    Args:
        data: Bytes of an encoded picture.

    Returns:
        Width and height in pixels.

    Raises:
        PictureError: They are no picture that can be shown.
    """
    with _opened(data) as picture:
        if picture.getexif().get(ORIENTATION) not in ON_ITS_SIDE:
            return picture.size
        # Pillow turns those of some formats on decoding, and then tells their size turned.
        return ImageOps.exif_transpose(picture).size


def upright(data: bytes) -> Image.Image:
    """A picture as people see it, in its own colours.

    Args:
        data: Bytes of an encoded picture; of an animation the first frame is taken.

    Returns:
        The picture, in the mode it is stored in where a PNG can hold that, else in RGB. A colour
        profile stays with it, nothing else that describes it does.

    Raises:
        PictureError: They are no picture that can be shown.
    """
    with _opened(data) as picture:
        if picture.mode in UNDEFINED_MODES:
            raise PictureError(f"pixels of mode {picture.mode!r}: expected 8 or 16 bits a channel")
        shown = ImageOps.exif_transpose(picture)
        if shown.mode in KEPT_MODES:
            return shown
        # The profile of another kind of colours says nothing about these.
        turned = shown.convert("RGB")
        turned.info.pop("icc_profile", None)
        return turned


def cut(picture: Image.Image, box: Pixels, inset: int = 0) -> bytes:
    """Cuts a part out of a picture.

    Args:
        picture: A picture as `upright` gives it.
        box: Left, top, right, bottom in pixels.
        inset: Pixels to leave out along each side of the box.

    Returns:
        The part as a PNG whose pixels are those of the picture. The same pixels give the same
        bytes, as long as Pillow and its zlib stay the same.

    Raises:
        PictureError: Nothing is left of the box.
    """
    left, top, right, bottom = inner(box, inset)
    if not (0 <= left < right <= picture.width and 0 <= top < bottom <= picture.height):
        raise PictureError(
            f"box {list(box)!r} with an inset of {inset} leaves nothing of a picture of "
            f"{picture.width} x {picture.height} pixels: expected a box inside it"
        )
    part = picture.crop((left, top, right, bottom))
    # A profile and a transparent colour are part of how it looks; the rest is nobody's business.
    part.info = {
        name: part.info[name] for name in ("icc_profile", "transparency") if name in part.info
    }
    buffer = io.BytesIO()
    part.save(buffer, "PNG", compress_level=COMPRESSION)
    return buffer.getvalue()


def inner(box: Pixels, inset: int) -> Pixels:
    """A box that is smaller by so many pixels on each side.

    Example:
        >>> inner((0, 0, 100, 50), 10)
        (10, 10, 90, 40)
    """
    left, top, right, bottom = box
    return left + inset, top + inset, right - inset, bottom - inset


@contextmanager
def _opened(data: bytes) -> Iterator[Image.Image]:
    try:
        with warnings.catch_warnings():
            # Pillow warns at fewer pixels than are allowed here, and about harmless oddities.
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(data), formats=FORMATS) as picture:
                if picture.width * picture.height > MOST_PIXELS:
                    raise PictureError(f"more than {MOST_PIXELS} pixels")
                yield picture
    except PictureError:
        raise
    except Exception as error:  # a decoder fed with hostile bytes raises whatever it trips over
        said = " ".join(str(error).split()) or type(error).__name__
        raise PictureError(f"cannot be decoded: {said}") from error
