"""Text rendering: means of ratings, scales, and what is refused."""

from __future__ import annotations

import json
from fractions import Fraction
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.errors import ScoreError
from echo_hf.metrics import text_rendering
from echo_hf.metrics.result import MetricReason

Row = dict[str, Any]
RATINGS = st.lists(
    st.tuples(st.sampled_from("stuv"), st.sampled_from("jk"), st.none() | st.integers(0, 10)),
    max_size=25,
)


def _row(sample: str, judge: str, rating: float | None, system: str = "a") -> Row:
    return {"sample_id": sample, "system": system, "judge": judge, "rating": rating}


def _mean(values: list[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


@given(RATINGS, st.randoms(use_true_random=False))
def test_means_are_of_repeats_then_judges_then_samples(ratings: Any, random: Random) -> None:
    cells: dict[str, dict[str, list[Fraction]]] = {}
    for sample, judge, rating in ratings:
        if rating is not None:
            cells.setdefault(sample, {}).setdefault(judge, []).append(Fraction(rating, 10))
    expected = {
        sample: _mean([_mean(repeats) for repeats in judges.values()])
        for sample, judges in cells.items()
    }
    rows = [{**_row(*one), "repeat": at} for at, one in enumerate(ratings)]
    found = text_rendering(rows, n_boot=20)
    samples = sorted({sample for sample, *_ in ratings})
    assert found.sample_ids == tuple(samples)
    assert found.per_sample == tuple(
        pytest.approx(float(expected[one])) if one in expected else None for one in samples
    )
    whole = pytest.approx(float(_mean(list(expected.values())))) if expected else None
    assert found.value == whole
    assert found.n == len(expected)
    assert found.coverage == (len(expected) / len(samples) if samples else None)
    random.shuffle(rows)
    assert text_rendering(rows, n_boot=20) == found


def test_what_a_judge_was_spared_does_not_mix_with_what_all_rated() -> None:
    """By hand: s is rated 9 and 6; the lower mean of t is by one judge alone."""
    rows = [_row("s", "j", 9), _row("s", "k", 6), _row("t", "j", 1), _row("t", "k", None)]
    found = text_rendering(
        [{**row, "outcome": "ok"} for row in rows[:3]] + [{**rows[3], "outcome": "not_needed"}]
    )
    assert (found.value, found.per_sample) == (0.75, (0.75, None))
    assert found.counts == {MetricReason.SPARED: 1}
    assert text_rendering(rows).per_sample == (0.75, 0.1)


@pytest.mark.parametrize(
    ("protocol", "rating", "counts"),
    [
        ("corrected", 0, True),
        ("corrected", 8.5, True),
        ("corrected", 10.5, False),
        ("corrected", -1, False),
        ("published", 1, True),
        ("published", 0, False),
        ("published", 8.5, False),
    ],
)
def test_ratings_off_the_scale_do_not_count(protocol: Any, rating: float, counts: bool) -> None:
    rows = [_row("s", "j", rating), _row("t", "j", rating), _row("t", "k", 6)]
    found = text_rendering(rows, protocol=protocol)
    assert found.off_scale == (0 if counts else 2)
    assert found.per_sample[0] == (pytest.approx(rating / 10) if counts else None)
    assert found.per_sample[1] == pytest.approx((rating / 10 + 0.6) / 2 if counts else 0.6)
    assert found.counts == ({} if counts else {MetricReason.OFF_SCALE: 1})
    if not counts:
        assert found.reasons[0] is not None
        assert found.reasons[0].detail == f"rated {float(rating)!r}"


def test_each_judge_has_a_mean_of_its_own() -> None:
    rows = [_row("s", "j", 9), _row("s", "j", 7), _row("t", "j", 5), _row("s", "k", 2)]
    rows = [{**row, "repeat": at} for at, row in enumerate([*rows, _row("t", "l", None)])]
    found = text_rendering(rows)
    assert found.per_judge == {
        "j": pytest.approx(0.65), "k": pytest.approx(0.2), "l": None
    }  # fmt: skip
    assert found.per_sample == (pytest.approx(0.5), pytest.approx(0.5))


def test_ratings_by_other_rubrics_are_of_something_else() -> None:
    rows = [
        {**_row("s", "j", 9), "rubric": "overall"},
        {**_row("s", "j", 3), "rubric": "text_rendering"},
    ]
    assert text_rendering(rows).value == pytest.approx(0.3)
    misspelt = [{**row, "rubric": "text_renderin"} for row in rows]
    with pytest.raises(
        ScoreError, match=r"^ratings: unknown rubric 'text_rendering'; did you mean 'text_renderin'"
    ):
        text_rendering(misspelt)


SEVERAL = [_row("s", "j", 9, "flux"), _row("s", "j", 3, "bagel")]


@pytest.mark.parametrize(
    ("rows", "options", "said"),
    [
        ([_row("s", "j", 9), _row("s", "j", 99)], {}, "system 'a', judge 'j' is there twice"),
        ([_row("s", "j", float("inf"))], {}, "inf is the rating of sample_id 's'"),
        (SEVERAL, {}, "2 systems: expected system= to name one of 'bagel', 'flu"),
        (SEVERAL, {"system": "fluxx"}, "unknown system 'fluxx'; did you mean 'flux'"),
        ([], {"protocol": "paper"}, "unknown protocol 'paper'; known: corrected, published"),
    ],
)
def test_what_is_not_clear_is_refused(rows: list[Row], options: Any, said: str) -> None:
    with pytest.raises(ScoreError, match=said):
        text_rendering(rows, **options)


def test_the_system_is_named_where_there_are_several() -> None:
    assert text_rendering(SEVERAL, system="flux").value == pytest.approx(0.9)


def test_the_result_is_json_and_says_how_it_was_made() -> None:
    published, corrected = (
        json.loads(json.dumps(text_rendering([_row("s", "j", 9)], protocol=name).as_json()))
        for name in ("published", "corrected")
    )
    differ = {
        key
        for key, value in published["definition"].items()
        if value != corrected["definition"][key]
    }
    assert differ == {"protocol", "scale"}
    assert corrected["per_judge"] == {"j": 0.9}
