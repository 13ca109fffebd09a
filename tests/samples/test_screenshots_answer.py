"""The shape of an answer about a screenshot: bounded, and forgiving where nothing is lost."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from echo_hf.samples.screenshots import MOST_BOXES, ScreenshotsAnswer
from echo_hf.samples.thread_parts import LONGEST_PROMPT

EMPTY: dict[str, Any] = {"prompt": "", "inputs": [], "outputs": []}


@pytest.mark.parametrize(
    "changed",
    [
        {"prompt": "x" * (LONGEST_PROMPT + 1)},
        {"prompt": 3},
        {"inputs": [[1, 2, 3]]},
        {"inputs": [[1, 2, 3, 4, 5]]},
        {"inputs": [[1, 2, 3, "right"]]},
        {"inputs": [[1, 2, 3, 1e9]]},
        {"inputs": [[1, 2, 3, float("nan")]]},
        {"outputs": [[1, 2, 3, float("-inf")]]},
        {"outputs": [[1, 2, 3, 4]] * (MOST_BOXES + 1)},
        {"outputs": None},
    ],
    ids=lambda changed: str(changed)[:40],
)
def test_what_is_beyond_the_bounds_is_refused(changed: dict[str, Any]) -> None:
    """Every field has a largest value, and every box four numbers."""
    ScreenshotsAnswer.model_validate(EMPTY)
    with pytest.raises(ValidationError):
        ScreenshotsAnswer.model_validate({**EMPTY, **changed})


@pytest.mark.parametrize("name", ["inputs", "outputs"])
def test_boxes_are_never_left_out(name: str) -> None:
    """None is an empty list: a forgotten one is an answer that cannot be used."""
    with pytest.raises(ValidationError, match=name):
        ScreenshotsAnswer.model_validate({key: EMPTY[key] for key in EMPTY if key != name})


def test_nothing_typed_and_nothing_read_are_two_things() -> None:
    """An empty prompt says that there is none; a missing one says nothing."""
    read = ScreenshotsAnswer.model_validate_json('{"inputs": [], "outputs": [[0, 1.5, 2, 3]]}')
    assert (read.prompt, read.outputs) == (None, [[0, 1.5, 2, 3]])
    assert ScreenshotsAnswer.model_validate({**EMPTY, "why": "so"}).prompt == ""
