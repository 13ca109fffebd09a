"""A build on a Ray cluster: the tables of a local one, whatever becomes of nodes and of the run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml

import echo_hf
from echo_hf.config.checks import EngineChoice
from echo_hf.config.loading import Config, parse_config
from echo_hf.config.sections import RunnerOptions
from echo_hf.curate.privacy import KEY_VARIABLE, AuthorKey
from echo_hf.engines.base import make_engine
from echo_hf.errors import EngineError
from echo_hf.judging.judge import judge
from echo_hf.pipeline import ray_runner
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.progress import ProgressListener
from tests.judging.judges_for_tests import config_of, drawn, judge_of, rows_of
from tests.paced_plugin import answered
from tests.pipeline.conftest import tables

pytest.importorskip("ray", reason="needs the extra `ray`")
pytestmark = [
    pytest.mark.extras,
    pytest.mark.xdist_group("ray"),
    pytest.mark.filterwarnings("ignore"),
]
TARGET = {"name": "Lumen Image", "developer": "Northlight", "released": "2026-03-02"}
LONGEST_S = 100.0
MICRO_BATCH = 8


@pytest.fixture(autouse=True)
def _few_rows_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_runner.RayRunner.__init__, "__defaults__", (0,))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    (tmp_path / "log").mkdir()
    return tmp_path / "log"


class Told(ProgressListener):
    def __init__(self) -> None:
        self.lines = list[str]()

    def report_notice(self, notice: str) -> None:
        self.lines.append(notice)

    def report_progress(self, part: str, _: int, stats: object, total: int | None = None) -> None:
        del total
        self.lines.append(f"{part}: {stats}")


def on_ray(address: str, **more: Any) -> dict[str, Any]:
    share = {"actors": 3, "gpus_per_actor": 0, "micro_batch": MICRO_BATCH}
    return {"kind": "ray", "address": address, **share, **more}


def config(posts: Mapping[str, Any], engine: Mapping[str, Any], **more: Any) -> Config:
    data = {"name": "run", "target": TARGET, "posts": [posts], "engines": {"reader": engine}}
    return parse_config({**data, **more}, "here")


def written(path: Path, count: int) -> dict[str, Any]:
    """Posts of which a third are roots, and the others reply to one shortly before them."""
    with path.open("w") as file:
        for number in range(count):
            above = number - 1 - number * 7 % min(number, 20) if number % 3 else None
            post = {
                "url": f"https://example.org/{number}",
                "author": f"author{number % 97}",
                "text": f"{number} draw a small red boat of paper",
                "timestamp": 1_772_000_000 + number,
                "keywords": ["lumen"],
                "parent_url": above if above is None else f"https://example.org/{above}",
            }
            file.write(json.dumps(post) + "\n")
    return {"source": "jsonl", "path": str(path)}


def killed_when(log: Path, count: int, end: Any) -> Thread:
    """Calls something in a thread as soon as so many requests have been answered."""

    def wait() -> None:
        until = time.monotonic() + LONGEST_S
        while len(answered(log)) < count and time.monotonic() < until:
            time.sleep(0.02)
        end()

    thread = Thread(target=wait, daemon=True)
    thread.start()
    return thread


def test_images_go_to_nodes_that_do_not_see_the_folder(
    ray_cluster: Any, tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bundled posts; the engine compares the bytes that it reads with the digests.

    The authors' key goes to no node: it cannot be pickled.
    """

    def stays(key: AuthorKey) -> str:
        raise AssertionError(key)

    monkeypatch.setenv(KEY_VARIABLE, "of a run and of nobody else")
    monkeypatch.setattr(AuthorKey, "__reduce__", stays)
    engine = {"kind": "paced", "log": str(log), "recorded": True}
    posts, runner = {"source": "quickstart"}, on_ray(ray_cluster.address, shared=False)
    echo_hf.build(config(posts, engine, runner=runner), runs=tmp_path / "ray")
    asked = [json.loads(line) for one in log.iterdir() for line in one.read_text().splitlines()]
    places = {Path(place) for *_, named in asked for place in named}
    assert places
    assert not any(place.is_relative_to(tmp_path) for place in places)
    assert not any(place.exists() for place in places)  # they are removed in the end
    assert str(os.getpid()) not in {one.name for one in log.iterdir()}
    echo_hf.build(config(posts, engine), runs=tmp_path / "local")
    assert tables(tmp_path / "ray" / "run") == tables(tmp_path / "local" / "run")


def test_a_lost_node_costs_no_row_and_at_most_a_micro_batch_of_each_of_its_workers(
    ray_cluster: Any, tmp_path: Path, log: Path
) -> None:
    """5,000 posts; a node is killed in the middle of `relevance`, a new one is used."""
    posts, told = written(tmp_path / "posts.jsonl", 5000), Told()
    lost = ray_cluster.list_all_nodes()[-1]

    def lose() -> None:
        ray_cluster.remove_node(lost, allow_graceful=False)
        ray_cluster.add_node(num_cpus=1, object_store_memory=100 * 2**20)

    engine = {"kind": "paced", "log": str(log), "seconds": 0.002}
    killer = killed_when(log, 1500, lose)
    runner = on_ray(ray_cluster.address)
    echo_hf.build(config(posts, engine, runner=runner), runs=tmp_path / "ray", watch=told)
    killer.join()
    asked = answered(log)
    repeated = Counter(asked) - Counter(set(asked))
    assert 0 < repeated.total() <= 2 * MICRO_BATCH
    (notice,) = (line for line in told.lines if "was lost with its place on node" in line)
    assert notice.endswith("2 go on with what it was at")
    assert any("rows/s on" in line for line in told.lines)
    assert any("tokens/s, 3 of 3 workers" in line for line in told.lines)
    reference = tmp_path / "of the local run"
    reference.mkdir()
    at_once = {**engine, "log": str(reference), "seconds": 0}
    echo_hf.build(config(posts, at_once), runs=tmp_path / "local")
    assert sorted(set(asked)) == sorted(answered(reference))
    assert tables(tmp_path / "ray" / "run") == tables(tmp_path / "local" / "run")


def test_a_killed_run_goes_on_with_what_is_missing(ray_cluster: Any, tmp_path: Path) -> None:
    """Its workers end with it, and the same command asks for each answer that is not stored."""
    posts = written(tmp_path / "posts.jsonl", 300)
    logs = [tmp_path / "killed", tmp_path / "whole"]
    for log in logs:
        log.mkdir()
        engine = {"kind": "paced", "log": str(log), "seconds": 0.02}
        made = {"name": "run", "target": TARGET, "posts": [posts], "engines": {"reader": engine}}
        runner = on_ray(ray_cluster.address)
        log.with_suffix(".yaml").write_text(yaml.safe_dump({**made, "runner": runner}))
    command = [sys.executable, "-m", "echo_hf", "build", "--until", "relevance"]
    with subprocess.Popen([*command, "killed.yaml"], cwd=tmp_path) as run:
        killed_when(logs[0], 100, run.kill).join()
        assert run.wait() == -signal.SIGKILL
    stored = len(Store(tmp_path / "runs" / "run" / "answers.sqlite"))
    until = time.monotonic() + LONGEST_S
    while alive := [one for one in logs[0].iterdir() if Path("/proc", one.name).exists()]:
        assert time.monotonic() < until, f"{len(alive)} workers outlive their run"
        time.sleep(0.05)
    assert 0 < stored < 300
    subprocess.run([*command, "whole.yaml"], cwd=tmp_path, check=True)
    assert len(answered(logs[1])) == len(set(answered(logs[1]))) == 300 - stored


@pytest.mark.parametrize("shared", [pytest.param(None, marks=pytest.mark.slow), False])
def test_judges_rate_the_same_on_nodes(
    ray_cluster: Any, tmp_path: Path, log: Path, shared: bool | None
) -> None:
    """Two of them, one after the other, with images that a node sees or is sent."""
    rows = list[Any]()
    for name, runner in {"ray": on_ray(ray_cluster.address, shared=shared), "local": {}}.items():
        drawn(folder := tmp_path / name)
        given = [judge_of(one, "paced") for one in ("mira", "noor")]
        for one in given:
            one["engine"]["log"] = str(log)
        config = config_of(folder, given, runner=runner)
        judge(config, runs=folder / "runs")
        rows.append(rows_of(folder))
        assert not list((folder / "runs").glob("*/.echo-hf-*"))
    assert rows[0] == rows[1]
    assert {row["outcome"] for row in rows[0]} == {"ok"}
    assert {one.name for one in log.iterdir()} > {str(os.getpid())}


def test_only_engines_that_compute_are_asked_elsewhere(tmp_path: Path) -> None:
    runner = ray_runner.RayRunner(RunnerOptions(kind="ray"), tmp_path, Told())
    for kind, options in {"rules": {}, "openai": {"model": "m"}, "moderation": {}}.items():
        engine = make_engine(kind, **options)
        assert runner.place_engine(engine, EngineChoice(kind=kind, **options)) is engine
    model = {"model": "acme/judge", "revision": "a" * 40}
    engine = make_engine("transformers", **model)
    placed = runner.place_engine(engine, EngineChoice(kind="transformers", **model))
    assert placed is not engine
    assert placed.signature() == engine.signature()
    choice = EngineChoice(kind="transformers", devices=2, **model)
    with pytest.raises(EngineError, match=r"devices is 2, which are of this machine, and the run"):
        runner.place_engine(make_engine("transformers", devices=2, **model), choice)
