"""Ratings and ranks for the tests as rows, and win rates counted one comparison at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

Row = dict[str, Any]
Cube = Mapping[str, Mapping[str, Sequence[float | None]]]
SYSTEMS = ("ash", "birch", "cedar", "dogwood")
RATERS = ("ada", "ben", "cy")
JUDGES = ("jay", "kite", "lark")


def rows_of(cube: Cube) -> list[Row]:
    return [
        {"sample_id": f"s{number:03}", "system": system, "judge": judge, "rating": rating}
        for judge, systems in cube.items()
        for system, ratings in systems.items()
        for number, rating in enumerate(ratings)
    ]


def one_judge(**systems: Sequence[float | None]) -> list[Row]:
    return rows_of({"judge": systems})


@st.composite
def cubes(
    draw: st.DrawFn, *, missing: bool = True, samples: int = 5, systems: int = 4
) -> dict[str, dict[str, list[float | None]]]:
    known = st.integers(0, 3).map(float)
    rating = st.none() | known if missing else known
    count = draw(st.integers(1, samples))
    column = st.lists(rating, min_size=count, max_size=count)
    names = SYSTEMS[: draw(st.integers(2, systems))]
    judges = JUDGES[: draw(st.integers(1, 3))]
    return {judge: {name: draw(column) for name in names} for judge in judges}


def verdict(one: float | None, other: float | None) -> int | None:
    return None if one is None or other is None else (one > other) - (one < other)


def first_said(said: Sequence[int]) -> int:
    return said[0]


def most_said(said: Sequence[int]) -> int:
    return (said.count(1) > said.count(-1)) - (said.count(1) < said.count(-1))


def compared(
    cube: Cube, vote: Callable[[Sequence[int]], int]
) -> Iterator[tuple[str, str, int, int]]:
    judges = [cube[name] for name in sorted(cube)]
    systems = sorted(judges[0])
    for sample in range(len(judges[0][systems[0]])):
        for one, other in combinations(systems, 2):
            every = [verdict(judge[one][sample], judge[other][sample]) for judge in judges]
            said = [single for single in every if single is not None]
            if said:
                yield one, other, sample, vote(said)


def points_by_opponent(
    cube: Cube, vote: Callable[[Sequence[int]], int]
) -> dict[str, dict[str, list[Fraction]]]:
    systems = sorted(next(iter(cube.values())))
    points: dict[str, dict[str, list[Fraction]]] = {
        system: {other: [] for other in systems if other != system} for system in systems
    }
    for one, other, _, said in compared(cube, vote):
        points[one][other].append(Fraction(1 + said, 2))
        points[other][one].append(Fraction(1 - said, 2))
    return points


def mean(values: Sequence[Fraction]) -> float | None:
    return float(sum(values, Fraction(0)) / len(values)) if values else None


def counted_rates(cube: Cube, protocol: str) -> dict[str, float | None]:
    if protocol == "published":
        points = points_by_opponent(cube, first_said)
        return {
            system: mean([point for every in others.values() for point in every])
            for system, others in points.items()
        }
    points = points_by_opponent(cube, most_said)
    shares = {
        system: [sum(every, Fraction(0)) / len(every) for every in others.values() if every]
        for system, others in points.items()
    }
    return {system: mean(every) for system, every in shares.items()}


def real_rows(folder: Path) -> list[Row]:
    lines = (folder / "ratings" / "judge_ratings.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def human_rows(ranks: Mapping[str, Sequence[Sequence[int | None]]]) -> list[Row]:
    return [
        {"sample_id": f"s{at:03}", "rater": rater, "system": system, "rank": rank}
        for rater, samples in ranks.items()
        for at, sample in enumerate(samples)
        for system, rank in zip(SYSTEMS, sample, strict=False)
    ]


def rating_rows(ratings: Mapping[str, Sequence[Sequence[float | None]]]) -> list[Row]:
    return [
        {"sample_id": f"s{at:03}", "judge": judge, "system": system, "rating": rating}
        for judge, samples in ratings.items()
        for at, sample in enumerate(samples)
        for system, rating in zip(SYSTEMS, sample, strict=False)
    ]


def drawn(samples: int, seed: int, *, systems: int = 4) -> tuple[list[Row], list[Row]]:
    """Rows of three people who half agree, with ties, and of two judges.

    Jay half agrees with them, kite not at all.
    """
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(samples, systems))

    def seen(noise: float) -> np.ndarray:
        return np.round(2 * truth + rng.normal(0, noise, truth.shape))

    people = {rater: _places(-seen(2)) for rater in RATERS}
    judges = {
        "jay": seen(2).tolist(),
        "kite": rng.integers(0, 5, truth.shape).astype(float).tolist(),
    }
    return human_rows(people), rating_rows(judges)


def _places(values: np.ndarray) -> list[list[int]]:
    places: list[list[int]] = (1 + (values[:, :, None] > values[:, None, :]).sum(axis=-1)).tolist()
    return places


def real_people(folder: Path) -> list[Row]:
    """What three people said of 8 systems on 179 samples: 0, 0.5 or 1, as ranks with ties."""
    lines = (folder / "ratings" / "human_scores.jsonl").read_text("utf-8").splitlines()
    return [row for line in lines for row in _ranked(**json.loads(line))]


def _ranked(sample_id: str, rater: str, scores: Mapping[str, float]) -> Iterable[Row]:
    for system, score in scores.items():
        rank = 1 + sum(other > score for other in scores.values())
        yield {"sample_id": sample_id, "rater": rater, "system": system, "rank": rank}
