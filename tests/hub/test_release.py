"""A release on disk is what went in, whole, repeatable, and readable by datasets."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset, load_dataset

from echo_hf.errors import ImageError, ReleaseError, TableError
from echo_hf.hub.facts import ReleaseFacts
from echo_hf.hub.release import Release, read_release, verify_release, write_release
from echo_hf.images.store import ImageStore
from echo_hf.tables import OUTPUTS, RATINGS, SAMPLES

Configs = Mapping[str, Dataset]

KILLED = """
import sys
from dataclasses import replace
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from datasets import Dataset, disable_progress_bars
from echo_hf.config.sections import Target
from echo_hf.hub.facts import ReleaseFacts; from echo_hf.hub.release import write_release
from echo_hf.images.store import ImageStore
from echo_hf.tables import SAMPLES

disable_progress_bars()
folder, row = Path(sys.argv[2]), dict.fromkeys(SAMPLES.columns)
target = Target(name="Pixelbloom", developer="Bloomworks", released="2025-03-25")
for number in range(10**6):
    rows = [{**row, "id": f"{number}-{each}"} for each in range(200)]
    dataset = Dataset.from_list(rows, features=SAMPLES.features)
    facts = ReleaseFacts(f"n{number}", target)
    write_release(folder, {"analysis": dataset}, ImageStore(folder / "none"), facts)
    print(number, flush=True)
"""


ELSEWHERE = """
import hashlib, io, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from datasets import Dataset, disable_progress_bars
from PIL import Image
from echo_hf.config.sections import Target
from echo_hf.hub.facts import SampleCounts
from echo_hf.hub.facts import ReleaseFacts; from echo_hf.hub.release import write_release
from echo_hf.images.store import ImageStore
from echo_hf.tables import OUTPUTS, SAMPLES

disable_progress_bars()
folder = Path(sys.argv[2])
pictures = ImageStore(folder / "pictures")
sink = io.BytesIO()
Image.new("RGB", (64, 48), "navy").save(sink, "PNG")
digest = pictures.put(sink.getvalue())
samples = [
    {**dict.fromkeys(SAMPLES.columns), "id": str(n), "prompt": f"fox {n % 7}",
     "output_images": [digest]} for n in range(250)
]
outputs = [
    {**dict.fromkeys(OUTPUTS.columns), "sample_id": str(n), "image": digest} for n in range(120)
]
configs = {
    "analysis": Dataset.from_list(samples, features=SAMPLES.features),
    "outputs": Dataset.from_list(outputs, features=OUTPUTS.features),
}
counts = SampleCounts(samples=3, languages={"en": 1, "ja": 2}, platforms={"x": 3}, tasks={},
                      authors=1, repeated_authors=0, unknown_authors=0)
target = Target(name="Pixelbloom", developer="Bloomworks", released="2025-03-25")
stages = {"extract": {"digest": "ab", "engine": {"kind": "vllm", "model": "m", "seed": 0}}}
facts = ReleaseFacts("n", target, provenance=stages, languages=("ja", "en", "fr"),
                     measured={"all": counts, "analysis": counts})
release = write_release(folder / "release", configs, pictures, facts, shard_bytes=40_000)
for path in sorted(release.path.rglob("*")):
    if path.is_file():
        print(path.relative_to(release.path), hashlib.sha256(path.read_bytes()).hexdigest())
"""


def hashes(folder: Path) -> dict[str, str]:
    """Every file of a folder with the sha256 of its bytes."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_the_release_has_the_documented_files(release: Release) -> None:
    """Card, manifest, counts, tasks, and one folder a config; nothing is left beside it."""
    assert sorted(hashes(release.path)) == [
        "README.md",
        "analysis/test-00000-of-00001.parquet",
        "eval.yaml",
        "image_to_image/test-00000-of-00001.parquet",
        "manifest.json",
        "stats.json",
        "text_to_image/test-00000-of-00001.parquet",
    ]
    assert not list(release.path.parent.glob(".release*"))


def test_the_same_input_gives_the_same_bytes(
    tmp_path: Path, release: Release, configs: Configs, images: ImageStore, facts: ReleaseFacts
) -> None:
    """Two runs on equal rows and facts cannot be told apart, whatever the order of configs."""
    again = write_release(
        tmp_path / "elsewhere" / "again", dict(reversed(list(configs.items()))), images, facts
    )
    assert hashes(again.path) == hashes(release.path)


def test_another_process_writes_the_same_bytes(tmp_path: Path) -> None:
    """Neither the order of sets nor the number of threads shows in a file, in several shards."""
    root, said = Path(__file__).resolve().parents[2], []
    for seed, threads in (("1", "1"), ("2", "2")):
        command = [sys.executable, "-c", ELSEWHERE, str(root), str(tmp_path / seed)]
        settings = {**os.environ, "PYTHONHASHSEED": seed, "OMP_NUM_THREADS": threads}
        done = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.splitlines())
    assert said[0] == said[1]
    assert sum("parquet" in line for line in said[0]) > 3


def test_row_order_changes_the_file_but_not_its_content_digest(
    tmp_path: Path, release: Release, configs: Configs, images: ImageStore, facts: ReleaseFacts
) -> None:
    """The digest says what a config holds, not how it lies there."""
    turned = {**configs, "analysis": configs["analysis"].select([2, 0, 1])}
    other = write_release(tmp_path / "other", turned, images, facts)
    (old,) = release.manifest.configs["analysis"].files
    (new,) = other.manifest.configs["analysis"].files
    assert old.sha256 != new.sha256
    digests = [each.manifest.configs["analysis"].digest for each in (release, other)]
    assert digests[0] == digests[1]


def test_another_image_changes_the_content_digest(
    tmp_path: Path,
    release: Release,
    samples: Any,
    digests: Mapping[str, str],
    images: ImageStore,
    facts: ReleaseFacts,
) -> None:
    """Two releases that differ in one image differ in that config's digest alone."""
    rows = [{"prompt": "A fox", "output_images": [digests["webp"]]}, {"prompt": "A hat"}]
    other = write_release(tmp_path / "b", {"text_to_image": samples(*rows)}, images, facts)
    found = other.manifest.configs["text_to_image"].digest
    assert found != release.manifest.configs["text_to_image"].digest


def test_stats_count_rows_images_and_stages(release: Release) -> None:
    """The counts are those of the rows and of the facts."""
    configs = release.stats["configs"]
    assert {name: (row["rows"], row["pictures"]) for name, row in configs.items()} == {
        "analysis": (3, 7),
        "image_to_image": (0, 0),
        "text_to_image": (2, 2),
    }
    file = release.path / "analysis" / "test-00000-of-00001.parquet"
    assert configs["analysis"]["bytes"] == file.stat().st_size
    assert release.stats["funnel"]["relevance"]["kept"] == 340


def test_a_new_release_replaces_the_old_one(
    release: Release, configs: Configs, images: ImageStore, facts: ReleaseFacts
) -> None:
    """Configs that the new release does not have are gone with the old one."""
    only = {"text_to_image": configs["text_to_image"]}
    new = write_release(release.path, only, images, replace(facts, name="later"))
    assert list(new.datasets) == ["text_to_image"]
    assert not (release.path / "analysis").exists()
    verify_release(release.path)


def test_a_missing_image_leaves_the_old_release(
    release: Release, samples: Any, images: ImageStore, facts: ReleaseFacts
) -> None:
    """An image that is missing in the middle of the rows stops the new release, not the old."""
    before = hashes(release.path.parent)
    rows: list[dict[str, Any]] = [{"prompt": f"fox {number}"} for number in range(250)]
    rows[150] = {"output_images": ["0" * 64]}
    configs = {"text_to_image": samples(), "analysis": samples(*rows)}
    with pytest.raises(ImageError, match="0" * 64):
        write_release(release.path, configs, images, facts)
    assert hashes(release.path.parent) == before
    verify_release(release.path)


def test_a_killed_process_leaves_a_whole_release(tmp_path: Path) -> None:
    """Killed at any moment, a writer leaves the old release or the new one."""
    folder, root = tmp_path / "release", Path(__file__).resolve().parents[2]
    command = [sys.executable, "-c", KILLED, str(root), str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        written = [int(writer.stdout.readline()) for _ in range(5)][-1]
        writer.send_signal(signal.SIGKILL)
    verify_release(folder)
    number = int(read_release(folder).manifest.name.removeprefix("n"))
    assert number >= written
    assert read_release(folder).datasets["analysis"]["id"][0] == f"{number}-0"


def test_a_changed_image_is_not_released(
    tmp_path: Path,
    configs: Configs,
    images: ImageStore,
    digests: Mapping[str, str],
    facts: ReleaseFacts,
) -> None:
    """A stored image whose bytes are no longer its digest's stops the release."""
    images.path(digests["webp"]).write_bytes(b"something else")
    with pytest.raises(ImageError, match="has changed"):
        write_release(tmp_path / "release", configs, images, facts)
    assert not (tmp_path / "release").exists()


def test_a_column_that_is_not_declared_is_refused(
    tmp_path: Path, configs: Configs, images: ImageStore, facts: ReleaseFacts
) -> None:
    """A further column is named, never dropped; a missing one is named as well."""
    rows = configs["text_to_image"]
    wider = {"text_to_image": rows.add_column("mood", ["glad", "sad"])}
    with pytest.raises(TableError, match="'mood'"):
        write_release(tmp_path / "release", wider, images, facts)
    narrower = {"text_to_image": rows.remove_columns("quality")}
    with pytest.raises(TableError, match="'quality'"):
        write_release(tmp_path / "release", narrower, images, facts)


def test_scores_are_released_beside_the_samples(
    tmp_path: Path, configs: Configs, outputs: Dataset, images: ImageStore, facts: ReleaseFacts
) -> None:
    """Outputs with their images and an empty table of ratings are written, and read back."""
    ratings = Dataset(RATINGS.features.arrow_schema.empty_table())
    every = {**configs, "ratings": ratings, "outputs": outputs}
    release = write_release(tmp_path / "release", every, images, facts)
    verify_release(release.path)
    read = load_dataset(str(release.path), "outputs", split="test", cache_dir=str(tmp_path / "c"))
    assert read.features == release.datasets["outputs"].features == OUTPUTS.released_features
    assert [image and image.size for image in read["image"]] == [(48, 32), None]
    assert release.datasets["ratings"].features == RATINGS.features
    assert list(release.manifest.configs["outputs"].files) == [
        file for file in release.manifest.files if file.path.startswith("outputs/")
    ]


def test_each_config_keeps_to_its_own_table(
    tmp_path: Path, configs: Configs, outputs: Dataset, images: ImageStore, facts: ReleaseFacts
) -> None:
    """Rows of another table than the config's are refused, and no release is left."""
    with pytest.raises(TableError, match="'release of ratings' reads column 'judge'"):
        write_release(tmp_path / "release", {**configs, "ratings": outputs}, images, facts)
    assert not (tmp_path / "release").exists()


def test_an_unknown_config_is_refused(
    tmp_path: Path, samples: Any, images: ImageStore, facts: ReleaseFacts
) -> None:
    """A misspelt config is answered with the nearest name; no config at all is refused."""
    with pytest.raises(ReleaseError, match="did you mean 'text_to_image'"):
        write_release(tmp_path / "release", {"text_to_imag": samples()}, images, facts)
    with pytest.raises(ReleaseError, match="needs a config"):
        write_release(tmp_path / "release", {}, images, facts)


def test_columns_may_come_in_any_order(
    tmp_path: Path, release: Release, configs: Configs, images: ImageStore, facts: ReleaseFacts
) -> None:
    """The order of columns is the declared one, whatever the dataset's."""
    turned = {
        name: dataset.select_columns(list(SAMPLES.columns)[::-1])
        for name, dataset in configs.items()
    }
    again = write_release(tmp_path / "again", turned, images, facts)
    assert hashes(again.path) == hashes(release.path)
