"""Summing up items."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.builder.gold.measures import Item, Scored, measured

SCORES = st.lists(st.tuples(st.integers(0, 14), st.sampled_from([0.0, 1.0, None])), max_size=60)


def items(scores: Sequence[tuple[int, float | None]]) -> list[Item]:
    """Items with these threads and scores."""
    return [
        Item(f"t{thread}", f"p{number}", "a", "b", score)
        for number, (thread, score) in enumerate(scores)
    ]


def test_a_measure_by_hand() -> None:
    """Three of four answers are right, one item has none."""
    some = items([(0, 1.0), (0, 1.0), (1, 0.0), (2, 1.0), (2, None)])
    found = measured("roles", Scored("picture_role_accuracy", some, skipped=2), errors=True)

    assert (found.value, found.n, found.answered, found.asked) == (0.75, 4, 4, 5)
    assert (found.coverage, found.strict, found.skipped) == (0.8, 0.6, 2)
    assert found.interval == "wilson"
    # Wilson's ends for 3 of 4, by its formula with z = 1.96 on paper.
    assert found.low == pytest.approx(0.3006, abs=1e-3)
    assert found.high == pytest.approx(0.9544, abs=1e-3)
    assert [(one.place, one.score) for one in found.errors] == [("p2", 0.0), ("p4", None)]


def test_of_a_precision_nothing_can_be_missing() -> None:
    """Its items are claims: the coverage is that of what people wrote, and no strict value is."""
    found = measured("extract", Scored("sample_precision", items([(0, 1.0)]), (3, 4)))

    assert (found.value, found.n, found.coverage, found.strict) == (1.0, 1, 0.75, None)


def test_nothing_to_compare() -> None:
    """Without items there is no value, no interval and no coverage."""
    found = measured("extract", Scored("sample_recall", []))

    assert (found.value, found.low, found.high, found.interval) == (None,) * 4
    assert (found.coverage, found.strict, found.n) == (None, None, 0)


def test_graded_scores_are_bootstrapped() -> None:
    """A similarity has an interval over threads, from ten of them on."""
    scores = [(number, number / 20) for number in range(20)]
    found = measured("extract", Scored("prompt_similarity", items(scores), graded=True))
    few = measured("extract", Scored("prompt_similarity", items(scores[:9]), graded=True))

    assert found.interval == "bootstrap over threads"
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.475 < found.high
    assert (few.interval, few.low) == (None, None)


@given(SCORES, st.randoms(use_true_random=False), st.booleans())
def test_the_order_of_items_does_not_matter(
    scores: list[tuple[int, float | None]], chance: object, graded: bool
) -> None:
    """Shuffled items give the same measure."""
    some = items(scores)
    straight = measured("roles", Scored("x", some, graded=graded), errors=True)
    chance.shuffle(some)  # type: ignore[attr-defined]

    assert measured("roles", Scored("x", some, graded=graded), errors=True) == straight


@given(SCORES)
def test_missing_answers_can_only_lower_the_strict_value(
    scores: list[tuple[int, float | None]],
) -> None:
    """The strict value is the value times the coverage."""
    found = measured("roles", Scored("x", items(scores)))
    if found.value is not None:
        assert found.strict == pytest.approx(found.value * (found.coverage or 0))
        assert (found.strict or 0) <= found.value


def test_a_measure_as_json_has_no_words_of_people() -> None:
    """Only names and numbers are written."""
    found = measured("roles", Scored("x", items([(0, 0.0)])), errors=True).as_json()

    assert "errors" not in found
    assert found["coverage"] == 1
    assert {type(value) for value in found.values()} <= {str, int, float, type(None)}
