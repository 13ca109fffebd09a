"""Metadata goes; pixels, colors and orientation stay."""

from __future__ import annotations

import io
import random
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageCms, PngImagePlugin

from echo_hf.errors import ImageError
from echo_hf.images.loader import load_rgb
from echo_hf.images.metadata import remove_metadata
from tests.images_for_tests import encoded

SECRETS = (b"Mira Okafor", b"SN-4711-XQ", b"drawn for Noor", b"48.2082")
ARTIST, SERIAL, NOTE, PLACE = (secret.decode() for secret in SECRETS)
XMP = (
    '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description tiff:Orientation="6" '
    f'dc:creator="{ARTIST}" exif:GPSLatitude="{PLACE}"/></x:xmpmeta>'
).encode()
PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
NOISY = Image.fromarray(np.random.default_rng(7).integers(0, 256, (32, 48, 3), np.uint8))


def camera_notes(orientation: int = 6) -> bytes:
    notes = Image.Exif()
    notes[0x0112] = orientation
    notes[0x013B] = ARTIST
    notes.get_ifd(0x8769)[0xA431] = SERIAL
    notes.get_ifd(0x8825)[0x0005] = b"\0"
    notes.get_ifd(0x8825)[0x001D] = PLACE
    return notes.tobytes()


def saved(kind: str, mode: str = "RGB", **options: object) -> bytes:
    return encoded(NOISY.convert(mode), kind, **options)


def texts() -> PngImagePlugin.PngInfo:
    info = PngImagePlugin.PngInfo()
    info.add_text("Author", ARTIST)
    info.add_text("parameters", NOTE, zip=True)
    info.add_itxt("XML:com.adobe.xmp", XMP.decode())
    return info


def segment(marker: int, body: bytes) -> bytes:
    return b"\xff" + bytes([marker]) + struct.pack(">H", len(body) + 2) + body


def jpeg(**options: object) -> bytes:
    plain = saved(
        "JPEG", exif=camera_notes(), xmp=XMP, comment=NOTE, icc_profile=PROFILE, **options
    )
    desk = segment(0xED, b"Photoshop 3.0\x008BIM\x04\x04\0\0\0\0\0\x0b" + SECRETS[0])
    signed = segment(0xEB, b"JP\0\1c2pa " + SECRETS[1])
    scan = plain.index(b"\xff\xda")
    later = plain.index(b"\xff\xda", scan + 2) if options.get("progressive") else scan
    between = segment(0xFE, SECRETS[2])
    return plain[:scan] + desk + signed + plain[scan:later] + between + plain[later:] + SECRETS[3]


FRAMES = {"save_all": True, "append_images": [NOISY.rotate(180)], "duration": 80, "loop": 0}
EXIF = {"exif": camera_notes()}
NOTED = {
    "jpeg": (jpeg(), "comment exif gps iptc other xmp"),
    "progressive": (jpeg(progressive=True), "comment exif gps iptc other xmp"),
    "mpo": (saved("MPO", **EXIF, save_all=True, append_images=[NOISY]), "exif gps other"),
    "png": (
        saved("PNG", pnginfo=texts(), **EXIF, icc_profile=PROFILE) + SECRETS[3],
        "exif gps other text xmp",
    ),
    "apng": (saved("PNG", pnginfo=texts(), **FRAMES), "gps text xmp"),
    "webp": (saved("WEBP", **EXIF, xmp=XMP, icc_profile=PROFILE, lossless=True), "exif gps xmp"),
    "animated webp": (saved("WEBP", **EXIF, **FRAMES), "exif gps"),
    "gif": (saved("GIF", comment=NOTE, **FRAMES) + SECRETS[0], "comment other"),
    "grey": (saved("JPEG", "L", comment=NOTE), "comment"),
    "inks": (saved("JPEG", "CMYK", comment=NOTE), "comment"),
    "palette": (saved("PNG", "P", transparency=3, pnginfo=texts()), "gps text xmp"),
}


def pixels(data: bytes) -> list[bytes]:
    with Image.open(io.BytesIO(data)) as image:
        frames = []
        # An MPO is read as the JPEG that it begins with.
        for frame in range(1 if image.format == "MPO" else getattr(image, "n_frames", 1)):
            image.seek(frame)
            frames.append(image.tobytes())
        return frames


def profile(data: bytes) -> bytes | None:
    found: bytes | None = Image.open(io.BytesIO(data)).info.get("icc_profile")
    return found


@pytest.mark.parametrize(("data", "kinds"), NOTED.values(), ids=NOTED)
def test_leaves_no_planted_word_and_keeps_what_is_seen(data: bytes, kinds: str) -> None:
    cleaned = remove_metadata(data)
    assert " ".join(cleaned.kinds) == kinds
    assert not [secret for secret in SECRETS if secret in cleaned.data]
    assert pixels(cleaned.data) == pixels(data)  # of every frame
    assert load_rgb(cleaned.data).tobytes() == load_rgb(data).tobytes()  # upright as before
    assert profile(cleaned.data) == profile(data)
    again = remove_metadata(cleaned.data)
    assert again.data is cleaned.data
    assert again.kinds == ()


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_keeps_each_orientation(kind: str) -> None:
    for orientation in range(1, 9):
        cleaned = remove_metadata(saved(kind, exif=camera_notes(orientation))).data
        assert Image.open(io.BytesIO(cleaned)).getexif().get(0x0112, 1) == orientation


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF", "BMP"])
def test_returns_the_object_that_has_nothing(kind: str) -> None:
    data = saved(kind)
    assert remove_metadata(data) == (data, ())
    assert remove_metadata(data).data is data


UNKNOWN = struct.pack(">I4s2sI", 2, b"WHAT", b"hi", zlib.crc32(b"WHAThi"))
REFUSED = {
    "tiff": saved("TIFF", **EXIF),
    "avif": saved("AVIF", **EXIF),
    "bmp with more": saved("BMP") + SECRETS[0],
    "cut jpeg": jpeg()[:400],
    "cut png": saved("PNG")[:60],
    "unknown critical chunk": saved("PNG")[:-12] + UNKNOWN + saved("PNG")[-12:],
    "no image": b"no image",
}


@pytest.mark.parametrize("data", REFUSED.values(), ids=REFUSED)
def test_refuses_what_it_cannot_clean(data: bytes) -> None:
    with pytest.raises(ImageError):
        remove_metadata(data)


@given(name=st.sampled_from(sorted(NOTED)), seed=st.integers(0, 2**32))
def test_a_damaged_file_is_refused_or_keeps_its_pixels(name: str, seed: int) -> None:
    draw = random.Random(seed)
    data = bytearray(NOTED[name][0])
    for _ in range(draw.randint(1, 6)):
        data[draw.randrange(len(data))] = draw.randrange(256)
    try:
        before = load_rgb(bytes(data))
        cleaned = remove_metadata(bytes(data)).data
    except ImageError:
        return
    assert load_rgb(cleaned).tobytes() == before.tobytes()
