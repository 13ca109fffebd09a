"""Worst and best cases against trying every completion."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from itertools import product
from typing import Any, get_args

import pytest
from hypothesis import assume, given

from echo_hf.scores import bounds, win_rate
from echo_hf.scores.votes import Protocol
from tests.scores.ratings_for_tests import SYSTEMS, counted_rates, cubes, one_judge, rows_of

LEAST, MOST = -1.0, 9.0


def completions(cube: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The ratings with every missing one below, among or above all others."""
    gaps = [
        (judge, system, at)
        for judge, systems in cube.items()
        for system, rated in systems.items()
        for at, rating in enumerate(rated)
        if rating is None
    ]
    assume(len(gaps) <= 6)
    for values in product((LEAST, 1.0, MOST), repeat=len(gaps)):
        full = deepcopy(cube)
        for (judge, system, at), value in zip(gaps, values, strict=True):
            full[judge][system][at] = value
        yield full


@pytest.mark.parametrize("protocol", get_args(Protocol))
@given(cube=cubes(samples=3, systems=3))
def test_every_completion_lies_within(protocol: Protocol, cube: dict[str, Any]) -> None:
    """Whatever the missing ratings are, no win rate leaves its bounds."""
    found = bounds(rows_of(cube), protocol=protocol)
    for full in completions(cube):
        for system, rate in counted_rates(full, protocol).items():
            ends = found.bounds[system]
            assert ends is not None
            assert ends[0] - 1e-12 <= (rate or 0) <= ends[1] + 1e-12


@given(cube=cubes(samples=2, systems=2))
def test_of_two_systems_the_bounds_are_reached(cube: dict[str, Any]) -> None:
    """Where a pair is missing one rating alone, they are not too wide either."""
    for systems in cube.values():
        one, other = systems.values()
        assume(all(a is not None or b is not None for a, b in zip(one, other, strict=True)))
    found = bounds(rows_of(cube)).bounds
    rates = [counted_rates(full, "corrected") for full in completions(cube)]
    for system in SYSTEMS[:2]:
        every = [rate[system] or 0.0 for rate in rates]
        assert found[system] == pytest.approx((min(every), max(every)))


@given(cube=cubes(missing=False))
def test_where_nothing_is_missing_both_ends_are_the_rate(cube: dict[str, Any]) -> None:
    """There is nothing to assume."""
    found = bounds(rows_of(cube))
    for system, rate in found.win_rate.items():
        assert found.bounds[system] == pytest.approx((rate, rate))


@pytest.mark.parametrize("protocol", get_args(Protocol))
@given(cube=cubes())
def test_the_observed_rate_lies_within(protocol: Protocol, cube: dict[str, Any]) -> None:
    """Leaving out what is missing is one of the things it may be."""
    found = bounds(rows_of(cube), protocol=protocol)
    assert found.win_rate == win_rate(rows_of(cube), protocol=protocol, n_boot=0).win_rate
    for system, rate in found.win_rate.items():
        ends = found.bounds[system]
        assert rate is None or ends is None or ends[0] - 1e-12 <= rate <= ends[1] + 1e-12


def test_only_orders_that_nothing_missing_can_turn_are_certain() -> None:
    """The better system's worst case is above the other's best."""
    rows = one_judge(ash=[9] * 9 + [None], birch=[5] * 10, cedar=[4] * 4 + [None] * 6)
    found = bounds(rows)
    assert found.bounds == {
        "ash": pytest.approx((0.65, 1.0)),
        "birch": pytest.approx((0.2, 0.55)),
        "cedar": pytest.approx((0.0, 0.6)),
    }
    assert found.certain == (("ash", "birch"), ("ash", "cedar"))


def test_refusals_that_count_as_losses_are_not_missing() -> None:
    """With `exclude` they could have been anything."""
    rows = one_judge(ash=[9, None], birch=[5, 5])
    outputs = [
        {"sample_id": f"s00{at}", "system": system, "outcome": outcome}
        for at, system, outcome in [
            (0, "ash", "ok"),
            (0, "birch", "ok"),
            (1, "ash", "refused"),
            (1, "birch", "ok"),
        ]
    ]
    assert bounds(rows, outputs).bounds["ash"] == (0.5, 1.0)
    assert bounds(rows, outputs, missing="loss").bounds["ash"] == (0.5, 0.5)


def test_a_system_alone_has_no_bounds() -> None:
    """There is nobody it could win against; of no ratings there are none."""
    assert bounds(one_judge(ash=[1, 2])).bounds == {"ash": None}
    assert bounds([]).bounds == {}
