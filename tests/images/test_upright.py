"""What a model is shown of an image file, and what is refused."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from echo_hf.errors import ImageError
from echo_hf.images import loader
from echo_hf.images.decode import BadImageError
from echo_hf.images.loader import upright_rgb
from echo_hf.images.store import FORMATS
from echo_hf.reasons import BadImage

RANDOM = np.random.default_rng(4)
NOISE = RANDOM.integers(0, 256, (30, 40, 3), dtype=np.uint8)


def _file(folder: Path, image: Image.Image, name: str = "PNG", **options: object) -> Path:
    path = folder / "picture"
    image.save(path, name, **options)
    return path


def _refused(path: Path, sha256: str | None = None) -> str:
    with pytest.raises(ImageError) as caught:
        upright_rgb(path, sha256)
    assert "\n" not in str(caught.value)
    assert str(path.parent) not in str(caught.value)
    return str(caught.value)


def test_an_image_is_loaded_the_one_way(tmp_path: Path) -> None:
    """The camera's turn is undone, by numpy's own, and a half clear black is grey on white."""
    exif = Image.Exif()
    exif[0x0112] = 6
    pixels = np.dstack([NOISE, np.full(NOISE.shape[:2], 255, np.uint8)])
    pixels[0, 0] = (0, 0, 0, 128)
    shown = np.asarray(upright_rgb(_file(tmp_path, Image.fromarray(pixels, "RGBA"), exif=exif)))
    expected = pixels[..., :3].copy()
    expected[0, 0] = 127
    np.testing.assert_array_equal(shown, np.rot90(expected, -1))


def test_the_file_stays_as_it_was(tmp_path: Path) -> None:
    """Looking at an image writes nothing."""
    path = _file(tmp_path, Image.fromarray(NOISE), "JPEG")
    before = path.read_bytes()
    assert upright_rgb(path, hashlib.sha256(before).hexdigest()).mode == "RGB"
    assert path.read_bytes() == before


def test_a_missing_image_says_what_to_do(tmp_path: Path) -> None:
    """One line with its name, without the folders of somebody's machine."""
    assert _refused(tmp_path / "ab12") == (
        "image 'ab12' cannot be read, No such file or directory: run `collect` again to fetch it"
    )
    assert "Is a directory" in _refused(tmp_path)


def test_other_bytes_than_those_asked_for_are_refused(tmp_path: Path) -> None:
    """An answer about another image would be kept under this one's digest."""
    path = _file(tmp_path, Image.fromarray(NOISE))
    digest = "0" * 64
    assert _refused(path, digest) == f"image {digest!r} has changed on disk: run `collect` again"


def test_what_cannot_be_shown_says_why(tmp_path: Path) -> None:
    """Whatever its name: the reason from the closed list, and the file's name."""
    (tmp_path / "a.jpg").write_bytes(b"<svg/>")
    with pytest.raises(BadImageError, match=r"^image 'a\.jpg': it is a drawing in SVG") as caught:
        upright_rgb(tmp_path / "a.jpg")
    assert caught.value.reason is BadImage.SVG


def test_a_file_that_is_too_long_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit of the image store holds here as well; the test lowers it."""
    path = _file(tmp_path, Image.fromarray(NOISE))
    length = path.stat().st_size
    monkeypatch.setattr(loader, "MOST_BYTES", length)
    assert upright_rgb(path).size == (40, 30)
    monkeypatch.setattr(loader, "MOST_BYTES", length - 1)
    assert _refused(path) == f"image 'picture' has more than {length - 1} bytes"


@given(
    st.sampled_from(FORMATS),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=8),
    st.floats(0.1, 1),
)
def test_damaged_bytes_are_shown_or_refused(
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    changes: list[tuple[int, int]],
    share: float,
) -> None:
    """Whatever a decoder trips over, it is a ImageError of one line and no other."""
    file = io.BytesIO()
    Image.fromarray(NOISE).save(file, name)
    data = bytearray(file.getvalue())
    for at, value in changes:
        data[at % len(data)] = value
    path = tmp_path_factory.mktemp("damaged") / "picture"
    path.write_bytes(data[: round(share * len(data))])
    try:
        shown = upright_rgb(path)
    except ImageError as error:
        assert "\n" not in str(error)  # noqa: PT017 - both outcomes are right
    else:
        assert shown.mode == "RGB"
