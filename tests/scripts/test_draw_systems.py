"""Meant images and stand-ins are as drawn, and the faults are those that their names say."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

ROOT = Path(__file__).resolve().parents[2]
CORPUS = Path("echo_hf") / "quickstart"
MEANT = ["pictures/poster_blue_hour.png", "truth/chair_cushion.png"]


@pytest.fixture
def scenes(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports a module of the scripts' scenes."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))

    def module(name: str) -> ModuleType:
        return importlib.import_module(f"corpus_scenes.{name}")

    return module


def run_drawing(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs the script of the tree at `root`."""
    command = [sys.executable, "-B", str(root / "scripts" / "draw_systems.py"), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The scripts, and a corpus whose truth names two images only."""
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    lines = (ROOT / CORPUS / "truth.jsonl").read_text("utf-8").splitlines()
    kept = [line for line in lines if json.loads(line)["picture"] in MEANT]
    (tmp_path / CORPUS / "pictures").mkdir(parents=True)
    shutil.copy(ROOT / CORPUS / MEANT[0], tmp_path / CORPUS / MEANT[0])
    (tmp_path / CORPUS / "truth.jsonl").write_text("\n".join(kept), "utf-8")
    return tmp_path


def test_the_files_are_as_drawn() -> None:
    """The images, their index and ratings on disk are those that the scenes draw."""
    done = run_drawing(ROOT, "--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_empty_corpus_is_drawn_whole(tree: Path) -> None:
    """Drawing makes truth, stand-ins and index; the poster is misspelt, the chair has no words."""
    assert run_drawing(tree, "--check").returncode == 1
    assert run_drawing(tree).returncode == 0
    assert run_drawing(tree, "--check").returncode == 0
    drawn = {path.relative_to(tree / CORPUS).as_posix() for path in (tree / CORPUS).rglob("*.png")}
    assert drawn == {
        MEANT[0],
        "truth/chair_cushion.png",
        "systems/yellow_tint/chair_cushion.png",
        "systems/moved_layout/chair_cushion.png",
        "systems/yellow_tint/poster_blue_hour.png",
        "systems/moved_layout/poster_blue_hour.png",
        "systems/misspelt_text/poster_blue_hour.png",
    }
    index = (tree / CORPUS / "systems" / "pictures.jsonl").read_text("utf-8").splitlines()
    shown = {row["truth"]: row["misspelt_text"] for row in map(json.loads, index)}
    assert shown == {
        "pictures/poster_blue_hour.png": "systems/misspelt_text/poster_blue_hour.png",
        "truth/chair_cushion.png": "truth/chair_cushion.png",
    }


def test_check_names_what_is_wrong_and_drawing_mends_it(tree: Path) -> None:
    """A missing, a changed and an unknown file and a changed index are named, then mended."""
    run_drawing(tree)
    corpus = tree / CORPUS
    tint, moved = (corpus / f"systems/{name}" for name in ("yellow_tint", "moved_layout"))
    right = (tint / "chair_cushion.png").read_bytes()
    (tint / "poster_blue_hour.png").unlink()
    (moved / "chair_cushion.png").write_bytes(right)
    (moved / "stray.png").write_bytes(right)
    (corpus / "systems" / "pictures.jsonl").write_text("", "utf-8")

    done = run_drawing(tree, "--check")
    named = [line.partition(":")[0] for line in done.stdout.splitlines()]
    assert done.returncode == 1
    assert sorted(named) == [
        "systems/moved_layout/chair_cushion.png",
        "systems/moved_layout/stray.png",
        "systems/pictures.jsonl",
        "systems/yellow_tint/poster_blue_hour.png",
    ]

    (moved / "stray.png").unlink()
    assert run_drawing(tree).returncode == 0
    assert run_drawing(tree, "--check").returncode == 0

    ratings = corpus / "systems" / "ratings.jsonl"
    ratings.write_text(ratings.read_text("utf-8").replace('"rating": 10.0', '"rating": 9.0'))
    done = run_drawing(tree, "--check")
    assert done.stdout.startswith("systems/ratings.jsonl: ")
    assert run_drawing(tree).returncode == 0
    assert run_drawing(tree, "--check").returncode == 0


def test_the_sheet_shows_all_of_them(tree: Path) -> None:
    """Two meant images fit one row, each with what the four systems make of it beside it."""
    assert run_drawing(tree, "--sheet", str(tree / "sheet.png")).returncode == 0
    with Image.open(tree / "sheet.png") as sheet:
        assert sheet.size == (3 * 4 * 180, 180)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("BLUE HOUR", "BLUE HUOR"),
        ("Thu 19 March, 8 pm", "Thu 19 Macrh, 8 pm"),
        ("MELLOW", "MELOLW"),
        ("10.50", "10.05"),
        ("7", "77"),
        ("LL", "LLL"),
        ("- - -", "- - -"),
        ("", ""),
    ],
)
def test_words_are_misspelt_like_this(text: str, expected: str, scenes: Any) -> None:
    """Two letters in the middle of the longest word change places, or one is doubled."""
    assert scenes("misspelling").misspelt(text) == expected


def test_words_are_found_wherever_they_hang(scenes: Any) -> None:
    """Text on a sheet, in a placed group and in a framed scene is misspelt; the rest stays."""
    brushes, canvas = scenes("brushes"), scenes("canvas")

    def scene(word: str, size: float) -> Any:
        words = brushes.Words(5, 5, word, size, "#000000")
        inner = canvas.Scene((20, 20), (words,))
        disc = brushes.Disc(3, 3, 2, "#ff0000")
        return canvas.Scene(
            (40, 40),
            [
                disc,
                brushes.Sheet((words, disc)),
                brushes.Placed([brushes.Sheet([words])], 4, 4),
                brushes.Framed(inner, (0, 0, 9, 9)),
            ],
        )

    misspelt = scenes("misspelling").misspelt_scene(scene("TEA", 8))
    assert np.array_equal(misspelt.draw(), scene("TAE", 8).draw())
    dashes = scene("- -", 8)
    assert scenes("misspelling").misspelt_scene(dashes) == dashes


def test_a_mirrored_scene_draws_the_mirrored_image(scenes: Any) -> None:
    """Brush by brush mirrored is the same as the finished image mirrored, up to its edges."""
    b, canvas = scenes("brushes"), scenes("canvas")
    inner = canvas.Scene((40, 40), [b.Fade("#ffffff", "#000000", sideways=True)])
    marks = [
        b.Fade("#2040a0", "#e0c080", (0, 0, 90, 70), sideways=True),
        b.Glow(30, 20, 18, "#ffff88cc"),
        b.Panel((70, 10, 110, 40), "#aa3333", 6, "#222222", 2),
        b.Placed([b.Disc(4, 5, 6, "#11aa55"), b.Stroke([(0, 0), (9, 4)], "#000000", 2)], 20, 60, 2),
        b.Sheet([b.Shape([(60, 60), (90, 64), (70, 96)], "#8833cc")], turn=12),
        b.Sheet([b.Disc(30, 40, 5, "#ffffff")], mirrored=True),
        b.Framed(inner, (80, 60, 110, 90)),
        b.Tint("#d9a514", 0.2),
    ]
    scene = canvas.Scene((120, 100), marks)
    mirrored = np.asarray(scenes("mirroring").mirrored_scene(scene).draw(), dtype=int)
    expected = np.asarray(ImageOps.mirror(scene.draw()), dtype=int)
    off = np.abs(mirrored - expected).max(axis=2)
    # A shape that covers its last pixel column does so on the other side; inside, all is equal.
    assert (off > 16).mean() < 0.02
    assert np.median(off) <= 1
    assert np.abs(mirrored - np.asarray(scene.draw(), dtype=int)).mean() > 10


def test_words_change_sides_and_are_read_as_before(scenes: Any) -> None:
    """A line that begins at the left edge ends at the right one, with its letters in order."""
    words = scenes("brushes").Words(10, 5, "MOKA", 12, "#000000", "lm")
    [mirrored] = scenes("mirroring").mirrored_marks([words], 100)
    assert (mirrored.x, mirrored.anchor, mirrored.text) == (90, "rm", "MOKA")


def test_a_brush_without_a_mirror_image_is_named(scenes: Any) -> None:
    """A new kind of brush stops the drawing, it is not left where it was."""
    with pytest.raises(NotImplementedError, match="no mirror image of 'splash'"):
        scenes("mirroring").mirrored("splash", 100)
    with pytest.raises(NotImplementedError, match="no span of 'splash'"):
        scenes("moving").span("splash")


def test_things_are_pushed_and_the_ground_stays(scenes: Any, monkeypatch: Any) -> None:
    """A disc moves by the push after it is mirrored; the table from side to side does not."""
    b, canvas, moving = scenes("brushes"), scenes("canvas"), scenes("moving")
    monkeypatch.setattr(moving, "PUSHED", {"disc.png": (8, -12)})
    table, disc = b.Panel((0, 60, 80, 80), "#808080"), b.Disc(20, 30, 10, "#000000")
    moved = moving.moved_scene("disc.png", canvas.Scene((80, 80), [table, disc]))
    expected = canvas.Scene((80, 80), [table, b.Disc(80 - 20 + 8, 30 - 12, 10, "#000000")])
    assert np.array_equal(moved.draw(), expected.draw())


def test_every_push_is_of_a_meant_image(scenes: Any) -> None:
    """No push is left over from an image that nobody means any more."""
    lines = (ROOT / CORPUS / "truth.jsonl").read_text("utf-8").splitlines()
    meant = {Path(json.loads(line)["picture"]).name for line in lines}
    assert set(scenes("moving").PUSHED) <= meant


def test_a_truth_differs_from_the_wrong_scene_in_its_fault(scenes: Any) -> None:
    """The cat loses one tail and nothing else, and a mark that is not there cannot be lost."""
    truths, cat = scenes("truths"), scenes("paintings").CAT_RAIN
    one_tail = truths.SCENES["cat_one_tail.png"]
    assert len(one_tail.marks) == len(cat.marks) - 1
    with pytest.raises(ValueError, match="not in list"):
        truths.without(one_tail, truths.SECOND_TAIL)
