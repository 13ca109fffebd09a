"""What models are asked, word for word: no change of it goes unseen."""

from __future__ import annotations

import dataclasses

import pytest

from echo_hf.builder.steps import STAGES as ALL_STAGES
from echo_hf.builder.steps import stage_class
from echo_hf.pipeline.answer_store import request_keys
from echo_hf.pipeline.stage import ModelStage
from tests.golden_requests import FOLDER, OTHERS, STAGES, golden_requests, rendered

NAMES = sorted(golden_requests())
JUDGING = {"judge", "applicability"}  # which are no stages of a build
HOW = "what models are asked has changed: look at it, then run `python scripts/write_requests.py`"


def test_every_stage_that_asks_a_model_has_its_file() -> None:
    asking = [name for name in ALL_STAGES if issubclass(stage_class(name), ModelStage)]

    assert list(STAGES) == asking
    assert {name.partition("_")[0] for name in NAMES} == {*asking, *OTHERS, *JUDGING}
    assert sorted(file.stem for file in FOLDER.iterdir()) == NAMES, HOW


@pytest.mark.parametrize("name", NAMES)
def test_the_request_is_the_one_that_was_looked_at(name: str) -> None:
    """It says which row it is about, which its key does not depend on."""
    asked = golden_requests()[name]
    assert rendered(asked) == (FOLDER / f"{name}.txt").read_text("utf-8"), HOW
    other = dataclasses.replace(asked, row="another", part=asked.part + 1)
    assert asked.row
    assert request_keys({}, [asked]) == request_keys({}, [other])
