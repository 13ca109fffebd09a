"""Ratings beside ranks: the same places, and what is elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from echo_hf.errors import ScoreError
from echo_hf.scores.ranks import JudgeRatings, beside, read_human
from echo_hf.scores.rating_table import read_ratings
from tests.scores.ranks_for_tests import human_rows, rating_rows

RANKED = read_human(human_rows({"ada": [(1, 2, 3), (2, 1, 3)]}))


def said(*samples: tuple[float | None, ...]) -> JudgeRatings:
    """One judge's ratings beside Ada's ranks."""
    return beside(read_ratings(rating_rows({"jay": samples})), RANKED)


def test_ratings_stand_where_ranks_do() -> None:
    """A fourth system and a third sample are nobody's, and counted; a gap is a gap."""
    found = said((9, None, 5, 1), (1, 2, 3, 4), (7, 7, 7, 7))
    assert found.judges == ("jay",)
    np.testing.assert_array_equal(found.ratings, [[[9, 1], [np.nan, 2], [5, 3]]])
    assert found.elsewhere == 6


def test_a_higher_rating_is_a_lower_rank() -> None:
    """Equal ratings stay equal, up to what a sum of floats loses."""
    found = said((0.1 + 0.2, 0.3, 5), (1, 2, 3)).ranks()
    assert found[0, 0, 0] == found[0, 1, 0] > found[0, 2, 0]


def test_broken_ties_are_within_a_sample() -> None:
    """Each sample has the places 1, 2, 3, the best rated first."""
    found = said((5, 5, 9), (1, 2, 3)).ranks(ties_seed=0)
    assert sorted(found[0, :, 0]) == [1, 2, 3]
    assert found[0, 2, 0] == 1
    assert found[0, :, 1].tolist() == [3, 2, 1]


def test_other_names_are_one_line() -> None:
    """It shows both, as they are most likely misspelt."""
    rows = [{**row, "system": row["system"].upper()} for row in rating_rows({"jay": [(1, 2, 3)]})]
    with pytest.raises(ScoreError, match=r"people ranked: .*'ash', .* ratings are of \['ASH'"):
        beside(read_ratings(rows), RANKED)
