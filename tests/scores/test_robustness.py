"""What a board hangs on: its rule, what is missing, one judge, and who made it."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from itertools import product
from statistics import fmean
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import rankdata

from echo_hf.scores import bounds, leave_one_judge_out, self_preference, sensitivity
from echo_hf.scores.votes import VOTES, ProtocolName
from tests.scores import ratings_for_tests as counting
from tests.scores.ratings_for_tests import SYSTEMS, counted_rates, cubes, one_judge, rows_of

# Ten samples on which the one is level or ahead, and the other wins where it wins at all.
TIES = one_judge(ash=[5, 5, 5, 1, 1], birch=[3, 5, 5, 5, 5], cedar=[4, 4, 4, 4, 4])


def test_there_is_a_board_for_every_rule() -> None:
    boards = sensitivity(TIES).boards
    assert len({(one.vote, one.ties, one.average) for one in boards}) == 36 == len(boards)
    assert {one.vote for one in boards} == set(VOTES)
    protocols = {one.protocol: (one.vote, one.ties, one.average) for one in boards if one.protocol}
    assert protocols == {
        "published": ("first_judge", "half", "comparisons"),
        "corrected": ("plurality", "half", "opponents"),
    }


def test_a_rank_that_hangs_on_the_rule_is_flagged() -> None:
    rows = rows_of(
        {
            "jay": {"ash": [9], "birch": [3], "cedar": [0]},
            "kite": {"ash": [4], "birch": [5], "cedar": [0]},
            "lark": {"ash": [4], "birch": [5], "cedar": [0]},
        }
    )
    found = sensitivity(rows)
    assert found.flips == (("birch", "ash"),)
    assert found.rank_range == {"birch": (1, 2), "ash": (1, 2), "cedar": (3, 3)}


LEAST, MOST = -1.0, 9.0


def completions(cube: dict[str, Any]) -> Iterator[dict[str, Any]]:
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


@pytest.mark.parametrize("protocol", get_args(ProtocolName))
@given(cube=cubes(samples=3, systems=3))
def test_every_completion_lies_within(protocol: ProtocolName, cube: dict[str, Any]) -> None:
    found = bounds(rows_of(cube), protocol=protocol)
    for full in completions(cube):
        for system, rate in counted_rates(full, protocol).items():
            ends = found.bounds[system]
            assert ends is not None
            assert ends[0] - 1e-12 <= (rate or 0) <= ends[1] + 1e-12


def test_only_orders_that_nothing_missing_can_turn_are_certain() -> None:
    rows = one_judge(ash=[9] * 9 + [None], birch=[5] * 10, cedar=[4] * 4 + [None] * 6)
    found = bounds(rows)
    assert found.bounds == {
        "ash": pytest.approx((0.65, 1.0)),
        "birch": pytest.approx((0.2, 0.55)),
        "cedar": pytest.approx((0.0, 0.6)),
    }
    assert found.certain == (("ash", "birch"), ("ash", "cedar"))


def test_refusals_that_count_as_losses_are_not_missing() -> None:
    rows = one_judge(ash=[9, None], birch=[5, 5])
    outputs = [{**row, "outcome": "ok" if row["rating"] else "refused"} for row in rows]
    assert bounds(rows, outputs).bounds["ash"] == (0.5, 1.0)
    assert bounds(rows, outputs, missing="loss").bounds["ash"] == (0.5, 0.5)


def test_a_system_alone_has_no_bounds() -> None:
    assert bounds(one_judge(ash=[1, 2])).bounds == {"ash": None}
    assert bounds([]).bounds == {}


@pytest.mark.parametrize("protocol", get_args(ProtocolName))
@given(cube=cubes())
def test_it_is_the_board_of_the_others(protocol: ProtocolName, cube: dict[str, Any]) -> None:
    found = leave_one_judge_out(rows_of(cube), protocol=protocol)
    assert found.win_rate == pytest.approx(counted_rates(cube, protocol))
    assert set(found.without) == set(cube)
    for judge in cube:
        others = {name: systems for name, systems in cube.items() if name != judge}
        if others:
            assert found.without[judge] == pytest.approx(counted_rates(others, protocol))


def test_without_the_only_judge_nothing_remains() -> None:
    found = leave_one_judge_out(one_judge(ash=[3], birch=[2]))
    assert found.without == {"judge": {"ash": None, "birch": None}}
    assert found.flips == {"judge": ()}


MAKERS = st.sampled_from(["Pip", "Quill", None])


def by_loops(
    cube: dict[str, Any], judges: dict[str, Any], systems: dict[str, Any], judge: str
) -> Any:
    maker = judges[judge]
    others = [name for name in cube if name != judge and (judges[name] != maker or maker is None)]
    by_judge, by_others = [], []
    for own in [name for name in cube[judge] if maker is not None and systems[name] == maker]:
        for rival in [name for name in cube[judge] if systems[name] != maker]:
            mine, theirs = [], []
            for at in range(len(cube[judge][own])):
                said = counting.verdict(cube[judge][own][at], cube[judge][rival][at])
                every = [
                    counting.verdict(cube[name][own][at], cube[name][rival][at]) for name in others
                ]
                heard = [one for one in every if one is not None]
                if said is not None and heard:
                    mine.append((1 + said) / 2)
                    theirs.append(fmean((1 + one) / 2 for one in heard))
            if mine:
                by_judge.append(fmean(mine))
                by_others.append(fmean(theirs))
    return (fmean(by_judge), fmean(by_others)) if by_judge else None


@given(
    cube=cubes(),
    judges=st.fixed_dictionaries(dict.fromkeys(counting.JUDGES, MAKERS)),
    systems=st.fixed_dictionaries(dict.fromkeys(SYSTEMS, MAKERS)),
)
def test_the_shares_are_the_counted_ones(
    cube: dict[str, Any], judges: dict[str, Any], systems: dict[str, Any]
) -> None:
    found = self_preference(rows_of(cube), judges, systems, n_boot=0).judges
    for judge in cube:
        counted, one = by_loops(cube, judges, systems, judge), found[judge]
        if counted is None:
            assert one.by_judge is one.by_others is one.preference is one.interval is None
            assert one.reason in ("no_own_system", "no_other_judge")
        else:
            assert (one.by_judge, one.by_others) == pytest.approx(counted)
            assert one.preference == pytest.approx(counted[0] - counted[1])


def rated(favour: float) -> list[dict[str, Any]]:
    rng = np.random.default_rng(4)
    quality = rng.normal(5, 1, (3, 150))
    names = ("ash", "birch", "cedar")
    return rows_of(
        {
            judge: {
                name: list(quality[at] + rng.normal(0, 0.7, 150) + bonus * (name == "ash"))
                for at, name in enumerate(names)
            }
            for judge, bonus in (("jay", favour), ("kite", 0.0))
        }
    )


@pytest.mark.parametrize(("favour", "seen"), [(0.0, False), (1.0, True)])
def test_a_favour_is_told_from_chance(favour: float, seen: bool) -> None:
    """The interval is above 0 where there is one, and holds 0 where there is none."""
    developers = {"ash": "Pip", "birch": "Quill", "cedar": None}
    found = self_preference(rated(favour), {"jay": "PIP", "kite": "Quill"}, developers).judges
    ends = found["jay"].interval
    assert found["jay"].own == ("ash",)
    assert ends is not None
    assert (ends[0] > 0) is seen
    assert ends[0] < (found["jay"].preference or 0) < ends[1]
    assert (ends[0] <= 0 <= ends[1]) is not seen


@pytest.mark.parametrize(
    ("judges", "reason"),
    [
        ({"jay": None, "kite": None}, "no_own_system"),
        ({"jay": "Unseen", "kite": "Unseen"}, "no_own_system"),
        ({"jay": "Pip", "kite": "pip"}, "no_other_judge"),
    ],
)
def test_where_there_is_no_number_there_is_a_reason(
    judges: dict[str, str | None], reason: str
) -> None:
    found = self_preference(rated(0), judges, {"ash": "Pip", "birch": None, "cedar": "Quill"})
    assert {one.reason for one in found.judges.values()} == {reason}


@pytest.mark.parametrize(("ties", "rate"), [("half", 0.6), ("drop", 2 / 3), ("loss", 0.4)])
def test_ties_count_as_said(ties: str, rate: float) -> None:
    rows = one_judge(ash=[5, 5, 1, 3, 3], birch=[1, 1, 5, 3, 3])
    for board in sensitivity(rows).boards:
        if board.ties == ties:
            assert board.win_rate["ash"] == pytest.approx(rate)


@given(cube=cubes())
def test_ranks_are_scipys(cube: dict[str, Any]) -> None:
    for board in sensitivity(rows_of(cube)).boards:
        known = [rate for rate in board.win_rate.values() if rate is not None]
        places = [*rankdata([-round(rate, 9) for rate in known], method="min")]
        expected = places + [None] * (len(board.win_rate) - len(known))
        assert list(board.ranks.values()) == expected
