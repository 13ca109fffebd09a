"""Outputs that are no single images: who looks at them, and what becomes of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from echo_hf.engines.base import Text
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.answers import NoAnswers
from echo_hf.samples.boxes import BOX_INSTRUCTIONS, Convention
from echo_hf.samples.roles import Roles
from echo_hf.samples.screenshots import SUSPECTED_SHEET_NOTE, Screenshots, ScreenshotsAnswer
from echo_hf.samples.tasks import RolesAnswer
from tests.images.drawn_layouts import comic, drawing, sheets
from tests.images_for_tests import encoded
from tests.samples_for_tests import TARGET, Row, image, kept, noted, post, sample, table

MODEL = {"kind": "vllm", "model": "Qwen/Qwen3-VL-8B-Instruct"}
RULES = {"kind": "rules"}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> ImageStore:
    return ImageStore(tmp_path_factory.mktemp("run") / "pictures")


@pytest.fixture(scope="module")
def page(store: ImageStore) -> str:
    return store.put(comic(7).data)


@pytest.fixture(scope="module")
def fox(store: ImageStore) -> str:
    return store.put(encoded(drawing("fox_pink.png"), "PNG"))


def posted(*digests: str) -> Row:
    context = [post(0, -1, "prompt")]
    context[0]["pictures"] = [{**image(None, "Output"), "sha256": one} for one in digests]
    return sample(context)


def roles_by(engine: Any, store: ImageStore, row: Row, **said: Any) -> list[Row]:
    answer = RolesAnswer.model_validate(
        {"samples": [{"inputs": [], "posts": [0], "may_show_minor": False, **said}]}
    )
    stage = Roles(TARGET, store).answered_by(NoAnswers(engine))
    return list(stage.finish(table(row), [[answer]]).to_pylist())


def test_a_sheet_goes_to_screenshots_where_a_model_called_it_an_output(
    store: ImageStore, page: str, fox: str
) -> None:
    rows = roles_by(MODEL, store, posted(page, fox), outputs=[1, 2])
    (row,) = kept(rows)

    assert (row["screenshot"], row["output_images"], row["doubts"]) == (page, [fox], [])
    assert ("several_images", f"sheet: {page}") in noted(rows)
    assert ("not_parsed", page) in noted(rows)


def test_without_a_model_it_stays_and_is_doubted(store: ImageStore, page: str, fox: str) -> None:
    rows = roles_by(RULES, store, posted(page, fox), outputs=[1, 2])
    (row,) = kept(rows)

    assert (row["screenshot"], row["output_images"]) == (None, [page, fox])
    assert row["doubts"] == ["collage"]
    (after,) = kept(
        list(
            Screenshots(TARGET, store).answered_by(NoAnswers(RULES))(table(strip(row))).to_pylist()
        )
    )
    assert after["doubts"] == ["collage"]


def test_a_second_sheet_is_doubted_beside_the_first(store: ImageStore, page: str) -> None:
    other = store.put(next(iter(sheets(7))).data)
    (row,) = kept(roles_by(MODEL, store, posted(page, other), outputs=[1, 2]))

    assert (row["screenshot"], row["output_images"]) == (page, [other])
    assert row["doubts"] == ["collage"]


def test_single_images_inputs_and_lost_ones_are_left_alone(
    store: ImageStore, page: str, fox: str
) -> None:
    """What somebody gave to the model as a sheet is an input as it stands."""
    row = posted(page, fox, "0" * 64)
    (made,) = kept(roles_by(MODEL, store, row, inputs=[1], outputs=[2, 3]))

    assert (made["input_images"], made["output_images"]) == ([page], [fox, "0" * 64])
    assert (made["screenshot"], made["doubts"]) == (None, [])


def strip(row: Row) -> Row:
    return {name: value for name, value in row.items() if not name.startswith("_")}


def shown(store: ImageStore, page: str, fox: str) -> tuple[Screenshots, Row]:
    (row,) = kept(roles_by(MODEL, store, posted(page, fox), outputs=[1, 2]))
    return Screenshots(TARGET, store).answered_by(NoAnswers(MODEL)), strip(row)


def test_a_model_may_call_it_one_image_after_all(store: ImageStore, page: str, fox: str) -> None:
    stage, row = shown(store, page, fox)
    whole = ScreenshotsAnswer(prompt="", inputs=[], outputs=[[0, 0, 1000, 1000]])
    rows = list(stage.finish(table(row), [[whole]]).to_pylist())
    (made,) = kept(rows)

    assert (made["screenshot"], made["output_images"]) == (None, [page, fox])
    assert (made["doubts"], made["is_screenshot"], noted(rows)) == ([], False, [])
    assert json.loads(made["provenance"])["screenshots"]["single"] == page


def test_what_is_cut_out_of_it_takes_its_place(store: ImageStore, page: str, fox: str) -> None:
    stage, row = shown(store, page, fox)
    halves = ScreenshotsAnswer(prompt="", inputs=[[0, 0, 1000, 480]], outputs=[[0, 500, 1000, 990]])
    (made,) = kept(list(stage.finish(table(row), [[halves]]).to_pylist()))

    assert (len(made["input_images"]), made["output_images"][1:]) == (1, [fox])
    assert page not in made["output_images"]
    assert (made["is_screenshot"], made["doubts"]) == (True, [])


def test_one_that_nobody_takes_apart_is_doubted(store: ImageStore, page: str, fox: str) -> None:
    stage, row = shown(store, page, fox)
    nothing = ScreenshotsAnswer(prompt="", inputs=[], outputs=[])
    (made,) = kept(list(stage.finish(table(row), [[nothing]]).to_pylist()))
    assert made["doubts"] == ["screenshot_whole"]


def test_only_of_a_suspected_one_is_asked_whether_it_is_one_image(
    store: ImageStore, page: str, fox: str
) -> None:
    """Requests about other screenshots keep their words, and with them their stored answers."""
    stage, row = shown(store, page, fox)
    ((asked,),) = stage.requests(table(row))
    named = {**row, "provenance": json.dumps({"roles": {}})}
    ((plain,),) = stage.requests(table(named))

    (words_of_suspected,), (words_of_others,) = (
        [one.text for one in request.messages[-1].parts[1:] if isinstance(one, Text)]
        for request in (asked, plain)
    )
    words = BOX_INSTRUCTIONS[Convention.REL_1000]
    assert words_of_suspected == f"{words}\n{SUSPECTED_SHEET_NOTE}\nThe screenshot:"
    assert words_of_others == f"{words}\nThe screenshot:"
