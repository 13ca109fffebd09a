"""Rates estimated from a part of the samples, that people rank or judges vote on: loops, draws."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy.stats import t

from echo_hf.errors import ScoreError
from echo_hf.scores import (
    HumanCorrected,
    bounds,
    bradley_terry,
    human_corrected,
    leave_one_judge_out,
    samples_needed,
    self_preference,
    sensitivity,
    tiers,
    win_rate,
)
from echo_hf.scores.human_corrected import ranked_needed
from echo_hf.scores.rating_table import read_ratings
from tests.scores.ratings_for_tests import Row, most_said, real_people, real_rows, verdict

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


NOT_NEEDED = "not_needed"


def drawn(rows: list[Row], share: float = 0.2, seed: int = 0) -> set[str]:
    names = sorted({row["sample_id"] for row in rows})
    order = np.random.default_rng(seed).permutation(len(names))
    return {names[at] for at in order[: round(share * len(names))]}


def shared_out(rows: list[Row], of_all: Collection[str], part: Collection[str]) -> list[Row]:
    """The rows as they are where only some judges rate what is not in the part."""
    return [
        {**row, "outcome": "ok"}
        if row["judge"] in of_all or row["sample_id"] in part
        else {**row, "rating": None, "outcome": NOT_NEEDED}
        for row in rows
    ]


def of_part(rows: list[Row], part: Collection[str]) -> list[Row]:
    return [row for row in rows if row["sample_id"] in part]


def share_of(said: dict[str, list[float | None]], system: str) -> float | None:
    """Of the points of one sample, by what each judge rates each system."""
    points = []
    for other, ratings in said.items():
        pairs = [verdict(a, b) for a, b in zip(said[system], ratings, strict=True)]
        known = [one for one in pairs if one is not None]
        if other != system and known:
            points.append((1 + most_said(known)) / 2)
    return fmean(points) if points else None


def vote_by_hand(rows: list[Row], cheap: str, part: Collection[str]) -> dict[str, Any]:
    """The regression, in loops: the vote on the part, and one judge's shares on all."""
    systems, samples = (sorted({row[key] for row in rows}) for key in ("system", "sample_id"))
    given = {(row["sample_id"], row["system"], row["judge"]): row["rating"] for row in rows}

    def shares(sample: str, judges: Collection[str]) -> list[float]:
        said = {one: [given.get((sample, one, judge)) for judge in judges] for one in systems}
        return [np.nan if (one := share_of(said, name)) is None else one for name in systems]

    x = np.array([shares(sample, [cheap]) for sample in samples])
    x = np.where(np.isnan(x), np.nanmean(x, axis=0), x)
    at = [number for number, sample in enumerate(samples) if sample in part]
    h = np.array([shares(samples[number], JUDGES) for number in at])

    def weight(rows: list[int]) -> float:
        left = x[[at[row] for row in rows]]
        left, right = left - left.mean(axis=0), h[rows] - h[rows].mean(axis=0)
        return float((left * right).sum() / (left**2).sum())

    every = list(range(len(at)))
    beta = weight(every)
    missed = np.array([h[i] - weight([j for j in every if j != i]) * x[at[i]] for i in every])
    rates = beta * x.mean(axis=0) + (h - beta * x[at]).mean(axis=0)
    # Of two phases of sampling: of the samples, and among them of those that are voted on.
    variance = h.var(axis=0, ddof=1) / len(samples)
    variance += missed.var(axis=0, ddof=1) * (1 / len(at) - 1 / len(samples))
    half = t.ppf(0.975, len(at) - 1) * np.sqrt(variance)
    ends = [(low, high) for low, high in zip(rates - half, rates + half, strict=True)]
    return {"beta": beta, "rate": dict(zip(systems, rates, strict=True)), "ends": ends}


def test_the_estimate_is_the_regression_of_the_vote(rated: list[Row]) -> None:
    part = drawn(rated)
    expected = vote_by_hand(rated, "gpt4o", part)
    found = win_rate(shared_out(rated, ["gpt4o"], part))
    assert dict(found.win_rate) == pytest.approx(expected["rate"])
    for name, ends in zip(expected["rate"], expected["ends"], strict=True):
        assert found.interval[name] == pytest.approx(ends)
    estimate = found.definition["estimate"]
    assert estimate["weights"] == {"gpt4o": pytest.approx(expected["beta"])}
    assert (found.definition["samples"], found.definition["voted"]) == (179, 36)
    assert 0.3 < estimate["rho2"] < 0.7


def covered(rated: list[Row], draws: int, share: float) -> NDArray[Any]:
    """How often intervals hold the truth, on samples drawn anew from the real ones."""
    truth, by_sample = win_rate(rated, n_boot=0).win_rate, dict[str, list[Row]]()
    for row in rated:
        by_sample.setdefault(row["sample_id"], []).append(row)
    names, held = sorted(by_sample), []
    for seed in range(draws):
        chosen = np.random.default_rng(seed).integers(0, len(names), len(names))
        rows = [
            {**row, "sample_id": f"{number:03}"}
            for number, at in enumerate(chosen)
            for row in by_sample[names[at]]
        ]
        found = win_rate(shared_out(rows, ["gpt4o"], drawn(rows, share, seed)))
        ends = [(found.interval[name], rate) for name, rate in truth.items()]
        held.append([low <= rate <= high for (low, high), rate in ends])
    return np.mean(held, axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.1, 0.2, 0.5])
def test_intervals_hold_the_rate_as_often_as_they_say(rated: list[Row], share: float) -> None:
    held = covered(rated, 1000, share)
    assert 0.93 <= held.mean() <= 0.98
    assert held.min() >= 0.91


def test_everything_else_is_counted_where_all_judges_vote(rated: list[Row]) -> None:
    """Pairs, other rules, strengths and each judge, as if there were no other samples."""
    part = drawn(rated)
    rows, alone = shared_out(rated, ["gpt4o"], part), of_part(rated, part)
    found, plain = win_rate(rows), win_rate(alone, n_boot=0)
    assert (found.matrix, found.pairs, found.ties) == (plain.matrix, plain.pairs, plain.ties)
    assert (found.coverage, found.per_judge) == (plain.coverage, plain.per_judge)
    assert win_rate(rows, protocol="published").win_rate == (
        win_rate(alone, protocol="published").win_rate
    )
    assert sensitivity(rows).boards == sensitivity(alone).boards
    assert bounds(rows).bounds == bounds(alone).bounds
    assert bounds(rows).win_rate == plain.win_rate
    strengths = bradley_terry(rows, n_boot=0).strength
    assert strengths == bradley_terry(alone, n_boot=0).strength
    makers = {"gpt4o": "OpenAI", "gemini": "Google", "qwenvl": None}
    systems = {name: "OpenAI" if name == "gpt4o" else "others" for name in found.win_rate}
    one, other = (self_preference(each, makers, systems, n_boot=0) for each in (rows, alone))
    assert one.judges == other.judges


def test_tiers_and_samples_needed_follow_the_estimate(rated: list[Row]) -> None:
    rows = shared_out(rated, ["gpt4o"], drawn(rated))
    rates = win_rate(rows).win_rate
    found = tiers(rows, n_resamples=2000)
    assert [name for tier in found.tiers for name in tier] == list(rates)
    assert 1 < len(found.tiers) < len(rates)
    assert found.win_rate == rates
    for one, others in samples_needed(rows).pairs.items():
        for other, pair in others.items():
            assert pair.difference == pytest.approx(rates[one] - rates[other])


def test_without_a_judge_the_rest_is_what_was_asked(rated: list[Row]) -> None:
    part = drawn(rated)
    rows = shared_out(rated, ["gpt4o"], part)
    found = leave_one_judge_out(rows)
    assert found.win_rate == win_rate(rows).win_rate
    for judge in JUDGES:
        left = [row for row in rows if row["judge"] != judge]
        assert found.without[judge] == win_rate(left, n_boot=0).win_rate
    # Without the judge of all there is nothing to estimate from: the vote on the part is left.
    others = [row for row in of_part(rated, part) if row["judge"] != "gpt4o"]
    assert found.without["gpt4o"] == win_rate(others, n_boot=0).win_rate


def two_judges(samples: int, voted: int) -> list[Row]:
    """Two judges of two systems, of whom one says the same of all."""
    rng, rows = np.random.default_rng(4), []
    for at in range(samples):
        for system in "ab":
            row = {"sample_id": f"{at:03}", "system": system}
            rating = float(rng.integers(0, 9)) if at < voted else None
            rows.append({**row, "judge": "dull", "rating": 5.0, "outcome": "ok"})
            outcome = "ok" if at < voted else NOT_NEEDED
            rows.append({**row, "judge": "sharp", "rating": rating, "outcome": outcome})
    return rows


def test_too_few_votes_are_refused_with_how_many_are_needed() -> None:
    with pytest.raises(ScoreError, match=r"all judges were asked about 7 of 50 samples: expected"):
        win_rate(two_judges(50, 7))


def test_a_system_with_few_votes_has_no_rate_and_says_why() -> None:
    rows = [
        row | {"system": "c"}
        for row in two_judges(80, 9)
        if row["system"] == "a" and int(row["sample_id"]) < 9
    ]
    found = win_rate(two_judges(80, 30) + rows)
    assert (found.win_rate["c"], found.interval["c"]) == (None, None)
    assert found.reasons == {"c": "few_samples"}


def test_what_nobody_was_asked_spares_nobody() -> None:
    """Where all judges stopped, there is no part: the others' samples count as ever."""
    rows = two_judges(60, 60)
    stopped = [
        {**row, "rating": None, "outcome": NOT_NEEDED} if int(row["sample_id"]) >= 40 else row
        for row in rows
    ]
    found = win_rate(stopped, n_boot=0)
    assert found.win_rate == win_rate([row for row in rows if int(row["sample_id"]) < 40]).win_rate
    assert "voted" not in found.definition


def test_people_correct_the_judges_who_rated_all(rated: list[Row], test_data: Path) -> None:
    people = real_people(test_data)
    part = drawn(people, seed=7)
    some = [row for row in people if row["sample_id"] in part]
    rows = shared_out(rated, ["gemini", "gpt4o"], drawn(rated))
    full = [row for row in rated if row["judge"] != "qwenvl"]
    assert human_corrected(rows, some) == human_corrected(full, some)
