"""Images on their way to a system and back: inputs, sizes, stitching, and what servers send."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from echo_hf.engines.base import ImageRef
from echo_hf.errors import ImageError
from echo_hf.images.loader import PixelSize
from echo_hf.systems.base import GenerationResult, OutcomeStage
from echo_hf.systems.images import (
    add_image,
    decode_base64,
    nearest_size,
    prepare_input,
    read_size,
    scale_size,
    stitch,
)
from echo_hf.tables import Outcome
from tests.images_for_tests import encoded, in_srgb, noise, png, rgb_profile
from tests.systems.drawing_for_tests import HUGE, IMAGE, base64_of, blocks, kept

SIZE, LANCZOS = (30, 20), Image.Resampling.LANCZOS
ORIENTATION = 0x0112
MEGAPIXEL = 1024 * 1024
SIDES = st.integers(1, 20_000)
ANSWERED = GenerationResult(
    Outcome.FAILED, stage=OutcomeStage.ANSWER, text="thoughts", cost_usd=0.5
)

# What comes from servers.


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *[(one, "not followed") for one in ("https://a.example/1.png", "file:///etc/passwd")],
        *[(one, "not base64") for one in ("*", "iVBOR", "data:image/png,raw", "ü")],
    ],
)
def test_what_is_no_base64_is_told(text: str, said: str) -> None:
    with pytest.raises(ImageError, match=said):
        decode_base64(text)


def test_an_image_is_kept_as_it_came_and_nothing_else_is() -> None:
    for given_as in (IMAGE, base64_of(IMAGE)):
        drawn = add_image(ANSWERED, given_as)
        assert (drawn.outcome, drawn.image, drawn.stage) == (Outcome.OK, IMAGE, None)
        assert (drawn.text, drawn.cost_usd) == ("thoughts", 0.5)
    for data in (b"", b"<html>", IMAGE[:-300], HUGE):
        drawn = add_image(ANSWERED, data)
        assert (drawn.outcome, drawn.stage) == (Outcome.FAILED, OutcomeStage.ANSWER)
        assert (drawn.image, drawn.cost_usd) == (None, 0.5)
        assert drawn.text not in (None, "thoughts")


# What is sent.


def turned(value: int) -> Image.Exif:
    exif = Image.Exif()
    exif[ORIENTATION] = value
    return exif


def pixels(data: bytes) -> np.ndarray[Any, Any]:
    return np.asarray(Image.open(io.BytesIO(data)))


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("WEBP", {}),
        ("JPEG", {"exif": turned(1)}),
        ("PNG", {"icc_profile": rgb_profile("srgb", None)}),
    ],
)
def test_what_every_reader_sees_alike_goes_as_it_is(
    tmp_path: Path, kind: str, options: dict[str, Any]
) -> None:
    data = encoded(noise(SIZE), kind, **options)
    sent = prepare_input(kept(tmp_path, data))
    assert (sent.data, sent.mime_type) == (data, f"image/{kind.lower()}")
    assert (sent.size, sent.changed) == (SIZE, ())


def filled(mode: str, color: Any, kind: str = "PNG", **options: Any) -> bytes:
    return encoded(Image.new(mode, SIZE, color), kind, **options)


def animated(kind: str, **options: Any) -> bytes:
    frames = [Image.new("RGB", SIZE, color) for color in ("red", "blue")]
    return encoded(frames[0], kind, save_all=True, append_images=frames[1:], **options)


NOISE = np.asarray(noise(SIZE))
RED = np.full((20, 30, 3), (255, 0, 0))
CLEAR = Image.new("P", SIZE, 1)
CLEAR.putpalette([0, 0, 0, 9, 9, 9])
GREY = b"\0" + b"\x80\x80" * SIZE[0]
LOSSLESS = {"lossless": True, "exact": True}


@pytest.mark.parametrize(
    ("data", "changed", "expected"),
    [
        # White shows through; by hand, 51 of 255 of 5 and 204 of 255 of white are 205.
        (filled("RGBA", (9, 9, 9, 0)), "transparent", 255),
        (filled("RGBA", (5, 5, 5, 51), "WEBP", **LOSSLESS), "transparent", 205),
        (encoded(CLEAR, "PNG", transparency=bytes([255, 0])), "transparent", 255),
        # 16 bits are rounded to 8.
        (png(SIZE, 16, 0, GREY * SIZE[1]), "depth", 128),
        (encoded(noise(SIZE), "PNG", exif=turned(6)), "turned", np.rot90(NOISE, -1)),
        (encoded(noise(SIZE), "BMP"), "format", NOISE),
        # Of an animation the first frame goes.
        (animated("WEBP", lossless=True), "animated", RED),
        (animated("GIF"), "format animated", RED),
        (filled("CMYK", 0, "JPEG"), "inks", 255),
    ],
    ids=str,
)
def test_what_readers_see_differently_goes_as_a_png_that_all_see_alike(
    tmp_path: Path, data: bytes, changed: str, expected: Any
) -> None:
    sent = prepare_input(kept(tmp_path, data))
    assert (sent.mime_type, sent.changed) == ("image/png", tuple(changed.split()))
    shape = (sent.size[1], sent.size[0], 3)
    assert np.abs(pixels(sent.data).astype(int) - np.broadcast_to(expected, shape)).max() <= 1


def test_a_profile_that_changes_colors_is_applied(tmp_path: Path) -> None:
    data = encoded(noise(SIZE), "PNG", icc_profile=rgb_profile("p3", 2.2))
    sent = prepare_input(kept(tmp_path, data))
    assert sent.changed == ("profile",)
    assert np.abs(pixels(sent.data).astype(int) - in_srgb(NOISE, "p3", 2.2)).max() <= 2


def test_another_image_under_the_name_is_not_sent(tmp_path: Path) -> None:
    reference = kept(tmp_path, encoded(noise(SIZE), "PNG"))
    assert reference.file is not None
    reference.file.write_bytes(encoded(noise((5, 5)), "PNG"))
    for bad in (reference, ImageRef("0" * 64), kept(tmp_path, b"<html>")):
        with pytest.raises(ImageError):
            prepare_input(bad)


# Sizes.


@pytest.mark.parametrize(
    ("size", "choices", "expected"),
    [
        # Between two ratios the border is their geometric mean: the square root of 1.5 is 1.2247.
        ((1224, 1000), [(3, 2), (1, 1), (2, 3)], (1, 1)),
        ((1000, 1226), [(3, 2), (1, 1), (2, 3)], (2, 3)),
        # Of one shape the nearest in pixels, then the first in the list.
        ((900, 900), [(512, 512), (1024, 1024)], (1024, 1024)),
        ((10, 10), [(20, 5), (5, 20)], (20, 5)),
    ],
)
def test_the_nearest_shape_is_nearest_in_the_logarithm(
    size: PixelSize, choices: list[PixelSize], expected: PixelSize
) -> None:
    assert nearest_size(size, choices) == expected


def test_published_sizes_are_found_by_their_shapes() -> None:
    """Buckets of a million pixels in steps of 64, as the report of SDXL lists them."""
    for width, height in ((1024, 1024), (1152, 896), (1344, 768), (1536, 640), (896, 1152)):
        assert scale_size((width * 3, height * 3), MEGAPIXEL, 64) == (width, height)


@given(
    SIDES,
    SIDES,
    st.sampled_from([1, 8, 16, 28, 64]),
    st.integers(64 * 64, 9_000_000),
    st.sampled_from([1.0, 2.5, 3.0, math.inf]),
)
def test_a_size_is_always_inside_the_limits(
    width: int, height: int, multiple: int, most: int, longest: float
) -> None:
    size = scale_size((width, height), most, multiple, longest)
    assert min(size) >= multiple
    assert [side % multiple for side in size] == [0, 0]
    assert size[0] * size[1] <= most
    assert max(size) <= longest * min(size)
    if width != height:
        assert scale_size((height, width), most, multiple, longest) == size[::-1]


def test_a_size_is_width_and_height() -> None:
    assert read_size("1536x1024") == (1536, 1024)
    for text in ("", "1024", "1024 x 1024", "0x5", "1024x-5", "٣x٣"):
        with pytest.raises(ValueError, match="is not a size: expected width and height such as"):
            read_size(text)


# Several inputs in one image.


@pytest.mark.parametrize(
    ("sizes", "first", "most", "whole"),
    [
        ([(640, 480), (10, 20)], (1184, 880), 2 * MEGAPIXEL, (1184 + 432, 880)),
        # Two squares in 131,072 pixels are 256 high: 2 x 256 x 256.
        ([(1000, 1000), (10, 10)], (1024, 1024), 131_072, (512, 256)),
    ],
)
def test_the_height_is_the_models_or_what_the_pixels_allow(
    sizes: list[PixelSize], first: PixelSize, most: int, whole: PixelSize
) -> None:
    """Each image is as wide as its shape and the height say, less at most 15 columns."""
    images = [Image.new("RGB", size) for size in sizes]
    assert stitch(images, lambda _: first, most, 16).size == whole


def test_pixels_are_those_of_each_image_alone() -> None:
    images = [blocks((150, 100), 1), blocks((70, 130), 2)]
    whole = np.asarray(stitch(images, lambda _: (144, 96), 10_000, 16))
    sizes = [(96, 64), (32, 64)]
    alone = [one.resize(size, LANCZOS) for one, size in zip(images, sizes, strict=True)]
    np.testing.assert_array_equal(whole, np.concatenate(list(map(np.asarray, alone)), axis=1))
