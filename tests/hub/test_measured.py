"""What a benchmark leans towards is counted, sample by sample."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from datasets import Dataset

from echo_hf.hub.card_sections import NOT_COUNTED, measured_text
from echo_hf.hub.facts import SampleCounts, measure
from echo_hf.tables import POSTS
from tests.markdown_for_tests import cells


def posts(*rows: Mapping[str, Any]) -> Dataset:
    """Posts with the columns that matter."""
    full = [{**dict.fromkeys(POSTS.columns), **row} for row in rows]
    return Dataset.from_list(full, features=POSTS.features)


POSTED = posts(
    {"url": "u1", "lang": "en-US", "platform": "x", "author": "mira"},
    {"url": "u2", "lang": "und", "platform": "x", "author": "mira"},
    {"url": "u3", "lang": "iw", "platform": "bluesky", "author": "mira"},
    {"url": "u4", "lang": None, "platform": None, "author": None},
    {"url": "unused", "lang": "fr", "platform": "x", "author": "jo"},
)


def built(samples: Any) -> dict[str, Dataset]:
    """Five samples, three of them in the benchmark; the last one's post is not known."""
    rows = [
        {"post_urls": [url, "unused"], "task": task}
        for url, task in [("u1", "edit"), ("u2", "edit"), ("u3", None), ("u4", "edit"), ("?", None)]
    ]
    every = samples(*rows)
    return {
        "image_to_image": every.select([0, 1, 3]),
        "text_to_image": every.select([]),
        "analysis": every,
    }


def test_each_sample_is_counted_by_its_primary_post(samples: Any) -> None:
    """Counted by hand: one language code a language, unknown where there is none."""
    found = measure(built(samples), POSTED)
    assert list(found) == ["all", "image_to_image", "text_to_image", "analysis"]
    assert (
        found["all"]
        == found["analysis"]
        == SampleCounts(
            samples=5,
            languages={"unknown": 3, "en": 1, "he": 1},
            platforms={"unknown": 2, "x": 2, "bluesky": 1},
            tasks={"edit": 3, "unknown": 2},
            authors=2,
            repeated_authors=1,
            unknown_authors=2,
        )
    )
    assert found["image_to_image"].languages == {"unknown": 2, "en": 1}
    assert found["image_to_image"].repeated_authors == 1
    assert found["text_to_image"].samples == found["text_to_image"].authors == 0


def test_a_sample_in_two_configs_is_one_sample(samples: Any) -> None:
    """Over all configs each sample counts once."""
    one = samples({"post_urls": ["u1"]})
    found = measure({"text_to_image": one, "analysis": one}, POSTED)
    assert found["all"].samples == 1


def test_a_sample_without_a_post_is_unknown(samples: Any) -> None:
    """Nothing is guessed for a sample that names no post."""
    found = measure({"analysis": samples({"post_urls": []})}, POSTED)
    assert found["all"].languages == {"unknown": 1}
    assert found["all"].unknown_authors == 1


def test_the_card_shows_the_counts_side_by_side(samples: Any) -> None:
    """A line for each name, a column for each config, shares of the config's own samples."""
    rows = cells(measured_text(measure(built(samples), POSTED)))
    assert rows[0] == ["", "image_to_image", "text_to_image", "analysis"]
    assert ["samples", "3", "0", "5"] in rows
    assert ["language: en", "1 (33 %)", "0", "1 (20 %)"] in rows
    assert ["platform: x", "2 (67 %)", "0", "2 (40 %)"] in rows
    assert ["authors of several samples", "1 (100 %)", "0", "1 (50 %)"] in rows
    assert ["samples of an unknown author", "1 (33 %)", "0", "2 (40 %)"] in rows


def test_rare_names_are_shown_together(samples: Any) -> None:
    """Twelve languages have lines of their own; the others share one, with their sum."""
    codes = [f"{a}{b}" for a in "abc" for b in "abcde"]
    many = posts(*({"url": code, "lang": code} for code in codes))
    rows = [{"post_urls": [code]} for code in codes]
    shown = cells(measured_text(measure({"analysis": samples(*rows)}, many)))
    assert sum(row[0].startswith("language: ") for row in shown) == 13
    assert ["language: 3 others", "3 (20 %)"] in shown


def test_what_was_not_counted_is_said_to_be_unknown() -> None:
    """A release that was written without its posts claims nothing about them."""
    assert measured_text({}) == NOT_COUNTED
