"""`results.json` becomes one row a figure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from echo_hf.errors import RunError
from echo_hf.hub.run_tables import read_results
from echo_hf.tables import RESULTS

WIN_RATE = {
    "metric": "win_rate",
    "protocol": "corrected",
    "split": "text_to_image",
    "system": "b",
    "value": 0.71,
    "low": 0.66,
    "high": 0.75,
    "n": 848,
    "coverage": 0.99,
    "definition": {"missing": "exclude", "judges": ["雨"]},
}
COLOR_SHIFT = {**WIN_RATE, "metric": "color_shift", "value": None, "definition": None}


def written(path: Path, data: Any) -> Path:
    """A file with this content."""
    (path / "results.json").write_text(json.dumps(data), "utf-8")
    return path / "results.json"


def test_every_figure_is_a_row(tmp_path: Path) -> None:
    """In the order of the key, definitions as JSON, other keys of the file not looked at."""
    data = {"results": [WIN_RATE, {**WIN_RATE, "system": "a"}, COLOR_SHIFT], "matrix": [[1]]}
    found = read_results(written(tmp_path, data))
    assert found.features == RESULTS.features
    assert [(row["metric"], row["system"]) for row in found] == [
        ("color_shift", "b"),
        ("win_rate", "a"),
        ("win_rate", "b"),
    ]
    row = found[2]
    assert json.loads(row.pop("definition")) == WIN_RATE["definition"]
    assert row == {name: value for name, value in WIN_RATE.items() if name != "definition"}
    assert (found[0]["value"], found[0]["definition"]) == (None, "null")


def test_no_figure_is_an_empty_table(tmp_path: Path) -> None:
    """A run that scored nothing has the columns and no row."""
    found = read_results(written(tmp_path, {"results": []}))
    assert (len(found), found.features) == (0, RESULTS.features)


@pytest.mark.parametrize(
    ("data", "place"),
    [
        ([], "the file"),
        ({}, "results"),
        ({"results": [{**WIN_RATE, "coverage": 1.5}]}, r"results\.0\.coverage is '1\.5'"),
        ({"results": [{**WIN_RATE, "mood": 1}]}, r"results\.0\.mood"),
        ({"results": [{**WIN_RATE, "value": float("nan")}]}, r"results\.0\.value"),
        ({"results": [{**WIN_RATE, "protocol": "ours"}]}, r"results\.0\.protocol is 'ours'"),
    ],
)
def test_another_shape_is_refused(tmp_path: Path, data: Any, place: str) -> None:
    """One line names the file, the place and the value; nothing is guessed."""
    with pytest.raises(RunError, match=rf"results\.json.*{place}") as raised:
        read_results(written(tmp_path, data))
    assert "\n" not in str(raised.value)
