"""People's ranks and judges' ratings for the tests, as rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, Any]
SYSTEMS = ("ash", "birch", "cedar", "dogwood")
RATERS = ("ada", "ben", "cy")
JUDGES = ("jay", "kite")


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
