"""What plain rules say about a screenshot: where its pictures are and which went in, no words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from echo_hf.engines.rules import RULES
from echo_hf.engines.rules.images import screenshots
from echo_hf.samples.boxes import intersection_over_union
from echo_hf.samples.screenshots import ScreenshotsAnswer
from tests.stages_for_tests import ROOT

TUNE = ROOT / "tests" / "data" / "screenshots" / "tune"
NOISE = np.random.default_rng(5).integers(0, 256, (2600, 1300, 3), dtype=np.uint8)


def said(
    folder: Path, *boxes: tuple[int, int, int, int], size: tuple[int, int] = (300, 500)
) -> Any:
    """The answer about a plain window with noise in these boxes; null where there is none."""
    pixels = np.full((size[1], size[0], 3), 240, dtype=np.uint8)
    for left, top, right, bottom in boxes:
        pixels[top:bottom, left:right] = NOISE[top:bottom, left:right]
    Image.fromarray(pixels).save(folder / "shot.png")
    answer = screenshots({"file": folder / "shot.png"})
    return answer and json.loads(answer)


def test_the_rules_know_the_task() -> None:
    """Under the name of the stage."""
    assert RULES["screenshots"] is screenshots


def test_what_stands_to_the_right_went_in(tmp_path: Path) -> None:
    """A thumbnail over an answer that begins at the left."""
    thumbnail, result = (180, 20, 290, 120), (10, 200, 230, 400)
    answer = said(tmp_path, thumbnail, result)
    assert answer == {"prompt": None, "inputs": [[*thumbnail]], "outputs": [[*result]]}
    assert ScreenshotsAnswer.model_validate(answer).prompt is None


def test_what_is_much_smaller_went_in(tmp_path: Path) -> None:
    """Without bubbles everything begins at the left."""
    small, large = (10, 20, 100, 90), (10, 200, 290, 400)
    assert said(tmp_path, small, large)["inputs"] == [[*small]]


@pytest.mark.parametrize(
    "boxes",
    [
        [(10, 200, 230, 400)],
        [(10, 200, 140, 330), (150, 200, 280, 330)],
        [(10, 20, 200, 200), (10, 210, 200, 390)],
    ],
    ids=["one", "row", "column"],
)
def test_results_alone(tmp_path: Path, boxes: Any) -> None:
    """One picture, or several of one size, came out of words."""
    answer = said(tmp_path, *boxes)
    assert answer == {"prompt": None, "inputs": [], "outputs": [[*box] for box in boxes]}


def test_in_a_collage_the_first_one_went_in(tmp_path: Path) -> None:
    """Where there is hardly more than pictures."""
    boxes = [(5, 5, 145, 495), (155, 5, 295, 495)]
    answer = said(tmp_path, *boxes)
    assert answer == {"prompt": None, "inputs": [[*boxes[0]]], "outputs": [[*boxes[1]]]}


@pytest.mark.parametrize("boxes", [[], [(2, 2, 298, 498)]], ids=["nothing", "one piece"])
def test_rules_abstain(tmp_path: Path, boxes: Any) -> None:
    """Where there is no picture, or nothing to tell apart."""
    assert said(tmp_path, *boxes) is None


def test_a_file_that_is_no_picture(tmp_path: Path) -> None:
    """A model may have more luck."""
    (tmp_path / "a.png").write_bytes(b"no picture")
    assert screenshots({"file": tmp_path / "a.png"}) is None
    assert screenshots({"file": tmp_path / "none.png"}) is None


def test_a_large_screenshot_is_found_again_at_its_own_size(tmp_path: Path) -> None:
    """Looked at in half the size: each edge is off by two pixels at most."""
    box = (101, 301, 1101, 1501)
    ((found,), _) = (said(tmp_path, box, size=(1300, 2601))[name] for name in ("outputs", "inputs"))
    assert np.abs(np.array(found) - box).max() <= 2


def test_the_frozen_layouts_for_tuning() -> None:
    """Most pictures are found with their roles: 25 of 26 when the rule was frozen."""
    right = wanted = 0
    for line in (TUNE / "screenshots.jsonl").read_text("utf-8").splitlines():
        gold = json.loads(line)
        name = gold["post_url"].rpartition("/")[2].replace("-", "_")
        answer = screenshots({"file": TUNE / "pictures" / f"{name}.png"})
        found = json.loads(answer) if answer else {"inputs": [], "outputs": []}
        for role in ("inputs", "outputs"):
            wanted += len(gold[role])
            right += sum(
                any(intersection_over_union(box, one) > 0.5 for one in found[role])
                for box in gold[role]
            )
    assert wanted == 26
    assert right >= 24
