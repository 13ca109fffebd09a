"""Accuracy of judges on people's ranks: against counts of one pair at a time, and SciPy."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from scipy.stats import kendalltau, spearmanr

from echo_hf.scores import agreement
from echo_hf.scores.judge_accuracy import JudgeAccuracy, PairAccuracy, judge_accuracy

Row = dict[str, Any]
Verdicts = Mapping[tuple[str, str, str], int]  # sample, first and second system: 1, 0 or -1


def sign(difference: float) -> int:
    return (difference > 0) - (difference < 0)


def read_shared(test_data: Path) -> tuple[list[Row], list[Row]]:
    folder = test_data / "ratings"
    ratings, people = (
        [json.loads(line) for line in (folder / name).read_text().splitlines()]
        for name in ("judge_ratings.jsonl", "human_scores.jsonl")
    )
    human = [
        {"sample_id": row["sample_id"], "rater": row["rater"], "system": name, "score": score}
        for row in people
        for name, score in row["scores"].items()
    ]
    return ratings, human


def list_verdicts(scores: Mapping[tuple[str, str], float]) -> dict[tuple[str, str, str], int]:
    by_sample: dict[str, dict[str, float]] = defaultdict(dict)
    for (sample, system), score in scores.items():
        by_sample[sample][system] = score
    return {
        (sample, first, second): sign(own[first] - own[second])
        for sample, own in by_sample.items()
        for first, second in combinations(sorted(own), 2)
    }


def take_majority(votes: list[Verdicts]) -> dict[tuple[str, str, str], int]:
    totals: dict[tuple[str, str, str], int] = defaultdict(int)
    for vote in votes:
        for pair, verdict in vote.items():
            totals[pair] += verdict
    return {pair: sign(total) for pair, total in totals.items()}


def compute_rates(verdicts: Verdicts, pairs: set[tuple[str, str, str]]) -> dict[str, float]:
    """Compute win rates against each opponent, and then their mean."""
    points: dict[tuple[str, str], list[float]] = defaultdict(list)
    for pair in pairs:
        _, first, second = pair
        points[first, second].append((1 + verdicts[pair]) / 2)
        points[second, first].append((1 - verdicts[pair]) / 2)
    systems = {name for name, _ in points}
    return {
        name: fmean(fmean(own) for (first, _), own in points.items() if first == name)
        for name in systems
    }


def count_alike(verdicts: Verdicts, people: Verdicts) -> tuple[float, float, float]:
    """Return the sums of equal verdicts, of points on decided pairs, and of ties there."""
    pairs = verdicts.keys() & people.keys()
    decided = [pair for pair in pairs if people[pair]]
    equal = sum(verdicts[pair] == people[pair] for pair in pairs)
    points = sum((1 + verdicts[pair] * people[pair]) / 2 for pair in decided)
    return equal / len(pairs), points / len(decided), len(decided)


@pytest.fixture(scope="module")
def measured(test_data: Path) -> tuple[list[Row], list[Row], JudgeAccuracy]:
    ratings, human = read_shared(test_data)
    return ratings, human, judge_accuracy(human, ratings, n_boot=200)


def read_people(human: list[Row]) -> dict[str, Verdicts]:
    scores: dict[str, dict[tuple[str, str], float]] = defaultdict(dict)
    for row in human:
        scores[row["rater"]][row["sample_id"], row["system"]] = row["score"]
    return {rater: list_verdicts(own) for rater, own in scores.items()}


@pytest.mark.parametrize("judge", ["gpt4o", "gemini", "qwenvl"])
def test_a_judge_on_real_ratings_equals_counts_of_one_pair_at_a_time(
    judge: str, measured: tuple[list[Row], list[Row], JudgeAccuracy]
) -> None:
    ratings, human, accuracy = measured
    figures = accuracy.judges[judge]["pointwise"]
    own = list_verdicts(
        {
            (row["sample_id"], row["system"]): row["rating"]
            for row in ratings
            if row["judge"] == judge and row["rating"] is not None
        }
    )
    people = take_majority([*read_people(human).values()])
    with_ties, without_ties, _ = count_alike(own, people)
    assert figures.with_ties.value == pytest.approx(with_ties, abs=1e-12)
    assert figures.without_ties.value == pytest.approx(without_ties, abs=1e-12)
    pairs = own.keys() & people.keys()
    assert figures.pairs == len(pairs)
    rates = [compute_rates(verdicts, pairs) for verdicts in (own, people)]
    names = sorted(rates[0])
    ranks = spearmanr(*([round(rate[name], 12) for name in names] for rate in rates))
    assert figures.order.spearman == pytest.approx(ranks.statistic, abs=1e-12)
    low, high = figures.without_ties.interval or (0, 0)
    assert low < without_ties < high


def test_people_are_held_against_the_majority_of_the_others(
    measured: tuple[list[Row], list[Row], JudgeAccuracy],
) -> None:
    _, human, accuracy = measured
    people = read_people(human)
    counted = []
    for rater, own in people.items():
        others = take_majority([votes for name, votes in people.items() if name != rater])
        with_ties, without_ties, decided = count_alike(own, others)
        counted.append((with_ties * len(own.keys() & others.keys()), without_ties * decided))
        counted[-1] += (len(own.keys() & others.keys()), decided)
    equal, points, pairs, decided = map(sum, zip(*counted, strict=True))
    assert accuracy.people is not None
    assert accuracy.people.with_ties.value == pytest.approx(equal / pairs, abs=1e-12)
    assert accuracy.people.without_ties.value == pytest.approx(points / decided, abs=1e-12)


def test_tau_is_that_of_agree(measured: tuple[list[Row], list[Row], JudgeAccuracy]) -> None:
    ratings, human, accuracy = measured
    agreed = agreement(human, ratings, n_boot=0, n_resamples=1).judges
    for judge, ways in accuracy.judges.items():
        assert ways["pointwise"].tau.value == agreed.with_consensus[judge].tau
    assert accuracy.people is not None
    assert accuracy.people.tau.value == agreed.people_with_others.value


@pytest.mark.parametrize("judge", ["gpt4o", "gemini", "qwenvl"])
def test_tau_with_a_single_person_is_that_of_scipy(judge: str, test_data: Path) -> None:
    """Of samples on which both put two systems in an order; else tau-b is not defined."""
    ratings, human = read_shared(test_data)
    person = [row for row in human if row["rater"] == human[0]["rater"]]
    own = [row for row in ratings if row["judge"] == judge and row["rating"] is not None]
    accuracy = judge_accuracy(person, own, n_boot=0).judges[judge]["pointwise"]
    scores = {(row["sample_id"], row["system"]): row["score"] for row in person}
    by_sample: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in own:
        if (row["sample_id"], row["system"]) in scores:
            score = scores[row["sample_id"], row["system"]]
            by_sample[row["sample_id"]].append((row["rating"], score))
    taus = [
        kendalltau(*zip(*pairs, strict=True)).statistic
        for pairs in by_sample.values()
        if all(len({*column}) > 1 for column in zip(*pairs, strict=True))
    ]
    assert accuracy.tau.samples == len(taus)
    assert accuracy.tau.value == pytest.approx(fmean(taus), abs=1e-12)


def rank(sample: str, *systems: str) -> list[Row]:
    return [
        {"sample_id": sample, "rater": "ada", "system": name, "rank": place}
        for place, name in enumerate(systems, 1)
    ]


def choose(sample: str, first: str, second: str, ab: str, ba: str) -> list[Row]:
    pair = {"sample_id": sample, "system_a": first, "system_b": second, "judge": "jay"}
    return [{**pair, "order": "ab", "winner": ab}, {**pair, "order": "ba", "winner": ba}]


def choices() -> PairAccuracy:
    human = [*rank("s1", "ash", "birch"), *rank("s2", "birch", "ash"), *rank("s3", "ash", "birch")]
    rows = [
        *choose("s1", "ash", "birch", "a", "a"),
        *choose("s2", "ash", "birch", "a", "a"),
        *choose("s3", "ash", "birch", "a", "b"),  # the place decides: a tie
        *choose("elsewhere", "ash", "birch", "a", "a"),
        *choose("s1", "ash", "oak", "a", "a"),
    ]
    return judge_accuracy(human, comparisons=rows, n_boot=0).judges["jay"]["pairwise"]


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (lambda figures: figures.pairs, 3),
        (lambda figures: figures.with_ties.value, 1 / 3),
        (lambda figures: figures.without_ties.value, (1 + 0 + 0.5) / 3),
        (lambda figures: figures.ties.value, 1 / 3),
        (lambda figures: figures.tau.value, 0.0),  # 1 and -1; a sample of ties has none
    ],
)
def test_choices_count_where_people_ranked_the_pair(
    read: Callable[[PairAccuracy], Any], value: float
) -> None:
    assert read(choices()) == pytest.approx(value)


def test_a_single_person_has_nobody_to_agree_with() -> None:
    assert judge_accuracy(rank("s1", "ash", "birch")).people is None


def test_intervals_draw_whole_samples() -> None:
    """Pairs of one sample are alike here: as if independent, an interval would be half as wide."""
    human, ratings = list[Row](), list[Row]()
    for number in range(100):
        names = ["ash", "birch", "cedar", "dogwood", "elm"]
        human += rank(f"s{number}", *names)
        order = names if number % 2 else names[::-1]
        ratings += [
            {"sample_id": f"s{number}", "system": name, "judge": "jay", "rating": float(-place)}
            for place, name in enumerate(order)
        ]
    figures = judge_accuracy(human, ratings).judges["jay"]["pointwise"]
    low, high = figures.without_ties.interval or (0.0, 0.0)
    assert figures.without_ties.value == 0.5
    assert high - low == pytest.approx(2 * 1.984 * 0.5 / 10, rel=0.12)
