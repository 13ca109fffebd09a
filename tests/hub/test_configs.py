"""The configs of a release are tables that the toolkit declares."""

from __future__ import annotations

import pytest

from echo_hf.hub.facts import BENCHMARK_CONFIGS, CONFIGS, SCORE_CONFIGS, default_config
from echo_hf.tables import SAMPLES, TABLES


def test_every_config_keeps_to_a_declared_table() -> None:
    """Samples under three names, every other table under its own."""
    for name, config in CONFIGS.items():
        assert TABLES[config.table.name] is config.table
        assert config.table is SAMPLES or config.table.name == name
    assert set(BENCHMARK_CONFIGS) < set(CONFIGS)


def test_nobody_who_ranked_images_is_published() -> None:
    """People's rankings, posts and threads are no part of a release."""
    assert not {"human", "posts", "threads"} & set(CONFIGS)
    assert "results" not in SCORE_CONFIGS


@pytest.mark.parametrize(
    ("rows", "default"),
    [
        ({"image_to_image": 1, "text_to_image": 9}, "image_to_image"),
        ({"image_to_image": 0, "text_to_image": 9}, "text_to_image"),
        ({"image_to_image": 0, "text_to_image": 0, "analysis": 2, "ratings": 5}, "analysis"),
        ({"ratings": 0, "analysis": 0}, "analysis"),
    ],
)
def test_the_default_is_the_first_with_rows(rows: dict[str, int], default: str) -> None:
    """In the declared order, whatever the order of the release."""
    assert default_config(rows) == default
