"""True comparisons against those that follow from ratings, counted one row at a time."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import kendalltau, spearmanr

from echo_hf.scores import PairwiseAgreement, pairwise_agreement
from echo_hf.scores.pairwise_agreement import JudgeAgreement, SideBySide

Row = dict[str, Any]
ORDERS = ("ab", "ba")
WINNERS = ("a", "b", "tie", None)
PAIRS = (("ash", "birch"), ("ash", "cedar"), ("birch", "cedar"))
SHARES = ("follows_position", "consistent", "agreement")


def row(sample: str, pair: tuple[str, str], order: str, winner: str | None, repeat: int = 0) -> Row:
    a, b = pair
    known = {"sample_id": sample, "system_a": a, "system_b": b, "judge": "jay"}
    return {**known, "order": order, "repeat": repeat, "winner": winner}


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Row], list[Row]]:
    rows = [
        row(f"s{at}", pair, order, draw(st.sampled_from(WINNERS)), repeat)
        for at in range(draw(st.integers(1, 4)))
        for pair in PAIRS
        for repeat in range(2)
        for order in ("ab", "ba")
        if draw(st.booleans())
    ]
    ratings = [
        {
            "sample_id": f"s{at}",
            "system": name,
            "judge": "jay",
            "rating": draw(st.none() | st.just(1.0) | st.just(2.0)),
        }
        for at in range(4)
        for name in ("ash", "birch", "cedar")
    ]
    return rows, ratings


def counted(rows: list[Row], ratings: list[Row]) -> dict[str, tuple[int, int]]:
    rated = {(one["sample_id"], one["system"]): one["rating"] for one in ratings}
    seen: dict[Any, dict[str, str | None]] = defaultdict(dict)
    found = {name: [0, 0] for name in SHARES}

    def count(name: str, is_so: bool) -> None:
        found[name][0] += is_so
        found[name][1] += 1

    for one in rows:
        key = (one["sample_id"], one["system_a"], one["system_b"], one["repeat"])
        seen[key][one["order"]] = one["winner"]
    for (sample, a, b, _), said in seen.items():
        ab, ba = said.get("ab"), said.get("ba")
        if ab is None or ba is None:
            continue
        count("follows_position", {ab, ba} == {"a", "b"})
        count("consistent", ab == ba)
        one, other = rated[sample, a], rated[sample, b]
        if one is None or other is None:
            continue
        by_ratings = "tie" if one == other else "a" if one > other else "b"
        true = ab if ab == ba else "tie"
        count("agreement", true == by_ratings)
    return {name: (part, whole) for name, (part, whole) in found.items()}


@given(cases())
def test_the_shares_are_the_counted_ones(case: tuple[list[Row], list[Row]]) -> None:
    rows, ratings = case
    judges = pairwise_agreement(rows or [row("s", PAIRS[0], "ab", None)], ratings, n_boot=0).judges
    found = judges["jay"]
    for name, (part, whole) in counted(rows, ratings).items():
        share = getattr(found, name)
        assert share.count == whole
        assert share.interval is None
        if whole:
            assert share.value == pytest.approx(part / whole)
        else:
            assert share.value is None
            assert share.reason in ("no_verdicts", "not_rated")


def of(rows: list[Row], ratings: list[Row] | None = None, n_boot: int = 1000) -> JudgeAgreement:
    return pairwise_agreement(rows, ratings, n_boot=n_boot).judges["jay"]


def test_the_interval_draws_samples_and_not_pairs() -> None:
    names = [f"c{at}" for at in range(10)]
    rng = np.random.default_rng(2)
    alone, copied = [], []
    for at in range(60):
        winner = ("a", "b") if rng.random() < 0.5 else ("a", "a")
        for order, said in zip(("ab", "ba"), winner, strict=True):
            alone.append(row(f"s{at:02}", ("a", "z"), order, said))
            copied += [row(f"s{at:02}", (name, "z"), order, said) for name in names]
    assert of(alone).consistent.interval == pytest.approx(of(copied).consistent.interval)


def test_reasons_say_what_is_missing() -> None:
    refused = of([row("s", PAIRS[0], order, None) for order in ("ab", "ba")])
    assert {getattr(refused, name).reason for name in SHARES} == {"no_verdicts"}
    alone = of([row("s", PAIRS[0], order, "a") for order in ("ab", "ba")])
    assert (alone.agreement.value, alone.agreement.reason) == (None, "not_rated")


Scores = NDArray[np.float64]  # [sample, system], higher is better
NAMES = ("ash", "birch", "cedar", "dogwood")


def sides(ratings: Scores, choices: Scores, people: Scores | None, **more: Any) -> SideBySide:
    """A judge who rates by some scores, and chooses by others; a person who ranks by a third."""
    rated, chosen, ranked = [], [], []
    for at, (by_rating, by_choice) in enumerate(zip(ratings, choices, strict=True)):
        name = f"s{at:02}"
        for system, value in zip(NAMES, by_rating, strict=True):
            rated.append({"sample_id": name, "system": system, "judge": "jay", "rating": value})
        for one, other in combinations(range(len(NAMES)), 2):
            gap = by_choice[one] - by_choice[other]
            winner = "tie" if gap == 0 else "a" if gap > 0 else "b"
            chosen += [row(name, (NAMES[one], NAMES[other]), order, winner) for order in ORDERS]
        for system, value in zip(NAMES, () if people is None else people[at], strict=False):
            ranked.append({"sample_id": name, "rater": "ada", "system": system, "score": value})
    found: PairwiseAgreement = pairwise_agreement(chosen, rated, ranked or None, **more)
    assert found.sides is not None
    return found.sides


def rates(scores: Scores) -> list[float]:
    """The mean over opponents and samples of 1 for a win, 0.5 for a tie, 0 for a loss."""
    return [
        fmean(
            (1 + np.sign(some[system] - other)) / 2
            for some in scores
            for other in np.delete(some, system)
        )
        for system in range(len(NAMES))
    ]


def taus(scores: Scores, people: Scores) -> list[float]:
    found = (kendalltau(*pair) for pair in zip(scores, people, strict=True) if np.ptp(pair[1]))
    return [0.0 if np.isnan(one.statistic) else one.statistic for one in found]


@pytest.mark.parametrize("seed", range(4))
def test_both_ways_beside_people_are_those_of_another_program(seed: int) -> None:
    """With ties, and samples in which the judge or the person sees nothing but ties."""
    ratings, choices, people = np.random.default_rng(seed).integers(0, 3, (3, 40, 4)).astype(float)
    ratings[0] = choices[1] = people[2] = 1
    found = sides(ratings, choices, people, n_boot=200)
    assert found.pairs == 240
    assert found.spearman == pytest.approx(spearmanr(rates(ratings), rates(choices))[0])
    for way, scores in {"pointwise": ratings, "pairwise": choices}.items():
        near = found.with_people[way]  # type: ignore[index]
        assert near.spearman == pytest.approx(spearmanr(rates(scores), rates(people))[0])
        every = taus(scores, people)
        assert (near.tau.value, near.tau.samples) == (pytest.approx(fmean(every)), len(every))
    expected = fmean(taus(choices, people)) - fmean(taus(ratings, people))
    assert found.difference.value == pytest.approx(expected)
    low, high = found.difference.interval or (1.0, 0.0)
    assert low < expected < high


def test_the_way_that_is_nearer_to_people_is_named_from_ten_samples_on() -> None:
    people, noise = np.random.default_rng(5).normal(size=(2, 30, 4))
    near, far = people + noise / 4, people + 4 * noise
    assert sides(far, near, people).nearer == "pairwise"
    assert sides(near, far, people).nearer == "pointwise"
    few = sides(far[:9], near[:9], people[:9])
    assert (few.nearer, few.difference.interval, few.difference.reason) == (
        None,
        None,
        "few_samples",
    )
    same = sides(near, near, people)
    assert (same.difference.value, same.nearer) == (0, None)
    alone = sides(far, near, None)
    assert (alone.with_people, alone.difference.reason) == ({}, "not_ranked")
    level = np.ones((10, 4))
    assert sides(level, near[:10], people[:10]).spearman is None


def test_pairs_count_that_a_judge_both_rated_and_compared_and_more_judges_decide() -> None:
    """By hand: two of three choose a, two of three rate b higher; a fourth compared nothing."""
    said = {"jay": ("a", 1), "kite": ("a", 2), "lark": ("b", 9), "moth": (None, 9)}
    rows, ratings = [], []
    for judge, (winner, rating) in said.items():
        rows += [{**row("s", PAIRS[0], order, winner), "judge": judge} for order in ORDERS]
        for system, value in {"ash": rating, "birch": 5}.items():
            ratings.append({"sample_id": "s", "system": system, "judge": judge, "rating": value})
    ranks = [
        {"sample_id": name, "rater": rater, "system": system, "rank": rank}
        for rater in ("ada", "ben")
        for name in ("s", "elsewhere")
        for system, rank in {"ash": 1, "birch": 2, "elm": 3}.items()
    ]
    found = pairwise_agreement(rows, ratings, ranks, n_boot=0).sides
    assert found is not None
    assert (found.pairs, found.spearman) == (1, pytest.approx(-1))
    near = {way: one.tau.value for way, one in found.with_people.items()}
    assert near == {"pointwise": -1, "pairwise": 1}
    assert pairwise_agreement(rows, None, ranks).sides is None


def test_choices_between_first_outputs_alone_count() -> None:
    """A judge whose choices are its ratings agrees with itself, whatever later draws are."""
    ratings, choices = [], []
    for number in range(20):
        for draw in range(3):
            best = "a" if draw == 0 else "b"
            row = {"sample_id": f"s{number:02}", "judge": "j", "draw": draw}
            ratings += [
                {**row, "system": name, "rating": 9 if name == best else 2} for name in "ab"
            ]
            pair = {**row, "system_a": "a", "system_b": "b", "winner": best}
            choices += [{**pair, "order": order} for order in ("ab", "ba")]
    found = pairwise_agreement(choices, ratings, n_boot=0).judges["j"]
    assert (found.pairs, found.agreement.value) == (20, 1.0)
