"""The same ratings under every rule."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from echo_hf.scores import sensitivity, win_rate
from echo_hf.scores.votes import VOTES
from tests.scores.ratings_for_tests import cubes, one_judge, rows_of

# Ten samples on which the one is level or ahead, and the other wins where it wins at all.
TIES = one_judge(ash=[5, 5, 5, 1, 1], birch=[3, 5, 5, 5, 5], cedar=[4, 4, 4, 4, 4])


def test_there_is_a_board_for_every_rule() -> None:
    """Six votes, three ways to count ties, two ways to average; two are protocols."""
    boards = sensitivity(TIES).boards
    assert len({(one.vote, one.ties, one.average) for one in boards}) == 36 == len(boards)
    assert {one.vote for one in boards} == set(VOTES)
    protocols = {one.protocol: (one.vote, one.ties, one.average) for one in boards if one.protocol}
    assert protocols == {
        "published": ("first_judge", "half", "comparisons"),
        "corrected": ("plurality", "half", "opponents"),
    }


@given(cube=cubes())
def test_the_protocols_boards_are_those_of_win_rate(cube: dict[str, Any]) -> None:
    """The same numbers by two ways."""
    boards = {one.protocol: one.win_rate for one in sensitivity(rows_of(cube)).boards}
    assert boards["corrected"] == win_rate(rows_of(cube), n_boot=0).win_rate
    assert boards["published"] == win_rate(rows_of(cube), protocol="published").win_rate


@pytest.mark.parametrize(("ties", "rate"), [("half", 0.6), ("drop", 2 / 3), ("loss", 0.4)])
def test_ties_count_as_said(ties: str, rate: float) -> None:
    """Two wins, a loss and two ties: half of a tie, of three decided, of all five."""
    rows = one_judge(ash=[5, 5, 1, 3, 3], birch=[1, 1, 5, 3, 3])
    for board in sensitivity(rows).boards:
        if board.ties == ties:
            assert board.win_rate["ash"] == pytest.approx(rate)


def test_a_rank_that_hangs_on_the_rule_is_flagged() -> None:
    """One judge sees a great difference, two see a small one the other way."""
    rows = rows_of(
        {
            "jay": {"ash": [9], "birch": [3], "cedar": [0]},
            "kite": {"ash": [4], "birch": [5], "cedar": [0]},
            "lark": {"ash": [4], "birch": [5], "cedar": [0]},
        }
    )
    found = sensitivity(rows)
    assert not found.stable
    assert found.flips == (("birch", "ash"),)
    assert found.rank_range == {"birch": (1, 2), "ash": (1, 2), "cedar": (3, 3)}
    assert found.warning == "the order of 'birch' and 'ash' depends on vote, ties or average"


def test_many_flips_are_counted_in_the_warning() -> None:
    """Five are named."""
    names = [f"s{at}" for at in range(5)]
    first = {name: [at] for at, name in enumerate(names)}
    others = {name: [-at] for at, name in enumerate(names)}
    found = sensitivity(rows_of({"a": first, "b": others, "c": others}))
    assert len(found.flips) == 10
    assert found.warning is not None
    assert "and 5 other pairs depends on" in found.warning


def test_one_judge_and_no_ties_leave_nothing_to_choose() -> None:
    """All rules agree, and there is no warning."""
    found = sensitivity(one_judge(ash=[3, 3], birch=[2, 2], cedar=[1, 1]))
    assert found.stable
    assert found.warning is None
    assert found.rank_range == {"ash": (1, 1), "birch": (2, 2), "cedar": (3, 3)}


def test_equal_rates_are_no_flip() -> None:
    """A rule that sees two as level does not contradict one that sees a difference."""
    rows = one_judge(ash=[3, 2], birch=[2, 2])
    assert sensitivity(rows).flips == ()


def test_systems_without_a_rate_have_no_ranks() -> None:
    """A system alone, and none at all."""
    assert sensitivity(one_judge(ash=[1])).rank_range == {"ash": None}
    assert sensitivity([]).rank_range == {}
