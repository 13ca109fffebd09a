"""A release on disk is what went in, whole, repeatable, and readable by datasets."""

from __future__ import annotations

import datetime
import hashlib
import io
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset, Features, Image, List, load_dataset
from PIL import Image as PILImage

from echo_hf.config.sections import Target
from echo_hf.errors import EchoError, ImageError, ReleaseError, TableError
from echo_hf.hub import release as release_module
from echo_hf.hub.facts import CONFIGS, ReleaseFacts, SampleCounts
from echo_hf.hub.manifest import file_entry
from echo_hf.hub.release import (
    Release,
    config_files,
    make_released_schema,
    read_release,
    unpack_release,
    verify_release,
    write_release,
)
from echo_hf.images.store import ImageStore
from echo_hf.tables import OUTPUTS, RATINGS, SAMPLES, TABLES, release_features
from tests.hub.conftest import Configs, Samples, Write, sample
from tests.images_for_tests import encoded

ROOT = Path(__file__).resolve().parents[2]
DATA = "analysis/test-00000-of-00001.parquet"


def hashes(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_the_same_input_gives_the_same_documented_files(
    release: Release, write: Write, configs: Configs
) -> None:
    again = write("again", dict(reversed(list(configs.items()))), name=release.manifest.name)
    assert hashes(again.path) == hashes(release.path)
    assert sorted(hashes(release.path)) == [
        "README.md",
        DATA,
        "eval.yaml",
        "image_to_image/test-00000-of-00001.parquet",
        "manifest.json",
        "stats.json",
        "text_to_image/test-00000-of-00001.parquet",
    ]
    assert not list(release.path.parent.glob(".release*"))


def test_content_has_one_digest_whatever_its_order_and_files(
    release: Release, write: Write, configs: Configs
) -> None:
    turned = write("other", {**configs, "analysis": configs["analysis"].select([2, 0, 1])})
    many = write("many", shard_bytes=1)
    entries = [each.manifest.configs["analysis"] for each in (release, turned, many)]
    assert len({one.files[0].sha256 for one in entries}) == 3
    assert len({one.digest for one in entries}) == 1
    assert len(entries[2].files) == 3
    assert many.datasets["analysis"]["id"][:] == ["sample0", "sample1", "sample2"]
    verify_release(many.path)


def test_a_new_release_replaces_the_old_one_when_it_is_whole(
    release: Release, write: Write, configs: Configs, samples: Samples
) -> None:
    before = hashes(release.path.parent)
    rows: list[dict[str, Any]] = [{"prompt": f"fox {number}"} for number in range(250)]
    rows[150] = {"output_images": ["0" * 64]}
    with pytest.raises(ImageError, match="0" * 64):
        write("release", {"text_to_image": samples(), "analysis": samples(*rows)})
    assert hashes(release.path.parent) == before
    new = write("release", {"text_to_image": configs["text_to_image"]}, name="later")
    assert list(new.datasets) == ["text_to_image"]
    assert not (release.path / "analysis").exists()
    verify_release(release.path)


def write_numbered(folder: Path, number: int) -> Release:
    """A release that is called by a number, in its rows too."""
    images, sink = ImageStore(folder.parent / "pictures"), io.BytesIO()
    PILImage.new("RGB", (64, 48), "navy").save(sink, "PNG")
    values = {"prompt": "fox", "output_images": [images.put(sink.getvalue())]}
    rows = [{**sample(each), **values, "id": f"{number}-{each}"} for each in range(60)]
    counts = SampleCounts(
        samples=3,
        languages={"en": 1, "ja": 2},
        platforms={"x": 3},
        tasks={},
        authors=1,
        repeated_authors=0,
        unknown_authors=0,
    )
    engine = {"kind": "vllm", "model": "m", "seed": 0}
    facts = ReleaseFacts(
        name=f"n{number}",
        target=Target(name="P", developer="B", released=datetime.date(2025, 3, 25)),
        provenance={"extract": {"digest": "ab", "engine": engine}},
        languages=("ja", "en", "fr"),
        measured={"all": counts, "analysis": counts},
    )
    table = pa.Table.from_pylist(rows, schema=SAMPLES.features.arrow_schema)
    return write_release(folder, {"analysis": Dataset(table)}, images, facts, shard_bytes=40_000)


WRITER = """
import sys
from pathlib import Path
from tests.hub.test_release import write_numbered
for number in range(int(sys.argv[2])):
    write_numbered(Path(sys.argv[1]), number)
    print(number, flush=True)
"""


def writer(folder: Path, count: int, seed: str = "0") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(folder), str(count)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed},
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_another_process_writes_the_same_bytes(tmp_path: Path) -> None:
    for seed in "12":
        with writer(tmp_path / seed / "release", 1, seed) as process:
            assert process.wait() == 0
    first, second = (hashes(tmp_path / seed / "release") for seed in "12")
    assert first == second
    assert sum(name.endswith(".parquet") for name in first) > 1


def test_a_killed_process_leaves_a_whole_release(tmp_path: Path) -> None:
    folder = tmp_path / "release"
    with writer(folder, 10**6) as process:
        assert process.stdout is not None
        written = [int(process.stdout.readline()) for _ in range(2)][-1]
        process.send_signal(signal.SIGKILL)
    verify_release(folder)
    release = read_release(folder)
    number = int(release.manifest.name.removeprefix("n"))
    assert number >= written
    assert release.datasets["analysis"]["id"][0] == f"{number}-0"


def test_what_is_not_declared_is_refused(write: Write, configs: Configs) -> None:
    rows = configs["text_to_image"]
    for made, error, said in (
        ({"text_to_image": rows.remove_columns("quality")}, TableError, "'quality'"),
        ({"text_to_imag": rows}, ReleaseError, "did you mean 'text_to_image'"),
        ({}, ReleaseError, "needs a config"),
    ):
        with pytest.raises(error, match=said):
            write("release", made)


def test_scores_are_released_beside_the_samples(
    tmp_path: Path, write: Write, configs: Configs, outputs: Dataset
) -> None:
    ratings = Dataset(RATINGS.features.arrow_schema.empty_table())
    release = write("release", {**configs, "ratings": ratings, "outputs": outputs})
    verify_release(release.path)
    read = load_dataset(str(release.path), "outputs", split="test", cache_dir=str(tmp_path / "c"))
    assert read.features == release.datasets["outputs"].features == OUTPUTS.released_features
    assert [image and image.size for image in read["image"]] == [(48, 32), None]
    assert release.datasets["ratings"].features == RATINGS.features


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def spoilt(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        (DATA, spoilt, "has changed: sha256 is"),
        (DATA, cut_short, r"has changed: bytes is \d+, the manifest says \d+"),
        ("README.md", spoilt, "has changed: sha256 is"),
        ("stats.json", Path.unlink, "is missing"),
        ("notes.txt", Path.touch, "which its manifest does not list"),
        ("analysis/test-00001-of-00002.parquet", Path.touch, "which its manifest does not list"),
    ],
)
def test_a_file_that_is_not_as_it_was_written_is_named(
    release: Release, name: str, change: Callable[[Path], Any], said: str
) -> None:
    (release.path / ".cache").mkdir()
    (release.path / ".cache" / "lock").touch()
    verify_release(release.path)
    change(release.path / name)
    with pytest.raises(ReleaseError, match=f"{name!r},? {said}") as raised:
        verify_release(release.path)
    assert "\n" not in str(raised.value)


def filled(name: str, value: Any, kind: pa.DataType | None = None) -> Callable[[pa.Table], Any]:
    """Puts a value into each row of a column, of another type where one is given."""

    def change(table: pa.Table) -> pa.Table:
        at = table.schema.get_field_index(name)
        values = pa.array([value] * len(table), kind or table.schema.field(at).type)
        return table.set_column(at, name, values)

    return change


DAMAGES: dict[str, tuple[Callable[[pa.Table], Any], str]] = {
    "no column": (
        lambda table: table.drop_columns(["prompt_spans"]),
        "'prompt_spans' is 'no such column'",
    ),
    "one more": (
        lambda table: table.append_column("zzz", pa.nulls(len(table), pa.string())),
        "'zzz' is 'string', expected 'no such column'",
    ),
    "other type": (filled("prompt", 3, pa.int64()), "'prompt' is 'int64', expected 'string'"),
    "null feedback": (filled("community_feedback", [None]), "holds null"),
    "null image": (filled("output_images", [None]), "holds null"),
    "no image": (filled("screenshot", {"bytes": b"<svg/>", "path": "x"}), "expected one of AVIF"),
}


@pytest.mark.parametrize(("edit", "said"), DAMAGES.values(), ids=DAMAGES)
def test_strange_rows_are_one_line(
    release: Release, images: ImageStore, edit: Callable[[pa.Table], Any], said: str
) -> None:
    """Of a release whose digests are right: it may come from anywhere."""
    pq.write_table(edit(pq.read_table(release.path / DATA)), release.path / DATA)
    manifest = json.loads((release.path / "manifest.json").read_text("utf-8"))
    manifest["configs"]["analysis"]["files"] = [file_entry(release.path, DATA).model_dump()]
    (release.path / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    verify_release(release.path)
    with pytest.raises(EchoError, match=said) as raised:
        unpack_release(read_release(release.path), images)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", sorted({config.table.name for config in CONFIGS.values()}))
def test_the_schema_names_features_that_any_datasets_reads(name: str) -> None:
    schema = make_released_schema(TABLES[name])
    assert Features.from_arrow_schema(schema) == TABLES[name].released_features
    assert b'"List"' not in schema.metadata[b"huggingface"]
    if name == "samples":
        features = json.loads(schema.metadata[b"huggingface"])["info"]["features"]
        assert features["output_images"] == [{"_type": "Image"}]
        assert features["input_bboxs"] == [[{"dtype": "float64", "_type": "Value"}]]


def rows_in(*paths: Path) -> list[dict[str, Any]]:
    return [row for path in paths for row in pq.read_table(path).to_pylist()]


def test_every_image_keeps_its_bytes_and_is_named_by_digest_and_format(
    release: Release, configs: Configs, drawings: Mapping[str, bytes]
) -> None:
    rows = rows_in(*config_files(release, "analysis"))
    png, jpg, webp = (
        {"bytes": drawings[name], "path": f"{hashlib.sha256(drawings[name]).hexdigest()}.{name}"}
        for name in ("png", "jpg", "webp")
    )
    assert [row["input_images"] for row in rows] == [[jpg], [], []]
    assert [row["output_images"] for row in rows] == [[png, webp], [webp, jpg], [png]]
    assert [row["screenshot"] for row in rows] == [png, None, None]
    for found, given in zip(rows, configs["analysis"], strict=True):
        for name in set(found) - {"input_images", "output_images", "screenshot"}:
            assert found[name] == given[name]


@pytest.mark.parametrize(
    ("shard", "batch", "files", "groups"),
    [(2 * 7554, 32_000_000, [2, 2, 1], [2]), (500_000_000, 3 * 7554, [5], [3, 2])],
    ids=["files end by their bytes", "row groups are small enough for the viewer"],
)
def test_files_and_row_groups_are_cut_by_bytes(
    write: Write,
    samples: Samples,
    images: ImageStore,
    monkeypatch: pytest.MonkeyPatch,
    shard: int,
    batch: int,
    files: list[int],
    groups: list[int],
) -> None:
    """Together they hold all rows in their order; the viewer gives up at 300 MB."""
    assert release_module.BATCH_BYTES < 300_000_000 / 8
    monkeypatch.setattr(release_module, "BATCH_BYTES", batch)
    image = PILImage.frombytes("RGB", (50, 50), random.Random(0).randbytes(7500))
    rows = samples(*({"output_images": [images.put(encoded(image, "BMP"))]} for _ in range(5)))
    paths = config_files(write("r", {"analysis": rows}, shard), "analysis")
    ends = [f"test-{n:05d}-of-{len(files):05d}.parquet" for n in range(len(files))]
    assert [path.name for path in paths] == ends
    every = [pq.read_metadata(path) for path in paths]
    assert [one.num_rows for one in every] == files
    first = [every[0].row_group(number) for number in range(every[0].num_row_groups)]
    assert [group.num_rows for group in first] == groups
    assert [row["id"] for row in rows_in(*paths)] == [f"sample{n}" for n in range(5)]


@pytest.mark.parametrize(
    ("config", "count", "groups"),
    [("text_to_image", 230, [100, 100, 30]), ("ratings", 2300, [1000, 1000, 300])],
)
def test_row_groups_are_cut_by_rows(
    write: Write, config: str, count: int, groups: list[int]
) -> None:
    table = CONFIGS[config].table
    rows = [{**dict.fromkeys(table.columns), table.key[0]: str(n)} for n in range(count)]
    (path,) = config_files(
        write("r", {config: Dataset.from_list(rows, features=table.features)}), config
    )
    found = pq.read_metadata(path)
    assert [found.row_group(n).num_rows for n in range(found.num_row_groups)] == groups
    assert [row[table.key[0]] for row in rows_in(path)] == [str(n) for n in range(count)]


def test_the_files_suit_the_viewer(release: Release) -> None:
    group = pq.read_metadata(config_files(release, "analysis")[0]).row_group(0)
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
    # No rows give one file with all columns and no row group.
    file = pq.ParquetFile(config_files(release, "image_to_image")[0])
    assert file.schema_arrow.names == list(release_features())
    assert (file.metadata.num_rows, file.metadata.num_row_groups) == (0, 0)


def test_datasets_are_read_from_disk(release: Release, drawings: Mapping[str, bytes]) -> None:
    lengths = {name: len(dataset) for name, dataset in release.datasets.items()}
    assert lengths == {"image_to_image": 0, "text_to_image": 2, "analysis": 3}
    for dataset in release.datasets.values():
        assert (dataset.features, str(dataset.split)) == (release_features(), "test")
    undecoded = List(Image(decode=False))
    plain = release.datasets["text_to_image"].cast_column("output_images", undecoded)
    found = [image["bytes"] for image in plain[0]["output_images"]]
    assert found == [drawings["webp"], drawings["jpg"]]
