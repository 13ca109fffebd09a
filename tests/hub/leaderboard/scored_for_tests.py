"""Small scored releases: invented samples, ratings with win rates told by hand, and results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from datasets import Dataset

from echo_hf.tables import RATINGS, RESULTS

SPLIT = "text_to_image"
COUNT = 20
DEFINITION = {"judges": ["qwen"], "samples": COUNT, "missing": "exclude"}


def prompts(count: int = COUNT, start: int = 0) -> list[dict[str, Any]]:
    """Samples of words alone, the values that matter."""
    return [
        {"id": f"s{at}", "prompt": f"A fox, {at}", "sample_digest": f"{at:064x}"}
        for at in range(start, start + count)
    ]


def ratings(rates: Mapping[str, Mapping[str, float]], count: int = COUNT) -> Dataset:
    """Ratings by judge and system, on every sample the same."""
    rows = [
        {
            **dict.fromkeys(RATINGS.columns),
            "sample_id": f"s{at}",
            "sample_digest": f"{at:064x}",
            "system": system,
            "judge": judge,
            "rubric": "overall",
            "repeat": 0,
            "rating": rating,
            "outcome": "ok",
        }
        for judge, systems in rates.items()
        for system, rating in systems.items()
        for at in range(count)
    ]
    return Dataset.from_list(rows, features=RATINGS.features)


def figure(system: str, value: float | None, **more: Any) -> dict[str, Any]:
    """One figure of a system: a win rate, unless said otherwise."""
    known = {
        "metric": "win_rate",
        "protocol": "corrected",
        "split": SPLIT,
        "system": system,
        "value": value,
        "low": None if value is None else value - 0.1,
        "high": None if value is None else value + 0.1,
        "n": COUNT,
        "coverage": 1.0,
        "definition": DEFINITION,
    }
    return {**known, **more}


def results(figures: Iterable[Mapping[str, Any]]) -> Dataset:
    """The table of results, with definitions as JSON."""
    rows = [{**each, "definition": json.dumps(each["definition"])} for each in figures]
    return Dataset.from_list(rows, features=RESULTS.features)
