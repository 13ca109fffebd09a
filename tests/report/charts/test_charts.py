"""Charts: where marks lie, against places computed here."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from xml.etree import ElementTree

import numpy as np
import pytest

from echo_hf.report.charts import (
    UNIT,
    Scale,
    axis,
    bar,
    density,
    distribution,
    grouped,
    highest,
    histogram,
    plot,
    point,
    points,
    printed_bars,
    printed_boxes,
)
from echo_hf.report.markup import joined

SVG = "{http://www.w3.org/2000/svg}"


def _parsed(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)  # noqa: S314 - a drawing of our own


def test_a_point_with_its_interval() -> None:
    """The dot is at the number, the whisker from end to end, the reference at one half."""
    drawn = _parsed(plot(point(UNIT, 0.7, (0.6, 0.85)), scale=UNIT, at=0.5))
    (dot,) = drawn.iter("circle")
    assert dot.get("cx") == "70%"
    lines = {line.get("class"): line for line in drawn.iter("line")}
    assert (lines["whisker"].get("x1"), lines["whisker"].get("x2")) == ("60%", "85%")
    assert lines["reference"].get("x1") == "50%"
    assert drawn.get("aria-hidden") == "true"


def test_no_number_no_mark() -> None:
    """A system without a rate has an empty row."""
    assert point(UNIT, None, None) == ""


@pytest.mark.parametrize(
    ("value", "start", "width"), [(0.4, "50%", "20%"), (-0.4, "30%", "20%"), (0.0, "50%", "0%")]
)
def test_bars_begin_at_zero(value: float, start: str, width: str) -> None:
    """A bar reaches from zero to its number, to whichever side that is."""
    drawn = _parsed(bar(Scale(-1, 1, (-1, 0, 1)), value))
    assert (drawn.get("x"), drawn.get("width")) == (start, width)


def test_ticks_are_named() -> None:
    """Each tick has its name, with a real minus sign; every second may be left out."""
    drawn = _parsed(axis(Scale(-1, 1, (-1, 0, 1))))
    texts = list(drawn.iter("text"))
    assert [text.text for text in texts] == ["−1", "0", "1"]
    assert [text.get("x") for text in texts] == ["0%", "50%", "100%"]
    assert ["between" in str(text.get("class")) for text in texts] == [False, True, False]


def _gaussian_density(values: Sequence[float], at: float) -> float:
    """Scott's rule and the normal density, written out."""
    mean = sum(values) / len(values)
    deviation = math.sqrt(sum((one - mean) ** 2 for one in values) / (len(values) - 1))
    width = deviation * len(values) ** -0.2
    return sum(math.exp(-((at - one) ** 2) / (2 * width**2)) for one in values)


def test_the_density_is_that_of_the_numbers() -> None:
    """Heights are a kernel density divided by its highest point."""
    values = [0.1, 0.2, 0.25, 0.7, 0.9]
    places = np.linspace(0.1, 0.9, 41)
    raw = [_gaussian_density(values, float(at)) for at in places]
    expected = [one / max(raw) for one in raw]
    assert density(values, 0.1, 0.9, 41) == pytest.approx(expected)


def test_a_shape_claims_no_numbers_beyond_its_own() -> None:
    """The curve has no height further out than a step beyond the smallest and largest number."""
    heights = density([0.42, 0.5, 0.58], 0.0, 1.0, 11)
    assert [bool(one) for one in heights] == [at in (4, 5, 6) for at in range(11)]


def test_a_shape_is_as_high_above_as_below() -> None:
    """The outline is symmetric about the middle of the row, and inside it."""
    drawn = _parsed(distribution(UNIT, [0.2, 0.4, 0.5]))
    (path,) = drawn.iter("path")
    heights = [float(y) for y in re.findall(r",([\d.]+)", str(path.get("d")))]
    half = len(heights) // 2
    assert all(
        math.isclose(up + down, 26, abs_tol=0.11)
        for up, down in zip(heights[:half], reversed(heights[half:]), strict=True)
    )
    assert min(heights) >= 2
    assert max(heights) <= 24


def test_histograms_group_levels() -> None:
    """Four levels are a step, and clipped levels at the ends do not squash the rest."""
    shares = [0.5] + [0.0] * 99 + [0.3] + [0.0] * 154 + [0.2]
    assert grouped(shares)[0] == 0.5
    assert grouped(shares)[25] == 0.3
    assert highest([shares, [1 / 256] * 256, shares]) == 0.3
    drawn = _parsed(histogram([shares] * 3, 0.3))
    (first, *_) = [str(path.get("d")) for path in drawn.iter("path")]
    assert "397,0.0" in first  # step 25 of 63, at the upper edge


def test_points_of_a_map() -> None:
    """The corners of the plane lie a margin inside the image, up is up."""
    assert points([(0, 5), (10, 9)], (0, 5, 10, 9)) == "M12.0,388.0h0M628.0,12.0h0"


def test_printed_bars() -> None:
    """A bar is as high as its rate, its whisker reaches from end to end, names are escaped."""
    text = printed_bars("Win <rate>", [("a<b", 0.25, (0.2, 0.3)), ("c", 1.0, None)])
    drawn = _parsed(text.split("\n", 1)[1])
    bars = [one for one in drawn.iter(f"{SVG}rect") if one.get("class") == "mark"]
    assert [float(str(one.get("height"))) for one in bars] == [47.5, 190.0]
    (whisker,) = (str(one.get("d")) for one in drawn.iter(f"{SVG}path"))
    low, high = (float(one) for one in re.findall(r"M73\.0,([\d.]+)V([\d.]+)", whisker)[0])
    assert (low, high) == (34 + 190 * 0.8, 34 + 190 * 0.7)
    assert "a<b" in [one.text for one in drawn.iter(f"{SVG}text")]


def test_printed_boxes() -> None:
    """A box reaches from quartile to quartile, with its line at the median."""
    text = printed_boxes("metric", [("a", [0, 1, 2, 3, 4])])
    drawn = _parsed(text.split("\n", 1)[1])
    (box,) = [one for one in drawn.iter(f"{SVG}rect") if one.get("class") == "box"]
    per_unit = 190 / 4
    assert float(str(box.get("y"))) == 34 + per_unit
    assert float(str(box.get("height"))) == 2 * per_unit
    path = next(str(one.get("d")) for one in drawn.iter(f"{SVG}path"))
    assert f",{34 + 2 * per_unit}h32" in path


def test_charts_for_print_are_whole_documents() -> None:
    """Nothing is fetched, and a hostile name breaks nothing."""
    name = "</style><script>1</script>\x00\ud800"
    text = printed_bars(name, [(name, 0.5, None)])
    text.encode("utf-8")
    drawn = _parsed(text.split("\n", 1)[1])
    assert not list(drawn.iter(f"{SVG}script"))
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "")
    assert joined(name).count("<") == 0
