"""What datasets itself reads of a published release, in a process that knows no other Hub."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

from echo_hf.hub.facts import ReleaseFacts
from echo_hf.hub.publish import publish
from echo_hf.hub.release import Release, write_release
from echo_hf.images.store import ImageStore
from echo_hf.tables import release_features
from tests.local_hub import LocalHub

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
PLAIN = """
from datasets import load_dataset

print(len(load_dataset("mira/echo", "analysis", split="test", revision=input())))
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
    """What a process that only knows this Hub prints."""
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
    """A Hub with two revisions, of which the second has fewer configs, in several files."""
    publish(release, REPO, "v1", api=hub.api())
    later = {"analysis": configs["analysis"].select([2, 0])}
    several = write_release(tmp_path / "later", later, images, facts, shard_bytes=1)
    publish(several, REPO, "v2", api=hub.api())
    return hub


def test_load_dataset_reads_every_revision(
    published: LocalHub, tmp_path: Path, configs: Mapping[str, Dataset]
) -> None:
    """By tag, by the main branch, prepared and streamed: types, rows, and the stored bytes."""
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
    """With HF_HUB_OFFLINE, too: what is in the cache is given, anything else is an error."""
    said = run(published, tmp_path, OFFLINE).splitlines()
    assert said[0] == "3"
    assert said[1].startswith("HubError cannot load 'mira/echo' at revision 'never-existed': ")
    said = run(published, tmp_path, OFFLINE, HF_HUB_OFFLINE="1").splitlines()
    assert said[0] == "3"
    assert "the cache does not hold it" in said[1]


def test_load_dataset_would_have_given_another_revision(
    published: LocalHub, tmp_path: Path
) -> None:
    """Why `load_benchmark` exists: offline, datasets gives what it has for what was asked for."""
    assert run(published, tmp_path, PLAIN, "v1").strip() == "3"
    assert run(published, tmp_path, PLAIN, "never-existed", HF_HUB_OFFLINE="1").strip() == "3"
