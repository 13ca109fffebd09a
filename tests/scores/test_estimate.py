"""The vote estimated from a part of the samples, against loops, draws, and the part alone."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import t

from echo_hf.errors import ScoreError
from echo_hf.scores import (
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
from tests.scores.ratings_for_tests import Row, most_said, real_people, real_rows, verdict

JUDGES = ("gemini", "gpt4o", "qwenvl")
NOT_NEEDED = "not_needed"


@pytest.fixture(scope="module")
def rated(test_data: Path) -> list[Row]:
    return real_rows(test_data)


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


def by_hand(rows: list[Row], cheap: str, part: Collection[str]) -> dict[str, Any]:
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
    expected = by_hand(rated, "gpt4o", part)
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


def made(samples: int, voted: int) -> list[Row]:
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
        win_rate(made(50, 7))


def test_a_system_with_few_votes_has_no_rate_and_says_why() -> None:
    rows = [
        row | {"system": "c"}
        for row in made(80, 9)
        if row["system"] == "a" and int(row["sample_id"]) < 9
    ]
    found = win_rate(made(80, 30) + rows)
    assert (found.win_rate["c"], found.interval["c"]) == (None, None)
    assert found.reasons == {"c": "few_samples"}


def test_what_nobody_was_asked_spares_nobody() -> None:
    """Where all judges stopped, there is no part: the others' samples count as ever."""
    rows = made(60, 60)
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
