"""Strengths from choices between two outputs, against a likelihood that is written out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations
from math import exp, log
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import t as student

from echo_hf._infra.bootstrap import Unscored
from echo_hf.errors import ScoreError
from echo_hf.scores import choice_decisions, choice_strengths
from echo_hf.scores.choices import choice_tiers
from tests.scores.ratings_for_tests import Row

SYSTEMS = ("ash", "birch", "cedar", "dogwood")
STRENGTHS = dict(zip(SYSTEMS, (0.9, 0.2, -0.3, -0.8), strict=True))
PLACE, TIE = 0.5, -0.4


def draw_choices(
    seed: int,
    samples: int,
    systems: Sequence[str] = SYSTEMS,
    judges: Sequence[str] = ("j",),
    place: float = PLACE,
    prompt_spread: float = 0.0,
) -> list[Row]:
    """Draw choices of the model; with a spread, each prompt favors some systems."""
    rng, rows = np.random.default_rng(seed), []
    for sample in range(samples):
        favors = dict(zip(systems, rng.normal(0, prompt_spread, len(systems)), strict=True))
        for a, b in combinations(systems, 2):
            for judge in judges:
                for order, sign in (("ab", 1), ("ba", -1)):
                    gap = STRENGTHS[a] - STRENGTHS[b] + favors[a] - favors[b]
                    wins = np.array([(gap + sign * place) / 2, TIE, -(gap + sign * place) / 2])
                    chance = np.exp(wins) / np.exp(wins).sum()
                    winner = ("a", "tie", "b")[rng.choice(3, p=chance)]
                    row = {"sample_id": f"s{sample:03}", "system_a": a, "system_b": b}
                    rows.append({**row, "judge": judge, "order": order, "winner": winner})
    return rows


def fit_by_brute_force(rows: Sequence[Row]) -> tuple[dict[str, float], float, float]:
    """Maximize the likelihood, a row at a time, without derivatives of it."""
    names = sorted({row[side] for row in rows for side in ("system_a", "system_b")})

    def lose(values: Any) -> float:
        strength, place, tie = dict(zip(names, [0.0, *values[:-2]], strict=True)), *values[-2:]
        total = 0.0
        for row in rows:
            sign = 1 if row["order"] == "ab" else -1
            half = (strength[row["system_a"]] - strength[row["system_b"]] + sign * place) / 2
            parts = {"a": half, "tie": tie, "b": -half}
            total -= parts[row["winner"]] - log(sum(exp(part) for part in parts.values()))
        return total

    found = minimize(lose, np.zeros(len(names) + 1), method="BFGS", options={"gtol": 1e-6}).x
    strengths = np.r_[0.0, found[:-2]]
    strengths -= strengths.mean()
    return dict(zip(names, strengths, strict=True)), found[-2], found[-1]


def test_strengths_place_and_ties_are_those_of_the_largest_likelihood() -> None:
    rows = draw_choices(1, 20)
    found = choice_strengths(rows)
    strengths, place, tie = fit_by_brute_force(rows)
    assert found.strength == pytest.approx(strengths, abs=1e-4)
    assert (found.position, found.tie) == (
        pytest.approx(place, abs=1e-4),
        pytest.approx(tie, abs=1e-4),
    )
    assert (found.choices, found.samples) == (240, 20)
    assert sum(value for value in found.strength.values() if value is not None) == pytest.approx(0)


def test_without_ties_and_place_a_difference_is_the_logarithm_of_wins_over_losses() -> None:
    rows = [
        {"sample_id": f"{at}", "system_a": "a", "system_b": "b", "judge": "j"}
        | {"order": order, "winner": "a" if at < 30 else "b"}
        for at in range(40)
        for order in ("ab", "ba")
    ]
    found = choice_strengths(rows)
    assert found.tie is None
    assert found.position == pytest.approx(0, abs=1e-9)
    assert found.strength == pytest.approx({"a": log(3) / 2, "b": -log(3) / 2})
    # The variance of a logit of 30 in 40 samples, each of which says the same twice.
    half = student.ppf(0.975, 39) * np.sqrt(1 / (40 * 0.75 * 0.25) * 40 / 39)
    low, high = found.difference["a"]["b"] or (0, 0)
    assert (low, high) == (pytest.approx(log(3) - half), pytest.approx(log(3) + half))


def test_errors_are_those_of_leaving_out_one_prompt_after_the_other() -> None:
    rows = draw_choices(2, 60, prompt_spread=1.0)
    found, names = choice_strengths(rows), sorted({row["sample_id"] for row in rows})
    parts = [choice_strengths([row for row in rows if row["sample_id"] != name]) for name in names]
    for read, ends in (
        (lambda fit: fit.strength["ash"], found.interval["ash"]),
        (lambda fit: fit.position, found.position_interval),
        (
            lambda fit: fit.strength["ash"] - fit.strength["dogwood"],
            found.difference["ash"]["dogwood"],
        ),
    ):
        values = np.array([read(part) for part in parts])
        jackknife = np.sqrt((len(names) - 1) / len(names) * np.square(values - values.mean()).sum())
        half = student.ppf(0.975, len(names) - 1) * jackknife
        assert (ends[1] - ends[0]) / 2 == pytest.approx(half, rel=0.05)


@pytest.mark.parametrize("copies", [{"repeat": 1}, {"judge": "k"}])
def test_a_judge_that_says_all_twice_adds_no_prompt(copies: Row) -> None:
    rows = [{**row, "repeat": 0} for row in draw_choices(3, 30)]
    once, twice = (
        choice_strengths(every) for every in (rows, rows + [row | copies for row in rows])
    )
    assert twice.strength == pytest.approx(once.strength)
    assert twice.interval["ash"] == pytest.approx(once.interval["ash"])
    assert twice.position_interval == pytest.approx(once.position_interval)


def test_the_judge_with_more_repeats_has_no_larger_voice() -> None:
    rows = draw_choices(4, 30, judges=("j", "k"))
    repeated = [{**row, "repeat": 0} for row in rows]
    repeated += [{**row, "repeat": at} for row in rows if row["judge"] == "k" for at in (1, 2)]
    assert choice_strengths(repeated).strength == pytest.approx(choice_strengths(rows).strength)


def test_intervals_cover_as_often_as_they_say_where_prompts_favor_systems() -> None:
    """Truth is the fit to very many prompts: the model's own strengths shrink with the spread."""

    def gap(fit: Any) -> float:
        return float(fit.strength["ash"] - fit.strength["dogwood"])

    systems = ("ash", "cedar", "dogwood")
    truth = gap(choice_strengths(draw_choices(5, 4000, systems, prompt_spread=1.0)))
    covered = found_place = 0
    for seed in range(120):
        fit = choice_strengths(draw_choices(100 + seed, 40, systems, prompt_spread=1.0))
        low, high = fit.difference["ash"]["dogwood"] or (0, 0)
        covered += low <= truth <= high
        found_place += (fit.position_interval or (0, 0))[0] > 0
    assert 0.90 <= covered / 120 <= 0.99  # the middle 99 % of a binomial of .95
    assert found_place / 120 > 0.6


def without(rows: Sequence[Row], keep: Callable[[Row], bool]) -> list[Row]:
    return [row for row in rows if keep(row)]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            lambda row: {**row, "winner": "a"} if row["system_a"] == "ash" else row,
            Unscored.UNBOUNDED,
        ),
        (lambda row: {**row, "winner": "tie"}, Unscored.UNBOUNDED),
        (
            lambda row: (
                row
                if {row["system_a"], row["system_b"]} in ({"ash", "birch"}, {"cedar", "dogwood"})
                else None
            ),
            Unscored.SEPARATE_GROUPS,
        ),
        (
            lambda row: row if row["order"] == "ab" and row["system_b"] == "birch" else None,
            Unscored.NO_VERDICTS,
        ),
        (lambda row: {**row, "winner": None}, Unscored.NO_VERDICTS),
    ],
)
def test_what_no_finite_strength_explains_has_none(change: Any, reason: Unscored) -> None:
    rows = [changed for row in draw_choices(6, 20) if (changed := change(row))]
    found = choice_strengths(rows)
    assert set(found.strength.values()) == {None}
    assert set(found.reasons.values()) == {reason}
    assert found.position_interval is None


def test_a_system_that_always_loses_but_once_ties_is_bounded() -> None:
    rows = draw_choices(7, 20)
    rows = [{**row, "winner": "a"} if row["system_b"] == "dogwood" else row for row in rows]
    assert set(choice_strengths(rows).reasons.values()) == {Unscored.UNBOUNDED}
    beaten = [row for row in rows if row["system_b"] == "dogwood"]
    beaten[0]["winner"] = beaten[1]["winner"] = "tie"
    strengths, *_ = fit_by_brute_force(rows)
    assert choice_strengths(rows).strength == pytest.approx(strengths, abs=1e-3)


def test_with_few_prompts_there_is_a_strength_and_no_interval() -> None:
    found = choice_strengths(draw_choices(8, 9))
    assert None not in found.strength.values()
    assert set(found.interval.values()) == {None}
    assert set(found.reasons.values()) == {Unscored.FEW_SAMPLES}


def test_where_judges_were_asked_until_decided_no_strength_has_an_interval() -> None:
    rows = [{**row, "outcome": "ok"} for row in draw_choices(9, 40)]
    for row in rows:
        if row["sample_id"] >= "s030" and row["system_a"] == "ash":
            row |= {"winner": None, "outcome": "not_needed"}
    found = choice_strengths(rows)
    assert None not in found.strength.values()
    assert {*found.interval.values(), found.position_interval} == {None}
    assert set(found.reasons.values()) == {Unscored.ASKED_UNEVENLY}
    assert found.definition["asked"] == "until decided"
    decided = choice_decisions(rows)
    assert (decided.not_needed, decided.ratings) == (10 * 3 * 2, 40 * 6 * 2)
    assert decided.summary.startswith("asked until decided: 420 of 480 choices")


def test_an_unknown_judge_is_refused() -> None:
    with pytest.raises(ScoreError, match="judge 'k'"):
        choice_strengths(draw_choices(10, 12), judges=["k"])


def decide_by_hand(wins: int, losses: int, alpha: float) -> bool:
    """The mixture of bets of all sizes from a normal of variance .2, in closed form."""
    squares, total = (wins + losses) / 4, (wins - losses) / 2
    bets = exp(0.2 * total**2 / (2 * (1 + 0.2 * squares))) / (1 + 0.2 * squares) ** 0.5
    return bets >= 1 / alpha


@pytest.mark.parametrize("losses", [0, 2, 4, 6, 8])
def test_a_pair_is_decided_by_its_choices_in_both_orders(losses: int) -> None:
    def rows(at: int, winner: str) -> list[Row]:
        pair = {"sample_id": f"{at}", "system_a": "a", "system_b": "b", "judge": "j"}
        return [{**pair, "order": order, "winner": winner} for order in ("ab", "ba")]

    every = [row for at in range(30) for row in rows(at, "b" if at < losses else "a")]
    # Who follows the place says nothing, and of one order alone nobody knows the other.
    for at in range(30, 60):
        first, second = rows(at, "a")
        every += [first, {**second, "winner": "b" if at < 50 else None}]
    expected = decide_by_hand(30 - losses, losses, 0.05)
    found = choice_decisions(every)
    assert found.decided == ((("a", "b"),) if expected else ())
    assert found.pairs["a"]["b"] == 50


def test_judges_and_repeats_of_one_prompt_are_one_outcome() -> None:
    rows = [{**row, "repeat": 0} for row in draw_choices(11, 60)]
    again = rows + [{**row, "repeat": 1} for row in rows] + [{**row, "judge": "k"} for row in rows]
    once, more = choice_decisions(rows), choice_decisions(again)
    assert more.decided == once.decided
    assert more.half_width["ash"]["birch"] == pytest.approx(once.half_width["ash"]["birch"])


def test_tiers_end_where_a_system_is_decided_to_be_worse_than_the_top() -> None:
    fit, decided = choice_strengths(draw_choices(12, 60)), choice_decisions(draw_choices(12, 60))
    known = replace(decided, decided=(("ash", "cedar"), ("cedar", "dogwood")))
    order = sorted(STRENGTHS, key=lambda name: -STRENGTHS[name])
    assert order == list(fit.strength)
    assert choice_tiers(fit, known) == (("ash", "birch"), ("cedar",), ("dogwood",))
