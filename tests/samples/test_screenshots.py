"""Taking screenshots apart, whatever a model says."""

from __future__ import annotations

import hashlib
import io
import json
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image
from pydantic import BaseModel, ValidationError

from echo_hf.config.loading import Config
from echo_hf.engines.base import Failed, ImageRef, Request, Text
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.answers import Failure
from echo_hf.pipeline.batch_inference import plan_requests
from echo_hf.pipeline.result import StageStats
from echo_hf.pipeline.stage_runner import run_stage
from echo_hf.samples.boxes import BOX_INSTRUCTIONS, Convention, get_inner_box
from echo_hf.samples.screenshots import Screenshots, ScreenshotsAnswer, collect_relevant_text
from tests.images_for_tests import encoded
from tests.samples_for_tests import (
    CONFIG_DATA,
    TARGET,
    Row,
    Speaking,
    dataset,
    digest,
    kept,
    noted,
    post,
    sample,
    table,
)
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

Shot = tuple[ImageStore, str]
FAILURE = Failure(Failed.CUT, "length", "ff")
QWEN = {"kind": "vllm", "model": "Qwen/Qwen2.5-VL-7B-Instruct", "pixels": [28, 3136, 100_352]}
# 400 x 800 at sqrt(100352 / 320000) = 0.56 of the sides is 224 x 448: 8 and 16 patches of 28.
SENT = (224, 448)
# The boxes of `answer`, in pixels of the image in that size.
NOT_MADE = {"provenance": None, "doubts": None}
IN_SENT = answer([[112, 44.8, 201.6, 134.4]], [[11.2, 179.2, 212.8, 403.2]])


@dataclass
class Model(Speaking):
    signed: dict[str, Any] = field(default_factory=lambda: QWEN)

    def signature(self) -> dict[str, Any]:
        return self.signed


@pytest.fixture(scope="module")
def shot(tmp_path_factory: pytest.TempPathFactory) -> tuple[ImageStore, str]:
    store, (screenshot,) = store_with(tmp_path_factory.mktemp("shot"), png(PIXELS))
    return store, screenshot


def made(stage: Screenshots, *given_: tuple[Row, list[Any]]) -> list[Row]:
    answers: list[list[BaseModel | Failure]] = [
        [FAILURE if one is None else ScreenshotsAnswer.model_validate(one) for one in said]
        for _, said in given_
    ]
    return list(stage.finish(table(*(row for row, _ in given_)), answers).to_pylist())


def asked(stage: Screenshots, row: Row) -> Request:
    ((request,),) = stage.requests(table(row))
    return request


def said(request: Request) -> str:
    return "\n".join(part.text for part in request.messages[1].parts if isinstance(part, Text))


def test_images_are_cut_where_the_model_saw_them(shot: Shot, tmp_path: Path) -> None:
    """And it is asked for texts, how to name places, then the image; once."""
    rows, engine = dataset(shot_sample(shot[1])), Model(lambda _: IN_SENT)
    stage = Screenshots(TARGET, shot[0])
    with closing(Store(tmp_path / "answers.sqlite")) as store:
        before = plan_requests(stage, rows, engine, store)
        first = run_stage(stage, rows, engine=engine, store=store)
        after = plan_requests(stage, rows, engine, store)
    (row,), (request,) = first.dataset.to_list(), engine.asked
    data, words, image = request.messages[1].parts

    assert (row["input_bboxs"], row["output_bboxs"]) == ([[*INPUT_PIXELS]], [[*OUTPUT_PIXELS]])
    assert (row["prompt"], row["is_screenshot"]) == ("paint a fox", True)
    assert first.stats.noted == {}
    told = json.loads(row["provenance"])["screenshots"]
    assert (told["engine"], told["convention"]) == (QWEN, "abs_resized")
    assert [(one.calls, one.stored) for one in (before, after)] == [(1, 0), (0, 1)]
    assert isinstance(image, ImageRef)
    assert (image.sha256, image.file) == (shot[1], shot[0].path(shot[1]))
    assert image.file == request.inputs["file"]
    assert isinstance(data, Text)
    shown = {"posts": ["made with lumen", "so good"], "description": "a chat about a fox"}
    assert json.loads(data.text.split("\n")[1]) == shown
    assert words == Text(
        f"The picture is {SENT[0]} pixels wide and {SENT[1]} pixels high. "
        f"{BOX_INSTRUCTIONS[Convention.ABS_RESIZED]}\nThe screenshot:"
    )


def test_the_relevant_text_is_that_of_the_samples_own_posts() -> None:
    context = [
        post(0, -1, "root"),
        post(1, 0, None),
        post(2, 1, "x" * 5000),
        post(3, 0, "wow", "s"),
        post(4, -1, "elsewhere"),
    ]
    row = sample(context, [2], [3], screenshot=context[3]["pictures"][0]["sha256"])
    shown = collect_relevant_text(row)
    assert [text[:4] for text in shown["posts"]] == ["root", "xxxx"]
    assert shown["posts"][1].endswith("[... 1000 characters left out]")
    assert shown["description"] is None


def test_nothing_is_cut_while_a_convention_is_only_assumed(shot: Shot) -> None:
    """The boxes are kept as they were answered; they may be pixels, or have y first."""
    stage, before = Screenshots(TARGET, shot[0]), shot_sample(shot[1])
    rows = made(stage, (before, [answer()]))
    (row,) = kept(rows)
    assert "from 0 to 1000" in said(asked(stage, before))
    assert row["doubts"] == ["screenshot_whole", "assumed_boxes"]
    assert {name: row[name] for name in before} == {
        **before,
        "doubts": row["doubts"],
        "provenance": row["provenance"],
    }
    kept_boxes = json.loads(row["provenance"])["screenshots"]
    assert kept_boxes["boxes"] == {
        "inputs": [INPUT],
        "outputs": [OUTPUT],
        "original": [WIDTH, HEIGHT],
        "sent": [WIDTH, HEIGHT],
    }
    assert noted(rows) == [("assumed_convention", "rel_1000")]


def test_a_convention_that_somebody_says_is_none_that_is_assumed(shot: Shot) -> None:
    told = Screenshots(TARGET, shot[0], convention="rel_1000")
    rows = made(told, (shot_sample(shot[1]), [answer()]))
    assert kept(rows)[0]["input_bboxs"] == [[*INPUT_PIXELS]]
    assert (kept(rows)[0]["doubts"], noted(rows)) == ([], [])


@pytest.mark.parametrize(
    ("coordinates", "convention", "meant"),
    [
        (None, "auto", "auto"),
        ("rel_1", "auto", "rel_1"),
        ("rel_1", "abs_resized", "abs_resized"),
        (None, "rel_1000_yx", "rel_1000_yx"),
    ],
)
def test_an_engine_says_what_its_coordinates_mean(
    shot: Shot, coordinates: str | None, convention: str, meant: str
) -> None:
    """What the stage says of itself comes first."""
    engine = {"kind": "openai", "model": "some-model", "coordinates": coordinates}
    data = {
        **CONFIG_DATA,
        "engines": {"main": engine},
        "stages": {"screenshots": {"engine": "main", "convention": convention}},
    }
    config = Config.model_validate(data)
    assert Screenshots.from_config(config, shot[0]).convention == meant
    assert "coordinates" not in config.engines["main"].options


NATIVE: dict[str, tuple[Any, dict[str, Any]]] = {
    "boxes of Qwen in our lists": (
        {"prompt": "a", "inputs": [{"bbox_2d": INPUT}], "outputs": [{"bbox_2d": OUTPUT}]},
        {"inputs": [INPUT], "outputs": [OUTPUT]},
    ),
    "boxes of Gemini in our lists": (
        {"inputs": [], "outputs": [{"box_2d": OUTPUT, "label": "a fox"}]},
        {"inputs": [], "outputs": [OUTPUT]},
    ),
    "a list of boxes with labels": (
        [{"bbox_2d": OUTPUT, "label": "Output 1"}, {"bbox_2d": INPUT, "label": "input picture"}],
        {"inputs": [INPUT], "outputs": [OUTPUT]},
    ),
}


@pytest.mark.parametrize(("native", "meant"), NATIVE.values(), ids=NATIVE)
def test_answers_in_a_models_own_form_are_read(native: Any, meant: dict[str, Any]) -> None:
    read = ScreenshotsAnswer.model_validate_json(json.dumps(native))
    assert {"inputs": read.inputs, "outputs": read.outputs} == meant


@pytest.mark.parametrize(
    "native",
    [
        [{"bbox_2d": OUTPUT, "label": "a fox"}],
        [{"bbox_2d": OUTPUT, "label": "input and output"}],
        [OUTPUT],
        {"inputs": [{"box": OUTPUT}], "outputs": []},
        {"inputs": [{"bbox_2d": [1, 2, 3]}], "outputs": []},
    ],
)
def test_boxes_whose_role_or_numbers_are_not_said_are_off_schema(native: Any) -> None:
    with pytest.raises(ValidationError):
        ScreenshotsAnswer.model_validate_json(json.dumps(native))


def test_images_that_nobody_can_look_at_are_not_asked_about(tmp_path: Path) -> None:
    store, (strip, whole) = store_with(
        tmp_path, png(PIXELS[:2, :400].repeat(2, 1)), png(PIXELS[:40, :40])
    )
    rows = dataset(shot_sample(strip, id="strip"), shot_sample("ab" * 32, id="gone"))
    blind = {**QWEN, "kind": "openai", "pixels": None}
    for signed, some, told in (
        (QWEN, rows, {"broken_picture": 1, "unfit_picture": 1}),
        (blind, dataset(shot_sample(whole)), {"unknown_pixels": 1}),
    ):
        engine = Model(lambda _: IN_SENT, signed=signed)
        stage = Screenshots(TARGET, store)
        result = run_stage(stage, some, engine=engine, store=Store(":memory:"))
        assert engine.asked == []
        assert result.stats.noted == told
        assert result.dataset["id"] == some["id"]
        assert set(result.dataset["is_screenshot"]) == {False}


def test_the_counts_by_hand(shot: Shot) -> None:
    """Where there is nothing to take apart, or not any more, nobody is asked."""
    stage, row = Screenshots(TARGET, shot[0], "rel_1000"), shot_sample(shot[1])
    rows: list[tuple[Row, list[Any]]] = [
        (row, [answer()]),
        (row, [answer([INPUT], [])]),
        (row, [answer([], [])]),
        (row, [None]),
        ({**row, "screenshot": None}, []),
    ]
    done = kept(made(stage, *rows))
    assert stage.requests(table(done[0], done[4])) == [[], []]
    tally = stage.tally(pa.Table.from_pylist(done, schema=stage.outputs.schema))

    assert tally == {"screenshots": 4, "cut": 2, "pictures": 3}
    assert Screenshots.headline({"screenshots": StageStats("screenshots", 5, 5, tally=tally)}) == (
        "2 of 4 screenshots were cut (50 %) into 3 images"
    )


def stored_in(folder: Path, image: bytes = png(PIXELS)) -> Shot:
    store, (screenshot,) = store_with(folder, image)
    return store, screenshot


@pytest.fixture
def stored(tmp_path: Path) -> Shot:
    return stored_in(tmp_path)


def parsed(
    stored: Shot, said: dict[str, Any] | None = None, inset: int = 0, **values: Any
) -> tuple[Row, Row, list[tuple[str, str | None]]]:
    store, screenshot = stored
    before = shot_sample(screenshot, **values)
    rows = made(Screenshots(TARGET, store, "rel_1000", inset), (before, [said or answer()]))
    return before, {name: kept(rows)[0][name] for name in before}, noted(rows)


def shown(store: ImageStore, name: str) -> Any:
    return np.asarray(Image.open(io.BytesIO(store.open(name))))


@pytest.mark.parametrize("inset", [0, 10])
def test_the_row_by_hand(stored: Shot, inset: int) -> None:
    """An inset makes crops smaller, and boxes not."""
    before, row, findings = parsed(stored, inset=inset, output_images=OTHERS)
    left, top, right, bottom = get_inner_box(INPUT_PIXELS, inset)
    (went_in,), (came_out, *others) = row["input_images"], row["output_images"]
    assert others == OTHERS

    np.testing.assert_array_equal(shown(stored[0], went_in), PIXELS[top:bottom, left:right])
    np.testing.assert_array_equal(
        shown(stored[0], came_out), PIXELS[320 + inset : 720 - inset, 20 + inset : 380 - inset]
    )
    assert (row["input_bboxs"], row["output_bboxs"]) == ([[*INPUT_PIXELS]], [[*OUTPUT_PIXELS]])
    assert (row["prompt"], row["prompt_modified"]) == ("paint a fox", True)
    assert (row["is_screenshot"], row["screenshot"]) == (True, stored[1])
    text = json.dumps(["paint a fox", [went_in]])
    assert row["sample_digest"] == hashlib.sha256(text.encode()).hexdigest()
    assert findings == []
    told = json.loads(row["provenance"])["screenshots"]
    assert (told["prompt_read"], told["earlier_prompt"]) == ("paint a fox", "a fox")
    changed = {name for name in row if row[name] != before[name]}
    assert changed == {
        "prompt", "prompt_modified", "input_images", "output_images", "is_screenshot",
        "input_bboxs", "output_bboxs", "sample_digest", "provenance",
    }  # fmt: skip


def test_images_stand_in_reading_order(stored: Shot) -> None:
    boxes = [[0, 300, 400, 400], [500, 0, 900, 200], [0, 10, 400, 210]]
    rows = [parsed(stored, answer([], some))[1] for some in (boxes, boxes[::-1])]
    assert rows[0] == rows[1]
    assert rows[0]["output_bboxs"] == [[0, 8, 160, 168], [200, 0, 360, 160], [0, 240, 160, 320]]


MARKED = "an owl [... 900 characters left out]"


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
        # None was typed, none could be read, or it has our mark.
        *(("made with lumen", read, "a fox", False) for read in ("", " \n ", None, MARKED)),
    ],
)
def test_the_prompt(
    stored: Shot, posted: str, read: str | None, prompt: str, modified: bool
) -> None:
    for before in (False, True):  # one that is kept stays as it was
        _, row, findings = parsed(stored, answer(prompt=read), text=posted, prompt_modified=before)
        was = before and prompt == "a fox"
        assert (row["prompt"], row["prompt_modified"]) == (prompt, modified or was)
    said = {None: "prompt_not_read", MARKED: "shortened_prompt"}
    assert findings == ([(said[read], stored[1])] if read in said else [])


def test_inputs_that_are_shown_again_are_replaced_and_others_stay(stored: Shot) -> None:
    """A system must not be given the same image twice; each replaced one is named."""
    outside = [digest("i"), digest("j")]
    _, row, findings = parsed(stored, input_images=outside)
    assert len(row["input_images"]) == 1
    assert findings == [("replaced_input", name) for name in outside]
    assert json.loads(row["provenance"])["screenshots"]["replaced_inputs"] == outside
    _, row, findings = parsed(stored, answer([]), input_images=outside)
    assert (row["input_images"], row["input_bboxs"], findings) == (outside, [], [])


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
    stored: Shot, inputs: Any, outputs: Any, reason: str
) -> None:
    before, row, findings = parsed(stored, answer(inputs, outputs))
    assert [why for why, _ in findings] == [reason]
    assert {**row, **NOT_MADE} == {**before, **NOT_MADE}
    assert row["doubts"] == ["screenshot_whole"]
    assert json.loads(row["provenance"])["screenshots"]["prompt_read"] == "paint a fox"
    assert [path.name for path in (stored[0].root).glob("*/*")] == [stored[1]]


def test_an_inset_that_leaves_nothing(stored: Shot) -> None:
    before, row, findings = parsed(stored, answer([INPUT], [[0, 500, 50, 1000]]), inset=10)
    assert findings == [("tiny_box", "[0, 400, 20, 800] with an inset of 10")]
    assert row["is_screenshot"] is before["is_screenshot"] is False


@pytest.mark.parametrize("is_input", [False, True])
def test_equal_images_are_one_and_not_input_and_output(tmp_path: Path, is_input: bool) -> None:
    """What came out must never be given to a system: nobody knows which of the two it is."""
    pixels = PIXELS.copy()
    pixels[500:660, 200:360] = pixels[80:240, 200:360]
    again = [500, 625, 900, 825]
    boxes = ([INPUT], [again]) if is_input else ([], [INPUT, again])
    _, row, findings = parsed(stored_in(tmp_path, png(pixels)), answer(*boxes))
    assert row["output_bboxs"] == ([] if is_input else [[*INPUT_PIXELS]])
    assert row["is_screenshot"] is not is_input
    assert [why for why, _ in findings] == ["overlapping_boxes" if is_input else "duplicate_box"]


def test_a_screenshot_that_cannot_be_shown(tmp_path: Path) -> None:
    store, screenshot = stored_in(tmp_path, encoded(Image.new("F", (WIDTH, HEIGHT)), "TIFF"))
    _, row, findings = parsed((store, screenshot))
    assert [why for why, _ in findings] == ["broken_picture"]
    assert (row["is_screenshot"], row["input_images"], row["prompt"]) == (False, [], "a fox")
