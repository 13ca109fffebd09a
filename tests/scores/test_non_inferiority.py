"""Non-inferiority: against other programs, the likelihood, and exact chances of passing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import bootstrap, multinomial, norm

from echo_hf._infra.bootstrap import Unscored
from echo_hf.scores import NonInferiority, non_inferiority
from echo_hf.scores.non_inferiority import paired_non_inferiority, score_interval
from tests.scores.ratings_for_tests import (
    Row,
    cubes,
    most_said,
    one_judge,
    points_by_opponent,
    rows_of,
)

MARGIN = 0.05


def outcomes(wins: int, ties: int, losses: int) -> list[Row]:
    """Ratings of two systems, in which the new one wins, ties and loses so often."""
    new = [6.0] * wins + [5.0] * ties + [4.0] * losses
    return one_judge(base=[5.0] * len(new), new=new)


def gate(wins: int, ties: int, losses: int, **options: Any) -> NonInferiority:
    return non_inferiority(outcomes(wins, ties, losses), "base", "new", **options)


@pytest.mark.parametrize(
    ("wins", "losses", "n", "confidence", "ends"),
    [
        (28, 25, 618, 0.95, (-0.0148, 0.0247)),  # scoreci.mp(25, 28, 618, 0.9) of R's PropCIs
        (1, 7, 21, 0.975, (-0.517, -0.026)),  # Fagerland, Lydersen and Laake 2014, table 3
    ],
)
def test_the_interval_is_that_of_other_programs(
    wins: int, losses: int, n: int, confidence: float, ends: tuple[float, float]
) -> None:
    """Theirs is of a difference of shares, twice that of a rate from 0.5."""
    found = score_interval(wins, losses, n, confidence)
    assert np.round(np.array(found) * 2, len(str(ends[0])) - 3).tolist() == list(ends)


@given(st.integers(0, 30), st.integers(0, 30), st.integers(1, 40))
def test_both_ends_are_where_the_score_test_rejects(wins: int, losses: int, ties: int) -> None:
    """The likeliest shares under a difference are searched for, not solved."""
    n = wins + ties + losses
    ends = score_interval(wins, losses, n, 0.95)
    for rate, quantile in zip(ends, norm.ppf([0.95, 0.05]), strict=True):
        apart = 2 * rate

        def against(share: float, apart: float = apart) -> float:
            shares = share + apart, 1 - 2 * share - apart, share
            terms = zip((wins, ties, losses), shares, strict=True)
            return -sum(count * math.log(max(one, 1e-300)) for count, one in terms if count)

        lowest, highest = max(0.0, -apart), (1 - apart) / 2
        best = minimize_scalar(against, bounds=(lowest, highest), options={"xatol": 1e-12}).x
        score = (wins - losses - n * apart) / math.sqrt(n * (2 * best + apart - apart**2))
        assert score == pytest.approx(quantile, abs=2e-3)


@given(cubes())
def test_the_difference_is_that_of_the_pairs_points(cube: dict[str, Any]) -> None:
    base, new = sorted(next(iter(cube.values())))[:2]
    points = points_by_opponent(cube, most_said)[new][base]
    for one, other, sign in ((base, new, 1), (new, base, -1)):
        found = non_inferiority(rows_of(cube), one, other)
        assert found.n == len(points)
        assert found.difference == (
            pytest.approx(sign * float(sum(points) / len(points) - 0.5)) if points else None
        )


@pytest.mark.parametrize(
    ("counts", "verdict"),
    [
        ((0, 500, 0), "non_inferior"),
        ((20, 440, 40), "non_inferior"),  # below 0 beyond doubt, and within the margin
        ((10, 290, 200), "worse"),
        ((0, 440, 60), "undecided"),
        ((60, 30, 60), "undecided"),
    ],
)
def test_a_verdict_is_where_the_interval_lies(counts: tuple[int, int, int], verdict: str) -> None:
    found = gate(*counts)
    assert found.verdict == verdict
    assert found.interval is not None
    low, high = found.interval
    assert verdict == (
        "non_inferior" if low > -MARGIN else "worse" if high < -MARGIN else "undecided"
    )
    if counts == (20, 440, 40):
        assert high < 0


def test_what_is_needed_decides_for_equal_systems() -> None:
    """Without a loss, the score at the margin is the root of n over that of 9: 25 are enough."""
    assert (gate(0, 20, 0).verdict, gate(0, 20, 0).needed) == ("undecided", 5)
    assert gate(0, 24, 0).verdict == "undecided"
    assert (gate(0, 25, 0).verdict, gate(0, 25, 0).needed) == ("non_inferior", None)
    few = gate(3, 3, 3)  # the spread is at most 0.5
    worst = math.ceil(((norm.ppf(0.95) + norm.ppf(0.8)) * 0.5 / MARGIN) ** 2)
    assert (few.verdict, few.interval, few.reason) == ("undecided", None, Unscored.FEW_SAMPLES)
    assert few.needed == worst - 9
    near = gate(0, 440, 60)
    assert (near.verdict, near.needed) == ("undecided", 0)


def passed(wins: int, losses: int, n: int, margin: float) -> bool:
    return score_interval(wins, losses, n, 0.95)[0] > -margin


def test_false_passes_at_the_margin_are_as_many_as_the_confidence_allows() -> None:
    """Exactly, for 60 prompts: the chances of all outcomes that pass, by the share of ties."""
    n = 60
    counts = [(won, n - won - lost, lost) for won in range(n + 1) for lost in range(n + 1 - won)]
    passing = [one for one in counts if passed(one[0], one[2], n, MARGIN)]

    def chance(wins: float, losses: float) -> float:
        return float(multinomial.pmf(passing, n, [wins, 1 - wins - losses, losses]).sum())

    chances = [chance(won, won + 2 * MARGIN) for won in (0.3, 0.2, 0.1, 0.03, 0)]
    assert max(chances) < 0.055
    assert 0.045 < np.mean(chances) < 0.052
    assert chance(0, 0.3) < 0.001
    assert chance(0.1, 0) > 0.99


def outputs_of(rows: list[Row], **outcomes: dict[str, str]) -> list[Row]:
    """An output of each row; of some samples of a system with another outcome, or none for ''."""
    made = []
    for row in rows:
        outcome = outcomes.get(row["system"], {}).get(row["sample_id"], "ok")
        if outcome:
            names = {name: row[name] for name in ("sample_id", "system")}
            made.append({**names, "outcome": outcome})
    return made


@pytest.mark.parametrize("outcome", ["refused", "no_image", "failed", "retired", "unsupported", ""])
def test_an_output_that_is_missing_loses_whatever_it_is_called(outcome: str) -> None:
    rows = outcomes(0, 60, 0)
    gone = dict.fromkeys(sorted({row["sample_id"] for row in rows})[:3], outcome)
    rated = [row for row in rows if row["system"] == "base" or row["sample_id"] not in gone]
    outputs = outputs_of(rows, new=gone)
    found = non_inferiority(rated, "base", "new", outputs=outputs)
    assert (found.wins, found.ties, found.losses) == (0, 57, 3)
    assert (found.base_n, found.new_n, found.coverage) == (60, 57, 57 / 60)
    turned = non_inferiority(rated, "new", "base", outputs=outputs)
    assert (turned.wins, turned.losses, turned.verdict) == (3, 0, "non_inferior")
    counted = non_inferiority(rated, "base", "new", outputs=outputs, missing="loss")
    assert (counted.wins, counted.ties, counted.losses) == (0, 57, 3)


def test_what_neither_has_is_not_compared_and_lowers_the_coverage() -> None:
    """But for what both do not take: nobody asked for it."""
    rows = outcomes(0, 100, 0)
    names = sorted({row["sample_id"] for row in rows})
    for outcome, coverage in (("failed", 0.94), ("unsupported", 1.0)):
        gone = dict.fromkeys(names[:6], outcome)
        rated = [row for row in rows if row["sample_id"] not in gone]
        made = outputs_of(rows, base=gone, new=gone)
        found = non_inferiority(rated, "base", "new", outputs=made)
        assert (found.n, found.losses, found.coverage) == (94, 0, coverage)
        assert found.verdict == ("undecided" if coverage < 0.95 else "non_inferior")


def test_below_a_coverage_of_95_percent_only_worse_is_a_verdict() -> None:
    """And there is no number of prompts that would decide it."""
    rows = outcomes(0, 300, 0)
    names = sorted({row["sample_id"] for row in rows})

    def unrated(count: int) -> NonInferiority:
        kept = [row for row in rows if row["system"] == "base" or row["sample_id"] in names[count:]]
        return non_inferiority(kept, "base", "new", outputs=outputs_of(rows))

    assert (unrated(15).verdict, unrated(15).coverage) == ("non_inferior", 0.95)
    assert (unrated(15).reason, unrated(15).interval is None) == (None, False)
    half = unrated(150)
    assert (half.verdict, half.coverage, half.needed) == ("undecided", 0.5, None)
    assert half.reason == Unscored.LOW_COVERAGE
    without = non_inferiority([*rows[:300], *rows[450:]], "base", "new")
    assert (without.verdict, without.coverage) == ("undecided", 0.5)
    gone = dict.fromkeys(names[:150], "failed")
    lost = non_inferiority(rows, "base", "new", outputs=outputs_of(rows, new=gone))
    assert (lost.verdict, lost.losses, lost.reason) == ("worse", 150, None)


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5])
@pytest.mark.parametrize("where", ["at random", "on the hard prompts"])
@pytest.mark.parametrize("kind", ["failed", "absent", "unrated"])
def test_a_system_that_leaves_prompts_out_does_not_pass(
    share: float, where: str, kind: str
) -> None:
    """At most 5 % of systems that are worse by the margin on all prompts, whatever is missing."""
    rng, runs, n, passes = np.random.default_rng(3), 40, 400, 0
    for _ in range(runs):
        # On all prompts the new system wins 35 % and loses 45 %: a rate of 0.45.
        apart = rng.choice([1, 0, -1], n, p=[0.35, 0.2, 0.45])
        order = rng.permutation(n) if where == "at random" else np.argsort(apart, kind="stable")
        gone = set(order[: round(share * n)].tolist())
        rows = one_judge(base=[5.0] * n, new=(5.0 + apart).tolist())
        names = sorted({row["sample_id"] for row in rows})
        without = {names[at] for at in gone}
        rated = [row for row in rows if row["system"] == "base" or row["sample_id"] not in without]
        made = outputs_of(
            rows, new=dict.fromkeys(without, {"failed": "failed", "absent": ""}.get(kind, "ok"))
        )
        found = non_inferiority(rated, "base", "new", outputs=made)
        passes += found.verdict == "non_inferior"
    assert passes / runs <= 0.05


def test_a_metric_needs_numbers_of_95_percent() -> None:
    numbers: list[float | None] = [1.0] * 100

    def gate_of(missing: int) -> NonInferiority:
        new = [None] * missing + numbers[missing:]
        return paired_non_inferiority(numbers, new, margin=0.1, higher_is_better=True)

    assert (gate_of(5).verdict, gate_of(5).coverage) == ("non_inferior", 0.95)
    assert (gate_of(6).verdict, gate_of(6).needed) == ("undecided", None)
    assert gate_of(6).reason == Unscored.LOW_COVERAGE
    worse = [*[0.0] * 60, *[None] * 40]
    found = paired_non_inferiority(numbers, worse, margin=0.1, higher_is_better=True)
    assert (found.verdict, found.coverage) == ("worse", 0.6)


def test_a_metric_is_compared_where_both_have_a_number() -> None:
    """Its ends are those of scipy's accelerated bootstrap, within what draws and few samples do."""
    rng = np.random.default_rng(5)
    before, after = rng.gamma(2, 1, 200), rng.gamma(2, 1, 200) + 0.1
    base: list[float | None] = [*before.tolist(), 3.0, None]
    new: list[float | None] = [*after.tolist(), None, 1.0]
    found = paired_non_inferiority(base, new, margin=0.5, higher_is_better=False)
    theirs = bootstrap(
        (before - after,), np.mean, confidence_level=0.9, n_resamples=20_000, rng=rng
    ).confidence_interval
    assert (found.n, found.base_n, found.new_n) == (200, 201, 201)
    assert found.difference == pytest.approx((before - after).mean())
    assert found.interval == pytest.approx((theirs.low, theirs.high), abs=0.02)
    turned = paired_non_inferiority(base[::-1], new[::-1], margin=0.5, higher_is_better=False)
    assert turned == found
    other = paired_non_inferiority(base, new, margin=0.5, higher_is_better=True)
    assert other.difference == pytest.approx(-(before - after).mean())
    assert (other.wins, other.losses) == (found.losses, found.wins)


@pytest.mark.slow
@pytest.mark.parametrize("ties", [0.0, 0.5])
def test_false_passes_of_a_metric_at_the_margin(ties: float) -> None:
    """At most 5 % of 1,000 draws of 60 samples, within binomial error."""
    rng, runs, passes = np.random.default_rng(1), 1000, 0
    for _ in range(runs):
        apart = np.where(rng.random(60) < ties, 0.0, rng.normal(-0.1 / (1 - ties), 0.3, 60))
        options: dict[str, Any] = {"margin": 0.1, "higher_is_better": True}
        found = paired_non_inferiority([0.0] * 60, apart.tolist(), **options)
        passes += found.verdict == "non_inferior"
    assert passes / runs < 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)


def test_equal_numbers_pass_when_few_others_can_differ() -> None:
    """Of 59 samples none differs: at 95 % confidence fewer than 5 % do, since .95^59 < .05."""

    def alike(n: int) -> NonInferiority:
        return paired_non_inferiority([1.0] * n, [1.0] * n, margin=0.1, higher_is_better=True)

    assert (alike(58).verdict, alike(58).needed) == ("undecided", 1)
    assert (alike(59).verdict, alike(59).interval) == ("non_inferior", (0, 0))
    assert alike(59).reason == Unscored.NO_SPREAD
    rounded = [1e6, 1e6 + 1e-7] * 10  # a difference that is none
    found = paired_non_inferiority([0.0] * 20, rounded, margin=0.1, higher_is_better=True)
    assert (found.verdict, found.reason) == ("undecided", Unscored.NO_SPREAD)
    few = alike(3)
    assert (few.verdict, few.reason, few.needed) == ("undecided", Unscored.FEW_SAMPLES, 7)
    none = paired_non_inferiority([None], [1.0], margin=0.1, higher_is_better=True)
    assert (none.verdict, none.n, none.needed, none.coverage) == ("undecided", 0, None, 0)
