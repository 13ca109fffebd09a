"""The page of the Space: what visitors paste becomes win rates, or one line that says why not."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from echo_hf.hub.metric_space import app
from echo_hf.hub.metric_space.app import EXAMPLE, MAX_CHARACTERS, compute_win_rates
from tests.apps.browser import space

ALL_DIFFERENT = [
    {"sample_id": f"s{n}", "system": f"a{n}", "judge": f"j{n}", "rating": 1} for n in range(100)
]


@pytest.fixture(autouse=True)
def _own_evaluate_cache(load_measure: Callable[..., Any]) -> None:
    """What the page loads goes to the tests' cache."""


def test_the_example_gives_its_win_rates() -> None:
    """One won, one tied: 0.75, by hand."""
    assert compute_win_rates(EXAMPLE)["win_rate"] == {"mine": 0.75, "theirs": 0.25}


@pytest.mark.parametrize(
    ("pasted", "expected"),
    [
        ("[", "Expecting value"),
        ("[" * 200_000, "recursion"),
        ("3", "'int': expected a list of ratings"),
        ("[3]", "row 0 is 3: expected a dict"),
        (json.dumps(ALL_DIFFERENT), "samples is 100000000: expected at most 20000000 here"),
        ('[{"sample_id": "a"}]', "row 0 is {'sample_id': 'a'}: expected"),
        (json.dumps([{**json.loads(EXAMPLE)[0], "rating": 1e999}]), "expected a finite number"),
        (EXAMPLE.replace("8", "1" + "0" * 400), "ratings: not a table with one type a column: "),
        (" " * (MAX_CHARACTERS + 1), f"{MAX_CHARACTERS + 1} letters: expected at most"),
    ],
)
def test_what_cannot_be_rated_is_one_line(pasted: str, expected: str) -> None:
    found = compute_win_rates(pasted)
    assert list(found) == ["error"]
    assert expected in found["error"]
    assert "\n" not in found["error"]


@pytest.mark.extras
@pytest.mark.skipif(find_spec("gradio") is None, reason="the page needs gradio")
def test_the_page_answers(tmp_path: Path) -> None:
    with space(Path(app.__file__), {**os.environ, "HF_HOME": str(tmp_path)}) as address:
        called = f"{address.rstrip('/')}/gradio_api/call/win_rates"
        event = json.loads(_posted(called, {"data": [EXAMPLE]}))["event_id"]
        assert '"win_rate": {"mine": 0.75, "theirs": 0.25}' in _posted(f"{called}/{event}")


def _posted(address: str, value: Any = None) -> str:
    data = None if value is None else json.dumps(value).encode()
    asked = Request(address, data, {"Content-Type": "application/json"})  # noqa: S310 - our own
    with urlopen(asked, timeout=30) as answer:  # noqa: S310 - our own
        said: bytes = answer.read()
    return said.decode()
