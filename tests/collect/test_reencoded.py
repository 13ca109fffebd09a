"""Copies are linked whatever packed them; edits are not, however small."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image, ImageFilter

from echo_hf.collect.download import reencoded_copies
from echo_hf.images.decode import BadImageError
from echo_hf.images.loader import load_rgb
from echo_hf.reasons import BadImage
from tests.collect.images_like_posts import photograph, scaled, tinted, with_disc, with_words
from tests.images_for_tests import encoded, rgb_profile
from tests.stages_for_tests import ROOT

QUICKSTART = ROOT / "echo_hf" / "quickstart" / "pictures"


class Folder:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.files: dict[str, Path] = {}

    def add(self, data: bytes | Image.Image) -> str:
        data = encoded(data, "PNG", compress_level=1) if isinstance(data, Image.Image) else data
        digest = hashlib.sha256(data).hexdigest()
        self.files[digest] = self.root / digest
        self.files[digest].write_bytes(data)
        return digest


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def _linked(folder: Folder, first: bytes | Image.Image, second: bytes | Image.Image) -> bool:
    folder.files.clear()
    one, other = folder.add(first), folder.add(second)
    links = reencoded_copies(folder.files)
    assert links in ({}, {other: one})
    return bool(links)


@pytest.mark.parametrize(
    ("seed", "quality", "sub"), [(11, 60, 0), (12, 60, 2), (13, 75, 1), (14, 95, 2)]
)
def test_jpeg_links(
    tmp_path_factory: pytest.TempPathFactory, seed: int, quality: int, sub: int
) -> None:
    image = with_words(photograph(seed), "our blue hour", (60, 200), 36)
    data = encoded(image, "JPEG", quality=quality, subsampling=sub)
    assert _linked(Folder(tmp_path_factory.mktemp("a")), image, data)


@pytest.mark.parametrize(
    ("seed", "factor", "how", "quality"),
    [
        (21, 0.5, Image.Resampling.LANCZOS, 95),
        (22, 0.73, Image.Resampling.BICUBIC, 75),
        (23, 1.6, Image.Resampling.LANCZOS, 75),
    ],
)
def test_modest_scaling_links(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    factor: float,
    how: Image.Resampling,
    quality: int,
) -> None:
    image = photograph(seed)
    data = encoded(scaled(image, factor, how), "JPEG", quality=quality)
    assert _linked(Folder(tmp_path_factory.mktemp("a")), image, data)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("PNG", {}),
        ("WEBP", {"quality": 75}),
        ("WEBP", {"lossless": True}),
        ("AVIF", {"quality": 70}),
        ("TIFF", {}),
        ("BMP", {}),
    ],
)
def test_other_formats_link(folder: Folder, name: str, options: dict[str, object]) -> None:
    image = with_words(photograph(4), "our blue hour", (60, 200), 36)
    packed = encoded(image, name, **options)
    assert _linked(folder, image, packed)
    assert _linked(folder, packed, image)


def test_a_turned_and_a_tagged_copy_link(folder: Folder) -> None:
    image = photograph(5)
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = image.transpose(Image.Transpose.ROTATE_90)
    assert _linked(folder, image, encoded(turned, "PNG", exif=exif))
    assert not _linked(folder, image, turned)
    tagged = encoded(image, "PNG", icc_profile=rgb_profile("p3", 2.2))
    assert _linked(folder, tagged, encoded(load_rgb(tagged), "JPEG", quality=90))
    assert not _linked(folder, tagged, image)


@pytest.mark.parametrize(
    ("seed", "channel", "factor", "quality"),
    [(31, 0, 0.97, None), (32, 1, 1.03, 95), (33, 2, 0.97, 75), (34, 2, 1.03, 95)],
)
def test_a_tint_of_three_percent_does_not_link(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    channel: int,
    factor: float,
    quality: int | None,
) -> None:
    image = photograph(seed)
    edit = tinted(image, channel, factor)
    data = encoded(edit, "JPEG", quality=quality) if quality else encoded(edit, "PNG")
    assert not _linked(Folder(tmp_path_factory.mktemp("a")), image, data)


EDITS: dict[str, Callable[[Image.Image], tuple[Image.Image, Image.Image]]] = {
    "changed word": lambda one: (
        with_words(one, "our blue hour", (60, 200), 36),
        with_words(one, "our blue huor", (60, 200), 36),
    ),
    "changed small word": lambda one: (
        with_words(one, "our blue hour", (60, 200), 16),
        with_words(one, "our blue huor", (60, 200), 16),
    ),
    "moved disc": lambda one: (with_disc(one, (300, 200), 24), with_disc(one, (324, 200), 24)),
    "moved small disc": lambda one: (with_disc(one, (300, 200), 9), with_disc(one, (309, 203), 9)),
    "removed disc": lambda one: (with_disc(one, (9, 340), 14), one),
    "mirrored": lambda one: (one, one.transpose(Image.Transpose.FLIP_LEFT_RIGHT)),
    "cropped": lambda one: (one, one.crop((8, 8, 472, 352))),
    "squashed": lambda one: (one, one.resize((480, 420))),
    "blurred": lambda one: (one, one.filter(ImageFilter.GaussianBlur(6))),
    "darker": lambda one: (one, one.point(lambda level: level * 0.96)),
    "grey": lambda one: (one, one.convert("L").convert("RGB")),
}  # fmt: skip


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("quality", [None, 75])
def test_a_local_edit_does_not_link(folder: Folder, edit: str, quality: int | None) -> None:
    for seed in range(1):
        before, after = EDITS[edit](photograph(seed))
        data = encoded(after, "JPEG", quality=quality) if quality else encoded(after, "PNG")
        assert not _linked(folder, before, data)


def test_a_word_that_is_small_in_a_large_image_is_seen(folder: Folder) -> None:
    large = photograph(6, (1200, 900))
    before, after = (
        with_words(large, f"our blue {word}", (500, 400), 20) for word in ("hour", "huor")
    )
    assert not _linked(folder, before, encoded(after, "JPEG", quality=80))
    assert _linked(folder, before, encoded(before, "JPEG", quality=80))


@pytest.mark.parametrize(
    ("name", "options"),
    [("JPEG", {"quality": 60}), pytest.param("WEBP", {"quality": 90}, marks=pytest.mark.slow)],
    ids=["jpeg", "webp"],
)
def test_copies_of_all_of_them_are_linked_each_to_its_own(
    folder: Folder, name: str, options: dict[str, object]
) -> None:
    expected: dict[str, str] = {}
    for path in sorted(QUICKSTART.iterdir())[::3]:
        digest = folder.add(path.read_bytes())
        copy = encoded(load_rgb(path), name, **options)
        expected[hashlib.sha256(copy).hexdigest()] = digest
    for path in sorted(QUICKSTART.iterdir())[::3]:
        folder.add(encoded(load_rgb(path), name, **options))
    assert reencoded_copies(folder.files) == {
        copy: first for copy, first in expected.items() if copy != first
    }


def test_copies_are_linked_to_the_first_and_steps_do_not_add_up(folder: Folder) -> None:
    greys = [folder.add(Image.new("RGB", (64, 64), (level,) * 3)) for level in range(100, 105)]
    assert reencoded_copies(folder.files) == {greys[1]: greys[0], greys[3]: greys[2]}
    backwards = dict(reversed(folder.files.items()))
    assert reencoded_copies(backwards) == {greys[3]: greys[4], greys[1]: greys[2]}


def test_several_copies_have_one_first_however_many_threads_look(folder: Folder) -> None:
    expected: dict[str, str] = {}
    for seed in range(4):
        image = photograph(seed, (320, 240))
        first = folder.add(image)
        for quality in (60, 75, 90):
            expected[folder.add(encoded(image, "JPEG", quality=quality))] = first
    for workers in (1, 3):
        assert reencoded_copies(folder.files, workers=workers) == expected


def test_an_image_that_cannot_be_loaded_is_said(folder: Folder) -> None:
    image = photograph(8, (320, 240))
    first = folder.add(image)
    broken = folder.add(encoded(image, "PNG")[:5000])
    copy = folder.add(encoded(image, "JPEG", quality=80))
    with pytest.raises(BadImageError, match=broken):
        reencoded_copies(folder.files)
    said: list[tuple[str, BadImage]] = []
    links = reencoded_copies(
        folder.files, unreadable=lambda name, error: said.append((name, error.reason))
    )
    assert links == {copy: first}
    assert said == [(broken, BadImage.TRUNCATED)]


def test_progress_is_told_and_nothing_is_nothing(folder: Folder) -> None:
    assert reencoded_copies({}) == {}
    for level in (0, 90, 200):
        folder.add(Image.new("RGB", (32, 32), (level,) * 3))
    seen: list[tuple[int, int]] = []
    reencoded_copies(folder.files, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]
