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
from echo_hf.images.metadata import without_metadata

SECRETS = (b"Mira Okafor", b"SN-4711-XQ", b"drawn for Noor", b"48.2082")
ARTIST, SERIAL, NOTE, PLACE = (secret.decode() for secret in SECRETS)
XMP = (
    '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description tiff:Orientation="6" '
    f'dc:creator="{ARTIST}" exif:GPSLatitude="{PLACE}"/></x:xmpmeta>'
).encode()
PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def noisy(mode: str = "RGB", size: tuple[int, int] = (48, 32)) -> Image.Image:
    pixels = np.random.default_rng(7).integers(0, 256, (size[1], size[0], 3), np.uint8)
    return Image.fromarray(pixels).convert(mode)


def camera_notes(orientation: int = 6) -> bytes:
    notes = Image.Exif()
    notes[0x0112] = orientation
    notes[0x013B] = ARTIST
    notes.get_ifd(0x8769)[0xA431] = SERIAL
    notes.get_ifd(0x8825)[0x0005] = b"\0"
    notes.get_ifd(0x8825)[0x001D] = PLACE
    return notes.tobytes()


def saved(kind: str, image: Image.Image | None = None, **options: object) -> bytes:
    sink = io.BytesIO()
    (image or noisy()).save(sink, kind, **options)
    return sink.getvalue()


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


FRAMES = {"save_all": True, "append_images": [noisy().rotate(180)], "duration": 80, "loop": 0}
NOTED = {
    "jpeg": (jpeg, "comment exif gps iptc other xmp"),
    "progressive": (lambda: jpeg(progressive=True), "comment exif gps iptc other xmp"),
    "mpo": (
        lambda: saved("MPO", exif=camera_notes(), save_all=True, append_images=[noisy()]),
        "exif gps other",
    ),
    "png": (
        lambda: (
            saved("PNG", pnginfo=texts(), exif=camera_notes(), icc_profile=PROFILE) + SECRETS[3]
        ),
        "exif gps other text xmp",
    ),
    "apng": (lambda: saved("PNG", pnginfo=texts(), **FRAMES), "gps text xmp"),
    "webp": (
        lambda: saved("WEBP", exif=camera_notes(), xmp=XMP, icc_profile=PROFILE, lossless=True),
        "exif gps xmp",
    ),
    "animated webp": (lambda: saved("WEBP", exif=camera_notes(), **FRAMES), "exif gps"),
    "gif": (lambda: saved("GIF", comment=NOTE, **FRAMES) + SECRETS[0], "comment other"),
}


def pixels(data: bytes) -> list[bytes]:
    with Image.open(io.BytesIO(data)) as image:
        frames = []
        # An MPO is read as the JPEG that it begins with.
        for frame in range(1 if image.format == "MPO" else getattr(image, "n_frames", 1)):
            image.seek(frame)
            frames.append(image.tobytes())
        return frames


@pytest.fixture(params=NOTED)
def noted(request: pytest.FixtureRequest) -> tuple[bytes, str]:
    make, kinds = NOTED[request.param]
    return make(), kinds


def test_leaves_no_planted_word_and_keeps_what_is_seen(noted: tuple[bytes, str]) -> None:
    data, kinds = noted
    cleaned = without_metadata(data)
    assert " ".join(cleaned.kinds) == kinds
    assert not [secret for secret in SECRETS if secret in cleaned.data]
    assert pixels(cleaned.data) == pixels(data)  # of every frame
    assert load_rgb(cleaned.data).tobytes() == load_rgb(data).tobytes()  # upright as before
    before, after = (
        Image.open(io.BytesIO(one)).info.get("icc_profile") for one in (data, cleaned.data)
    )
    assert after == before
    again = without_metadata(cleaned.data)
    assert again.data is cleaned.data
    assert again.kinds == ()


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_keeps_each_orientation(kind: str, orientation: int) -> None:
    cleaned = without_metadata(saved(kind, exif=camera_notes(orientation))).data
    assert Image.open(io.BytesIO(cleaned)).getexif().get(0x0112, 1) == orientation


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "GIF", "BMP"])
def test_returns_the_object_that_has_nothing(kind: str) -> None:
    data = saved(kind)
    cleaned = without_metadata(data)
    assert cleaned.data is data
    assert cleaned.kinds == ()


@pytest.mark.parametrize(
    "data",
    [
        saved("JPEG", noisy("L"), comment=NOTE),
        saved("JPEG", noisy("CMYK"), comment=NOTE),
        saved("PNG", noisy("P"), transparency=3, pnginfo=texts()),
    ],
    ids=["grey", "inks", "palette"],
)
def test_keeps_how_colors_and_transparency_are_stored(data: bytes) -> None:
    cleaned = without_metadata(data)
    assert cleaned.kinds
    assert pixels(cleaned.data) == pixels(data)
    assert load_rgb(cleaned.data).tobytes() == load_rgb(data).tobytes()


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(saved("TIFF", exif=camera_notes()), id="tiff"),
        pytest.param(saved("AVIF", exif=camera_notes()), id="avif"),
        pytest.param(saved("BMP") + SECRETS[0], id="bmp with more"),
        pytest.param(jpeg()[:400], id="cut jpeg"),
        pytest.param(saved("PNG")[:60], id="cut png"),
        pytest.param(
            saved("PNG")[:-12]
            + struct.pack(">I4s2sI", 2, b"WHAT", b"hi", zlib.crc32(b"WHAThi"))
            + saved("PNG")[-12:],
            id="unknown critical chunk",
        ),
        pytest.param(b"no image", id="no image"),
    ],
)
def test_refuses_what_it_cannot_clean(data: bytes) -> None:
    with pytest.raises(ImageError):
        without_metadata(data)


@given(name=st.sampled_from(sorted(NOTED)), seed=st.integers(0, 2**32))
def test_a_damaged_file_is_refused_or_keeps_its_pixels(name: str, seed: int) -> None:
    draw = random.Random(seed)
    data = bytearray(NOTED[name][0]())
    for _ in range(draw.randint(1, 6)):
        data[draw.randrange(len(data))] = draw.randrange(256)
    try:
        before = load_rgb(bytes(data))
        cleaned = without_metadata(bytes(data)).data
    except ImageError:
        return
    assert load_rgb(cleaned).tobytes() == before.tobytes()
