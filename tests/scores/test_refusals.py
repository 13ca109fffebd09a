"""What no score can be made of is refused in a line that says what was expected."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from echo_hf import scores
from echo_hf.errors import ScoreError, TableError
from echo_hf.scores.agreement import read_human
from echo_hf.scores.kemeny import optimal_orders
from echo_hf.scores.rating_table import read_columns, read_ratings
from echo_hf.tables import RATINGS
from tests.scores.ratings_for_tests import Row, one_judge

ROWS = one_judge(ash=[1, 2], birch=[2, 1])
WHERE = "sample_id 's001', system 'birch', judge 'judge'"
KEY = ("sample_id", "system", "judge", "repeat")
RANKS = [{"sample_id": "s", "rater": "ada", "system": name, "rank": 1} for name in ("ash", "birch")]
MANY = one_judge(**{name: [at] * 40 for at, name in enumerate(("ash", "birch", "fir", "yew"))})
CHOICE = {"sample_id": "s", "system_a": "ash", "system_b": "birch", "judge": "jay"}
CHOICES = [{**CHOICE, "order": order, "winner": "a"} for order in ("ab", "ba")]


def changed(rows: list[Row], at: int = 0, **values: Any) -> list[Row]:
    other = {name: 0 for name in values if name == "repeat"}
    return [{**other, **row, **(values if number == at else {})} for number, row in enumerate(rows)]


def people(samples: int, systems: str = "ab") -> list[Row]:
    keys = [(f"{at:03}", name) for at in range(samples) for name in systems]
    return [{"sample_id": one, "rater": "ada", "system": name, "rank": 1} for one, name in keys]


def corrected(ranked: list[Row], **options: Any) -> Any:
    rated = [{**row, "judge": "j", "rating": 1} for row in people(40)]
    return scores.human_corrected(rated, ranked, **options)


def half_scored(**values: Any) -> Any:
    rows = [{**row, "rank": None, "score": 1.0} for row in people(1)]
    return read_human([{**rows[0], **values}, rows[1]])


def preference(judges: dict[str, Any], systems: dict[str, Any]) -> Any:
    return scores.self_preference(one_judge(ash=[1]), judges, systems)


columns = partial(read_columns, table=RATINGS, required=(*KEY[:3], "rating"), optional=KEY[3:])
rate, gate = partial(scores.win_rate, ROWS), partial(scores.non_inferiority, ROWS)
no_repeats = [{**row, "outcome": "ok"} for row in ROWS]

REFUSED: list[tuple[Callable[[], Any], str]] = [
    # Tables in any form.
    (lambda: columns([*ROWS, {"system": "a"}]), "row 4 is {'system': 'a'}: expected a dict with"),
    (lambda: columns([("s", "ash")]), "row 0 is ('s', 'ash'): expected a dict with sample_id"),
    (lambda: columns({"rating": [1]}), "no column 'sample_id' among ['rating']: expected sample_"),
    (lambda: columns(changed(ROWS[:1], rating="8")), "type 'string': expected numbers"),
    (lambda: columns(changed(ROWS[:1], rating=True)), "type 'bool': expected numbers"),
    (lambda: columns(changed(ROWS[:1], system=4)), "'system' has type 'int64': expected text"),
    (lambda: columns(changed(ROWS, repeat=0.5)), "type 'double': expected whole numbers"),
    (lambda: columns(changed(ROWS, rating="8")), "ratings: not a table with one type a column: "),
    (lambda: columns(changed(ROWS, rating=[1])), "ratings: not a table with one type a column: "),
    *(
        (partial(columns, changed(ROWS, 2, **{key: None})), f"{key!r} is null in row 2")
        for key in KEY
    ),
    *(
        (partial(columns, one), "is not a table: expected a datasets.Dataset, a")
        for one in (5, "a")
    ),
    # Ratings and outputs.
    (lambda: read_ratings([*ROWS, ROWS[3]]), f"ratings: {WHERE} is there twice: expected one row"),
    (lambda: read_ratings(changed(ROWS, 3, rating=math.inf)), f"inf is the rating of {WHERE}: exp"),
    (lambda: read_ratings(changed(ROWS[:1], rubric="overall"), rubric="overal"), "mean 'overall'"),
    (lambda: read_ratings(ROWS, judges=["jay"]), "judges is ['jay']: expected each judge of the"),
    (lambda: read_ratings(ROWS, changed(no_repeats, outcome="refuse")), "did you mean 'refused'"),
    (lambda: read_ratings(ROWS, [*no_repeats, no_repeats[0]]), "has 2 outputs for sample 's000'"),
    (lambda: rate(protocol="publshed"), "unknown protocol 'publshed'; did you mean 'published'"),
    (lambda: rate(missing="drop"), "unknown missing 'drop'"),
    (lambda: rate(missing="loss"), "missing is 'loss', but no outputs are given"),
    # Ranks by people.
    (lambda: read_human(changed(RANKS, rank=0)), "0 is the rank of sample_id 's', rater 'ada'"),
    (lambda: read_human(changed(RANKS, cannot_rank=True)), "expected no rank where cannot_rank is"),
    (
        lambda: read_human(changed(RANKS, rank=None, cannot_rank=False)),
        "None is the rank of sample_id 's', rater 'ada', system 'ash': expected a rank where",
    ),
    (lambda: read_human([*RANKS, RANKS[1]]), "system 'birch' is there twice: expected one row"),
    (lambda: read_human(RANKS[:1]), "ranks are of ['ash']: expected two systems or more"),
    (lambda: read_human(changed(RANKS[:1], rank="first")), "'string': expected whole numbers"),
    (lambda: read_human(changed(RANKS[:1], cannot_rank="no")), "expected true or false"),
    (lambda: read_human({name: ["a"] for name in RANKS[0] if name != "rank"}), "no column 'r"),
    (lambda: half_scored(rank=1), "expected a rank or a score, not both"),
    (lambda: half_scored(rank=1, score=None), "gives ranks and scores to sample"),
    (lambda: half_scored(score=math.inf), "expected a finite score"),
    (lambda: scores.agreement(RANKS, protocol="publshed"), "did you mean 'published'"),
    (
        lambda: scores.agreement(RANKS, one_judge(elm=[1])),
        "no rating is of an output that people ranked: they ranked ['ash', 'birch'], and",
    ),
    (
        lambda: corrected(people(9)),
        "people ranked 9 of 40 rated samples: expected 10 or more, so r",
    ),
    (lambda: corrected(people(30), protocol="published"), "protocol is 'published': expected 'cor"),
    (lambda: corrected(people(30), method="magic"), "unknown method 'magic'"),
    (lambda: corrected(people(30), confidence=1.0), "confidence is 1.0: expected a probability"),
    (lambda: corrected(people(30, "xy")), "expected two systems or more in both"),
    # Rankings.
    (lambda: scores.kemeny_consensus(["ab"]), "a ranking is 'ab': expected a list of names"),
    (lambda: scores.kemeny_consensus([["a", "a"]]), "expected each name once, not 'a'"),
    (lambda: scores.kemeny_consensus([["a", ["b", 3]]]), "expected each name once, not 3"),  # type: ignore[list-item]
    (lambda: optimal_orders(np.zeros((1, 15, 15))), "there are 15 systems to put in order: exp"),
    (lambda: scores.dunn([[1, 2, 3]], ["a", "b"]), "a number for each of ['a', 'b']"),
    (lambda: scores.friedman([1, 2, 3]), "expected a row for each block"),
    (lambda: scores.friedman([[1], [2]]), "a number for each of two or more systems"),
    (lambda: scores.tau_b([[1, 2]], [[1, 2, 3]]), "(1, 2) and (1, 3): expected the same"),
    # Choices between two.
    (lambda: scores.pairwise_agreement(changed(CHOICES, order="aa")), "expected order ab or ba"),
    (
        lambda: scores.pairwise_agreement(changed(CHOICES, winner="c")),
        "expected winner a, b or tie",
    ),
    (lambda: scores.pairwise_agreement(changed(CHOICES, system_b="a")), "system_a the first by na"),
    (lambda: scores.pairwise_agreement([*CHOICES, CHOICES[0]]), "expected one row a key"),
    # Parameters.
    (lambda: gate("ash", "birch", margin=0.0), "margin is 0.0"),
    (lambda: gate("ash", "birch", margin=math.nan), "margin is nan"),
    (lambda: gate("ash", "birch", margin=0.5), "less than 0.5"),
    (lambda: gate("ash", "birch", confidence=95), "confidence is 95"),
    (lambda: gate("ash", "brich"), "did you mean 'birch'"),
    (lambda: gate("ash", "ash"), "expected two systems"),
    (lambda: scores.decisions(ROWS, alpha=1.5), "alpha is 1.5: expected a probability"),
    (lambda: scores.decisions(ROWS, family="holm"), "unknown family 'holm'"),  # type: ignore[arg-type]
    (lambda: scores.tiers(MANY, alpha=0), "alpha is 0: expected a probability between"),
    (lambda: scores.tiers(MANY, n_resamples=2.5), "expected a whole number"),  # type: ignore[arg-type]
    (
        lambda: scores.tiers(MANY, n_resamples=118),
        "with 6 pairs and alpha 0.05 nothing could differ: expected 120 draws or more",
    ),
    (lambda: scores.samples_needed(ROWS, power=80), "power is 80: expected a probability"),
    (lambda: scores.bradley_terry(ROWS, anchors={"ash": math.nan}), "expected finite strengths"),
    (lambda: scores.bradley_terry(ROWS, anchors={"elm": 1.0}), "expected finite strengths, one or"),
    (
        lambda: scores.relative_gap({"a": math.nan}),
        "values are {'a': nan}: expected finite numbers",
    ),
    (lambda: preference({}, {"ash": None}), "'judge' has no developer among []"),
    (lambda: preference({"judge": None}, {"Ash": None}), "'ash' has no developer among ['Ash']"),
]


@pytest.mark.parametrize(("asked", "said"), REFUSED, ids=[said for _, said in REFUSED])
def test_what_makes_no_sense_is_one_line(asked: Callable[[], Any], said: str) -> None:
    with pytest.raises((ScoreError, TableError)) as caught:
        asked()
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_fewest_draws_that_are_asked_for_are_enough() -> None:
    assert len(scores.tiers(MANY, n_resamples=120).tiers) == 4
