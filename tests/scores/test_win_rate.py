"""Votes and win rates against counting one comparison at a time, laws, and cases at the edge."""

from __future__ import annotations

import json
import math
import random
import re
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from echo_hf._infra.bootstrap import draw_weights, tail_share
from echo_hf.scores import WinRate, samples_needed, sensitivity, tiers, win_rate
from echo_hf.scores.rating_table import read_ratings
from echo_hf.scores.votes import TIE_WIDTH, VOTES, MissingRule, ProtocolName, to_verdicts
from echo_hf.scores.win_rate import MixedSplitsWarning
from tests.scores import ratings_for_tests as counting
from tests.scores.ratings_for_tests import (
    SYSTEMS,
    counted_rates,
    cubes,
    first_said,
    most_said,
    one_judge,
    real_rows,
    rows_of,
)

PROTOCOLS = get_args(ProtocolName)
COUNTED = {"published": counting.first_said, "corrected": counting.most_said}
# A first judge who likes ash, then birch; two who like cedar, then birch.
THREE_JUDGES = {
    "judge_1": {"ash": [9] * 12, "birch": [5] * 12, "cedar": [2] * 12},
    "judge_2": {"ash": [1] * 12, "birch": [5] * 12, "cedar": [8] * 12},
    "judge_3": {"ash": [3] * 12, "birch": [6] * 12, "cedar": [7] * 12},
}


def outputs_of(
    rows: Sequence[counting.Row], refused: Sequence[tuple[str, str]] = ()
) -> list[counting.Row]:
    keys = sorted({(row["sample_id"], row["system"]) for row in rows} | set(refused))
    names = ("sample_id", "system", "outcome")
    known = [(*key, "refused" if key in refused else "ok") for key in keys]
    return [dict(zip(names, one, strict=True)) for one in known]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(cube=cubes())
def test_rates_and_what_they_are_made_of_are_the_counted_ones(
    protocol: ProtocolName, cube: dict[str, Any]
) -> None:
    found = win_rate(rows_of(cube), protocol=protocol, n_boot=0)
    assert found.win_rate == pytest.approx(counted_rates(cube, protocol), abs=1e-12)
    known = [rate for rate in found.win_rate.values() if rate is not None]
    assert known == sorted(known, reverse=True)
    for judge, rates in found.per_judge.items():
        assert rates == pytest.approx(counted_rates({judge: cube[judge]}, protocol))
    samples = len(next(iter(next(iter(cube.values())).values())))
    for one, others in counting.points_by_opponent(cube, COUNTED[protocol]).items():
        assert found.pairs[one] == {other: len(points) for other, points in others.items()}
        assert found.ties[one] == {
            other: sum(point == 0.5 for point in points) for other, points in others.items()
        }
        met = sum(map(len, others.values()))
        assert found.coverage[one] == pytest.approx(met / samples / len(others))
        assert found.matrix[one] == pytest.approx(
            {other: counting.mean(points) for other, points in others.items()}
        )


def test_the_first_judge_is_the_first_of_those_named() -> None:
    rows = rows_of(THREE_JUDGES)
    asked = win_rate(rows, protocol="published", judges=["judge_2", "judge_1", "judge_3"])

    assert list(asked.win_rate) == ["cedar", "birch", "ash"]
    assert asked.definition["judges"] == ["judge_2", "judge_1", "judge_3"]
    assert win_rate(rows[::-1], protocol="published") == win_rate(rows, protocol="published")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@given(
    cube=cubes(samples=14),
    names=st.permutations(["elm", "fir", "oak", "yew"]),
    scale=st.tuples(st.floats(0.5, 100), st.floats(-100, 100)),
    shuffler=st.randoms(),
)
def test_names_scales_and_the_order_of_rows_change_nothing(
    protocol: ProtocolName,
    cube: dict[str, Any],
    names: list[str],
    scale: tuple[float, float],
    shuffler: random.Random,
) -> None:
    """The scale is that of one judge."""
    called, (first, *_), (factor, offset) = dict(zip(SYSTEMS, names, strict=True)), cube, scale
    rows = [{**row, "system": called[row["system"]]} for row in rows_of(cube)]
    for row in rows:
        if row["judge"] == first and row["rating"] is not None:
            row["rating"] = row["rating"] * factor + offset
    shuffler.shuffle(rows)
    one, other = (win_rate(each, protocol=protocol, n_boot=20) for each in (rows_of(cube), rows))
    for system, new in called.items():
        if system in one.win_rate:
            for part in ("win_rate", "interval", "standard_error", "coverage"):
                assert getattr(one, part)[system] == getattr(other, part)[new]
            for opponent, share in one.matrix[system].items():
                assert other.matrix[new][called[opponent]] == share


@given(cube=cubes(missing=False))
def test_refusals_count_as_losses_when_asked_for(cube: dict[str, Any]) -> None:
    """Below any rated output, level with each other: as if every judge had rated them -1."""
    rows = rows_of(cube)
    last, first = sorted({row["system"] for row in rows})[-1], "ash"
    refused = [("s000", first), ("s000", last)]
    kept = [row for row in rows if (row["sample_id"], row["system"]) not in refused]
    assume(kept)  # where there are no judges, nothing is said
    as_rated = {
        judge: {
            system: [-1.0, *rated[1:]] if system in (first, last) else rated
            for system, rated in systems.items()
        }
        for judge, systems in cube.items()
    }
    for protocol in PROTOCOLS:
        found = win_rate(
            kept, outputs_of(kept, refused), protocol=protocol, missing="loss", n_boot=0
        )
        assert found.win_rate == pytest.approx(counted_rates(as_rated, protocol))
        assert set(found.coverage.values()) == {1.0}


def test_both_ways_are_shown_when_outputs_are_given() -> None:
    rows = one_judge(ash=[9, 9, None, None], birch=[5, 5, 5, 5])
    outputs = outputs_of(rows, [("s002", "ash"), ("s003", "ash")])
    kept = win_rate(rows, outputs)

    assert kept.win_rate == {"ash": 1.0, "birch": 0.0}
    assert kept.by_missing == {
        "exclude": {"ash": 1.0, "birch": 0.0},
        "loss": {"ash": 0.5, "birch": 0.5},
    }
    assert win_rate(rows, outputs, missing="loss").win_rate == {"ash": 0.5, "birch": 0.5}
    assert win_rate(rows).by_missing is None


@given(cube=cubes())
def test_the_published_error_is_that_of_independent_comparisons(cube: dict[str, Any]) -> None:
    """std/sqrt(N) with N - 1 in the variance, and 1.96 of it to each side, not clipped."""
    found = win_rate(rows_of(cube), protocol="published")
    for system, others in counting.points_by_opponent(cube, counting.first_said).items():
        points = [float(point) for every in others.values() for point in every]
        if len(points) < 2:
            assert found.standard_error[system] is found.interval[system] is None
            continue
        error = statistics.stdev(points) / math.sqrt(len(points))
        rate = statistics.fmean(points)
        assert found.standard_error[system] == pytest.approx(error, abs=1e-9)
        assert found.interval[system] == pytest.approx(
            (rate - 1.96 * error, rate + 1.96 * error), abs=1e-9
        )


def test_one_comparison_has_no_published_error_and_one_system_no_rate() -> None:
    found = win_rate(one_judge(ash=[3], birch=[2]), protocol="published")
    assert found.win_rate == {"ash": 1.0, "birch": 0.0}
    assert found.interval == {"ash": None, "birch": None}
    assert found.reasons == {"ash": "one_comparison", "birch": "one_comparison"}
    alone = win_rate(one_judge(ash=[3, 4]))
    assert (alone.win_rate, alone.reasons) == ({"ash": None}, {"ash": "one_system"})
    assert (alone.matrix, alone.coverage) == ({"ash": {}}, {"ash": None})
    assert win_rate([]).win_rate == {}


def test_a_system_that_only_failed_has_no_rate() -> None:
    rows = one_judge(ash=[3, 4], birch=[1, 5])
    outputs = outputs_of(rows, [("s000", "cedar"), ("s001", "cedar")])
    failed = [{**row, "outcome": "failed"} if row["system"] == "cedar" else row for row in outputs]

    kept = win_rate(rows, failed, missing="loss")
    assert kept.win_rate["cedar"] is None
    assert kept.reasons["cedar"] == "not_rated"
    assert kept.coverage == {"ash": 0.5, "birch": 0.5, "cedar": 0.0}
    assert win_rate(rows, outputs, missing="loss").win_rate["cedar"] == 0.0


def test_few_samples_have_no_interval() -> None:
    """Nor have samples that all say the same: only those count that are compared."""
    rated = [1.0, 2.0, 3.0] * 4
    for count, there in ((9, False), (10, True)):
        rows = one_judge(ash=rated[:count] + [None] * 5, birch=[2.0] * (count + 5))
        found = win_rate(rows)
        assert (found.interval["ash"] is not None) is there
        assert (found.reasons.get("ash") == "few_samples") is not there
    same = win_rate(one_judge(ash=[5] * 30, birch=[2] * 30))
    assert same.interval == same.standard_error == {"ash": None, "birch": None}
    assert set(same.reasons.values()) == {"no_spread"}


def test_the_definition_holds_every_parameter() -> None:
    found = win_rate(rows_of(THREE_JUDGES), n_boot=10, seed=4)
    rule = {"protocol": "corrected", "vote": "plurality", "average": "opponents"}
    read = {"missing": "exclude", "rubric": "overall", "repeats": "mean rating", "samples": 12}
    tie = {"tie": 0.5, "tie_width": 1e-06}
    names = {"judges": ["judge_1", "judge_2", "judge_3"], "systems": ["ash", "birch", "cedar"]}
    kind = {"kind": "expanded percentile bootstrap over samples", "level": 0.95}
    interval = {**kind, "draws": 10, "seed": 4}
    expected = {"measure": "win_rate", **rule, **read, **tie, **names, "interval": interval}
    assert json.loads(json.dumps(found.definition)) == expected


def test_the_interval_is_that_of_rates_of_drawn_samples() -> None:
    rng, samples = np.random.default_rng(0), 40
    rated = rng.integers(0, 4, (2, 3, samples)).astype(object)
    rated[rng.random(rated.shape) < 0.2] = None

    def cube(taken: Sequence[int]) -> dict[str, Any]:
        judges = zip(("jay", "kite"), rated[:, :, taken].tolist(), strict=True)
        return {judge: dict(zip(SYSTEMS, every, strict=False)) for judge, every in judges}

    (weights,) = draw_weights(samples, 25, seed=3)
    rates = [
        counted_rates(cube(np.repeat(np.arange(samples), counts.astype(int))), "corrected")
        for counts in weights
    ]
    found = win_rate(rows_of(cube(range(samples))), n_boot=25, seed=3).interval
    there = np.array(rated != None)  # noqa: E711
    for at, system in enumerate(SYSTEMS[:3]):
        met = (there[:, at] & np.delete(there, at, axis=1).any(axis=1)).any(axis=0).sum()
        drawn, ends, tail = [rate[system] for rate in rates], found[system], tail_share(0.025, met)
        assert ends == pytest.approx(tuple(np.quantile(drawn, [tail, 1 - tail])))


@pytest.mark.slow
def test_the_interval_holds_the_truth_93_to_97_times_in_100() -> None:
    """The truth is the rate over a population, of which each of 600 trials draws 80 samples.

    Their standard error is 0.9 points or less. The published interval, which takes comparisons for
    independent, holds the truth less than 90 times in 100.
    """
    rng = np.random.default_rng(7)
    luck, noise = rng.normal(0, 1.5, (1, 4, 3000)), rng.normal(0, 0.8, (3, 4, 3000))
    everyone = np.clip(np.round(5 + np.linspace(0, 0.9, 4)[:, None] + luck + noise), 1, 10)

    def found(ratings: NDArray[np.float64], protocol: ProtocolName, seed: int = 0) -> WinRate:
        places = (np.char.mod("%05d", one.ravel()) for one in np.indices(ratings.shape))
        rows = dict(zip(("judge", "system", "sample_id"), places, strict=True))
        rows["rating"] = ratings.ravel()
        return win_rate(rows, protocol=protocol, n_boot=400, seed=seed)

    truth, held = {name: found(everyone, name).win_rate for name in PROTOCOLS}, Counter[str]()
    for trial in range(600):
        drawn = everyone[:, :, rng.integers(0, 3000, 80)]
        for name in PROTOCOLS:
            for system, ends in found(drawn, name, trial).interval.items():
                low, high = ends or (1, 0)
                held[name] += low <= (truth[name][system] or 0) <= high
    assert 0.93 <= held["corrected"] / 2400 <= 0.97
    assert held["published"] / 2400 < 0.9


def places(rates: Mapping[str, float | None]) -> dict[str, int]:
    ordered = sorted(rates, key=lambda name: -(rates[name] or 0))
    return {name: at for at, name in enumerate(ordered, 1)}


JUDGES = ["gpt4o", "gemini", "qwenvl"]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "why.md"
LINE = re.compile(
    r"^\| (\w+) \| (\.\d+) ± (\.\d+) \| (\d) \| (\.\d+) \((\.\d+) to (\.\d+)\) \| (\d) \|$", re.M
)


def test_every_number_of_the_table_is_current(test_data: Path) -> None:
    rows = real_rows(test_data)
    published = win_rate(rows, protocol="published", judges=JUDGES)
    corrected = win_rate(rows)
    lines = LINE.findall(PAGE.read_text("utf-8"))

    assert [line[0] for line in lines] == list(corrected.win_rate)
    for system, rate, error, place, vote, low, high, rank in lines:
        numbers = [float(one) for one in (rate, error, vote, low, high)]
        interval = corrected.interval[system]
        assert interval is not None
        assert numbers == pytest.approx(
            [
                published.win_rate[system],
                published.standard_error[system],
                corrected.win_rate[system],
                *interval,
            ],
            abs=0.00051,
        )
        assert int(place) == places(published.win_rate)[system]
        assert int(rank) == places(corrected.win_rate)[system]


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
    assert to_verdicts(np.array(noise)).tolist() == [0, 0, 0, 0, 1, -1]


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
    for protocol, missing in product(get_args(ProtocolName), get_args(MissingRule)):
        found.append(win_rate(table, protocol=protocol, missing=missing, n_boot=20))
        assert found[-1] == win_rate(rows, outputs, protocol=protocol, missing=missing, n_boot=20)
        assert {tuple(rates) for rates in found[-1].per_judge.values()} == {("ash", "birch")}
    assert len({one.win_rate["ash"] for one in found}) == 4


def test_ratings_of_two_splits_are_counted_together_with_a_warning() -> None:
    """Each split alone has another rate than both pooled, which is on no board."""
    rows = {"sample_id": [*"1122"], "system": [*"abab"], "judge": ["j"] * 4, "rating": [9, 1, 1, 9]}
    splits = ["image_to_image"] * 2 + ["text_to_image"] * 2
    with pytest.warns(MixedSplitsWarning, match="image_to_image and text_to_image together"):
        both = win_rate({**rows, "split": splits})
    assert both.win_rate == {"a": 0.5, "b": 0.5}
    edits = {name: values[:2] for name, values in {**rows, "split": splits}.items()}
    assert win_rate(edits).win_rate == {"a": 1.0, "b": 0.0}
    assert win_rate({**rows, "split": [None] * 4}).win_rate == both.win_rate
