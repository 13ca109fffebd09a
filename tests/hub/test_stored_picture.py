"""Pictures are stored so that what is measured later is what was given."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from echo_hf.errors import ScoreError
from echo_hf.hub.evaluate_configs import stored_picture
from echo_hf.images.decode import BadPictureError
from echo_hf.images.loader import load_picture
from tests.pictures_for_tests import encoded, noise, rgb_profile

LEVELS = np.random.default_rng(3).integers(0, 256, (9, 11, 4), dtype=np.uint8)
RGB = Image.fromarray(LEVELS[..., :3])
WIDE = Image.fromarray(np.arange(99, dtype=np.int32).reshape(9, 11) * 600)


def _keyed() -> Image.Image:
    picture = RGB.copy()
    picture.info["transparency"] = RGB.getpixel((2, 3))
    return picture


def _palette() -> Image.Image:
    picture = RGB.quantize(7)
    picture.info["transparency"] = bytes([0, 128, 255])
    return picture


def _turned() -> Image.Image:
    picture = Image.open(io.BytesIO(encoded(RGB, "JPEG", exif=_orientation(6))))
    picture.load()
    return picture


def _orientation(value: int) -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = value
    return exif


def _profiled() -> Image.Image:
    picture = RGB.copy()
    picture.info["icc_profile"] = rgb_profile("adobe", 2.2)
    return picture


IN_MEMORY = {
    **{mode: RGB.convert(mode) for mode in ("1", "L", "RGB", "CMYK", "YCbCr", "HSV")},
    "LA": Image.merge("LA", RGB.split()[:2]),
    "RGBA": Image.fromarray(LEVELS),
    "RGBa": Image.fromarray(LEVELS).convert("RGBa"),
    "LAB": Image.merge("LAB", RGB.split()),
    "I;16": Image.fromarray(np.asarray(WIDE).astype(np.uint16)),
    "I": WIDE,
    "transparent colour": _keyed(),
    "palette": _palette(),
    "orientation": _turned(),
    "profile": _profiled(),
}


@pytest.mark.parametrize("picture", IN_MEMORY.values(), ids=IN_MEMORY)
def test_no_pixel_of_a_picture_in_memory_changes(picture: Image.Image) -> None:
    """What is loaded from the store is what the loader makes of the picture itself."""
    stored = stored_picture(picture, "p")
    assert stored is not None
    assert stored["path"] is None
    found, expected = load_picture(stored["bytes"]), load_picture(picture)
    assert np.array_equal(np.asarray(found.image), np.asarray(expected.image))
    assert found.notices == expected.notices


@pytest.mark.parametrize(
    "picture", [WIDE.point(lambda level: level * 9), WIDE.convert("F")], ids=["I", "F"]
)
def test_a_picture_of_unknown_range_stays_one(picture: Image.Image) -> None:
    """Levels that fit no 16 bits are not cut to fit: there is no number for them either way."""
    stored = stored_picture(picture, "p")
    assert stored is not None
    for source in (picture, stored["bytes"]):
        with pytest.raises(BadPictureError, match=r"pixels of mode|values from"):
            load_picture(source)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF", "TIFF"])
def test_an_opened_file_is_its_bytes(kind: str) -> None:
    """A picture that Pillow has not decoded yet is stored as its file, and can still be used."""
    data = encoded(noise((40, 30)), kind)
    picture = Image.open(io.BytesIO(data))
    assert stored_picture(picture, "p") == {"bytes": data, "path": None}
    fresh = Image.open(io.BytesIO(data))
    assert picture.convert("RGB").tobytes() == fresh.convert("RGB").tobytes()


def test_a_decoded_file_is_written_anew() -> None:
    """It may have been drawn on since."""
    picture = Image.open(io.BytesIO(encoded(noise((40, 30)), "PNG")))
    picture.paste((1, 2, 3), (0, 0, 40, 30))
    stored = stored_picture(picture, "p")
    assert stored is not None
    assert load_picture(stored["bytes"]).image.getpixel((7, 7)) == (1, 2, 3)


def test_the_frame_that_a_picture_is_at_is_stored() -> None:
    """Of an animation that was turned to its second frame, that one."""
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue")]
    data = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    picture = Image.open(io.BytesIO(data))
    picture.seek(1)
    stored = stored_picture(picture, "p")
    assert stored is not None
    assert load_picture(stored["bytes"]).image.getpixel((4, 4)) == (0, 0, 255)


def test_a_cut_file_keeps_its_reason() -> None:
    """A broken picture that Pillow opened is stored as it is, to be counted for what it is."""
    data = encoded(noise((200, 200)), "PNG")[:9000]
    assert stored_picture(Image.open(io.BytesIO(data)), "p") == {"bytes": data, "path": None}


def test_paths_become_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may read them, from another folder; the file is not read before."""
    monkeypatch.chdir(tmp_path)
    expected = {"bytes": None, "path": str(tmp_path / "later.png")}
    assert stored_picture(Path("later.png"), "p") == expected


def test_bytes_and_null_stay_as_they_are() -> None:
    """Even bytes that are no picture: why, the metric says."""
    assert stored_picture(b"no picture", "p") == {"bytes": b"no picture", "path": None}
    assert stored_picture(None, "p") is None


def test_a_closed_picture_is_refused(tmp_path: Path) -> None:
    """Nothing of it can be read any more; the line says which it is and what to give."""
    RGB.save(tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as picture:
        pass
    with pytest.raises(
        ScoreError, match=r"^predictions\[3\]: .* or the path of its file"
    ) as caught:
        stored_picture(picture, "predictions[3]")
    assert "\n" not in str(caught.value)
