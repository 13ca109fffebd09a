"""Images are stored so that what is measured later is what was given."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from echo_hf.errors import ScoreError
from echo_hf.hub.evaluate_metric import stored_image
from echo_hf.images.decode import BadImageError
from echo_hf.images.loader import load_image
from tests.images_for_tests import encoded, noise, rgb_profile

LEVELS = np.random.default_rng(3).integers(0, 256, (9, 11, 4), dtype=np.uint8)
RGB = Image.fromarray(LEVELS[..., :3])
WIDE = Image.fromarray(np.arange(99, dtype=np.int32).reshape(9, 11) * 600)


def _having(image: Image.Image, **info: Any) -> Image.Image:
    image.info |= info
    return image


def _turned() -> Image.Image:
    exif = Image.Exif()
    exif[0x0112] = 6
    image = Image.open(io.BytesIO(encoded(RGB, "JPEG", exif=exif)))
    image.load()
    return image


IN_MEMORY = {
    **{mode: RGB.convert(mode) for mode in ("1", "L", "RGB", "CMYK", "YCbCr", "HSV")},
    "LA": Image.merge("LA", RGB.split()[:2]),
    "RGBA": Image.fromarray(LEVELS),
    "RGBa": Image.fromarray(LEVELS).convert("RGBa"),
    "LAB": Image.merge("LAB", RGB.split()),
    "I;16": Image.fromarray(np.asarray(WIDE).astype(np.uint16)),
    "I": WIDE,
    "transparent color": _having(RGB.copy(), transparency=RGB.getpixel((2, 3))),
    "palette": _having(RGB.quantize(7), transparency=bytes([0, 128, 255])),
    "orientation": _turned(),
    "profile": _having(RGB.copy(), icc_profile=rgb_profile("adobe", 2.2)),
}


@pytest.mark.parametrize("image", IN_MEMORY.values(), ids=IN_MEMORY)
def test_no_pixel_of_an_image_in_memory_changes(image: Image.Image) -> None:
    stored = stored_image(image, "p")
    assert stored is not None
    assert stored["path"] is None
    found, expected = load_image(stored["bytes"]), load_image(image)
    assert np.array_equal(np.asarray(found.image), np.asarray(expected.image))
    assert found.notices == expected.notices


@pytest.mark.parametrize(
    "image", [WIDE.point(lambda level: level * 9), WIDE.convert("F")], ids=["I", "F"]
)
def test_an_image_of_unknown_range_stays_one(image: Image.Image) -> None:
    stored = stored_image(image, "p")
    assert stored is not None
    for source in (image, stored["bytes"]):
        with pytest.raises(BadImageError, match=r"pixels of mode|values from"):
            load_image(source)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF", "TIFF"])
def test_an_opened_file_is_its_bytes(kind: str) -> None:
    data = encoded(noise((40, 30)), kind)
    image, fresh = (Image.open(io.BytesIO(data)) for _ in range(2))
    assert stored_image(image, "p") == {"bytes": data, "path": None}
    assert image.convert("RGB").tobytes() == fresh.convert("RGB").tobytes()


def test_what_is_shown_now_is_stored() -> None:
    """Of a file that was decoded its pixels, of an animation the frame that it is at."""
    changed = Image.open(io.BytesIO(encoded(noise((40, 30)), "PNG")))
    changed.paste((0, 0, 255), (0, 0, 40, 30))
    frames = [Image.new("RGB", (8, 8), color) for color in ("red", "blue")]
    data = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    animated = Image.open(io.BytesIO(data))
    animated.seek(1)
    for image in (changed, animated):
        stored = stored_image(image, "p")
        assert stored is not None
        assert load_image(stored["bytes"]).image.getpixel((4, 4)) == (0, 0, 255)


def test_paths_bytes_and_null_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    expected = {"bytes": None, "path": str(tmp_path / "later.png")}
    assert stored_image(Path("later.png"), "p") == expected
    assert stored_image(b"no picture", "p") == {"bytes": b"no picture", "path": None}
    assert stored_image(None, "p") is None


def test_a_closed_image_is_refused(tmp_path: Path) -> None:
    RGB.save(tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as image:
        pass
    with pytest.raises(
        ScoreError, match=r"^predictions\[3\]: .* or the path of its file"
    ) as caught:
        stored_image(image, "predictions[3]")
    assert "\n" not in str(caught.value)
