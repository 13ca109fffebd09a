"""Input images as they are sent to a system that is somewhere else."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from echo_hf.engines.base import ImageRef
from echo_hf.errors import ImageError
from echo_hf.systems.images import sent_input
from tests.images_for_tests import encoded, in_srgb, noise, png, rgb_profile
from tests.systems.drawing_for_tests import base64_of, kept

SIZE = (30, 20)
ORIENTATION = 0x0112


def _turned(value: int) -> Image.Exif:
    exif = Image.Exif()
    exif[ORIENTATION] = value
    return exif


def _pixels(data: bytes) -> np.ndarray[Any, Any]:
    return np.asarray(Image.open(io.BytesIO(data)))


@pytest.mark.parametrize(
    ("kind", "options", "mime_type"),
    [
        ("PNG", {}, "image/png"),
        ("JPEG", {}, "image/jpeg"),
        ("WEBP", {}, "image/webp"),
        ("JPEG", {"exif": _turned(1)}, "image/jpeg"),
        ("PNG", {"icc_profile": rgb_profile("srgb", None)}, "image/png"),
    ],
)
def test_what_every_reader_sees_alike_goes_as_it_is(
    tmp_path: Path, kind: str, options: dict[str, Any], mime_type: str
) -> None:
    """The very bytes, an upright mark and a profile of sRGB included."""
    data = encoded(noise(SIZE), kind, **options)
    sent = sent_input(kept(tmp_path, data))
    assert (sent.data, sent.mime_type, sent.size, sent.changed) == (data, mime_type, SIZE, ())


def _palette(alpha: int) -> bytes:
    image = Image.new("P", SIZE, 1)
    image.putpalette([0, 0, 0, 9, 9, 9])
    return encoded(image, "PNG", transparency=bytes([255, alpha]))


@pytest.mark.parametrize(
    ("data", "level"),
    [
        (encoded(Image.new("RGBA", SIZE, (9, 9, 9, 0)), "PNG"), 255),
        (encoded(Image.new("RGBA", SIZE, (5, 5, 5, 51)), "WEBP", lossless=True, exact=True), 205),
        (encoded(Image.new("LA", SIZE, (9, 0)), "PNG"), 255),
        (_palette(0), 255),
    ],
    ids=["clear", "half", "grey", "palette"],
)
def test_white_shows_through_what_is_transparent(tmp_path: Path, data: bytes, level: int) -> None:
    """As local systems see it; by hand, 51 of 255 of 5 and 204 of 255 of white are 205."""
    sent = sent_input(kept(tmp_path, data))
    assert (sent.mime_type, sent.size, sent.changed) == ("image/png", SIZE, ("transparent",))
    assert np.array_equal(_pixels(sent.data), np.full((20, 30, 3), level))


@pytest.mark.parametrize(
    "data", [encoded(Image.new("RGBA", SIZE, (9, 9, 9, 255)), "PNG"), _palette(255)]
)
def test_an_opaque_channel_hides_nothing(tmp_path: Path, data: bytes) -> None:
    """Such an image goes as it is."""
    assert sent_input(kept(tmp_path, data)).data == data


@pytest.mark.parametrize("color_type", [0, 2])
def test_sixteen_bits_are_rounded_to_eight(tmp_path: Path, color_type: int) -> None:
    """Grey or colored: readers cut or round them as they like."""
    row = b"\0" + (b"\x80\x80" * (3 if color_type else 1)) * SIZE[0]
    sent = sent_input(kept(tmp_path, png(SIZE, 16, color_type, row * SIZE[1])))
    assert (sent.mime_type, sent.changed) == ("image/png", ("depth",))
    assert np.array_equal(_pixels(sent.data), np.full((20, 30, 3), 128))


def test_a_turned_image_goes_upright(tmp_path: Path) -> None:
    """Turned to the right it was stored, turned back it goes; its size is the upright one."""
    image = noise(SIZE)
    sent = sent_input(kept(tmp_path, encoded(image, "PNG", exif=_turned(6))))
    assert (sent.mime_type, sent.size, sent.changed) == ("image/png", (20, 30), ("turned",))
    assert np.array_equal(_pixels(sent.data), np.rot90(np.asarray(image), -1))


@pytest.mark.parametrize("kind", ["BMP", "TIFF"])
def test_other_formats_go_as_png(tmp_path: Path, kind: str) -> None:
    """With the same pixels."""
    sent = sent_input(kept(tmp_path, encoded(noise(SIZE), kind)))
    assert (sent.mime_type, sent.changed) == ("image/png", ("format",))
    assert np.array_equal(_pixels(sent.data), np.asarray(noise(SIZE)))


def test_of_an_animation_the_first_frame_goes(tmp_path: Path) -> None:
    """In whichever format it is."""
    frames = [Image.new("RGB", SIZE, color) for color in ("red", "blue")]
    for kind, changed in (("WEBP", ("animated",)), ("GIF", ("format", "animated"))):
        options = {"lossless": True} if kind == "WEBP" else {}
        data = encoded(frames[0], kind, save_all=True, append_images=frames[1:], **options)
        sent = sent_input(kept(tmp_path, data))
        assert sent.changed == changed
        assert np.array_equal(_pixels(sent.data), np.asarray(frames[0]))


def test_a_profile_that_changes_colors_is_applied(tmp_path: Path) -> None:
    """By the formulas of the two spaces, to within the rounding of a profile."""
    data = encoded(noise(SIZE), "PNG", icc_profile=rgb_profile("p3", 2.2))
    sent = sent_input(kept(tmp_path, data))
    assert sent.changed == ("profile",)
    expected = in_srgb(np.asarray(noise(SIZE)), "p3", 2.2)
    assert np.abs(_pixels(sent.data).astype(int) - expected).max() <= 2


def test_inks_become_colors(tmp_path: Path) -> None:
    """Readers do not agree on what inks without a profile look like."""
    sent = sent_input(kept(tmp_path, encoded(Image.new("CMYK", SIZE), "JPEG")))
    assert (sent.mime_type, sent.changed) == ("image/png", ("inks",))
    assert _pixels(sent.data).shape == (20, 30, 3)


def test_a_data_url_holds_the_bytes(tmp_path: Path) -> None:
    """Under their type."""
    data = encoded(noise(SIZE), "WEBP")
    assert sent_input(kept(tmp_path, data)).data_url == f"data:image/webp;base64,{base64_of(data)}"


def test_another_image_under_the_name_is_not_sent(tmp_path: Path) -> None:
    """Nor a file that is missing, or is no image."""
    reference = kept(tmp_path, encoded(noise(SIZE), "PNG"))
    assert reference.file is not None
    reference.file.write_bytes(encoded(noise((5, 5)), "PNG"))
    for bad in (reference, ImageRef("0" * 64), kept(tmp_path, b"<html>")):
        with pytest.raises(ImageError):
            sent_input(bad)
