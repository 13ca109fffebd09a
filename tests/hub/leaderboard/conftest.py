"""Small scored releases on the local Hub: invented samples, ratings told by hand, results."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
from datasets import Dataset

from echo_hf.tables import RATINGS, RESULTS
from tests.hub.conftest import REPO, Put, Samples, Write

__all__ = ["REPO"]
Publish = Callable[..., None]


@pytest.fixture
def publish_scored(put: Put, samples: Samples, write: Write) -> Publish:
    """A function that publishes a release under a tag, with figures and ratings where given."""

    def make(
        tag: str,
        figures: Iterable[Mapping[str, Any]] | None = None,
        ratings: Dataset | None = None,
        rows: list[dict[str, Any]] | None = None,
    ) -> None:
        chosen = samples(*(rows or prompts()))
        found = None if figures is None else results(figures)
        scored = {"results": found, "ratings": ratings}
        configs = {"text_to_image": chosen, "analysis": chosen, **scored}
        put(write(tag, {name: some for name, some in configs.items() if some is not None}), tag)

    return make


SPLIT = "text_to_image"
COUNT = 20
DEFINITION = {"judges": ["qwen"], "samples": COUNT, "missing": "exclude"}


def prompts(count: int = COUNT, start: int = 0) -> list[dict[str, Any]]:
    return [
        {"id": f"s{at}", "prompt": f"A fox, {at}", "sample_digest": f"{at:064x}"}
        for at in range(start, start + count)
    ]


def ratings(rates: Mapping[str, Mapping[str, Any]], count: int = COUNT) -> Dataset:
    """By judge and system: the ratings of the first samples, or one that all of them have."""
    usual = {**dict.fromkeys(RATINGS.columns), "rubric": "overall", "repeat": 0, "outcome": "ok"}
    rows = [
        {**usual, "sample_id": f"s{at}", "sample_digest": f"{at:064x}"}
        | {"system": system, "judge": judge, "rating": rating[at] if several else rating}
        for judge, systems in rates.items()
        for system, rating in systems.items()
        for several in [isinstance(rating, list)]
        for at in range(len(rating) if several else count)
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
    rows = [{**each, "definition": json.dumps(each["definition"])} for each in figures]
    return Dataset.from_list(rows, features=RESULTS.features)


def words(page: str) -> str:
    body = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", body).split())
