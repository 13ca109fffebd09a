"""The page of the Space: what visitors paste becomes win rates, or one line that says why not."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from echo_hf.hub.metric_space.app import EXAMPLE, MOST_LETTERS, main, win_rates


@pytest.fixture(autouse=True)
def _own_evaluate_cache(load_measure: Callable[..., Any]) -> None:
    """What the page loads goes to the tests' cache."""


def test_the_example_gives_its_win_rates() -> None:
    """One won, one tied: 0.75, by hand."""
    assert win_rates(EXAMPLE)["win_rate"] == {"mine": 0.75, "theirs": 0.25}


@pytest.mark.parametrize(
    ("pasted", "expected"),
    [
        ("[", "Expecting value"),
        ("[" * 200_000, "recursion"),
        ("3", "'int' is not a table"),
        ('[{"sample_id": "a"}]', "row 0 has no 'system'"),
        (json.dumps([{**json.loads(EXAMPLE)[0], "rating": 1e999}]), "expected a finite number"),
        (" " * (MOST_LETTERS + 1), f"{MOST_LETTERS + 1} letters: expected at most"),
    ],
)
def test_what_cannot_be_rated_is_one_line(pasted: str, expected: str) -> None:
    """Strangers paste anything; nothing of it stops the page."""
    found = win_rates(pasted)
    assert list(found) == ["error"]
    assert expected in found["error"]
    assert "\n" not in found["error"]


def test_the_page_is_made_of_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gradio shows the example, and calls the function with what stands in its place."""
    gradio = pytest.importorskip("gradio", reason="the page needs gradio")
    shown: list[Any] = []
    monkeypatch.setattr(gradio.Interface, "launch", shown.append)
    main()
    (page,) = shown
    assert page.fn is win_rates
    assert page.input_components[0].value == EXAMPLE
