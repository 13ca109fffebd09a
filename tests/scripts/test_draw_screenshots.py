"""The drawn screenshots are as their layouts say, and what is written down about them is true."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from echo_hf.samples.boxes import intersection

ROOT = Path(__file__).resolve().parents[2]
DATA = Path("tests") / "data" / "screenshots"
HALVES = ("tune", "unseen")


def run_drawing(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs the script of the tree at `root`."""
    command = [sys.executable, "-B", str(root / "scripts" / "draw_screenshots.py"), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def lines(half: str, name: str = "screenshots") -> list[dict[str, Any]]:
    """The lines of a file of a half."""
    text = (ROOT / DATA / half / f"{name}.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def image_of(half: str, line: dict[str, Any]) -> Path:
    """The image that a line speaks of."""
    post = next(one for one in lines(half, "posts") if one["url"] == line["post_url"])
    return ROOT / DATA / half / str(post["pictures"][line["index"]]["path"])


EVERY = [(half, line) for half in HALVES for line in lines(half)]
NAMES = [f"{half}-{line['post_url'].rpartition('/')[2]}" for half, line in EVERY]


def test_the_files_are_as_drawn() -> None:
    """They were frozen before the rules that read them: nobody makes them easier."""
    done = run_drawing(ROOT, "--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_differs_is_named_and_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A missing image, a changed one, a strange one and a changed line, one line each."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    script = importlib.import_module("draw_screenshots")
    monkeypatch.setattr(script, "DATA", tmp_path)
    shots = [one for one in script.SHOTS if one.name in ("phone_above", "collage_row")]
    monkeypatch.setattr(script, "SHOTS", shots[:2])
    assert script.draw() == 0
    images = tmp_path / "tune" / "pictures"
    (images / "phone_above.png").unlink()
    Image.new("RGB", (9, 9)).save(images / "collage_row.png")
    Image.new("RGB", (9, 9)).save(images / "strange.png")
    (tmp_path / "tune" / "screenshots.jsonl").write_text("{}\n")
    capsys.readouterr()

    assert script.check() == 1
    assert [line.partition(";")[0] for line in capsys.readouterr().out.splitlines()] == [
        "tune/pictures/phone_above.png: missing",
        "tune/pictures/collage_row.png: a tile is 255.0 levels from its layout",
        "tune/pictures/strange.png: nothing draws it",
        "tune/screenshots.jsonl: not what the layouts say",
    ]
    (images / "strange.png").unlink()
    assert (script.draw(), script.check()) == (0, 0)


def test_both_halves_have_every_layout_and_share_no_image() -> None:
    """Twelve each, with other prompts and other contents."""
    names = [{line["post_url"].rpartition("/")[2] for line in lines(half)} for half in HALVES]
    prompts = [{line["prompt"] for line in lines(half)} - {""} for half in HALVES]
    assert names[0] == names[1]
    assert len(names[0]) == 12
    assert not prompts[0] & prompts[1]
    files = [path.read_bytes() for path in (ROOT / DATA).glob("*/pictures/*")]
    assert len(set(files)) == 24
    assert sum(path.stat().st_size for path in (ROOT / DATA).rglob("*.*")) < 1_200_000


@pytest.mark.parametrize(("half", "line"), EVERY, ids=NAMES)
def test_boxes_hold_images(half: str, line: dict[str, Any]) -> None:
    """They lie in the image, apart from each other, and show more than one color."""
    with Image.open(image_of(half, line)) as file:
        pixels = np.asarray(file.convert("RGB"))
    boxes = [tuple(box) for box in (*line["inputs"], *line["outputs"])]
    assert line["outputs"]
    for number, (left, top, right, bottom) in enumerate(boxes):
        assert 0 <= left < right <= pixels.shape[1]
        assert 0 <= top < bottom <= pixels.shape[0]
        assert len(np.unique(pixels[top:bottom, left:right].reshape(-1, 3), axis=0)) > 4
        assert all(not intersection(boxes[number], other) for other in boxes[number + 1 :])


@pytest.mark.parametrize("half", HALVES)
def test_no_post_tells_what_was_typed(half: str) -> None:
    """Whoever gives the prompt has read it in the image."""
    texts = " ".join(post["text"] for post in lines(half, "posts"))
    typed = [line["prompt"] for line in lines(half) if line["layout"] == "conversation"]
    assert len(typed) == 10
    assert not [prompt for prompt in typed if not prompt or prompt in texts]
