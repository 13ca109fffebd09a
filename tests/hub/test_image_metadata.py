"""What images say beside their pixels is in no release; releases from before stay what they were."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

import pytest
from datasets import load_dataset

from echo_hf.hub.dehydrate import dehydrate
from echo_hf.hub.diff import diff
from echo_hf.hub.hydrate import hydrate
from echo_hf.hub.release import verify_release
from echo_hf.run import build
from tests.hub.quickstart_release import entry, released

# Posts with a config, and the release that the toolkit made of them while images went into it as
# posted, in full and dehydrated. `pier.jpg` alone has metadata: EXIF with GPS, and a comment.
AS_POSTED = Path(__file__).parent.parent / "data" / "release_as_posted.tar.xz"


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `config.yaml`, `posts.jsonl`, `pictures`, `full` and `dehydrated`."""
    folder = tmp_path_factory.mktemp("as_posted")
    with tarfile.open(AS_POSTED) as archive:
        archive.extractall(folder, filter="data")
    return folder


def test_a_release_from_before_loads_and_is_hydrated_to_its_very_bytes(
    before: Path, tmp_path: Path
) -> None:
    """Images with metadata too: nothing is stripped that its digests do not know of."""
    verify_release(before / "full")
    assert len(load_dataset(str(before / "full"), "analysis", split="test")) == 5
    found = hydrate(before / "dehydrated", tmp_path / "wet", [entry(before / "posts.jsonl")])
    assert {sample.match.value for sample in found.samples} == {"exact"}
    assert released(tmp_path / "wet") == released(before / "full")


def test_images_without_metadata_are_the_same_in_a_release_of_now(
    before: Path, tmp_path: Path
) -> None:
    """Of five samples that one changed whose input had some; nothing came, left or drifted."""
    shutil.copytree(before, tmp_path / "posts")
    now = build(tmp_path / "posts" / "config.yaml", runs=tmp_path / "runs")
    found = diff(before / "full", now.path)
    assert (found.added, found.removed, found.equal) == ((), (), 4)
    (changed,) = found.changed
    assert set(changed.columns) == {"input_images", "picture_sources", "sample_digest"}
    assert {one.distance for one in found.drift.values() if one.a} == {0}
    dehydrate(now.path, tmp_path / "dry")
    dry = diff(before / "dehydrated", tmp_path / "dry")
    assert [one.id for one in dry.changed] == [changed.id]
