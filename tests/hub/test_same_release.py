"""The same rows and statements are the same release, whatever files hold them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub.hf_api import RepoFile

from echo_hf.hub.contents import is_same_release
from echo_hf.hub.release import Release


def listed(folder: Path) -> dict[str, RepoFile]:
    """The files of a folder, as the Hub lists them: data beside Git, the rest in it."""
    found = {}
    for path in (path for path in folder.rglob("*") if path.is_file()):
        data, name = path.read_bytes(), path.relative_to(folder).as_posix()
        large = {"size": len(data), "oid": hashlib.sha256(data).hexdigest(), "pointerSize": 134}
        more: dict[str, Any] = {"lfs": large} if name.endswith(".parquet") else {}
        found[name] = RepoFile(path=name, size=len(data), oid="0" * 40, **more)
    return found


def test_a_release_is_itself(release: Release) -> None:
    """Written by another version, it still is; a licence beside it is nobody's business."""
    there = listed(release.path)
    (release.path / "LICENSE").write_text("mine")
    older = release.manifest.model_copy(update={"echo_hf": "0.0.1", "stats": None})
    assert is_same_release(release.manifest, release.path, listed(release.path))
    assert is_same_release(older, release.path, there)


@pytest.mark.parametrize(
    "values", [{"name": "other"}, {"rules_built": True}, {"funnel": ()}, {"configs": {}}]
)
def test_what_says_something_else_is_another_release(
    release: Release, values: dict[str, Any]
) -> None:
    """Its name, how it was made, what each stage counted, its rows."""
    other = release.manifest.model_copy(update=values)
    assert not is_same_release(other, release.path, listed(release.path))


def test_one_other_row_is_another_release(release: Release) -> None:
    """As many rows with another digest are other rows."""
    configs = dict(release.manifest.configs)
    configs["analysis"] = configs["analysis"].model_copy(update={"digest": "ab" * 32})
    other = release.manifest.model_copy(update={"configs": configs})
    assert not is_same_release(other, release.path, listed(release.path))


@pytest.mark.parametrize(
    "name", ["README.md", "stats.json", "analysis/test-00000-of-00001.parquet"]
)
@pytest.mark.parametrize("gone", [False, True])
def test_files_have_to_be_those_that_are_listed(release: Release, name: str, gone: bool) -> None:
    """A file that is gone or is another one, though its manifest says the same."""
    path = release.path / name
    data = path.read_bytes()
    path.unlink()
    if not gone:
        path.write_bytes(data[:-1] + b"?")
    assert not is_same_release(release.manifest, release.path, listed(release.path))


def test_a_stray_shard_is_read_as_data(release: Release) -> None:
    """What `load_dataset` would read beside the listed files makes it another release."""
    (release.path / "analysis/test-00001-of-00002.parquet").write_bytes(b"more")
    assert not is_same_release(release.manifest, release.path, listed(release.path))


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": 99}'])
def test_a_manifest_that_is_not_understood_says_nothing(release: Release, text: str) -> None:
    """Of another format, or none at all; and one that seals no card."""
    ours = release.manifest
    (release.path / "manifest.json").write_text(text)
    assert not is_same_release(ours, release.path, listed(release.path))
    (release.path / "manifest.json").write_text(ours.model_copy(update={"card": None}).text())
    assert not is_same_release(ours, release.path, listed(release.path))
