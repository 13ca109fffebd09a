"""What is opened and what is refused, each with its reason, also by threads side by side."""

from __future__ import annotations

import gzip
import os
import pickle
import struct
import warnings
import zlib
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageFile

from echo_hf.errors import ImageError
from echo_hf.images.loader import (
    FORMATS,
    BadImageError,
    decoding,
    format_of,
    kind_of_other,
    open_image,
)
from echo_hf.images.store import MOST_BYTES, MOST_PIXELS, check_image
from echo_hf.reasons import BadImage
from tests.images_for_tests import encoded, noise, png, png_chunk

NOISE = noise((48, 32))
ENCODED = {name: encoded(NOISE, name) for name in FORMATS}
PAGE = b"<!DOCTYPE html><html><body>Sorry, this picture is not available.</body></html>"
DRAWING = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


def boxes(*brands: bytes) -> bytes:
    first, *others = brands
    return struct.pack(">I4s4sI", 16 + 4 * len(others), b"ftyp", first, 0) + b"".join(others)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        *((ENCODED[name][:1024], name) for name in FORMATS),
        (b"MM\x00+\x00\x08\x00\x00", "TIFF"),
        (b"RIFF\x10\x00\x00\x00WAVEfmt ", None),
        (boxes(b"mif1", b"avif"), "AVIF"),
        (boxes(b"heic", b"mif1"), None),
        (b"", None),
    ],
    ids=[*FORMATS, "large tiff", "sound", "avif", "heic", "none"],
)
def test_each_format_is_told_by_its_first_bytes(data: bytes, expected: str | None) -> None:
    assert format_of(data) == expected


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\xef\xbb\xbf\r\n  <HTML lang=en>", BadImage.HTML),
        ("<!doctype html>".encode("utf-16"), BadImage.HTML),
        (b"<html><body><svg></svg></body></html>", BadImage.HTML),
        (b"<!-- hello --><head><title>x</title>", BadImage.HTML),
        (b"<?xml version='1.0'?><!-- made by --><svg><title>a</title></svg>", BadImage.SVG),
        (b"<svg><foreignObject><html></html></foreignObject></svg>", BadImage.SVG),
        (b"<?xml version='1.0'?><rss/>", BadImage.NOT_AN_IMAGE),
        (b'{"error": "<html>"}', BadImage.NOT_AN_IMAGE),
    ],
)
def test_pages_and_drawings_are_named(data: bytes, kind: BadImage) -> None:
    assert kind_of_other(data) is kind


def _refused(source: bytes | Path | Image.Image, **options: int) -> BadImageError:
    with pytest.raises(BadImageError) as caught, open_image(source, **options) as image:
        image.load()
    assert "\n" not in str(caught.value)
    assert caught.value.reason.meaning in str(caught.value)
    return caught.value


@pytest.mark.parametrize("name", FORMATS)
def test_a_good_image_is_opened_from_bytes_file_and_memory(tmp_path: Path, name: str) -> None:
    file = tmp_path / "wrongly_named.txt"
    file.write_bytes(ENCODED[name])
    for source in (ENCODED[name], file, NOISE):
        with open_image(source) as image:
            image.load()
            assert image.size == (48, 32)


# A text chunk that unpacks without end.
UNPACKS = png_chunk(b"zTXt", b"Comment\x00\x00" + zlib.compress(bytes(80 * 1024 * 1024)))
REFUSED = {
    "bomb": (png((60_000, 60_000), 8, 0, bytes(9)), BadImage.TOO_MANY_PIXELS),
    "large": (png((10_001, 10_000), 8, 0, bytes(9)), BadImage.TOO_MANY_PIXELS),
    "line": (encoded(Image.new("RGB", (600, 1)), "GIF"), BadImage.TOO_SMALL),
    "svg": (DRAWING, BadImage.SVG),
    "page": (PAGE, BadImage.HTML),
    "nothing": (b"", BadImage.NOT_AN_IMAGE),
    "packed svg": (gzip.compress(DRAWING), BadImage.NOT_AN_IMAGE),
    "heavy": (bytes(MOST_BYTES + 1), BadImage.TOO_MANY_BYTES),
    "half a png": (ENCODED["PNG"][: len(ENCODED["PNG"]) // 2], BadImage.TRUNCATED),
    "half a jpeg": (ENCODED["JPEG"][: len(ENCODED["JPEG"]) // 2], BadImage.TRUNCATED),
    "bad filter": (png((8, 8), 8, 2, b"\x09" * 200), BadImage.DAMAGED),
    "zeros": (ENCODED["WEBP"][:20] + bytes(len(ENCODED["WEBP"]) - 20), BadImage.DAMAGED),
    "endless text": (png((2, 2), 8, 0, bytes(6), UNPACKS), BadImage.DAMAGED),
}


@pytest.mark.parametrize(("data", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_shown_has_its_reason(tmp_path: Path, data: bytes, reason: BadImage) -> None:
    file = tmp_path / "holiday.jpg"
    file.write_bytes(data)
    assert _refused(data).reason is reason
    error = _refused(file)
    assert error.reason is reason
    assert str(error).startswith("image 'holiday.jpg': ")
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert isinstance(copy, ImageError)
    assert (str(copy), copy.reason, copy.detail) == (str(error), error.reason, error.detail)


def test_the_limit_of_pixels_is_the_callers_and_counts_before_decoding() -> None:
    for source in (ENCODED["PNG"], NOISE):
        with open_image(source, most_pixels=48 * 32) as image:
            assert image.size == (48, 32)
        error = _refused(source, most_pixels=48 * 32 - 1)
        assert error.reason is BadImage.TOO_MANY_PIXELS
        assert error.detail == "48 x 32, expected at most 1535 pixels"


def test_a_lack_of_memory_says_nothing_about_the_image() -> None:
    with pytest.raises(MemoryError), open_image(ENCODED["PNG"]):
        raise MemoryError


def test_a_missing_file_a_folder_and_a_pipe_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert _refused(tmp_path / "none.png").detail == "No such file or directory"
    assert _refused(tmp_path).detail == _refused(tmp_path / "pipe").detail == "not a regular file"
    assert _refused(tmp_path).reason is BadImage.NO_FILE


@given(
    st.sampled_from(FORMATS),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=8),
    st.integers(0, 10**6),
)
def test_damaged_bytes_are_opened_or_refused_with_reason(name: str, changes: Any, end: int) -> None:
    data = bytearray(ENCODED[name])
    for at, value in changes:
        data[at % len(data)] = value
    try:
        width, height = check_image(bytes(data[:end]))
    except BadImageError as error:
        assert "\n" not in str(error)  # noqa: PT017 - both outcomes are right
    else:
        assert width * height <= MOST_PIXELS


def test_threads_that_overlap_leave_all_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    before = list(warnings.filters)
    both_in, first_out = Barrier(2), Barrier(2)
    seen: list[bool] = []

    def enters_first() -> None:
        with decoding:
            both_in.wait(10)
        first_out.wait(10)

    def leaves_last() -> None:
        with decoding:
            both_in.wait(10)
            first_out.wait(10)
            seen.append(ImageFile.LOAD_TRUNCATED_IMAGES)

    threads = [Thread(target=one) for one in (enters_first, leaves_last)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert seen == [False]
    with pytest.raises(ZeroDivisionError), decoding:
        raise ZeroDivisionError
    assert ImageFile.LOAD_TRUNCATED_IMAGES is True
    assert list(warnings.filters) == before
