"""Small scored releases on the local Hub: invented samples, ratings told by hand, results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

from echo_hf.hub.facts import ReleaseFacts
from echo_hf.hub.publish import publish
from echo_hf.hub.release import write_release
from echo_hf.images.store import ImageStore
from echo_hf.tables import RATINGS, RESULTS
from tests.hub.conftest import Samples
from tests.local_hub import LocalHub

REPO = "pixel-lab/echo"
Publish = Callable[..., None]


@pytest.fixture
def publish_scored(
    tmp_path: Path, hub: LocalHub, samples: Samples, images: ImageStore, facts: ReleaseFacts
) -> Publish:
    """A function that publishes a release under a tag, with figures and ratings where given."""

    def make(
        tag: str,
        figures: Iterable[Mapping[str, Any]] | None = None,
        ratings: Dataset | None = None,
        rows: list[dict[str, Any]] | None = None,
    ) -> None:
        chosen = samples(*(rows or prompts()))
        configs = {"text_to_image": chosen, "analysis": chosen}
        if figures is not None:
            configs["results"] = results(figures)
        if ratings is not None:
            configs["ratings"] = ratings
        named = replace(facts, name=tag)
        release = write_release(tmp_path / tag, configs, images, named)
        publish(release, REPO, tag, api=hub.api())

    return make


SPLIT = "text_to_image"
COUNT = 20
DEFINITION = {"judges": ["qwen"], "samples": COUNT, "missing": "exclude"}


def prompts(count: int = COUNT, start: int = 0) -> list[dict[str, Any]]:
    return [
        {"id": f"s{at}", "prompt": f"A fox, {at}", "sample_digest": f"{at:064x}"}
        for at in range(start, start + count)
    ]


def ratings(rates: Mapping[str, Mapping[str, float]], count: int = COUNT) -> Dataset:
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
    rows = [{**each, "definition": json.dumps(each["definition"])} for each in figures]
    return Dataset.from_list(rows, features=RESULTS.features)
