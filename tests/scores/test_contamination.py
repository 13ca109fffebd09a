"""Training on public samples: against scipy's tests, and planted in real ratings."""

from __future__ import annotations

import json
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from echo_hf.errors import EchoError
from echo_hf.scores import Untested, contamination, dated_contamination
from tests.scores.ratings_for_tests import real_rows

SAMPLES, SEALED = 250, 50


def rows_of(ratings: np.ndarray) -> dict[str, list[Any]]:
    samples, systems = ratings.shape
    return {
        "sample_id": np.repeat([f"{at:04}" for at in range(samples)], systems).tolist(),
        "system": [f"s{at}" for at in range(systems)] * samples,
        "judge": ["j"] * ratings.size,
        "rating": ratings.ravel().tolist(),
    }


SEALED_NAMES = [f"{at:04}" for at in range(SAMPLES - SEALED, SAMPLES)]


@pytest.fixture(scope="module")
def real(test_data: Path) -> np.ndarray:
    """Ratings [sample, system] by one judge of 179 samples and 8 systems."""
    rows = [row for row in real_rows(test_data) if row["judge"] == "gpt4o"]
    samples, systems = (sorted({row[key] for row in rows}) for key in ("sample_id", "system"))
    ratings = np.full((len(samples), len(systems)), np.nan)
    for row in rows:
        if row["rating"] is not None:
            ratings[samples.index(row["sample_id"]), systems.index(row["system"])] = row["rating"]
    return ratings


def win_shares(ratings: np.ndarray) -> np.ndarray:
    """Each system's share of points over its peers [sample, system], one pair after the other."""
    shares = np.zeros(ratings.shape)
    for sample, system in np.ndindex(ratings.shape):
        own, others = ratings[sample, system], np.delete(ratings[sample], system)
        shares[sample, system] = np.mean((own > others) + (own == others) / 2)
    return shares


def test_the_lead_and_its_interval_are_welchs() -> None:
    ratings = np.random.default_rng(1).integers(1, 7, (SAMPLES, 4)).astype(float)
    found = contamination(rows_of(ratings), sealed=SEALED_NAMES)
    shares = win_shares(ratings)
    for system in range(4):
        public, sealed = shares[:-SEALED, system], shares[-SEALED:, system]
        expected = stats.ttest_ind(public, sealed, equal_var=False).confidence_interval(0.95)
        assert found.lead[f"s{system}"] == pytest.approx(public.mean() - sealed.mean())
        assert found.interval[f"s{system}"] == pytest.approx((expected.low, expected.high))


def test_p_is_that_of_exchanged_labels() -> None:
    ratings = np.random.default_rng(2).integers(1, 7, (SAMPLES, 3)).astype(float)
    ratings[:-SEALED, 0] += 0.5
    found = contamination(rows_of(ratings), sealed=SEALED_NAMES, n_resamples=4_999)
    shares = win_shares(ratings)
    for system in range(3):
        expected = stats.permutation_test(
            (shares[:-SEALED, system], shares[-SEALED:, system]),
            lambda *parts, axis: stats.ttest_ind(*parts, axis=axis, equal_var=False).statistic,
            alternative="greater",
            vectorized=True,
            n_resamples=4_999,
            rng=np.random.default_rng(3),
        ).pvalue
        error = np.sqrt(expected * (1 - expected) / 4_999) + 1e-3
        assert abs((found.p[f"s{system}"] or 0) - expected) <= 4 * error
        assert (found.adjusted[f"s{system}"] or 0) >= (found.p[f"s{system}"] or 0)


def test_sealed_samples_that_are_harder_for_all_raise_no_alarm(real: np.ndarray) -> None:
    ratings = real[np.random.default_rng(5).integers(0, 179, SAMPLES)]
    harder = ratings.copy()
    harder[-SEALED:] -= 3
    found = contamination(rows_of(harder), sealed=SEALED_NAMES)
    assert found.alarm is False
    assert found.as_json() == contamination(rows_of(ratings), sealed=SEALED_NAMES).as_json()


@pytest.mark.parametrize(
    ("sealed", "public", "reason"),
    [(49, 200, Untested.FEW_SEALED), (200, 49, Untested.FEW_PUBLIC), (50, 50, None)],
)
def test_with_fewer_than_50_there_is_the_power_and_nothing_else(
    sealed: int, public: int, reason: Untested | None
) -> None:
    ratings = np.random.default_rng(5).integers(1, 7, (public + sealed, 3)).astype(float)
    names = [f"{at:04}" for at in range(public, public + sealed)]
    found = contamination(rows_of(ratings), sealed=names)
    assert set(found.power) == {3, 5, 10}
    assert set(found.refused.values()) == ({reason} if reason else set())
    assert (found.alarm is None) is (reason is not None)
    assert (set(found.lead.values()) == {None}) is (reason is not None)


def test_a_system_that_failed_at_some_sealed_samples_is_still_tested() -> None:
    ratings = np.random.default_rng(6).integers(1, 7, (SAMPLES, 4)).astype(float)
    ratings[-5:, 0] = np.nan
    ratings[-11:-5, 1] = np.nan
    found = contamination(rows_of(ratings), sealed=SEALED_NAMES)
    assert found.refused == {"s1": Untested.FEW_SEALED}


def test_the_column_and_the_names_say_the_same() -> None:
    ratings = np.random.default_rng(7).integers(1, 7, (SAMPLES, 3)).astype(float)
    rows = rows_of(ratings)
    marked = {**rows, "sealed": [name in SEALED_NAMES for name in rows["sample_id"]]}
    assert contamination(marked).as_json() == contamination(rows, sealed=SEALED_NAMES).as_json()
    marked["sealed"][0] = True
    with pytest.raises(EchoError, match="'0000' is sealed in one row and public in another"):
        contamination(marked)


def test_the_result_is_json_and_names_every_system() -> None:
    for samples in (SAMPLES, 3):
        ratings = np.random.default_rng(8).integers(1, 7, (samples, 3)).astype(float)
        found = contamination(rows_of(ratings), sealed=SEALED_NAMES)
        plain = json.loads(json.dumps(found.as_json(), allow_nan=False))
        assert plain["lead"].keys() == {"s0", "s1", "s2"}
        assert list(found.to_pandas()["system"]) == list(found.lead)
    alone = contamination(rows_of(np.ones((SAMPLES, 1))), sealed=SEALED_NAMES)
    assert alone.refused == {"s0": Untested.NOT_COMPARED}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sealed": "0001"}, "sealed is '0001': expected identifiers"),
        ({"confidence": 95}, "confidence is 95: expected 0.5 to 1"),
        ({"n_resamples": 0}, "n_resamples is 0: expected 1"),
        ({"seed": "x"}, "seed is 'x'"),
        ({"sealed": None}, "no column 'sealed'"),
    ],
)
def test_a_choice_that_cannot_be_is_refused_in_a_line(change: dict[str, Any], message: str) -> None:
    with pytest.raises(EchoError, match=message):
        contamination(rows_of(np.ones((4, 2))), **{"sealed": ["0001"], **change})


def count(real: np.ndarray, draws: int, seed: int) -> tuple[float, float, float, np.ndarray]:
    """Any alarm on clean boards; 10 planted points found alone and together; the power promised."""
    rng, shares = np.random.default_rng(seed), win_shares(np.nan_to_num(real))
    alarms, found, promised = [], [], []
    for draw in range(draws):
        ratings = real[rng.integers(0, 179, SAMPLES)]
        clean = contamination(rows_of(ratings), sealed=SEALED_NAMES, n_resamples=399, seed=draw)
        alarms.append(clean.alarm)
        promised.append([clean.power[10].alone, clean.power[10].together])
        system = draw % 8
        gain = 0.1 / (1 - shares[:, system].mean())
        turned = (np.arange(SAMPLES) < SAMPLES - SEALED) & (rng.random(SAMPLES) < gain)
        ratings[turned, system] = 11
        planted = contamination(rows_of(ratings), sealed=SEALED_NAMES, n_resamples=399, seed=draw)
        p_values = planted.p[f"s{system}"], planted.adjusted[f"s{system}"]
        found.append([(p or 0) <= 0.05 for p in p_values])
    alone, together = np.mean(found, axis=0)
    return float(np.mean(alarms)), float(alone), float(together), np.mean(promised, axis=0)


def test_clean_boards_seldom_raise_the_alarm_and_10_points_are_mostly_found(
    real: np.ndarray,
) -> None:
    """Published: any alarm .043; found .79 alone, .45 of eight. 100 draws err by .04 and .05."""
    alarm, alone, together, promised = count(real, 100, 61)
    assert alarm <= 0.06 + 0.05
    assert abs(alone - 0.79) <= 0.10
    assert abs(together - 0.45) <= 0.12
    assert np.allclose(promised, [0.79, 0.45], atol=0.04)


@pytest.mark.slow
def test_clean_boards_raise_the_alarm_in_6_of_100_draws_at_most(real: np.ndarray) -> None:
    alarm, alone, together, _ = count(real, 1_000, 63)
    assert alarm <= 0.06
    assert abs(alone - 0.79) <= 0.04
    assert abs(together - 0.45) <= 0.05


def dated_rows(drift: float, step: float, seed: int = 9) -> tuple[Any, dict[str, str], np.ndarray]:
    """A system against another one, on 400 days; better before day 200, and ever worse."""
    rng = np.random.default_rng(seed)
    days = [(date(2025, 1, 1) + timedelta(at)).isoformat() for at in range(400)]
    chance = 0.5 + step * (np.arange(400) < 200) - drift * np.arange(400) / 400
    won = (rng.random(400) < chance).astype(float)
    rows = rows_of(np.column_stack([won * 2, np.ones(400)]))
    return rows, {f"{at:04}": day for at, day in enumerate(days)}, won


def test_the_step_is_least_squares_beside_a_trend_with_hc3_errors() -> None:
    rows, days, won = dated_rows(0.2, 0.2)
    limit = days["0199"]
    found = dated_contamination(rows, days, {"s0": limit})
    years = (np.arange(400) - 199) / 365
    design = np.column_stack([years <= 0, np.ones(400), years]).astype(float)
    effects, *_ = np.linalg.lstsq(design, won, rcond=None)
    hat = np.diag(design @ np.linalg.pinv(design))
    meat = np.diag(((won - design @ effects) / (1 - hat)) ** 2)
    error = np.sqrt((np.linalg.pinv(design) @ meat @ np.linalg.pinv(design).T)[0, 0])
    half = stats.t.ppf(0.975, 397) * error
    assert found.lead["s0"] == pytest.approx(effects[0])
    assert found.interval["s0"] == pytest.approx((effects[0] - half, effects[0] + half))
    assert found.p["s0"] == pytest.approx(stats.t.sf(effects[0] / error, 397))
    assert found.refused == {"s1": Untested.NO_DATE}
    assert dated_contamination(rows, days, {"s0": limit, "s1": limit}).adjusted["s0"] == (
        pytest.approx(min(1, 2 * stats.t.sf(effects[0] / error, 397)))
    )


def test_a_drift_without_a_step_raises_the_alarm_in_few_of_100_cases() -> None:
    alarms, steps = [], []
    for seed in range(100):
        rows, days, _ = dated_rows(0.5, 0.0, seed)
        found = dated_contamination(rows, days, {"s0": "2025-07-19"})
        alarms.append(found.alarm)
        steps.append(found.lead["s0"])
    assert np.mean(alarms) <= 0.05 + 0.065  # three errors of 100 cases
    assert abs(np.mean(np.array(steps, float))) <= 0.04


def test_a_month_is_trained_until_its_last_day() -> None:
    rows, days, _ = dated_rows(0.0, 0.3)
    month = dated_contamination(rows, days, {"s0": "2025-06"})
    day = dated_contamination(rows, days, {"s0": date(2025, 6, 30)})
    assert month.lead == day.lead
    assert month.p == day.p


@pytest.mark.parametrize(
    ("trained", "reason"),
    [
        ("2024-06", Untested.FEW_BEFORE),
        ("2026-06", Untested.FEW_AFTER),
        ("2025-02-18", Untested.FEW_BEFORE),
        ("2025-02-19", None),
    ],
)
def test_50_samples_are_needed_on_either_side_of_a_date(
    trained: str, reason: Untested | None
) -> None:
    rows, days, _ = dated_rows(0.0, 0.0)
    found = dated_contamination(rows, days, {"s0": trained})
    assert found.refused.get("s0") == reason


def test_samples_of_two_days_tell_no_step_from_a_trend_and_undated_ones_are_counted() -> None:
    rows, days, _ = dated_rows(0.0, 0.0)
    two = {name: "2025-01-01" if day < "2025-07" else "2025-12-01" for name, day in days.items()}
    assert dated_contamination(rows, two, {"s0": "2025-06"}).refused["s0"] == Untested.NO_TREND
    del days["0000"]
    found = dated_contamination(rows, days, {"s0": "2025-06"})
    assert found.definition["undated"] == 1
    json.dumps(found.as_json(), allow_nan=False)


@pytest.mark.parametrize("value", ["yesterday", "2025", 7, "2025-13"])
def test_a_date_that_is_none_is_refused_in_a_line(value: Any) -> None:
    rows, days, _ = dated_rows(0.0, 0.0)
    with pytest.raises(EchoError, match=r"'s0' has the date .*: expected a day such as"):
        dated_contamination(rows, days, {"s0": value})
