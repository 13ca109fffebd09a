"""Whether a system does better on public samples than on sealed ones."""

from __future__ import annotations

import datetime

import numpy as np
import pytest
from scipy import stats

from echo_hf.errors import ScoreError
from echo_hf.scores import contamination, dated_contamination
from echo_hf.scores.contamination import Untested, _compute_power, _exchange
from tests.scores.ratings_for_tests import real_rows


def draw_board(seed, public=200, sealed=60, systems="abc", gain=0.0, shift=0.0):
    """Draw ratings of random systems; `a` gains on public samples, `shift` is the sealed part's."""
    rng = np.random.default_rng(seed)
    return [
        {
            "sample_id": f"{number:03}",
            "system": system,
            "judge": "jay",
            "rating": float(rng.integers(1, 11))
            + gain * (system == "a" and number < public)
            - shift * (number >= public),
        }
        for number in range(public + sealed)
        for system in systems
    ]


def list_sealed(public=200, sealed=60):
    return {f"{number:03}" for number in range(public, public + sealed)}


def compute_shares(rows):
    """Compute by hand the share of points of a sample that each system wins."""
    by_sample = {}
    for row in rows:
        by_sample.setdefault(row["sample_id"], {})[row["system"]] = row["rating"]
    shares = {}
    for name, ratings in by_sample.items():
        for system, own in ratings.items():
            others = [value for other, value in ratings.items() if other != system]
            points = [1.0 if own > value else 0.5 if own == value else 0.0 for value in others]
            shares.setdefault(system, {})[name] = sum(points) / len(points)
    return shares


def test_lead_and_interval_are_those_of_welch():
    rows = draw_board(1)
    tested, sealed = contamination(rows, sealed=list_sealed()), list_sealed()
    for system, values in compute_shares(rows).items():
        seen = [value for name, value in values.items() if name not in sealed]
        unseen = [value for name, value in values.items() if name in sealed]
        interval = stats.ttest_ind(seen, unseen, equal_var=False).confidence_interval(0.95)
        assert tested.lead[system] == pytest.approx(np.mean(seen) - np.mean(unseen))
        assert tested.interval[system] == pytest.approx(tuple(interval))
        assert tested.counts[system] == (200, 60)


def test_p_is_that_of_exchanging_labels():
    rows = draw_board(2, gain=0.6)
    sealed = list_sealed()
    tested = contamination(rows, sealed=sealed, n_resamples=4999)
    values = compute_shares(rows)["a"]
    parts = [[v for n, v in values.items() if (n in sealed) == part] for part in (False, True)]
    expected = stats.permutation_test(
        parts,
        lambda x, y, axis: stats.ttest_ind(x, y, equal_var=False, axis=axis).statistic,
        vectorized=True,
        alternative="greater",
        n_resamples=4999,
        rng=np.random.default_rng(3),
    ).pvalue
    assert tested.p["a"] == pytest.approx(expected, abs=0.03)
    assert all(tested.adjusted[name] >= tested.p[name] for name in "abc")


def test_samples_that_are_harder_for_all_change_nothing():
    """A sealed part on which every system loses three rating points is no sign of training."""
    plain = contamination(draw_board(4), sealed=list_sealed())
    shifted = contamination(draw_board(4, shift=3.0), sealed=list_sealed())
    assert plain.p == shifted.p
    assert plain.lead == shifted.lead


def test_a_large_gain_is_found_and_named():
    tested = contamination(draw_board(5, gain=4.0), sealed=list_sealed())
    assert tested.alarm == ("a",)
    assert "leads more on samples that it may have seen: a by" in tested.summary


def test_fewer_than_fifty_sealed_samples_give_nothing_but_the_power():
    tested = contamination(draw_board(6, sealed=49, gain=4.0), sealed=list_sealed(sealed=49))
    assert tested.alarm == ()
    assert {*tested.lead.values(), *tested.p.values(), *tested.interval.values()} == {None}
    assert {*tested.reasons.values()} == {Untested.FEW_SEALED}
    assert list(tested.power) == ["0.03", "0.05", "0.1"]
    assert tested.summary.startswith("not tested: fewer than 50 sealed samples")


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (draw_board(7, systems="a"), Untested.NO_PEERS),
        (draw_board(7, public=20, sealed=60), Untested.FEW_PUBLIC),
    ],
)
def test_what_cannot_be_tested_says_why(rows, reason):
    sealed = list_sealed(20) if reason is Untested.FEW_PUBLIC else list_sealed()
    tested = contamination(rows, sealed=sealed)
    assert {*tested.reasons.values()} == {reason}
    assert {*tested.p.values()} == {None}


def test_a_weak_peer_that_is_missing_on_one_side_accuses_nobody():
    """A retired system has outputs on public samples alone: it is no peer of those that go on."""
    alarms, boards = 0, 40
    for seed in range(boards):
        rows = draw_board(seed, systems="abcde")
        weak = [
            {**row, "system": "weak", "rating": row["rating"] - 6}
            for row in draw_board(1000 + seed, systems="a")
            if row["sample_id"] not in list_sealed()
        ]
        tested = contamination([*rows, *weak], sealed=list_sealed(), n_resamples=199)
        alarms += bool(tested.alarm)
        assert tested.reasons == {"weak": Untested.UNEVEN}
    assert alarms <= 5  # .05 of 40 is 2; more than 5 in one of a hundred cases


def test_systems_that_were_not_rated_on_all_samples_accuse_nobody():
    """The strongest are missing on a tenth of the public samples, as after a budget was spent."""
    alarms, boards = 0, 40
    for seed in range(boards):
        rows = [
            {**row, "rating": row["rating"] + 4 * (row["system"] in "ab")}
            for row in draw_board(seed, systems="abcde")
            if row["system"] not in "ab" or not 181 <= int(row["sample_id"]) < 200
        ]
        tested = contamination(rows, sealed=list_sealed(), n_resamples=199)
        alarms += bool(tested.alarm)
        assert {*tested.counts.values()} == {(181, 60)}
    assert alarms <= 5


def test_a_judge_of_a_share_leaves_the_samples_to_those_that_rated_all():
    rows = draw_board(9)
    skipped = {f"{number:03}" for number in range(260) if number % 10}
    second = [
        {
            **row,
            "judge": "kit",
            **({"rating": None, "outcome": "not_needed"} if row["sample_id"] in skipped else {}),
        }
        for row in rows
    ]
    both = [{**row, "outcome": row.get("outcome", "ok")} for row in [*rows, *second]]
    assert (
        contamination(both, sealed=list_sealed()).p == contamination(rows, sealed=list_sealed()).p
    )


def test_too_few_exchanges_are_refused():
    with pytest.raises(ScoreError, match="n_resamples is 18: expected 19 or more"):
        contamination(draw_board(8), sealed=list_sealed(), n_resamples=18)


def test_eight_clean_systems_raise_an_alarm_in_at_most_six_of_a_hundred_boards(test_data):
    """Boards of 50 sealed and 200 public samples, drawn from the shared ratings."""
    shares = _read_shared_shares(test_data)
    rng, alarms, draws = np.random.default_rng(2024), 0, 1000
    public = np.arange(250) < 200
    for _ in range(draws):
        _, adjusted = _exchange(shares[rng.integers(0, 179, 250)], public, rng, 199)
        alarms += bool((adjusted <= 0.05).any())
    assert alarms / draws <= 0.06


def test_ten_points_are_found_as_often_as_is_said(test_data):
    """With 50 sealed samples in .79 of the cases for one system, in .45 for one of eight."""
    shares = _read_shared_shares(test_data)
    rng, found, draws = np.random.default_rng(2025), np.zeros(2), 400
    public = np.arange(250) < 200
    for draw in range(draws):
        rows, system = shares[rng.integers(0, 179, 250)].copy(), draw % 8
        room = 1 - np.nanmean(shares[:, system])
        rows[public & (rng.random(250) < 0.1 / room), system] = 1.0
        p, adjusted = _exchange(rows, public, rng, 199)
        found += p[system] <= 0.05, adjusted[system] <= 0.05
    alone, together = found / draws
    assert 0.73 <= alone <= 0.85
    assert 0.38 <= together <= 0.55
    boards = (shares[rng.integers(0, 179, 250)] for _ in range(8))
    stated = np.mean([_compute_power(board, public, rng)["0.1"] for board in boards], axis=0)
    assert stated == pytest.approx((alone, together), abs=0.08)


def _read_shared_shares(folder):
    """Compute the share of points of every sample and system by the first shared judge."""
    rows = [row for row in real_rows(folder) if row["judge"] == "gpt4o"]
    samples, systems = (sorted({row[name] for row in rows}) for name in ("sample_id", "system"))
    ratings = np.full((len(samples), len(systems)), np.nan)
    for row in rows:
        if row["rating"] is not None:
            at = samples.index(row["sample_id"]), systems.index(row["system"])
            ratings[at] = row["rating"]
    gap = ratings[:, :, None] - ratings[:, None]
    points = np.where(np.isnan(gap), np.nan, (np.sign(gap) + 1) / 2)
    points[:, range(len(systems)), range(len(systems))] = np.nan
    met = (~np.isnan(points)).sum(axis=2)
    return np.where(met > 0, np.nansum(points, axis=2) / np.maximum(met, 1), np.nan)


DAY = datetime.date(2026, 5, 31)


def draw_dated(seed, samples=400, step=0.0, drift=0.0):
    rng = np.random.default_rng(seed)
    days = np.arange(samples) - samples // 2
    dates = {f"{n:03}": DAY + datetime.timedelta(days=int(days[n])) for n in range(samples)}
    rows = [
        {
            "sample_id": f"{n:03}",
            "system": system,
            "judge": "jay",
            "rating": rng.normal()
            + (system == "a") * (step * (days[n] <= 0) - drift * days[n] / samples),
        }
        for n in range(samples)
        for system in "abc"
    ]
    return rows, dates


def test_the_step_is_that_of_least_squares_and_its_error_that_of_leaving_out_samples():
    """HC3 is the sum of squared changes that each residual, left out, would make."""
    rows, dates = draw_dated(1, step=0.5)
    tested = dated_contamination(rows, dates, {"a": DAY})
    values = compute_shares(rows)["a"]
    days = np.array([(dates[name] - DAY).days for name in values], float)
    y = np.array(list(values.values()))
    x = np.column_stack([np.ones(len(y)), days <= 0, days])
    slope = np.linalg.lstsq(x, y, rcond=None)[0]
    assert tested.lead["a"] == pytest.approx(slope[1])
    left_out = []
    for at in range(len(y)):
        rest = np.delete(np.arange(len(y)), at)
        prediction = x[at] @ np.linalg.lstsq(x[rest], y[rest], rcond=None)[0]
        left_out.append(y[at] - prediction)
    inverse = np.linalg.inv(x.T @ x)
    error = np.sqrt((inverse @ (x.T * np.square(left_out)) @ x @ inverse)[1, 1])
    assert tested.p["a"] == pytest.approx(stats.t.sf(slope[1] / error, len(y) - 3))
    power = stats.norm.sf(stats.norm.isf(0.05) - 0.1 / error)
    assert tested.power["0.1"] == pytest.approx((power, power))  # a single system is tested


def test_a_weak_peer_that_ends_at_the_date_accuses_nobody():
    alarms = 0
    for seed in range(40):
        rows, dates = draw_dated(seed)
        weak = [
            {**row, "system": "weak", "rating": row["rating"] - 3}
            for row in draw_dated(500 + seed)[0]
            if row["system"] == "b" and dates[row["sample_id"]] <= DAY
        ]
        alarms += bool(dated_contamination([*rows, *weak], dates, {"a": DAY}).alarm)
    assert alarms <= 5


def test_drift_alone_is_no_sign_of_training():
    """A lead that falls steadily over time raises an alarm in about one of twenty boards."""
    alarms = 0
    for seed in range(60):
        rows, dates = draw_dated(seed, drift=1.5)
        alarms += bool(dated_contamination(rows, dates, {"a": DAY}).alarm)
    assert alarms <= 8


def test_only_systems_with_a_date_are_tested_and_need_fifty_samples_on_either_side():
    rows, dates = draw_dated(3)
    late = DAY + datetime.timedelta(days=170)
    tested = dated_contamination(rows, dates, {"a": DAY, "b": late, "unknown": DAY})
    assert list(tested.lead) == ["a", "b"]
    assert tested.reasons == {"b": Untested.FEW_DATED}
    assert tested.p["b"] is None
    assert tested.p["a"] is not None


def test_samples_of_one_day_cannot_tell_a_step_from_a_trend():
    rows, dates = draw_dated(4)
    two_days = {name: DAY + datetime.timedelta(days=int(day > DAY)) for name, day in dates.items()}
    tested = dated_contamination(rows, two_days, {"a": DAY})
    assert tested.lead["a"] is None
    assert tested.alarm == ()
