"""Win rates corrected by people, against the formula in loops, another program, and draws."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy.stats import t

from echo_hf.errors import ScoreError
from echo_hf.scores import HumanCorrected, human_corrected
from echo_hf.scores.human_corrected import ranked_needed
from echo_hf.scores.rating_table import read_ratings
from tests.scores.ratings_for_tests import Row, real_people, real_rows

JUDGES = ("gemini", "gpt4o", "qwenvl")
Share = dict[tuple[str, str], float]


def points(one: float, others: Sequence[float]) -> list[float]:
    return [float(one > other) + 0.5 * (one == other) for other in others]


def shares(rows: Sequence[Row], who: str, value: str) -> dict[str, Share]:
    """By judge or rater: the share of each sample and system, one comparison at a time."""
    given: dict[str, dict[str, dict[str, float]]] = {}
    for row in rows:
        if row[value] is not None:
            said = given.setdefault(row[who], {}).setdefault(row["sample_id"], {})
            said[row["system"]] = -row[value] if value == "rank" else row[value]
    return {
        name: {
            (sample, system): fmean(points(one, [said[other] for other in said if other != system]))
            for sample, said in samples.items()
            if len(said) > 1
            for system, one in said.items()
        }
        for name, samples in given.items()
    }


@pytest.fixture(scope="module")
def rated(test_data: Path) -> list[Row]:
    return real_rows(test_data)


@pytest.fixture(scope="module")
def people(test_data: Path) -> list[Row]:
    return real_people(test_data)


def arrays(rated: list[Row], people: list[Row]) -> tuple[list[str], NDArray[Any], NDArray[Any]]:
    """Systems, shares of judges [sample, system, judge] and of people [sample, system]."""
    samples, systems = (sorted({row[key] for row in rated}) for key in ("sample_id", "system"))
    by_judge, by_rater = shares(rated, "judge", "rating"), shares(people, "rater", "rank")
    x = np.array(
        [[[by_judge[j].get((i, s), np.nan) for j in JUDGES] for s in systems] for i in samples]
    )
    means = np.nanmean(x, axis=0)
    x = np.where(np.isnan(x), means, x)
    h = np.array(
        [[fmean(one[i, s] for one in by_rater.values()) for s in systems] for i in samples]
    )
    return systems, x, h


def of_samples(people: list[Row], count: int, seed: int = 0) -> tuple[list[Row], list[int]]:
    samples = sorted({row["sample_id"] for row in people})
    chosen = np.random.default_rng(seed).permutation(len(samples))[:count].tolist()
    names = {samples[at] for at in chosen}
    return [row for row in people if row["sample_id"] in names], sorted(chosen)


def by_hand(x: NDArray[Any], h: NDArray[Any], at: list[int]) -> tuple[NDArray[Any], ...]:
    """Rates, standard errors and weights of the regression on ranked samples, without penalty."""

    def weights(rows: list[int]) -> NDArray[Any]:
        left = (x[rows] - x[rows].mean(axis=0)).reshape(-1, x.shape[-1])
        return np.linalg.lstsq(left, (h[rows] - h[rows].mean(axis=0)).ravel(), rcond=None)[0]

    beta = weights(at)
    rates = (x @ beta).mean(axis=0) + (h[at] - x[at] @ beta).mean(axis=0)
    left_out = np.array([h[i] - x[i] @ weights([j for j in at if j != i]) for i in at])
    errors = left_out.std(axis=0, ddof=1) * np.sqrt((1 - len(at) / len(x)) / len(at))
    return rates, errors, beta


def test_regression_is_the_formula_on_real_ratings(rated: list[Row], people: list[Row]) -> None:
    systems, x, h = arrays(rated, people)
    some, at = of_samples(people, 40)
    rates, errors, beta = by_hand(x, h, at)
    found = human_corrected(rated, some)
    assert [found.win_rate[name] for name in systems] == pytest.approx(rates.tolist())
    assert [found.standard_error[name] for name in systems] == pytest.approx(errors.tolist())
    assert [found.beta[name] for name in JUDGES] == pytest.approx(beta.tolist())
    half = t.ppf(0.975, 39) * errors
    for name, rate, wide in zip(systems, rates, half, strict=True):
        assert found.interval[name] == pytest.approx((rate - wide, rate + wide))
    alone = [found.judges_alone[name] for name in systems]
    assert alone == pytest.approx(x.mean(axis=(0, 2)).tolist())
    assert [found.people_alone[name] for name in systems] == pytest.approx(h[at].mean(axis=0))
    assert (found.ranked, found.samples, found.definition["ridge"]) == (40, 179, 0.0)


def test_a_ridge_penalty_makes_few_ranked_samples_count_less(
    rated: list[Row], people: list[Row]
) -> None:
    _, x, h = arrays(rated, people)
    some, at = of_samples(people, 12)
    found = human_corrected(rated, some)
    penalty = found.definition["ridge"]
    assert penalty > 0
    left = (x[at] - x[at].mean(axis=0)).reshape(-1, 3)
    right = (h[at] - h[at].mean(axis=0)).ravel()
    beta = np.linalg.solve(left.T @ left + penalty * np.eye(3), left.T @ right)
    assert list(found.beta.values()) == pytest.approx(beta.tolist())
    free = np.linalg.lstsq(left, right, rcond=None)[0]
    assert np.abs(beta).sum() < np.abs(free).sum()
    # Three times the variance of what is left over, by the squared length of the weights.
    noise = ((right - left @ free) ** 2).sum() / (len(right) - 8 - 3)
    assert penalty == pytest.approx(3 * noise / (free @ free))


@pytest.mark.extras
@pytest.mark.filterwarnings("ignore")
def test_ppi_is_what_another_program_computes(rated: list[Row], people: list[Row]) -> None:
    ppi = pytest.importorskip("ppi_py", reason="needs ppi-python: see `make test-extras`")
    systems, x, h = arrays(rated, people)
    mean = x.mean(axis=2)
    for count in (10, 30, 90):
        some, at = of_samples(people, count, seed=count)
        rest = np.setdiff1d(np.arange(len(h)), at)
        expected = ppi.ppi_mean_pointestimate(h[at], mean[at], mean[rest])
        found = human_corrected(rated, some, method="ppi")
        assert [found.win_rate[name] for name in systems] == pytest.approx(expected.tolist())


def test_scores_are_ranks_the_other_way_round(rated: list[Row], people: list[Row]) -> None:
    some, _ = of_samples(people, 20)
    scored = [
        {**{key: row[key] for key in ("sample_id", "rater", "system")}, "score": -0.5 * row["rank"]}
        for row in some
    ]
    assert human_corrected(rated, scored) == human_corrected(rated, some)


@pytest.mark.parametrize(
    ("method", "draws"),
    [
        ("regression", 60),
        pytest.param("regression", 500, marks=pytest.mark.slow),
        pytest.param("ppi", 500, marks=pytest.mark.slow),
    ],
)
def test_thirty_ranked_samples_bring_judges_to_people(
    rated: list[Row], people: list[Row], method: Any, draws: int
) -> None:
    """A root mean square error of .022, where the judges alone miss people by .098."""
    systems, _, h = arrays(rated, people)
    truth, missed, alone = h.mean(axis=0), list[NDArray[Any]](), list[NDArray[Any]]()
    judged = read_ratings(rated)
    for seed in range(draws):
        some = pa.Table.from_pylist(of_samples(people, 30, seed)[0])
        found = human_corrected(judged, some, method=method)
        missed.append([found.win_rate[name] for name in systems] - truth)
        alone.append([found.judges_alone[name] for name in systems] - truth)
    assert np.sqrt(np.mean(np.square(missed))) <= 0.024
    assert np.sqrt(np.mean(np.square(alone))) > 0.09


@pytest.mark.slow
@pytest.mark.parametrize("count", [10, 20, 30, 60, 100])
def test_intervals_hold_what_people_say_of_all_samples(
    rated: list[Row], people: list[Row], count: int
) -> None:
    systems, _, h = arrays(rated, people)
    judged, held = read_ratings(rated), []
    for seed in range(1000):
        found = human_corrected(judged, pa.Table.from_pylist(of_samples(people, count, seed)[0]))
        ends = np.array([found.interval[name] for name in systems])
        held.append((ends[:, 0] <= h.mean(axis=0)) & (h.mean(axis=0) <= ends[:, 1]))
    covered = np.mean(held, axis=0)
    assert 0.93 <= covered.mean() <= 0.97
    assert covered.min() >= 0.91


def made(samples: int, ranked: int, systems: str = "ab") -> tuple[list[Row], list[Row]]:
    rng = np.random.default_rng(5)
    seen = rng.integers(0, 4, (samples, len(systems)))
    rows = [
        (f"{i:03}", s, int(seen[i, at])) for i in range(samples) for at, s in enumerate(systems)
    ]
    rated = [{"sample_id": i, "system": s, "judge": "j", "rating": one} for i, s, one in rows]
    return rated, [
        {"sample_id": i, "system": s, "rater": "ada", "rank": 1 + (one + int(i)) % 3}
        for i, s, one in rows
        if int(i) < ranked
    ]


def test_how_many_more_people_have_to_rank_is_the_first_number_that_suffices() -> None:
    rated, people = made(200, 25)
    found = human_corrected(rated, people)
    worst = max(one for one in found.standard_error.values() if one) / np.sqrt(1 / 25 - 1 / 200)
    half = {n: t.ppf(0.975, n - 1) * worst * np.sqrt(1 / n - 1 / 200) for n in range(10, 200)}
    for width in (0.02, 0.05, 0.2, 3.0):
        assert found.n_for(width) == next((n for n, one in half.items() if one <= width), 200)
    assert found.n_for(1e-9) == 200
    for width in (0, float("nan"), float("inf")):
        with pytest.raises(ScoreError, match=f"width is {width}: expected half an interval"):
            found.n_for(width)


def test_before_anybody_ranked_the_usual_spread_is_expected() -> None:
    half = {n: t.ppf(0.975, n - 1) * 0.21 * np.sqrt(1 / n - 1 / 1000) for n in range(10, 1000)}
    assert ranked_needed(0.03, 1000) == next(n for n, one in half.items() if one <= 0.03)
    assert (ranked_needed(0.03, 9), ranked_needed(0.5, 1000)) == (9, 10)


def test_each_system_that_has_no_rate_says_why() -> None:
    rated, people = made(60, 20, "abcdefg")
    most = {"c": 9, "f": 1, "g": 0}
    seldom = [row for row in people if int(row["sample_id"]) < most.get(row["system"], 20)]
    seldom.append({"sample_id": "elsewhere", "system": "g", "rater": "ada", "rank": 1})
    found = human_corrected(
        [row for row in rated if row["system"] != "d"],
        [row for row in seldom if row["system"] != "e"],
    )
    few = dict.fromkeys("cfg", "few_samples")
    assert found.reasons == {**few, "d": "not_rated", "e": "not_ranked"}
    assert {name for name, rate in found.win_rate.items() if rate is None} == set("cdefg")
    assert json.loads(json.dumps(found.as_json()))["definition"]["method"] == "regression"
    assert isinstance(found, HumanCorrected)


def test_a_judge_who_says_the_same_of_all_changes_nothing() -> None:
    rated, people = made(60, 35)
    constant = [{**row, "judge": "k", "rating": 3} for row in rated]
    found, without = human_corrected(rated + constant, people), human_corrected(rated, people)
    assert found.win_rate == pytest.approx(without.win_rate)
    assert found.beta["k"] == pytest.approx(0)
