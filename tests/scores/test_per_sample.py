"""The terms whose mean is the win rate."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given

from echo_hf.scores.judge_votes import compare
from echo_hf.scores.tiers import per_sample
from echo_hf.scores.votes import Protocol
from tests.scores.ratings_for_tests import counted_rates, cubes, rows_of


@pytest.mark.parametrize("protocol", get_args(Protocol))
@given(cube=cubes())
def test_their_mean_is_the_win_rate(protocol: Protocol, cube: dict[str, Any]) -> None:
    """Whatever is missing."""
    values = per_sample(compare(rows_of(cube), protocol=protocol))
    rates = [np.nan if rate is None else rate for rate in counted_rates(cube, protocol).values()]
    assert values.mean(axis=1) == pytest.approx(rates, nan_ok=True)


@given(cube=cubes(missing=False))
def test_where_nothing_is_missing_they_are_the_mean_points_of_a_sample(
    cube: dict[str, Any],
) -> None:
    """Each sample counted as if it were the only one."""
    values = per_sample(compare(rows_of(cube)))
    for sample in range(values.shape[1]):
        alone = {
            judge: {system: rated[sample : sample + 1] for system, rated in systems.items()}
            for judge, systems in cube.items()
        }
        rates = list(counted_rates(alone, "corrected").values())
        assert values[:, sample] == pytest.approx(rates)


@pytest.mark.parametrize("protocol", get_args(Protocol))
def test_they_say_what_leaving_a_sample_out_does(protocol: Protocol) -> None:
    """To first order: the jackknife of the rate has about the same variance."""
    rng = np.random.default_rng(2)
    rated = rng.integers(0, 5, (3, 60)).astype(float)
    rated[rng.random((3, 60)) < 0.3] = np.nan
    names = ("ash", "birch", "cedar")

    def rows(keep: np.ndarray[Any, Any]) -> list[dict[str, Any]]:
        return rows_of(
            {"j": {name: list(one[keep]) for name, one in zip(names, rated, strict=True)}}
        )

    values = per_sample(compare(rows(np.full(60, True)), protocol=protocol))
    left = [
        list(compare(rows(np.arange(60) != at), protocol=protocol).rates().values())
        for at in range(60)
    ]
    jackknife = np.var(np.array(left, dtype=float), axis=0) * 59
    assert values.var(axis=1, ddof=1) / 60 == pytest.approx(jackknife, rel=0.1)
