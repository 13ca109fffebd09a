"""Ratings for the tests, and win rates counted one comparison at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

Row = dict[str, Any]
Cube = Mapping[str, Mapping[str, Sequence[float | None]]]
SYSTEMS = ("ash", "birch", "cedar", "dogwood")
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
