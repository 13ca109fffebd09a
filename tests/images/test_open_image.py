"""Images that strangers made: opened within limits, refused with a reason."""

from __future__ import annotations

import gzip
import os
import pickle
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageFile

from echo_hf.errors import ImageError
from echo_hf.images.decode import BadImageError, open_image
from echo_hf.images.store import FORMATS, MOST_BYTES, MOST_PIXELS
from echo_hf.reasons import BadImage
from tests.images_for_tests import encoded, noise, png, png_chunk

NOISE = noise((48, 32))
ENCODED = {name: encoded(NOISE, name) for name in FORMATS}
PAGE = b"<!DOCTYPE html><html><body>Sorry, this picture is not available.</body></html>"
DRAWING = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
BOMB = png((60_000, 60_000), 8, 0, bytes(9))


def _refused(source: bytes | Path | Image.Image, **options: int) -> BadImageError:
    with pytest.raises(BadImageError) as caught, open_image(source, **options) as image:
        image.load()
    assert "\n" not in str(caught.value)
    assert caught.value.reason.meaning in str(caught.value)
    return caught.value


@pytest.mark.parametrize("name", FORMATS)
def test_a_good_image_is_opened_from_bytes_file_and_memory(tmp_path: Path, name: str) -> None:
    """All three sources give the same size, and the pixels can be decoded inside."""
    file = tmp_path / "wrongly_named.txt"
    file.write_bytes(ENCODED[name])
    for source in (ENCODED[name], file, NOISE):
        with open_image(source) as image:
            image.load()
            assert image.size == (48, 32)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (BOMB, BadImage.TOO_MANY_PIXELS),
        (png((2**31 - 1, 2**31 - 1), 8, 0, bytes(9)), BadImage.TOO_MANY_PIXELS),
        (encoded(Image.new("RGB", (1, 1)), "PNG"), BadImage.TOO_SMALL),
        (encoded(Image.new("RGB", (600, 1)), "GIF"), BadImage.TOO_SMALL),
        (DRAWING, BadImage.SVG),
        (PAGE, BadImage.HTML),
        (b"", BadImage.NOT_AN_IMAGE),
        (gzip.compress(DRAWING), BadImage.NOT_AN_IMAGE),
        (b"%PDF-1.7\n" + bytes(100), BadImage.NOT_AN_IMAGE),
        (bytes(MOST_BYTES + 1), BadImage.TOO_MANY_BYTES),
        (ENCODED["PNG"][: len(ENCODED["PNG"]) // 2], BadImage.TRUNCATED),
        (png((8, 8), 8, 2, b"\x09" * 200), BadImage.DAMAGED),
        (ENCODED["WEBP"][:20] + bytes(len(ENCODED["WEBP"]) - 20), BadImage.DAMAGED),
    ],
    ids=[
        "bomb", "largest", "one pixel", "line", "svg", "page", "nothing", "packed svg", "pdf",
        "heavy", "half a png", "bad filter", "zeros",
    ],
)  # fmt: skip
def test_what_cannot_be_shown_has_its_reason(tmp_path: Path, data: bytes, reason: BadImage) -> None:
    """The reason is the same for bytes and for a file, whatever the file is called."""
    file = tmp_path / "holiday.jpg"
    file.write_bytes(data)
    assert _refused(data).reason is reason
    error = _refused(file)
    assert error.reason is reason
    assert str(error).startswith("image 'holiday.jpg': ")


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_part_of_an_image_is_truncated(name: str, share: float) -> None:
    """In no format a file that was cut in transit passes, or passes for damaged."""
    assert _refused(ENCODED[name][: int(len(ENCODED[name]) * share)]).reason is BadImage.TRUNCATED


def test_half_an_image_stays_refused_when_other_code_accepts_halves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Pillow's process-wide switch does not turn the missing half grey."""
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    half = ENCODED["JPEG"][: len(ENCODED["JPEG"]) // 2]
    assert _refused(half).reason is BadImage.TRUNCATED
    assert ImageFile.LOAD_TRUNCATED_IMAGES is True


def test_the_limit_of_pixels_is_the_callers_and_counts_before_decoding() -> None:
    """At the limit an image is opened; one pixel less and it is not, also one in memory."""
    for source in (ENCODED["PNG"], NOISE):
        with open_image(source, most_pixels=48 * 32) as image:
            assert image.size == (48, 32)
        error = _refused(source, most_pixels=48 * 32 - 1)
        assert error.reason is BadImage.TOO_MANY_PIXELS
        assert error.detail == "48 x 32, expected at most 1535 pixels"


def test_an_image_between_pillows_limit_and_ours_is_opened() -> None:
    """Pillow's warning, an error under these tests, is about fewer pixels than are allowed."""
    with open_image(encoded(Image.new("1", (9500, 10_000)), "PNG")) as image:
        assert image.size == (9500, 10_000)
    assert 9500 * 10_000 == 95_000_000 < MOST_PIXELS


def test_a_text_chunk_that_unpacks_without_end_is_damage() -> None:
    """A bomb in a PNG's notes is no image that anybody needs."""
    bomb = png_chunk(b"zTXt", b"Comment\x00\x00" + zlib.compress(bytes(80 * 1024 * 1024)))
    assert _refused(png((2, 2), 8, 0, bytes(6), bomb)).reason is BadImage.DAMAGED


def test_a_missing_file_a_folder_and_a_pipe_are_no_files(tmp_path: Path) -> None:
    """None of them is waited for, and each says what it is."""
    os.mkfifo(tmp_path / "pipe")
    assert _refused(tmp_path / "none.png").detail == "No such file or directory"
    assert _refused(tmp_path).detail == _refused(tmp_path / "pipe").detail == "not a regular file"
    assert _refused(tmp_path).reason is BadImage.NO_FILE


def test_another_kind_of_source_is_the_callers_mistake() -> None:
    """A name in place of a path is told by its type, not called a bad image."""
    expected = "'str' is not an image: expected bytes, Path or Image"
    with pytest.raises(TypeError, match=expected), open_image("holiday.jpg"):  # type: ignore[arg-type]
        pytest.fail("it was opened")


def test_the_error_is_an_image_error_and_survives_pickling() -> None:
    """Workers of a pool hand it over with reason, detail and message."""
    error = _refused(PAGE)
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert isinstance(copy, ImageError)
    assert (str(copy), copy.reason, copy.detail) == (str(error), error.reason, error.detail)


def test_an_error_of_the_machine_is_not_the_images() -> None:
    """No memory left is nothing that an image can be rejected for."""
    with pytest.raises(MemoryError), open_image(ENCODED["PNG"]):
        raise MemoryError


@given(
    st.sampled_from(FORMATS),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=8),
    st.integers(0, 10**6),
)
def test_damaged_bytes_are_opened_or_refused_with_a_reason(
    name: str, changes: list[tuple[int, int]], end: int
) -> None:
    """Whatever a decoder trips over is a `BadImageError` of one line and no other."""
    data = bytearray(ENCODED[name])
    for at, value in changes:
        data[at % len(data)] = value
    try:
        with open_image(bytes(data[:end])) as image:
            image.load()
    except BadImageError as error:
        assert "\n" not in str(error)  # noqa: PT017 - both outcomes are right
    else:
        assert image.width * image.height <= MOST_PIXELS
