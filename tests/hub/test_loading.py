"""What datasets reads back from a release: by name, by default, without the card, in shards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset, Image, List

from echo_hf.hub.facts import ReleaseFacts
from echo_hf.hub.release import Release, verify_release, write_release
from echo_hf.images.store import ImageStore
from echo_hf.tables import release_features

Configs = Mapping[str, Dataset]

LOAD = """
import hashlib, io, json, sys
from datasets import Image, List, load_dataset

def shown(dataset):
    plain = dataset.cast_column("output_images", List(Image(decode=False)))
    return {
        "features": dataset.features.to_dict(),
        "sizes": [[picture.size for picture in row["output_images"]] for row in dataset],
        "digests": [
            [hashlib.sha256(picture["bytes"]).hexdigest() for picture in row["output_images"]]
            for row in plain
        ],
        "prompts": [row["prompt"] for row in plain],
    }

folder = sys.argv[1]
# Only a stream may have no row: datasets prepares no empty split.
empty = load_dataset(folder, "image_to_image", split="test", streaming=True)
file = {"test": f"{folder}/analysis/test-*.parquet"}
print(json.dumps({
    "text_to_image": shown(load_dataset(folder, "text_to_image", split="test")),
    "analysis": shown(load_dataset(folder, "analysis", split="test")),
    "image_to_image": shown(empty),
    "by default": shown(load_dataset(folder, split="test")),
    "without card": shown(load_dataset("parquet", data_files=file, split="test")),
}))
"""


@pytest.fixture
def loaded(release: Release, tmp_path: Path) -> dict[str, Any]:
    """What `load_dataset` makes of the release in a process of its own, offline."""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "home")}
    command = [sys.executable, "-c", LOAD, str(release.path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_load_dataset_reads_every_config_offline(
    loaded: Mapping[str, Any], configs: Configs
) -> None:
    """Each config, the empty one too, has the released features, and images that decode."""
    images = {"analysis": [2, 2, 1], "text_to_image": [2, 0], "image_to_image": []}
    for config, counts in images.items():
        assert loaded[config]["features"] == release_features().to_dict()
        assert loaded[config]["sizes"] == [[[48, 32]] * count for count in counts]
        assert loaded[config]["prompts"] == configs[config]["prompt"][:]


def test_load_dataset_gives_back_the_stored_bytes(
    loaded: Mapping[str, Any], configs: Configs
) -> None:
    """Read without decoding, every image has the digest of the image that was stored."""
    for config in ("analysis", "text_to_image"):
        assert loaded[config]["digests"] == configs[config]["output_images"][:]


def test_load_dataset_needs_neither_config_name_nor_card(loaded: Mapping[str, Any]) -> None:
    """Without a name it takes `text_to_image`; without the card the files say their types."""
    assert loaded["by default"] == loaded["text_to_image"]
    assert loaded["without card"] == loaded["analysis"]


def test_datasets_are_read_from_disk(release: Release, drawings: Mapping[str, bytes]) -> None:
    """`Release.datasets` gives each config with its types and the stored bytes."""
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
    """Sharding changes neither the rows nor their digest."""
    one = write_release(tmp_path / "one", configs, images, facts)
    many = write_release(tmp_path / "many", configs, images, facts, shard_bytes=1)
    assert len(many.manifest.configs["analysis"].files) == 3
    assert many.datasets["analysis"]["id"][:] == ["sample0", "sample1", "sample2"]
    assert many.manifest.configs["analysis"].digest == one.manifest.configs["analysis"].digest
    verify_release(many.path)
