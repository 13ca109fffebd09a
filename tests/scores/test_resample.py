"""Win rates of drawn samples."""

from __future__ import annotations

import numpy as np
import pytest

from echo_hf._infra.bootstrap import drawn_weights
from echo_hf.scores.intervals import drawn_rates
from echo_hf.scores.judge_votes import compare
from tests.scores.ratings_for_tests import SYSTEMS, Cube, counted_rates, rows_of


def some_cube(samples: int) -> Cube:
    """Two judges, three systems, a fifth of the ratings missing."""
    rng = np.random.default_rng(samples)
    rated = rng.integers(0, 4, (2, 3, samples)).astype(float).tolist()
    gone = rng.random((2, 3, samples)) < 0.2
    return {
        judge: {
            system: [None if gone[j, i, s] else rated[j][i][s] for s in range(samples)]
            for i, system in enumerate(SYSTEMS[:3])
        }
        for j, judge in enumerate(("jay", "kite"))
    }


@pytest.mark.parametrize("protocol", ["corrected", "published"])
def test_a_draw_is_the_rate_of_the_samples_it_took(protocol: str) -> None:
    """Counted anew for each draw, with a sample as often as it was drawn."""
    cube = some_cube(6)
    found = compare(rows_of(cube), protocol=protocol)  # type: ignore[arg-type]
    drawn = drawn_rates(found.verdicts, 3, found.rule.average, n_boot=25, seed=3)
    (weights,) = drawn_weights(6, 25, seed=3)
    for rates, counts in zip(drawn, weights, strict=True):
        taken = np.repeat(np.arange(6), counts.astype(int))
        again = {
            judge: {system: [rated[at] for at in taken] for system, rated in systems.items()}
            for judge, systems in cube.items()
        }
        expected = [
            rate if rate is not None else np.nan for rate in counted_rates(again, protocol).values()
        ]
        assert rates == pytest.approx(expected, nan_ok=True)


def test_no_samples_have_no_rates() -> None:
    """As many draws as asked for, none of which says anything."""
    assert np.isnan(drawn_rates(np.empty((1, 0)), 2, "opponents", n_boot=3, seed=0)).all()
