"""Small copies: size, colours, and what cannot be shown."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from echo_hf.pictures import PictureStore
from echo_hf.report.thumbnails import looked_at, reduced
from tests.report.run_data_for_tests import picture


@given(st.integers(1, 900), st.integers(1, 900))
def test_a_copy_keeps_its_shape(width: int, height: int) -> None:
    """No side is longer than asked or shorter than a pixel, and none grows."""
    small = reduced(Image.new("RGB", (width, height)), 100)
    part = min(1, 100 / max(width, height))
    assert small.size == (max(1, round(width * part)), max(1, round(height * part)))


def test_copies_lie_beside_the_page(tmp_path: Path) -> None:
    """A copy is a WebP named by the picture's digest, of its colour; its levels are counted."""
    pictures = PictureStore(tmp_path / "pictures")
    digest = pictures.put(picture((10, 200, 30), (640, 320)))
    (found,) = looked_at([digest], pictures, tmp_path)
    assert found.thumbnail is not None
    assert found.thumbnail.source == f"thumbs/{digest[:20]}.webp"
    assert (found.thumbnail.width, found.thumbnail.height) == (320, 160)
    with Image.open(tmp_path / found.thumbnail.source) as small:
        assert small.format == "WEBP"
        middle = np.asarray(small.convert("RGB"))[80, 160]
    assert np.abs(middle - np.array([10, 200, 30])).max() <= 6
    assert found.counts is not None
    assert [int(found.counts[channel].argmax()) for channel in range(3)] == [10, 200, 30]
    assert found.counts.sum() == 3 * 640 * 320


def test_a_page_may_hold_its_pictures(tmp_path: Path) -> None:
    """Without a folder, a copy is the same WebP as text, and nothing is written."""
    pictures = PictureStore(tmp_path / "pictures")
    digest = pictures.put(picture((10, 200, 30)))
    (held,) = looked_at([digest], pictures, None)
    (lying,) = looked_at([digest], pictures, tmp_path)
    assert held.thumbnail is not None
    assert lying.thumbnail is not None
    kind, text = held.thumbnail.source.split(",")
    assert kind == "data:image/webp;base64"
    assert base64.b64decode(text) == (tmp_path / lying.thumbnail.source).read_bytes()


@pytest.mark.parametrize("digest", ["0" * 64, "../../etc/passwd", "<script>"])
def test_pictures_that_are_not_there(tmp_path: Path, digest: str) -> None:
    """What the run does not hold, or what is no digest, is named and leads nowhere."""
    (found,) = looked_at([digest], PictureStore(tmp_path / "pictures"), tmp_path)
    assert found.thumbnail is None
    assert found.problem == "the run does not hold it"
    assert list((tmp_path / "thumbs").iterdir()) == []


def test_pictures_that_cannot_be_shown(tmp_path: Path) -> None:
    """A picture whose shape cannot be measured has the reason of the one loader."""
    pictures = PictureStore(tmp_path / "pictures")
    sink = io.BytesIO()
    Image.new("RGB", (1, 9)).save(sink, "PNG")
    (found,) = looked_at([pictures.put(sink.getvalue())], pictures, tmp_path)
    assert (found.thumbnail, found.problem) == (None, "too_small")
