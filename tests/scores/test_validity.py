"""Validity of measures: against Mann and Whitney's test, brute force, and planted measures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from echo_hf.errors import ScoreError
from echo_hf.scores import certify, validity
from echo_hf.scores.validity import certificate_validity
from tests.scores.certificates_for_tests import answer_threads


def draw_values(
    rng: np.random.Generator, threads: int, gap: float
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Values of outputs in threads of 1 to 4, which resemble each other in a thread."""
    sizes = rng.integers(1, 5, threads)
    thread = np.repeat(np.arange(threads), sizes)
    complained = thread < threads // 2
    shared = rng.normal(0, 0.6, threads)[thread]
    values = shared + rng.normal(0, 0.8, len(thread)) + gap * complained
    return values, complained, [f"{number}" for number in thread]


@pytest.mark.parametrize("better", ["lower", "higher"])
def test_the_auc_is_mann_and_whitneys_share_of_pairs(better: Any) -> None:
    """Rounded values, so that there are ties."""
    values, complained, threads = draw_values(np.random.default_rng(1), 40, 0.8)
    values = np.round(values, 1)
    bad, good = values[complained], values[~complained]
    expected = mannwhitneyu(bad, good).statistic / len(bad) / len(good)
    found = validity(values, complained, threads, better=better, n_boot=0)
    assert found.auc == pytest.approx(expected if better == "lower" else 1 - expected)
    assert found.outputs == (len(bad), len(good))
    assert found.threads == (20, 20)
    assert found.reason == "no_draws"


@pytest.mark.parametrize("better", ["lower", "higher"])
def test_the_threshold_is_the_best_of_all(better: Any) -> None:
    values, complained, threads = draw_values(np.random.default_rng(2), 40, 1.0)
    found = validity(values, complained, threads, better=better, n_boot=0)
    called = [
        values >= level if better == "lower" else values <= level for level in np.unique(values)
    ]
    best = max(flags[complained].mean() - flags[~complained].mean() for flags in called)
    assert found.j == pytest.approx(best)
    assert found.threshold is not None
    flags = values >= found.threshold if better == "lower" else values <= found.threshold
    assert flags[complained].mean() - flags[~complained].mean() == pytest.approx(best)


def test_the_interval_draws_whole_threads() -> None:
    """A bootstrap written again, one draw at a time, with other draws."""
    values, complained, threads = draw_values(np.random.default_rng(3), 60, 0.7)
    found = validity(values, complained, threads, better="lower", n_boot=4000)
    rng, names, drawn = np.random.default_rng(4), np.array(threads), []
    places = [np.flatnonzero(names == name) for name in np.unique(names)]
    for _ in range(2000):
        chosen = np.concatenate([places[at] for at in rng.integers(0, 60, 60)])
        bad, good = values[chosen][complained[chosen]], values[chosen][~complained[chosen]]
        drawn.append(mannwhitneyu(bad, good).statistic / len(bad) / len(good))
    assert found.interval == pytest.approx(np.quantile(drawn, [0.0225, 0.9775]), abs=0.015)


@pytest.mark.parametrize(("gap", "threads"), [(0.0, 40), (0.0, 80), (0.9, 60)])
def test_the_interval_covers(gap: float, threads: int) -> None:
    """The planted AUC is that of two normal distributions a gap apart, with a variance of 1."""
    from scipy.stats import norm

    rng, held, planted = np.random.default_rng(4620), [], norm.cdf(gap / np.sqrt(2))
    for _ in range(300):
        found = validity(*draw_values(rng, threads, gap), better="lower", n_boot=300)
        low, high = found.interval or (1.0, 0.0)
        held.append(low <= planted <= high)
    assert 0.91 <= np.mean(held) <= 0.985


def test_a_measure_that_tells_nothing_is_not_said_to_mean_what_people_mean() -> None:
    """In no more than 3 of 100: one end of the interval, and an AUC of 0.65 as well."""
    rng = np.random.default_rng(4621)
    drawn = [validity(*draw_values(rng, 60, 0.0), better="lower", n_boot=200) for _ in range(200)]
    assert np.mean([found.verdict == "yes" for found in drawn]) <= 0.03
    strong = [validity(*draw_values(rng, 60, 1.5), better="lower", n_boot=200) for _ in range(50)]
    assert {found.verdict for found in strong} == {"yes"}
    wrong_way = validity(*draw_values(rng, 60, 1.5), better="higher")
    assert wrong_way.verdict == "no"
    assert wrong_way.auc is not None
    assert wrong_way.auc < 0.3


def test_outputs_perfectly_apart_have_the_interval_of_threads() -> None:
    """As of a check that is always right: half of J's lower end, from 0.5 on."""
    flags, names = [1] * 20 + [0] * 20, [f"{number}" for number in range(40)]
    check = certify(flags, flags, names)
    assert check.interval is not None
    for values, better in ((flags, "lower"), ([-1.0 * flag for flag in flags], "higher")):
        found = validity(values, flags, names, better=better)
        assert (found.auc, found.j, found.verdict, found.reason) == (1, 1, "yes", None)
        assert found.threshold == values[0]
        assert found.interval == pytest.approx(((1 + check.interval[0]) / 2, 1))
    assert validity(flags, flags, names, better="higher").interval == pytest.approx(
        (0, (1 - check.interval[0]) / 2)
    )


def test_a_measure_with_one_value_tells_nothing() -> None:
    found = validity([3] * 40, [1] * 20 + [0] * 20, [str(at) for at in range(40)], better="lower")
    assert (found.auc, found.j, found.verdict, found.reason) == (0.5, 0, "no", None)
    low, high = found.interval or (1, 0)
    assert 0.35 < low < 0.5 < high < 0.65


@pytest.mark.parametrize(
    ("complaints", "praise", "verdict", "reason"),
    [
        (0, 0, "too few", "no_complaints"),
        (0, 20, "too few", "no_complaints"),
        (20, 0, "too few", "no_praise"),
        (14, 20, "too few", "few_threads"),
        (15, 15, "yes", None),
    ],
)
def test_few_threads_are_counted_and_named(
    complaints: int, praise: int, verdict: str, reason: str | None
) -> None:
    count = complaints + praise
    values = [2.0 + at for at in range(complaints)] + [0.1 * at for at in range(praise)]
    labels, names = [1] * complaints + [0] * praise, [str(at) for at in range(count)]
    found = validity(values, labels, names, better="lower")
    assert (found.verdict, found.reason) == (verdict, reason)
    assert found.threads == found.outputs == (complaints, praise)
    assert (found.auc is None) == (not complaints or not praise)


def test_a_check_is_a_measure_whose_auc_is_half_of_1_and_j() -> None:
    """The area of its answers, 0 and 1, is the same."""
    answered = answer_threads(np.random.default_rng(9), 60, 0.8, 0.85)
    certificate = certify(*answered)
    found = certificate_validity(certificate)
    by_answers = validity(*answered, better="lower")
    assert found.auc == pytest.approx(by_answers.auc)
    assert found.j == pytest.approx(by_answers.j)
    assert (found.verdict, found.outputs, found.threads) == (
        "yes",
        by_answers.outputs,
        by_answers.threads,
    )
    assert found.interval is not None
    assert found.interval[0] < found.auc < found.interval[1]  # type: ignore[operator]
    nothing = certificate_validity(certify([], [], []))
    assert (nothing.auc, nothing.interval, nothing.verdict) == (None, None, "too few")
    assert nothing.reason == "no_complaints"


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([1], [1, 0], ["a", "b"]), {}, "values has 1 finite numbers: expected 2, one an output"),
        (([1, np.nan], [1, 0], ["a", "b"]), {}, "values has 1 finite numbers: expected 2"),
        (([1, np.inf], [1, 0], ["a", "b"]), {}, "values has 1 finite numbers: expected 2"),
        (([1, "a"], [1, 0], ["a", "b"]), {}, "values is [1, 'a']: expected a number an output"),
        (([1, 2], [1, 2], ["a", "b"]), {}, "complained holds 2.0: expected 0 or 1"),
        (([1, 2], [1, 0], ["a"]), {}, "complained has 2 values: expected 1"),
        (([1, 2], [1, 0], ["a", "b"]), {"better": "best"}, "unknown direction 'best'"),
        (([1, 2], [1, 0], ["a", "b"]), {"n_boot": -1}, "n_boot is -1: expected a whole number"),
    ],
)
def test_wrong_input_is_refused_in_a_line(arguments: Any, options: Any, message: str) -> None:
    with pytest.raises(ScoreError, match=r"^[^\n]+$") as caught:
        validity(*arguments, **{"better": "lower", **options})
    assert str(caught.value).startswith(message)


def test_as_json_holds_all_fields() -> None:
    found = validity([1, 2], [1, 0], ["a", "b"], better="lower").as_json()
    assert found["verdict"] == "too few"
