"""Reliability: against closed forms, all subsets counted one by one, and planted truths."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import beta
from scipy.stats import betabinom, sem, t

from echo_hf.errors import EchoError, ScoreError
from echo_hf.scores import Reliability, reliability, win_rate
from tests.scores.ratings_for_tests import Row

GOOD, BAD = 9.0, 3.0
NO_RATINGS: dict[str, list[Any]] = {name: [] for name in ("sample_id", "system", "judge", "rating")}
Draws = Mapping[str, Sequence[Sequence[float | None]]]  # ratings by system, prompt and draw


def rows_of(ratings: Draws, judge: str = "jay") -> list[Row]:
    """Draws of different systems are numbered from 0, and lists may differ in length."""
    return [
        {"sample_id": f"s{at:04}", "system": system, "judge": judge, "draw": draw, "rating": rating}
        for system, prompts in ratings.items()
        for at, prompt in enumerate(prompts)
        for draw, rating in enumerate(prompt)
    ]


def outputs_of(rows: Iterable[Row], **facts: Any) -> list[Row]:
    keys = dict.fromkeys((row["sample_id"], row["system"], row["draw"]) for row in rows)
    names = ("sample_id", "system", "draw")
    return [{**dict(zip(names, key, strict=True)), "outcome": "ok", **facts} for key in keys]


def draw_ratings(seed: int, systems: str = "ab", prompts: int = 6) -> dict[str, Any]:
    """Whole ratings around the threshold, of 0 to 4 draws a prompt, some of them missing."""
    rng = np.random.default_rng(seed)
    return {
        system: [
            [None if rng.random() < 0.1 else float(rng.integers(5, 9)) for _ in range(count)]
            for count in rng.integers(0, 5, prompts)
        ]
        for system in systems
    }


def known(prompt: Sequence[float | None]) -> list[float]:
    return [rating for rating in prompt if rating is not None]


def mean_of(values: Iterable[float]) -> float | None:
    every = list(values)
    return math.fsum(every) / len(every) if every else None


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_pass_at_k_is_without_bias(k: int) -> None:
    """Its mean over what 4 draws may give is the chance by a Beta of a prompt's own chance."""
    chances = betabinom(4, 0.6, 0.9).pmf(range(5))
    drawn = {f"{good}": [[GOOD] * good + [BAD] * (4 - good)] for good in range(5)}
    found = reliability(rows_of(drawn))
    solved, all_solved = (
        sum(chances[int(name)] * (every[name][k].value or 0) for name in every)
        for every in (found.pass_at, found.all_of)
    )
    assert solved == pytest.approx(1 - beta(0.6, 0.9 + k) / beta(0.6, 0.9))
    assert all_solved == pytest.approx(beta(0.6 + k, 0.9) / beta(0.6, 0.9))


@pytest.mark.parametrize("seed", range(6))
def test_shares_are_those_of_all_choices_of_k_tries(seed: int) -> None:
    """Prompts with fewer than k tries do not count, nor do outputs that nobody rated."""
    drawn = draw_ratings(seed)
    found = reliability(rows_of(drawn))
    for system, prompts in drawn.items():
        flags = [[rating >= 7 for rating in known(prompt)] for prompt in prompts]
        for k in range(1, 5):
            choices = [list(combinations(own, k)) for own in flags if len(own) >= k]
            for every, rule in ((found.pass_at, any), (found.all_of, all)):
                share = mean_of(np.mean([rule(own) for own in choice]) for choice in choices)
                value = every[system][k].value if k in every[system] else None
                assert value == (share if share is None else pytest.approx(share))
            if choices:
                assert found.pass_at[system][k].prompts == len(choices)
        assert found.success[system] == found.pass_at[system][1]
        last = found.pass_at[system][max(found.pass_at[system])]
        assert found.never[system].value == pytest.approx(1 - (last.value or 0))
        assert found.unrated[system] == sum(None in [one] for own in prompts for one in own)


@pytest.mark.parametrize("seed", range(4))
def test_best_and_worst_of_k_are_the_means_over_all_choices(seed: int) -> None:
    """Of both systems' outputs, judges and opponents; what was not made loses to what was."""
    judges = {judge: draw_ratings(10 * seed + at, "abc") for at, judge in enumerate(("jay", "kit"))}
    rows = [row for judge, drawn in judges.items() for row in rows_of(drawn, judge)]
    lost = [{"sample_id": f"s{at:04}", "system": "b", "draw": 7} for at in (0, 2)]
    outputs = outputs_of(rows) + [{**row, "outcome": "refused"} for row in lost]
    found = reliability(rows, outputs)

    def ratings(judge: str, system: str, at: int) -> list[float]:
        nothing = [-math.inf] if system == "b" and at in (0, 2) else []
        return known(judges[judge][system][at]) + nothing

    for every, choose in ((found.best_of, max), (found.worst_of, min)):
        for system, k in product("abc", range(1, 5)):
            by_opponent = []
            for other in {*"abc"} - {system}:
                by_prompt = []
                for at in range(6):
                    points = []
                    for judge in judges:
                        own, others = (
                            [choose(choice) for choice in combinations(ratings(judge, name, at), k)]
                            for name in (system, other)
                        )
                        pairs = list(product(own, others))
                        if pairs:
                            points.append(np.mean([(a > b) + (a == b) / 2 for a, b in pairs]))
                    by_prompt += [np.mean(points)] if points else []
                by_opponent += [np.mean(by_prompt)] if by_prompt else []
            rate = mean_of(by_opponent)
            value = every[system][k].value if k in every[system] else None
            assert value == (rate if rate is None else pytest.approx(rate))


def test_the_best_of_one_is_the_win_rate() -> None:
    drawn = {name: [own[:1] for own in every] for name, every in draw_ratings(3, "abc", 40).items()}
    rows = rows_of(drawn)
    rates = win_rate([{k: v for k, v in row.items() if k != "draw"} for row in rows]).win_rate
    found = reliability(rows)
    for name, rate in rates.items():
        assert found.best_of[name][1].value == pytest.approx(rate)
        assert found.worst_of[name][1].value == pytest.approx(rate)


def test_an_interval_holds_the_shares_that_students_t_does_not_reject() -> None:
    """Wilson's, of as many prompts of 0 or 1 as have the standard error of the shares."""
    drawn = {"a": [[GOOD] * good + [BAD] * (4 - good) for good in (0, 0, 1, 1, 2, 4) * 5]}
    for confidence in (0.95, 0.8):
        found = reliability(rows_of(drawn), confidence=confidence)
        shares = np.array([0, 0, 1, 1, 2, 4] * 5) / 4
        share, size = shares.mean(), shares.mean() * (1 - shares.mean()) / sem(shares) ** 2
        limit = t(29).ppf((1 + confidence) / 2)

        def excess(p: float, share=share, size=size, limit=limit) -> float:  # type: ignore[no-untyped-def]
            return float((share - p) ** 2 * size - limit**2 * p * (1 - p))

        ends = brentq(excess, 0, share), brentq(excess, share, 1)
        assert found.success["a"].interval == pytest.approx(ends)
        assert found.tries["a"].value == pytest.approx(1 / share)
        assert found.tries["a"].interval == pytest.approx((1 / ends[1], 1 / ends[0]))


@pytest.mark.parametrize("rating", [GOOD, BAD])
def test_equal_prompts_have_the_interval_of_as_many_single_tries(rating: float) -> None:
    low, high = reliability(rows_of({"a": [[rating] * 4] * 30})).success["a"].interval or (0, 0)
    limit = t(29).ppf(0.975) ** 2
    assert (high, low) == pytest.approx(
        (1, 30 / (30 + limit)) if rating == GOOD else (limit / (30 + limit), 0)
    )


def test_prompts_count_and_not_outputs() -> None:
    """Of four outputs that are alike nobody learns more than of one."""
    ratings = [GOOD, BAD, BAD] * 10
    one, four = (
        reliability(rows_of({"a": [[rating] * draws for rating in ratings]})) for draws in (1, 4)
    )
    assert one.success == four.success
    assert one.tries == four.tries
    assert one.pass_at["a"][1] == four.pass_at["a"][4]


def test_dollars_and_seconds_are_ratios_of_sums() -> None:
    """Their interval is that of a ratio's logarithm, from variances and the covariance."""
    rng = np.random.default_rng(481)
    flags = rng.random((40, 3)) < 0.4
    rows = rows_of({"a": np.where(flags, GOOD, BAD).tolist()})
    cost = rng.lognormal(-1, 0.5, (40, 3))
    outputs = [
        {**row, "cost_usd": float(dollars), "latency_s": 9.0}
        for row, dollars in zip(outputs_of(rows), cost.ravel(), strict=True)
    ]
    found = reliability(rows, outputs)
    ratio = cost.sum() / flags.sum()
    both = np.cov(cost.sum(1) / cost.sum(1).mean(), flags.sum(1) / flags.sum(1).mean())
    error = math.sqrt((both[0, 0] + both[1, 1] - 2 * both[0, 1]) / 40)
    ends = (ratio * math.exp(sign * t(39).ppf(0.975) * error) for sign in (-1, 1))
    assert found.dollars["a"].value == pytest.approx(ratio)
    assert found.dollars["a"].interval == pytest.approx(tuple(ends))
    assert found.seconds["a"].value == pytest.approx(9 * 120 / flags.sum())


def test_what_was_not_made_is_a_try_unless_nobody_billed_the_providers_error() -> None:
    facts: list[Row] = [
        {"outcome": "refused", "cost_usd": 0.5},
        {"outcome": "no_image", "cost_usd": None},
        {"outcome": "failed", "stage": "answer", "cost_usd": None},
        {"outcome": "failed", "stage": "request", "cost_usd": 0.25},
        {"outcome": "failed", "stage": "request", "cost_usd": 0.0},
        {"outcome": "failed", "stage": "request", "cost_usd": None},
        {"outcome": "unsupported", "cost_usd": None},
        {"outcome": "retired", "cost_usd": None},
    ]
    drawn = rows_of({"a": [[GOOD, BAD, None]] * 12})
    lost = [
        {"sample_id": row["sample_id"], "system": "a", "draw": 3 + at, **own}
        for row in drawn[::3]
        for at, own in enumerate(facts)
    ]
    found = reliability(drawn, [*outputs_of(drawn, cost_usd=1.0), *lost])
    assert found.success["a"].value == pytest.approx(1 / 6)
    assert found.dollars["a"].value == pytest.approx(2 + 0.5 + 0.25)
    assert found.unrated == {"a": 12}
    assert {
        outcome: (count.outputs, count.tries, count.successes, count.dollars)
        for outcome, count in found.outcomes["a"].items()
    } == {
        "failed": (48, 24, 0, 3.0),
        "no_image": (12, 12, 0, 0.0),
        "ok": (36, 24, 12, 24.0),
        "refused": (12, 12, 0, 6.0),
        "retired": (12, 0, 0, 0.0),
        "unsupported": (12, 0, 0, 0.0),
    }


def test_most_judges_decide_by_the_mean_of_their_looks() -> None:
    """Two of three are most, one of two are not; 6 and 8 are 7, and 6 and 7 are below."""

    def success(*judges: Sequence[float | None]) -> float | None:
        rows = [
            {"sample_id": "s", "system": "a", "judge": f"j{at}", "repeat": number, "rating": rating}
            for at, ratings in enumerate(judges)
            for number, rating in enumerate(ratings)
        ]
        return reliability(rows).success["a"].value

    assert success([8], [8], [2]) == 1
    assert success([8], [2]) == 0
    assert success([8], [None]) == 1
    assert success([6, 8]) == 1
    assert success([6, 7]) == 0
    assert success([6, None, 8]) == 1
    assert success([7]) == 1
    assert success([6.9]) == 0
    assert success([None], [None]) is None


def test_an_output_succeeds_that_passes_each_check_that_was_answered() -> None:
    """Yes is a failure; the vote of equally many is no pass, and other rubrics do not count."""

    def success(**checks: Sequence[float | None]) -> float | None:
        rows = [
            {"sample_id": "s", "system": "a", "judge": f"j{at}", "rubric": f"{name}@1"}
            | {"rating": rating}
            for name, ratings in checks.items()
            for at, rating in enumerate(ratings)
        ]
        overall = {"sample_id": "s", "system": "a", "judge": "j0", "rubric": "overall", "rating": 1}
        return reliability([*rows, overall], success="checks").success["a"].value

    assert success(tint=[0, 0, 1], text=[0]) == 1
    assert success(tint=[0, 0, 1], text=[1]) == 0
    assert success(tint=[0, 1], text=[0]) == 0
    assert success(tint=[None], text=[0]) == 1
    assert success(tint=[None]) is None


@pytest.mark.parametrize(
    ("bounds", "share"),
    [
        ({"color_shift": 5.0}, 2 / 3),
        ({"face_identity": 0.5}, 1 / 3),
        ({"color_shift": 5, "face_identity": 0.5}, 0),
    ],
)
def test_metrics_succeed_by_their_bounds_on_the_side_that_is_better(
    bounds: dict[str, float], share: float
) -> None:
    """A lower color shift and a higher face identity are better, and the bound is good enough.

    What reaches one bound and has no value by the other is not judged.
    """
    shifts, faces = [4, 5, 6, None], [0.4, None, 0.4, 0.5]
    values = [
        {"sample_id": "s", "system": "a", "draw": draw, "metric": metric, "value": value}
        for metric, column in (("color_shift", shifts), ("face_identity", faces))
        for draw, value in enumerate(column)
    ]
    found = reliability(NO_RATINGS, success=bounds, values=values)
    assert found.success["a"].value == pytest.approx(share)
    assert not found.best_of["a"]


def split_by_projections(looks: np.ndarray, prompt: np.ndarray) -> np.ndarray:
    """Components from sums of squares as quadratic forms, whose means are traces."""
    at = np.argwhere(~np.isnan(looks))
    values = np.array([looks[tuple(place)] for place in at])
    cells = [np.zeros(len(at), dtype=int), prompt[at[:, 1]], at[:, 1], np.arange(len(at))]
    same = [(cell[:, None] == cell).astype(float) for cell in cells]
    spaces = [each / each.sum(axis=1, keepdims=True) for each in same]
    forms = [spaces[level + 1] - spaces[level] for level in range(3)]
    means = np.array([[np.trace(form @ each) for each in same[1:]] for form in forms])
    sums = np.array([values @ form @ values for form in forms])
    if not np.any(forms[2]):  # nothing was judged twice
        return np.append(np.linalg.solve(means[:2, :2], sums[:2]), np.nan)
    return np.linalg.solve(means, sums)


@pytest.mark.parametrize("repeats", [1, 3])
@pytest.mark.parametrize("is_whole", [True, False])
def test_the_variance_of_success_is_split_as_nested_projections_do(
    repeats: int, is_whole: bool
) -> None:
    rng = np.random.default_rng(482 + repeats)
    chances = rng.beta(0.5, 0.5, (12, 1, 1)) * rng.beta(4, 1, (12, 4, 1))
    looks = (rng.random((12, 4, repeats)) < chances).astype(float)
    if not is_whole:
        looks[rng.random(looks.shape) < 0.2] = np.nan
        looks[0, 1:] = np.nan
    rows = [
        {**row, "repeat": number, "rating": None if np.isnan(look) else (BAD, GOOD)[int(look)]}
        for number in range(repeats)
        for row, look in zip(
            rows_of({"a": [[GOOD] * 4] * 12}), looks[:, :, number].ravel(), strict=True
        )
    ]
    split = reliability(rows).variance["a"]
    assert split is not None
    expected = split_by_projections(looks.reshape(48, repeats).T, np.repeat(np.arange(12), 4))
    parts = [np.nan if part is None else part for part in split]
    assert parts == pytest.approx(np.maximum(expected, 0).tolist(), nan_ok=True)
    assert (split.repeats is None) == (repeats == 1)


def test_what_was_not_made_is_no_success_at_any_look() -> None:
    drawn = rows_of({"a": [[GOOD, BAD]] * 6})
    refused = [{**row, "outcome": "refused"} for row in outputs_of(drawn)[1::2]]
    kept = [row for row in drawn if not row["draw"]]
    by_outcome = reliability(kept, [*outputs_of(kept), *refused])
    assert by_outcome.variance == reliability(drawn).variance


def test_new_prompts_or_new_outputs_whichever_leaves_the_smaller_error() -> None:
    """The best number of outputs is near the square root of both ratios, of variances and costs."""
    rng = np.random.default_rng(483)
    flags = rng.random((60, 4)) < rng.beta(0.6, 0.9, (60, 1))
    rows = rows_of({"a": np.where(flags, GOOD, BAD).tolist()})
    found = reliability(rows, outputs_of(rows, cost_usd=0.04))
    split = found.variance["a"]
    assert split is not None
    assert split.repeats is None
    prompt, each = 1.5, 0.05
    bought = found.next_purchase("a", 100, prompt=prompt, look=0.01)
    best = math.sqrt(split.outputs / split.prompts * prompt / each)
    assert abs(bought.outputs_a_prompt - best) < 1
    assert bought.prompts == 100 // (prompt + bought.outputs_a_prompt * each)
    assert bought.outputs == 100 // each
    assert bought.today == pytest.approx(sem(flags.mean(axis=1)))
    added, number = bought.prompts, bought.outputs_a_prompt
    sum_of_variances = 60 * (split.prompts + split.outputs / 4) + added * (
        split.prompts + split.outputs / number
    )
    assert bought.with_prompts == pytest.approx(math.sqrt(sum_of_variances) / (60 + added))
    spread_thin = split.prompts + split.outputs / (4 + bought.outputs / 60)
    assert bought.with_outputs == pytest.approx(math.sqrt(spread_thin / 60))
    assert bought.buy == "prompts"
    assert found.next_purchase("a", 100, prompt=1000, look=0.01).buy == "outputs"
    assert found.next_purchase("a", 100, output=2).outputs_a_prompt == 1  # prompts cost nothing


@pytest.mark.parametrize("seed", range(3))
def test_a_purchase_leaves_the_error_that_it_says(seed: int) -> None:
    """Of Beta(2, 3) chances, split without error: 1,000 benchmarks of 40 prompts of 2 vary so."""
    rng = np.random.default_rng(484 + seed)
    flags = rng.random((4000, 8)) < rng.beta(2, 3, (4000, 1))
    rows = rows_of({"a": np.where(flags, GOOD, BAD).tolist()})
    split = reliability(rows).variance["a"]
    assert split is not None
    shares = rng.binomial(2, rng.beta(2, 3, (1000, 40))).mean(axis=1) / 2
    assert math.sqrt((split.prompts + split.outputs / 2) / 40) == pytest.approx(
        shares.std(), rel=0.08
    )


DRAWN_AT_ONCE = 1000  # a coverage of 0.95 is known to 0.007


@cache
def draw_truth(prompts: int, chances: tuple[float, float]) -> tuple[Reliability, float]:
    """Return 1,000 benchmarks, as systems, with chances of a Beta, and the dollars a success."""
    rng = np.random.default_rng(4850 + prompts + int(10 * chances[0]))
    shape = (DRAWN_AT_ONCE, prompts, 4)
    chance = rng.beta(*chances, (*shape[:2], 1))
    system, sample, draw = (array.ravel() for array in np.indices(shape))
    rows = {"sample_id": sample.astype(str), "system": system.astype(str), "draw": draw}
    values = {
        **rows,
        "metric": ["color_shift"] * chance.size * 4,
        "value": (rng.random(shape) > chance).ravel().astype(float),
    }
    # What is hard to make costs more as well.
    dollars = rng.lognormal(-1 - np.broadcast_to(chance, shape), 0.5).ravel()
    outputs = {**rows, "outcome": ["ok"] * len(dollars), "cost_usd": dollars}
    found = reliability(NO_RATINGS, outputs, success={"color_shift": 0.5}, values=values)
    many = rng.beta(*chances, 10**6)
    return found, float(np.exp(0.125 - 1 - many).mean() / many.mean())


def share_that_holds(estimates: Iterable[Any], truth: float) -> float:
    ends = [estimate.interval for estimate in estimates if estimate.interval]
    return float(np.mean([low <= truth <= high for low, high in ends]))


WORLDS = [(30, (0.6, 0.9)), (60, (0.6, 0.9)), (60, (2.0, 2.0)), (100, (0.3, 3.0))]
# Of these, a handful of prompts have what is rare.
RARE = [(60, (0.3, 3.0)), (30, (2.0, 2.0)), (150, (3.0, 0.3))]


@pytest.mark.parametrize(
    ("prompts", "chances", "bounds"),
    [pytest.param(*WORLDS[0], (0.93, 0.97)), pytest.param(*WORLDS[1], (0.93, 0.97))]
    + [pytest.param(*world, (0.93, 0.97), marks=pytest.mark.slow) for world in WORLDS[2:]]
    + [pytest.param(*world, (0.92, 0.985), marks=pytest.mark.slow) for world in RARE],
)
def test_intervals_cover(
    prompts: int, chances: tuple[float, float], bounds: tuple[float, float]
) -> None:
    """93 to 97 of 100 hold the planted shares, tries and dollars; 92 to 98.5 of what is rare."""
    found, dollars = draw_truth(prompts, chances)
    first, second = chances
    share = first / (first + second)
    truths: dict[str, tuple[Iterable[Any], float]] = {
        "success": (found.success.values(), share),
        "tries": (found.tries.values(), 1 / share),
        "dollars": (found.dollars.values(), dollars),
        "never": (found.never.values(), beta(first, second + 4) / beta(first, second)),
    }
    for k in (2, 3):
        solved = 1 - beta(first, second + k) / beta(first, second)
        truths[f"pass@{k}"] = [own[k] for own in found.pass_at.values()], solved
    held = {name: share_that_holds(*each) for name, each in truths.items()}
    assert all(bounds[0] <= share <= bounds[1] for share in held.values()), held


def test_intervals_that_take_outputs_for_independent_do_not_cover() -> None:
    """So that the test above can fail: the usual interval of 240 outputs holds 80 of 100."""
    found, _ = draw_truth(*WORLDS[1])
    values = np.array([estimate.value for estimate in found.success.values()])
    half = 1.96 * np.sqrt(values * (1 - values) / 240)
    assert np.mean(np.abs(values - 0.4) <= half) < 0.85


@pytest.mark.slow
@pytest.mark.parametrize("prompts", [30, 100])
def test_win_rates_of_the_best_and_the_worst_cover(prompts: int) -> None:
    """Ratings with a part in common for both systems; the truth is that of 200,000 prompts."""
    rng = np.random.default_rng(4870 + prompts)

    def draw(count: int) -> tuple[np.ndarray, np.ndarray]:
        shared = rng.normal(0, 1.2, (count, 1))
        ratings = [
            np.round(5 + lead + shared + rng.normal(0, 0.8, (count, 1)) + rng.normal(0, 1.4, shape))
            for lead, shape in ((0.5, (count, 4)), (0.0, (count, 4)))
        ]
        return ratings[0], ratings[1]

    first, second = draw(200_000)
    truths = {
        (kind, k): float(((np.sign(choose(first, k) - choose(second, k)) + 1) / 2).mean())
        for kind, choose in (
            ("best", lambda values, k: values[:, :k].max(axis=1)),
            ("worst", lambda values, k: values[:, :k].min(axis=1)),
        )
        for k in (1, 2, 4)
    }
    estimates: dict[tuple[str, int], list[Any]] = {key: [] for key in truths}
    for _ in range(1000):
        own, others = draw(prompts)
        found = reliability(rows_of({"a": own.tolist(), "b": others.tolist()}))
        for kind, every in (("best", found.best_of), ("worst", found.worst_of)):
            for k in (1, 2, 4):
                estimates[kind, k].append(every["a"][k])
    held = {key: share_that_holds(own, truths[key]) for key, own in estimates.items()}
    assert all(0.93 <= share <= 0.97 for share in held.values()), held


def test_figures_of_too_little_are_refused_with_their_reason() -> None:
    def refused(good: int, prompts: int, draws: int = 2, **facts: Any) -> tuple[Any, Reliability]:
        ratings = [[GOOD if at < good else BAD] * draws for at in range(prompts)]
        rows = rows_of({"a": ratings})
        found = reliability(rows, outputs_of(rows, **facts))
        return found.refused["a"], found

    prices = {"cost_usd": 1.0, "latency_s": 2.0}
    alone = {"best_of": "one_system", "worst_of": "one_system"}
    reasons, found = refused(2, 40, **prices)  # four successes
    assert reasons == {**alone, "dollars": "few_successes", "seconds": "few_successes"}
    assert (found.dollars["a"].value, found.tries["a"].value) == (None, 20)
    reasons, _ = refused(2, 40, draws=8, **prices)  # sixteen, of two prompts
    assert reasons["dollars"] == "few_successes"
    reasons, found = refused(3, 40, **prices)
    assert reasons == alone
    assert found.dollars["a"].value == pytest.approx(80 / 6)
    reasons, found = refused(0, 40, **prices)
    assert reasons["tries"] == "no_success"
    assert (found.tries["a"], found.success["a"].value) == ((None, None, 0), 0)
    reasons, found = refused(4, 9, **prices)
    figures = ("pass_at", "all_of", "dollars", "seconds")
    assert reasons == {**alone, **dict.fromkeys(figures, "few_samples")}
    assert [found.dollars["a"].value, found.dollars["a"].interval] == [9 / 4, None]
    assert [found.success["a"].value, found.success["a"].interval] == [4 / 9, None]
    reasons, found = refused(10, 40, draws=1)
    assert reasons == {**alone, "dollars": "unpriced", "seconds": "untimed", "variance": "one_draw"}
    reasons, found = refused(0, 12, **prices, outcome="retired")
    assert reasons == {"success": "not_rated"}
    assert found.success["a"].value is None


def test_a_price_that_few_tries_lack_is_left_out_of_both_sums() -> None:
    rows = rows_of({"a": [[GOOD, BAD]] * 20})
    outputs = outputs_of(rows, cost_usd=1.0)
    outputs[0] = {**outputs[0], "cost_usd": None}
    outputs[1] = {**outputs[1], "cost_usd": None}
    found = reliability(rows, outputs)
    assert found.dollars["a"].value == 2
    assert found.outcomes["a"]["ok"].dollars is None
    outputs[2] = {**outputs[2], "cost_usd": None}
    assert reliability(rows, outputs).refused["a"]["dollars"] == "unpriced"


def test_systems_may_have_different_numbers_of_draws() -> None:
    rows = rows_of({"a": [[BAD, GOOD]] * 20, "b": [[GOOD, BAD, BAD, BAD]] * 20})
    found = reliability(rows)
    assert {name: [*every] for name, every in found.pass_at.items()} == {
        "a": [1, 2],
        "b": [1, 2, 3, 4],
    }
    assert [*found.success] == ["a", "b"]  # the best first
    reasons = {name: found.refused[name].get("pass_at") for name in "ab"}
    assert reasons == {"a": "few_draws", "b": None}
    assert [*found.best_of["b"]] == [1, 2]
    assert [*reliability(rows, k=2).pass_at["b"]] == [1, 2]
    assert reliability(rows, k=2).pass_at["b"][2] == found.pass_at["b"][2]


def test_curves_end_at_64_tries() -> None:
    """Where a prompt has more, all of them count: 32 of 2,000 choices of one."""
    ratings = [[GOOD] * 32 + [BAD] * 1968]
    found = reliability(rows_of({"a": ratings, "b": ratings}))
    assert max(found.pass_at["a"]) == max(found.best_of["a"]) == 64
    assert found.best_of["a"][64].value == pytest.approx(0.5)
    missed = math.prod((1968 - at) / (2000 - at) for at in range(64))
    assert found.pass_at["a"][64].value == pytest.approx(1 - missed)


def test_ratings_that_do_not_count_are_counted() -> None:
    rows = rows_of({"a": [[GOOD, GOOD, GOOD, BAD]] * 3})
    rows = [{**row, "sample_digest": "now", "rubric": "overall"} for row in rows]
    rows[0]["sample_digest"] = "then"
    rows += [{**row, "rubric": "text_rendering"} for row in rows[:2]]
    outputs = outputs_of(rows[:11], sample_digest="now")
    outputs[1]["outcome"] = "refused"
    found = reliability(rows, outputs)
    assert found.ignored == {"other_rubric": 2, "no_output": 1, "other_digest": 1, "no_picture": 1}
    assert found.unrated == {"a": 1}
    assert found.success["a"].value == pytest.approx((1 / 3 + 3 / 4 + 1) / 3)


def test_rows_without_a_draw_have_one_output_a_prompt() -> None:
    rows = [{"sample_id": f"{at}", "system": "a", "judge": "j", "rating": at} for at in range(12)]
    found = reliability(rows)
    assert [*found.pass_at["a"]] == [1]
    assert found == reliability([{**row, "draw": 0} for row in rows])


def test_results_are_json_and_frames() -> None:
    rows = rows_of({"a": [[GOOD, BAD, BAD]] * 20, "b": [[BAD, BAD, GOOD]] * 20})
    found = reliability(rows, outputs_of(rows, cost_usd=0.5, latency_s=3.0))
    plain = found.as_json()
    assert json.loads(json.dumps(plain, allow_nan=False))["pass_at"]["a"]["2"] == {
        "value": pytest.approx(2 / 3),
        "interval": [pytest.approx(x) for x in found.pass_at["a"][2].interval or ()],
        "prompts": 20,
    }
    assert repr(found).startswith("Reliability('a': 0.3333 (")
    frame = found.to_pandas()
    assert list(frame.columns) == ["system", "success", "low", "high", "tries", "dollars"]
    assert frame["dollars"].tolist() == pytest.approx([1.5, 1.5])


MANY = rows_of({"a": [[GOOD, BAD]] * 12})
PRICED = reliability(MANY, outputs_of(MANY, cost_usd=1.0))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: reliability(MANY, k=3), "k is 3: expected 1 to 2, as many tries as a prompt has"),
        (lambda: reliability(MANY, k=0), "k is 0: expected a number of tries, 1 or more"),
        (lambda: reliability(MANY, k=True), "k is True: expected a number of tries"),
        (lambda: reliability(MANY, k=1.5), "k is 1.5: expected a number of tries"),
        (lambda: reliability(MANY, threshold=math.nan), "threshold is nan: expected a rating"),
        (lambda: reliability(MANY, confidence=95), "confidence is 95: expected a probability"),
        (lambda: reliability(MANY, success="check"), "unknown success 'check'; did you mean"),
        (
            lambda: reliability(MANY, success="checks"),
            "ratings: none is by a check, NAME@VERSION: exp",
        ),
        (
            lambda: reliability([{**row, "rubric": "overall"} for row in MANY], rubric="overal"),
            "unknown rubric 'overal'; did you mean 'overall'?",
        ),
        (lambda: reliability(MANY, success={"tint": 1}, values=None), "not a table"),
        (lambda: reliability(MANY, success={"tint": 1}, values=[]), "unknown metric 'tint'"),
        (lambda: reliability([*MANY, MANY[0]]), "system 'a', judge 'jay' is there twice: expected"),
        (lambda: reliability([{**MANY[0], "draw": -1}]), "draw is -1: expected the number of an"),
        (lambda: reliability([{**MANY[0], "rating": math.inf}]), "inf is the rating of sample_id"),
        (
            lambda: reliability(MANY, [*outputs_of(MANY), outputs_of(MANY)[0]]),
            "outputs: sample_id 's0000', system 'a' is there twice: expected",
        ),
        (lambda: reliability(MANY, outputs_of(MANY, outcome="oki")), "unknown outcome 'oki'; did"),
        (
            lambda: reliability(MANY, outputs_of(MANY, cost_usd=-1.0)),
            "cost_usd is -1.0: expected 0",
        ),
        (lambda: reliability(MANY, outputs_of(MANY, latency_s=math.inf)), "latency_s is inf: exp"),
        (lambda: PRICED.next_purchase("b", 1), "unknown system 'b'"),
        (lambda: PRICED.next_purchase("a", 0), "budget is 0: expected dollars"),
        (lambda: PRICED.next_purchase("a", 1, prompt=-1), "prompt is -1: expected dollars"),
        (lambda: PRICED.next_purchase("a", 1, output=0), "output and look are (0, 0.0): expected"),
        (lambda: reliability(MANY).next_purchase("a", 1), "what the tries of 'a' cost is not kno"),
        (lambda: reliability(MANY[::2]).next_purchase("a", 1), "no prompt has two tries"),
    ],
)
def test_what_it_cannot_be_made_of_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(EchoError) as refusal:
        call()
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_prompts_with_more_tries_count_as_much_as_others_for_dollars() -> None:
    """By hand: success is (20 * 1/4 + 20 * 0) / 40, and a try costs 1."""
    tries = {f"easy{at:02}": 4 for at in range(20)} | {f"hard{at:02}": 1 for at in range(20)}
    keys = [(name, draw) for name, count in tries.items() for draw in range(count)]
    common = {"system": "a", "outcome": "ok", "cost_usd": 1.0}
    outputs = [{"sample_id": name, "draw": draw, **common} for name, draw in keys]
    rated = [
        {"sample_id": name, "draw": draw, "system": "a", "judge": "j"}
        | {"rating": 9 if (name[:4], draw) == ("easy", 0) else 2}
        for name, draw in keys
    ]
    result = reliability(rated, outputs)
    assert result.tries["a"].value == pytest.approx(8)
    assert result.dollars["a"].value == pytest.approx(8)


def test_an_output_without_a_value_of_one_metric_is_not_judged() -> None:
    row = {"sample_id": "s", "system": "a", "judge": "j", "rating": 5}
    values = [
        {"sample_id": "s", "system": "a", "draw": 0, "metric": "color_shift", "value": 1.0},
        {"sample_id": "s", "system": "a", "draw": 1, "metric": "color_shift", "value": 1.0},
        {"sample_id": "s", "system": "a", "draw": 1, "metric": "ocr_accuracy", "value": 0.9},
    ]
    rule = {"color_shift": 5, "ocr_accuracy": 0.5}
    rows = [{**row, "draw": draw} for draw in (0, 1)]
    result = reliability(rows, success=rule, values=values)
    assert (result.success["a"].value, result.unrated["a"]) == (1.0, 1)


@pytest.mark.parametrize("wrong", [{"threshold": "7"}, {"success": None}, {"success": {}}])
def test_what_is_no_rule_is_one_line(wrong: Any) -> None:
    with pytest.raises(ScoreError, match="expected"):
        reliability([{"sample_id": "s", "system": "a", "judge": "j", "rating": 5}], **wrong)
