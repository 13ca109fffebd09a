"""The store of images: whole, checked, on the disk, and once each."""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from echo_hf.errors import ImageError
from echo_hf.images.store import FORMATS, MOST_BYTES, ImageStore, check_image
from tests.errors_for_tests import said_by
from tests.images_for_tests import encoded, noise, png

ENCODED = {name: encoded(noise((40, 30)), name) for name in FORMATS}
PNG = ENCODED["PNG"]
DIGEST = hashlib.sha256(PNG).hexdigest()
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="9"/></svg>'


@pytest.fixture
def images(tmp_path: Path) -> ImageStore:
    return ImageStore(tmp_path / "run" / "pictures")


@pytest.mark.parametrize("name", FORMATS)
def test_an_image_of_each_format_comes_back_as_its_bytes(images: ImageStore, name: str) -> None:
    data = ENCODED[name]
    assert check_image(data) == (40, 30)
    digest = images.put(data)
    assert digest == hashlib.sha256(data).hexdigest()
    assert images.open(digest) == data
    assert images.path(digest) == images.root / digest[:2] / digest


def test_an_image_is_on_the_disk_before_it_has_its_name(
    images: ImageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    through: list[tuple[bool, bool]] = []
    place, sync = images.path(DIGEST), os.fsync

    def fsync(number: int) -> None:
        is_folder = Path(f"/dev/fd/{number}").is_dir()
        through.append((place.exists(), is_folder))
        assert is_folder or os.fstat(number).st_size == len(PNG)
        sync(number)

    monkeypatch.setattr(os, "fsync", fsync)
    images.put(PNG)
    assert through == [(False, False), (True, True), (True, True)]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        *(
            (data, f"{data[:16]!r}... is not a readable image, expected one of AVIF, BMP, GIF, ")
            for data in (b"", b"just some words", SVG, b"%PDF-1.4\n", b"P6 1 1 255 abc")
        ),
        (bytes(MOST_BYTES + 1), "67108865 bytes, expected at most 67108864"),
        (png((10_001, 10_000), 8, 0, bytes(9)), "10001 x 10000, expected at most 100000000 pixels"),
        (png((60_000, 60_000), 8, 0, bytes(9)), "decoded: Image size (3600000000 pixels) exceeds"),
        (PNG[: len(PNG) // 2], "cannot be decoded: "),
    ],
    ids=["empty", "text", "svg", "pdf", "ppm", "heavy", "large", "bomb", "half"],
)
def test_what_is_refused_is_told_and_not_kept(images: ImageStore, data: bytes, said: str) -> None:
    assert said in said_by(ImageError, images.put, data)
    assert not images.root.exists()


def test_an_image_that_is_not_there_or_has_changed_is_told_of(images: ImageStore) -> None:
    with pytest.raises(ImageError, match=rf"no image '{DIGEST}' in .*: run `collect` again"):
        images.open(DIGEST)
    images.put(PNG)
    images.path(DIGEST).write_bytes(ENCODED["JPEG"])
    with pytest.raises(ImageError, match="has changed: delete the file"):
        images.open(DIGEST)


@pytest.mark.parametrize(
    "digest",
    [
        "",
        "../../../../etc/passwd",
        "/etc/passwd".ljust(64, "a"),
        "..".ljust(64, "/"),
        "A" * 64,
        "a" * 63,
        "a" * 65,
        "a" * 63 + "\n",
        "١" * 64,
    ],
)
def test_only_a_sha256_names_an_image(images: ImageStore, digest: str) -> None:
    for ask in (images.path, images.open):
        with pytest.raises(ImageError) as caught:
            ask(digest)
        assert str(caught.value).startswith(f"{digest!r} is not a sha256: expected 64 hexadecimal")


def test_the_same_bytes_are_one_file(images: ImageStore) -> None:
    images.put(PNG)
    written = images.path(DIGEST).stat().st_mtime_ns
    assert images.put(PNG) == DIGEST
    assert images.path(DIGEST).stat().st_mtime_ns == written
    images.path(DIGEST).write_bytes(PNG[:9])  # what a full disk left
    images.put(PNG)
    assert images.open(DIGEST) == PNG


def test_the_same_image_may_be_put_at_once(tmp_path: Path) -> None:
    """The bytes are whole, and no temporary file stays."""
    ready = Barrier(3)

    def put(_: int) -> set[str]:
        ready.wait(10)
        return {ImageStore(tmp_path / str(number)).put(PNG) for number in range(20)}

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(put, range(3))) == [{DIGEST}] * 3
    kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert kept == [PNG] * 20
