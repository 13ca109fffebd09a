"""What is loaded is the very revision that was asked for, or nothing."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

import echo_hf
from echo_hf.errors import EchoError, HubError, ReleaseError
from echo_hf.hub.release import Release
from echo_hf.tables import release_features
from tests.hub.conftest import REPO, Configs, Put, Write
from tests.local_hub import STRANGER, WRITER, LocalHub


@dataclass(frozen=True)
class Reader:
    hub: LocalHub
    cache: Path

    def load(
        self, config: str = "analysis", revision: str | None = None, token: str = WRITER
    ) -> Dataset:
        return echo_hf.load_benchmark(
            REPO, config, revision=revision, cache_dir=self.cache, api=self.hub.api(token)
        )

    def files(self, pattern: str) -> list[Path]:
        return sorted(self.cache.rglob(pattern))


@pytest.fixture
def reader(
    hub: LocalHub, put: Put, release: Release, write: Write, configs: Configs, tmp_path: Path
) -> Reader:
    """Of a repository with three samples as `v1`, and one of them in a file of its own as `v2`."""
    put(release)
    put(write("b", {"analysis": configs["analysis"].select([2, 0])}, 1), "v2")
    return Reader(hub, tmp_path / "hub-cache")


def test_each_tag_is_its_revision(reader: Reader, release: Release) -> None:
    """Of which no more is downloaded than is asked for."""
    given: dict[str, Any] = {"cache_dir": reader.cache, "api": reader.hub.api()}
    manifest = echo_hf.load_manifest(REPO, revision="v1", **given)
    assert manifest.configs["analysis"].rows == 3
    assert reader.files("*.parquet") == []
    first = reader.load(revision="v1")
    assert {path.parent.name for path in reader.files("*.parquet")} == {"analysis"}
    assert (first.features, str(first.split)) == (release_features(), "test")
    assert first.with_format("arrow")[:] == release.datasets["analysis"].with_format("arrow")[:]
    for revision in ("v2", None):
        assert reader.load(revision=revision)["id"][:] == ["sample2", "sample0"]
    assert len(reader.load(revision=reader.hub.repositories[REPO].tags["v1"])) == 3


def test_another_revision_is_never_given(reader: Reader) -> None:
    reader.load(revision="v1")
    with pytest.raises(HubError, match=rf"'{REPO}' at revision 'v9': .*no such revision"):
        reader.load(revision="v9")
    with pytest.raises(HubError, match=r"'mira/none' .*there is no such dataset"):
        echo_hf.load_benchmark("mira/none", cache_dir=reader.cache, api=reader.hub.api())
    with pytest.raises(ReleaseError, match="unknown config 'analysys'; did you mean 'analysis'"):
        reader.load("analysys", "v1")
    reader.hub.repositories[REPO].private = True
    with pytest.raises(HubError, match="or this token may not see it"):
        Reader(reader.hub, reader.cache / "other").load(token=STRANGER)
    # Offline the cache is as good.
    reader.hub.close()
    assert len(reader.load(revision="v1")) == 3
    for revision in ("never-existed", "v2", "0" * 40):
        said = rf"at revision '{revision}'.*out of reach .*cache does not hold it"
        with pytest.raises(HubError, match=said) as raised:
            reader.load(revision=revision)
        assert "\n" not in str(raised.value)


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


def test_a_folder_is_loaded_the_same_way(release: Release, tmp_path: Path) -> None:
    assert len(echo_hf.load_benchmark(release.path, "analysis")) == 3
    assert echo_hf.load_manifest(str(release.path)) == release.manifest
    change_a_byte(release.path / "analysis" / "test-00000-of-00001.parquet")
    (tmp_path / "empty").mkdir()
    for place, revision, said in (
        (release.path, None, "has changed"),
        (release.path, "v1", "is a folder, which has no revision 'v1'"),
        (tmp_path / "no" / "such", None, "is neither a folder nor the name of a dataset"),
        (tmp_path / "empty", None, "no release in"),
    ):
        with pytest.raises(EchoError, match=said):
            echo_hf.load_benchmark(place, "analysis", revision=revision)


LOAD = f"""
import hashlib, json, sys
import echo_hf, huggingface_hub
from datasets import Image, List, load_dataset

def shown(dataset):
    plain = dataset.cast_column("output_images", List(Image(decode=False)))
    return {{
        "features": dataset.features.to_dict(),
        "prompts": [row["prompt"] for row in plain],
        "sizes": [[list(image.size) for image in row["output_images"]] for row in dataset],
        "digests": [
            [hashlib.sha256(image["bytes"]).hexdigest() for image in row["output_images"]]
            for row in plain
        ],
    }}

print(json.dumps([
    shown(load_dataset("{REPO}", config, split="test", revision=revision, streaming=streaming))
    for revision, config, streaming in json.loads(input())
]))
print(len(echo_hf.load_benchmark("{REPO}", "analysis", revision="v1")))
huggingface_hub.constants.HF_HUB_OFFLINE = True
for revision in ("v1", "never-existed"):
    try:
        print(len(echo_hf.load_benchmark("{REPO}", "analysis", revision=revision)))
    except echo_hf.EchoError as error:
        print(type(error).__name__, error)
"""


def test_load_dataset_reads_every_revision(
    reader: Reader, tmp_path: Path, configs: Configs
) -> None:
    """Offline an unknown one raises where `load_dataset` would quietly give another."""
    later, text = configs["analysis"].select([2, 0]), configs["text_to_image"]
    asked = [
        (("v1", "analysis", False), configs["analysis"]),
        (("v1", "analysis", True), configs["analysis"]),
        (("v1", None, False), text),
        (("v1", "image_to_image", True), configs["image_to_image"]),
        (("v2", "analysis", True), later),
        ((None, None, False), later),
    ]
    done = subprocess.run(
        [sys.executable, "-c", LOAD],
        env=reader.hub.environment(tmp_path),
        input=json.dumps([one for one, _ in asked]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told, *offline = done.stdout.splitlines()
    for loaded, (_, rows) in zip(json.loads(told), asked, strict=True):
        assert loaded["features"] == release_features().to_dict()
        assert loaded["prompts"] == rows["prompt"][:]
        assert loaded["digests"] == rows["output_images"][:]
        assert all(size == [48, 32] for sizes in loaded["sizes"] for size in sizes)
    assert offline[:2] == ["3", "3"]
    assert offline[2].startswith(f"HubError cannot load '{REPO}' at revision 'never-existed': ")
    assert "the cache does not hold it" in offline[2]
