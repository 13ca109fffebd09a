"""Images as they are opened or refused, and measured: upright, in sRGB, flattened."""

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

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from PIL import Image, ImageCms, ImageFile

from echo_hf.errors import ImageError
from echo_hf.images.loader import (
    FORMATS,
    BadImage,
    BadImageError,
    ImageNotice,
    convert_to_srgb,
    decoding,
    detect_format,
    detect_other_format,
    load_image,
    load_rgb,
    load_upright,
    open_image,
)
from echo_hf.images.store import MAX_IMAGE_BYTES, MAX_IMAGE_PIXELS, check_image
from tests.errors_for_tests import said_by
from tests.images_for_tests import (
    encoded,
    grey_profile,
    in_srgb,
    ink_profile,
    lab_in_srgb,
    noise,
    png,
    png_chunk,
    rgb_profile,
    srgb_encoded,
)

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
    assert detect_format(data) == expected


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
    assert detect_other_format(data) is kind


def _refused(source: bytes | Path | Image.Image, **options: int) -> BadImageError:
    with pytest.raises(BadImageError) as caught, open_image(source, **options) as image:
        image.load()
    assert "\n" not in str(caught.value)
    assert caught.value.reason.meaning in str(caught.value)
    return caught.value


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
    "heavy": (bytes(MAX_IMAGE_BYTES + 1), BadImage.TOO_MANY_BYTES),
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
        with open_image(source, max_pixels=48 * 32) as image:
            assert image.size == (48, 32)
        error = _refused(source, max_pixels=48 * 32 - 1)
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
        assert width * height <= MAX_IMAGE_PIXELS


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


Levels = NDArray[np.uint8]

PHOTO = np.random.default_rng(5).integers(0, 256, (40, 60, 3), dtype=np.uint8)
SMOOTH = np.asarray(Image.fromarray(PHOTO[:5, :8]).resize((60, 40), Image.Resampling.BICUBIC))
UPRIGHT = {
    1: lambda stored: stored,
    2: lambda stored: stored[:, ::-1],
    3: lambda stored: stored[::-1, ::-1],
    4: lambda stored: stored[::-1],
    5: lambda stored: stored.swapaxes(0, 1),
    6: lambda stored: stored.swapaxes(0, 1)[:, ::-1],
    7: lambda stored: stored[::-1, ::-1].swapaxes(0, 1),
    8: lambda stored: stored.swapaxes(0, 1)[::-1],
}


def _levels(source: bytes | Image.Image, **options: object) -> Levels:
    return np.asarray(load_rgb(source, **options))  # type: ignore[arg-type]


def _notices(source: bytes | Image.Image) -> set[ImageNotice]:
    return set(load_image(source).notices)


def _over(background: tuple[int, int, int], colors: Levels, alpha: Levels) -> Levels:
    a = alpha[..., None].astype(int)
    mixed = colors.astype(int) * a + np.array(background) * (255 - a)
    return ((mixed + 127) // 255).astype(np.uint8)


@pytest.mark.parametrize("name", ["PNG", "TIFF", "JPEG", "AVIF"])
def test_the_cameras_orientation_is_applied_once(name: str) -> None:
    allowed = 3 if name in ("JPEG", "AVIF") else 1e-9
    for turn, upright in UPRIGHT.items():
        exif = Image.Exif()
        exif[0x0112] = turn
        shown = _levels(encoded(Image.fromarray(SMOOTH), name, exif=exif, quality=95))
        expected = upright(SMOOTH)
        assert shown.shape == expected.shape
        assert np.abs(shown.astype(int) - expected).mean() < allowed


def test_unreadable_notes_of_a_camera_are_said_and_cost_nothing() -> None:
    data = encoded(Image.fromarray(PHOTO), "PNG", exif=b"Exif\x00\x00ABCD\x00\x00\x00\x08")
    assert np.array_equal(_levels(data), PHOTO)
    assert _notices(data) == {ImageNotice.BAD_ORIENTATION}


@given(
    arrays(np.uint8, st.tuples(st.integers(2, 9), st.integers(2, 9), st.just(4))),
    st.tuples(*[st.integers(0, 255)] * 3),
)
def test_a_transparent_image_shows_the_background(rgba: Levels, background: Any) -> None:
    expected = _over(background, rgba[..., :3], rgba[..., 3])
    image = Image.fromarray(rgba)
    assert np.array_equal(_levels(image, background=background), expected)
    assert np.array_equal(_levels(encoded(image, "PNG"), background=background), expected)
    transparent = bool((rgba[..., 3] < 255).any())
    assert (ImageNotice.TRANSPARENT in _notices(image)) == transparent


def test_opacity_beside_grey_within_colors_and_in_palettes() -> None:
    grey = Image.merge("LA", [Image.new("L", (3, 3), 100), Image.new("L", (3, 3), 51)])
    assert _levels(grey)[0, 0].tolist() == [224] * 3  # (100 x 51 + 255 x 204) / 255
    assert np.abs(_levels(grey.convert("La")).astype(int) - 224).max() <= 1
    multiplied = Image.new("RGBA", (3, 3), (200, 100, 50, 51)).convert("RGBa")
    assert np.abs(_levels(multiplied)[0, 0].astype(int) - [244, 224, 214]).max() <= 2
    palette = Image.new("P", (3, 2))
    palette.putpalette([10, 20, 30, 200, 100, 50, 0, 0, 0])
    palette.putdata([0, 1, 2, 0, 1, 2])
    colors = np.array([[10, 20, 30], [200, 100, 50], [0, 0, 0]], np.uint8)
    assert np.array_equal(_levels(encoded(palette, "PNG"))[0], colors)
    opacity = np.array([255, 128, 0], np.uint8)
    by_entry = encoded(palette, "PNG", transparency=opacity.tobytes())
    assert np.array_equal(_levels(by_entry)[0], _over((255, 255, 255), colors, opacity))
    one_entry = encoded(palette, "GIF", transparency=1)
    assert _levels(one_entry)[0].tolist() == [[10, 20, 30], [255, 255, 255], [0, 0, 0]]


@pytest.mark.parametrize(
    ("depth", "kind", "row", "key", "expected"),
    [
        (8, 0, [7, 90, 7], [7], [255, 90, 255]),
        (8, 2, [1, 2, 3, 1, 2, 4], [1, 2, 3], [255, 255, 255, 1, 2, 4]),
        (2, 0, [0b00011011], [1], [0, 255, 170, 255]),
        (4, 0, [0x3F], [3], [255, 255]),
        (1, 0, [0b01000000], [0], [255, 255]),
        (16, 0, [0, 200, 1, 44], [300], [1, 255]),
        (16, 2, [0, 0, 1, 0, 2, 0, 9, 0, 9, 0, 9, 0], [0, 256, 512], [255, 255, 255, 9, 9, 9]),
    ],
    ids=["grey", "rgb", "grey, 2 bits", "grey, 4 bits", "1 bit", "grey, 16 bits", "rgb, 16 bits"],
)
def test_a_color_that_stands_for_transparent_is_transparent(
    depth: int, kind: int, row: list[int], key: list[int], expected: list[int]
) -> None:
    samples = len(expected) // (3 if kind == 2 else 1)
    transparent = png_chunk(b"tRNS", struct.pack(f">{len(key)}H", *key))
    data = png((samples, 2), depth, kind, (b"\x00" + bytes(row)) * 2, transparent)
    shown = _levels(data)[0]
    assert (shown if kind == 2 else shown[:, 0]).ravel().tolist() == expected
    assert ImageNotice.TRANSPARENT in _notices(data)


LADDER = np.array([[0, 128, 129, 256, 257, 1000, 32768, 65406, 65407, 65535]] * 2, np.uint16)
ROUNDED = [0, 0, 1, 1, 1, 4, 128, 254, 255, 255]  # value / 257, to the nearest


GREYS = {
    **{
        f"{name} {order}": encoded(Image.fromarray(LADDER.astype(order)), name)
        for name in ("PNG", "TIFF")
        for order in ("<u2", ">u2")
    },
    "16 bits in 32": Image.fromarray(LADDER.astype(np.int32)),
    "zero is white": encoded(Image.fromarray(65535 - LADDER), "TIFF", tiffinfo={262: 0}),
}


@pytest.mark.parametrize("source", GREYS.values(), ids=GREYS)
def test_grey_of_16_bits_is_scaled_not_cut_off(source: bytes | Image.Image) -> None:
    assert _levels(source)[0, :, 0].tolist() == ROUNDED
    assert _notices(source) == {ImageNotice.SIXTEEN_BITS}


@pytest.mark.parametrize("kind", [2, 6])
def test_colors_of_16_bits_are_within_a_level(kind: int) -> None:
    channels = 3 if kind == 2 else 4
    values = np.random.default_rng(1).integers(0, 65536, (4, 5, channels)).astype(">u2")
    values[..., 3:] = 65535
    rows = b"".join(b"\x00" + row.tobytes() for row in values)
    data = png((5, 4), 16, kind, rows)
    assert np.abs(_levels(data) - values[..., :3] / 257).max() < 1
    assert ImageNotice.SIXTEEN_BITS in _notices(data)


NUMBERS = np.arange(12).reshape(3, 4)
UNKNOWN = {
    "floating point": encoded(Image.fromarray((NUMBERS / 11).astype(np.float32)), "TIFF"),
    "32 bits": encoded(Image.fromarray(NUMBERS.astype(np.int32)), "TIFF"),
    "below 0": Image.fromarray(NUMBERS.astype(np.int32) - 1),
    "beyond 16 bits": Image.fromarray(NUMBERS.astype(np.int32) + 65_525),
}


@pytest.mark.parametrize("source", UNKNOWN.values(), ids=UNKNOWN)
def test_an_image_whose_white_nobody_defined_is_refused(source: bytes | Image.Image) -> None:
    with pytest.raises(BadImageError) as caught:
        load_rgb(source)
    assert caught.value.reason is BadImage.UNKNOWN_RANGE


def test_colors_are_converted_before_they_are_laid_over_the_background() -> None:
    rgba = np.dstack([PHOTO, np.full(PHOTO.shape[:2], 128, np.uint8)])
    data = encoded(Image.fromarray(rgba), "PNG", icc_profile=rgb_profile("p3", 2.2))
    expected = _over((0, 0, 255), in_srgb(PHOTO, "p3", 2.2), rgba[..., 3])
    assert np.abs(_levels(data, background=(0, 0, 255)).astype(int) - expected).max() <= 1


@pytest.mark.parametrize(
    ("chunks", "said"),
    [
        ([(b"gAMA", struct.pack(">I", 45455))], False),
        ([(b"gAMA", struct.pack(">I", 100_000))], True),
        ([(b"gAMA", struct.pack(">I", 100_000)), (b"sRGB", b"\x00")], False),
        ([(b"cHRM", struct.pack(">8I", 31270, 32900, 64000, 33000, 21000, 71000, 15000, 6000))],
         True),
    ],
    ids=["usual gamma", "linear", "linear but srgb", "other primaries"],
)  # fmt: skip
def test_a_gamma_without_a_profile_is_ignored_and_said(chunks: Any, said: bool) -> None:
    more = [png_chunk(*chunk) for chunk in chunks]
    data = png((2, 2), 8, 0, b"\x00\x40\x80" * 2, *more)
    assert _levels(data)[0, :, 0].tolist() == [0x40, 0x80]
    assert _notices(data) == ({ImageNotice.GAMMA_IGNORED} if said else set())


def test_print_colors_without_a_profile_are_complements() -> None:
    inks = Image.new("CMYK", (8, 8), (51, 102, 0, 51))
    expected = [(255 - ink) * (255 - 51) / 255 for ink in (51, 102, 0)]
    assert np.abs(_levels(encoded(inks, "TIFF"))[0, 0] - expected).max() <= 1
    assert np.abs(_levels(encoded(inks, "JPEG", quality=95))[0, 0] - expected).max() <= 3


@pytest.mark.parametrize("name", ["GIF", "WEBP", "PNG", "TIFF", "MPO", "AVIF"])
def test_of_several_frames_the_first_is_taken_and_said(name: str) -> None:
    first, second = Image.new("RGB", (20, 20), (255, 0, 0)), Image.new("RGB", (20, 20), (0, 0, 255))
    data = encoded(first, name, save_all=True, append_images=[second])
    assert np.abs(_levels(data).astype(int) - [255, 0, 0]).max() <= 3
    assert ImageNotice.ANIMATED in _notices(data)


def test_a_lazily_opened_image_is_held_to_the_same_rules(tmp_path: Path) -> None:
    data = encoded(Image.fromarray(PHOTO), "JPEG")
    (tmp_path / "half.jpg").write_bytes(data[: len(data) // 2])
    with Image.open(tmp_path / "half.jpg") as half, pytest.raises(BadImageError) as caught:
        load_rgb(half)
    assert caught.value.reason is BadImage.TRUNCATED


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr", "HSV"])
def test_the_result_is_a_new_image_without_metadata(mode: str) -> None:
    image = Image.fromarray(SMOOTH).convert(mode)
    image.info.update(icc_profile=rgb_profile("p3", 2.2), comment="from the camera")
    before = image.tobytes(), image.mode, dict(image.info)
    shown = load_rgb(image)
    assert shown.mode == "RGB"
    assert not shown.info
    assert not shown.getexif()
    shown.paste((0, 0, 0), (0, 0, *shown.size))
    assert (image.tobytes(), image.mode, image.info) == before


LEVELS = np.random.default_rng(3).integers(0, 256, (64, 64, 3), dtype=np.uint8)
SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def _off(one: Image.Image, other: np.ndarray) -> int:
    return int(np.abs(np.asarray(one, np.int16) - other.astype(np.int16)).max())


@pytest.mark.parametrize(
    ("space", "gamma", "moved"), [("adobe", 563 / 256, 40), ("p3", 2.2, 40), ("srgb", 1.0, 60)]
)
def test_primaries_and_a_gamma_are_what_they_state(space: str, gamma: float, moved: int) -> None:
    data = encoded(Image.fromarray(LEVELS), "PNG", icc_profile=rgb_profile(space, gamma))
    expected = in_srgb(LEVELS, space, gamma)
    assert _off(load_rgb(data), expected) <= 1
    assert np.array_equal(_levels(data, color_management=False), LEVELS)
    assert not _notices(data)
    assert np.abs(expected.astype(int) - LEVELS).max() > moved


def test_grey_with_a_gamma_is_what_it_states() -> None:
    ramp = np.arange(256, dtype=np.uint8)[None]
    shown, notice = convert_to_srgb(Image.fromarray(ramp), grey_profile(1.0))
    expected = srgb_encoded((ramp / 255.0)[..., None].repeat(3, -1))
    assert notice is None
    assert _off(shown, expected) <= 1


def test_inks_are_looked_up_in_the_profile() -> None:
    corners = np.full((16, 3), [0, 128, 128], np.uint8)
    corners[0] = 255, 128, 128
    corners[8], corners[4], corners[2] = (140, 110, 90), (125, 190, 120), (225, 120, 210)
    inks = Image.new("CMYK", (4, 1))
    for at, ink in enumerate([(0, 0, 0, 0), (255, 0, 0, 0), (0, 255, 0, 0), (0, 0, 255, 0)]):
        inks.putpixel((at, 0), ink)
    shown, notice = convert_to_srgb(inks, ink_profile(corners))
    measured = corners[[0, 8, 4, 2]].astype(float)
    lab = np.stack([measured[:, 0] / 2.55, measured[:, 1] - 128, measured[:, 2] - 128], -1)
    assert notice is None
    assert _off(shown, lab_in_srgb(lab)[None]) <= 2
    assert _off(inks.convert("RGB"), lab_in_srgb(lab)[None]) > 30


@pytest.mark.parametrize(
    "profile",
    [SRGB, rgb_profile("srgb", None), rgb_profile("srgb", None, off=1e-4)],
    ids=["own", "in steps", "in four decimals"],
)
def test_what_is_srgb_already_keeps_its_numbers(profile: bytes) -> None:
    shown, notice = convert_to_srgb(Image.fromarray(LEVELS), profile)
    assert notice is None
    assert np.array_equal(np.asarray(shown), LEVELS)


@pytest.mark.parametrize(
    ("mode", "profile", "expected"),
    [
        *(
            ("RGB", profile, ImageNotice.BAD_PROFILE)
            for profile in (b"", b"not a profile", SRGB[:200], SRGB[:128] + bytes(460))
        ),
        *((mode, SRGB, ImageNotice.OTHER_PROFILE) for mode in ("L", "CMYK", "LAB")),
    ],
)
def test_a_profile_that_cannot_be_used_is_none_and_said(
    mode: str, profile: bytes, expected: ImageNotice
) -> None:
    image = Image.new(mode, (2, 2), 90)
    shown, notice = convert_to_srgb(image, profile)
    assert notice is expected
    assert shown.tobytes() == image.convert("RGB").tobytes()


def test_a_file_is_read_by_its_digest(tmp_path: Path) -> None:
    path, digest = tmp_path / "picture", "0" * 64
    path.write_bytes(encoded(Image.fromarray(PHOTO), "PNG"))

    def told(path: Path, sha256: str | None = None) -> str:
        said = said_by(ImageError, load_upright, path, sha256)
        assert str(tmp_path) not in said
        return said

    assert load_upright(path).size == (60, 40)
    assert told(tmp_path / "ab12") == (
        "image 'ab12' cannot be read, No such file or directory: run `collect` again to fetch it"
    )
    assert told(path, digest) == f"image {digest!r} has changed on disk: run `collect` again"
    path.write_bytes(b"no image")
    assert "image 'picture': " in told(path)
