"""Whether a judge favours the systems of its own developer."""

from __future__ import annotations

from statistics import fmean
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.errors import ScoreError
from echo_hf.scores import self_preference
from tests.scores.ratings_for_tests import JUDGES, SYSTEMS, cubes, one_judge, rows_of, verdict

MAKERS = st.sampled_from(["Pip", "Quill", None])


def by_loops(
    cube: dict[str, Any], judges: dict[str, Any], systems: dict[str, Any], judge: str
) -> Any:
    """Shares of own systems by the judge and by the others; null where nobody says anything."""
    maker = judges[judge]
    others = [name for name in cube if name != judge and (judges[name] != maker or maker is None)]
    by_judge, by_others = [], []
    for own in [name for name in cube[judge] if maker is not None and systems[name] == maker]:
        for rival in [name for name in cube[judge] if systems[name] != maker]:
            mine, theirs = [], []
            for at in range(len(cube[judge][own])):
                said = verdict(cube[judge][own][at], cube[judge][rival][at])
                every = [verdict(cube[name][own][at], cube[name][rival][at]) for name in others]
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
    judges=st.fixed_dictionaries(dict.fromkeys(JUDGES, MAKERS)),
    systems=st.fixed_dictionaries(dict.fromkeys(SYSTEMS, MAKERS)),
)
def test_the_shares_are_the_counted_ones(
    cube: dict[str, Any], judges: dict[str, Any], systems: dict[str, Any]
) -> None:
    """Mean over pairs of an own and another's system, over the samples that both sides rated."""
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
    """Two judges who see the same quality; the first adds something for its own system."""
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
    """A judge without systems of its own, and one whose colleagues all have its developer."""
    found = self_preference(rated(0), judges, {"ash": "Pip", "birch": None, "cedar": "Quill"})
    assert {one.reason for one in found.judges.values()} == {reason}


def test_few_samples_have_no_interval() -> None:
    """The preference stands, with the reason."""
    rows = rows_of({"jay": {"ash": [9], "birch": [1]}, "kite": {"ash": [1], "birch": [9]}})
    (one, _) = self_preference(
        rows, {"jay": "Pip", "kite": None}, {"ash": "Pip", "birch": None}
    ).judges.values()
    assert (one.preference, one.interval, one.reason) == (1.0, None, "few_samples")


@pytest.mark.parametrize(
    ("judges", "systems", "said"),
    [
        ({}, {"ash": None}, r"^judge 'judge' has no developer among \[\]"),
        ({"judge": None}, {"Ash": None}, r"^system 'ash' has no developer among \['Ash'\]"),
    ],
)
def test_a_developer_has_to_be_named(judges: Any, systems: Any, said: str) -> None:
    """Null says that nobody is known; a name that is not there is a slip."""
    with pytest.raises(ScoreError, match=said):
        self_preference(one_judge(ash=[1]), judges, systems)
