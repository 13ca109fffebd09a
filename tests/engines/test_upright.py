"""What a model is shown of a picture file, and what is refused."""

from __future__ import annotations

import hashlib
import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from echo_hf.engines import upright
from echo_hf.engines.upright import upright_rgb
from echo_hf.errors import PictureError
from echo_hf.pictures import FORMATS

RANDOM = np.random.default_rng(4)
NOISE = RANDOM.integers(0, 256, (30, 40, 3), dtype=np.uint8)
ORIENTATION = 0x0112
# What a camera means by each number: how the stored pixels must be turned to stand upright.
TURNS = {
    1: lambda stored: stored,
    2: np.fliplr,
    3: lambda stored: np.rot90(stored, 2),
    4: np.flipud,
    5: lambda stored: stored.swapaxes(0, 1),
    6: lambda stored: np.rot90(stored, -1),
    7: lambda stored: np.rot90(stored, 2).swapaxes(0, 1),
    8: np.rot90,
}


def _file(folder: Path, picture: Image.Image, name: str = "PNG", **options: object) -> Path:
    path = folder / "picture"
    picture.save(path, name, **options)
    return path


def _refused(path: Path, sha256: str | None = None) -> str:
    with pytest.raises(PictureError) as caught:
        upright_rgb(path, sha256)
    assert "\n" not in str(caught.value)
    assert str(path.parent) not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("orientation", TURNS)
def test_a_turned_photo_stands_upright(tmp_path: Path, orientation: int) -> None:
    """Each of the camera's eight orientations is undone, by numpy's own turns and mirrors."""
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    shown = upright_rgb(_file(tmp_path, Image.fromarray(NOISE), exif=exif))
    np.testing.assert_array_equal(np.asarray(shown), TURNS[orientation](NOISE))


def test_the_file_stays_as_it_was(tmp_path: Path) -> None:
    """Looking at a picture writes nothing."""
    path = _file(tmp_path, Image.fromarray(NOISE), "JPEG")
    before = path.read_bytes()
    assert upright_rgb(path, hashlib.sha256(before).hexdigest()).mode == "RGB"
    assert path.read_bytes() == before


def test_what_is_transparent_shows_white(tmp_path: Path) -> None:
    """By the definition of alpha: a share a/255 of the colour and the rest of white."""
    pixels = RANDOM.integers(0, 256, (16, 16, 4), dtype=np.uint8)
    shown = np.asarray(upright_rgb(_file(tmp_path, Image.fromarray(pixels, "RGBA"))))
    alpha = pixels[..., 3:] / 255
    assert np.abs(shown - (pixels[..., :3] * alpha + 255 * (1 - alpha))).max() <= 1


def test_a_transparent_colour_of_a_palette_shows_white(tmp_path: Path) -> None:
    """The hidden colour behind it is not shown."""
    picture = Image.fromarray(np.array([[0, 1]], np.uint8), "P")
    picture.putpalette([200, 0, 0, 0, 0, 200])
    shown = upright_rgb(_file(tmp_path, picture, transparency=0))
    assert np.asarray(shown).tolist() == [[[255, 255, 255], [0, 0, 200]]]


def test_sixteen_bits_are_scaled_to_eight(tmp_path: Path) -> None:
    """Black stays black, white white, and each 257 values are one; nothing is cut off at 255."""
    values = np.array([[0, 255, 257, 32_768, 65_278, 65_535]], np.uint16)
    shown = upright_rgb(_file(tmp_path, Image.fromarray(values)))
    assert np.asarray(shown)[0, :, 0].tolist() == [0, 1, 1, 128, 254, 255]


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr", "I;16"])
def test_every_usual_mode_becomes_rgb(tmp_path: Path, mode: str) -> None:
    """White is white in all of them."""
    white = Image.new("RGBA", (5, 4), "white")
    picture = Image.new(mode, (5, 4), 65_535) if mode == "I;16" else white.convert("RGB")
    picture = picture if mode == "I;16" else picture.convert(mode)
    shown = upright_rgb(_file(tmp_path, picture, "JPEG" if mode == "YCbCr" else "TIFF"))
    assert (shown.mode, shown.size) == ("RGB", (5, 4))
    assert np.asarray(shown).min() == 255


@pytest.mark.parametrize("mode", ["F", "I"])
def test_values_without_black_and_white_are_refused(tmp_path: Path, mode: str) -> None:
    """Nothing says which of 32 bits are white, so nothing is guessed."""
    message = _refused(_file(tmp_path, Image.new(mode, (5, 4)), "TIFF"))
    assert message.startswith(f"picture 'picture' has pixels of mode {mode!r}, ")


@pytest.mark.parametrize("name", ["GIF", "WEBP", "PNG"])
def test_of_an_animation_the_first_frame_is_shown(tmp_path: Path, name: str) -> None:
    """It is what people see before it moves."""
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue")]
    options = {"lossless": True} if name == "WEBP" else {}
    path = _file(tmp_path, frames[0], name, save_all=True, append_images=frames[1:], **options)
    assert upright_rgb(path).getpixel((4, 4)) == (255, 0, 0)


def test_a_missing_picture_says_what_to_do(tmp_path: Path) -> None:
    """One line with its name, without the folders of somebody's machine."""
    assert _refused(tmp_path / "ab12") == (
        "picture 'ab12' cannot be read, No such file or directory: run `collect` again to fetch it"
    )
    assert "Is a directory" in _refused(tmp_path)


def test_other_bytes_than_those_asked_for_are_refused(tmp_path: Path) -> None:
    """An answer about another picture would be kept under this one's digest."""
    path = _file(tmp_path, Image.fromarray(NOISE))
    digest = "0" * 64
    assert _refused(path, digest) == f"picture {digest!r} has changed on disk: run `collect` again"


@pytest.mark.parametrize("data", [b"", b"just words", b"<svg/>", b"%PDF-1.4", b"P6 1 1 255 abc"])
def test_what_is_no_picture_is_refused(tmp_path: Path, data: bytes) -> None:
    """Formats outside the known ones are not opened at all."""
    (tmp_path / "a").write_bytes(data)
    assert _refused(tmp_path / "a").startswith("picture 'a' cannot be decoded: ")


def test_a_picture_that_would_fill_the_memory_is_refused(tmp_path: Path) -> None:
    """Its header is enough: a PNG of a few bytes that claims 10,001 x 10,000 pixels."""
    header = struct.pack(">IIBBBBB", 10_001, 10_000, 8, 0, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(b"\0" * 9)), (b"IEND", b"")]
    chunks = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    ]
    (tmp_path / "a").write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunks))
    assert "is 10001 x 10000, expected at most 100000000 pixels" in _refused(tmp_path / "a")


def test_a_file_that_is_too_long_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit of the picture store holds here as well; the test lowers it."""
    path = _file(tmp_path, Image.fromarray(NOISE))
    length = path.stat().st_size
    monkeypatch.setattr(upright, "MOST_BYTES", length)
    assert upright_rgb(path).size == (40, 30)
    monkeypatch.setattr(upright, "MOST_BYTES", length - 1)
    assert _refused(path) == f"picture 'picture' has more than {length - 1} bytes"


@settings(max_examples=100, deadline=None)
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
    """Whatever a decoder trips over, it is a PictureError of one line and no other."""
    file = io.BytesIO()
    Image.fromarray(NOISE).save(file, name)
    data = bytearray(file.getvalue())
    for at, value in changes:
        data[at % len(data)] = value
    path = tmp_path_factory.mktemp("damaged") / "picture"
    path.write_bytes(data[: round(share * len(data))])
    try:
        shown = upright_rgb(path)
    except PictureError as error:
        assert "\n" not in str(error)  # noqa: PT017 - both outcomes are right
    else:
        assert shown.mode == "RGB"
