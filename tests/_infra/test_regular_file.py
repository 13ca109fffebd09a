"""Files of others are regular files inside their folder, and no larger than what is read of one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from echo_hf._infra.regular_file import RefusedFileError, open_regular, read_regular

MOST = 100


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With a file, and beside it what only looks like one."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    (tmp_path / "mine").write_text("a secret")
    (folder / "file").write_text("words")
    (folder / "large").write_bytes(bytes(MOST + 1))
    (folder / "inner").symlink_to("file")
    (folder / "link").symlink_to(tmp_path / "mine")
    (folder / "up").symlink_to(tmp_path)
    (folder / "circle").symlink_to("circle")
    (folder / "device").symlink_to("/dev/zero")
    os.mkfifo(folder / "pipe")
    return folder


@pytest.mark.parametrize("name", ["file", "inner", "../theirs/file"])
def test_a_file_is_read_wherever_links_inside_its_folder_lead(folder: Path, name: str) -> None:
    assert read_regular(folder / name, folder, max_bytes=MOST) == b"words"
    assert read_regular(folder / name, max_bytes=5) == b"words"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        *((name, "outside") for name in ("link", "up/mine", "../mine", "device", "/etc/passwd")),
        *((name, "irregular") for name in ("pipe", ".")),
        *((name, "unreadable") for name in ("circle", "a\0b")),
        ("large", "too_large"),
    ],
)
def test_what_is_no_file_inside_is_refused_at_once(folder: Path, name: str, code: str) -> None:
    """To open a pipe is to wait for ever, and a device is read for ever."""
    with pytest.raises(RefusedFileError) as raised:
        read_regular(folder / name, folder, max_bytes=MOST)
    assert raised.value.code == code
    assert raised.value.strerror == str(raised.value) != ""


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/null", "pipe"])
def test_without_a_folder_a_device_is_no_file_either(folder: Path, name: str) -> None:
    with pytest.raises(RefusedFileError, match="not a regular file"):
        open_regular(folder / name)


def test_a_file_that_says_it_is_empty_is_not_read_to_its_end() -> None:
    """As those of the kernel do."""
    place = Path("/proc/self/maps")
    if not place.exists() or place.stat().st_size:
        pytest.skip("this system has no such files")
    with pytest.raises(RefusedFileError, match="more than 10 bytes"):
        read_regular(place, max_bytes=10)


def test_a_missing_file_is_missing(folder: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_regular(folder / "none", folder, max_bytes=MOST)


def test_a_snapshot_in_the_cache_of_the_hub_has_its_files_beside_it(tmp_path: Path) -> None:
    """There a file is a link to what all snapshots share; a link to anywhere else is refused."""
    snapshot = tmp_path / "datasets--a--b" / "snapshots" / "c"
    blobs = tmp_path / "datasets--a--b" / "blobs"
    for one in (snapshot, blobs):
        one.mkdir(parents=True)
    (blobs / "f").write_text("words")
    (tmp_path / "mine").write_text("a secret")
    (snapshot / "file").symlink_to("../../blobs/f")
    (snapshot / "link").symlink_to(tmp_path / "mine")
    assert read_regular(snapshot / "file", snapshot, max_bytes=MOST) == b"words"
    with pytest.raises(RefusedFileError, match="out of its folder"):
        read_regular(snapshot / "link", snapshot, max_bytes=MOST)
