"""The board without each judge."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given

from echo_hf.scores import leave_one_judge_out
from echo_hf.scores.votes import Protocol
from tests.scores.ratings_for_tests import counted_rates, cubes, one_judge, rows_of


@pytest.mark.parametrize("protocol", get_args(Protocol))
@given(cube=cubes())
def test_it_is_the_board_of_the_others(protocol: Protocol, cube: dict[str, Any]) -> None:
    """As if the judge had never been asked."""
    found = leave_one_judge_out(rows_of(cube), protocol=protocol)
    assert found.win_rate == pytest.approx(counted_rates(cube, protocol))
    assert set(found.without) == set(cube)
    for judge in cube:
        others = {name: systems for name, systems in cube.items() if name != judge}
        if others:
            assert found.without[judge] == pytest.approx(counted_rates(others, protocol))


def test_without_the_only_judge_nothing_remains() -> None:
    """The rates are null, and nothing flips."""
    found = leave_one_judge_out(one_judge(ash=[3], birch=[2]))
    assert found.without == {"judge": {"ash": None, "birch": None}}
    assert found.flips == {"judge": ()}


def test_a_judge_who_decides_alone_is_seen() -> None:
    """Without one of two against one, the order turns round or is undecided."""
    rows = rows_of(
        {
            "jay": {"ash": [9, 9, 9], "birch": [1, 1, 1]},
            "kite": {"ash": [9, 9, 1], "birch": [1, 1, 9]},
            "lark": {"ash": [1, 1, 1], "birch": [9, 9, 9]},
        }
    )
    found = leave_one_judge_out(rows)
    assert found.win_rate == {"ash": pytest.approx(2 / 3), "birch": pytest.approx(1 / 3)}
    assert found.without["jay"] == {"ash": pytest.approx(1 / 3), "birch": pytest.approx(2 / 3)}
    assert found.without["kite"] == {"ash": 0.5, "birch": 0.5}
    assert found.flips == {"jay": (("ash", "birch"),), "kite": (), "lark": ()}
