"""A judge's agreement as a share of people's, counted by hand and by other means."""

from __future__ import annotations

import numpy as np
import pytest

from echo_hf.reasons import Unscored
from echo_hf.scores.agreement import ceiling, ceiling_shares, leave_one_out
from echo_hf.scores.rank_correlation import Draws
from tests.scores.test_tau import scipy_tau

UP, SWAPPED, DOWN = (1.0, 2.0, 3.0), (2.0, 1.0, 3.0), (3.0, 2.0, 1.0)


def same_every_time(*orders: tuple[float, ...], samples: int = 12) -> np.ndarray:
    """Array [who, system, sample] of somebody who always says the same."""
    return np.repeat(np.array(orders)[:, :, None], samples, axis=2)


def test_by_hand() -> None:
    """Of three people two agree, and so does the judge; the third swaps a pair.

    Without one of the two, the others see that pair both ways: a tie, and tau-b is 2 / sqrt(2 * 3).
    Without the third, who has one of three pairs against the others, it is (2 - 1) / 3.
    """
    people, judge = same_every_time(UP, UP, SWAPPED), same_every_time(UP)
    found = leave_one_out(people, judge)
    tied = 2 / np.sqrt(6)
    np.testing.assert_allclose(found.people[:, 0], [tied, tied, 1 / 3])
    np.testing.assert_allclose(found.judges[0, :, 0], [tied, tied, 1.0])
    share = ceiling_shares(found, Draws())[0]
    assert share.people == pytest.approx((2 * tied + 1 / 3) / 3)
    assert share.judge == pytest.approx((2 * tied + 1) / 3)
    assert share.share == pytest.approx((2 * tied + 1) / (2 * tied + 1 / 3))
    assert ceiling(found, Draws()).value == share.people


def test_with_two_people_each_is_the_others_consensus() -> None:
    """So that the ceiling is their tau, and the judge's part is its mean tau with them."""
    rng = np.random.default_rng(2)
    people, judge = rng.random((2, 5, 30)), rng.random((1, 5, 30))
    share = ceiling_shares(leave_one_out(people, judge), Draws())[0]
    taus = [scipy_tau(people[0, :, at], people[1, :, at]) for at in range(30)]
    assert share.people == pytest.approx(np.mean(taus))
    own = [scipy_tau(judge[0, :, at], one[:, at]) for one in people for at in range(30)]
    assert share.judge == pytest.approx(np.mean(own))


def test_both_are_measured_on_the_same_samples() -> None:
    """The judge rated only samples on which people agree, which makes its task an easy one."""
    people = np.concatenate(
        [same_every_time(UP, UP, UP), same_every_time(UP, SWAPPED, DOWN)], axis=2
    )
    judge = same_every_time(UP, samples=24)
    judge[:, :, 12:] = np.nan
    found = leave_one_out(people, judge)
    share = ceiling_shares(found, Draws())[0]
    assert (share.people, share.share, share.samples) == (1.0, 1.0, 12)
    everywhere = ceiling(found, Draws()).value
    assert everywhere is not None
    assert everywhere < 0.8


def test_people_who_contradict_each_other_are_no_ceiling() -> None:
    """There is no share of a negative number, and it is said why."""
    share = ceiling_shares(leave_one_out(same_every_time(UP, DOWN), same_every_time(UP)), Draws())[
        0
    ]
    assert (share.people, share.share) == (-1.0, None)
    assert share.reason is Unscored.NO_CEILING


def test_one_person_has_no_others() -> None:
    """Neither ceiling nor share."""
    found = leave_one_out(same_every_time(UP), same_every_time(UP))
    share = ceiling_shares(found, Draws())[0]
    assert (share.judge, share.people, share.share, share.samples) == (None, None, None, 0)
    assert share.reason is Unscored.NO_ORDER
    assert ceiling(found, Draws()).value is None


def test_nobody_judges() -> None:
    """The ceiling is there without a judge."""
    found = leave_one_out(same_every_time(UP, UP), np.empty((0, 3, 12)))
    assert ceiling_shares(found, Draws()) == []
    assert ceiling(found, Draws()).value == 1.0
