"""Rates by demand against strata counted alone, repeated samples, and the plain board."""

from __future__ import annotations

from itertools import product
from typing import Any, get_args

import numpy as np
import pytest
from scipy.stats import t

from echo_hf._infra.bootstrap import Unscored
from echo_hf.errors import ScoreError
from echo_hf.scores import demand_rates, win_rate
from echo_hf.scores.votes import ProtocolName
from tests.scores.ratings_for_tests import Row, counted_rates, rows_of
from tests.scores.test_slices import draw_cube, name_sample

SIZES = {"edit": 12, "text": 30, "logo": 18}
KINDS = [kind for kind, count in SIZES.items() for _ in range(count)]
STRATA = {name_sample(at): kind for at, kind in enumerate(KINDS)}


def select(rows: list[Row], kind: str) -> list[Row]:
    return [row for row in rows if STRATA[row["sample_id"]] == kind]


@pytest.mark.parametrize("protocol", get_args(ProtocolName))
def test_a_rate_is_the_sum_of_shares_times_rates_of_strata(protocol: ProtocolName) -> None:
    cube = draw_cube(2, 60, missing=0.0)
    asked = {"edit": 5, "text": 3, "logo": 2}
    found = demand_rates(rows_of(cube), strata=STRATA, asked=asked, protocol=protocol, n_boot=0)
    for system in ("ash", "birch", "cedar"):
        expected = 0.0
        for kind, weight in asked.items():
            numbers = [at for at, own in enumerate(KINDS) if own == kind]
            part = {
                judge: {name: [column[at] for at in numbers] for name, column in by.items()}
                for judge, by in cube.items()
            }
            expected += weight / 10 * float(counted_rates(part, protocol)[system])
        assert found.win_rate[system] == pytest.approx(expected)
    weights = np.array([asked[kind] / 10 / SIZES[kind] for kind in KINDS])
    assert found.effective_n["ash"] == pytest.approx(weights.sum() ** 2 / (weights**2).sum())


@pytest.mark.parametrize("protocol", get_args(ProtocolName))
def test_a_weight_of_three_is_that_sample_three_times(protocol: ProtocolName) -> None:
    """With ratings missing, so that systems meet on different samples."""
    rows = rows_of(draw_cube(4, 60, missing=0.15))
    times = {"edit": 3, "text": 1, "logo": 2}
    asked = {kind: times[kind] * count for kind, count in SIZES.items()}
    repeated = [
        {**row, "sample_id": f"{row['sample_id']}.{copy}"}
        for row in rows
        for copy in range(times[STRATA[row["sample_id"]]])
    ]
    found = demand_rates(rows, strata=STRATA, asked=asked, protocol=protocol, n_boot=0)
    assert {kind: row.samples for kind, row in found.strata.items()} == SIZES
    expected = win_rate(repeated, protocol=protocol, n_boot=0)
    assert found.win_rate == pytest.approx(expected.win_rate)
    assert found.coverage == pytest.approx(expected.coverage)


def test_demand_as_the_samples_have_it_gives_the_rates_of_the_plain_board() -> None:
    rows = rows_of(draw_cube(5, 60, missing=0.1))
    found = demand_rates(rows, strata=STRATA, asked=SIZES, n_boot=0)
    assert found.win_rate == win_rate(rows, n_boot=0).win_rate
    met: dict[str, set[str]] = {system: set() for system in found.win_rate}
    for one, other in product(rows, rows):
        is_same = all(one[key] == other[key] for key in ("sample_id", "judge"))
        if (
            is_same
            and one["system"] != other["system"]
            and None not in (one["rating"], other["rating"])
        ):
            met[one["system"]].add(one["sample_id"])
    assert found.effective_n == pytest.approx({name: len(ids) for name, ids in met.items()})


def test_a_spared_judge_changes_nothing_of_that() -> None:
    """Where judges explain votes on other samples, even weights give the estimate itself."""
    rows = rows_of(draw_cube(6, 60, missing=0.0))
    for row in rows:
        if row["judge"] == "kite" and row["sample_id"] >= name_sample(30):
            row |= {"rating": None, "outcome": "not_needed"}
        else:
            row["outcome"] = "ok"
    found = demand_rates(rows, strata=STRATA, asked=SIZES, n_boot=300)
    plain = win_rate(rows)
    assert found.win_rate == pytest.approx(plain.win_rate)
    for system, (low, high) in found.interval.items():
        assert (low, high) == pytest.approx(plain.interval[system], abs=0.03)


def test_what_nobody_asked_for_has_no_weight_and_one_stratum_is_that_slice() -> None:
    rows = rows_of(draw_cube(7, 60))
    found = demand_rates(rows, strata=STRATA, asked={"text": 7, "edit": 0}, n_boot=300)
    alone = win_rate(select(rows, "text"), n_boot=300)
    assert found.win_rate == pytest.approx(alone.win_rate)
    for system, (low, high) in found.interval.items():
        # Redrawn with the other 30 samples, so that its size varies a little.
        assert (low, high) == pytest.approx(alone.interval[system], abs=0.02)
    assert found.effective_n["ash"] == pytest.approx(30)
    assert [(name, row.weight) for name, row in found.strata.items()] == [
        ("text", 1), ("edit", 0), ("logo", 0)
    ]  # fmt: skip
    (sentence,) = found.caveats
    assert sentence == "nobody asked for edit, logo: rated samples without weight: 30"


def test_what_is_asked_for_and_not_rated_is_named_with_its_share() -> None:
    rows = rows_of(draw_cube(8, 60))
    asked = {**SIZES, "collage": 40}
    strata: dict[str, Any] = {**STRATA, name_sample(0): None}
    found = demand_rates(rows, strata=strata, asked=asked, n_boot=0)
    assert (found.not_rated, found.no_stratum) == (0.4, 1)
    assert found.caveats == (
        "40 % of what people ask for is not in these rates: no sample was rated of collage",
        "rated samples left out, as their kind is open: 1",
    )


@pytest.mark.parametrize("asked", [{}, {"edit": 0}, {"collage": 4}])
def test_without_demand_for_anything_rated_there_is_no_rate(asked: dict[str, float]) -> None:
    found = demand_rates(rows_of(draw_cube(9, 60)), strata=STRATA, asked=asked)
    assert {*found.win_rate.values(), *found.interval.values()} == {None}
    assert {*found.reasons.values()} == {Unscored.NO_DEMAND}


def test_few_effective_samples_have_a_rate_and_no_interval() -> None:
    """Of 60 samples one has .9 of the weight."""
    strata = {**STRATA, name_sample(0): "lone"}
    asked = {"lone": 90, "text": 10}
    found = demand_rates(rows_of(draw_cube(10, 60)), strata=strata, asked=asked)
    assert found.effective_n["ash"] == pytest.approx(1 / (0.9**2 + 0.1**2 / 30))
    assert found.win_rate["ash"] is not None
    assert {*found.interval.values()} == {None}
    assert {*found.reasons.values()} == {Unscored.FEW_SAMPLES}


def compare_two(outcomes: list[bool]) -> list[Row]:
    return [
        {"sample_id": name, "system": system, "judge": "j", "rating": rating}
        for name, is_won in zip(STRATA, outcomes, strict=True)
        for system, rating in {"a": 9 if is_won else 1, "b": 5}.items()
    ]


ASKED = {"edit": 5, "text": 2, "logo": 3}


def test_an_interval_is_as_wide_as_post_stratification_makes_it() -> None:
    """Against the closed form: the shares squared times the variance of each stratum's mean."""
    rng, wins = np.random.default_rng(3), {"edit": 0.25, "text": 0.5, "logo": 0.9}
    outcomes = np.array([rng.random() < wins[kind] for kind in KINDS])
    variance = sum(
        (ASKED[kind] / 10) ** 2 * outcomes[np.array(KINDS) == kind].var(ddof=1) / count
        for kind, count in SIZES.items()
    )
    rates = demand_rates(compare_two([*outcomes]), strata=STRATA, asked=ASKED, n_boot=4000)
    low, high = rates.interval["a"] or (0.0, 0.0)
    degrees = int(rates.effective_n["a"]) - 1
    assert high - low == pytest.approx(2 * t.ppf(0.975, degrees) * variance**0.5, rel=0.06)


def test_strata_that_differ_and_do_not_vary_leave_no_doubt() -> None:
    outcomes = [kind == "text" for kind in KINDS]
    rates = demand_rates(compare_two(outcomes), strata=STRATA, asked=ASKED)
    assert rates.win_rate["a"] == pytest.approx(0.2)
    assert rates.reasons["a"] is Unscored.NO_SPREAD


def test_a_lone_sample_is_drawn_with_another_stratum() -> None:
    """Or its variance would be taken for none."""
    strata = {**STRATA, name_sample(0): "lone"}
    outcomes = [at > 5 for at in range(len(KINDS))]
    asked = {"edit": 10, "text": 40, "logo": 30, "lone": 5}
    rates = demand_rates(compare_two(outcomes), strata=strata, asked=asked, n_boot=500)
    low, high = rates.interval["a"] or (0.0, 0.0)
    # Six of the eleven others of its kind are lost, and nothing varies elsewhere.
    assert high - low > 2 * 1.96 * (10 / 85) * (6 * 5 / 11**3) ** 0.5


def test_intervals_hold_the_rate_that_all_demand_would_show() -> None:
    """Strata with rates .35, .5 and .7, sampled unlike the demand, 300 times."""
    rng, wins = np.random.default_rng(11), dict(zip(SIZES, (0.35, 0.5, 0.7), strict=True))
    true = sum(ASKED[kind] / 10 * rate for kind, rate in wins.items())
    hits = 0
    for _ in range(300):
        rows = compare_two([bool(rng.random() < wins[kind]) for kind in KINDS])
        rates = demand_rates(rows, strata=STRATA, asked=ASKED, n_boot=200)
        low, high = rates.interval["a"] or (1.0, 0.0)
        hits += low <= true <= high
    assert 0.91 < hits / 300 < 0.98


def test_a_system_compared_on_little_of_the_demand_is_named() -> None:
    cube = draw_cube(12, 60, missing=0.0)
    rows = [
        row for row in rows_of(cube) if row["system"] != "ash" or STRATA[row["sample_id"]] == "logo"
    ]
    rates = demand_rates(rows, strata=STRATA, asked={"edit": 6, "text": 3, "logo": 1}, n_boot=0)
    assert rates.coverage["ash"] == pytest.approx(0.1)
    assert "few of what people ask for is compared of ash 10 %" in " ".join(rates.caveats)


@pytest.mark.parametrize("number", [-1, float("nan"), float("inf"), "3"])
def test_demand_that_is_no_number_is_refused(number: Any) -> None:
    with pytest.raises(ScoreError, match=r"asked: 'edit' is .*: expected how often, 0 or more"):
        demand_rates(rows_of(draw_cube(1, 12)), strata=STRATA, asked={"edit": number})
