"""A release on disk is what went in, whole, repeatable, and readable by datasets."""

from __future__ import annotations

import hashlib
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

from echo_hf.errors import ImageError, ReleaseError, TableError
from echo_hf.hub import release as release_module
from echo_hf.hub.facts import CONFIGS
from echo_hf.hub.manifest import file_entry
from echo_hf.hub.release import (
    Release,
    files_of,
    read_release,
    released_schema,
    unpacked,
    verify_release,
)
from echo_hf.images.store import ImageStore
from echo_hf.tables import OUTPUTS, RATINGS, TABLES, release_features
from tests.hub.conftest import Configs, Samples, Write
from tests.images_for_tests import encoded

ROOT = Path(__file__).resolve().parents[2]
DATA = "analysis/test-00000-of-00001.parquet"
MADE = """
import hashlib, io, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from datasets import Dataset, disable_progress_bars
from PIL import Image
from echo_hf.config.sections import Target
from echo_hf.hub.facts import ReleaseFacts, SampleCounts
from echo_hf.hub.release import write_release
from echo_hf.images.store import ImageStore
from echo_hf.tables import OUTPUTS, SAMPLES

disable_progress_bars()
folder = Path(sys.argv[2])
target = Target(name="Pixelbloom", developer="Bloomworks", released="2025-03-25")
"""
KILLED = f"""{MADE}
for number in range(10**6):
    empty = dict.fromkeys(SAMPLES.columns)
    rows = [{{**empty, "id": f"{{number}}-{{each}}"}} for each in range(20)]
    dataset = Dataset.from_list(rows, features=SAMPLES.features)
    facts = ReleaseFacts(f"n{{number}}", target)
    write_release(folder, {{"analysis": dataset}}, ImageStore(folder / "none"), facts)
    print(number, flush=True)
"""
ELSEWHERE = f"""{MADE}
pictures = ImageStore(folder / "pictures")
sink = io.BytesIO()
Image.new("RGB", (64, 48), "navy").save(sink, "PNG")
digest = pictures.put(sink.getvalue())
samples = [
    {{**dict.fromkeys(SAMPLES.columns), "id": str(n), "prompt": f"fox {{n % 7}}",
     "output_images": [digest]}} for n in range(250)
]
outputs = [
    {{**dict.fromkeys(OUTPUTS.columns), "sample_id": str(n), "image": digest}} for n in range(120)
]
configs = {{
    "analysis": Dataset.from_list(samples, features=SAMPLES.features),
    "outputs": Dataset.from_list(outputs, features=OUTPUTS.features),
}}
counts = SampleCounts(samples=3, languages={{"en": 1, "ja": 2}}, platforms={{"x": 3}}, tasks={{}},
                      authors=1, repeated_authors=0, unknown_authors=0)
stages = {{"extract": {{"digest": "ab", "engine": {{"kind": "vllm", "model": "m", "seed": 0}}}}}}
facts = ReleaseFacts("n", target, provenance=stages, languages=("ja", "en", "fr"),
                     measured={{"all": counts, "analysis": counts}})
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


@pytest.mark.slow
def test_another_process_writes_the_same_bytes(tmp_path: Path) -> None:
    said = []
    for seed, threads in (("1", "1"), ("2", "2")):
        command = [sys.executable, "-c", ELSEWHERE, str(ROOT), str(tmp_path / seed)]
        settings = {**os.environ, "PYTHONHASHSEED": seed, "OMP_NUM_THREADS": threads}
        done = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.splitlines())
    assert said[0] == said[1]
    assert sum("parquet" in line for line in said[0]) > 3


def test_row_order_changes_the_file_but_not_its_content_digest(
    release: Release, write: Write, configs: Configs
) -> None:
    turned = {**configs, "analysis": configs["analysis"].select([2, 0, 1])}
    entries = [each.manifest.configs["analysis"] for each in (release, write("other", turned))]
    assert entries[0].files[0].sha256 != entries[1].files[0].sha256
    assert entries[0].digest == entries[1].digest


def test_a_new_release_replaces_the_old_one(
    release: Release, write: Write, configs: Configs
) -> None:
    new = write("release", {"text_to_image": configs["text_to_image"]}, name="later")
    assert list(new.datasets) == ["text_to_image"]
    assert not (release.path / "analysis").exists()
    verify_release(release.path)


def test_a_missing_image_leaves_the_old_release(
    release: Release, write: Write, samples: Samples
) -> None:
    before = hashes(release.path.parent)
    rows: list[dict[str, Any]] = [{"prompt": f"fox {number}"} for number in range(250)]
    rows[150] = {"output_images": ["0" * 64]}
    with pytest.raises(ImageError, match="0" * 64):
        write("release", {"text_to_image": samples(), "analysis": samples(*rows)})
    assert hashes(release.path.parent) == before


def test_a_killed_process_leaves_a_whole_release(tmp_path: Path) -> None:
    folder = tmp_path / "release"
    command = [sys.executable, "-c", KILLED, str(ROOT), str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        written = [int(writer.stdout.readline()) for _ in range(3)][-1]
        writer.send_signal(signal.SIGKILL)
    verify_release(folder)
    number = int(read_release(folder).manifest.name.removeprefix("n"))
    assert number >= written
    assert pq.read_table(folder / DATA)["id"][0].as_py() == f"{number}-0"


def test_what_is_not_declared_is_refused(write: Write, configs: Configs) -> None:
    rows = configs["text_to_image"]
    wider, narrower = rows.add_column("mood", ["glad", "sad"]), rows.remove_columns("quality")
    for made, error, said in (
        ({"text_to_image": wider}, TableError, "'mood'"),
        ({"text_to_image": narrower}, TableError, "'quality'"),
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


def test_an_untouched_release_is_verified(release: Release) -> None:
    (release.path / ".cache").mkdir()
    (release.path / ".cache" / "lock").write_text("")
    verify_release(release.path)


@pytest.mark.parametrize("name", ["README.md", DATA])
def test_a_file_that_is_not_as_it_was_written_is_named(release: Release, name: str) -> None:
    path = release.path / name
    data = path.read_bytes()
    middle = len(data) // 2
    other = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
    sha256 = hashlib.sha256(other).hexdigest()
    cut = f"bytes is {len(data) - 1}, the manifest says {len(data)}"
    damages = {f"has changed: sha256 is '{sha256}'": other, f"has changed: {cut}": data[:-1]}
    for said, damaged in damages.items():
        path.write_bytes(damaged)
        with pytest.raises(ReleaseError, match=said) as raised:
            verify_release(release.path)
        assert f"{name!r} " in str(raised.value)
        assert "\n" not in str(raised.value)
    path.unlink()
    with pytest.raises(ReleaseError, match=f"{name!r} is missing"):
        verify_release(release.path)


@pytest.mark.parametrize("name", ["notes.txt", "analysis/test-00001-of-00002.parquet"])
def test_an_extra_file_is_named(release: Release, name: str) -> None:
    (release.path / name).write_bytes(b"x")
    with pytest.raises(ReleaseError, match=f"holds {name!r}"):
        verify_release(release.path)


def with_column(table: pa.Table, name: str, values: Callable[[pa.DataType], Any]) -> pa.Table:
    return table.set_column(
        table.schema.get_field_index(name), name, values(table.schema.field(name).type)
    )


DAMAGES: dict[str, tuple[Callable[[pa.Table], Any], type[Exception], str]] = {
    "no Parquet": (lambda _: None, ReleaseError, "cannot be read"),
    "no column": (
        lambda table: table.drop_columns(["prompt_spans"]),
        ReleaseError,
        "'prompt_spans' is 'no such column'",
    ),
    "one more": (
        lambda table: table.append_column("zzz", pa.nulls(len(table), pa.string())),
        ReleaseError,
        "'zzz' is 'string', expected 'no such column'",
    ),
    "other type": (
        lambda table: with_column(table, "prompt", lambda _: pa.nulls(len(table), pa.int64())),
        ReleaseError,
        "'prompt' is 'int64', expected 'string'",
    ),
    "null feedback": (
        lambda table: with_column(
            table, "community_feedback", lambda kind: pa.array([[None]] * len(table), kind)
        ),
        ReleaseError,
        "holds null",
    ),
    "null image": (
        lambda table: with_column(
            table, "output_images", lambda kind: pa.array([[None]] * len(table), kind)
        ),
        ReleaseError,
        "holds null",
    ),
    "no image": (
        lambda table: with_column(
            table,
            "screenshot",
            lambda kind: pa.array([{"bytes": b"<svg/>", "path": "x"}] * len(table), kind),
        ),
        ImageError,
        "expected one of AVIF",
    ),
}


@pytest.mark.parametrize(("edit", "error", "said"), DAMAGES.values(), ids=DAMAGES)
def test_strange_rows_are_one_line(
    release: Release,
    images: ImageStore,
    edit: Callable[[pa.Table], Any],
    error: type[Exception],
    said: str,
) -> None:
    """Of a release whose digests are right: it may come from anywhere."""
    table = edit(pq.read_table(release.path / DATA))
    if table is None:
        (release.path / DATA).write_bytes(b"PAR1 nothing PAR1")
    else:
        pq.write_table(table, release.path / DATA)
    manifest = json.loads((release.path / "manifest.json").read_text("utf-8"))
    manifest["configs"]["analysis"]["files"] = [file_entry(release.path, DATA).model_dump()]
    (release.path / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    verify_release(release.path)
    with pytest.raises(error, match=said) as raised:
        unpacked(read_release(release.path), images)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", sorted({config.table.name for config in CONFIGS.values()}))
def test_the_schema_names_features_that_any_datasets_reads(name: str) -> None:
    schema = released_schema(TABLES[name])
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
    rows = rows_in(*files_of(release, "analysis"))
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
    paths = files_of(write("r", {"analysis": rows}, shard), "analysis")
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
    (path,) = files_of(
        write("r", {config: Dataset.from_list(rows, features=table.features)}), config
    )
    found = pq.read_metadata(path)
    assert [found.row_group(n).num_rows for n in range(found.num_row_groups)] == groups
    assert [row[table.key[0]] for row in rows_in(path)] == [str(n) for n in range(count)]


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
    # No rows give one file with all columns and no row group.
    file = pq.ParquetFile(files_of(release, "image_to_image")[0])
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


def test_a_config_in_several_files_is_read_in_order(release: Release, write: Write) -> None:
    many = write("many", shard_bytes=1)
    assert len(many.manifest.configs["analysis"].files) == 3
    assert many.datasets["analysis"]["id"][:] == ["sample0", "sample1", "sample2"]
    digests = [one.manifest.configs["analysis"].digest for one in (release, many)]
    assert digests[0] == digests[1]
    verify_release(many.path)
