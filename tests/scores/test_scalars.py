"""Numbers on a scale of their own: they are ranked, and averaged with no other judge's."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau, rankdata

from echo_hf.config.rubrics import RUBRICS
from echo_hf.errors import ScoreError
from echo_hf.metrics.rubric import make_rubric_metric
from echo_hf.scores.agreement import agreement
from echo_hf.scores.rating_table import IgnoredRating, rank_scalars, read_ratings
from echo_hf.scores.reliability import reliability
from echo_hf.scores.robustness import sensitivity
from echo_hf.scores.ruler import ruler
from echo_hf.scores.votes import count_votes
from echo_hf.scores.win_rate import win_rate

Row = dict[str, Any]
FORMS = {None: json.dumps({"judge": {"mode": "text"}}), "scalar": None}
FORMS["scalar"] = json.dumps({"judge": {"form": "scalar", "scale": None}}, sort_keys=True)


def rows_of(judge: str, form: str | None = None, **systems: list[float]) -> list[Row]:
    return [
        {
            "sample_id": f"s{at:02}",
            "system": system,
            "judge": judge,
            "rating": rating,
            "provenance": FORMS[form],
        }
        for system, ratings in systems.items()
        for at, rating in enumerate(ratings)
    ]


@given(st.lists(st.floats(allow_nan=True, allow_infinity=False), max_size=30))
def test_ranks_are_dense_from_1_and_nothing_stays_nothing(values: list[float]) -> None:
    array = np.array(values, dtype=float)
    ranks, known = rank_scalars(array), ~np.isnan(array)
    assert (np.isnan(ranks) == ~known).all()
    assert ranks[known].tolist() == rankdata(array[known], method="dense").tolist()


@given(st.lists(st.integers(-3, 3), min_size=12, max_size=12), st.sampled_from([1e-12, 1.0, 1e6]))
def test_win_rates_by_scalars_depend_on_their_order_alone(numbers: list[int], size: float) -> None:
    """Equal floats tie, and others do not, however close they are."""
    columns = np.reshape(numbers, (3, 4)).astype(float)
    plain, scaled = (
        win_rate(rows_of("j", form, **{name: (unit * each).tolist() for name, each in systems}))
        for form, unit in ((None, 1.0), ("scalar", size))
        for systems in [list(zip("abc", columns, strict=True))]
    )
    assert plain.win_rate == scaled.win_rate
    assert plain.ties == scaled.ties


def test_a_mean_over_judges_is_refused_beside_a_scalar_and_other_votes_stay() -> None:
    rows = rows_of("j", a=[9, 4], b=[3, 5]) + rows_of("k", "scalar", a=[-50, 2], b=[70, 1])
    counted = count_votes(rows)
    with pytest.raises(ScoreError, match="vote is 'mean_rating', and 'k' gives numbers on a scale"):
        counted.vote("mean_rating")
    assert win_rate(rows).win_rate == {"a": 0.5, "b": 0.5}
    every = {board.vote for board in sensitivity(rows).boards}
    assert "plurality" in every
    assert "mean_rating" not in every
    alone = count_votes(rows_of("k", "scalar", a=[-50, 2], b=[70, 1]))
    assert alone.vote("mean_rating").tolist() == [[-1.0, 1.0]]


def test_agreement_with_people_takes_the_order_of_numbers() -> None:
    numbers = {"a": [1e-9, 4e-9], "b": [2e-9, 1e-9], "c": [3e-9, 2e-9]}
    people = [
        {"sample_id": f"s{at:02}", "system": system, "rater": "ada", "rank": rank}
        for system, ranks in {"a": [1, 1], "b": [2, 3], "c": [3, 2]}.items()
        for at, rank in enumerate(ranks)
    ]
    result = agreement(people, rows_of("j", "scalar", **numbers))
    plain = {name: [1e9 * number for number in column] for name, column in numbers.items()}
    by_rating = agreement(people, rows_of("j", **plain))
    assert result.judges.with_raters == by_rating.judges.with_raters
    # In the first sample people's order is a, b, c, and the judge's its reverse.
    assert kendalltau([1, 2, 3], [-numbers[name][0] for name in "abc"]).statistic == -1
    assert result.judges.with_raters["j"]["ada"].tau == pytest.approx(0.0)  # -1 and 1


def test_success_is_held_to_ratings_alone_and_the_others_are_counted() -> None:
    keys = [(f"s{at:02}", draw) for at in range(12) for draw in range(2)]
    rated = [
        {"sample_id": sample, "draw": draw, "system": "a", "judge": judge, "rating": rating}
        | {"provenance": FORMS[form]}
        for judge, form, rating in (("j", None, 8.0), ("k", "scalar", -40.0))
        for sample, draw in keys
    ]
    result = reliability(rated)
    assert result.success["a"].value == 1.0
    assert result.ignored[IgnoredRating.NO_SCALE] == len(keys)
    with pytest.raises(ScoreError, match="'k' gives numbers without a scale"):
        reliability([row for row in rated if row["judge"] == "k"])


def test_mean_rating_of_a_rubric_leaves_scalars_out_and_counts_them() -> None:
    metric = make_rubric_metric(RUBRICS.find("reference"), {})()
    rows = rows_of("j", a=[8, 6] * 6) + rows_of("k", "scalar", a=[2, 3] * 6)
    table = pa.Table.from_pylist([{**row, "rubric": "reference"} for row in rows])
    result = metric.measure(table, protocol="corrected", options=None, names=[])
    assert (result.value, result.off_scale) == (7.0, 12)


def test_difficulty_through_time_is_of_ratings_on_a_scale() -> None:
    """Both releases hold the same systems; by ratings the second is two points easier."""
    rng = np.random.default_rng(3)

    def rate(release: str, judge: str, form: str | None, shift: float) -> list[Row]:
        systems = {name: (rng.integers(2, 7, 30) + shift).tolist() for name in "ab"}
        rows = rows_of(judge, form, **systems)
        return [
            {**row, "sample_id": release + row["sample_id"], "release": release} for row in rows
        ]

    by_judge = [*rate("r1", "j", None, 0), *rate("r2", "j", None, 2)]
    scalars = [*rate("r1", "k", "scalar", 0), *rate("r2", "k", "scalar", 500)]
    alone, both = ruler(by_judge), ruler([*by_judge, *scalars])
    assert both.difficulty == alone.difficulty
    assert ruler(scalars).difficulty["r2"] is None


def test_ratings_without_provenance_are_as_they_are() -> None:
    rows = [{k: v for k, v in row.items() if k != "provenance"} for row in rows_of("j", a=[3, 9])]
    assert read_ratings(rows).ratings.tolist() == [[[3.0, 9.0]]]
