"""Votes against counting by hand, and what they are made of."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.scores import samples_needed, sensitivity, tiers, win_rate
from echo_hf.scores.rating_table import read_ratings
from echo_hf.scores.votes import TIE_WIDTH, VOTES, Missing, Protocol, verdicts_of
from tests.scores.ratings_for_tests import first_said, most_said, rows_of

Vote = Callable[[Any], Any]
SAID = st.lists(st.sampled_from([-3.0, -1.0, 0.0, 2.0, math.nan]), min_size=1, max_size=6)


def signs(said: Sequence[float]) -> list[int]:
    return [(one > 0) - (one < 0) for one in said if not math.isnan(one)]


def else_first(said: Sequence[float]) -> int:
    return most_said(signs(said)) or signs(said)[0]


def more_than_half(said: Sequence[float]) -> int:
    counts = Counter(signs(said))
    return next((one for one in (1, -1) if 2 * counts[one] > len(signs(said))), 0)


def single_mode(said: Sequence[float]) -> int:
    (one, most), *others = Counter(signs(said)).most_common()
    return one if all(count < most for _, count in others) else 0


def higher_sum(said: Sequence[float]) -> int:
    total = sum(one for one in said if not math.isnan(one))
    return (total > 0) - (total < 0)


BY_HAND: dict[str, Callable[[Sequence[float]], int]] = {
    "first_judge": lambda said: first_said(signs(said)),
    "plurality": lambda said: most_said(signs(said)),
    "plurality_else_first": else_first,
    "majority": more_than_half,
    "most_frequent": single_mode,
    "mean_rating": higher_sum,
}


@pytest.mark.parametrize("name", VOTES)
@given(said=SAID)
def test_a_vote_is_its_definition(name: str, said: list[float]) -> None:
    (voted,) = VOTES[name](np.array(said)[:, None])
    if signs(said):
        assert voted == BY_HAND[name](said)
    else:
        assert math.isnan(voted)


def test_float_noise_makes_no_win() -> None:
    noise = [0.1 + 0.2 - 0.3, 1e-9, -1e-9, TIE_WIDTH, 2 * TIE_WIDTH, -0.5]
    assert verdicts_of(np.array(noise)).tolist() == [0, 0, 0, 0, 1, -1]


def test_judges_vote_once_for_all_figures_of_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    ratings = {"ash": [3, 4, 5, 5] * 4, "birch": [4, 4, 1, 2] * 4, "cedar": [1, 5, 2, 5] * 4}
    rows, calls = rows_of({"jay": ratings, "kite": {**ratings, "ash": [1] * 16}}), Counter[str]()
    figures = (win_rate, tiers, sensitivity, samples_needed)
    expected = [figure(rows) for figure in figures]

    def counting(name: str, vote: Vote) -> Vote:
        def counted(margin: Any) -> Any:
            calls[name] += 1
            return vote(margin)

        return counted

    for name, vote in VOTES.items():
        monkeypatch.setitem(VOTES, name, counting(name, vote))  # type: ignore[arg-type]
    table = read_ratings(rows)
    assert [figure(table) for figure in figures] == expected
    assert calls == dict.fromkeys(VOTES, 1)


def test_one_table_gives_by_every_rule_what_its_rows_give() -> None:
    """Three judges disagree, and a sample was refused; rates by a judge alone are by name."""
    jay, others = {"ash": [5] * 12, "birch": [9] * 12}, {"ash": [2] * 12, "birch": [1] * 12}
    rows = rows_of({"jay": jay, "kite": others, "lark": others})[1:]
    outputs = [
        {"sample_id": f"s{at:03}", "system": system, "outcome": "ok" if at else "refused"}
        for at in range(12)
        for system in ("ash", "birch")
    ]
    table, found = read_ratings(rows, outputs), []
    for protocol, missing in product(get_args(Protocol), get_args(Missing)):
        found.append(win_rate(table, protocol=protocol, missing=missing, n_boot=20))
        assert found[-1] == win_rate(rows, outputs, protocol=protocol, missing=missing, n_boot=20)
        assert {tuple(rates) for rates in found[-1].per_judge.values()} == {("ash", "birch")}
    assert len({one.win_rate["ash"] for one in found}) == 4
