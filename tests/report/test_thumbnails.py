"""Small copies: size, colors, and what cannot be shown."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from echo_hf.images.store import ImageStore
from echo_hf.report.thumbnails import looked_at, reduced
from tests.report.run_data_for_tests import image


@given(st.integers(1, 900), st.integers(1, 900))
def test_a_copy_keeps_its_shape(width: int, height: int) -> None:
    """A side becomes as many pixels as it has blocks, the smallest blocks that make it fit."""
    small = reduced(Image.new("RGB", (width, height)), 100)
    (block,) = {n for n in range(1, 10) if max(width, height) in range(100 * n - 99, 100 * n + 1)}
    assert small.size == (-(-width // block), -(-height // block))


def test_a_copy_is_the_mean_of_blocks() -> None:
    """Each pixel of a copy is the mean of a block of pixels, within one level."""
    levels = np.random.default_rng(0).integers(0, 256, (6, 9, 3), np.uint8)
    small = np.asarray(reduced(Image.fromarray(levels), 3))
    means = levels.reshape(2, 3, 3, 3, 3).mean((1, 3))
    assert np.abs(small - means).max() < 1


def test_copies_lie_beside_the_page(tmp_path: Path) -> None:
    """A copy is a JPEG named by the image's digest, of its color; its levels are counted."""
    images = ImageStore(tmp_path / "pictures")
    digest = images.put(image((10, 200, 30), (640, 320)))
    (found,) = looked_at([digest], images, tmp_path, {digest})
    assert found.thumbnail is not None
    assert found.thumbnail.source == f"thumbs/{digest[:20]}.jpg"
    assert (found.thumbnail.width, found.thumbnail.height) == (320, 160)
    with Image.open(tmp_path / found.thumbnail.source) as small:
        assert small.format == "JPEG"
        middle = np.asarray(small.convert("RGB"))[80, 160]
    assert np.abs(middle - np.array([10, 200, 30])).max() <= 6
    assert found.counts is not None
    assert [int(found.counts[channel].argmax()) for channel in range(3)] == [10, 200, 30]
    assert found.counts.sum() == 3 * 640 * 320


def test_a_page_may_hold_its_images(tmp_path: Path) -> None:
    """Without a folder, a copy is the same JPEG as text, and nothing is written."""
    images = ImageStore(tmp_path / "pictures")
    digest = images.put(image((10, 200, 30)))
    (held,) = looked_at([digest], images, None, ())
    (lying,) = looked_at([digest], images, tmp_path, {digest})
    assert held.thumbnail is not None
    assert lying.thumbnail is not None
    kind, text = held.thumbnail.source.split(",")
    assert kind == "data:image/jpeg;base64"
    assert base64.b64decode(text) == (tmp_path / lying.thumbnail.source).read_bytes()


@pytest.mark.parametrize("digest", ["0" * 64, "../../etc/passwd", "<script>"])
def test_images_that_are_not_there(tmp_path: Path, digest: str) -> None:
    """What the run does not hold, or what is no digest, is named and leads nowhere."""
    (found,) = looked_at([digest], ImageStore(tmp_path / "pictures"), tmp_path, ())
    assert found.thumbnail is None
    assert found.problem == "the run does not hold it"
    assert list((tmp_path / "thumbs").iterdir()) == []


def test_images_that_cannot_be_shown(tmp_path: Path) -> None:
    """An image whose shape cannot be measured has the reason of the one loader."""
    images = ImageStore(tmp_path / "pictures")
    sink = io.BytesIO()
    Image.new("RGB", (1, 9)).save(sink, "PNG")
    (found,) = looked_at([images.put(sink.getvalue())], images, tmp_path, ())
    assert (found.thumbnail, found.problem) == (None, "too_small")
