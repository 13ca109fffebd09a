"""The README's figure is what a run of the quickstart gives, and stands on nothing else."""

from __future__ import annotations

import base64
import importlib
import json
import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from PIL import ImageFont

from tests.scripts.conftest import Script
from tests.stages_for_tests import ROOT

FIGURES = [ROOT / "docs" / "figure.svg", ROOT / "docs" / "figure_dark.svg"]
CORPUS = ROOT / "echo_hf" / "quickstart"
SVG = "{http://www.w3.org/2000/svg}"
DRAWN = "svg title desc style defs use image rect text path circle line".split()  # noqa: SIM905
MOST_BYTES = 300_000
MEANT = "lake_night_same_shore.png"


def test_the_files_are_as_drawn(quickstart_run: Path, script: Script, tmp_path: Path) -> None:
    """`--check` changes nothing and exits with 1; without it the file becomes the committed one."""
    of_run = ("--run", str(quickstart_run))
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "figure.svg").write_bytes(FIGURES[0].read_bytes())
    copy, dark = tmp_path / "scripts" / "readme_figure.py", tmp_path / "docs" / "figure_dark.svg"
    assert script(copy, "--check", *of_run) == (1, "stale: docs/figure_dark.svg\n")
    assert not dark.exists()
    assert script(copy, *of_run)[0] == 0
    assert dark.read_bytes() == FIGURES[1].read_bytes()


def test_another_run_makes_them_stale(quickstart_run: Path, script: Script, tmp_path: Path) -> None:
    """Another win rate in `results.json` is another figure."""
    shutil.copytree(quickstart_run, tmp_path / "run")
    path = tmp_path / "run" / "results.json"
    results = json.loads(path.read_text("utf-8"))
    for row in results["results"]:
        if row["metric"] == "win_rate" and row["system"] == "exact_copy":
            row["value"] = 0.5
    path.write_text(json.dumps(results), "utf-8")
    assert script("readme_figure.py", "--run", str(tmp_path / "run"), "--check")[0] == 1


@pytest.mark.parametrize("path", FIGURES, ids=lambda path: path.stem)
def test_a_figure_stands_alone(path: Path) -> None:
    """Its elements are plain, and its images those of the corpus."""
    text = path.read_text("utf-8")
    elements = list(ET.fromstring(text).iter())  # noqa: S314 - our own file
    targets = [value for each in elements for key, value in each.items() if "href" in key]
    assert {each.tag.removeprefix(SVG) for each in elements} <= set(DRAWN)
    assert all(re.match(r"#p[0-9a-f]{8}$|data:image/(png|jpeg);base64,", one) for one in targets)
    assert not [key for each in elements for key in each.attrib if key.startswith("on")]
    assert "url(" not in text
    assert path.stat().st_size < MOST_BYTES
    embedded = {base64.b64decode(one.partition(",")[2]) for one in targets if "base64," in one}
    shown = ("pictures/lake_day.jpg", "pictures/lake_night.jpg", f"truth/{MEANT}")
    drawn = (f"systems/{name}/{MEANT}" for name in ("yellow_tint", "moved_layout"))
    assert embedded == {(CORPUS / name).read_bytes() for name in (*shown, *drawn)}


def test_its_words_are_those_of_the_posts() -> None:
    posts = [json.loads(line) for line in (CORPUS / "posts.jsonl").read_text("utf-8").splitlines()]
    texts = ET.fromstring(FIGURES[0].read_text("utf-8")).iter(f"{SVG}text")  # noqa: S314
    shown = " ".join(str(each.text) for each in texts)
    (root,) = (post for post in posts if str(post.get("text")).startswith("before / after with"))
    replies = [post["text"] for post in posts if post.get("parent_url") == root["url"]]
    assert len(replies) == 2
    for text in (root["text"].partition("Prompt: ")[2], *replies):
        assert shown.count(text.removeprefix("@hana_hikes ")) == 2


def test_both_themes_differ_in_colors_alone() -> None:
    light, dark = (
        re.sub(r' fill-opacity="[\d.]+"|#[0-9a-f]{6}\b', "", path.read_text("utf-8"))
        for path in FIGURES
    )
    assert light == dark
    assert FIGURES[0].read_bytes() != FIGURES[1].read_bytes()


def test_the_readme_begins_with_it() -> None:
    before, _, after = (ROOT / "README.md").read_text("utf-8").partition("<picture>")
    image = after.partition("</picture>")[0]
    assert before.strip() == "# echo-hf"
    assert 'srcset="docs/figure_dark.svg"' in image
    assert re.search(r'<img src="docs/figure.svg" alt="[^"]{60,}"', image)


@pytest.mark.parametrize("path", FIGURES, ids=lambda path: path.stem)
def test_words_stay_in_their_boxes_in_a_wide_font(path: Path) -> None:
    """As DejaVu draws them: each ends in the smallest rectangle that it begins in."""
    names = {None: "DejaVuSans", "b": "DejaVuSans-Bold", "m": "DejaVuSansMono"}
    try:
        fonts = {kind: ImageFont.truetype(f"{name}.ttf", 1000) for kind, name in names.items()}
    except OSError:
        pytest.skip("the font DejaVu Sans is not installed")
    drawing = ET.parse(path).getroot()  # noqa: S314 - our own file
    boxes = [
        tuple(float(rect.get(side, 0)) for side in ("x", "y", "width", "height"))
        for rect in drawing.iter(f"{SVG}rect")
    ]
    for text in drawing.iter(f"{SVG}text"):
        size, x, y = (float(text.get(name, 0)) for name in ("font-size", "x", "y"))
        wide = fonts[text.get("class")].getlength(text.text or "") * size / 1000
        left = x - {"start": 0, "middle": wide / 2, "end": wide}[text.get("text-anchor", "start")]
        around = [
            (width * height, right)
            for at, top, width, height in boxes
            if at <= left <= (right := at + width) and top <= y <= top + height
        ]
        assert left + wide <= min(around)[1], text.text


def test_lines_fit_and_what_runs_over_its_card_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Widths are those of the font's own tables: 'A' is 684, a space 318 thousandths."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    canvas = importlib.import_module("figure_parts.canvas")
    assert canvas.width("A A", 1000) == 684 + 318 + 684
    assert canvas.wrapped("A A A", 1000, 1686) == ["A A", "A"]
    assert canvas.wrapped("A\n\nA", 1000, 1612) == ["A", "", "A"]
    assert canvas.wrapped("AAAA A", 1000, 700) == ["AAAA", "A"]
    canvas.check_room("the posts", 600, 600)
    with pytest.raises(ValueError, match="the posts end at 601 pixels of 600"):
        canvas.check_room("the posts", 601, 600)
