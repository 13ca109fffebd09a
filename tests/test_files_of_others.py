"""What others wrote leads to no file and no address of this machine, whoever reads it.

A module that reads Parquet, images in tables, or files stands in a list below, with what it reads:
a new one reads what others wrote by `_infra.parquet`, `images.embedded` or `_infra.regular_file`.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import echo_hf
from echo_hf.cli import start
from echo_hf.errors import EchoError, ImageError
from echo_hf.hub.authors_dataset import OfficialImages, read_official
from echo_hf.hub.diff import diff
from echo_hf.hub.hydrate import hydrate
from echo_hf.hub.load import load_benchmark, open_release
from echo_hf.hub.manifest import MANIFEST
from echo_hf.hub.redistribution import dehydrate
from echo_hf.hub.release import read_release, unpack_release, verify_release
from echo_hf.images.embedded import check_embedded
from echo_hf.images.store import ImageStore
from echo_hf.judging.imports import READERS, import_judgements
from echo_hf.metrics.image_features import pair_images
from echo_hf.report.run_data import select_usable_samples as report_samples
from echo_hf.systems.benchmark import Benchmark
from echo_hf.tables import SAMPLES
from tests.errors_for_tests import said_by
from tests.systems.runs_for_tests import png, sample, written

PACKAGE = Path(echo_hf.__file__).parent
PARQUET = {"read_table", "ParquetFile", "read_metadata", "read_schema", "from_parquet"}
PARQUET |= {"load_dataset", "read_parquet", "ParquetDataset"}
# What these read with Arrow's own functions is what a build on this machine wrote.
OWN_TABLES = {
    "apps/review.py": "stages of the run",
    "builder/takedown.py": "stages, release and tables of the run, to take posts out of them",
    "builder/build.py": "stages of the run",
    "builder/review.py": "stages of the run",
    "builder/update.py": "stages of the run",
    "collect/takedown.py": "origins of the run",
    "judging/complaints.py": "threads of the run",
    "curate/personal_data.py": "stages of the run",
    "quickstart/run.py": "the run of the bundled posts",
    "quickstart/systems.py": "the run of the bundled posts",
    "report/analysis/analyze.py": "stages of the run",
}
OTHERS = {
    "_infra/parquet.py": "the one place for tables of others",
    "report/analysis/prompts.py": "one column of a dataset, as Arrow has it",
}
IMAGES = {
    "hub/release.py": "images that it embeds itself",
    "images/embedded.py": "the one place for images in tables of others",
    "metrics/image_features.py": "a dict that a user made; columns go through `embedded`",
}


Nodes = Sequence[ast.Call | ast.Subscript]


@cache
def modules() -> Mapping[str, Nodes]:
    """Of each module what it calls, and what it looks into."""
    return {
        path.relative_to(PACKAGE).as_posix(): [
            node
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.Call | ast.Subscript)
        ]
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def calls(nodes: Nodes) -> Iterator[ast.Call]:
    return (node for node in nodes if isinstance(node, ast.Call))


def takes_bytes(nodes: Nodes) -> bool:
    """Whether it looks into an image as `datasets` stores it."""
    keys = [node.slice for node in nodes if isinstance(node, ast.Subscript)]
    for call in calls(nodes):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "get":
            keys += call.args[:1]
    return any(isinstance(key, ast.Constant) and key.value == "bytes" for key in keys)


def test_tables_and_images_of_others_have_one_reader() -> None:
    parquet, images = set[str](), set[str]()
    for name, nodes in modules().items():
        by_arrow = {
            call.func.attr
            for call in calls(nodes)
            if isinstance(call.func, ast.Attribute)
            and isinstance(call.func.value, ast.Name)
            and call.func.value.id in ("pq", "pd", "Dataset", "datasets", "pandas")
        }
        named = {call.func.id for call in calls(nodes) if isinstance(call.func, ast.Name)}
        if PARQUET & by_arrow or "load_dataset" in named:
            parquet.add(name)
        images |= {name} if takes_bytes(nodes) else set()
    assert parquet == OWN_TABLES.keys() | OTHERS.keys()
    assert images == IMAGES.keys()


# Where a file is opened that is not opened by `_infra.regular_file`, and whose it is.
OPENED: Mapping[str, set[str]] = {
    "the package's own": {
        *("_infra/regular_file.py", "_infra/console.py", "apps/page.py", "builder/search_yield.py"),
        *(
            "cli/__init__.py",
            "cli/start.py",
            "cli/verb.py",
            "engines/prices.py",
            "engines/phrases.py",
            "engines/rules.py",
        ),
        *("hub/card.py", "hub/leaderboard.py", "metrics/base.py", "prompts/__init__.py"),
        "quickstart/run.py",
        *("quickstart/systems.py", "quickstart/truth.py", "report/export.py", "report/markup.py"),
        *("hub/leaderboard_space/app.py",),
        "judging/speaks_to_judge.py",  # its phrases, and beside them what an audit wrote
    },
    "a run's own, or what this process wrote": {
        *("_infra/ray_pool.py", "apps/review.py", "builder/build.py", "builder/update.py"),
        *("cli/build.py", "cli/evaluate.py", "collect/takedown.py", "curate/decisions.py"),
        *("curate/edits.py", "curate/privacy.py", "engines/pixels.py", "engines/vllm_guard.py"),
        *("images/store.py", "images/loader.py", "judging/figures.py", "judging/audit.py"),
        *("judging/certify.py", "judging/certificates.py"),
        "judging/hostile.py",
        *("judging/score.py", "pipeline/stage_runner.py", "report/run_data.py"),
        *("samples/screenshots.py", "systems/journal.py"),
        *("systems/images.py", "hub/hydrate.py", "hub/release.py", "hub/publish.py"),
        *("hub/authors_dataset.py", "engines/batch_rows.py"),
        *("submissions/checks.py", "submissions/submit.py"),
    },
    "named by a user in a config or a command": {
        *("builder/takedown.py", "builder/gold/folder.py", "builder/gold/posts.py"),
        *("collect/fields.py", "curate/safety.py", "engines/checkpoint.py", "engines/memory.py"),
        *("engines/recorded.py", "engines/transformers.py", "judging/anchors.py"),
        *("config/rubrics.py", "metrics/face_identity.py", "metrics/ocr_accuracy.py"),
        *("report/analysis/prompts.py", "schedule/written.py", "systems/command.py"),
        *("systems/diffusers.py", "systems/local_models.py"),
    },
    "the Hub's, over the network": {"hub/remote.py"},
}


def test_files_of_others_have_one_reader() -> None:
    opening = set()
    for name, nodes in modules().items():
        for call in calls(nodes):
            function = call.func
            if isinstance(function, ast.Attribute):
                is_pillow = isinstance(function.value, ast.Name) and function.value.id == "Image"
                if function.attr in ("read_bytes", "read_text", "open") and not is_pillow:
                    opening.add(name)
            elif isinstance(function, ast.Name) and function.id == "open":
                opening.add(name)
    assert opening == set().union(*OPENED.values())


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


SECRET = png("a picture of mine")


@pytest.fixture
def named(tmp_path: Path) -> Iterator[Mapping[str, str | None]]:
    """What a stranger's table may name in place of an image; nobody asks the server for it."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "own.png").write_bytes(SECRET)
    (mine / "link.png").symlink_to(mine / "own.png")
    os.mkfifo(mine / "pipe.png")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        address = f"http://127.0.0.1:{server.getsockname()[1]}/own.png"
        yield {
            "path": str(mine / "own.png"),
            "relative path": "../../mine/own.png",
            "link": str(mine / "link.png"),
            "pipe": str(mine / "pipe.png"),
            "device": "/dev/zero",
            "address": address,
            "file address": (mine / "own.png").as_uri(),
            "nothing": None,
        }
        with pytest.raises(BlockingIOError):
            server.accept()


KINDS = ("path", "relative path", "link", "pipe", "device", "address", "file address", "nothing")


def sealed(release: Path, changes: Callable[[str, pa.Table], pa.Table]) -> Path:
    """A release whose tables are others, and whose manifest says so: its author wrote it."""
    path = release / MANIFEST
    told = json.loads(path.read_text("utf-8"))
    for config, entry in told["configs"].items():
        for file in entry["files"]:
            place = release / file["path"]
            pq.write_table(changes(config, pq.read_table(place)), place)
            file["bytes"] = place.stat().st_size
            file["sha256"] = hashlib.sha256(place.read_bytes()).hexdigest()
    path.write_text(json.dumps(told), "utf-8")
    verify_release(release)
    return release


def naming(release: Path, column: str, place: str | None) -> Path:
    """A release whose images of one column are elsewhere."""

    def change(_: str, table: pa.Table) -> pa.Table:
        at, image = table.schema.get_field_index(column), {"bytes": None, "path": place}
        is_list = pa.types.is_list(table.schema.field(at).type)
        values = [[image] if is_list else image] * len(table)
        return table.set_column(at, table.schema.field(at), pa.array(values, table.field(at).type))

    return sealed(release, change)


def given(folder: Path) -> Path:
    x = {"post_urls": ["https://x.com/i/status/1"]}
    return written(folder, [sample("t", **x)], [sample("e", input_images=["in"], **x)])


def decoded(release: Path, folder: Path) -> None:
    for split in ("image_to_image", "text_to_image", "analysis"):
        for row in load_benchmark(release, split, rows_cache=folder):
            row["input_images"], row["output_images"], row["screenshot"]


def posted(release: Path, folder: Path) -> None:
    """What `init --next --from-images` takes as examples."""
    samples = read_release(release).datasets
    for path, data in start._read_posted(samples, folder):
        path.write_bytes(data)


def reported(release: Path, folder: Path) -> None:
    benchmark, store = Benchmark(str(release)), ImageStore(folder / "shown")
    tasks = {"image_to_image": benchmark.tasks(None).tasks}
    report_samples(benchmark, tasks, store)


def hydrated(release: Path, folder: Path) -> None:
    posts = echo_hf.load_config("eval_configs/quickstart.yaml").posts
    hydrate(release, folder / "hydrated", posts)


RELEASES: Mapping[str, Callable[[Path, Path], object]] = {
    "load_benchmark": decoded,
    "systems": lambda release, folder: Benchmark(str(release)).tasks(ImageStore(folder / "in")),
    "datasets of a release": lambda release, _: [
        dict(row) for one in read_release(release).datasets.values() for row in one
    ],
    "update and publish": lambda release, folder: unpack_release(
        read_release(release), ImageStore(folder / "unpacked")
    ),
    "dehydrate": lambda release, folder: dehydrate(release, folder / "dehydrated"),
    "hydrate": hydrated,
    "examples": posted,
    "report and export": reported,
}


@pytest.mark.parametrize("column", ["input_images", "output_images", "screenshot"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_reader_of_a_release_looks_for_an_image_elsewhere(
    tmp_path: Path, named: Mapping[str, str | None], kind: str, column: str
) -> None:
    release = naming(given(tmp_path), column, named[kind])
    for reader, read in RELEASES.items():
        folder = tmp_path / "read" / reader
        folder.mkdir(parents=True)
        said = said_by(EchoError, read, release, folder)
        assert "in place of bytes" in said or "holds no bytes" in said, reader
        files = [one for one in folder.rglob("*") if one.is_file()]
        assert not any(SECRET in one.read_bytes() for one in files), reader
    assert diff(release, release).equal == 2  # it reads no image


@pytest.mark.parametrize("kind", KINDS)
def test_an_image_of_a_feature_that_is_not_ours_is_refused_too(
    tmp_path: Path, named: Mapping[str, str | None], kind: str
) -> None:
    """A file may say of any column that a path in it is to be opened."""
    features = {
        **SAMPLES.released_features,
        "more": datasets.Image(),
        "sound": datasets.Value("string"),
    }
    told = datasets.Features(features).to_dict() | {"sound": {"_type": "Audio"}}
    metadata = {"huggingface": json.dumps({"info": {"features": told}})}

    def change(_: str, table: pa.Table) -> pa.Table:
        image = pa.struct({"bytes": pa.binary(), "path": pa.string()})
        more = pa.array([{"bytes": None, "path": named[kind]}] * len(table), image)
        table = table.append_column("more", more)
        sound = pa.array([named[kind]] * len(table), pa.string())
        return table.append_column("sound", sound).replace_schema_metadata(metadata)

    release = sealed(given(tmp_path), change)
    assert "bytes" in said_by(EchoError, load_benchmark, release, "analysis")


@pytest.mark.parametrize("kind", KINDS)
def test_no_reader_of_other_tables_looks_for_an_image_elsewhere(
    tmp_path: Path, named: Mapping[str, str | None], kind: str
) -> None:
    """Votes with images, a dataset in the layout of ECHO's authors, columns for metrics."""
    image = {"bytes": None, "path": named[kind]}
    vote = {"prompt": "t", "left_model": "ash", "right_model": "elm", "vote_type": "tievote"}
    kinds = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    table = pa.table({name: [value] for name, value in vote.items()})
    table = table.append_column("left_image", pa.array([image], kinds))
    (tmp_path / "votes").mkdir()
    pq.write_table(table, tmp_path / "votes" / "a.parquet")
    found = list(READERS.find("genai_bench")(tmp_path / "votes"))
    assert [str(one) for one in found[:-1]] == ["bad_picture"]

    (tmp_path / "official" / "test").mkdir(parents=True)
    rows = pa.table({"id": ["a"], "prompt": ["p"]}).append_column("x", pa.array([image], kinds))
    pq.write_table(rows, tmp_path / "official" / "test" / "a.parquet")
    official = OfficialImages(ImageStore(tmp_path / "fetched" / "pictures"))
    said_by(EchoError, read_official, tmp_path / "official", "test", "a/b", official)

    column = datasets.Dataset(rows).cast_column("x", datasets.Image())["x"]
    with pytest.raises(ImageError, match=r"row 0: an image holds .*bytes"):
        list(pair_images(column, column))
    with pytest.raises(ImageError, match=r"row 'a': an image holds .*bytes"):
        check_embedded(rows)


def fifo(path: Path) -> None:
    os.mkfifo(path)


def outside(path: Path) -> None:
    there = path.parent.parent / f"elsewhere-{path.name}"
    there.write_bytes(b"{}")
    path.symlink_to(there)


def endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(400_000_000)


IN_PLACE = (fifo, outside, endless, huge)


@pytest.mark.parametrize("put", IN_PLACE)
@pytest.mark.parametrize("name", [MANIFEST, "stats.json", "README.md", "analysis/*.parquet"])
def test_a_file_of_a_release_is_a_regular_one_of_its_size(
    tmp_path: Path, name: str, put: Callable[[Path], None]
) -> None:
    release = given(tmp_path)
    (path,) = release.glob(name)
    path.unlink()
    put(path)
    for read in (verify_release, open_release, lambda one: load_benchmark(one, "analysis")):
        if read is verify_release or name != "stats.json":
            said_by(EchoError, read, release)


FORMATS = {"jsonl": "a.jsonl", "viescore": "SC.json", "imagenhub": "s_rater1.tsv"}
FORMATS |= {"genai_bench": "a.parquet", "alpaca_eval": "a.json", "inspect": "a.eval"}
FORMATS |= {"echo_assignment": "a_assignment.json"}


@pytest.mark.parametrize("put", [fifo, endless, outside])
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("is_folder", [True, False])
def test_an_import_reads_regular_files_of_its_folder(
    tmp_path: Path, format: str, put: Callable[[Path], None], is_folder: bool
) -> None:
    """A link that its user names leads wherever it leads."""
    if format == "inspect":
        pytest.importorskip("inspect_ai", reason="needs the extra `inspect`")
    folder = tmp_path / "theirs" / "results_wren" / "ash"
    folder.mkdir(parents=True)
    path = folder / FORMATS[format]
    put(path)
    config = tmp_path / "evaluation.yaml"
    told = {"name": "run", "benchmark": str(given(tmp_path))}
    config.write_text(json.dumps(told), "utf-8")
    # The other formats are a file: a folder is none.
    place = tmp_path / "theirs" if is_folder else path
    if put is not outside or is_folder:
        said_by(EchoError, import_judgements, config, place, runs=tmp_path / "runs", format=format)


def test_every_format_is_tried() -> None:
    assert set(READERS.list_names()) == FORMATS.keys()


def without(name: str) -> Callable[[str, pa.Table], pa.Table]:
    return lambda _, table: table.drop_columns([name])


def filled(name: str, values: Any, kind: pa.DataType | None = None) -> Any:
    """Puts one value into each row of a column."""

    def change(_: str, table: pa.Table) -> pa.Table:
        at = table.schema.get_field_index(name)
        column = pa.array([values] * len(table), kind or table.schema.field(at).type)
        return table.set_column(at, name, column)

    return change


def not_utf8(_: str, table: pa.Table) -> pa.Table:
    words = pa.array([b"\xff\xfe"] * len(table)).view(pa.string())
    return table.set_column(table.schema.get_field_index("prompt"), "prompt", words)


def out_of_time(_: str, table: pa.Table) -> pa.Table:
    at = table.schema.get_field_index("timestamp")
    moments = pa.array([2**62] * len(table)).cast(table.schema.field(at).type)
    return table.set_column(at, "timestamp", moments)


def nine_times(_: str, table: pa.Table) -> pa.Table:
    return pa.concat_tables([table.slice(0, 1)] * 9)


def of_unknown_features(told: str) -> Callable[[str, pa.Table], pa.Table]:
    return lambda _, table: table.replace_schema_metadata({"huggingface": told})


HOSTILE: Mapping[str, tuple[Callable[[str, pa.Table], pa.Table], str | None]] = {
    "no id": (without("id"), "'id' is 'no such column'"),
    "no prompt": (without("prompt"), "'prompt' is 'no such column'"),
    "no images": (without("input_images"), "'input_images' is 'no such column'"),
    "numbers for words": (filled("prompt", 3, pa.int64()), "'prompt' is 'int64'"),
    "text that is none": (not_utf8, "UTF8"),
    "a time of no calendar": (out_of_time, "a time that no calendar has"),
    "null for an id": (filled("id", None), "a sample has no id"),
    "nine of one id": (nine_times, r"a sample has id '.*', as another one has"),
    # What a file says of its features is not read: these load.
    "features of no type": (of_unknown_features('{"info": {"features": {"id": {}}}}'), None),
    "features that nobody knows": (
        of_unknown_features('{"info": {"features": {"id": {"_type": "Evil"}}}}'),
        None,
    ),
    "features that are no JSON": (of_unknown_features("{" * 5000), None),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_release_is_one_line(tmp_path: Path, kind: str) -> None:
    """Whatever its rows are; nothing of it is taken for good."""
    change, said = HOSTILE[kind]
    release = sealed(given(tmp_path), change)
    if said is None:
        assert [row["id"] for row in load_benchmark(release, "text_to_image")] == ["t"]
        assert len(Benchmark(str(release)).tasks(None).tasks) == 2
        return
    for reader, read in RELEASES.items():
        (tmp_path / reader).mkdir()
        told = said_by(EchoError, read, release, tmp_path / reader)
        assert re.search(said, told), reader
    if kind not in ("no prompt", "no images"):  # which older releases may lack
        assert re.search(said, said_by(EchoError, diff, release, release))


def test_a_pointer_in_place_of_a_file_says_how_to_get_it(tmp_path: Path) -> None:
    release = given(tmp_path)
    path, pointer = release / MANIFEST, b"version https://git-lfs.github.com/spec/v1\noid a\n"
    told = json.loads(path.read_text("utf-8"))
    for entry in told["configs"].values():
        for file in entry["files"]:
            (release / file["path"]).write_bytes(pointer)
            digest = hashlib.sha256(pointer).hexdigest()
            file.update(bytes=len(pointer), sha256=digest)
    path.write_text(json.dumps(told), "utf-8")
    for read in (*RELEASES.values(), lambda one, _: diff(one, one)):
        assert "run `git lfs pull`" in said_by(EchoError, read, release, tmp_path / "x")


def test_two_splits_with_one_id_are_refused(tmp_path: Path) -> None:
    same = filled("id", "a")
    release = sealed(given(tmp_path), lambda config, table: same(config, table.slice(0, 1)))
    said = said_by(EchoError, Benchmark(str(release)).tasks, None)
    assert "several samples of the id 'a'" in said


def test_no_release_is_written_with_two_samples_of_one_id(tmp_path: Path) -> None:
    said = said_by(EchoError, written, tmp_path, [sample("a"), sample("a")])
    assert "a sample has id 'a', as another one has" in said


def test_a_folder_that_is_not_what_its_manifest_says_is_not_compared(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    one, other = given(tmp_path / "a"), given(tmp_path / "b")
    (path,) = other.glob("analysis/*.parquet")
    table = pq.read_table(path)
    pq.write_table(filled("prompt", "another one")("", table), path)
    assert "has changed" in said_by(EchoError, diff, one, other)


@pytest.mark.parametrize("prompt", ["a" * 2_000_000, "ab " * 700_000, "!" * 2_000_000])
def test_a_prompt_that_is_a_book_is_not_compared(tmp_path: Path, prompt: str) -> None:
    release = written(tmp_path, [sample("a", prompt=prompt)])
    assert "expected at most 1,000,000" in said_by(EchoError, diff, release, release)
