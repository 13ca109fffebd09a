"""Rows of a run's tables as the report has them."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from echo_hf.report.parts import strip
from echo_hf.report.run_data import Output, ReportSample, outputs_of, ratings_of
from echo_hf.tables import OUTPUTS, RATINGS


def _row(table: object, **values: object) -> dict[str, object]:
    return {**dict.fromkeys(table.columns), **values}  # type: ignore[attr-defined]


@pytest.mark.parametrize("value", [math.nan, math.inf, None])
def test_what_is_no_number_is_no_rating(value: float | None) -> None:
    """NaN and infinity, which JSON cannot hold, are ratings without a number."""
    row = _row(RATINGS, sample_id="s", system="a", judge="j", rubric="overall", repeat=0)
    rows = pa.Table.from_pylist([{**row, "rating": value}], RATINGS.schema)
    assert ratings_of(rows)["s"][0].value is None


def test_ratings_come_in_one_order() -> None:
    """Rubric, system, judge and repeat decide the order, not the order of rows."""
    keys = [("overall", "b", "j", 0), ("overall", "a", "k", 0), ("overall", "a", "j", 1)]
    names = ("rubric", "system", "judge", "repeat")
    rows = [_row(RATINGS, sample_id="s", **dict(zip(names, key, strict=True))) for key in keys]
    found = ratings_of(pa.Table.from_pylist(rows, RATINGS.schema))["s"]
    assert [(one.rubric, one.system, one.judge, one.repeat) for one in found] == sorted(keys)


def test_where_and_why_an_output_ended() -> None:
    """Stage and code make the reason; an image has none."""
    rows = [
        _row(OUTPUTS, sample_id="s", system="a", outcome="refused", stage="output", code="nsfw"),
        _row(OUTPUTS, sample_id="s", system="b", outcome="ok", image="0" * 64),
    ]
    found = outputs_of(pa.Table.from_pylist(rows, OUTPUTS.schema))
    assert found["s", "a"] == Output(None, "refused", "output, nsfw", None)
    assert found["s", "b"] == Output("0" * 64, "ok", None, None)


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (None, "<b>not tried</b>"),
        (Output(None, "refused", "output, nsfw"), "<b>refused</b><span>output, nsfw</span>"),
        (Output(None, "ok"), "<b>no image</b>"),
        (Output("0" * 64, "ok"), "<b>cannot be shown</b>"),
    ],
)
def test_an_output_without_an_image_is_a_card(output: Output | None, said: str) -> None:
    """In the place of an image stands why there is none."""
    outputs = {} if output is None else {("s", "a"): output}
    sample = ReportSample(id="s", split="text_to_image", prompt="x")
    assert f'<div class="missing">{said}</div>' in strip(sample, ["a"], outputs, {}, {})
