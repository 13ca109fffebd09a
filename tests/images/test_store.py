"""The store of images: whole, checked, on the disk, and once each."""

from __future__ import annotations

import hashlib
import io
import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from echo_hf.errors import ImageError
from echo_hf.images.store import FORMATS, MOST_BYTES, MOST_PIXELS, ImageStore, check_image
from tests.stages_for_tests import ROOT

NOISE = Image.effect_noise((40, 30), 60).convert("RGB")
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="9"/></svg>'


def _encoded(name: str, image: Image.Image = NOISE, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, name, **options)
    return file.getvalue()


ENCODED = {name: _encoded(name) for name in FORMATS}


def _chunk(kind: bytes, data: bytes) -> bytes:
    body = kind + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))


def _png(width: int, height: int) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(b"\0" * 9))
    return b"\x89PNG\r\n\x1a\n" + chunks + _chunk(b"IEND", b"")


def _refused(data: bytes) -> str:
    with pytest.raises(ImageError) as caught:
        check_image(data)
    assert "\n" not in str(caught.value)
    return str(caught.value)


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
    digest = hashlib.sha256(ENCODED["PNG"]).hexdigest()
    place, sync = images.path(digest), os.fsync

    def fsync(number: int) -> None:
        is_folder = Path(f"/dev/fd/{number}").is_dir()
        whole = is_folder or os.fstat(number).st_size == len(ENCODED["PNG"])
        through.append((place.exists(), is_folder))
        assert whole
        sync(number)

    monkeypatch.setattr(os, "fsync", fsync)
    images.put(ENCODED["PNG"])
    assert through == [(False, False), (True, True), (True, True)]


@pytest.mark.parametrize(
    "data",
    [b"", b"x", b"just some words", SVG, b"%PDF-1.4\n", b"\x00" * 200, b"P6 1 1 255 abc"],
    ids=["empty", "one byte", "text", "svg", "pdf", "zeros", "ppm"],
)
def test_what_is_no_image_is_refused(data: bytes) -> None:
    message = _refused(data)
    assert (
        message == f"{data[:16]!r}... is not a readable image, expected one of {', '.join(FORMATS)}"
    )


@pytest.mark.parametrize(
    ("width", "height"), [(10_001, 10_000), (60_000, 60_000), (2**31 - 1, 2**31 - 1)]
)
def test_an_image_that_would_fill_the_memory_is_refused(width: int, height: int) -> None:
    message = _refused(_png(width, height))
    assert "expected at most 100000000 pixels" in message or "exceeds limit" in message


def test_a_file_that_is_too_large_is_refused() -> None:
    assert _refused(bytes(MOST_BYTES + 1)) == "67108865 bytes, expected at most 67108864"


def test_what_is_refused_is_not_kept(images: ImageStore) -> None:
    with pytest.raises(ImageError):
        images.put(SVG)
    assert not images.root.exists()


@given(
    st.sampled_from(FORMATS),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=8),
    st.integers(0, 10**6),
)
def test_damaged_bytes_are_read_or_refused(
    name: str, changes: list[tuple[int, int]], end: int
) -> None:
    data = bytearray(ENCODED[name])
    for at, value in changes:
        data[at % len(data)] = value
    try:
        width, height = check_image(bytes(data[: max(end, 30)]))
    except ImageError as error:
        assert "\n" not in str(error)  # noqa: PT017 - both outcomes are right
    else:
        assert width * height <= MOST_PIXELS


def test_a_missing_image_says_what_to_do(images: ImageStore) -> None:
    digest = "ab" * 32
    with pytest.raises(ImageError) as caught:
        images.open(digest)
    assert str(caught.value) == (
        f"no image {digest!r} in {str(images.root)!r}: run `collect` again to fetch it"
    )


def test_an_image_that_changed_on_disk_is_noticed(images: ImageStore) -> None:
    digest = images.put(ENCODED["PNG"])
    images.path(digest).write_bytes(ENCODED["JPEG"])
    with pytest.raises(ImageError, match="has changed: delete the file"):
        images.open(digest)


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
        assert (
            str(caught.value) == f"{digest!r} is not a sha256: expected 64 hexadecimal characters"
        )


def test_the_same_bytes_are_one_file(images: ImageStore) -> None:
    digest = images.put(ENCODED["PNG"])
    written = images.path(digest).stat().st_mtime_ns
    assert images.put(ENCODED["PNG"]) == digest
    assert images.path(digest).stat().st_mtime_ns == written
    assert [path.name for path in images.root.rglob("*") if path.is_file()] == [digest]


PUTTER = """
import sys
from pathlib import Path
from echo_hf.images.store import ImageStore
data = Path(sys.argv[1]).read_bytes()
print("ready", flush=True)
sys.stdin.readline()
for number in range(20):
    print(ImageStore(Path(sys.argv[2]) / str(number)).put(data))
"""


def test_processes_put_the_same_image_at_once(tmp_path: Path) -> None:
    """The bytes are whole, and no temporary file stays."""
    (tmp_path / "a.png").write_bytes(ENCODED["PNG"])
    command = [sys.executable, "-c", PUTTER, str(tmp_path / "a.png"), str(tmp_path / "run")]
    putters = [
        subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    for putter in putters:
        assert putter.stdout is not None
        assert putter.stdout.readline() == "ready\n"
    printed = {line for putter in putters for line in putter.communicate("go\n")[0].split()}
    assert [putter.returncode for putter in putters] == [0, 0, 0]
    assert printed == {hashlib.sha256(ENCODED["PNG"]).hexdigest()}
    kept = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert len(kept) == 20
    assert {path.read_bytes() for path in kept} == {ENCODED["PNG"]}
