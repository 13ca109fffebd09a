"""Plug-ins of other packages: one of each kind, and the files of the pages that say how to add one.

They are installed as packages, and go through build, evaluation, report and release.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from datasets import load_dataset
from PIL import Image

from tests.markdown_for_tests import titled_files

ROOT = Path(__file__).resolve().parents[1]
PAGES = ("metric", "rubric", "stage", "platform", "engine", "system", "export")
PYPROJECT = """[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "{name}"
version = "0.1"
[tool.hatch.build.targets.wheel]
only-include = ["{file}"]
"""
POST = {
    "url": "https://x.com/mira_draws/status/9900316480379532473",
    "author": "mira_draws",
    "text": "Made with Lumen Image. Prompt: a fox of folded paper, teal background, in evening",
    "timestamp": "2026-03-02T17:12:40Z",
    "keywords": ["lumen"],
    "pictures": [{"path": "fox.png", "alt_text": "output: a fox"}],
}
LANTERN_POSTS = [
    {"number": 7, "author": "noor", "text": "Lumen Image did this", "time": "2026-03-02T09:00:00Z"},
    {"number": "?"},
]
GROVE_POSTS = [{"number": 31, "text": "Lumen Image, again", "time": "2026-03-02T10:00:00Z"}, {}]


def page(kind: str) -> tuple[str, str]:
    """The file of the page on how to add a part of a kind: its name and its text."""
    (file,) = titled_files((ROOT / f"docs/how-to/add_{kind}.md").read_text("utf-8"))
    return file


class PostsHandler(BaseHTTPRequestHandler):
    """Answers each search with the same posts, a line each."""

    posts: list[dict[str, Any]]

    def do_GET(self) -> None:
        body = "".join(json.dumps(post) + "\n" for post in self.posts).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, str]]:
    """The address of a server for each platform, by the variable that names it."""
    addresses, running = {}, []
    for name, posts in (("LANTERN_SERVER", LANTERN_POSTS), ("GROVE_SERVER", GROVE_POSTS)):
        handler = type(name, (PostsHandler,), {"posts": posts})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        Thread(target=server.serve_forever, daemon=True).start()
        running.append(server)
        addresses[name] = f"http://127.0.0.1:{server.server_port}"
    yield addresses
    for server in running:
        server.shutdown()
        server.server_close()


@dataclass(frozen=True)
class Workplace:
    """A folder to run commands in, with or without the plug-ins."""

    folder: Path
    site: Path
    servers: dict[str, str]

    def run(self, *arguments: str, plugins: bool = True, status: int = 0) -> str:
        paths = [str(ROOT), *([str(self.site)] if plugins else [])]
        environment = {**os.environ, **self.servers, "PYTHONPATH": os.pathsep.join(paths)}
        command = [sys.executable, "-m", "echo_hf", *arguments]
        options: dict[str, Any] = {"cwd": self.folder, "env": environment, "timeout": 300}
        done = subprocess.run(command, capture_output=True, text=True, **options)
        assert done.returncode == status, f"{arguments}: {done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def read(self, *arguments: str, **options: Any) -> Any:
        """Run a verb with `--json`, and return its object."""
        out = self.run(*arguments, "--json", **options)
        return json.loads(out[out.index("{") : out.rindex("}") + 1])

    @property
    def release(self) -> Path:
        return self.folder / "runs/lumen/release"

    @property
    def results(self) -> list[dict[str, Any]]:
        results = json.loads((self.folder / "runs/lumen/results.json").read_text("utf-8"))
        return list(results["results"])


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory, servers: dict[str, str]) -> Workplace:
    """Everything installed, and a benchmark collected, built, evaluated and reported with it."""
    folder, site = tmp_path_factory.mktemp("work"), tmp_path_factory.mktemp("site")
    projects = [ROOT / "tests/lantern"]
    for kind in PAGES:
        name, text = page(kind)
        if kind == "rubric":  # is a file beside the config
            (folder / name).write_text(text, "utf-8")
            continue
        project = tmp_path_factory.mktemp(kind)
        (project / name).write_text(text, "utf-8")
        stem = name.removesuffix(".py")
        (project / "pyproject.toml").write_text(PYPROJECT.format(name=stem, file=name))
        projects.append(project)
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    install += ["--no-build-isolation", "--target", str(site), *map(str, projects)]
    subprocess.run(install, check=True, timeout=300)

    (folder / "posts.jsonl").write_text(json.dumps(POST), "utf-8")
    fox = ROOT / "echo_hf/quickstart/pictures/fox_teal.png"
    (folder / "fox.png").write_bytes(fox.read_bytes())
    searched = {"phases": [{"terms": ["lumen"], "window": "1d", "days": 1}]}
    config: dict[str, Any] = {
        "name": "lumen",
        "target": {
            "name": "Lumen Image",
            "developer": "Northlight",
            "released": "2026-03-02",
            "aliases": ["lumen"],
        },
        "plugins": [page(kind)[0].removesuffix(".py") for kind in PAGES if kind != "rubric"],
        "posts": [
            {"source": "jsonl", "path": "posts.jsonl"},
            {"source": "lantern", "search": searched},
            {"source": "grove", "search": searched},
        ],
        "engines": {"reader": {"kind": "rules"}},
        "stages": {"lantern_words": {}, "length": {"least": 2}},
        "rights": {"x": "the test's own"},
        "rubrics": ["hands.md"],
        "metrics": {"sharpness": {"step": 2}},
        "judges": [
            {"name": "polly", "engine": {"kind": "parrot", "words": "[[9]]"}},
            {
                "name": "coco",
                "engine": {"kind": "parrot", "words": "[[yes]]"},
                "rubrics": ["hands", "lantern_mood"],
            },
        ],
    }
    work = Workplace(folder, site, servers)
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    work.run("collect", "config.yaml")
    work.run("build", "config.yaml")
    (sample,) = pq.read_table(next((work.release / "text_to_image").glob("*.parquet"))).to_pylist()
    (folder / "photos").mkdir()
    pixels = np.zeros((64, 64, 3), np.uint8)
    pixels[:, 32:] = 255
    Image.fromarray(pixels).save(folder / f"photos/{sample['id']}.png")
    config["systems"] = [
        {"name": "red", "adapter": "one_color", "seed": 200},
        {
            "name": "halves",
            "adapter": "files",
            "parameters": {"folder": "photos", "layout": "flat"},
        },
    ]
    (folder / "config.yaml").write_text(yaml.safe_dump(config))
    work.run("eval", "config.yaml", "--yes")
    return work


def test_each_page_is_short_and_has_its_file() -> None:
    for kind in PAGES:
        lines = (ROOT / f"docs/how-to/add_{kind}.md").read_text("utf-8").splitlines()
        assert len(lines) <= 40
        assert page(kind)[1]


def test_the_listing_says_where_each_comes_from(work: Workplace) -> None:
    listed = {
        (member["kind"], member["name"]): member["from"]
        for member in work.read("plugins", "config.yaml")["plugins"]
    }
    for kind, name in (
        ("metrics", "lantern_light"),
        ("rubrics", "lantern_mood"),
        ("stages", "lantern_words"),
        ("platforms", "lantern"),
        ("sources", "lantern"),
        ("exports", "lantern-lines"),
    ):
        assert listed[kind, name] == "lantern 1.2"
    assert listed["metrics", "sharpness"] == "sharpness_metric"
    assert listed["engines", "parrot"] == "parrot_engine"
    assert listed["platforms", "grove"] == "grove_posts"
    assert listed["systems", "one_color"] == "one_color_system"
    assert listed["metrics", "color_shift"] == "echo_hf"
    shown = work.run("plugins")  # without a config those of packages alone count
    assert "lantern 1.2" in shown
    assert "parrot" not in shown


def test_platforms_are_asked_and_their_addresses_known(work: Workplace) -> None:
    posts = pq.read_table(work.folder / "runs/lumen/stages/collect/kept.parquet").to_pylist()
    places = {(post["url"], post["platform"], post["post_id"]) for post in posts}
    assert ("https://lantern.example/post-7", "lantern", "7") in places
    assert ("https://grove.example/p/31", "grove", "31") in places
    rejects = pq.read_table(work.folder / "runs/lumen/stages/collect/rejects.parquet")
    assert rejects["_reason"].to_pylist().count("not_a_post") == 2


def test_a_stage_adds_columns_to_the_release(work: Workplace) -> None:
    (sample,) = load_dataset(str(work.release), "text_to_image", split="test")
    words = POST["text"].partition("Prompt: ")[2].split()  # type: ignore[attr-defined]
    assert (sample["lantern_count"], sample["lantern_first"]) == (len(words), words[0])
    assert sample["words"] == len(words)
    manifest = json.loads((work.release / "manifest.json").read_text("utf-8"))
    assert {"lantern_count", "lantern_first", "words"} <= manifest["columns"].keys()
    assert "lantern_first" in (work.release / "README.md").read_text("utf-8")


def test_metrics_and_rubrics_have_figures(work: Workplace) -> None:
    """The pixels are half black and half white; both of the second judge's answers are yes."""
    figures = {
        (row["metric"], row["system"]): row["value"]
        for row in work.results
        if row["split"] == "text_to_image"
    }
    assert figures["lantern_light", "halves"] == pytest.approx(0.5)
    assert figures["lantern_light", "red"] is None  # of one color
    assert figures["sharpness", "halves"] == pytest.approx(2 / 62)
    for rubric in ("hands", "lantern_mood"):
        assert [figures[rubric, system] for system in ("red", "halves")] == [1.0, 1.0]
    assert figures["win_rate", "red"] == figures["win_rate", "halves"] == 0.5
    shown = work.run("score", "config.yaml", "-v")
    for name in ("lantern_light", "sharpness", "hands", "lantern_mood"):
        assert name in shown
    page_of_report = (work.folder / "runs/lumen/report/index.html").read_text("utf-8")
    for title in ("Light", "Sharpness", "Malformed hands", "Warm mood"):
        assert title in page_of_report


def test_a_gate_compares_by_a_rubric(work: Workplace) -> None:
    """Of a single sample it decides nothing."""
    options = ("--metric", "hands", "--margin", "0.1")
    verdict = work.run("compare", "config.yaml", "red", "halves", *options, status=3)
    assert "hands" in verdict


def test_exports_write_what_they_say(work: Workplace) -> None:
    work.run("export", "config.yaml", "lines", "--to", "lantern-lines")
    assert "text_to_image halves sharpness 0.03" in (work.folder / "lines/figures.txt").read_text()
    work.run("export", "config.yaml", "boards", "--to", "board-json")
    board = json.loads((work.folder / "boards/text_to_image.json").read_text("utf-8"))
    assert {row["system"]: row["win_rate"] for row in board} == {"red": 0.5, "halves": 0.5}


def test_without_the_packages_a_release_loads_and_the_run_says_what_is_missing(
    work: Workplace,
) -> None:
    (sample,) = load_dataset(str(work.release), "text_to_image", split="test")
    assert sample["lantern_first"] == "a"
    differences = work.read("diff", str(work.release), str(work.release), plugins=False)
    kinds = ("equal", "added", "removed", "changed")
    assert [differences[kind] for kind in kinds] == [1, [], [], []]
    message = work.run("score", "config.yaml", plugins=False, status=2)
    assert "module 'sharpness_metric' cannot be imported" in message
    assert len(message.strip().splitlines()) == 1


@pytest.mark.parametrize("key", ["plugins", "rubrics"])
def test_a_run_of_others_names_no_plug_ins(work: Workplace, tmp_path: Path, key: str) -> None:
    """What a run has kept counts only beside the config that it was made from."""
    run = tmp_path / "runs/lumen"
    run.mkdir(parents=True)
    kept = yaml.safe_load((work.folder / "config.yaml").read_text("utf-8"))
    for name in {"plugins", "rubrics"} - {key}:
        kept.pop(name)
    (run / "config.yaml").write_text(yaml.safe_dump(kept))
    (run / "origin.json").write_text('{"config": "../../config.yaml"}')
    message = work.run("score", str(run), status=2)
    assert f"has {key}: " in message
    assert "the run may have come from elsewhere" in message
    own = work.run("score", str(work.folder / "runs/lumen"))
    assert "lantern_light" in own
