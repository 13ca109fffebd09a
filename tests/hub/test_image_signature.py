"""What is told of an image that is left out: a thumbnail of blocks, to know a copy by."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageFilter

from echo_hf.errors import SpanError
from echo_hf.hub.dehydrate import distance, image_signature, size_in
from tests.collect.images_like_posts import photograph, tinted
from tests.images_for_tests import encoded

IMAGE = photograph(3)
COPIES: dict[str, Callable[[Image.Image], bytes]] = {
    "itself": lambda one: encoded(one, "PNG"),
    "jpeg": lambda one: encoded(one, "JPEG", quality=75),
    "webp": lambda one: encoded(one, "WEBP", quality=80),
    "half": lambda one: encoded(one.resize((one.width // 2, one.height // 2)), "PNG"),
}
OTHERS: dict[str, Callable[[Image.Image], bytes]] = {
    "tint": lambda one: encoded(tinted(one, 2, 0.94), "PNG"),
    "mirror": lambda one: encoded(one.transpose(Image.Transpose.FLIP_LEFT_RIGHT), "PNG"),
    "crop": lambda one: encoded(one.crop((8, 8, one.width - 8, one.height - 8)), "PNG"),
    "another": lambda _: encoded(photograph(4), "PNG"),
    "squashed": lambda one: encoded(one.resize((one.width, one.height + 60)), "PNG"),
    "darker": lambda one: encoded(one.point(lambda level: level * 0.95), "PNG"),
    "blurred": lambda one: encoded(one.filter(ImageFilter.GaussianBlur(30)), "PNG"),
}


@pytest.fixture
def signature(tmp_path: Path) -> str:
    """The signature of an image."""
    path = tmp_path / "original"
    path.write_bytes(encoded(IMAGE, "PNG"))
    found = image_signature(path)
    assert found is not None
    return found


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_is_known(signature: str, tmp_path: Path, name: str) -> None:
    """Packed again or made smaller; the very image is at no distance."""
    (tmp_path / "copy").write_bytes(COPIES[name](IMAGE))
    levels = distance(tmp_path / "copy", signature)
    assert levels is not None
    assert 0 <= levels < 1
    assert (levels == 0) is (name == "itself")


@pytest.mark.parametrize("name", OTHERS)
def test_another_image_is_no_copy(signature: str, tmp_path: Path, name: str) -> None:
    """Other colors, another shape, other things."""
    (tmp_path / "other").write_bytes(OTHERS[name](IMAGE))
    assert distance(tmp_path / "other", signature) is None


def test_a_signature_is_size_and_blocks(signature: str) -> None:
    """Two bytes a mean and one a contrast, of 4 channels in 16 by 16 blocks, read here by hand."""
    size, _, text = signature.partition(":")
    assert size == f"{IMAGE.width}x{IMAGE.height}"
    data = base64.b64decode(text)
    assert len(data) == 16 * 16 * 4 * 3
    brightness = np.frombuffer(data, "<f2", 16 * 16 * 4).reshape(16, 16, 4)[..., 0]
    grey = np.asarray(IMAGE.convert("L").resize((16, 16), Image.Resampling.BOX), float)
    assert np.abs(brightness - grey).max() < 2
    assert size_in(signature) == IMAGE.size


def test_what_cannot_be_shown_has_no_signature(tmp_path: Path) -> None:
    """Then only the very bytes will do."""
    (tmp_path / "dot").write_bytes(encoded(Image.new("RGB", (1, 1)), "PNG"))
    assert image_signature(tmp_path / "dot") is None


@given(
    st.text(max_size=40)
    | st.binary(max_size=40).map(lambda data: f"4x4:{base64.b64encode(data).decode()}")
    | st.sampled_from([f"0x4:{'A' * 4096}", f"9x9:{'/' * 4096}", f"9999999x1:{'A' * 4096}"])
)
def test_anything_else_is_an_error(text: str) -> None:
    """One line, whatever a stranger's release holds."""
    with pytest.raises(SpanError, match="not a signature"):
        size_in(text)
