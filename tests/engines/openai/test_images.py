"""Images as servers get them."""

from __future__ import annotations

import base64
import hashlib
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from echo_hf.engines.base import ImageRef
from echo_hf.engines.openai_messages import PixelRule, data_url, mime_type, pixel_rule, read_options
from echo_hf.errors import ImageError

NOISE = np.random.default_rng(0).integers(0, 256, (30, 50, 3), dtype=np.uint8)


def _image(folder: Path, kind: str) -> ImageRef:
    file = folder / "picture"
    Image.fromarray(NOISE).save(file, kind)
    return ImageRef(hashlib.sha256(file.read_bytes()).hexdigest(), file)


def _sent(url: str) -> tuple[str, bytes]:
    head, _, data = url.partition(",")
    return head, base64.b64decode(data, validate=True)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
def test_what_every_server_takes_is_sent_as_it_is(tmp_path: Path, kind: str) -> None:
    """The very bytes, under their own type, whatever the file is called."""
    image = _image(tmp_path, kind)
    head, data = _sent(data_url(image, None))
    assert head == f"data:image/{kind.lower()};base64"
    assert hashlib.sha256(data).hexdigest() == image.sha256


@pytest.mark.parametrize("kind", ["BMP", "TIFF"])
def test_other_formats_are_sent_as_png(tmp_path: Path, kind: str) -> None:
    """With the same pixels."""
    head, data = _sent(data_url(_image(tmp_path, kind), None))
    assert head == "data:image/png;base64"
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(data))), NOISE)


def test_a_wave_file_is_no_image() -> None:
    """It begins like WEBP."""
    assert mime_type(b"RIFF\x00\x00\x00\x00WEBPVP8 ") == "image/webp"
    assert mime_type(b"RIFF\x00\x00\x00\x00WAVEfmt ") is None


def test_a_budget_resizes_by_the_familys_rule(tmp_path: Path) -> None:
    """50 x 30 is 1500 pixels; at most 800 is 36 x 21 before rounding: one patch of 28 each way."""
    rule = PixelRule("qwen2_5_vl", 784, 800)
    head, data = _sent(data_url(_image(tmp_path, "JPEG"), rule))
    assert head == "data:image/png;base64"
    assert Image.open(io.BytesIO(data)).size == (28, 28)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"model": "Qwen/Qwen2.5-VL-7B-Instruct"}, None),
        (
            {"model": "Qwen/Qwen2.5-VL-7B-Instruct", "max_pixels": 1_003_520},
            {"factor": 28, "min_pixels": 3136, "max_pixels": 1_003_520},
        ),
        (
            {"model": "served-name", "family": "qwen3_vl"},
            {"factor": 32, "min_pixels": 65_536, "max_pixels": 16_777_216},
        ),
        (
            {"model": "served-name", "max_pixels": 500},
            {"factor": 1, "min_pixels": 1, "max_pixels": 500},
        ),
    ],
    ids=["none asked for", "family by the name", "family by name of its own", "any family"],
)
def test_the_rule_follows_what_is_asked_for(
    options: dict[str, object], expected: dict[str, int] | None
) -> None:
    """Images are left alone unless a budget or a family is given; numbers are Qwen's own."""
    rule = pixel_rule(read_options(options))
    assert (rule and rule.describe()) == expected


@pytest.mark.parametrize("rule", [None, PixelRule("qwen2_5_vl", None, None)])
def test_an_image_that_cannot_be_sent_is_told(tmp_path: Path, rule: PixelRule | None) -> None:
    """No file, a missing one, other bytes than it was asked for, half an image."""
    whole = _image(tmp_path, "PNG")
    assert whole.file is not None
    half = tmp_path / "half"
    half.write_bytes(whole.file.read_bytes()[:900])
    digest = hashlib.sha256(half.read_bytes()).hexdigest()
    for broken in (
        ImageRef(whole.sha256),
        ImageRef(whole.sha256, tmp_path / "gone"),
        ImageRef("0" * 64, whole.file),
        ImageRef(digest, half),
    ):
        with pytest.raises(ImageError):
            data_url(broken, rule)
