"""What bytes are, told by themselves: a picture's format, a web page, a drawing, a cut file.

Names and headers that come with bytes are what a stranger says of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from echo_hf.reasons import BadPicture

FIRST_BYTES = 1024
SIGNATURES = {
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"\xff\xd8\xff": "JPEG",
    b"GIF87a": "GIF",
    b"GIF89a": "GIF",
    b"BM": "BMP",
    b"II*\x00": "TIFF",
    b"MM\x00*": "TIFF",
    b"II+\x00": "TIFF",
    b"MM\x00+": "TIFF",
}
AVIF_BRANDS = frozenset({b"avif", b"avis"})
PAGE_MARKS = (b"<!doctype html", b"<html", b"<head", b"<body")


def format_of(data: bytes) -> str | None:
    """The format that bytes begin as.

    Args:
        data: Bytes of a file, or its first 1024.

    Returns:
        One of `echo_hf.pictures.FORMATS`; null for anything else.

    Example:
        >>> format_of(b"GIF89a..."), format_of(b"%PDF-1.7")
        ('GIF', None)
    """
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "WEBP"
    if data[4:8] == b"ftyp" and AVIF_BRANDS & _brands(data):
        return "AVIF"
    return next((name for start, name in SIGNATURES.items() if data.startswith(start)), None)


def kind_of_other(data: bytes) -> BadPicture:
    """What bytes are that are in none of the formats.

    Args:
        data: Bytes of a file, or its first 1024.

    Returns:
        A web page, an SVG drawing, or no picture.

    Example:
        >>> str(kind_of_other(b"<!DOCTYPE html><title>Not found</title>"))
        'html'
    """
    # Without the zeros that text in UTF-16 is full of.
    start = data[:FIRST_BYTES].replace(b"\x00", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n").lower()
    if not start.startswith(b"<"):
        return BadPicture.NOT_A_PICTURE
    page = min((start.find(mark) for mark in PAGE_MARKS if mark in start), default=-1)
    drawing = start.find(b"<svg")
    if drawing >= 0 and not 0 <= page < drawing:
        return BadPicture.SVG
    return BadPicture.HTML if page >= 0 else BadPicture.NOT_A_PICTURE


def is_cut(data: bytes) -> bool:
    """Whether a file that could not be decoded ends too early by its own account.

    Args:
        data: All bytes of a file in one of the formats.

    Returns:
        True when its end mark is missing, or what it says of its length is more than it has.

    Example:
        >>> is_cut(b"RIFF" + (100).to_bytes(4, "little") + b"WEBPVP8 ")
        True
    """
    ends_early = ENDS_EARLY.get(format_of(data) or "")
    return ends_early is not None and ends_early(data)


def _brands(data: bytes) -> set[bytes]:
    end = min(int.from_bytes(data[:4], "big"), FIRST_BYTES)
    # The four bytes after the first brand are a version.
    return {data[at : at + 4] for at in (8, *range(16, end, 4))}


def _tiff_ends_early(data: bytes) -> bool:
    order: Literal["little", "big"] = "little" if data.startswith(b"II") else "big"
    large = b"+" in data[2:4]
    directory = int.from_bytes(data[8:16] if large else data[4:8], order)
    return directory + 2 > len(data)


def _avif_ends_early(data: bytes) -> bool:
    at = 0
    while at + 8 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        if size == 1:
            size = int.from_bytes(data[at + 8 : at + 16], "big")
        if size < 8:  # 0 means the rest of the file
            return False
        at += size
    return at != len(data)


ENDS_EARLY: dict[str, Callable[[bytes], bool]] = {
    "PNG": lambda data: b"IEND\xaeB`\x82" not in data,
    "JPEG": lambda data: b"\xff\xd9" not in data,
    "GIF": lambda data: not data.rstrip(b"\x00").endswith(b";"),
    "WEBP": lambda data: int.from_bytes(data[4:8], "little") + 8 > len(data),
    "BMP": lambda data: int.from_bytes(data[2:6], "little") > len(data),
    "TIFF": _tiff_ends_early,
    "AVIF": _avif_ends_early,
}
