"""Charts: where marks lie, against places computed here."""

from __future__ import annotations

import math
import re
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from echo_hf.report import markup as charts
from echo_hf.report.markup import UNIT, AxisScale, make_environment, places, round_scale

SVG = "{http://www.w3.org/2000/svg}"
AROUND_ZERO = AxisScale(-1, 1, (-1, 0, 1))
DRAW: Any = make_environment().globals["charts"]


def _parsed(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text.split("?>\n")[-1])  # noqa: S314 - a drawing of our own


def test_a_point_with_its_interval() -> None:
    drawn = _parsed(DRAW.plot(DRAW.point(UNIT, 0.7, (0.6, 0.85)), scale=UNIT, at=0.5))
    (dot,) = drawn.iter("circle")
    lines = {line.get("class"): (line.get("x1"), line.get("x2")) for line in drawn.iter("line")}
    assert dot.get("cx") == "70%"
    assert (lines["whisker"], lines["reference"]) == (("60%", "85%"), ("50%", "50%"))
    assert drawn.get("aria-hidden") == "true"
    assert DRAW.point(UNIT, None, None) == DRAW.extent(UNIT, None) == ""
    assert 'x1="25%" x2="75%"' in DRAW.extent(UNIT, (0.25, 0.75))
    assert 'cx="25%"' in DRAW.extent(UNIT, (0.25, 0.25))  # a range may be one place


def test_bars_begin_at_zero_and_ticks_are_named() -> None:
    bars = [_parsed(DRAW.bar(AROUND_ZERO, value)) for value in (0.4, -0.4, 0.0)]
    found = [(one.get("x"), one.get("width")) for one in bars]
    assert found == [("50%", "20%"), ("30%", "20%"), ("50%", "0%")]
    texts = list(_parsed(DRAW.axis(AROUND_ZERO)).iter("text"))
    named = [(one.text, one.get("x"), str(one.get("class")).split()[1:]) for one in texts]
    assert named == [("−1", "0%", ["start"]), ("0", "50%", ["between"]), ("1", "100%", ["end"])]


def test_a_density_is_highest_at_one_and_claims_nothing_a_step_beyond_the_numbers() -> None:
    heights = charts.estimate_density([0.42, 0.5, 0.58], 0.0, 1.0)
    assert max(heights) == heights[40] == 1
    assert [bool(one) for one in heights] == [33 <= at <= 47 for at in range(81)]


def test_a_shape_is_as_high_above_as_below() -> None:
    (path,) = _parsed(DRAW.distribution(UNIT, [at / 12 for at in range(12)])).iter("path")
    heights = [float(y) for y in re.findall(r",([\d.]+)", str(path.get("d")))]
    half = len(heights) // 2
    pairs = zip(heights[:half], reversed(heights[half:]), strict=True)
    assert all(math.isclose(up + down, 26, abs_tol=0.11) for up, down in pairs)
    assert 2 <= min(heights) <= max(heights) <= 24
    for values in ([0.5] * 12, [0.1, 0.2]):
        assert DRAW.distribution(UNIT, values).count('class="faint"') == len(values)


def test_histograms_and_points_of_a_map() -> None:
    shares = [0.5] + [0.0] * 99 + [0.3] + [0.0] * 154 + [0.2]
    assert charts.find_highest([shares, [1 / 256] * 256, shares]) == 0.3
    first, *_ = _parsed(DRAW.histogram([shares] * 3, 0.3)).iter("path")
    assert "397,0.0" in str(first.get("d"))  # step 25 of 63, at the upper edge
    drawn = DRAW.scatter({"a": [(0, 5), (10, 9)]}, "a <map>")
    assert 'd="M12.0,388.0h0M628.0,12.0h0"' in drawn
    assert 'aria-label="a &lt;map&gt;"' in drawn


def test_printed_bars() -> None:
    drawn = _parsed(charts.draw_bars("Win <rate>", [("a<b", 0.25, (0.2, 0.3)), ("c", 1, None)]))
    bars = [one for one in drawn.iter(f"{SVG}rect") if one.get("class") == "mark"]
    assert [float(str(one.get("height"))) for one in bars] == [47.5, 190.0]
    (whisker,) = (str(one.get("d")) for one in drawn.iter(f"{SVG}path"))
    low, high = (float(one) for one in re.findall(r"M73,([\d.]+)V([\d.]+)", whisker)[0])
    assert (low, high) == (34 + 190 * 0.8, 34 + 190 * 0.7)
    assert "a<b" in [one.text for one in drawn.iter(f"{SVG}text")]


def test_printed_boxes() -> None:
    drawn = _parsed(charts.draw_boxes("metric", [("a", [0, 1, 2, 3, 4])]))
    (box,) = [one for one in drawn.iter(f"{SVG}rect") if one.get("class") == "box"]
    per_unit = 190 / 4
    assert float(str(box.get("y"))) == 34 + per_unit
    assert float(str(box.get("height"))) == 2 * per_unit
    path = next(str(one.get("d")) for one in drawn.iter(f"{SVG}path"))
    assert f",{34 + 2 * per_unit}h32" in path


def test_charts_for_print_are_whole_documents() -> None:
    name = "</style><script>1</script>\x00\ud800"
    text = charts.draw_bars(name, [(name, 0.5, None)], name)
    text.encode("utf-8")
    assert not list(_parsed(text).iter(f"{SVG}script"))
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


def test_places_on_an_axis() -> None:
    """By hand; nothing is drawn beyond the axis, and ranks begin at 1."""
    assert [UNIT.percent(value) for value in (0, 1 / 3, 7)] == ["0%", "33.33%", "100%"]
    assert [places(4).percent(value) for value in (1, 4)] == ["12.5%", "87.5%"]


@pytest.mark.parametrize(
    ("values", "whole", "ticks", "digits"),
    [
        ([3, 28.8], False, (0, 10, 20, 30), 0),
        ([0.2, 0.95], False, (0, 0.25, 0.5, 0.75, 1), 2),
        ([1000], False, (0, 250, 500, 750, 1000), 0),
        ([-4, 4], False, (-4, -2, 0, 2, 4), 0),
        ([0.031], False, (0, 0.01, 0.02, 0.03, 0.04), 2),
        ([], False, (0, 0.25, 0.5, 0.75, 1), 2),
        ([0, 0], False, (0, 0.25), 2),
        ([2, 1], True, (0, 1, 2), 0),  # there is no half of a sample
        ([1], True, (0, 1), 0),
        ([9], True, (0, 5, 10), 0),
        ([88], True, (0, 25, 50, 75, 100), 0),
    ],
)
def test_round_ticks(
    values: list[float], whole: bool, ticks: tuple[float, ...], digits: int
) -> None:
    scale = round_scale(values, whole=whole)
    assert scale.ticks == pytest.approx(ticks)
    assert scale.digits == digits


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
def test_every_number_is_on_its_axis(values: list[float]) -> None:
    largest = max(map(abs, values))
    assume(largest > 1e-6)
    scale = round_scale(values)
    assert scale.low - 1e-6 * largest <= min(values) <= max(values) <= scale.high + 1e-6 * largest
    assert 2 <= len(scale.ticks) <= 7
    assert len({f"{tick:.{scale.digits}f}" for tick in scale.ticks}) == len(scale.ticks)
