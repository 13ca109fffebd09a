"""Remove what an image file says beside its pixels, without decoding or encoding a pixel."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from echo_hf.errors import ImageError
from echo_hf.images.loader import ORIENTATION, format_of, load_rgb, open_image

VERSION = 1
GPS = 0x8825

JPEG_MARKER = re.compile(rb"\xff+[\x02-\xcf\xd8-\xfe]")
JPEG_TABLES = frozenset({*range(0xC0, 0xD0), 0xDA, 0xDB, 0xDC, 0xDD, 0xDE, 0xDF}) - {0xC8}
START, END, SCAN, COMMENT = 0xD8, 0xD9, 0xDA, 0xFE

PNG_CHUNKS = frozenset(
    b"IHDR PLTE IDAT IEND tRNS gAMA cHRM sRGB iCCP sBIT bKGD pHYs cICP mDCV cLLI"
    b" acTL fcTL fdAT".split()
)
PNG_TEXTS = frozenset({b"tEXt", b"zTXt", b"iTXt"})
WEBP_CHUNKS = frozenset({b"VP8X", b"ICCP", b"ANIM", b"ANMF", b"ALPH", b"VP8 ", b"VP8L"})
WEBP_EXIF, WEBP_XMP = 0x08, 0x04


class Kind(StrEnum):
    """What an image file said beside its pixels."""

    EXIF = "exif"
    GPS = "gps"
    XMP = "xmp"
    IPTC = "iptc"
    COMMENT = "comment"
    TEXT = "text"
    OTHER = "other"


# What may stand in a segment of JPEG: how it begins, how long it is, and null for what stays.
JPEG_SEGMENTS: dict[int, tuple[tuple[bytes, int | None, Kind | None], ...]] = {
    0xE0: ((b"JFIF\0", 14, None),),
    0xE1: ((b"Exif\0", None, Kind.EXIF), (b"http://ns.adobe.com/x", None, Kind.XMP)),
    0xE2: ((b"ICC_PROFILE\0", None, None),),
    0xED: ((b"", None, Kind.IPTC),),
    0xEE: ((b"Adobe", 12, None),),
    COMMENT: ((b"", None, Kind.COMMENT),),
}
PNG_KEYWORDS = {b"xmp": Kind.XMP, b"exif": Kind.EXIF, b"iptc": Kind.IPTC}
WEBP_KINDS = {b"EXIF": Kind.EXIF, b"XMP ": Kind.XMP}
GIF_LABELS = {0xF9: None, 0xFE: Kind.COMMENT, 0x01: Kind.TEXT}
GIF_APPLICATIONS = {
    **dict.fromkeys((b"NETSCAPE2.0", b"ANIMEXTS1.0", b"ICCRGBG1012")),
    b"XMP DataXMP": Kind.XMP,
}


class Cleaned(NamedTuple):
    data: bytes
    kinds: tuple[Kind, ...]


class FileSection(NamedTuple):
    """A stretch of a file; null for a kind that stays."""

    data: bytes
    kind: Kind | None


def without_metadata(data: bytes) -> Cleaned:
    """Removes the metadata of an image file; its pixels, colors and orientation stay."""
    clean = CLEANERS.get(format_of(data) or "")
    if clean is None:
        raise ImageError(f"{data[:8]!r}...: expected a JPEG, PNG, WebP, GIF or BMP file")
    try:
        cleaned, kinds = clean(data, b"")
        orientation, has_gps = _camera_notes(data, is_there=bool(kinds))
        if orientation != 1:  # notes of a camera that say which way is up, and nothing else
            entry = struct.pack("<HHIHH", ORIENTATION, 3, 1, orientation, 0)
            notes = struct.pack("<2sHIH", b"II", 42, 8, 1) + entry + bytes(4)
            cleaned, kinds = clean(data, notes)
    except (LookupError, ValueError, struct.error) as error:
        raise ImageError(f"its parts contradict its format ({error}): save it again") from None
    if not kinds:
        return Cleaned(data, ())
    # Bytes may contradict each other so that a decoder takes them in another way without the rest.
    if load_rgb(cleaned).tobytes() != load_rgb(data).tobytes():
        raise ImageError("it would look different without its metadata: save it again")
    if (has_gps and Kind.EXIF in kinds) or (Kind.XMP in kinds and b"exif:GPS" in data):
        kinds |= {Kind.GPS}
    return Cleaned(cleaned, tuple(sorted(kinds)))


def _camera_notes(data: bytes, *, is_there: bool) -> tuple[int, bool]:
    with open_image(data) as image:
        if not is_there:  # to look for them, Pillow would decode the image
            return 1, False
        try:
            notes = image.getexif()
            orientation = notes.get(ORIENTATION, 1)
            return (orientation if orientation in range(2, 9) else 1), GPS in notes
        except Exception:  # as hostile as the rest; what cannot be read turns no image either
            return 1, False


def _rewritten(
    data: bytes, sections: Iterable[FileSection], exif: bytes = b"", at: int = 0
) -> tuple[bytes, set[Kind]]:
    """The parts that stay, with the orientation at a place of the list where it stood elsewhere."""
    parts = list(sections)
    if rest := data[sum(len(part.data) for part in parts) :]:
        parts.append(FileSection(rest, Kind.OTHER))
    kinds = {part.kind for part in parts if part.kind is not None}
    if exif and kinds and FileSection(exif, None) not in parts:
        parts.insert(at, FileSection(exif, None))
    return b"".join(part.data for part in parts if part.kind is None), kinds


def _jpeg(data: bytes, notes: bytes) -> tuple[bytes, set[Kind]]:
    exif = notes and b"\xff\xe1" + struct.pack(">H", len(notes) + 8) + b"Exif\0\0" + notes
    return _rewritten(data, _jpeg_parts(data, exif), exif, 2 if data[3:4] == b"\xe0" else 1)


def _jpeg_parts(data: bytes, exif: bytes) -> Iterator[FileSection]:
    yield FileSection(data[:2], None)
    at, in_scan = 2, False
    while found := JPEG_MARKER.search(data, at):
        if found.start() > at:
            yield FileSection(data[at : found.start()], None if in_scan else Kind.OTHER)
        marker, body = data[found.end() - 1], found.end()
        if marker == END:
            yield FileSection(data[found.start() : body], None)
            return
        (length,) = struct.unpack_from(">H", data, body)
        at = body + length
        if marker == START or length < 2 or at > len(data):
            raise ValueError(f"marker {marker:#x} at byte {found.start()}")
        segment, content = data[found.start() : at], data[body + 2 : at]
        is_ours = marker in JPEG_TABLES or segment == exif
        kinds = (
            kind
            for start, size, kind in JPEG_SEGMENTS.get(marker, ())
            if content.startswith(start) and size in (None, len(content))
        )
        yield FileSection(segment, None if is_ours else next(kinds, Kind.OTHER))
        in_scan = marker == SCAN
    yield FileSection(data[at:], None if in_scan else Kind.OTHER)


def _png(data: bytes, notes: bytes) -> tuple[bytes, set[Kind]]:
    body = b"eXIf" + notes
    exif = notes and struct.pack(">I", len(notes)) + body + struct.pack(">I", zlib.crc32(body))
    return _rewritten(data, _png_parts(data, exif), exif, 2)


def _png_parts(data: bytes, exif: bytes) -> Iterator[FileSection]:
    yield FileSection(data[:8], None)
    at, name = 8, b""
    while name != b"IEND":
        length, name = struct.unpack_from(">I4s", data, at)
        chunk = data[at : at + length + 12]
        at += length + 12
        if at > len(data) or (name not in PNG_CHUNKS and name[:1].isupper()):
            raise ValueError(f"chunk {name!r}")
        kind = None if name in PNG_CHUNKS or chunk == exif else Kind.OTHER
        if kind and name == b"eXIf":
            kind = Kind.EXIF
        elif kind and name in PNG_TEXTS:
            keyword = chunk[8:87].partition(b"\0")[0].lower()
            kind = next((kind for word, kind in PNG_KEYWORDS.items() if word in keyword), Kind.TEXT)
        yield FileSection(chunk, kind)


def _webp(data: bytes, notes: bytes) -> tuple[bytes, set[Kind]]:
    exif = notes and _riff_chunk(b"EXIF", notes)
    chunks, kinds = _rewritten(data[12:], _webp_parts(data, exif), exif, len(data))
    if chunks[:4] == b"VP8X":
        flags = chunks[8] & ~(WEBP_EXIF | WEBP_XMP) | (WEBP_EXIF if exif else 0)
        chunks = chunks[:8] + bytes([flags]) + chunks[9:]
    return _riff_chunk(b"RIFF", b"WEBP" + chunks), kinds


def _riff_chunk(name: bytes, body: bytes) -> bytes:
    return name + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)


def _webp_parts(data: bytes, exif: bytes) -> Iterator[FileSection]:
    end = 8 + struct.unpack_from("<I", data, 4)[0]
    for name, chunk in _riff_chunks(data, 12, end):
        frame = _riff_chunks(chunk, 24, len(chunk)) if name == b"ANMF" else ()
        if {one for one, _ in frame} - WEBP_CHUNKS:
            raise ValueError("a frame of something else")
        kept = name in WEBP_CHUNKS or chunk == exif
        yield FileSection(chunk, None if kept else WEBP_KINDS.get(name, Kind.OTHER))


def _riff_chunks(data: bytes, at: int, end: int) -> Iterator[tuple[bytes, bytes]]:
    while at + 8 <= end:
        name, length = struct.unpack_from("<4sI", data, at)
        chunk = data[at : at + 8 + length + length % 2]
        if len(chunk) < 8 + length:
            raise ValueError(f"chunk {name!r}")
        yield name, chunk
        at += len(chunk)


def _gif(data: bytes, _: bytes) -> tuple[bytes, set[Kind]]:
    return _rewritten(data, _gif_parts(data))


def _gif_parts(data: bytes) -> Iterator[FileSection]:
    at = 13 + _color_table(data[10])
    yield FileSection(data[:at], None)
    while data[at] != 0x3B:
        start = at
        if data[at] == 0x2C:
            kind = None
            at += 11 + _color_table(data[at + 9])
        elif data[at] == 0x21:
            kind = GIF_LABELS.get(data[at + 1], Kind.OTHER)
            if data[at + 1] == 0xFF:
                kind = GIF_APPLICATIONS.get(data[at + 3 : at + 14], Kind.OTHER)
            at += 2
        else:
            raise ValueError(f"block {data[at]:#x} at byte {at}")
        while data[at]:
            at += data[at] + 1
        at += 1
        yield FileSection(data[start:at], kind)
    yield FileSection(data[at : at + 1], None)


def _color_table(flags: int) -> int:
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _bmp(data: bytes, _: bytes) -> tuple[bytes, set[Kind]]:
    """A BMP has no place for words."""
    if struct.unpack_from("<I", data, 2)[0] != len(data):
        raise ValueError("it is not as long as it says")
    return data, set()


CLEANERS: dict[str, Callable[[bytes, bytes], tuple[bytes, set[Kind]]]] = {
    "JPEG": _jpeg,
    "PNG": _png,
    "WEBP": _webp,
    "GIF": _gif,
    "BMP": _bmp,
}
