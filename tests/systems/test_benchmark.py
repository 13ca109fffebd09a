"""The tasks of a benchmark: from a folder, from the Hub, by hand; and its config."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pytest
import yaml

from echo_hf.config.evaluation import EvaluationConfig
from echo_hf.config.loading import Config, load_config
from echo_hf.config.systems import shipped_config
from echo_hf.errors import ConfigError, HubError, RunError
from echo_hf.hub.publish import publish
from echo_hf.hub.release import read_release
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.systems.benchmark import Benchmark, BenchmarkTasks, NoTask, load_evaluation
from echo_hf.systems.evaluation_run import EvaluationRun
from tests.errors_for_tests import said_by
from tests.hub.conftest import hub as hub
from tests.local_hub import LocalHub
from tests.systems.runs_for_tests import benchmark, png, sample, sha, written


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


def tasks(release: Path | str, folder: Path, limit: int | None = None) -> BenchmarkTasks:
    return Benchmark(str(release)).tasks(ImageStore(folder / "inputs"), limit)


def shown(found: BenchmarkTasks) -> list[list[object]]:
    return [
        [one.sample_id, one.sample_digest, one.split, one.prompt, [i.sha256 for i in one.inputs]]
        for one in found.tasks
    ]


SMALL = [
    ["e0", sha(b"e0"), "image_to_image", "e0", [sha(png("in0"))]],
    ["e1", sha(b"e1"), "image_to_image", "e1", [sha(png("in1"))]],
    ["t0", sha(b"t0"), "text_to_image", "t0", []],
    ["t1", sha(b"t1"), "text_to_image", "t1", []],
    ["t2", sha(b"t2"), "text_to_image", "t2", []],
]


def test_a_folder_gives_its_tasks_in_order(tmp_path: Path) -> None:
    release = benchmark(tmp_path)
    found = tasks(release, tmp_path)
    assert shown(found) == SMALL
    assert found.left_out == {}
    for number in range(2):
        (ref,) = found.tasks[number].inputs
        assert ref.file is not None
        assert ref.file.read_bytes() == png(f"in{number}")
    assert shown(tasks(release, tmp_path, limit=1)) == [SMALL[0], SMALL[2]]
    assert shown(tasks(release, tmp_path, limit=99)) == SMALL


def test_tasks_can_be_read_without_writing(tmp_path: Path) -> None:
    """A sample without a digest gets the one of its content."""
    release = written(tmp_path, [], [sample("e", sample_digest=None, input_images=["b", "a"])])
    (found,) = Benchmark(str(release)).tasks(None).tasks
    assert not (tmp_path / "inputs").exists()
    assert (found.inputs[0].sha256, found.inputs[0].file) == (sha(png("b")), None)
    canonical = json.dumps(["e", [sha(png("b")), sha(png("a"))]])
    assert found.sample_digest == sha(canonical.encode())


@dataclass(frozen=True)
class Rows(Benchmark):
    """A benchmark of rows by hand, as other libraries may have written them."""

    rows: tuple[dict[str, object], ...] = ()

    def load(self, split: str) -> datasets.Dataset:
        given = self.rows if split == "image_to_image" else ()
        return datasets.Dataset(pa.Table.from_pylist(list(given), SCHEMA))


IMAGE = pa.struct({"bytes": pa.binary(), "path": pa.string()})
GONE = pa.struct({"column": pa.string(), "index": pa.int64()})
SCHEMA = pa.schema(
    {
        "id": pa.string(),
        "prompt": pa.string(),
        "sample_digest": pa.string(),
        "input_images": pa.list_(IMAGE),
        "dehydrated": pa.bool_(),
        "missing_images": pa.list_(GONE),
    }
)


def test_each_reason_is_told_apart(tmp_path: Path) -> None:
    image = {"bytes": png("a"), "path": None}
    plain = {"prompt": "p", "sample_digest": "d", "input_images": [image], "missing_images": []}
    gone = {"column": "input_images", "index": 0}
    rows = Rows(
        "by hand",
        (
            {**plain, "id": "whole"},
            {**plain, "id": "output gone", "missing_images": [{**gone, "column": "output_images"}]},
            {**plain, "id": "flagged", "dehydrated": True},
            {**plain, "id": "gone", "missing_images": [gone]},
            {**plain, "id": "null", "input_images": [None]},
            {**plain, "id": "broken", "input_images": [{"bytes": b"GIF89a no"}]},
        ),
    )
    found = rows.tasks(ImageStore(tmp_path / "inputs"))
    assert [one.sample_id for one in found.tasks] == ["whole", "output gone"]
    assert found.left_out == {
        NoTask.DEHYDRATED: 1,
        NoTask.MISSING_INPUT: 2,
        NoTask.UNREADABLE_INPUT: 1,
    }


def test_a_name_that_is_none_is_one_line(tmp_path: Path) -> None:
    for reference in ("lab/echo@", "no folder/at all/x", "a/b/c@v1"):
        said_by(HubError, tasks, reference, tmp_path)


def test_a_name_on_the_hub_is_read_at_its_revision(hub: LocalHub, tmp_path: Path) -> None:
    """At a tag, or as it is now."""
    small, smaller = benchmark(tmp_path / "small"), benchmark(tmp_path / "smaller", texts=1)
    for release, tag in ((small, "v1"), (smaller, "v2")):
        allowed = {"allow_rules": True, "allow_unscreened": True}
        publish(read_release(release), "mira/echo", tag, api=hub.api(), **allowed)
    for reference, rows in (("mira/echo@v1", SMALL), ("mira/echo", SMALL[:3])):
        store = ImageStore(tmp_path / "inputs")
        assert shown(Benchmark(reference, api=hub.api()).tasks(store)) == rows


# What a config says of it.

SYSTEM = "{name: a, adapter: files, developer: N, status: replay}"


def saved(folder: Path, text: str) -> Path:
    (folder / "config.yaml").write_text(text, "utf-8")
    return folder / "config.yaml"


def test_a_folder_is_found_beside_the_config_and_what_is_on_hub_stays_name(tmp_path: Path) -> None:
    (tmp_path / "release").mkdir()
    for name, place in (("release", str(tmp_path / "release")), ("lab/echo@v1", "lab/echo@v1")):
        config = load_evaluation(saved(tmp_path, f"name: x\nbenchmark: {name}\n"))
        assert config == EvaluationConfig(name="x", benchmark=place)
        assert EvaluationRun(config, RunFolder(tmp_path / "runs")).benchmark.reference == place


def test_a_config_with_posts_is_one_of_a_builder(tmp_path: Path) -> None:
    config = load_evaluation(shipped_config())
    assert isinstance(config, Config)
    assert config == load_config(shipped_config())
    folder = RunFolder(tmp_path)
    with pytest.raises(RunError, match="run `echo-hf build` first"):
        _ = EvaluationRun(config, folder).benchmark
    (tmp_path / "stages").mkdir()
    with pytest.raises(RunError, match="give this config another name"):
        _ = EvaluationRun(EvaluationConfig(name="x", benchmark="lab/echo@v1"), folder).benchmark
    folder.release.mkdir()
    assert EvaluationRun(config, folder).benchmark.reference == str(folder.release)


BAD = {
    "name: x\nbenchmark: a/b\nposts: []\n": "has both benchmark and posts",
    "name: x\nsystems: []\n": "has neither benchmark nor posts",
    "name: x\nbenchmark: a/b\nsystem: []\n": "unknown key 'system'; did you mean 'systems'?",
    f"name: x\nbenchmark: a/b\nsystems: [{SYSTEM}, {SYSTEM}]\n": "'a' is taken",
    "": "expected",
}


@pytest.mark.parametrize("text", BAD, ids=[text[-40:] for text in BAD])
def test_a_mistake_is_one_line(tmp_path: Path, text: str) -> None:
    path = saved(tmp_path, text)
    with pytest.raises(ConfigError) as raised:
        load_evaluation(path)
    said = str(raised.value)
    assert said.startswith(str(path))
    assert BAD[text] in said
    assert "\n" not in said


@pytest.mark.parametrize("name", ["nope", "./nope", "a/b/c", "https://ana:key@hub.example/a/b"])
def test_a_benchmark_that_is_nowhere_is_named(tmp_path: Path, name: str) -> None:
    """What is no folder and cannot be a name on the Hub is never looked for there."""
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump({"name": "x", "benchmark": name}), "utf-8")
    with pytest.raises(ConfigError, match="no such folder next to the config") as error:
        load_evaluation(file)
    assert "key" not in str(error.value)


LEAKED = "sk-" + "tulip1234567890"


@pytest.mark.parametrize(
    "system",
    [
        {"adapter": "command", "parameters": {"command": ["python", f"--token={LEAKED}"]}},
        {"adapter": "openai_images", "model": LEAKED},
        {"adapter": "openai_images", "parameters": LEAKED},
        {"adapter": "openai_images", "note": f"my key is {LEAKED}"},
    ],
)
def test_what_has_the_form_of_a_key_is_refused_and_not_shown(tmp_path: Path, system: Any) -> None:
    """Wherever somebody put it: a config is kept beside its results, and results are published."""
    file = tmp_path / "config.yaml"
    known = {"name": "mine", "developer": "Northlight", "status": "current"}
    data = {"name": "x", "benchmark": "org/name", "systems": [{**known, **system}]}
    file.write_text(yaml.safe_dump(data), "utf-8")
    assert "tulip" not in said_by(ConfigError, load_evaluation, file)
