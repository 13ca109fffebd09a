"""What is loaded is the very revision that was asked for, or nothing."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset, Image, List

import echo_hf
from echo_hf.errors import HubError, ReleaseError
from echo_hf.hub.facts import ReleaseFacts
from echo_hf.hub.publish import publish
from echo_hf.hub.release import Release, verify_release, write_release
from echo_hf.images.store import ImageStore
from echo_hf.tables import release_features
from tests.local_hub import STRANGER, LocalHub

REPO = "mira/echo"


@dataclass(frozen=True)
class Reader:
    hub: LocalHub
    cache: Path

    def load(self, config: str = "analysis", revision: str | None = None) -> Dataset:
        return echo_hf.load_benchmark(
            REPO, config, revision=revision, cache_dir=self.cache, api=self.hub.api()
        )

    def files(self, pattern: str) -> list[Path]:
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
    publish(release, REPO, "v1", api=hub.api())
    rows = {"analysis": configs["analysis"].select([2])}
    publish(write_release(tmp_path / "b", rows, images, facts), REPO, "v2", api=hub.api())
    return Reader(hub, tmp_path / "hub-cache")


def test_each_tag_is_its_revision(reader: Reader, release: Release) -> None:
    first = reader.load(revision="v1")
    assert first.features == release_features()
    assert str(first.split) == "test"
    assert first.with_format("arrow")[:] == release.datasets["analysis"].with_format("arrow")[:]
    assert reader.load(revision="v2")["id"][:] == ["sample2"]
    assert reader.load()["id"][:] == ["sample2"]
    commit = reader.hub.repositories[REPO].tags["v1"]
    assert len(reader.load(revision=commit)) == 3


def test_only_what_is_needed_is_downloaded(reader: Reader) -> None:
    manifest = echo_hf.load_manifest(
        REPO, revision="v1", cache_dir=reader.cache, api=reader.hub.api()
    )
    assert manifest.configs["analysis"].rows == 3
    assert reader.files("*.parquet") == []
    reader.load("text_to_image", "v1")
    assert {path.parent.name for path in reader.files("*.parquet")} == {"text_to_image"}


def test_image_to_image_is_what_is_loaded_by_default(reader: Reader) -> None:
    loaded = echo_hf.load_benchmark(
        REPO, revision="v1", cache_dir=reader.cache, api=reader.hub.api()
    )
    assert (len(loaded), loaded.features) == (0, release_features())


def test_offline_the_cache_is_as_good(reader: Reader) -> None:
    for revision in ("v1", "v2"):
        reader.load(revision=revision)
    reader.hub.close()
    assert len(reader.load(revision="v1")) == 3
    assert len(reader.load(revision="v2")) == 1


@pytest.mark.parametrize("revision", ["never-existed", "v2", "0" * 40])
def test_offline_no_other_revision_is_given(reader: Reader, revision: str) -> None:
    reader.load(revision="v1")
    reader.hub.close()
    with pytest.raises(HubError, match=r"out of reach .*cache does not hold it") as raised:
        reader.load(revision=revision)
    assert f"at revision {revision!r}" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_online_an_unknown_revision_or_repository_raises(reader: Reader) -> None:
    with pytest.raises(HubError, match=r"'mira/echo' at revision 'v9': .*no such revision"):
        reader.load(revision="v9")
    with pytest.raises(HubError, match=r"'mira/none' .*there is no such dataset"):
        echo_hf.load_benchmark("mira/none", cache_dir=reader.cache, api=reader.hub.api())


def test_a_private_benchmark_is_for_its_owners(reader: Reader) -> None:
    reader.hub.repositories[REPO].private = True
    assert len(reader.load(revision="v1")) == 3
    with pytest.raises(HubError, match="or this token may not see it"):
        echo_hf.load_benchmark(REPO, cache_dir=reader.cache / "other", api=reader.hub.api(STRANGER))


def change_a_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("name", ["*.parquet", "README.md"])
def test_a_tampered_snapshot_is_refused(reader: Reader, name: str) -> None:
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
    reader.load(revision="v1")
    (path,) = reader.files("*.parquet")
    path.resolve().unlink()
    assert len(reader.load(revision="v1")) == 3
    reader.hub.close()
    path.resolve().unlink()
    with pytest.raises(HubError, match="cache does not hold it"):
        reader.load(revision="v1")


def test_what_was_published_by_hand_is_refused(reader: Reader) -> None:
    repository = reader.hub.repositories[REPO]
    repository.change("by hand")
    files = dict(repository.commits[repository.head].files)
    (path,) = (path for path in files if path.startswith("analysis/"))
    old = repository.commits[repository.tags["v1"]].files[path]
    repository.branches["main"] = repository.add("older rows", None, {**files, path: old})
    with pytest.raises(ReleaseError, match="has changed"):
        reader.load()


def test_a_config_that_is_not_there_is_answered_with_the_nearest(reader: Reader) -> None:
    with pytest.raises(ReleaseError, match="unknown config 'analysys'; did you mean 'analysis'"):
        reader.load("analysys", "v1")


def test_a_folder_is_loaded_the_same_way(release: Release) -> None:
    assert len(echo_hf.load_benchmark(release.path, "analysis")) == 3
    assert echo_hf.load_manifest(str(release.path)) == release.manifest
    with pytest.raises(ReleaseError, match="did you mean 'analysis'"):
        echo_hf.load_benchmark(release.path, "analysys")
    change_a_byte(release.path / "analysis" / "test-00000-of-00001.parquet")
    with pytest.raises(ReleaseError, match="has changed"):
        echo_hf.load_benchmark(release.path, "analysis")


def test_a_folder_has_no_revisions(release: Release, tmp_path: Path) -> None:
    with pytest.raises(HubError, match="is a folder, which has no revision 'v1'"):
        echo_hf.load_benchmark(release.path, revision="v1")
    with pytest.raises(HubError, match="is neither a folder nor the name of a dataset"):
        echo_hf.load_benchmark(tmp_path / "no" / "such")
    with pytest.raises(ReleaseError, match="no release in"):
        echo_hf.load_benchmark(tmp_path)


Configs = Mapping[str, Dataset]


def test_datasets_are_read_from_disk(release: Release, drawings: Mapping[str, bytes]) -> None:
    assert sorted(release.datasets) == ["analysis", "image_to_image", "text_to_image"]
    assert len(release.datasets) == 3
    for dataset in release.datasets.values():
        assert dataset.features == release_features()
        assert str(dataset.split) == "test"
    assert [len(release.datasets[name]) for name in sorted(release.datasets)] == [3, 0, 2]
    plain = release.datasets["text_to_image"].cast_column(
        "output_images", List(Image(decode=False))
    )
    found = [image["bytes"] for image in plain[0]["output_images"]]
    assert found == [drawings["webp"], drawings["jpg"]]


def test_a_config_in_several_files_is_read_in_order(
    tmp_path: Path, configs: Configs, images: ImageStore, facts: ReleaseFacts
) -> None:
    one = write_release(tmp_path / "one", configs, images, facts)
    many = write_release(tmp_path / "many", configs, images, facts, shard_bytes=1)
    assert len(many.manifest.configs["analysis"].files) == 3
    assert many.datasets["analysis"]["id"][:] == ["sample0", "sample1", "sample2"]
    assert many.manifest.configs["analysis"].digest == one.manifest.configs["analysis"].digest
    verify_release(many.path)


REPO = "mira/echo"
LOAD = """
import hashlib, json
from datasets import Image, List, load_dataset

def shown(dataset):
    plain = dataset.cast_column("output_images", List(Image(decode=False)))
    return {
        "features": dataset.features.to_dict(),
        "prompts": [row["prompt"] for row in plain],
        "sizes": [[picture.size for picture in row["output_images"]] for row in dataset],
        "digests": [
            [hashlib.sha256(picture["bytes"]).hexdigest() for picture in row["output_images"]]
            for row in plain
        ],
    }

print(json.dumps([
    shown(load_dataset("mira/echo", config, split="test", revision=revision, streaming=streaming))
    for revision, config, streaming in json.loads(input())
]))
"""
OFFLINE = """
import sys
import echo_hf

for revision in ("v1", "never-existed"):
    try:
        print(len(echo_hf.load_benchmark("mira/echo", "analysis", revision=revision)))
    except echo_hf.EchoError as error:
        print(type(error).__name__, error)
"""


def run(hub: LocalHub, home: Path, code: str, given: str = "", **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=hub.environment(home, **environment),
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def published(
    hub: LocalHub,
    release: Release,
    tmp_path: Path,
    configs: Mapping[str, Dataset],
    images: ImageStore,
    facts: ReleaseFacts,
) -> LocalHub:
    publish(release, REPO, "v1", api=hub.api())
    later = {"analysis": configs["analysis"].select([2, 0])}
    several = write_release(tmp_path / "later", later, images, facts, shard_bytes=1)
    publish(several, REPO, "v2", api=hub.api())
    return hub


def test_load_dataset_reads_every_revision(
    published: LocalHub, tmp_path: Path, configs: Mapping[str, Dataset]
) -> None:
    asked = [
        ("v1", "analysis", False),
        ("v1", "analysis", True),
        ("v1", "text_to_image", False),
        ("v1", None, False),
        ("v1", "image_to_image", True),
        ("v2", "analysis", False),
        ("v2", "analysis", True),
        (None, None, False),
    ]
    found: list[dict[str, Any]] = json.loads(run(published, tmp_path, LOAD, json.dumps(asked)))

    later = configs["analysis"].select([2, 0])
    whole, text = configs["analysis"], configs["text_to_image"]
    expected = [whole, whole, text, text, configs["image_to_image"], later, later, later]
    for loaded, rows in zip(found, expected, strict=True):
        assert loaded["features"] == release_features().to_dict()
        assert loaded["prompts"] == rows["prompt"][:]
        assert loaded["digests"] == rows["output_images"][:]
        assert all(size == [48, 32] for sizes in loaded["sizes"] for size in sizes)


def test_offline_an_unknown_revision_raises_where_load_dataset_would_not(
    published: LocalHub, tmp_path: Path
) -> None:
    said = run(published, tmp_path, OFFLINE).splitlines()
    assert said[0] == "3"
    assert said[1].startswith("HubError cannot load 'mira/echo' at revision 'never-existed': ")
    said = run(published, tmp_path, OFFLINE, HF_HUB_OFFLINE="1").splitlines()
    assert said[0] == "3"
    assert "the cache does not hold it" in said[1]
