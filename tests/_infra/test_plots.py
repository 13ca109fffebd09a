"""Results as data frames and as plots: what a plot shows is what the frame holds."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest

from echo_hf._infra.bootstrap import Unscored
from echo_hf.errors import MissingExtraError
from echo_hf.images.loader import BadImage
from echo_hf.metrics import MetricResult, TextRenderingResult, Unmeasured
from echo_hf.metrics.result import MetricReason
from echo_hf.scores import Board, BradleyTerry, Sensitivity, Tiers, WinRate

NAN = math.nan
FEW, UNRATED = Unscored.FEW_SAMPLES, Unscored.NOT_RATED
# Ash's bar does not hold its point, as that of a drawn distance may not.
RATES = {"cedar": 0.75, "ash": 0.5, "birch": 0.25, "dogwood": None}
INTERVALS = {"cedar": (0.625, 0.875), "ash": (0.5625, 0.625), "birch": None, "dogwood": None}
REASONS = {"birch": FEW, "dogwood": UNRATED}


def win_rates(**others: Any) -> WinRate:
    errors = {"cedar": 0.0625, "ash": 0.03125, "birch": None, "dogwood": None}
    coverage = {"dogwood": 0.0, "birch": 0.125, "ash": 1.0, "cedar": 1.0}
    known: dict[str, Any] = {one.name: {} for one in fields(WinRate)}
    known |= {"win_rate": RATES, "interval": INTERVALS, "standard_error": errors}
    return WinRate(**{**known, "coverage": coverage, "reasons": REASONS, **others})


def board(protocol: str | None, **ranks: int | None) -> Board:
    return Board("majority", "half", "opponents", protocol, dict.fromkeys(ranks), ranks)  # type: ignore[arg-type]


STRENGTHS = BradleyTerry({"ash": 1.5, "birch": -1.5}, {"ash": (1.0, 2.0), "birch": None},
                         {"birch": Unscored.UNBOUNDED}, {})  # fmt: skip
TIERS = Tiers((("ash", "birch"), ("cedar",)), ("dogwood",), {},
              {"ash": 0.75, "birch": 0.5, "cedar": 0.25, "dogwood": None}, {})  # fmt: skip
BOARDS = (board(None, a=3, b=1, c=2), board("corrected", a=1, b=2, c=3))
RANKS = Sensitivity(BOARDS, {"a": (1, 3), "b": (1, 2), "c": (2, 3)}, (), {})
MISSING, BLANK = MetricReason.MISSING_OUTPUT, MetricReason.BLANK_OUTPUT
WHY = (None, Unmeasured(MISSING), None, Unmeasured(BLANK, BadImage.HTML, "output"), None, None)


def measured(**others: Any) -> MetricResult:
    known: dict[str, Any] = {
        "value": 3.0,
        "per_sample": (1.0, None, 2.0, None, 2.0, 5.0),
        "interval": (2.0, 4.5),
        "n": 4,
        "coverage": 4 / 6,
        "reasons": WHY,
        "definition": {"metric": "color_shift", "direction": "lower is better"},
    }
    return MetricResult(**{**known, **others})


SAMPLES: dict[str, list[Any]] = {
    "value": [1.0, NAN, 2.0, NAN, 2.0, 5.0],
    "reason": [None, "missing_output", None, "blank_output", None, None],
    "cause": [None, None, None, "html", None, None],
    "detail": [None, "", None, "output", None, None],
}
NAMED: dict[str, Any] = {"sample_ids": tuple("abcdef"), "per_judge": {}, "off_scale": 0}
FRAMES: list[tuple[Any, dict[str, list[Any]]]] = [
    (
        win_rates(),
        {
            "system": ["cedar", "ash", "birch", "dogwood"],
            "win_rate": [0.75, 0.5, 0.25, NAN],
            "low": [0.625, 0.5625, NAN, NAN],
            "high": [0.875, 0.625, NAN, NAN],
            "standard_error": [0.0625, 0.03125, NAN, NAN],
            "coverage": [1.0, 1.0, 0.125, 0.0],
            "reason": [None, None, "few_samples", "not_rated"],
        },
    ),
    (
        STRENGTHS,
        {
            "system": ["ash", "birch"],
            "strength": [1.5, -1.5],
            "low": [1.0, NAN],
            "high": [2.0, NAN],
            "reason": [None, "unbounded"],
        },
    ),
    (
        TIERS,
        {
            "system": ["ash", "birch", "cedar", "dogwood"],
            "win_rate": [0.75, 0.5, 0.25, NAN],
            "tier": [1, 1, 2, NAN],
        },
    ),
    (RANKS, {"system": [*"abc"], "rank": [1, 2, 3], "low": [1, 1, 2], "high": [3, 2, 3]}),
    (measured(), SAMPLES),
    (TextRenderingResult(**vars(measured()), **NAMED), {"sample_id": [*"abcdef"], **SAMPLES}),
]


@pytest.mark.parametrize(("result", "expected"), FRAMES)
def test_a_frame_has_a_row_for_each_system_or_sample(
    result: Any, expected: dict[str, list[Any]]
) -> None:
    found = result.to_pandas()
    assert list(found.columns) == list(expected)
    for name, values in expected.items():
        for one, other in zip(found[name], values, strict=True):
            assert one == other or (one != one and other != other), (name, one, other)


@pytest.mark.parametrize("result", [win_rates(), measured()], ids=["scores", "metrics"])
def test_without_matplotlib_the_extra_is_named(
    result: WinRate | MetricResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        MissingExtraError, match=r'^plot needs .*: pip install "echo-hf\[plot\]", or'
    ):
        result.plot()


def test_what_is_null_for_all_is_still_a_number() -> None:
    none = dict.fromkeys(RATES)
    frame = win_rates(win_rate=none, interval=none).to_pandas()
    assert {str(frame[name].dtype) for name in ("win_rate", "low", "high")} == {"float64"}


@pytest.fixture
def pyplot() -> Iterator[Any]:
    """Matplotlib's figures, none of which stays open."""
    reason = "needs matplotlib: see `make test-extras`"
    yield (found := pytest.importorskip("matplotlib.pyplot", reason=reason))
    found.close("all")


def bars(ax: Any) -> list[tuple[float, float, float]]:
    (drawn,) = ax.collections
    return [(y, low, high) for (low, y), (high, _) in drawn.get_segments()]


def points(ax: Any) -> list[tuple[float, float]]:
    return [(y, x) for x, y in ax.lines[0 if len(ax.lines) == 1 else 1].get_xydata()]


def names(ax: Any) -> list[str]:
    ax.figure.canvas.draw()
    drawn = sorted(ax.get_yticklabels(), key=lambda one: -one.get_window_extent().y0)
    return [one.get_text() for one in drawn]


@pytest.mark.extras
@pytest.mark.parametrize("result", [win_rates(), STRENGTHS, TIERS, RANKS])
def test_points_and_bars_are_those_of_the_frame(
    pyplot: Any, result: WinRate | BradleyTerry | Tiers | Sensitivity
) -> None:
    given = pyplot.subplots()[1]
    ax, frame = result.plot(given), result.to_pandas()
    assert ax is given
    value = frame.columns[1]
    known = frame[frame[value].notna()]
    assert points(ax) == list(enumerate(known[value]))
    low = known["low"] if "low" in known else known[value] * NAN
    assert bars(ax) == [
        (at, one, known["high"][at]) for at, one in enumerate(low) if not math.isnan(one)
    ]


@pytest.mark.extras
def test_the_best_is_on_top_and_who_is_missing_is_said(pyplot: Any) -> None:
    ax = win_rates().plot()
    assert names(ax) == ["cedar", "ash", "birch"]
    meaning, level, *missing = ax.get_xlabel().splitlines()
    assert meaning.startswith("win rate")
    assert meaning.endswith("higher is better")
    assert level == "bar: 95 % interval"
    assert missing == ["no interval (few samples): birch", "not rated: dogwood"]
    assert names(TIERS.plot()) == ["ash (tier 1)", "birch (tier 1)", "cedar (tier 2)"]
    assert TIERS.plot().get_xlabel().splitlines()[1:] == ["no win rate: dogwood"]
    assert "from the best to the worst rank" in RANKS.plot().get_xlabel()


@pytest.mark.extras
def test_names_are_drawn_as_they_stand(pyplot: Any) -> None:
    strange = [r"a$\frac$", "b_{c}"]
    missing = dict.fromkeys(f"unrated-system-{number}" for number in range(30))
    rates = {**dict.fromkeys(strange, 0.5), **missing}
    ax = win_rates(win_rate=rates, interval={}, reasons=dict.fromkeys(missing, UNRATED)).plot()
    assert names(ax) == strange
    assert set(missing) <= set(ax.get_xlabel().replace(",", "").split())
    box, page = ax.xaxis.label.get_window_extent(), ax.figure.bbox
    assert page.x0 <= box.x0 < box.x1 <= page.x1


@pytest.mark.extras
def test_a_metric_shows_each_sample_and_the_value_above_them(pyplot: Any) -> None:
    ax = measured().plot()
    heights = {round(one.get_x(), 1): one.get_height() for one in ax.patches if one.get_height()}
    assert heights == {1.0: 1, 2.0: 2, 4.8: 1}
    ((height, place),) = points(ax)
    assert place == 3.0
    assert 2 < height < ax.get_ylim()[1]
    assert bars(ax) == [(height, 2.0, 4.5)]
    assert ax.get_xlabel().splitlines() == [
        "color_shift of a sample, lower is better",
        "point: value of 4 samples; bar: 95 % interval",
        "blank output: 1",
        "missing output: 1",
    ]


@pytest.mark.extras
def test_nothing_to_draw_is_an_empty_plot_that_says_so(pyplot: Any) -> None:
    none = dict.fromkeys(RATES)
    ax = win_rates(win_rate=none, interval=none, reasons=dict.fromkeys(none, UNRATED)).plot()
    assert (points(ax), bars(ax)) == ([], [])
    assert ax.get_xlabel().endswith("not rated: cedar, ash, birch, dogwood")
    empty = measured(value=None, interval=None, n=0, per_sample=(None,) * 6).plot()
    assert "no value" in empty.get_xlabel().splitlines()
    assert "no interval" in measured(interval=None).plot().get_xlabel()
