"""The README's figure is what a run of the quickstart gives, and stands on nothing else."""

from __future__ import annotations

import base64
import importlib
import json
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from rich.console import Console

from echo_hf.cli.progress import Watch
from echo_hf.quickstart.run import show

ROOT = Path(__file__).resolve().parents[2]
FIGURES = [ROOT / "docs" / "figure.svg", ROOT / "docs" / "figure_dark.svg"]
CORPUS = ROOT / "echo_hf" / "quickstart"
SVG = "{http://www.w3.org/2000/svg}"
DRAWN = {"svg", "title", "desc", "style", "defs", "use", "image"} | {
    *("rect", "text", "path", "circle", "line")
}
MOST_BYTES = 300_000


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("runs")
    show(Watch(Console(quiet=True)), runs)
    return runs / "quickstart"


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports a module of the figure."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))

    def module(name: str) -> ModuleType:
        return importlib.import_module(f"figure_parts.{name}")

    return module


def drawing(root: Path, run: Path, *options: str) -> subprocess.CompletedProcess[str]:
    script = str(root / "scripts" / "readme_figure.py")
    command = [sys.executable, "-B", script, "--run", str(run), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def parsed(path: Path) -> ET.Element:
    """A figure's elements."""
    return ET.fromstring(path.read_text("utf-8"))  # noqa: S314 - our own file


def words(path: Path) -> list[str]:
    """Every text that a figure shows."""
    return [str(each.text) for each in parsed(path).iter(f"{SVG}text")]


def test_the_files_are_as_drawn(run: Path) -> None:
    done = drawing(ROOT, run, "--check")

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_stale_file_is_named_and_drawn_anew(run: Path, tmp_path: Path) -> None:
    """`--check` changes nothing and exits with 1; without it the file becomes the committed one."""
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "figure.svg").write_bytes(FIGURES[0].read_bytes())
    checked = drawing(tmp_path, run, "--check")

    assert (checked.returncode, checked.stdout) == (1, "stale: docs/figure_dark.svg\n")
    assert not (tmp_path / "docs" / "figure_dark.svg").exists()
    assert drawing(tmp_path, run).returncode == 0
    assert (tmp_path / "docs" / "figure_dark.svg").read_bytes() == FIGURES[1].read_bytes()


def test_a_changed_run_makes_them_stale(run: Path, tmp_path: Path) -> None:
    """Another win rate in `results.json` is another figure."""
    shutil.copytree(run, tmp_path / "run")
    path = tmp_path / "run" / "results.json"
    results = json.loads(path.read_text("utf-8"))
    for row in results["results"]:
        if row["metric"] == "win_rate" and row["system"] == "exact_copy":
            row["value"] = 0.5
    path.write_text(json.dumps(results), "utf-8")

    assert drawing(ROOT, tmp_path / "run", "--check").returncode == 1


@pytest.mark.parametrize("path", FIGURES, ids=lambda path: path.stem)
def test_a_figure_stands_alone(path: Path) -> None:
    root = parsed(path)
    names = {each.tag.removeprefix(SVG) for each in root.iter()}
    targets = [value for each in root.iter() for key, value in each.items() if "href" in key]

    assert names <= DRAWN
    assert all(re.match(r"#p[0-9a-f]{8}$|data:image/(png|jpeg);base64,", one) for one in targets)
    assert not [key for each in root.iter() for key in each.attrib if key.startswith("on")]
    assert "url(" not in path.read_text("utf-8")
    assert path.stat().st_size < MOST_BYTES


@pytest.mark.parametrize("path", FIGURES, ids=lambda path: path.stem)
def test_its_images_are_those_of_the_corpus(path: Path) -> None:
    images = parsed(path).iter(f"{SVG}image")
    embedded = {base64.b64decode(each.attrib["href"].partition(",")[2]) for each in images}
    meant = "lake_night_same_shore.png"
    files = [
        "pictures/lake_day.jpg",
        "pictures/lake_night.jpg",
        f"truth/{meant}",
        f"systems/yellow_tint/{meant}",
        f"systems/moved_layout/{meant}",
    ]

    assert embedded == {(CORPUS / name).read_bytes() for name in files}


def test_its_words_are_those_of_the_posts() -> None:
    posts = [json.loads(line) for line in (CORPUS / "posts.jsonl").read_text("utf-8").splitlines()]
    shown = " ".join(words(FIGURES[0]))
    (root,) = (post for post in posts if str(post.get("text")).startswith("before / after with"))
    replies = [post for post in posts if post.get("parent_url") == root["url"]]
    prompt = root["text"].partition("Prompt: ")[2]

    assert len(replies) == 2
    assert shown.count(prompt) == 2
    for reply in replies:
        assert shown.count(reply["text"].removeprefix("@hana_hikes ")) == 2


def test_both_themes_differ_in_colors_alone() -> None:
    """Without its colors, the dark figure is the light one."""
    light, dark = (re.sub(r"#[0-9a-f]{6}\b", "", path.read_text("utf-8")) for path in FIGURES)
    washed = re.compile(r' fill-opacity="[\d.]+"')

    assert washed.sub("", light) == washed.sub("", dark)
    assert FIGURES[0].read_bytes() != FIGURES[1].read_bytes()


def test_the_readme_begins_with_it() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    before, _, after = readme.partition("<picture>")
    image = after.partition("</picture>")[0]

    assert before.strip() == "# echo-hf"
    assert 'srcset="docs/figure_dark.svg"' in image
    assert re.search(r'<img src="docs/figure.svg" alt="[^"]{60,}"', image)


def test_lines_fit(parts: Any) -> None:
    """Widths are those of the font's own tables: 'A' is 667, a space 278 thousandths."""
    module = parts("words")

    assert module.width("A A", 1000) == 667 + 278 + 667
    assert module.wrapped("A A A", 1000, 1612) == ["A A", "A"]
    assert module.wrapped("A\n\nA", 1000, 1612) == ["A", "", "A"]
    assert module.wrapped("AAAA A", 1000, 700) == ["AAAA", "A"]


def test_what_runs_over_its_card_is_refused(parts: Any) -> None:
    canvas = parts("canvas")
    canvas.check_room("the posts", 600, 600)
    with pytest.raises(ValueError, match="the posts end at 601 pixels of 600"):
        canvas.check_room("the posts", 601, 600)
