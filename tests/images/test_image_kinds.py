"""What bytes are, whatever they are called."""

from __future__ import annotations

import struct

import pytest

from echo_hf.images.decode import format_of, is_cut, kind_of_other
from echo_hf.images.store import FORMATS
from echo_hf.reasons import BadImage
from tests.images_for_tests import encoded, noise

NOISE = noise((48, 32))
ENCODED = {name: encoded(NOISE, name) for name in FORMATS}


@pytest.mark.parametrize("name", FORMATS)
def test_each_format_is_told_by_its_first_bytes(name: str) -> None:
    """What Pillow writes as a format is recognised as that format, from 1024 bytes as from all."""
    assert format_of(ENCODED[name]) == name
    assert format_of(ENCODED[name][:1024]) == name


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"II+\x00\x08\x00\x00\x00", "TIFF"),
        (b"MM\x00+\x00\x08\x00\x00", "TIFF"),
        (b"RIFF\x10\x00\x00\x00WAVEfmt ", None),
        (struct.pack(">I4s4sI4s", 20, b"ftyp", b"mif1", 0, b"avif"), "AVIF"),
        (struct.pack(">I4s4sI4s", 20, b"ftyp", b"heic", 0, b"mif1"), None),
        (struct.pack(">I4s4sI4s", 20, b"ftyp", b"isom", 0, b"mp42"), None),
        (b"", None),
        (b"%PDF-1.7", None),
    ],
    ids=["large tiff", "large tiff, other order", "sound", "avif", "heic", "film", "none", "pdf"],
)
def test_relatives_of_the_formats_are_told_apart(data: bytes, expected: str | None) -> None:
    """Containers that are shared with other formats are looked into."""
    assert format_of(data) == expected


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"<!DOCTYPE html><html></html>", BadImage.HTML),
        (b"\xef\xbb\xbf\r\n  <HTML lang=en>", BadImage.HTML),
        ("<!doctype html>".encode("utf-16"), BadImage.HTML),
        (b"<?xml version='1.0'?><!DOCTYPE html PUBLIC ''>", BadImage.HTML),
        (b"<html><body><svg></svg></body></html>", BadImage.HTML),
        (b"<!-- hello --><head><title>x</title>", BadImage.HTML),
        (b'<svg xmlns="http://www.w3.org/2000/svg"/>', BadImage.SVG),
        (b"<?xml version='1.0'?><!-- made by --><svg><title>a</title></svg>", BadImage.SVG),
        (b"<svg><foreignObject><html></html></foreignObject></svg>", BadImage.SVG),
        (b"<?xml version='1.0'?><rss/>", BadImage.NOT_AN_IMAGE),
        (b'{"error": "<html>"}', BadImage.NOT_AN_IMAGE),
        (b"", BadImage.NOT_AN_IMAGE),
    ],
)
def test_pages_and_drawings_are_named(data: bytes, kind: BadImage) -> None:
    """The mark that comes first decides between a page with a drawing and a drawing of a page."""
    assert kind_of_other(data) is kind


@pytest.mark.parametrize("name", FORMATS)
def test_a_whole_file_is_not_cut_and_half_of_it_is(name: str) -> None:
    """Each format's own end mark or length tells, at a quarter, a half and three quarters."""
    data = ENCODED[name]
    assert not is_cut(data)
    ends = (len(data) // 4, len(data) // 2, 3 * len(data) // 4)
    told = [is_cut(data[:end]) for end in ends]
    # An uncompressed TIFF may have its directory first: then only the decoder knows.
    assert all(told) or name == "TIFF"


def test_a_tiff_with_its_directory_last_is_cut_when_that_is_gone() -> None:
    """The header points at a directory behind the end."""
    data = encoded(NOISE, "TIFF", compression="tiff_lzw")
    assert not is_cut(data)
    assert is_cut(data[: len(data) // 2])


@pytest.mark.parametrize("data", [b"", b"%PDF", b"<html>"])
def test_what_is_in_no_format_is_not_cut(data: bytes) -> None:
    """Nothing is known of its end."""
    assert not is_cut(data)
