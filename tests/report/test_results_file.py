"""Figures as the report reads them."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from echo_hf.errors import RunError
from echo_hf.report.results import AgreementFile, Rates, Results, read_figures
from echo_hf.report.run_data import spread, systems_of
from tests.report.run_data_for_tests import ratings_of


def _rates(**rates: float | None) -> Rates:
    every = dict.fromkeys(rates)
    nothing = {"interval": every, "matrix": {}, "pairs": {}, "coverage": {}, "per_judge": {}}
    return Rates.model_validate({"win_rate": rates, **nothing, "definition": {}})


def _with_metric(**values: object) -> bytes:
    metric = {"metric": "color_shift", "system": "anole", **values}
    details = {"a": {"samples": 1, "metrics": [metric]}}
    return json.dumps({"benchmark": {}, "protocol": "corrected", "details": details}).encode()


def test_the_best_comes_first() -> None:
    """The file has systems by name; the board has them by rate, those without one last."""
    assert _rates(a=0.2, b=None, c=0.7, d=0.7).order == ("c", "d", "a", "b")


def test_a_missing_file_is_null(tmp_path: Path) -> None:
    """Agreement is there only where people were asked."""
    assert read_figures(tmp_path / "agreement.json", AgreementFile, "agree") is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"\xff", "the file"),
        (b"{}", "benchmark"),
        (b'{"benchmark": {}, "protocol": "mine", "details": {}}', "protocol is 'mine'"),
        (b'{"benchmark": {}, "protocol": "corrected", "details": {"a": {}}}', "details.a.samples"),
        (_with_metric(metric="../../outside"), "details.a.metrics.0.metric is '../../outside'"),
        (_with_metric(result={"value": math.inf}), "details.a.metrics.0.result.value is 'inf'"),
        (_with_metric(result={"per_sample": [math.nan]}), "result.per_sample.0 is 'nan'"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: bytes, said: str) -> None:
    """A damaged file is one line that names the place, the value and the command to run."""
    path = tmp_path / "results.json"
    path.write_bytes(text)
    with pytest.raises(RunError, match="run `echo-hf score` again") as error:
        read_figures(path, Results, "score")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_systems_without_a_rate_are_not_lost() -> None:
    """A system that drew, but was never rated, comes after those that were."""
    found = Results.model_validate(
        {
            "benchmark": {},
            "protocol": "corrected",
            "results": [
                {"metric": "m", "protocol": "corrected", "split": "s", "system": "zulu"},
                {"metric": "m", "protocol": "corrected", "split": "s", "system": "bravo"},
            ],
            "details": {"s": {"samples": 0}},
        }
    )
    assert systems_of(found, {}) == ("bravo", "zulu")


def test_how_far_ratings_lie_apart() -> None:
    """Each judge's range on its own scale, mean over judges; ratings without a number are none."""
    said = [
        *ratings_of({"a": [9, 7], "b": [2]}, "mira"),
        *ratings_of({"a": [0.5], "b": [None]}, "orin"),
    ]
    assert spread(said, "overall") == (7 + 0) / 2
    assert spread(said, "text_rendering") == 0.0
