"""From compared items to measures."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.builder.gold.measures import (
    Compared,
    Item,
    Measure,
    bootstrap_over_threads,
    measured,
    similarity,
    wilson,
)

TEXTS = st.text(alphabet="abc é猫", max_size=12)
# Newcombe (1998), Statistics in Medicine 17, table I, method 3.
PUBLISHED = {
    (81, 263): (0.2553, 0.3662),
    (15, 148): (0.0624, 0.1605),
    (0, 20): (0.0000, 0.1611),
    (1, 29): (0.0061, 0.1718),
}


def items(scores: Sequence[tuple[int, float | None]], name: str = "x") -> list[Compared]:
    return [
        (name, Item(f"t{thread}", f"p{number}", "a", "b", score))
        for number, (thread, score) in enumerate(scores)
    ]


def one(some: Sequence[Compared], name: str = "x") -> Measure:
    (found,) = measured("roles", [name], some, errors=True)
    return found


def test_a_measure_by_hand() -> None:
    some = items([(0, 1.0), (0, 1.0), (1, 0.0), (2, 1.0), (2, None)])
    found = one([*some, ("x", None), ("x", None)])
    assert (found.value, found.n, found.answered, found.asked) == (0.75, 4, 4, 5)
    assert (found.coverage, found.strict, found.skipped) == (0.8, 0.6, 2)
    assert found.interval == "wilson"
    # Wilson's ends for 3 of 4, by its formula with z = 1.96 on paper.
    assert found.low == pytest.approx(0.3006, abs=1e-3)
    assert found.high == pytest.approx(0.9544, abs=1e-3)
    assert [(error.place, error.score) for error in found.errors] == [("p2", 0.0), ("p4", None)]
    # Written down are only names and numbers, no words of people.
    told = found.as_json()
    assert "errors" not in told
    assert {type(value) for value in told.values()} <= {str, int, float, type(None)}


def test_of_a_precision_nothing_can_be_missing() -> None:
    wanted = items([(0, 1.0), (0, 0.0), (1, 1.0), (1, None)], "sample_recall")
    names = ["sample_precision", "sample_recall"]
    found, _ = measured("extract", names, [*wanted, *items([(0, 1.0)], "sample_precision")])
    assert (found.value, found.n, found.coverage, found.strict) == (1.0, 1, 0.75, None)


def test_graded_scores_are_bootstrapped() -> None:
    name = "prompt_similarity"
    scores = [(number, number / 20) for number in range(20)]
    found, few = (one(items(some, name), name) for some in (scores, scores[:9]))
    assert found.interval == "bootstrap over threads"
    assert (found.low or 1) < 0.475 < (found.high or 0)
    assert (few.interval, few.low) == (None, None)


def test_wilson_gives_the_published_ends() -> None:
    for counts, ends in PUBLISHED.items():
        assert wilson(*counts) == pytest.approx(ends, abs=5e-5)


def test_few_or_equal_threads_have_no_interval() -> None:
    some = [[number / 10] for number in range(10)]
    assert bootstrap_over_threads(some) is not None
    assert wilson(0, 0) is None
    for few in ([], some[:9], [[1.0]] * 30):
        assert bootstrap_over_threads(few) is None


def test_the_bootstrap_is_as_wide_as_theory_says() -> None:
    scores = np.random.default_rng(5).random(400)
    error = 1.96 * scores.std(ddof=1) / 20
    ends = scores.mean() - error, scores.mean() + error
    assert bootstrap_over_threads([[score] for score in scores]) == pytest.approx(ends, abs=0.005)


def test_the_bootstrap_draws_threads() -> None:
    single = [[number / 15] for number in range(16)]
    tenfold = [thread * 10 for thread in single]
    assert bootstrap_over_threads(tenfold) == pytest.approx(bootstrap_over_threads(single))
    assert bootstrap_over_threads(single) == bootstrap_over_threads(single)


def by_definition(one: str, other: str) -> int:
    @cache
    def of(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        change = of(i - 1, j - 1) + (one[i - 1] != other[j - 1])
        return min(of(i - 1, j) + 1, of(i, j - 1) + 1, change)

    return of(len(one), len(other))


@given(TEXTS, TEXTS)
def test_similarity_is_one_less_the_distance_by_the_longer_length(one: str, other: str) -> None:
    some, more = " ".join(one.split()), " ".join(other.split())
    longest = max(len(some), len(more))
    expected = 1 - by_definition(some, more) / longest if longest else 1
    assert similarity(one, other) == similarity(other, one) == pytest.approx(expected)
    assert (similarity(one, other) == 1) is (some == more)
