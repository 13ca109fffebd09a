"""Our columns beside the names of the paper and of the official dataset."""

from __future__ import annotations

from typing import Any

import pytest
from datasets import List

from echo_hf.tables import (
    OFFICIAL_DATASET,
    PAPER_PROCESSED,
    PAPER_RETRIEVED,
    TABLES,
    release_features,
)

# Table D.1 of the paper, upper and lower half.
RETRIEVED = (
    "text",
    "timestamp",
    "replies_above",
    "keyword",
    "url",
    "author",
    "image_urls",
    "replies_below",
    "engagement",
)
PROCESSED = (
    "id",
    "post_id",
    "prompt",
    "prompt_modified",
    "quality",
    "community_feedback",
    "input_images",
    "output_images",
    "is_screenshot",
    "input_bboxs",
    "output_bboxs",
)
# What the authors' code prints, or reads, of each configuration of their dataset.
OFFICIAL = {
    "text_to_image": {
        "id",
        "prompt",
        "prompt_modified",
        "prompt_fill_blank",
        "input_images",
        "output_images",
        "community_feedback",
        "has_nsfw",
    },
    "analysis": {"id", "prompt", "prompt_modified", "quality", "community_feedback"},
    "image_to_image": {"id", "prompt", "input_images", "is_screenshot", "input_bboxs"},
}


def _resolved(path: str) -> Any:
    table, *names = path.split(".")
    feature: Any = TABLES[table].features
    for name in names:
        feature = feature.feature[name] if isinstance(feature, List) else feature[name]
    return feature


def test_every_retrieved_field_of_the_paper_is_mapped() -> None:
    """The nine raw fields of table D.1, each once, in its order."""
    assert tuple(PAPER_RETRIEVED) == RETRIEVED


def test_every_processed_field_of_the_paper_is_mapped() -> None:
    """The eleven processed fields of table D.1, each once, in its order."""
    assert tuple(PAPER_PROCESSED) == PROCESSED


@pytest.mark.parametrize("path", [*PAPER_RETRIEVED.values(), *PAPER_PROCESSED.values()])
def test_a_mapped_name_is_a_declared_column(path: str) -> None:
    assert _resolved(path) is not None


def test_a_path_to_nothing_would_be_found() -> None:
    with pytest.raises(KeyError):
        _resolved("threads.posts.granny")


@pytest.mark.parametrize("name", PROCESSED)
def test_a_processed_field_keeps_its_name(name: str) -> None:
    """Whoever knows the paper finds its processed fields under the same names."""
    assert PAPER_PROCESSED[name] == f"samples.{name}"


def test_the_official_configurations_are_listed_as_they_are() -> None:
    assert {name: set(columns) for name, columns in OFFICIAL_DATASET.items()} == OFFICIAL


@pytest.mark.parametrize("name", OFFICIAL)
def test_a_release_is_a_superset_of_the_official_dataset(name: str) -> None:
    assert OFFICIAL[name] <= set(release_features())


def test_engagement_has_the_counts_that_the_paper_names() -> None:
    counts = {"likes", "views", "reposts", "bookmarks"}
    assert counts <= set(_resolved(PAPER_RETRIEVED["engagement"]))


def test_images_carry_their_descriptions() -> None:
    """The paper keeps image addresses with their ALT texts."""
    images = _resolved(PAPER_RETRIEVED["image_urls"])
    assert {"url", "alt_text"} <= set(images.feature)


def test_feedback_names_its_post() -> None:
    feedback = _resolved(PAPER_PROCESSED["community_feedback"])
    assert {"post_id", "feedback"} <= set(feedback.feature)
