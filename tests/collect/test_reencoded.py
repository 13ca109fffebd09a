"""Copies are linked whatever packed them; edits are not, however small."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageFilter

from echo_hf.collect.download import ImageSignatures
from echo_hf.images.loader import BadImage, load_rgb
from tests.collect.images_like_posts import photograph, scaled, tinted, with_disc, with_words
from tests.images_for_tests import encoded, rgb_profile
from tests.stages_for_tests import ROOT

QUICKSTART = sorted((ROOT / "echo_hf" / "quickstart" / "pictures").iterdir())[::6]
Picture = bytes | Image.Image


class Folder:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.files: dict[str, Path] = {}

    def add(self, data: Picture) -> str:
        data = encoded(data, "PNG", compress_level=1) if isinstance(data, Image.Image) else data
        digest = hashlib.sha256(data).hexdigest()
        self.files[digest] = self.root / digest
        self.files[digest].write_bytes(data)
        return digest

    def links(self, *told: Any) -> dict[str, str]:
        return ImageSignatures(self.files, *(told or (pytest.fail,))).find_copies(self.files)

    def linked(self, first: Picture, second: Picture) -> bool:
        self.files.clear()
        one, other = self.add(first), self.add(second)
        links = self.links()
        assert links in ({}, {other: one})
        return bool(links)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def lettered(seed: int, words: str = "our blue hour", height: int = 36) -> Image.Image:
    return with_words(photograph(seed), words, (60, 200), height)


def jpeg(image: Image.Image, quality: int = 75, **options: Any) -> bytes:
    return encoded(image, "JPEG", quality=quality, **options)


def turned(image: Image.Image) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6
    return encoded(image.transpose(Image.Transpose.ROTATE_90), "PNG", exif=exif)


TAGGED = encoded(photograph(5), "PNG", icc_profile=rgb_profile("p3", 2.2))
BICUBIC = Image.Resampling.BICUBIC
COPIES: dict[str, tuple[Picture, Picture]] = {
    "jpeg 60, less color": (lettered(12), jpeg(lettered(12), 60, subsampling=2)),
    "jpeg 95": (lettered(14), jpeg(lettered(14), 95, subsampling=2)),
    "half as large": (photograph(21), jpeg(scaled(photograph(21), 0.5), 95)),
    "smaller": (photograph(22), jpeg(scaled(photograph(22), 0.73, BICUBIC))),
    "larger": (photograph(23), jpeg(scaled(photograph(23), 1.6))),
    "webp": (lettered(4), encoded(lettered(4), "WEBP", quality=75)),
    "avif": (lettered(4), encoded(lettered(4), "AVIF", quality=70)),
    "tiff": (lettered(4), encoded(lettered(4), "TIFF")),
    "turned by its EXIF": (photograph(5), turned(photograph(5))),
    "its profile applied": (TAGGED, jpeg(load_rgb(TAGGED), 90)),
}
EDITS: dict[str, Callable[[Image.Image], tuple[Image.Image, Image.Image]]] = {
    "changed word": lambda _: (lettered(1), lettered(1, "our blue huor")),
    "moved small disc": lambda one: (with_disc(one, (300, 200), 9), with_disc(one, (309, 203), 9)),
    "removed disc": lambda one: (with_disc(one, (9, 340), 14), one),
    "mirrored": lambda one: (one, one.transpose(Image.Transpose.FLIP_LEFT_RIGHT)),
    "turned": lambda one: (one, one.transpose(Image.Transpose.ROTATE_90)),
    "cropped": lambda one: (one, one.crop((8, 8, 472, 352))),
    "squashed": lambda one: (one, one.resize((480, 420))),
    "blurred": lambda one: (one, one.filter(ImageFilter.GaussianBlur(6))),
    "darker": lambda one: (one, one.point(lambda level: level * 0.96)),
    "grey": lambda one: (one, one.convert("L").convert("RGB")),
    "less red": lambda one: (one, tinted(one, 0, 0.97)),
    "more blue": lambda one: (one, tinted(one, 2, 1.03)),
}


@pytest.mark.parametrize(("first", "second"), COPIES.values(), ids=COPIES)
def test_a_copy_links(folder: Folder, first: Picture, second: Picture) -> None:
    assert folder.linked(first, second)
    assert folder.linked(second, first)


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_does_not_link(folder: Folder, edit: str) -> None:
    before, after = EDITS[edit](photograph(1))
    assert not folder.linked(before, jpeg(after, 95 if "more" in edit else 75))


def test_a_word_that_is_small_in_a_large_image_is_seen_and_so_is_a_profile(folder: Folder) -> None:
    large = photograph(6, (1200, 900))
    before, after = (
        with_words(large, f"our blue {word}", (500, 400), 20) for word in ("hour", "huor")
    )
    assert not folder.linked(before, jpeg(after, 80))
    assert folder.linked(before, jpeg(before, 80))
    assert not folder.linked(TAGGED, photograph(5))  # the same levels


def test_copies_of_all_of_them_are_linked_each_to_its_own(folder: Folder) -> None:
    firsts = [folder.add(path.read_bytes()) for path in QUICKSTART]
    copies = [folder.add(jpeg(load_rgb(path), 60)) for path in QUICKSTART]

    assert folder.links() == dict(zip(copies, firsts, strict=True))


def test_copies_are_linked_to_the_first_and_steps_do_not_add_up(folder: Folder) -> None:
    greys = [folder.add(Image.new("RGB", (64, 64), (level,) * 3)) for level in range(100, 105)]
    assert folder.links() == {greys[1]: greys[0], greys[3]: greys[2]}
    folder.files = dict(reversed(folder.files.items()))
    assert folder.links() == {greys[3]: greys[4], greys[1]: greys[2]}


def test_several_copies_have_one_first(folder: Folder) -> None:
    expected: dict[str, str] = {}
    for seed in range(4):
        image = photograph(seed, (320, 240))
        first = folder.add(image)
        expected |= {folder.add(jpeg(image, quality)): first for quality in (60, 75, 90)}
    assert folder.links() == expected


def test_an_image_that_cannot_be_loaded_is_said_and_progress_is_told(folder: Folder) -> None:
    image = photograph(8, (320, 240))
    first, broken = folder.add(image), folder.add(encoded(image, "PNG")[:5000])
    copy = folder.add(jpeg(image, 80))
    said: list[tuple[str, BadImage]] = []
    seen: list[tuple[int, int]] = []
    links = folder.links(
        lambda name, error: said.append((name, error.reason)),
        lambda done, total: seen.append((done, total)),
    )

    assert links == {copy: first}
    assert said == [(broken, BadImage.TRUNCATED)]
    assert seen == [(1, 3), (2, 3), (3, 3)]
