"""Parts of images, pixel by pixel as they were."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageCms

from echo_hf.errors import ImageError
from echo_hf.images.loader import upright_rgb
from echo_hf.samples.boxes import cut, inner, upright, upright_size

NOISE = np.random.default_rng(0).integers(0, 256, (30, 50, 4), dtype=np.uint8)
BOX = (7, 5, 41, 28)
PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def drawn(mode: str) -> Image.Image:
    """Noise in this mode, 50 wide and 30 high."""
    if mode == "I;16":
        return Image.fromarray(NOISE[..., 0].astype(np.uint16) * 257)
    if mode == "P":
        return Image.fromarray(NOISE[..., :3]).quantize(64)
    return Image.fromarray(NOISE).convert(mode)


def encoded(image: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    """The bytes of a file."""
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def opened(data: bytes) -> Image.Image:
    """The image in these bytes, loaded."""
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_a_crop_has_the_pixels_of_the_image(mode: str) -> None:
    """In the mode they are stored in: no level changes, no palette is made anew."""
    original = drawn(mode)
    crop = opened(cut(upright(encoded(original)), BOX))

    assert (crop.format, crop.mode, crop.size) == ("PNG", mode, (34, 23))
    np.testing.assert_array_equal(np.asarray(crop), np.asarray(original)[5:28, 7:41])
    if mode == "P":
        assert crop.getpalette() == original.getpalette()


def test_a_transparent_palette_color_stays_transparent() -> None:
    """A screenshot that was saved in few colors looks the same in its parts."""
    original = drawn("P")
    crop = opened(cut(upright(encoded(original, transparency=3)), BOX))
    expected = opened(encoded(original, transparency=3)).convert("RGBA").crop(BOX)
    assert expected.getextrema()[3] == (0, 255)
    np.testing.assert_array_equal(np.asarray(crop.convert("RGBA")), np.asarray(expected))


# What the eight orientations of a camera do to the pixels that it stored.
TURNS: dict[int, Callable[[Any], Any]] = {
    1: lambda a: a,
    2: lambda a: a[:, ::-1],
    3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1],
    5: lambda a: a.swapaxes(0, 1),
    6: lambda a: np.rot90(a, -1),
    7: lambda a: a[::-1, ::-1].swapaxes(0, 1),
    8: lambda a: np.rot90(a),
}


@pytest.mark.parametrize("orientation", TURNS)
@pytest.mark.parametrize("kind", ["PNG", "TIFF", "WEBP"])
def test_boxes_are_those_of_the_upright_image(orientation: int, kind: str, tmp_path: Any) -> None:
    """What a camera stored turned or mirrored is cut as people and models see it."""
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"lossless": True} if kind == "WEBP" else {}
    data = encoded(drawn("RGB"), kind, exif=exif, **options)
    seen = TURNS[orientation](NOISE[..., :3])
    left, top, right, bottom = box = (3, 4, 20, 29)
    crop = opened(cut(upright(data), box))

    np.testing.assert_array_equal(np.asarray(crop), seen[top:bottom, left:right])
    assert upright_size(data) == (seen.shape[1], seen.shape[0])
    assert crop.getexif() == {}
    (tmp_path / "a").write_bytes(data)
    assert upright_rgb(tmp_path / "a").size == upright_size(data)


def test_a_color_profile_stays_and_nothing_else_does() -> None:
    """Colors mean the same as before; where and by whom it was taken is nobody's business."""
    exif = Image.Exif()
    exif[0x010E] = "in the garden"
    data = encoded(
        drawn("RGB"), "JPEG", exif=exif, icc_profile=PROFILE, comment=b"hello", dpi=(9, 9)
    )
    crop = cut(upright(data), BOX)

    assert opened(crop).info == {"icc_profile": PROFILE}
    assert b"garden" not in crop
    assert b"hello" not in crop


def test_colors_that_no_png_holds_are_converted() -> None:
    """Print colors become red, green and blue; their profile goes with them."""
    data = encoded(Image.fromarray(NOISE, "CMYK"), "TIFF", icc_profile=PROFILE)
    crop = opened(cut(upright(data), BOX))
    expected = np.asarray(Image.fromarray(NOISE, "CMYK").convert("RGB"))[5:28, 7:41]

    np.testing.assert_array_equal(np.asarray(crop), expected)
    assert "icc_profile" not in crop.info


def test_an_inset_leaves_out_a_margin() -> None:
    """Ten pixels along each side, as in the released benchmark."""
    image = upright(encoded(drawn("RGB")))
    assert inner((0, 0, 50, 30), 10) == (10, 10, 40, 20)
    np.testing.assert_array_equal(
        np.asarray(opened(cut(image, (0, 0, 50, 30), 10))), NOISE[10:20, 10:40, :3]
    )


@pytest.mark.parametrize(
    ("box", "inset"),
    [((0, 0, 51, 30), 0), ((-1, 0, 5, 5), 0), ((9, 0, 9, 5), 0), ((0, 0, 50, 20), 10)],
)
def test_a_box_that_leaves_nothing_is_refused(box: tuple[int, int, int, int], inset: int) -> None:
    """One line that says what was asked of which image."""
    with pytest.raises(ImageError, match=r"leaves nothing of an image of 50 x 30 pixels") as caught:
        cut(upright(encoded(drawn("RGB"))), box, inset)
    assert str(list(box)) in str(caught.value)


def test_the_same_part_gives_the_same_bytes() -> None:
    """Digests of crops are names of images, whatever file they came from."""
    files = [encoded(drawn("RGB")), encoded(drawn("RGB"), compress_level=0, dpi=(7, 7))]
    assert files[0] != files[1]
    assert len({cut(upright(data), BOX) for data in files * 2}) == 1


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"no picture", "cannot be decoded"),
        (encoded(drawn("RGB"))[:700], "cannot be decoded"),
        (encoded(Image.new("F", (9, 9)), "TIFF"), "pixels of mode 'F'"),
    ],
)
def test_what_cannot_be_shown_is_refused(data: bytes, said: str) -> None:
    """Whatever a decoder trips over is one kind of error."""
    with pytest.raises(ImageError, match=said):
        upright(data)


def test_of_an_animation_the_first_frame_is_cut() -> None:
    """The one that people see first."""
    frames = [Image.new("RGB", (50, 30), color) for color in ("red", "blue")]
    data = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert opened(cut(upright(data), BOX)).convert("RGB").getpixel((0, 0)) == (255, 0, 0)
