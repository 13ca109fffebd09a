"""A dataset repository on the local Hub with scored releases."""

from __future__ import annotations

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
from tests.hub.conftest import Samples
from tests.hub.leaderboard.scored_for_tests import prompts, results
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
