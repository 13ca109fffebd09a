"""Roles of images, screenshots and boxes beside gold, against counts by hand."""

from __future__ import annotations

import io
import json
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
from echo_hf.builder.gold.folder import ScreenshotLine
from echo_hf.builder.gold.measures import Measure
from echo_hf.builder.gold.stages import (
    ImageRoles,
    compare_roles,
    compare_screenshots,
    found_roles,
)
from echo_hf.cli.check_view import show_check
from echo_hf.config.checks import EngineChoice
from tests.builder.gold.gold_for_tests import read_lines, write_lines
from tests.builder.gold.test_compared_texts import Row, summed, url, values
from tests.stages_for_tests import ROOT

Box = tuple[int, int, int, int]
Boxes = tuple[list[Box], list[Box]]
DATA = ROOT / "tests" / "data" / "screenshots"
CONFIG = ROOT / "eval_configs" / "quickstart.yaml"
SIDE = st.integers(0, 20)
BOX = st.tuples(SIDE, SIDE, SIDE, SIDE).map(
    lambda box: (box[0], box[1], box[0] + box[2] + 1, box[1] + box[3] + 1)
)
BOXES = st.lists(BOX, max_size=3)
LEFT, RIGHT = (0, 0, 10, 10), (20, 0, 30, 10)


def gold(
    roles: dict[str, str], *screenshots: str, unsaid: str = "", **completions: str
) -> ImageRoles:
    """What people said about the images of a sample; each letter is an image."""
    groups = {frozenset(group) for group in screenshots}
    places = {digest: f"post {digest}" for digest in (*roles, *unsaid)}
    return ImageRoles(roles, groups, {*completions.items()}, places)


def row(inputs: str = "", outputs: str = "", shot: str | None = None, filled: str = "") -> Row:
    """What `roles` said: one completion of a template, or one task."""
    images = {"input_images": list(inputs), "output_images": list(outputs), "screenshot": shot}
    return {**images, "prompt": filled, "prompt_fill_blank": bool(filled)}


def roles(*both: tuple[ImageRoles, list[Row]]) -> dict[str, Measure]:
    """The measures by name; a sample without rows was not answered."""
    keys = [(f"s{number}", "prompt") for number in range(len(both))]
    rows = [
        {**one, "provenance": json.dumps({"gold": key})}
        for key, (_, some) in zip(keys, both, strict=True)
        for one in some
    ]
    said = {key: one for key, (one, _) in zip(keys, both, strict=True)}
    return summed("roles", compare_roles(said, found_roles(rows)))


def test_roles_by_hand() -> None:
    """Four of five are right; without an answer none is wrong, and one has no role in gold."""
    one = roles(
        (gold({"a": "input", "b": "output", "c": "neither"}, unsaid="z"), [row("a", "bc")]),
        (gold({"a": "output", "d": "neither"}), [row("a"), row(outputs="a")]),
        (gold({"e": "output"}), []),
    )["picture_role_accuracy"]

    assert (one.value, one.n, one.answered, one.asked, one.strict) == (4 / 5, 5, 5, 6, 4 / 6)
    assert one.skipped == 1


def test_screenshots_by_hand() -> None:
    """Any screenshot of a conversation will do; one of nothing is a false claim."""
    nothing = dict.fromkeys("abcd", "neither")
    one = roles(
        (gold(nothing, "ab"), [row(shot="b")]),
        (gold(nothing, "c"), [row(shot="d")]),
        (gold(nothing, "d"), [row()]),
        (gold(nothing, "d"), []),
    )

    names = ("screenshot_precision", "screenshot_recall")
    assert values(one, *names) == [(1 / 2, 2, 4), (1 / 3, 3, 4)]
    assert one["screenshot_precision"].answered == 3


def test_completions_by_hand() -> None:
    """A completion is right when the image, or the screenshot, shows that very prompt."""
    outputs = dict.fromkeys("abc", "output")
    rows = [row(outputs="a", filled="A  CAT"), row(outputs="b", filled="a fox")]
    one = roles(
        (gold(outputs, a="a cat", b="an owl", c="a fox"), rows),
        (gold({"d": "output"}), [row(shot="d", filled="a dog")]),
    )

    assert values(one, "blanks_filled", "completion_precision") == [(1 / 3, 3, 3), (1 / 3, 3, 3)]
    errors = one["blanks_filled"].errors
    assert {(error.place, error.expected, error.given) for error in errors} == {
        ("post b", "an owl", "a fox"), ("post c", "a fox", ""),
    }  # fmt: skip


ROLES = st.dictionaries(
    st.sampled_from("abcdef"), st.sampled_from(["input", "output", "neither"]), min_size=1
)


@given(st.lists(ROLES, min_size=1, max_size=4))
def test_right_roles_are_right(samples: list[dict[str, str]]) -> None:
    """What gold says scores one."""
    both = []
    for one in samples:
        inputs, outputs, shots = (
            [digest for digest, role in one.items() if role == name]
            for name in ("input", "output", "neither")
        )
        prompts = {digest: f"a {digest}" for digest in outputs}
        rows = [row(outputs=digest, filled=prompt) for digest, prompt in prompts.items()]
        rows += [row("".join(inputs)), *(row(shot=digest) for digest in shots)]
        both.append((gold(one, *shots, **prompts), rows))
    for measure in roles(*both).values():
        assert measure.value in (1, None), measure.name
        assert measure.answered == measure.asked


def compared(
    gold: Boxes, found: Boxes | None, prompt: str | None = "", typed: str = "", name: str = "a"
) -> tuple[str, ScreenshotLine | None, Row | None]:
    """A screenshot with the boxes of what went in and came out, by people and by an engine."""
    line = ScreenshotLine(
        post_url=url(name),
        index=0,
        layout="conversation",
        prompt=typed,
        inputs=tuple(gold[0]),
        outputs=tuple(gold[1]),
    )
    if found is None:
        return url(name), line, None
    said = json.dumps({"screenshots": {"prompt_read": prompt}})
    boxes = {"input_bboxs": found[0], "output_bboxs": found[1]}
    return url(name), line, {**boxes, "provenance": said}


def scores(*every: tuple[str, ScreenshotLine | None, Row | None]) -> dict[str, Measure]:
    """The measures by their names."""
    return summed("screenshots", compare_screenshots(every))


def test_boxes_by_hand() -> None:
    """One exact, one half as wide, one missed, one too many, and one unanswered screenshot."""
    half = (20, 0, 25, 10)
    first = compared(([LEFT], [RIGHT, (0, 50, 5, 55)]), ([LEFT], [half, (70, 70, 90, 90)]))
    unsaid = (url("c"), None, None)
    found = scores(first, compared(([], [LEFT]), None, name="b"), unsaid)

    assert values(found, "box_iou", "box_precision", "box_recall", "role_accuracy") == [
        (0.75, 2, 4), (2 / 3, 3, 4), (2 / 3, 3, 4), (1, 2, 4),
    ]  # fmt: skip
    assert (found["box_precision"].answered, found["box_recall"].strict) == (3, 2 / 4)
    assert found["box_iou"].skipped == 1


@pytest.mark.parametrize(("width", "recall"), [(50, 1), (49, 0)])
def test_half_is_enough_and_less_is_not(width: int, recall: int) -> None:
    """An intersection over union of 5 / 10, and of 49 / 100."""
    found = scores(compared(([], [(0, 0, 100, 1)]), ([], [(0, 0, width, 1)])))
    assert (found["box_recall"].value, found["box_precision"].value) == (recall, recall)
    assert found["role_accuracy"].n == recall
    assert found["box_iou"].value == pytest.approx(width / 100)


def test_roles_that_are_mixed_up() -> None:
    """The boxes are right all the same."""
    found = scores(compared(([LEFT], [RIGHT]), ([RIGHT], [LEFT])))
    assert (found["box_iou"].value, found["box_recall"].value) == (1, 1)
    assert found["role_accuracy"].value == 0
    assert {(one.expected, one.given) for one in found["role_accuracy"].errors} == {
        ("input", "output"),
        ("output", "input"),
    }


def test_prompts() -> None:
    """One letter of ten is wrong; an engine that cannot read has not answered."""
    pair: Boxes = ([], [LEFT])
    found = scores(
        compared(pair, pair, "a red boat", "a red goat", "a"),
        compared(pair, pair, None, "a blue boat", "b"),
        compared(pair, pair, "", "", "c"),
        compared(pair, None, None, "a green boat", "d"),
    )["prompt_similarity"]
    assert found.value == pytest.approx(0.95)
    assert (found.n, found.answered, found.asked) == (2, 2, 4)


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
    found = scores(compared((inputs, outputs), (found_inputs, found_outputs)))["box_iou"]
    few, many = sorted(([*inputs, *outputs], [*found_inputs, *found_outputs]), key=len)
    best = max(
        (
            math.fsum(_overlap(a, b) for a, b in zip(few, some, strict=True))
            for some in permutations(many, len(few))
        ),
        default=0.0,
    )
    assert (found.value or 0) * found.n == pytest.approx(best)


@given(st.lists(BOX, max_size=6, unique=True), st.randoms(use_true_random=False))
def test_right_answers_are_right(boxes: list[Box], chance: Any) -> None:
    """In whatever order they are given."""
    cut = chance.randint(0, len(boxes))
    gold = boxes[:cut], boxes[cut:]
    inputs, outputs = (chance.sample(one, len(one)) for one in gold)
    found = scores(compared(gold, (inputs, outputs)))
    for name in ("box_iou", "box_precision", "box_recall", "role_accuracy"):
        assert found[name].value in ((1, None) if boxes else (None,)), name
        assert found[name].n == len(boxes)


def test_screenshots_that_nobody_took_apart_are_counted(tmp_path: Path) -> None:
    """They are neither right nor wrong, and it is said how many they are."""
    shutil.copytree(DATA / "tune", tmp_path / "gold")
    for name, count in (("posts", 3), ("extract", 3), ("roles", 3), ("screenshots", 2)):
        file = tmp_path / "gold" / f"{name}.jsonl"
        write_lines(file, read_lines(file)[:count])
    result = check_engine(
        CONFIG,
        engine=EngineChoice(kind="rules"),
        gold=tmp_path / "gold",
        half="all",
        stages=["screenshots"],
        runs=tmp_path / "runs",
    )
    out = io.StringIO()
    show_check(Console(file=out, width=120), result)

    assert result.measures[0].skipped == 1
    assert (
        "screenshots: 1 screenshots left out: nobody wrote down what they show." in out.getvalue()
    )


@pytest.mark.parametrize("half", ["tune", "unseen"])
def test_plain_rules_are_measured_on_frozen_layouts(
    half: str, tmp_path: Path, record_property: Any
) -> None:
    """Whatever the figures are: every box is compared, and the rules never claim to read."""
    result = check_engine(
        CONFIG,
        engine=EngineChoice(kind="rules"),
        gold=DATA / half,
        half="all",
        stages=["screenshots"],
        runs=tmp_path,
    )
    lines = read_lines(DATA / half / "screenshots.jsonl")
    boxes = sum(len(line["inputs"]) + len(line["outputs"]) for line in lines)
    for one in result.measures:
        record_property(f"{half} {one.name}", one.value)

    assert [(one.name, one.asked) for one in result.measures] == [
        ("box_iou", boxes), ("box_precision", boxes), ("box_recall", boxes),
        ("role_accuracy", boxes), ("prompt_similarity", 12),
    ]  # fmt: skip
    assert result.measures[-1].n == 0
