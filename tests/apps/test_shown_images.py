"""Images as pages get them: under names that tell nothing, and bare."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from echo_hf.apps.page import ROUTE, ShownImages, packed
from echo_hf.errors import ImageError
from echo_hf.images.store import ImageStore
from tests.apps.rank.ranked_run import drawing
from tests.images_for_tests import encoded, noise


@pytest.fixture
def store(tmp_path: Path) -> ImageStore:
    """A run's images."""
    return ImageStore(tmp_path / "pictures")


def name(images: ShownImages, digest: str) -> str:
    """The name that an image is served under."""
    return images.address(digest).removeprefix(ROUTE)


def test_only_what_may_be_shown_is_served(store: ImageStore) -> None:
    """Another image of the same folder has an address, too, and nothing answers there."""
    shown, other = store.put(drawing("oxlip")), store.put(drawing("quixel"))
    images = ShownImages.of(store, [shown])
    assert images.png(name(images, shown)) is not None
    for unknown in (name(images, other), shown, other, "", "..", f"../{shown[:2]}/{shown}"):
        assert images.png(unknown) is None


def test_names_tell_nothing_and_are_others_each_time(store: ImageStore) -> None:
    """Who has the images cannot tell from its name which one it is."""
    digest = store.put(drawing("oxlip"))
    first, second = (ShownImages.of(store, [digest]) for _ in range(2))
    assert re.fullmatch(r"/image/[0-9a-f]{32}", first.address(digest))
    assert first.address(digest) == first.address(digest)
    assert first.address(digest) != second.address(digest)
    assert digest[:8] not in first.address(digest)
    assert "secret" not in repr(first)


def test_pixels_are_the_same_and_nothing_else_is_left(store: ImageStore) -> None:
    """The file said who drew it, in a text chunk; the PNG that is served does not."""
    data = drawing("oxlip")
    assert b"oxlip" in data
    bare = packed(data)
    assert b"oxlip" not in bare
    with Image.open(io.BytesIO(bare)) as found, Image.open(io.BytesIO(data)) as before:
        assert found.format == "PNG"
        assert found.info == {}
        assert np.array_equal(np.asarray(found), np.asarray(before))


@pytest.mark.parametrize("form", ["JPEG", "WEBP", "TIFF", "BMP", "GIF"])
def test_all_formats_look_alike(form: str) -> None:
    """A browser shows each, and nobody sees by the format who made it."""
    with Image.open(io.BytesIO(packed(encoded(noise((40, 30)), form)))) as found:
        assert (found.format, found.size, found.mode) == ("PNG", (40, 30), "RGB")


def test_large_images_are_made_smaller_and_keep_their_shape() -> None:
    """Within 2048 pixels either way."""
    with Image.open(io.BytesIO(packed(encoded(Image.new("RGB", (4096, 1024)), "PNG")))) as found:
        assert found.size == (2048, 512)


def test_an_image_that_is_gone_is_an_error(store: ImageStore) -> None:
    """Its file was deleted after the start."""
    digest = store.put(drawing("oxlip"))
    images = ShownImages.of(store, [digest])
    store.path(digest).unlink()
    with pytest.raises(ImageError):
        images.png(name(images, digest))
