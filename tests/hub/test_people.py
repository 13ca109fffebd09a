"""What the rows of a release mean for people."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset

from echo_hf.hub.facts import ReleaseFacts
from echo_hf.hub.manifest import ReleaseCounts, people_of
from echo_hf.hub.release import write_release
from echo_hf.images.store import ImageStore

Samples = Callable[..., Dataset]
SCREENED = {"flagged": False, "categories": [], "model": "guard"}


def comment(author: str | None) -> dict[str, Any]:
    """A comment by somebody."""
    return {"post_id": "2", "post_url": None, "author": author, "feedback": "too blue"}


def test_each_sample_is_counted_once(samples: Samples) -> None:
    """By hand: one sample stands in two configs, and waits; two were never screened."""
    waits = {"review": ["may_show_minor", "personal_data"], "safety": SCREENED}
    configs = {
        "text_to_image": samples(waits),
        "analysis": samples(
            waits, {"review": [], "safety": None}, {"review": None, "safety": None}
        ),
    }
    assert people_of(configs) == ReleaseCounts(open_reviews=1, unscreened=2, hashed_authors=False)


@pytest.mark.parametrize(
    ("row", "named"),
    [
        ({"author": "0123456789abcdef"}, True),
        ({"community_feedback": [comment(None), comment("0123456789abcdef")]}, True),
        ({"community_feedback": [comment(None)]}, False),
        ({}, False),
    ],
)
def test_an_author_stands_in_it_as_whoever_posted(
    samples: Samples, row: Mapping[str, Any], named: bool
) -> None:
    """The sample's own, or that of a comment."""
    assert people_of({"analysis": samples({}, row)}).hashed_authors is named


def test_no_rows_concern_nobody(samples: Samples) -> None:
    """An empty release has nothing open."""
    assert people_of({"analysis": samples()}) == ReleaseCounts()


def test_the_manifest_of_a_release_says_it(
    tmp_path: Path, samples: Samples, images: ImageStore, facts: ReleaseFacts
) -> None:
    """It is counted from the rows that are written."""
    rows = samples(
        {"review": ["personal_data"], "author": "0123456789abcdef", "safety": None},
        {"review": [], "safety": None},
    )
    release = write_release(tmp_path / "release", {"analysis": rows}, images, facts)
    manifest = json.loads((release.path / "manifest.json").read_text("utf-8"))

    told = {name: manifest[name] for name in ("open_reviews", "unscreened", "hashed_authors")}
    assert told == {"open_reviews": 1, "unscreened": 2, "hashed_authors": True}
