"""A release on disk is what went in, whole, repeatable, and readable by datasets."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from datasets import Dataset, Features, load_dataset
from PIL import Image

from echo_hf.errors import ImageError, ReleaseError, TableError
from echo_hf.hub.facts import CONFIGS, ReleaseFacts
from echo_hf.hub.release import (
    Release,
    files_of,
    read_release,
    released_schema,
    verify_release,
    write_release,
)
from echo_hf.images.store import ImageStore
from echo_hf.tables import OUTPUTS, RATINGS, SAMPLES, Table, release_features

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
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_the_release_has_the_documented_files(release: Release) -> None:
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
    again = write_release(
        tmp_path / "elsewhere" / "again", dict(reversed(list(configs.items()))), images, facts
    )
    assert hashes(again.path) == hashes(release.path)


@pytest.mark.slow
def test_another_process_writes_the_same_bytes(tmp_path: Path) -> None:
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
    turned = {**configs, "analysis": configs["analysis"].select([2, 0, 1])}
    other = write_release(tmp_path / "other", turned, images, facts)
    (old,) = release.manifest.configs["analysis"].files
    (new,) = other.manifest.configs["analysis"].files
    assert old.sha256 != new.sha256
    digests = [each.manifest.configs["analysis"].digest for each in (release, other)]
    assert digests[0] == digests[1]


def test_a_new_release_replaces_the_old_one(
    release: Release, configs: Configs, images: ImageStore, facts: ReleaseFacts
) -> None:
    only = {"text_to_image": configs["text_to_image"]}
    new = write_release(release.path, only, images, replace(facts, name="later"))
    assert list(new.datasets) == ["text_to_image"]
    assert not (release.path / "analysis").exists()
    verify_release(release.path)


def test_a_missing_image_leaves_the_old_release(
    release: Release, samples: Any, images: ImageStore, facts: ReleaseFacts
) -> None:
    before = hashes(release.path.parent)
    rows: list[dict[str, Any]] = [{"prompt": f"fox {number}"} for number in range(250)]
    rows[150] = {"output_images": ["0" * 64]}
    configs = {"text_to_image": samples(), "analysis": samples(*rows)}
    with pytest.raises(ImageError, match="0" * 64):
        write_release(release.path, configs, images, facts)
    assert hashes(release.path.parent) == before
    verify_release(release.path)


def test_a_killed_process_leaves_a_whole_release(tmp_path: Path) -> None:
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


def test_a_column_that_is_not_declared_is_refused(
    tmp_path: Path, configs: Configs, images: ImageStore, facts: ReleaseFacts
) -> None:
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


def test_an_unknown_config_is_refused(
    tmp_path: Path, samples: Any, images: ImageStore, facts: ReleaseFacts
) -> None:
    with pytest.raises(ReleaseError, match="did you mean 'text_to_image'"):
        write_release(tmp_path / "release", {"text_to_imag": samples()}, images, facts)
    with pytest.raises(ReleaseError, match="needs a config"):
        write_release(tmp_path / "release", {}, images, facts)


def test_an_untouched_release_is_verified(release: Release) -> None:
    (release.path / ".cache").mkdir()
    (release.path / ".cache" / "lock").write_text("")
    verify_release(release.path)
    assert read_release(release.path).manifest == release.manifest


@pytest.mark.parametrize(
    "name", ["README.md", "analysis/test-00000-of-00001.parquet", "text_to_image/*.parquet"]
)
def test_one_changed_byte_is_named(release: Release, name: str) -> None:
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
    path = release.path / "README.md"
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ReleaseError, match=rf"'README\.md' .*bytes is {size - 1}.* {size}"):
        verify_release(release.path)


@pytest.mark.parametrize("name", ["README.md", "image_to_image/test-00000-of-00001.parquet"])
def test_a_missing_file_is_named(release: Release, name: str) -> None:
    (release.path / name).unlink()
    with pytest.raises(ReleaseError, match=f"{name!r} is missing"):
        verify_release(release.path)


@pytest.mark.parametrize("name", ["notes.txt", "analysis/test-00001-of-00002.parquet"])
def test_an_extra_file_is_named(release: Release, name: str) -> None:
    (release.path / name).write_bytes(b"x")
    with pytest.raises(ReleaseError, match=f"holds {name!r}"):
        verify_release(release.path)


TABLES = {config.table.name: config.table for config in CONFIGS.values()}
each_table = pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)


@each_table
def test_the_schema_carries_the_released_features(table: Table) -> None:
    assert Features.from_arrow_schema(released_schema(table)) == table.released_features


@each_table
def test_the_schema_names_no_feature_that_old_datasets_lacks(table: Table) -> None:
    assert b'"List"' not in released_schema(table).metadata[b"huggingface"]


def test_lists_are_written_as_old_datasets_wrote_them() -> None:
    metadata = released_schema(SAMPLES).metadata[b"huggingface"]
    features = json.loads(metadata)["info"]["features"]
    assert features["output_images"] == [{"_type": "Image"}]
    assert features["input_bboxs"] == [[{"dtype": "float64", "_type": "Value"}]]
    assert features["safety"]["categories"] == [{"dtype": "string", "_type": "Value"}]


def rows_in(*paths: Path) -> list[dict[str, Any]]:
    return [row for path in paths for row in pq.read_table(path).to_pylist()]


def test_every_image_keeps_its_bytes_and_is_named_by_digest_and_format(
    release: Release, configs: Configs, drawings: Mapping[str, bytes]
) -> None:
    first, second, third = rows_in(*files_of(release, "analysis"))
    png, jpg, webp = (
        {"bytes": drawings[name], "path": f"{hashlib.sha256(drawings[name]).hexdigest()}.{name}"}
        for name in ("png", "jpg", "webp")
    )
    rows = (first, second, third)
    assert [row["input_images"] for row in rows] == [[jpg], [], []]
    assert [row["output_images"] for row in rows] == [[png, webp], [webp, jpg], [png]]
    assert [row["screenshot"] for row in rows] == [png, None, None]
    for found, given in zip(rows, configs["analysis"], strict=True):
        for name in set(found) - {"input_images", "output_images", "screenshot"}:
            assert found[name] == given[name]


def noise(seed: int, side: int) -> bytes:
    pixels = random.Random(seed).randbytes(3 * side * side)
    sink = io.BytesIO()
    Image.frombytes("RGB", (side, side), pixels).save(sink, "BMP")
    return sink.getvalue()


@pytest.mark.parametrize(
    ("side", "most", "files", "groups"),
    [(50, 2 * 7554, [2, 2, 1], [2]), (2000, 500_000_000, [5], [3, 2])],
    ids=["files end by their bytes", "row groups are small enough for the viewer"],
)
def test_files_and_row_groups_are_cut_by_bytes(
    tmp_path: Path,
    samples: Any,
    images: ImageStore,
    facts: ReleaseFacts,
    side: int,
    most: int,
    files: list[int],
    groups: list[int],
) -> None:
    """Together they hold all rows in their order; the viewer gives up at 300 MB."""
    data = noise(0, side)
    rows = samples(*({"output_images": [images.put(data)]} for _ in range(5)))
    release = write_release(tmp_path / "r", {"analysis": rows}, images, facts, shard_bytes=most)
    paths = files_of(release, "analysis")
    ends = [f"test-{n:05d}-of-{len(files):05d}.parquet" for n in range(len(files))]
    assert [path.name for path in paths] == ends
    every = [pq.read_metadata(path) for path in paths]
    assert [one.num_rows for one in every] == files
    first = [every[0].row_group(number) for number in range(every[0].num_row_groups)]
    assert [group.num_rows for group in first] == groups
    assert max(group.total_byte_size for group in first) < 300_000_000 / 8
    assert [row["id"] for row in rows_in(*paths)] == [f"sample{n}" for n in range(5)]


@pytest.mark.parametrize(
    ("config", "count", "groups"),
    [("text_to_image", 230, [100, 100, 30]), ("ratings", 2300, [1000, 1000, 300])],
)
def test_row_groups_are_cut_by_rows(
    tmp_path: Path,
    images: ImageStore,
    facts: ReleaseFacts,
    config: str,
    count: int,
    groups: list[int],
) -> None:
    table = RATINGS if config == "ratings" else SAMPLES
    rows = [{**dict.fromkeys(table.columns), table.key[0]: str(n)} for n in range(count)]
    made = {config: Dataset.from_list(rows, features=table.features)}
    (path,) = files_of(write_release(tmp_path / "r", made, images, facts), config)
    found = pq.read_metadata(path)
    assert [found.row_group(n).num_rows for n in range(found.num_row_groups)] == groups
    assert [row[table.key[0]] for row in rows_in(path)] == [str(n) for n in range(count)]


def test_no_rows_give_one_file_with_all_columns(release: Release) -> None:
    (path,) = files_of(release, "image_to_image")
    file = pq.ParquetFile(path)
    assert file.schema_arrow.names == list(release_features())
    assert (file.metadata.num_rows, file.metadata.num_row_groups) == (0, 0)


def test_the_files_suit_the_viewer(release: Release) -> None:
    group = pq.read_metadata(files_of(release, "analysis")[0]).row_group(0)
    chunks = [group.column(number) for number in range(group.num_columns)]
    assert all(one.has_offset_index and one.has_column_index for one in chunks)
    stored = [one for one in chunks if one.compression == "UNCOMPRESSED"]
    assert {one.path_in_schema for one in stored} == {
        "input_images.list.element.bytes",
        "output_images.list.element.bytes",
        "screenshot.bytes",
    }
    for one in stored:
        assert not {"PLAIN_DICTIONARY", "RLE_DICTIONARY"} & set(one.encodings)
    assert {one.compression for one in chunks if one not in stored} == {"ZSTD"}
