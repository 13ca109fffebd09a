"""Boxes, roles and prompts beside those that people wrote down."""

from __future__ import annotations

import io
import math
import shutil
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from echo_hf.builder.gold.check import check_engine
from echo_hf.builder.gold.image_scores import Comparison, score_screenshots
from echo_hf.builder.gold.inputs import FoundScreenshot
from echo_hf.builder.gold.lines import ScreenshotLine
from echo_hf.builder.gold.measures import Measure, measured
from echo_hf.cli.check_view import show_check
from echo_hf.config.checks import EngineChoice
from tests.builder.gold.gold_for_tests import read_lines, write_lines
from tests.stages_for_tests import ROOT

Box = tuple[int, int, int, int]
DATA = ROOT / "tests" / "data" / "screenshots"
SIDE = st.integers(0, 20)
BOX = st.tuples(SIDE, SIDE, SIDE, SIDE).map(
    lambda box: (box[0], box[1], box[0] + box[2] + 1, box[1] + box[3] + 1)
)
BOXES = st.lists(BOX, max_size=3)
LEFT, RIGHT = (0, 0, 10, 10), (20, 0, 30, 10)


def compared(
    gold: tuple[list[Box], list[Box]],
    found: tuple[list[Box], list[Box]] | None,
    prompt: str | None = "",
    typed: str = "",
    name: str = "a",
) -> Comparison:
    """A screenshot with the boxes of what went in and came out, by people and by an engine."""
    url = f"https://example.org/{name}"
    line = ScreenshotLine(
        post_url=url,
        index=0,
        layout="conversation",
        prompt=typed,
        inputs=tuple(gold[0]),
        outputs=tuple(gold[1]),
    )
    said = FoundScreenshot(tuple(found[0]), tuple(found[1]), prompt) if found else None
    return Comparison(url, line, said)


def scores(*every: Comparison, errors: bool = False) -> dict[str, Measure]:
    """The measures by their names."""
    return {
        one.name: measured("screenshots", one, errors=errors)
        for one in score_screenshots(every, skipped=3)
    }


def test_boxes_by_hand() -> None:
    """One exact, one half as wide, one missed, one too many, and one unanswered screenshot."""
    half = (20, 0, 25, 10)
    first = compared(([LEFT], [RIGHT, (0, 50, 5, 55)]), ([LEFT], [half, (70, 70, 90, 90)]))
    found = scores(first, compared(([], [LEFT]), None, name="b"))

    assert (found["box_iou"].value, found["box_iou"].n) == (0.75, 2)
    assert (found["box_iou"].answered, found["box_iou"].asked) == (2, 4)
    assert (found["box_precision"].value, found["box_precision"].n) == (2 / 3, 3)
    assert (found["box_precision"].answered, found["box_precision"].asked) == (3, 4)
    assert (found["box_recall"].value, found["box_recall"].strict) == (2 / 3, 2 / 4)
    assert (found["role_accuracy"].value, found["role_accuracy"].n) == (1, 2)
    assert found["box_iou"].skipped == 3


def test_half_is_enough_and_less_is_not() -> None:
    """An intersection over union of 5 / 10, and of 49 / 100."""
    wide: Box = (0, 0, 100, 1)
    for box, recall in (((0, 0, 50, 1), 1), ((0, 0, 49, 1), 0)):
        found = scores(compared(([], [wide]), ([], [box])))
        assert (found["box_recall"].value, found["box_precision"].value) == (recall, recall)
        assert found["role_accuracy"].n == recall
        assert found["box_iou"].value == pytest.approx(0.5 if recall else 0.49)


def test_roles_that_are_mixed_up() -> None:
    """The boxes are right all the same."""
    found = scores(compared(([LEFT], [RIGHT]), ([RIGHT], [LEFT])), errors=True)
    assert (found["box_iou"].value, found["box_recall"].value) == (1, 1)
    assert found["role_accuracy"].value == 0
    assert {(one.expected, one.given) for one in found["role_accuracy"].errors} == {
        ("input", "output"),
        ("output", "input"),
    }


def test_prompts() -> None:
    """One letter of ten is wrong; an engine that cannot read has not answered."""
    pair: tuple[list[Box], list[Box]] = ([], [LEFT])
    found = scores(
        compared(pair, pair, "a red boat", "a red goat", "a"),
        compared(pair, pair, None, "a blue boat", "b"),
        compared(pair, pair, "", "", "c"),
        compared(pair, None, None, "a green boat", "d"),
    )["prompt_similarity"]
    assert (found.value, found.n) == (pytest.approx(0.95), 2)
    assert (found.answered, found.asked) == (2, 4)


def test_an_answer_without_a_box_misses_all() -> None:
    """It is an answer: nothing it claims is wrong, and everything is missed."""
    found = scores(compared(([LEFT], [RIGHT]), ([], [])))
    assert (found["box_recall"].value, found["box_recall"].n) == (0, 2)
    assert (found["box_precision"].value, found["box_precision"].coverage) == (None, 1)


def _overlap(one: Box, other: Box) -> float:
    grids = np.zeros((2, 45, 45), bool)
    for grid, (left, top, right, bottom) in zip(grids, (one, other), strict=True):
        grid[top:bottom, left:right] = True
    return float((grids[0] & grids[1]).sum() / (grids[0] | grids[1]).sum())


@given(BOXES, BOXES, BOXES, BOXES)
def test_boxes_are_paired_as_well_as_they_can_be(
    inputs: list[Box], outputs: list[Box], found_inputs: list[Box], found_outputs: list[Box]
) -> None:
    """No other pairing shares more, by trying them all on the pixels."""
    one = compared((inputs, outputs), (found_inputs, found_outputs))
    wanted, given_ = [*inputs, *outputs], [*found_inputs, *found_outputs]
    few, many = sorted((wanted, given_), key=len)
    best = max(
        (
            math.fsum(_overlap(a, b) for a, b in zip(few, some, strict=True))
            for some in permutations(many, len(few))
        ),
        default=0.0,
    )
    shares = [shared for _, shared in one.pairs.values()]
    assert math.fsum(shares) == pytest.approx(best)
    assert len({other for other, _ in one.pairs.values()}) == len(shares)
    for number, (other, shared) in one.pairs.items():
        assert shared == pytest.approx(_overlap(wanted[number], given_[other]))


@given(st.lists(BOX, max_size=6, unique=True), st.randoms(use_true_random=False))
def test_right_answers_are_right(boxes: list[Box], chance: Any) -> None:
    """In whatever order they are given."""
    cut = chance.randint(0, len(boxes))
    gold = boxes[:cut], boxes[cut:]
    found = scores(compared(gold, tuple(chance.sample(one, len(one)) for one in gold)))
    for name in ("box_iou", "box_precision", "box_recall", "role_accuracy"):
        assert found[name].value in ((1, None) if boxes else (None,)), name
        assert found[name].n == len(boxes)


def test_screenshots_that_nobody_took_apart_are_counted(tmp_path: Path) -> None:
    """They are neither right nor wrong, and it is said how many they are."""
    shutil.copytree(DATA / "tune", tmp_path / "gold")
    for name, count in (("posts", 3), ("extract", 3), ("roles", 3), ("screenshots", 2)):
        write_lines(
            tmp_path / "gold" / f"{name}.jsonl",
            read_lines(tmp_path / "gold" / f"{name}.jsonl")[:count],
        )
    config = ROOT / "eval_configs" / "quickstart.yaml"
    result = check_engine(
        config,
        engine=EngineChoice(kind="rules"),
        gold=tmp_path / "gold",
        half="all",
        stages=["screenshots"],
        runs=tmp_path / "runs",
    )
    out = io.StringIO()
    show_check(Console(file=out, width=120), result)

    assert {one.name: one.skipped for one in result.measures}["box_iou"] == 1
    assert (
        "screenshots: 1 screenshots left out: nobody wrote down what they show." in out.getvalue()
    )


@pytest.mark.parametrize("half", ["tune", "unseen"])
def test_plain_rules_are_measured_on_frozen_layouts(
    half: str, tmp_path: Path, record_property: Any
) -> None:
    """Whatever the figures are: every box is compared, and the rules never claim to read."""
    config = ROOT / "eval_configs" / "quickstart.yaml"
    result = check_engine(
        config,
        engine=EngineChoice(kind="rules"),
        gold=DATA / half,
        half="all",
        stages=["screenshots"],
        runs=tmp_path,
    )
    lines = read_lines(DATA / half / "screenshots.jsonl")
    boxes = sum(len(line["inputs"]) + len(line["outputs"]) for line in lines)
    measures = {one.name: one for one in result.measures}
    for name, one in measures.items():
        record_property(f"{half} {name}", one.value)

    assert list(measures) == [
        "box_iou", "box_precision", "box_recall", "role_accuracy", "prompt_similarity",
    ]  # fmt: skip
    asked = [measures[name].asked for name in list(measures)[:4]]
    assert asked == [boxes] * 4
    assert (measures["prompt_similarity"].asked, measures["prompt_similarity"].n) == (12, 0)
