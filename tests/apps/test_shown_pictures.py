"""Pictures as pages get them: under names that tell nothing, and bare."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from echo_hf.apps.page import ROUTE, ShownPictures, packed
from echo_hf.errors import PictureError
from echo_hf.images.store import PictureStore
from tests.apps.rank.ranked_run import drawing
from tests.pictures_for_tests import encoded, noise


@pytest.fixture
def store(tmp_path: Path) -> PictureStore:
    """A run's pictures."""
    return PictureStore(tmp_path / "pictures")


def name(pictures: ShownPictures, digest: str) -> str:
    """The name that a picture is served under."""
    return pictures.address(digest).removeprefix(ROUTE)


def test_only_what_may_be_shown_is_served(store: PictureStore) -> None:
    """Another picture of the same folder has an address, too, and nothing answers there."""
    shown, other = store.put(drawing("oxlip")), store.put(drawing("quixel"))
    pictures = ShownPictures.of(store, [shown])
    assert pictures.png(name(pictures, shown)) is not None
    for unknown in (name(pictures, other), shown, other, "", "..", f"../{shown[:2]}/{shown}"):
        assert pictures.png(unknown) is None


def test_names_tell_nothing_and_are_others_each_time(store: PictureStore) -> None:
    """Who has the pictures cannot tell from its name which one it is."""
    digest = store.put(drawing("oxlip"))
    first, second = (ShownPictures.of(store, [digest]) for _ in range(2))
    assert re.fullmatch(r"/picture/[0-9a-f]{32}", first.address(digest))
    assert first.address(digest) == first.address(digest)
    assert first.address(digest) != second.address(digest)
    assert digest[:8] not in first.address(digest)
    assert "secret" not in repr(first)


def test_pixels_are_the_same_and_nothing_else_is_left(store: PictureStore) -> None:
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


def test_large_pictures_are_made_smaller_and_keep_their_shape() -> None:
    """Within 2048 pixels either way."""
    with Image.open(io.BytesIO(packed(encoded(Image.new("RGB", (4096, 1024)), "PNG")))) as found:
        assert found.size == (2048, 512)


def test_a_picture_that_is_gone_is_an_error(store: PictureStore) -> None:
    """Its file was deleted after the start."""
    digest = store.put(drawing("oxlip"))
    pictures = ShownPictures.of(store, [digest])
    store.path(digest).unlink()
    with pytest.raises(PictureError):
        pictures.png(name(pictures, digest))
