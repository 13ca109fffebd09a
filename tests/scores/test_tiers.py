"""Which systems differ, by which test, how many samples it takes, and what nobody need rate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from math import log, sqrt
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.stats import binom, binomtest, norm, permutation_test

from echo_hf.scores import bradley_terry, decisions, samples_needed, sensitivity, tiers, win_rate
from echo_hf.scores.rating_table import read_ratings
from echo_hf.scores.tiers import half_width, holm, needed, p_values, sign_flip_test
from echo_hf.scores.votes import Protocol, compare, pairs_of
from tests.scores.ratings_for_tests import Row, drawn, one_judge, real_rows

P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=8)


def rated(shifts: dict[str, float], samples: int, seed: int) -> list[Row]:
    rng = np.random.default_rng(seed)
    hard = rng.normal(0, 3, samples)
    return one_judge(
        **{
            name: list(np.round(hard + shift + rng.normal(0, 1, samples)))
            for name, shift in shifts.items()
        }
    )


@given(values=P_VALUES)
def test_holm_rejects_as_its_steps_do(values: list[float]) -> None:
    adjusted = holm(np.array(values))
    for alpha in (0.01, 0.05, 0.4):
        rejected, left = set(), len(values)
        for at in sorted(range(len(values)), key=lambda at: values[at]):
            if values[at] * left > alpha:
                break
            rejected.add(at)
            left -= 1
        assert {at for at, p_value in enumerate(adjusted) if p_value <= alpha} == rejected


def test_a_tier_ends_where_its_top_is_left() -> None:
    names = ("ash", "birch", "cedar", "dogwood")
    rows = rated({name: 0.62 * (3 - at) for at, name in enumerate(names)}, 60, seed=4)
    found = tiers(rows)
    p_value = found.p_values
    assert found.tiers == (("ash", "birch"), ("cedar", "dogwood"))
    assert (p_value["ash"]["birch"] or 0) > 0.05 >= (p_value["ash"]["cedar"] or 1)
    assert (p_value["cedar"]["dogwood"] or 0) > 0.05 >= (p_value["birch"]["dogwood"] or 1)


def test_ten_systems_in_strict_order_are_ten_tiers() -> None:
    """Each beats the next on all of 20 samples, which has 2 chances in 2**20 by a sign test.

    So no drawn exchange reaches the difference, and Holm counts 45 pairs of smallest p values.
    """
    rows = one_judge(**{f"system_{at}": [10 - at] * 20 for at in range(10)})
    found = tiers(rows)
    assert binomtest(20, 20).pvalue == pytest.approx(2 / 2**20)
    assert found.tiers == tuple((f"system_{at}",) for at in range(10))
    assert found.p_values["system_0"]["system_1"] == pytest.approx(45 / 10_001)


def test_few_samples_separate_nobody_and_systems_without_a_rate_are_unranked() -> None:
    found = tiers(one_judge(ash=[5] * 9, birch=[1] * 9))
    assert found.tiers == (("ash", "birch"),)
    assert found.p_values == {"ash": {"birch": None}, "birch": {"ash": None}}
    found = tiers(one_judge(ash=[5] * 30, birch=[1] * 30, cedar=[None] * 30))
    assert found.tiers == (("ash",), ("birch",))
    assert found.unranked == ("cedar",)
    assert tiers(one_judge(ash=[1, 2])).tiers == ()


@pytest.mark.slow
@pytest.mark.parametrize("systems", [2, 5])
def test_equal_systems_differ_no_more_often_than_alpha_says(systems: int) -> None:
    """Any two of them: among 600 boards so many as alpha leaves by chance once in 1000 times."""
    trials, alpha, apart = 600, 0.05, 0
    for ratings in np.random.default_rng(3).integers(0, 5, (trials, systems, 25)).astype(float):
        rows = one_judge(**{f"system_{at}": list(one) for at, one in enumerate(ratings)})
        found = tiers(rows, alpha=alpha, n_resamples=400).p_values.values()
        apart += any((value or 0) <= alpha for others in found for value in others.values())
    assert binom.ppf(0.0005, trials, alpha / 2) < apart <= binom.ppf(0.999, trials, alpha)


@pytest.mark.parametrize("seed", range(5))
def test_p_values_are_those_of_all_exchanges(seed: int) -> None:
    """Of 11 samples scipy tries all 2048; five standard errors are left to chance."""
    differences = np.random.default_rng(seed).normal(0.2 * seed, 1, (3, 11))
    found = sign_flip_test(differences, n_resamples=40_000, seed=seed)
    for row, p_value in zip(differences, found, strict=True):
        expected = permutation_test(
            (row,), np.mean, permutation_type="samples", n_resamples=np.inf
        ).pvalue
        error = np.sqrt(expected * (1 - expected) / 40_000)
        assert p_value == pytest.approx(expected, abs=5 * error + 1 / 40_000)


Z_POWER_80, Z_POWER_90, Z_ALPHA_5, Z_ALPHA_1 = 0.841621, 1.281552, 1.959964, 2.575829


def two(wins: int, losses: int, ties: int = 0) -> list[Row]:
    return one_judge(ash=[3] * wins + [1] * losses + [2] * ties, birch=[2] * (wins + losses + ties))


@pytest.mark.parametrize(
    ("power", "alpha", "errors"),
    [
        (0.8, 0.05, Z_POWER_80 + Z_ALPHA_5),
        (0.9, 0.05, Z_POWER_90 + Z_ALPHA_5),
        (0.8, 0.01, Z_POWER_80 + Z_ALPHA_1),
    ],
)
def test_the_number_is_the_textbooks(power: float, alpha: float, errors: float) -> None:
    """((z of alpha / 2 + z of power) x deviation / difference), squared and rounded up."""
    differences = [1.0] * 60 + [-1.0] * 40 + [0.0] * 20
    deviation = np.std(differences, ddof=1)
    found = samples_needed(two(60, 40, 20), power=power, alpha=alpha).pairs["ash"]["birch"]

    assert found.difference == pytest.approx(np.mean(differences))
    assert found.deviation == pytest.approx(deviation)
    assert found.needed == math.ceil((errors * deviation / np.mean(differences)) ** 2)


def test_the_difference_is_that_of_the_rates_among_all_systems() -> None:
    rng = np.random.default_rng(1)
    names = ("ash", "birch", "cedar")
    rows = one_judge(**{name: list(rng.integers(at, 8, 60)) for at, name in enumerate(names)})
    found, rates = samples_needed(rows).pairs, win_rate(rows).win_rate
    for one in names:
        for other in set(names) - {one}:
            assert found[one][other].difference == pytest.approx(
                (rates[one] or 0) - (rates[other] or 0)
            )
            assert found[one][other].needed == found[other][one].needed


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (two(20, 20), "no_difference"),
        (two(0, 0, 30), "no_difference"),
        (two(30, 0), "no_spread"),
        (two(6, 3), "few_samples"),
        (one_judge(ash=[1, None], birch=[None, 2]), "nothing_in_common"),
    ],
)
def test_where_there_is_no_number_there_is_a_reason(rows: list[Row], reason: str) -> None:
    """Two that are as good as each other, that never differ in how, or that hardly ever met."""
    pair = samples_needed(rows).pairs["ash"]["birch"]
    assert pair.needed is None
    assert pair.reason == reason


@pytest.mark.parametrize("protocol", get_args(Protocol))
def test_the_deviation_says_what_leaving_a_sample_out_does(protocol: Protocol) -> None:
    rng = np.random.default_rng(2)
    ratings = rng.integers(0, 5, (3, 60)).astype(float)
    ratings[rng.random((3, 60)) < 0.3] = np.nan

    def rows(keep: NDArray[np.bool_]) -> list[Row]:
        return one_judge(
            **{name: list(one[keep]) for name, one in zip("abc", ratings, strict=True)}
        )

    left = []
    for at in range(60):
        rates = win_rate(rows(np.arange(60) != at), protocol=protocol, n_boot=0).win_rate
        left.append((rates["a"] or 0) - (rates["b"] or 0))
    found = samples_needed(rows(np.full(60, True)), protocol=protocol).pairs["a"]["b"]
    assert (found.deviation or 0) ** 2 / 60 == pytest.approx(np.var(left) * 59, rel=0.1)


def test_samples_without_a_comparison_are_no_evidence() -> None:
    rows = one_judge(ash=[5] * 10 + [None] * 500, birch=[1] * 10 + [None] * 500)
    p_value = tiers(rows, n_resamples=50_000).p_values["ash"]["birch"]
    assert p_value == pytest.approx(2 / 2**10, abs=5 * np.sqrt(2 / 2**10 / 50_000))


def test_batches_give_what_one_go_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    differences = np.random.default_rng(0).normal(0.3, 1, (2, 12))
    whole = sign_flip_test(differences, n_resamples=200, seed=1)
    monkeypatch.setitem(sign_flip_test.__globals__, "AT_ONCE", 96)  # of eight draws each
    assert sign_flip_test(differences, n_resamples=200, seed=1).tolist() == whole.tolist()
    assert sign_flip_test(differences, n_resamples=200, seed=2).tolist() != whole.tolist()


Array = NDArray[Any]
ALPHA = 0.05


@given(wins=st.integers(0, 60), losses=st.integers(0, 60), ties=st.integers(0, 9))
def test_a_p_value_is_one_over_what_a_mixture_of_bets_has_won(
    wins: int, losses: int, ties: int
) -> None:
    """Bets of all sizes, drawn from a normal distribution with variance 0.2, summed by quad."""
    total, squares = (wins - losses) / 2, (wins + losses) / 4

    def won(bet: float) -> float:
        density: float = norm.pdf(bet, scale=sqrt(0.2))
        return float(np.exp(bet * total - bet**2 * squares / 2) * density)

    expected, _ = quad(won, -30, 30, points=[total / (squares + 5)], limit=200)
    found = p_values([0.5] * wins + [-0.5] * losses + [0.0] * ties + [float("nan")])
    assert found == pytest.approx(min(1.0, 1 / expected), rel=1e-5)


@given(
    deviation=st.floats(0.05, 0.5), count=st.integers(1, 5000), alpha=st.sampled_from([0.05, 0.001])
)
def test_the_width_is_that_of_the_paper(deviation: float, count: int, alpha: float) -> None:
    """Waudby-Smith et al. 2024, theorem 2.2, in its own notation."""
    t, rho2 = count, 0.2 * deviation**2
    inner = 2 * (t * rho2 + 1) / (t**2 * rho2) * log(sqrt(t * rho2 + 1) / alpha)
    expected = deviation * sqrt(inner)
    assert half_width(count * deviation**2, count, alpha) == pytest.approx(expected)


def race(outcomes: Array, systems: int, level: float, batch: int = 50) -> tuple[Array, float]:
    """Signs of decided pairs, and the share of ratings that were used."""
    first, second = pairs_of(systems)
    there, asked = np.ones((systems, outcomes.shape[1]), dtype=bool), np.ones(systems, dtype=bool)
    known, used = np.full(outcomes.shape, np.nan), 0
    for start in range(0, outcomes.shape[1], batch):
        part = slice(start, start + batch)
        rows = asked[first] & asked[second]
        known[rows, part] = outcomes[rows, part]
        used += batch * int(asked.sum())
        found = p_values(known)
        asked &= needed(found > level, there[:, start + batch :])
    signs = np.where(found <= level, np.sign(np.nansum(known, axis=1)), 0)
    return signs, used / (systems * outcomes.shape[1])


@pytest.fixture(scope="module")
def outcomes(test_data: Path) -> Array:
    """Of each pair of 8 systems on 179 samples: the vote of three judges, as .5, 0 or -.5."""
    return compare(real_rows(test_data)).verdicts / 2


def worlds(outcomes: Array, runs: int, count: int) -> Iterator[tuple[Array, Array]]:
    """Samples drawn again; as they are, and with each sample's outputs dealt out by chance."""
    rng, systems = np.random.default_rng(1), 8
    first, second = pairs_of(systems)
    whole = np.zeros((systems, systems, outcomes.shape[1]))
    whole[first, second], whole[second, first] = outcomes, -outcomes
    for _ in range(runs):
        draw = rng.integers(0, outcomes.shape[1], count)
        dealt = rng.permuted(np.tile(np.arange(systems), (count, 1)), axis=1).T
        yield outcomes[:, draw], whole[dealt[first], dealt[second], draw]


@pytest.mark.parametrize("runs", [25, pytest.param(2000, marks=pytest.mark.slow)])
def test_decisions_are_seldom_wrong(outcomes: Array, runs: int) -> None:
    """In at most 5 % of runs any of 28 pairs, and of one pair.

    Where systems differ, three quarters of the ratings decide 25 of 28 pairs.
    """
    truth, wrong, equal, one = np.sign(outcomes.mean(axis=1)), 0, 0, 0
    used, decided = [], []
    for real, dealt in worlds(outcomes, runs, 1000):
        signs, share = race(real, 8, ALPHA / 28)
        wrong += bool(((signs != 0) & (signs != truth)).any())
        used.append(share)
        decided.append(np.count_nonzero(signs))
        equal += bool(race(dealt, 8, ALPHA / 28)[0].any())
        one += bool(race(dealt[:1], 2, ALPHA)[0].any())
    assert max(wrong, equal, one) <= ALPHA * runs
    assert 0.5 < np.mean(used) < 0.7
    assert np.mean(decided) > 25


def stopped(rows: Sequence[Row], asked: dict[str, int]) -> list[Row]:
    """The same ratings, where systems were asked about their first samples alone."""
    return [
        {**row, "rating": None, "outcome": "not_needed"}
        if int(row["sample_id"][1:]) >= asked.get(row["system"], 10**6)
        else {**row, "outcome": "ok"}
        for row in rows
    ]


def test_win_rates_are_those_of_the_samples_that_all_share() -> None:
    _, rows = drawn(80, seed=3)
    some = stopped(rows, {"ash": 30, "cedar": 55})
    shared = [row for row in rows if row["sample_id"] < "s030"]
    for measure in (win_rate, sensitivity, bradley_terry):
        found, expected = vars(measure(some)), vars(measure(shared))  # type: ignore[operator]
        definition = found.pop("definition")
        assert found == {name: one for name, one in expected.items() if name != "definition"}
        assert (definition["samples"], definition["of_samples"]) == (30, 80)
        assert "of_samples" not in expected["definition"]


def test_pairs_are_compared_on_all_samples_that_both_were_needed_for() -> None:
    _, rows = drawn(80, seed=3)
    found = decisions(stopped(rows, {"ash": 30, "cedar": 55}))
    every = {
        count: win_rate([row for row in rows if row["sample_id"] < f"s{count:03}"])
        for count in (30, 55, 80)
    }
    counts = {("ash", "cedar"): 30, ("ash", "birch"): 30, ("birch", "cedar"): 55}
    for (one, other), count in {**counts, ("birch", "dogwood"): 80}.items():
        assert found.matrix[one][other] == every[count].matrix[one][other]
        assert found.pairs[one][other] == every[count].pairs[one][other] == count
    assert (found.not_needed, found.ratings) == (150, 640)
    assert len(found.decided) + len(found.undecided) == 6


def test_tiers_of_ratings_that_stopped_rest_on_decisions() -> None:
    """A usual test would take the number of samples for one that was chosen beforehand."""
    rows = one_judge(ash=[9] * 60, birch=[5, 4] * 30, cedar=[4, 5] * 30)
    found = tiers(stopped(rows, {"ash": 25}))
    assert found.tiers[0] == ("ash",)
    assert set(found.tiers[1]) == {"birch", "cedar"}
    p_value = p_values([0.5] * 25)
    assert found.p_values["ash"]["birch"] == pytest.approx(3 * p_value)  # Holm, of three pairs
    assert found.p_values["birch"]["cedar"] == 1
    assert "confidence sequence" in found.definition["test"]


def test_ratings_without_such_rows_are_read_as_ever() -> None:
    rows = [{**row, "outcome": None} for row in one_judge(ash=[1, 2, None], birch=[2, 1, 3])]
    assert read_ratings(rows).not_asked is None
    found = decisions(rows)
    assert (found.pairs["ash"]["birch"], found.not_needed, found.undecided) == (
        2,
        0,
        (("ash", "birch"),),
    )


def test_where_all_that_is_shared_is_nothing_there_is_no_rate() -> None:
    rows = one_judge(ash=[9] * 30, birch=[1] * 30)
    some = stopped(rows, {"ash": 0})
    found = win_rate(some)
    assert (found.win_rate, found.definition["samples"]) == ({"ash": None, "birch": None}, 0)
    assert decisions(some).matrix["ash"]["birch"] is None
    assert tiers(some).tiers == ()


def test_alpha_of_each_pair_alone_decides_earlier() -> None:
    """To win all of 16 samples is enough for one pair, and not for one of three together."""
    rows = one_judge(ash=[9] * 16, birch=[5] * 16, cedar=[5] * 16)
    assert decisions(rows).decided == ()
    assert decisions(rows, family="pair").decided == (("ash", "birch"), ("ash", "cedar"))
