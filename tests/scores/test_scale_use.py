"""How judges use their scales, counted rating by rating."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from scipy.stats import entropy

from echo_hf.scores.judges import scale_use
from tests.scores.ratings_for_tests import cubes, rows_of


@given(cubes())
def test_it_is_what_is_counted(cube: dict[str, Any]) -> None:
    """Share at the top, scipy's entropy, and the share of pairs on a sample with equal ratings."""
    found = scale_use(rows_of(cube), dict.fromkeys(cube, 3.0))
    assert list(found) == sorted(cube)
    for judge, systems in cube.items():
        use = found[judge]
        given_ = [one for every in systems.values() for one in every if one is not None]
        alike = [
            one == other
            for a, b in combinations(systems.values(), 2)
            for one, other in zip(a, b, strict=True)
            if None not in (one, other)
        ]
        counts = Counter(given_)
        assert (use.ratings, use.levels, use.pairs) == (len(given_), len(counts), len(alike))
        assert use.ties == (pytest.approx(sum(alike) / len(alike)) if alike else None)
        if given_:
            assert use.at_ceiling == pytest.approx(counts[3.0] / len(given_))
            assert use.entropy == pytest.approx(entropy(list(counts.values()), base=2))
        else:
            assert (use.at_ceiling, use.entropy) == (None, None)


def test_a_scale_that_nobody_knows_has_no_top() -> None:
    """Null, and the rest is there."""
    rows = rows_of({"jay": {"ash": [3.0], "birch": [3.0]}})
    use = scale_use(rows)["jay"]
    assert (use.at_ceiling, use.ties, use.entropy) == (None, 1.0, 0.0)
