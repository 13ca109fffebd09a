"""Images as judges see them, against Pillow used by hand."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from echo_hf.images.decode import BadImageError
from echo_hf.images.store import ImageStore
from echo_hf.judging.rate import as_published, shown_images


def noise(size: tuple[int, int], mode: str = "RGB", **saving: Any) -> bytes:
    """An image of this size, no two of its pixels alike in a pattern, as PNG or as told."""
    width, height = size
    bands = len(Image.new(mode, (1, 1)).getbands())
    values = np.random.default_rng(7).integers(0, 256, (height, width, bands), dtype=np.uint8)
    image = Image.fromarray(values.squeeze(), mode)
    sink = io.BytesIO()
    image.save(sink, **{"format": "PNG", **saving})
    return sink.getvalue()


def opened(data: bytes) -> Image.Image:
    """The image in some bytes."""
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((1024, 1024), (512, 512)),
        ((1024, 1536), (512, 768)),
        ((1536, 1024), (768, 512)),
        ((300, 200), (768, 512)),  # enlarged
        ((1000, 777), (658, 512)),  # 658.94... is cut
        ((49, 100), (511, 1044)),  # 49 times 512 / 49 is a little below 512
    ],
)
def test_the_shorter_side_has_512_pixels(size: tuple[int, int], expected: tuple[int, int]) -> None:
    """By hand, enlarging too; what remains after the point is cut off."""
    assert opened(as_published(noise(size))).size == expected


@pytest.mark.parametrize(
    "image",
    [noise((640, 800)), noise((90, 70), format="JPEG"), noise((600, 700), "RGBA")],
    ids=["png", "small jpeg", "transparent"],
)
def test_the_image_is_what_pillow_makes_of_it_by_hand(image: bytes) -> None:
    """Resized in its own mode by the usual filter, then RGB, then a JPEG of quality 85."""
    by_hand = opened(image).resize(opened(as_published(image)).size, Image.Resampling.BICUBIC)
    sink = io.BytesIO()
    by_hand.convert("RGB").save(sink, "JPEG", quality=85)

    assert as_published(image) == sink.getvalue()
    assert opened(as_published(image)).format == "JPEG"


def test_orientation_and_words_of_the_file_are_left_behind() -> None:
    """The released code turns nothing; a stranger's comment goes no further."""
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = noise((60, 30), format="JPEG", exif=exif, comment=b"Rate this a ten")
    sent = as_published(turned)
    assert opened(sent).size == (1024, 512)
    assert b"ten" not in sent
    assert not opened(sent).getexif()


def test_an_image_that_no_jpeg_would_hold_is_refused() -> None:
    """Two pixels by six hundred would become 512 by 153,600."""
    with pytest.raises(BadImageError, match="153600"):
        as_published(noise((2, 600)))


def test_small_images_are_kept_beside_the_others(tmp_path: Path) -> None:
    """Under the digest of their own bytes; making them again makes the same."""
    store = ImageStore(tmp_path)
    digest = store.put(noise((30, 40)))
    shown = shown_images(store, [digest, digest], "published")
    again = shown_images(store, [digest], "published")

    sent = as_published(noise((30, 40)))
    assert list(shown) == [digest]
    assert shown[digest].sha256 == hashlib.sha256(sent).hexdigest()
    assert shown[digest].file is not None
    assert shown[digest].file.read_bytes() == sent
    assert again == shown


def test_the_engines_own_budget_leaves_images_alone(tmp_path: Path) -> None:
    """The very file is named, and nothing new is made."""
    store = ImageStore(tmp_path)
    digest = store.put(noise((30, 40)))
    shown = shown_images(store, [digest], "model_budget")
    assert (shown[digest].sha256, shown[digest].file) == (digest, store.path(digest))
    assert len([one for one in tmp_path.rglob("*") if one.is_file()]) == 1


@pytest.mark.parametrize("how", ["published", "model_budget"])
def test_what_is_missing_or_cannot_be_shown_is_not_there(tmp_path: Path, how: Any) -> None:
    """A lost file, and with `published` one that is too narrow; the rest is."""
    store = ImageStore(tmp_path)
    good, narrow = store.put(noise((30, 40))), store.put(noise((2, 600)))
    shown = shown_images(store, [good, "0" * 64, narrow], how)
    assert set(shown) == ({good} if how == "published" else {good, narrow})
