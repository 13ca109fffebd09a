"""The difference between a release and a revision, file by file."""

from __future__ import annotations

import hashlib

import pytest
from huggingface_hub.hf_api import RepoFile

from echo_hf.errors import HubError
from echo_hf.hub.contents import Content, changes, check_ours

DATA = "analysis/test-00000-of-00001.parquet"


def content(data: bytes) -> Content:
    """A file of a release."""
    return Content(data, len(data), hashlib.sha256(data).hexdigest())


def there(path: str, data: bytes, *, lfs: bool = False) -> RepoFile:
    """A file of a revision, as the Hub describes it."""
    blob = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
    sha256 = hashlib.sha256(data).hexdigest()
    large = {"size": len(data), "oid": sha256, "pointerSize": 134}
    oid = "0" * 40 if lfs else blob
    return RepoFile(path=path, size=len(data), oid=oid, **({"lfs": large} if lfs else {}))


@pytest.mark.parametrize("lfs", [False, True])
def test_equal_bytes_are_no_change(lfs: bool) -> None:
    """Whether the Hub keeps a file in Git or beside it; one other byte is a change."""
    release = {DATA: content(b"rows")}
    assert not changes(release, {DATA: there(DATA, b"rows", lfs=lfs)})
    for other in (b"rowz", b"more rows"):
        found = changes(release, {DATA: there(DATA, other, lfs=lfs)})
        assert (list(found.upload), found.delete, found.bytes) == ([DATA], (), 4)


def test_what_readers_would_take_for_data_goes() -> None:
    """Older shards, configs that are gone, strays in a folder of data; nothing else."""
    gone = [
        "analysis/notes.txt",
        "analysis/test-00001-of-00002.parquet",
        "text_to_image/test-00000-of-00001.parquet",
    ]
    stay = [".gitattributes", "LICENSE", "data/train.csv", "text_to_image/notes.txt"]
    found = changes(
        {DATA: content(b"a")}, {path: there(path, b"x") for path in [*gone, *stay, DATA]}
    )
    assert list(found.delete) == gone
    assert [each.path_in_repo for each in found.operations()] == [DATA, *gone]


def test_a_repository_of_releases_may_hold_more() -> None:
    """With a manifest anything may lie beside it; without one, only what a new one begins with."""
    check_ours([], "o/n")
    check_ours([".gitattributes", "README.md"], "o/n")
    check_ours(["manifest.json", "train.csv"], "o/n")
    with pytest.raises(HubError, match=r"'o/n' holds 'train\.csv'"):
        check_ours(["README.md", "train.csv"], "o/n")
