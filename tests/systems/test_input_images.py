"""The inputs of a task as images."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from echo_hf.engines.base import ImageRef
from echo_hf.errors import ImageError
from echo_hf.images.decode import BadImageError
from echo_hf.systems.images import open_inputs
from tests.systems.tasks_for_tests import blocks, image_file, task


def test_inputs_come_in_their_order(tmp_path: Path) -> None:
    """Each is the image that its file holds."""
    images = [blocks((8, 12), 1), blocks((20, 4), 2)]
    found = open_inputs(task(*(image_file(tmp_path, one) for one in images)))
    for one, other in zip(found, images, strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


def test_inputs_are_seen_upright_and_opaque(tmp_path: Path) -> None:
    """Transparency shows white, as everywhere."""
    reference = image_file(tmp_path, Image.new("RGBA", (2, 2), (255, 0, 0, 51)))
    assert open_inputs(task(reference))[0].getpixel((0, 0)) == (255, 204, 204)


def test_another_image_in_its_place_is_told(tmp_path: Path) -> None:
    """The task was about other bytes."""
    reference = image_file(tmp_path, blocks((8, 8), 1))
    assert reference.file is not None
    blocks((8, 8), 2).save(reference.file)
    with pytest.raises(ImageError, match="has changed on disk"):
        open_inputs(task(reference))


def test_an_image_without_a_file_is_told() -> None:
    """Only its digest is known."""
    with pytest.raises(ImageError, match=r"^image 'abc' has no file: run `collect` again$"):
        open_inputs(task(ImageRef("abc")))


def test_what_is_no_image_is_told(tmp_path: Path) -> None:
    """With the reason of the loader, and without the folder."""
    file = tmp_path / "notes.png"
    file.write_text("hello")
    digest = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    with pytest.raises(BadImageError) as caught:
        open_inputs(task(ImageRef(digest, file)))
    assert str(tmp_path) not in str(caught.value)
