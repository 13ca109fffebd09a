"""Remove the metadata of an image file, without decoding or encoding a pixel."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from echo_hf.errors import ImageError
from echo_hf.images.loader import ORIENTATION_TAG, detect_format, load_rgb, open_image

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


class MetadataKind(StrEnum):
    """Kinds of metadata in an image file."""

    EXIF = "exif"
    GPS = "gps"
    XMP = "xmp"
    IPTC = "iptc"
    COMMENT = "comment"
    TEXT = "text"
    OTHER = "other"


# What may stand in a segment of JPEG: how it begins, how long it is, and null for what stays.
JPEG_SEGMENTS: dict[int, tuple[tuple[bytes, int | None, MetadataKind | None], ...]] = {
    0xE0: ((b"JFIF\0", 14, None),),
    0xE1: (
        (b"Exif\0", None, MetadataKind.EXIF),
        (b"http://ns.adobe.com/x", None, MetadataKind.XMP),
    ),
    0xE2: ((b"ICC_PROFILE\0", None, None),),
    0xED: ((b"", None, MetadataKind.IPTC),),
    0xEE: ((b"Adobe", 12, None),),
    COMMENT: ((b"", None, MetadataKind.COMMENT),),
}
PNG_KEYWORDS = {b"xmp": MetadataKind.XMP, b"exif": MetadataKind.EXIF, b"iptc": MetadataKind.IPTC}
WEBP_KINDS = {b"EXIF": MetadataKind.EXIF, b"XMP ": MetadataKind.XMP}
GIF_LABELS = {0xF9: None, 0xFE: MetadataKind.COMMENT, 0x01: MetadataKind.TEXT}
GIF_APPLICATIONS = {
    **dict.fromkeys((b"NETSCAPE2.0", b"ANIMEXTS1.0", b"ICCRGBG1012")),
    b"XMP DataXMP": MetadataKind.XMP,
}


class CleanedFile(NamedTuple):
    data: bytes
    kinds: tuple[MetadataKind, ...]


class FileSection(NamedTuple):
    """A section of a file; its kind is null where it stays."""

    data: bytes
    kind: MetadataKind | None


def remove_metadata(data: bytes) -> CleanedFile:
    """Remove the metadata of an image file; pixels, colors and orientation stay."""
    clean = CLEANERS.get(detect_format(data) or "")
    if clean is None:
        raise ImageError(f"{data[:8]!r}...: expected a JPEG, PNG, WebP, GIF or BMP file")
    try:
        cleaned, kinds = clean(data, b"")
        orientation, has_gps = _read_exif(data, is_there=bool(kinds))
        if orientation != 1:  # notes of a camera that say which way is up, and nothing else
            entry = struct.pack("<HHIHH", ORIENTATION_TAG, 3, 1, orientation, 0)
            notes = struct.pack("<2sHIH", b"II", 42, 8, 1) + entry + bytes(4)
            cleaned, kinds = clean(data, notes)
    except (LookupError, ValueError, struct.error) as error:
        raise ImageError(f"its parts contradict its format ({error}): save it again") from None
    if not kinds:
        return CleanedFile(data, ())
    # Bytes may contradict each other so that a decoder takes them in another way without the rest.
    if load_rgb(cleaned).tobytes() != load_rgb(data).tobytes():
        raise ImageError("it would look different without its metadata: save it again")
    if (has_gps and MetadataKind.EXIF in kinds) or (
        MetadataKind.XMP in kinds and b"exif:GPS" in data
    ):
        kinds |= {MetadataKind.GPS}
    return CleanedFile(cleaned, tuple(sorted(kinds)))


def _read_exif(data: bytes, *, is_there: bool) -> tuple[int, bool]:
    with open_image(data) as image:
        if not is_there:  # to look for them, Pillow would decode the image
            return 1, False
        try:
            notes = image.getexif()
            orientation = notes.get(ORIENTATION_TAG, 1)
            return (orientation if orientation in range(2, 9) else 1), GPS in notes
        except Exception:  # as hostile as the rest; what cannot be read turns no image either
            return 1, False


def _join_sections(
    data: bytes, sections: Iterable[FileSection], exif: bytes = b"", position: int = 0
) -> tuple[bytes, set[MetadataKind]]:
    """Join the sections that stay, and insert the orientation if it was elsewhere."""
    parts = list(sections)
    if remainder := data[sum(len(part.data) for part in parts) :]:
        parts.append(FileSection(remainder, MetadataKind.OTHER))
    kinds = {part.kind for part in parts if part.kind is not None}
    if exif and kinds and FileSection(exif, None) not in parts:
        parts.insert(position, FileSection(exif, None))
    return b"".join(part.data for part in parts if part.kind is None), kinds


def _clean_jpeg(data: bytes, notes: bytes) -> tuple[bytes, set[MetadataKind]]:
    exif = notes and b"\xff\xe1" + struct.pack(">H", len(notes) + 8) + b"Exif\0\0" + notes
    return _join_sections(data, _split_jpeg(data, exif), exif, 2 if data[3:4] == b"\xe0" else 1)


def _split_jpeg(data: bytes, exif: bytes) -> Iterator[FileSection]:
    yield FileSection(data[:2], None)
    offset, in_scan = 2, False
    while match := JPEG_MARKER.search(data, offset):
        if match.start() > offset:
            yield FileSection(data[offset : match.start()], None if in_scan else MetadataKind.OTHER)
        marker, body = data[match.end() - 1], match.end()
        if marker == END:
            yield FileSection(data[match.start() : body], None)
            return
        (length,) = struct.unpack_from(">H", data, body)
        offset = body + length
        if marker == START or length < 2 or offset > len(data):
            raise ValueError(f"marker {marker:#x} at byte {match.start()}")
        segment, content = data[match.start() : offset], data[body + 2 : offset]
        is_kept = marker in JPEG_TABLES or segment == exif
        kinds = (
            kind
            for start, size, kind in JPEG_SEGMENTS.get(marker, ())
            if content.startswith(start) and size in (None, len(content))
        )
        yield FileSection(segment, None if is_kept else next(kinds, MetadataKind.OTHER))
        in_scan = marker == SCAN
    yield FileSection(data[offset:], None if in_scan else MetadataKind.OTHER)


def _clean_png(data: bytes, notes: bytes) -> tuple[bytes, set[MetadataKind]]:
    body = b"eXIf" + notes
    exif = notes and struct.pack(">I", len(notes)) + body + struct.pack(">I", zlib.crc32(body))
    return _join_sections(data, _split_png(data, exif), exif, 2)


def _split_png(data: bytes, exif: bytes) -> Iterator[FileSection]:
    yield FileSection(data[:8], None)
    offset, name = 8, b""
    while name != b"IEND":
        length, name = struct.unpack_from(">I4s", data, offset)
        chunk = data[offset : offset + length + 12]
        offset += length + 12
        if offset > len(data) or (name not in PNG_CHUNKS and name[:1].isupper()):
            raise ValueError(f"chunk {name!r}")
        kind = None if name in PNG_CHUNKS or chunk == exif else MetadataKind.OTHER
        if kind and name == b"eXIf":
            kind = MetadataKind.EXIF
        elif kind and name in PNG_TEXTS:
            keyword = chunk[8:87].partition(b"\0")[0].lower()
            kind = next(
                (kind for word, kind in PNG_KEYWORDS.items() if word in keyword), MetadataKind.TEXT
            )
        yield FileSection(chunk, kind)


def _clean_webp(data: bytes, notes: bytes) -> tuple[bytes, set[MetadataKind]]:
    exif = notes and _make_riff_chunk(b"EXIF", notes)
    chunks, kinds = _join_sections(data[12:], _split_webp(data, exif), exif, len(data))
    if chunks[:4] == b"VP8X":
        flags = chunks[8] & ~(WEBP_EXIF | WEBP_XMP) | (WEBP_EXIF if exif else 0)
        chunks = chunks[:8] + bytes([flags]) + chunks[9:]
    return _make_riff_chunk(b"RIFF", b"WEBP" + chunks), kinds


def _make_riff_chunk(name: bytes, body: bytes) -> bytes:
    return name + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)


def _split_webp(data: bytes, exif: bytes) -> Iterator[FileSection]:
    end = 8 + struct.unpack_from("<I", data, 4)[0]
    for name, chunk in _iterate_riff_chunks(data, 12, end):
        frame = _iterate_riff_chunks(chunk, 24, len(chunk)) if name == b"ANMF" else ()
        if {chunk_name for chunk_name, _ in frame} - WEBP_CHUNKS:
            raise ValueError("a frame of something else")
        is_kept = name in WEBP_CHUNKS or chunk == exif
        yield FileSection(chunk, None if is_kept else WEBP_KINDS.get(name, MetadataKind.OTHER))


def _iterate_riff_chunks(data: bytes, offset: int, end: int) -> Iterator[tuple[bytes, bytes]]:
    while offset + 8 <= end:
        name, length = struct.unpack_from("<4sI", data, offset)
        chunk = data[offset : offset + 8 + length + length % 2]
        if len(chunk) < 8 + length:
            raise ValueError(f"chunk {name!r}")
        yield name, chunk
        offset += len(chunk)


def _clean_gif(data: bytes, _: bytes) -> tuple[bytes, set[MetadataKind]]:
    return _join_sections(data, _split_gif(data))


def _split_gif(data: bytes) -> Iterator[FileSection]:
    offset = 13 + _measure_color_table(data[10])
    yield FileSection(data[:offset], None)
    while data[offset] != 0x3B:
        start = offset
        if data[offset] == 0x2C:
            kind = None
            offset += 11 + _measure_color_table(data[offset + 9])
        elif data[offset] == 0x21:
            kind = GIF_LABELS.get(data[offset + 1], MetadataKind.OTHER)
            if data[offset + 1] == 0xFF:
                kind = GIF_APPLICATIONS.get(data[offset + 3 : offset + 14], MetadataKind.OTHER)
            offset += 2
        else:
            raise ValueError(f"block {data[offset]:#x} at byte {offset}")
        while data[offset]:
            offset += data[offset] + 1
        offset += 1
        yield FileSection(data[start:offset], kind)
    yield FileSection(data[offset : offset + 1], None)


def _measure_color_table(flags: int) -> int:
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _clean_bmp(data: bytes, _: bytes) -> tuple[bytes, set[MetadataKind]]:
    """Return a BMP as it is: it has no place for metadata."""
    if struct.unpack_from("<I", data, 2)[0] != len(data):
        raise ValueError("it is not as long as it says")
    return data, set()


CLEANERS: dict[str, Callable[[bytes, bytes], tuple[bytes, set[MetadataKind]]]] = {
    "JPEG": _clean_jpeg,
    "PNG": _clean_png,
    "WEBP": _clean_webp,
    "GIF": _clean_gif,
    "BMP": _clean_bmp,
}
