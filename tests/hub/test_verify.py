"""A release that is not what was written is told, by the first file that differs."""

from __future__ import annotations

import hashlib

import pytest

from echo_hf.errors import ReleaseError
from echo_hf.hub.release import Release, read_release, verify_release


def test_an_untouched_release_is_verified(release: Release) -> None:
    """Hidden files, which download tools leave, do not disturb."""
    (release.path / ".cache").mkdir()
    (release.path / ".cache" / "lock").write_text("")
    verify_release(release.path)
    assert read_release(release.path).manifest == release.manifest


@pytest.mark.parametrize(
    "name", ["README.md", "analysis/test-00000-of-00001.parquet", "text_to_image/*.parquet"]
)
def test_one_changed_byte_is_named(release: Release, name: str) -> None:
    """A file of the same size with another byte is named, with both digests."""
    (path,) = release.path.glob(name)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(ReleaseError, match="has changed: sha256") as raised:
        verify_release(release.path)
    said = str(raised.value)
    assert repr(path.relative_to(release.path).as_posix()) in said
    assert hashlib.sha256(data).hexdigest() in said
    assert "\n" not in said


def test_a_cut_file_is_named(release: Release) -> None:
    """A file that lost its end is named with both sizes."""
    path = release.path / "README.md"
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ReleaseError, match=rf"'README\.md' .*bytes is {size - 1}.* {size}"):
        verify_release(release.path)


@pytest.mark.parametrize("name", ["README.md", "image_to_image/test-00000-of-00001.parquet"])
def test_a_missing_file_is_named(release: Release, name: str) -> None:
    """A file that the manifest lists and the folder lacks is named."""
    (release.path / name).unlink()
    with pytest.raises(ReleaseError, match=f"{name!r} is missing"):
        verify_release(release.path)


@pytest.mark.parametrize("name", ["notes.txt", "analysis/test-00001-of-00002.parquet"])
def test_an_extra_file_is_named(release: Release, name: str) -> None:
    """A file that the manifest does not list is named: `load_dataset` might read it."""
    (release.path / name).write_bytes(b"x")
    with pytest.raises(ReleaseError, match=f"holds {name!r}"):
        verify_release(release.path)
