"""True comparisons against those that follow from ratings, counted one row at a time."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.errors import ScoreError
from echo_hf.scores import pairwise_agreement
from echo_hf.scores.pairwise_agreement import JudgeAgreement

Row = dict[str, Any]
WINNERS = ("a", "b", "tie", None)
PAIRS = (("ash", "birch"), ("ash", "cedar"), ("birch", "cedar"))
SHARES = ("first", "follows_position", "consistent", "agreement", "decided")


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
        if one["winner"] in ("a", "b"):
            count("first", one["winner"] == one["order"][0])
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
        if "tie" not in (true, by_ratings):
            count("decided", true == by_ratings)
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
            assert share.reason in ("no_verdicts", "not_rated", "no_winners")


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


def test_opposite_ratings_never_agree_and_repeats_are_averaged() -> None:
    """By hand: the mean of 3 and 9 is above 5, so the ratings say a where the choices say b."""
    rows = [row("s", PAIRS[0], order, "b") for order in ("ab", "ba")]
    known = {"sample_id": "s", "judge": "jay"}
    ratings = [
        {**known, "system": "ash", "repeat": 0, "rating": 3},
        {**known, "system": "ash", "repeat": 1, "rating": 9},
        {**known, "system": "birch", "repeat": 0, "rating": 5},
    ]
    found = of(rows, ratings, n_boot=100)
    assert (found.agreement.value, found.decided.value) == (0, 0)
    assert found.agreement.reason == "few_samples"


def test_reasons_say_what_is_missing() -> None:
    refused = of([row("s", PAIRS[0], order, None) for order in ("ab", "ba")])
    assert {getattr(refused, name).reason for name in SHARES} == {"no_verdicts"}
    alone = of([row("s", PAIRS[0], order, "a") for order in ("ab", "ba")])
    assert (alone.agreement.value, alone.agreement.reason) == (None, "not_rated")
    ties = of(
        [row("s", PAIRS[0], order, "tie") for order in ("ab", "ba")],
        [{"sample_id": "s", "system": name, "judge": "jay", "rating": 5} for name in PAIRS[0]],
    )
    assert (ties.agreement.value, ties.decided.reason) == (1, "no_winners")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"order": "aa"}, "order is 'aa'"),
        ({"winner": "ash"}, "winner is 'ash'"),
        ({"system_b": "ant"}, "system_a the first by name"),
        ({}, "is there twice"),
    ],
)
def test_rows_that_make_no_sense_are_named(values: Row, said: str) -> None:
    rows = [row("s", PAIRS[0], "ab", "a"), {**row("s", PAIRS[0], "ab", "a"), **values}]
    with pytest.raises(ScoreError, match=said):
        pairwise_agreement(rows)
