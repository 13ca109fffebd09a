"""The store of images: whole, checked, on the disk, and once each."""

from __future__ import annotations

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from echo_hf.errors import ImageError
from echo_hf.images.store import FORMATS, MAX_IMAGE_BYTES, ImageStore, check_image
from tests.images_for_tests import encoded, noise, png

ENCODED = {name: encoded(noise((40, 30)), name) for name in FORMATS}
PNG = ENCODED["PNG"]
DIGEST = hashlib.sha256(PNG).hexdigest()


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


def test_what_is_refused_is_not_kept(images: ImageStore) -> None:
    large = png((10_001, 10_000), 8, 0, bytes(9))
    for data in (b"", b"just some words", bytes(MAX_IMAGE_BYTES + 1), large, PNG[: len(PNG) // 2]):
        with pytest.raises(ImageError):
            images.put(data)
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
    ["", "../../etc/passwd", "..".ljust(64, "/"), "A" * 64, "a" * 65, "a" * 63 + "\n", "١" * 64],
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
