"""What is loaded is the very revision that was asked for, or nothing."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from datasets import Dataset

import echo_hf
from echo_hf.errors import HubError, ReleaseError
from echo_hf.hub.facts import ReleaseFacts
from echo_hf.hub.publish import publish
from echo_hf.hub.release import Release, write_release
from echo_hf.images.store import ImageStore
from echo_hf.tables import release_features
from tests.local_hub import STRANGER, LocalHub

REPO = "mira/echo"


@dataclass(frozen=True)
class Reader:
    """Somebody with an empty cache."""

    hub: LocalHub
    cache: Path

    def load(self, config: str = "analysis", revision: str | None = None) -> Dataset:
        """Loads a config from the Hub."""
        return echo_hf.load_benchmark(
            REPO, config, revision=revision, cache_dir=self.cache, api=self.hub.api()
        )

    def files(self, pattern: str) -> list[Path]:
        """Downloaded files."""
        return sorted(self.cache.rglob(pattern))


@pytest.fixture
def reader(
    hub: LocalHub,
    release: Release,
    tmp_path: Path,
    configs: Mapping[str, Dataset],
    images: ImageStore,
    facts: ReleaseFacts,
) -> Reader:
    """A reader of a Hub on which two revisions are published, `v1` and `v2`."""
    publish(release, REPO, "v1", api=hub.api())
    rows = {"analysis": configs["analysis"].select([2])}
    publish(write_release(tmp_path / "b", rows, images, facts), REPO, "v2", api=hub.api())
    return Reader(hub, tmp_path / "hub-cache")


def test_each_tag_is_its_revision(reader: Reader, release: Release) -> None:
    """Types, rows and bytes are those that were written; without a tag it is the newest."""
    first = reader.load(revision="v1")
    assert first.features == release_features()
    assert str(first.split) == "test"
    assert first.with_format("arrow")[:] == release.datasets["analysis"].with_format("arrow")[:]
    assert reader.load(revision="v2")["id"][:] == ["sample2"]
    assert reader.load()["id"][:] == ["sample2"]
    commit = reader.hub.repositories[REPO].tags["v1"]
    assert len(reader.load(revision=commit)) == 3


def test_images_decode(reader: Reader) -> None:
    """They are ready to be looked at."""
    row = reader.load(revision="v1")[0]
    assert [image.size for image in row["output_images"]] == [(48, 32)] * 2


def test_only_what_is_needed_is_downloaded(reader: Reader) -> None:
    """Other configs stay where they are; the manifest alone is enough for the manifest."""
    manifest = echo_hf.load_manifest(
        REPO, revision="v1", cache_dir=reader.cache, api=reader.hub.api()
    )
    assert manifest.configs["analysis"].rows == 3
    assert reader.files("*.parquet") == []
    reader.load("text_to_image", "v1")
    assert {path.parent.name for path in reader.files("*.parquet")} == {"text_to_image"}


def test_image_to_image_is_what_is_loaded_by_default(reader: Reader) -> None:
    """The benchmark's first task needs no name; here it has columns and no row."""
    loaded = echo_hf.load_benchmark(
        REPO, revision="v1", cache_dir=reader.cache, api=reader.hub.api()
    )
    assert (len(loaded), loaded.features) == (0, release_features())


def test_offline_the_cache_is_as_good(reader: Reader) -> None:
    """A revision that was loaded once is loaded again without the Hub."""
    for revision in ("v1", "v2"):
        reader.load(revision=revision)
    reader.hub.close()
    assert len(reader.load(revision="v1")) == 3
    assert len(reader.load(revision="v2")) == 1


@pytest.mark.parametrize("revision", ["never-existed", "v2", "0" * 40])
def test_offline_no_other_revision_is_given(reader: Reader, revision: str) -> None:
    """A revision that is not in the cache raises, however much of another one is."""
    reader.load(revision="v1")
    reader.hub.close()
    with pytest.raises(HubError, match=r"out of reach .*cache does not hold it") as raised:
        reader.load(revision=revision)
    assert f"at revision {revision!r}" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_offline_a_part_that_was_not_downloaded_raises(reader: Reader) -> None:
    """Another config of a revision in the cache is not there either."""
    reader.load("analysis", "v1")
    reader.hub.close()
    with pytest.raises(HubError, match="cache does not hold it"):
        reader.load("text_to_image", "v1")


def test_online_an_unknown_revision_or_repository_raises(reader: Reader) -> None:
    """The message says which of the two is unknown."""
    with pytest.raises(HubError, match=r"'mira/echo' at revision 'v9': .*no such revision"):
        reader.load(revision="v9")
    with pytest.raises(HubError, match=r"'mira/none' .*there is no such dataset"):
        echo_hf.load_benchmark("mira/none", cache_dir=reader.cache, api=reader.hub.api())


def test_a_private_benchmark_is_for_its_owners(reader: Reader) -> None:
    """Strangers are told no more than that they see nothing."""
    reader.hub.repositories[REPO].private = True
    assert len(reader.load(revision="v1")) == 3
    with pytest.raises(HubError, match="or this token may not see it"):
        echo_hf.load_benchmark(REPO, cache_dir=reader.cache / "other", api=reader.hub.api(STRANGER))


def change_a_byte(path: Path) -> None:
    """Changes a byte in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("name", ["*.parquet", "README.md"])
def test_a_tampered_snapshot_is_refused(reader: Reader, name: str) -> None:
    """The file is named, and the folder whose deletion brings it back; then it loads again."""
    reader.load(revision="v1")
    (path,) = reader.files(name)
    change_a_byte(path.resolve())
    (folder,) = reader.cache.resolve().glob("datasets--*")
    for _ in range(2):
        with pytest.raises(ReleaseError, match="has changed: sha256") as raised:
            reader.load(revision="v1")
        assert path.name in str(raised.value)
        assert f"delete {str(folder)!r} to download it again" in str(raised.value)
    shutil.rmtree(folder)
    assert len(reader.load(revision="v1")) == 3


def test_a_lost_file_is_brought_again_or_missed(reader: Reader) -> None:
    """Online it is downloaded; offline the revision is no longer there."""
    reader.load(revision="v1")
    (path,) = reader.files("*.parquet")
    path.resolve().unlink()
    assert len(reader.load(revision="v1")) == 3
    reader.hub.close()
    path.resolve().unlink()
    with pytest.raises(HubError, match="cache does not hold it"):
        reader.load(revision="v1")


def test_what_was_published_by_hand_is_refused(reader: Reader) -> None:
    """A commit that changes rows under the manifest is no release."""
    repository = reader.hub.repositories[REPO]
    repository.change("by hand")
    files = dict(repository.commits[repository.head].files)
    (path,) = (path for path in files if path.startswith("analysis/"))
    old = repository.commits[repository.tags["v1"]].files[path]
    repository.branches["main"] = repository.add("older rows", None, {**files, path: old})
    with pytest.raises(ReleaseError, match="has changed"):
        reader.load()


def test_a_config_that_is_not_there_is_answered_with_the_nearest(reader: Reader) -> None:
    """On the Hub and on disk."""
    with pytest.raises(ReleaseError, match="unknown config 'analysys'; did you mean 'analysis'"):
        reader.load("analysys", "v1")


def test_a_folder_is_loaded_the_same_way(release: Release) -> None:
    """A release on disk is checked, too."""
    assert len(echo_hf.load_benchmark(release.path, "analysis")) == 3
    assert echo_hf.load_manifest(str(release.path)) == release.manifest
    with pytest.raises(ReleaseError, match="did you mean 'analysis'"):
        echo_hf.load_benchmark(release.path, "analysys")
    change_a_byte(release.path / "analysis" / "test-00000-of-00001.parquet")
    with pytest.raises(ReleaseError, match="has changed"):
        echo_hf.load_benchmark(release.path, "analysis")


def test_a_folder_has_no_revisions(release: Release, tmp_path: Path) -> None:
    """Asking for one is a mistake, as is a name that is neither folder nor repository."""
    with pytest.raises(HubError, match="is a folder, which has no revision 'v1'"):
        echo_hf.load_benchmark(release.path, revision="v1")
    with pytest.raises(HubError, match="is neither a folder nor the name of a dataset"):
        echo_hf.load_benchmark(tmp_path / "no" / "such")
    with pytest.raises(ReleaseError, match="no release in"):
        echo_hf.load_benchmark(tmp_path)
