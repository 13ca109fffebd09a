"""Places on an axis, against arithmetic by hand."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from echo_hf.report.charts import UNIT, Scale, round_scale

NUMBERS = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20)


@pytest.mark.parametrize(
    ("value", "place"), [(0, "0%"), (0.5, "50%"), (1 / 3, "33.33%"), (1, "100%"), (7, "100%")]
)
def test_places_on_the_unit_axis(value: float, place: str) -> None:
    """The axis of win rates goes from 0 to 1, and nothing is drawn beyond it."""
    assert UNIT.percent(value) == place


@pytest.mark.parametrize(
    ("values", "ticks", "digits"),
    [
        ([3, 28.8], (0, 10, 20, 30), 0),
        ([0.2, 0.95], (0, 0.25, 0.5, 0.75, 1), 2),
        ([1000], (0, 250, 500, 750, 1000), 0),
        ([-4, 4], (-4, -2, 0, 2, 4), 0),
        ([0.031], (0, 0.01, 0.02, 0.03, 0.04), 2),
        ([], (0, 0.25, 0.5, 0.75, 1), 2),
        ([0, 0], (0, 0.25), 2),
    ],
)
def test_round_ticks(values: list[float], ticks: tuple[float, ...], digits: int) -> None:
    """Ticks are round numbers and few, and are named with as many decimals as they have."""
    scale = round_scale(values)
    assert scale.ticks == pytest.approx(ticks)
    assert scale.digits == digits


@pytest.mark.parametrize(
    ("counts", "ticks"),
    [([2, 1], (0, 1, 2)), ([1], (0, 1)), ([9], (0, 5, 10)), ([88], (0, 25, 50, 75, 100))],
)
def test_counts_have_whole_ticks(counts: list[float], ticks: tuple[float, ...]) -> None:
    """There is no half of a sample."""
    assert round_scale(counts, whole=True).ticks == ticks


@given(NUMBERS)
def test_every_number_is_on_its_axis(values: list[float]) -> None:
    """An axis holds all its numbers, has at most seven ticks, and names them apart."""
    assume(max(map(abs, values)) > 1e-6)
    scale = round_scale(values)
    room = 1e-6 * max(map(abs, values))
    assert scale.low <= min(values) + room
    assert scale.high >= max(values) - room
    assert 2 <= len(scale.ticks) <= 7
    names = [f"{tick:.{scale.digits}f}" for tick in scale.ticks]
    assert len(set(names)) == len(names)


def test_an_axis_that_does_not_begin_at_zero() -> None:
    """Ranks begin at 1."""
    places = Scale(0.5, 4.5, (1, 2, 3, 4))
    assert places.percent(1) == "12.5%"
    assert places.percent(4) == "87.5%"
