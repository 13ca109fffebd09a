"""What becomes of a sample whose screenshot was taken apart."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from echo_hf.images.store import ImageStore
from echo_hf.samples.boxes import Convention, Frame
from echo_hf.samples.screenshots import ScreenshotParser, ScreenshotsAnswer
from tests.samples_for_tests import Row, digest
from tests.screenshots_for_tests import (
    HEIGHT,
    INPUT,
    INPUT_PIXELS,
    OTHERS,
    OUTPUT,
    OUTPUT_PIXELS,
    PIXELS,
    WIDTH,
    answer,
    png,
    shot_sample,
    store_with,
)

FRAME = Frame(Convention.REL_1000, (WIDTH, HEIGHT), (WIDTH, HEIGHT))
Shot = tuple[ImageStore, str]


@pytest.fixture
def shot(tmp_path: Path) -> Shot:
    """A store with a screenshot of noise in it."""
    store, (screenshot,) = store_with(tmp_path, png(PIXELS))
    return store, screenshot


def parsed(
    shot: Shot, said: dict[str, Any] | None = None, inset: int = 0, **values: Any
) -> tuple[Row, Row, list[tuple[str, str]]]:
    """The sample, the row made of it, and what was noticed."""
    store, screenshot = shot
    before = shot_sample(screenshot, **values)
    parser = ScreenshotParser(store, inset, {"digest": "d"})
    given = ScreenshotsAnswer.model_validate(said or answer())
    row, findings = parser.row(before, given, FRAME)
    return before, row, [(str(notice), detail) for notice, detail in findings]


def shown(store: ImageStore, name: str) -> Any:
    """The pixels of a stored image."""
    return np.asarray(Image.open(io.BytesIO(store.open(name))))


def test_the_row_by_hand(shot: Shot) -> None:
    """Ready crops with their boxes, and the prompt that was typed; the name stays."""
    before, row, findings = parsed(shot)
    left, top, right, bottom = INPUT_PIXELS
    (went_in,), (came_out,) = row["input_images"], row["output_images"]

    np.testing.assert_array_equal(shown(shot[0], went_in), PIXELS[top:bottom, left:right])
    np.testing.assert_array_equal(shown(shot[0], came_out), PIXELS[320:720, 20:380])
    assert (row["input_bboxs"], row["output_bboxs"]) == ([[*INPUT_PIXELS]], [[*OUTPUT_PIXELS]])
    assert (row["prompt"], row["prompt_modified"]) == ("paint a fox", True)
    assert (row["is_screenshot"], row["screenshot"]) == (True, shot[1])
    text = json.dumps(["paint a fox", [went_in]])
    assert row["sample_digest"] == hashlib.sha256(text.encode()).hexdigest()
    assert findings == []
    changed = {name for name in row if row[name] != before[name]}
    assert changed == {
        "prompt", "prompt_modified", "input_images", "output_images", "is_screenshot",
        "input_bboxs", "output_bboxs", "sample_digest", "provenance",
    }  # fmt: skip


def test_the_provenance_tells_what_was_replaced(shot: Shot) -> None:
    """What made the row, the earlier prompt, and the inputs that were posted beside."""
    _, row, _ = parsed(shot, input_images=[digest("i")], inset=10)
    provenance = json.loads(row["provenance"])
    assert provenance["extract"] == {"digest": "d"}
    assert provenance["screenshots"] == {
        "digest": "d",
        "convention": "rel_1000",
        "inset": 10,
        "prompt_read": "paint a fox",
        "earlier_prompt": "a fox",
        "replaced_inputs": [digest("i")],
    }


def test_an_inset_makes_crops_smaller_and_boxes_not(shot: Shot) -> None:
    """The boxes are those that were found; ten pixels of each side are left out of the images."""
    _, row, _ = parsed(shot, inset=10)
    np.testing.assert_array_equal(shown(shot[0], row["input_images"][0]), PIXELS[90:230, 210:350])
    assert row["input_bboxs"] == [[*INPUT_PIXELS]]


def test_images_stand_in_reading_order(shot: Shot) -> None:
    """Whatever the order of the answer, "the first image" is the one that people see first."""
    boxes = [[0, 300, 400, 400], [500, 0, 900, 200], [0, 10, 400, 210]]
    rows = [parsed(shot, answer([], some))[1] for some in (boxes, boxes[::-1])]
    assert rows[0] == rows[1]
    assert rows[0]["output_bboxs"] == [[0, 8, 160, 168], [200, 0, 360, 160], [0, 240, 160, 320]]


@pytest.mark.parametrize(
    ("posted", "read", "prompt", "modified"),
    [
        # Read from the image alone: nobody finds it in the posts.
        ("made with lumen", "paint a fox", "paint a fox", True),
        # The post has it as well.
        ("I typed: paint  a fox. Done!", "paint a\nfox", "paint a\nfox", False),
        # So has the description of an image.
        ("made with lumen", "a chat about a fox", "a chat about a fox", False),
        # It is the one that is known.
        ("made with lumen", " a  fox ", "a fox", False),
        # None was typed, or none could be read.
        ("made with lumen", "", "a fox", False),
        ("made with lumen", " \n ", "a fox", False),
        ("made with lumen", None, "a fox", False),
    ],
)
def test_the_prompt(shot: Shot, posted: str, read: str | None, prompt: str, modified: bool) -> None:
    """What was typed counts; it is unmodified only where the posts have it."""
    _, row, findings = parsed(shot, answer(prompt=read), text=posted)
    assert (row["prompt"], row["prompt_modified"]) == (prompt, modified)
    assert findings == ([("prompt_not_read", shot[1])] if read is None else [])


def test_a_prompt_that_was_modified_before_stays_so(shot: Shot) -> None:
    """Where the screenshot holds no other one."""
    _, row, _ = parsed(shot, answer(prompt=""), prompt_modified=True)
    assert row["prompt_modified"] is True


def test_inputs_that_are_shown_again_are_replaced(shot: Shot) -> None:
    """A system must not be given the same image twice; each replaced one is named."""
    outside = [digest("i"), digest("j")]
    _, row, findings = parsed(shot, input_images=outside)
    assert len(row["input_images"]) == 1
    assert findings == [("replaced_input", name) for name in outside]


def test_inputs_stay_where_none_is_shown(shot: Shot) -> None:
    """A conversation that begins after they were put in."""
    _, row, findings = parsed(shot, answer([]), input_images=[digest("i")])
    assert (row["input_images"], row["input_bboxs"], findings) == ([digest("i")], [], [])
    assert row["is_screenshot"]


def test_outputs_of_others_stay(shot: Shot) -> None:
    """People who tried the same prompt posted results of their own: after the crops."""
    _, row, _ = parsed(shot, output_images=OTHERS)
    assert row["output_images"][1:] == OTHERS
    assert len(row["output_bboxs"]) == 1


@pytest.mark.parametrize(
    ("inputs", "outputs", "reason"),
    [
        ([], [], "no_box"),
        ([], [[0, 0, 1300, 500]], "wrong_convention"),
        ([], [[500, 0, 100, 500]], "degenerate_box"),
        ([], [[0, 0, 10, 10], OUTPUT], "tiny_box"),
        ([], [[0, 0, 1000, 1000]], "whole_box"),
        ([INPUT], [INPUT], "overlapping_boxes"),
    ],
)
def test_a_doubtful_box_leaves_the_sample_as_it_was(
    shot: Shot, inputs: Any, outputs: Any, reason: str
) -> None:
    """Nothing is cut, nothing else is taken over, and the reason is said; the answer is kept."""
    before, row, findings = parsed(shot, answer(inputs, outputs))
    assert [why for why, _ in findings] == [reason]
    assert {**row, "provenance": None} == {**before, "provenance": None}
    assert json.loads(row["provenance"])["screenshots"]["prompt_read"] == "paint a fox"
    assert [path.name for path in (shot[0].root).glob("*/*")] == [shot[1]]


def test_an_inset_that_leaves_nothing(shot: Shot) -> None:
    """A box as narrow as both margins is no image; nothing of the screenshot is cut."""
    before, row, findings = parsed(shot, answer([INPUT], [[0, 500, 50, 1000]]), inset=10)
    assert findings == [("tiny_box", "[0, 400, 20, 800] with an inset of 10")]
    assert row["is_screenshot"] is before["is_screenshot"] is False


def test_equal_images_are_one(tmp_path: Path) -> None:
    """An image that a conversation shows twice is cut once."""
    pixels = PIXELS.copy()
    pixels[500:660, 200:360] = pixels[80:240, 200:360]
    again = [500, 625, 900, 825]
    shot = store_with(tmp_path, png(pixels))
    _, row, findings = parsed((shot[0], shot[1][0]), answer([], [INPUT, again]))
    assert row["output_bboxs"] == [[*INPUT_PIXELS]]
    assert findings == [("duplicate_box", "[200, 500, 360, 660]")]


def test_equal_images_are_not_input_and_output(tmp_path: Path) -> None:
    """What came out must never be given to a system: nobody knows which of the two it is."""
    pixels = PIXELS.copy()
    pixels[500:660, 200:360] = pixels[80:240, 200:360]
    store, (screenshot,) = store_with(tmp_path, png(pixels))
    _, row, findings = parsed((store, screenshot), answer([INPUT], [[500, 625, 900, 825]]))
    assert [why for why, _ in findings] == ["overlapping_boxes"]
    assert row["is_screenshot"] is False


def test_a_screenshot_that_cannot_be_decoded(shot: Shot) -> None:
    """Its bytes have changed since it was collected: said, and nothing is cut."""
    store, screenshot = shot
    store.path(screenshot).write_bytes(b"gone")
    _, row, findings = parsed(shot)
    assert [why for why, _ in findings] == ["broken_picture"]
    assert "has changed" in findings[0][1]
    assert (row["is_screenshot"], row["input_images"], row["prompt"]) == (False, [], "a fox")
