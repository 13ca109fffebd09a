"""What tags say together: systems not rated yet, sources that are gone, orders that changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from datasets import Dataset
from scipy import stats

from echo_hf.hub.leaderboard import (
    NOTHING_SHARED,
    Decay,
    ScoredRelease,
    decay,
    orders,
    read_scored,
    shown,
    unrated,
)
from echo_hf.tables import RATINGS
from tests.hub.leaderboard.conftest import (
    DEFINITION,
    REPO,
    SPLIT,
    Publish,
    figure,
    prompts,
    words,
)
from tests.local_hub import LocalHub

COUNT = 40
SEEN = frozenset((f"s{at}", f"{at:064x}") for at in range(COUNT))


def rated(judge: str = "qwen", **by_sample: Sequence[float | None]) -> pa.Table:
    """Ratings of each system on the first samples, by one judge."""
    rows = [
        {
            **dict.fromkeys(RATINGS.columns),
            "rubric": "overall",
            "repeat": 0,
            "outcome": "ok",
            "judge": judge,
            "sample_id": f"s{at}",
            "sample_digest": f"{at:064x}",
            "system": system,
            "rating": rating,
        }
        for system, some in by_sample.items()
        for at, rating in enumerate(some)
    ]
    return Dataset.from_list(rows, features=RATINGS.features).data.table


def tag(name: str, ratings: pa.Table | None = None, *figures: Any) -> ScoredRelease:
    return ScoredRelease(name, name, figures=figures, ratings=ratings, samples={SPLIT: SEEN})


def wins(count: int, of: int = COUNT) -> tuple[list[float], list[float]]:
    """Ratings with which a first system is ahead on so many samples, and behind on the others."""
    first = [8.0 if at < count else 3.0 for at in range(of)]
    return first, [5.0] * of


def test_the_tenth_release_comes_after_the_ninth(hub: LocalHub, publish_scored: Publish) -> None:
    for name in ("echo.9", "echo", "echo.10"):
        publish_scored(name)
    assert [one.tag for one in read_scored(REPO, api=hub.api())] == ["echo.10", "echo.9", "echo"]


def test_a_system_that_another_tag_rated_is_a_row_of_every_tag(
    hub: LocalHub, publish_scored: Publish
) -> None:
    """Also of a tag without results, whose samples are shown nevertheless."""
    publish_scored("v1", [figure("a", 0.7), figure("b", 0.3)])
    publish_scored("v2", [figure("b", 0.5), figure("c", None)])
    publish_scored("v3")
    third, second, first = found = read_scored(REPO, api=hub.api())
    assert [unrated(found, one, SPLIT) for one in found] == [["a", "b"], ["a"], []]
    assert unrated(found, first, "image_to_image") == []
    assert "a not yet rated on this tag" in words(shown(found, "v2", SPLIT))
    bare = words(shown(found, "v3", SPLIT))
    assert "this release holds no results" in bare
    assert "a not yet rated on this tag b not yet rated on this tag" in bare
    for one in found:
        assert f"{one.tag} Pixelbloom 20" in words(shown(found, "v1", SPLIT))
    assert third.problem
    assert not second.problem


def posted(names: dict[str, str]) -> list[dict[str, Any]]:
    return [
        {**row, "id": name, "post_urls": [f"https://example.org/{post}"]}
        for row, (name, post) in zip(prompts(len(names)), names.items(), strict=True)
    ]


def test_decay_is_what_the_newest_tag_of_the_same_benchmark_no_longer_names(
    hub: LocalHub, publish_scored: Publish
) -> None:
    """By hand: of four samples one stayed, the post of one has another sample, two posts left."""
    publish_scored(
        "echo", [figure("a", 0.7)], rows=posted({"a": "1", "b": "2", "c": "3", "d": "4"})
    )
    publish_scored("echo.1", [figure("a", 0.7)], rows=posted({"a": "1", "e": "2", "f": "5"}))
    publish_scored("other", rows=posted({"z": "9"}))
    read = read_scored(REPO, api=hub.api())
    assert {one.benchmark for one in read} == {"echo", "echo.1", "other"}
    same = [replace(one, benchmark=one.tag.partition(".")[0]) for one in read]
    other, newest, oldest = same
    assert decay(same, oldest) == Decay("echo.1", 4, gone=2)
    assert [decay(same, one) for one in (newest, other)] == [None, None]
    page = words(shown(same, "echo", SPLIT))
    assert "2 of 4 samples (50 %) are of posts that no sample of echo.1, the newest, names" in page
    assert "echo Pixelbloom 4 1 50 %" in page
    assert "echo.1 Pixelbloom 3 1 -" in page


def test_a_change_of_places_is_sure_where_the_paired_interval_is_on_either_tag() -> None:
    """Of two systems the lead is the mean of +1 and -1 a sample: a t interval, here by scipy."""
    before, now = tag("v1", rated(**dict(zip("ab", wins(32), strict=True)))), None
    for won, is_sure in ((8, True), (17, False)):
        now = tag("v2", rated(**dict(zip("ab", wins(won), strict=True))))
        ((found,), _) = orders(before, now, SPLIT, "corrected")
        assert (found.systems, found.is_sure) == (("a", "b"), is_sure)
        for lead, ahead in zip(found.leads, (32, won), strict=True):
            each = np.array([1.0] * ahead + [-1.0] * (COUNT - ahead))
            low, high = stats.ttest_1samp(each, 0).confidence_interval(0.95)
            assert lead.value == pytest.approx(each.mean())
            assert lead.interval == pytest.approx((low, high))
    page = words(shown([now, before], "v1", SPLIT, beside="v2"))
    assert "a over b +0.600 (0.341 to 0.859) -0.150 (-0.470 to 0.170) not decided" in page
    ((back,), _) = orders(now, before, SPLIT, "corrected")
    assert (back.systems, [lead.value for lead in back.leads]) == (("b", "a"), [0.15, -0.6])


def test_intervals_hold_over_all_pairs_together() -> None:
    """Five systems have ten pairs: a lead that one test would call sure is not decided."""
    rest = {name: [1.0] * COUNT for name in "cde"}
    few = {**dict(zip("ab", wins(27), strict=True)), **rest}
    many = {**dict(zip("ba", wins(27), strict=True)), **rest}
    each = np.array([1.0] * 27 + [-1.0] * 13) / 4  # one of four opponents
    assert stats.ttest_1samp(each, 0).pvalue < 0.05
    ((found,), _) = orders(tag("v1", rated(**few)), tag("v2", rated(**many)), SPLIT, "corrected")
    ends = stats.ttest_1samp(each, 0).confidence_interval(1 - 0.05 / 10)
    assert found.leads[0].interval == pytest.approx(tuple(ends))
    assert not found.is_sure


def test_only_systems_and_judges_of_both_tags_count() -> None:
    """A newcomer moves win rates without moving the order of others; another judge is no news."""
    before = tag("v1", rated(**dict(zip("ab", wins(32), strict=True))))
    new = rated(**dict(zip("ab", wins(32), strict=True)), c=[9.0] * COUNT)
    moved, said = orders(before, tag("v2", new), SPLIT, "corrected")
    assert moved == []
    assert said.startswith("no two systems have changed places; ")
    assert "systems (a, b) and judges (qwen)" in said
    by_other = rated("gpt", **dict(zip("ba", wins(32), strict=True)))
    unanswered = rated(a=[None] * COUNT, b=[5.0] * COUNT)
    for other in (by_other, unanswered):
        assert orders(before, tag("v2", other), SPLIT, "corrected") == ([], NOTHING_SHARED)


def test_another_model_of_the_same_name_has_no_order_in_common() -> None:
    def named(model: str) -> dict[str, Any]:
        one = {"model": model, "developer": "Pip", "status": "replay", "stands_for": None}
        return {**DEFINITION, "answered_by": {"systems": {"a": one}, "judges": {}}}

    some = rated(**dict(zip("ab", wins(32), strict=True)))
    releases = [
        tag(name, some, *(figure(system, 0.5, definition=named(name)) for system in "ab"))
        for name in ("v1", "v2")
    ]
    assert orders(*releases, SPLIT, "corrected") == ([], NOTHING_SHARED)
