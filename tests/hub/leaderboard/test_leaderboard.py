"""The leaderboard: what tags say together, a board and its page, and the Space that shows it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from packaging.requirements import Requirement
from rich.console import Console
from scipy import stats

from echo_hf.builder.build import build
from echo_hf.cli.progress import TerminalProgress
from echo_hf.config.systems import shipped_config
from echo_hf.errors import HubError
from echo_hf.hub.leaderboard import (
    NO_INTERVALS,
    NO_RATINGS,
    NO_RESULTS,
    NOTHING_SHARED,
    GoneSamples,
    ScoredRelease,
    build_board,
    build_space_files,
    build_through_time,
    count_gone_samples,
    create_space,
    find_swapped_pairs,
    find_unrated,
    list_splits,
    read_scored,
    render_leaderboard,
    write_space,
)
from echo_hf.hub.load import evaluate_module
from echo_hf.hub.publish import publish
from echo_hf.quickstart.run import JUDGE, show_quickstart
from echo_hf.tables import CARRIED_RATINGS, RATINGS
from tests.hub.conftest import Command
from tests.hub.leaderboard.conftest import (
    COUNT,
    DEFINITION,
    REPO,
    SPLIT,
    Publish,
    figure,
    prompts,
    ratings,
    words,
)
from tests.local_hub import STRANGER, LocalHub
from tests.local_hub_repository import StoredFile
from tests.local_hub_routes import space_key

SEEN = frozenset((f"s{at}", f"{at:064x}") for at in range(COUNT))
HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>'


def release(*figures: dict[str, Any], tag: str = "v1", **more: Any) -> ScoredRelease:
    """A release with these figures, and ratings by which a and b are alike and c is far below."""
    rated = ratings({"qwen": {"a": 8.0, "b": 8.0, "c": 2.0}}).data.table
    known = {"target": "Pixelbloom", "samples": {SPLIT: SEEN}, "ratings": rated}
    return ScoredRelease(tag, f"c-{tag}", figures=figures, **{**known, **more})


def board(found: ScoredRelease, split: str = SPLIT, protocol: Any = "corrected") -> dict[str, Any]:
    return build_board([found], found, split, protocol)


def lines(found: dict[str, Any]) -> list[tuple[str, float | None, int | None]]:
    return [(line.system, line.value, line.tier) for line in found["lines"]]


def test_the_best_come_first_and_those_without_a_figure_last() -> None:
    """As published, whatever the order of the rows; other splits and protocols stay out."""
    found = release(
        figure("a", 0.2),
        figure("c", None),
        figure("b", 0.9),
        figure("a", 0.3, protocol="published"),
        figure("a", 0.4, split="other"),
        ratings=None,
    )
    assert lines(board(found)) == [("b", 0.9, None), ("a", 0.2, None), ("c", None, None)]
    assert list_splits(found) == ["other", SPLIT]
    assert lines(board(found, SPLIT, "published")) == [("a", 0.3, None)]
    assert lines(board(found, "other")) == [("a", 0.4, None)]


def test_tiers_come_from_the_ratings_of_these_samples() -> None:
    """One judge who rates a and b alike and c far below, on 20 samples: two tiers, by hand."""
    figures = figure("a", 0.75), figure("b", 0.75), figure("c", 0.0)
    assert lines(board(release(*figures))) == [("a", 0.75, 1), ("b", 0.75, 1), ("c", 0.0, 2)]
    # Without ratings or intervals there are none, and the board says which of them is missing.
    bare = board(release(figures[0], ratings=None))
    few = board(release(figure("a", 0.7, low=None, high=None)))
    assert (bare["lines"][0].tier, bare["note"]) == (None, NO_RATINGS)
    assert (few["lines"][0].tier, few["note"]) == (None, NO_INTERVALS)
    changed = SEEN - {("s0", "0" * 64)} | {("s0", "f" * 64)}
    held = release(samples={SPLIT: changed}).select_ratings(SPLIT)
    assert held is not None
    assert held.num_rows == 3 * (COUNT - 1)


def test_a_page_says_who_failed_and_whose_place_is_taken() -> None:
    one = {"model": "m", "developer": "P", "status": "substitute", "stands_for": "Old <Anole>"}
    told = {**DEFINITION, "failed_audit": {"qwen": ["swapped", "blank"]}}
    named = {**told, "answered_by": {"systems": {"a": one}, "judges": {"qwen": one}}}
    page = words(render_leaderboard([release(figure("a", 0.5, definition=named))], "v1", SPLIT))
    assert "qwen failed its audit: swapped, blank" in page
    assert "a in place of Old &lt;Anole&gt;" in page
    assert "judged by qwen (in place of Old &lt;Anole&gt;)" in page
    hostile = {**DEFINITION, "answered_by": {"systems": {"a": 3}, "judges": ["qwen"]}}
    odd = release(figure("a", 0.5, definition=hostile))
    assert "in place of" not in words(render_leaderboard([odd], "v1", SPLIT))


def test_a_board_shows_every_figure() -> None:
    rows = ratings({"qwen": {"a": 8.0, "b": 3.0}}).data.table
    found = release(figure("b", 0.25, coverage=0.9), figure("a", 0.75), ratings=rows)
    page = render_leaderboard([found], "v1", SPLIT)
    assert "v1: text_to_image" in words(page)
    assert "posts about Pixelbloom; protocol corrected; judged by qwen; 20 samples" in words(page)
    assert "a 0.750 0.650 to 0.850 1 100 % b 0.250 0.150 to 0.350 2 90 %" in words(page)
    assert "M130.0 8H170.0" in page  # from 0.65 to 0.85 of 200


def test_metrics_have_a_direction_or_a_reason() -> None:
    """Beside the board, never among the win rates; a reason that is everybody's is told once."""
    face: dict[str, Any] = {"metric": "face_identity", "definition": {"missing": "needs packages"}}
    missing = [figure(name, None, **face) for name in "ab"]
    shifts = [figure(name, value, metric="color_shift") for name, value in (("b", 3.0), ("a", 9.5))]
    found = release(figure("a", 0.5), *shifts, *missing)
    assert len(board(found)["lines"]) == 1
    said = words(render_leaderboard([found], "v1", SPLIT))
    assert "color_shift ↓ value 95 % n coverage a 9.500 9.400 to 9.600 20 100 % b 3.000" in said
    assert said.count("face_identity ↑: needs packages") == 1
    other = figure("c", None, **{**face, "definition": {"missing": "Needs packages"}})
    assert "needs packages" not in words(
        render_leaderboard([release(*missing, other)], "v1", SPLIT)
    )


def rate(system: str, value: float | None, **told: Any) -> dict[str, Any]:
    """A corrected rate of a check, as results have it."""
    question = "Does a cast lie over the picture?"
    definition = {"title": "Colour cast", "question": question, "measurer": "mira"}
    definition |= {"method": "corrected", "raw": 0.3, "missing": None, **told}
    return figure(system, value, metric="failure_rate_cast@2", definition=definition)


def test_checks_are_columns_of_their_own() -> None:
    """Corrected rates, with the share of yes beside them; the same figures stand nowhere else."""
    raw = [figure(name, 0.3, metric="cast@2") for name in "ab"]
    people = rate("b", 0.5, method="prediction_powered", raw=0.25)
    other = figure("a", 0.125, metric="failure_rate_words@1", definition={"title": "Words <b>"})
    found = release(figure("a", 0.5), rate("a", 0.2), people, other, *raw)
    page = render_leaderboard([found], "v1", SPLIT)
    said = words(page)
    assert "system Colour cast ↓ Words &lt;b&gt; ↓" in said
    assert "a 20 % (10 % to 30 %) 12 % (2 % to 22 %) b 50 % (40 % to 60 %) -" in said
    assert "Colour cast : Does a cast lie over the picture? answered by: mira" in said
    assert "share of yes: a 30 %, b 25 %; by people's labels: b" in said.replace("&#39;", "'")
    assert "cast@2" not in page
    assert "Other figures" not in said


def test_a_table_holds_the_four_checks_with_most_threads_of_complaints() -> None:
    """Of twenty, the others are counted, and their shares of yes are no figures beside them."""
    counts = {f"mark{number:02}": 10 + (7 * number) % 20 for number in range(20)}
    rates = [
        figure(
            "a",
            0.5,
            metric=f"failure_rate_{name}@1",
            definition={"title": name, "complaint_threads": count},
        )
        for name, count in counts.items()
    ]
    shares = [figure("a", 0.5, metric=f"{name}@1") for name in counts]
    page = render_leaderboard([release(figure("a", 0.5), *rates, *shares)], "v1", SPLIT)
    most = sorted(counts, key=lambda name: -counts[name])[:4]
    assert f"system {' ↓ '.join(most)} ↓" in words(page)
    assert "16 more, with fewer threads of complaints, are in the config results" in words(page)
    assert set(re.findall(r"mark\d\d", page)) == set(most)


def test_a_rate_that_cannot_be_told_says_why() -> None:
    missing = rate("a", None, missing="too <few> threads", raw=None, measurer=None)
    found = release(figure("a", 0.5), {**missing, "low": None, "high": None})
    said = words(render_leaderboard([found], "v1", SPLIT))
    assert "system Colour cast ↓ a - Colour cast : Does" in said
    assert "no rate: too &lt;few&gt; threads" in said


def test_success_and_its_price_are_a_table_of_their_own() -> None:
    """Of several numbers of tries the largest; the same figures stand nowhere else."""
    definition = {"success": "rating", "threshold": 7.0, "missing": "few <b>"}
    figures = [
        figure(system, value, metric=metric, definition=definition)
        for metric, values in {
            "success_rate": (0.2, 0.5),
            "pass_at_2": (0.4, 0.6),
            "pass_at_10": (0.6, 0.8),
            "tries_per_success": (5.0, 2.0),
            "dollars_per_success": (0.35, None),
            "seconds_per_success": (60.0, 20.0),
        }.items()
        for system, value in zip("ab", values, strict=True)
    ]
    said = words(render_leaderboard([release(figure("a", 0.5), *figures)], "v1", SPLIT))
    assert (
        "system succeed in 10 tries dollars b 50 % (40 % to 60 %) 80 % (70 % to 90 %) 2 (" in said
    )
    assert "a 20 % (10 % to 30 %) 60 % (50 % to 70 %) 5 (4.9 to 5.1) 0.35 (0.25 to 0.45)" in said
    assert "Success: a rating of 7 or more." in said
    assert "Other figures" not in said
    odd = {"success": {HOSTILE: HOSTILE}, "threshold": [HOSTILE]}
    hostile = [figure(HOSTILE, math.nan, metric="success_rate", definition=odd)]
    page = render_leaderboard([release(*hostile)], "v1", SPLIT)
    assert "<script" not in page


def test_a_metric_of_a_plug_in_is_no_check() -> None:
    found = release(figure("a", 0.5), figure("a", 0.25, metric="failure_rate_mine"))
    said = words(render_leaderboard([found], "v1", SPLIT))
    assert "failure_rate_mine value 95 % n coverage a 0.250" in said


def test_what_a_release_says_of_a_check_is_text() -> None:
    odd = {"title": HOSTILE, "question": [HOSTILE], "raw": "x", "measurer": HOSTILE}
    found = release(figure("a", 0.5), rate("a", 0.2, **odd))
    page = render_leaderboard([found], "v1", SPLIT)
    assert "<script" not in page
    assert "<img" not in page


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        (("v1", SPLIT), NO_RESULTS),
        (("v9", SPLIT), "no such release"),
        ((None, None), "no such release"),
        (("v2", None), "choose a split and a protocol"),
        (("v2", SPLIT, "mine"), "choose a split and a protocol"),
        (("v2", "no such split"), "no win rates here"),
        (("v2", SPLIT, "corrected", "v1"), "orders not compared: both tags need ratings"),
    ],
)
def test_what_cannot_be_shown_says_why(chosen: tuple[Any, ...], expected: str) -> None:
    bare = ScoredRelease("v1", "c1", "Pixelbloom", problem=NO_RESULTS)
    assert expected in words(
        render_leaderboard([release(figure("a", 0.5), tag="v2"), bare], *chosen)
    )
    assert words(render_leaderboard([], None, None)) == "no release to show"
    assert words(render_leaderboard([], None, None, problem="cannot read <it>")).startswith(
        "cannot read"
    )


class Markup(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}


@given(st.text(max_size=60).map(lambda text: text + HOSTILE) | st.text(max_size=60))
def test_nothing_of_others_is_markup(text: str) -> None:
    definition = {"judges": [text], "failed_audit": {text: [text]}, "missing": text}
    anchor = {"strength": 1.0, "judges": {text: {}}}
    figures = [
        figure(text, 0.5, definition=definition, split=text),
        figure("a", None, metric=text, definition=definition, split=text),
        figure(text, 1.0, metric=text, definition=definition, split=text),
        *(
            figure(name, 1.0, metric="bradley_terry", definition={"anchor": anchor}, split=text)
            for name, anchor in {text: {**anchor, "release": text}, "b": text, "c": None}.items()
        ),
    ]
    one = release(*figures, tag=text or "v", target=text)
    page = render_leaderboard([one], one.tag, text) + render_leaderboard(
        [one, release()], "v1", SPLIT, "corrected", one.tag
    )
    found = Markup(page + render_leaderboard([], text, text, problem=text))
    ours = "style div h3 h4 p table thead tbody tr th td svg path circle"
    assert found.elements <= set(ours.split())
    assert not {name for name in found.attributes if name.startswith(("on", "href", "src"))}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 7.0, -3.0])
def test_numbers_beyond_the_axis_stay_on_it(value: float) -> None:
    """A published rate's interval may reach beyond 0 and 1; what is no number is a dash."""
    ends = {"low": value, "high": value}
    page = render_leaderboard(
        [release(figure("a", value, **ends), figure("b", 0.5, **ends))], "v1", SPLIT
    )
    places = [float(one) for one in re.findall(r'cx="([^"]*)"', page)]
    assert all(0 <= place <= 200 for place in places)
    assert "nan" not in page
    assert "inf" not in words(page)


SAMPLES = 40
SEEN_BY_ALL = frozenset((f"s{at}", f"{at:064x}") for at in range(SAMPLES))


def rated(judge: str = "qwen", **by_sample: Sequence[float | None]) -> pa.Table:
    """Ratings of each system on the first samples, by one judge."""
    return ratings({judge: by_sample}, SAMPLES).data.table


def tag(name: str, ratings: pa.Table | None = None, *figures: Any) -> ScoredRelease:
    return ScoredRelease(name, name, figures=figures, ratings=ratings, samples={SPLIT: SEEN_BY_ALL})


def duel(count: int, names: str = "ab") -> dict[str, list[float]]:
    """Ratings with which a first system is ahead on so many samples, and behind on the others."""
    first = [8.0 if at < count else 3.0 for at in range(SAMPLES)]
    return dict(zip(names, (first, [5.0] * SAMPLES), strict=True))


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
    assert [find_unrated(found, one, SPLIT) for one in found] == [["a", "b"], ["a"], []]
    assert find_unrated(found, first, "image_to_image") == []
    assert "a not yet rated on this tag" in words(render_leaderboard(found, "v2", SPLIT))
    bare = words(render_leaderboard(found, "v3", SPLIT))
    assert "this release holds no results" in bare
    assert "a not yet rated on this tag b not yet rated on this tag" in bare
    for one in found:
        assert f"{one.tag} Pixelbloom 20" in words(render_leaderboard(found, "v1", SPLIT))
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
    assert count_gone_samples(same, oldest) == GoneSamples("echo.1", 4, gone=2)
    assert [count_gone_samples(same, one) for one in (newest, other)] == [None, None]
    page = words(render_leaderboard(same, "echo", SPLIT))
    assert "2 of 4 samples (50 %) are of posts that no sample of echo.1, the newest, names" in page
    assert "echo Pixelbloom 4 1 50 %" in page
    assert "echo.1 Pixelbloom 3 1 -" in page


def test_a_change_of_places_is_sure_where_the_paired_interval_is_on_either_tag() -> None:
    """Of two systems the lead is the mean of +1 and -1 a sample: a t interval, here by scipy."""
    before, now = tag("v1", rated(**duel(32))), None
    for won, is_sure in ((8, True), (17, False)):
        now = tag("v2", rated(**duel(won)))
        ((found,), _) = find_swapped_pairs(before, now, SPLIT, "corrected")
        assert (found.systems, found.is_sure) == (("a", "b"), is_sure)
        for lead, ahead in zip(found.leads, (32, won), strict=True):
            each = np.array([1.0] * ahead + [-1.0] * (SAMPLES - ahead))
            low, high = stats.ttest_1samp(each, 0).confidence_interval(0.95)
            assert lead.value == pytest.approx(each.mean())
            assert lead.interval == pytest.approx((low, high))
    page = words(render_leaderboard([now, before], "v1", SPLIT, beside="v2"))
    assert "a over b +0.600 (0.341 to 0.859) -0.150 (-0.470 to 0.170) not decided" in page
    ((back,), _) = find_swapped_pairs(now, before, SPLIT, "corrected")
    assert (back.systems, [lead.value for lead in back.leads]) == (("b", "a"), [0.15, -0.6])


def test_intervals_hold_over_all_pairs_together() -> None:
    """Five systems have ten pairs: a lead that one test would call sure is not decided."""
    rest = {name: [1.0] * SAMPLES for name in "cde"}
    few = {**duel(27), **rest}
    many = {**duel(27, "ba"), **rest}
    each = np.array([1.0] * 27 + [-1.0] * 13) / 4  # one of four opponents
    assert stats.ttest_1samp(each, 0).pvalue < 0.05
    ((found,), _) = find_swapped_pairs(
        tag("v1", rated(**few)), tag("v2", rated(**many)), SPLIT, "corrected"
    )
    ends = stats.ttest_1samp(each, 0).confidence_interval(1 - 0.05 / 10)
    assert found.leads[0].interval == pytest.approx(tuple(ends))
    assert not found.is_sure


def test_only_systems_and_judges_of_both_tags_count() -> None:
    """A newcomer moves win rates without moving the order of others; another judge is no news."""
    before = tag("v1", rated(**duel(32)))
    new = rated(**duel(32), c=[9.0] * SAMPLES)
    moved, said = find_swapped_pairs(before, tag("v2", new), SPLIT, "corrected")
    assert moved == []
    assert said.startswith("no two systems have changed places; ")
    assert "systems (a, b) and judges (qwen)" in said
    by_other = rated("gpt", **duel(32, "ba"))
    unanswered = rated(a=[None] * SAMPLES, b=[5.0] * SAMPLES)
    for other in (by_other, unanswered):
        assert find_swapped_pairs(before, tag("v2", other), SPLIT, "corrected") == (
            [],
            NOTHING_SHARED,
        )


def test_another_model_of_the_same_name_has_no_order_in_common() -> None:
    def named(model: str) -> dict[str, Any]:
        one = {"model": model, "developer": "Pip", "status": "replay", "stands_for": None}
        return {**DEFINITION, "answered_by": {"systems": {"a": one}, "judges": {}}}

    some = rated(**duel(32))
    releases = [
        tag(name, some, *(figure(system, 0.5, definition=named(name)) for system in "ab"))
        for name in ("v1", "v2")
    ]
    assert find_swapped_pairs(*releases, SPLIT, "corrected") == ([], NOTHING_SHARED)


def test_every_tag_is_read(hub: LocalHub, publish_scored: Publish) -> None:
    """Figures with their definitions, ratings, samples by digest; or why there are none."""
    publish_scored("v1")
    publish_scored("v2", [figure("a", 0.7)], ratings({"qwen": {"a": 8, "b": 2}}))
    second, first = read_scored(REPO, api=hub.api())

    assert (second.tag, second.target, second.problem) == ("v2", "Pixelbloom", None)
    assert second.commit == hub.repositories[REPO].tags["v2"]
    assert [(each["system"], each["definition"]) for each in second.figures] == [("a", DEFINITION)]
    assert second.ratings is not None
    assert second.ratings.num_rows == 2 * COUNT
    assert second.samples["text_to_image"] == {(f"s{at}", f"{at:064x}") for at in range(COUNT)}
    assert second.samples["image_to_image"] == frozenset()
    assert (first.tag, first.figures, first.problem) == ("v1", (), NO_RESULTS)


def test_what_is_known_is_not_asked_for_again(hub: LocalHub, publish_scored: Publish) -> None:
    publish_scored("v1", [figure("a", 0.7)])
    known = read_scored(REPO, api=hub.api())
    hub.asked.clear()
    again = read_scored(REPO, known=known, api=hub.api())

    assert again[0] is known[0]
    assert not [path for _, path in hub.asked if "/resolve/" in path or "/tree" in path]

    publish_scored("v2", [figure("a", 0.8)])
    both = read_scored(REPO, known=known, api=hub.api())
    assert [each.tag for each in both] == ["v2", "v1"]
    assert both[1].figures is known[0].figures


def test_a_submission_is_a_row_of_the_release_that_it_was_placed_on(
    hub: LocalHub, publish_scored: Publish
) -> None:
    """Also where a tag is made anew without a new head; of other content it is no row."""
    for tag, value in {"v1": 0.7, "v2": 0.8}.items():
        publish_scored(tag, [figure("a", value)])
    repository = hub.repositories[REPO]
    first, second = (repository.commits[repository.tags[tag]] for tag in ("v1", "v2"))
    placed = {
        "name": "fern",
        "model": "fern",
        "developer": "unknown",
        "repo_id": REPO,
        "tag": "v1",
        "manifest": first.files["manifest.json"].sha256,
        "submission": "0" * 64,
        "protocol": "corrected",
        "judges": ["qwen"],
        "splits": {SPLIT: {"systems": 2, "rated": 9, "asked": 9}},
        "day": "2026-03-02",
    }

    def merge(**changes: str) -> None:
        data = json.dumps({**placed, **changes}).encode()
        added = {"submissions/v1/fern/result.json": StoredFile(data)}
        files = {**repository.commits[repository.head].files, **added}
        repository.branches["main"] = repository.add("Submit", repository.head, files)

    def count(known: Sequence[ScoredRelease] = ()) -> list[int]:
        return [len(each.submitted) for each in read_scored(REPO, known=known, api=hub.api())]

    merge()
    known = read_scored(REPO, api=hub.api())
    assert [len(each.submitted) for each in known] == [0, 1]
    repository.tags["v1"] = repository.add("the same", first.oid, first.files)
    assert count(known) == [0, 1]
    repository.tags["v1"] = repository.add("other content", first.oid, second.files)
    assert count(known) == [0, 0]
    repository.tags["v1"] = first.oid
    for changes in ({"repo_id": "tofu/echo"}, {"tag": "v2"}, {"name": "moss"}):
        merge(**changes)
        assert count() == [0, 0]


def test_a_tampered_release_is_named_and_the_others_stay(
    hub: LocalHub, publish_scored: Publish
) -> None:
    """Bytes that the manifest does not know are no figures."""
    publish_scored("v1", [figure("a", 0.7)])
    publish_scored("v2", [figure("a", 0.9)])
    repository = hub.repositories[REPO]
    commit, other = (repository.commits[repository.tags[tag]] for tag in ("v2", "v1"))
    path = "results/test-00000-of-00001.parquet"
    files = {**commit.files, path: other.files[path]}
    repository.tags["v2"] = repository.add("tampered", commit.oid, files)
    second, first = read_scored(REPO, api=hub.api())
    assert (second.figures, first.problem) == ((), None)
    assert "results" in str(second.problem)


def test_a_repository_without_tags_or_that_is_not_there(hub: LocalHub) -> None:
    with pytest.raises(HubError, match=r"^there is no dataset 'pixel-lab/nothing', or"):
        read_scored("pixel-lab/nothing", api=hub.api())
    hub.api().create_repo(REPO, repo_type="dataset", private=True)
    assert read_scored(REPO, api=hub.api()) == ()
    with pytest.raises(HubError, match="may not see it"):
        read_scored(REPO, api=hub.api(STRANGER))


@pytest.mark.slow
def test_it_is_the_board_that_the_run_has(hub: LocalHub, tmp_path: Path) -> None:
    show_quickstart(TerminalProgress(Console(quiet=True)), tmp_path)
    release = build(shipped_config(), runs=tmp_path)
    publish(release, REPO, "v1", allow_rules=True, allow_unscreened=True, api=hub.api())
    (found,) = read_scored(REPO, api=hub.api())
    path = release.path.parent / "results.json"
    details = json.loads(path.read_text("utf-8"))["details"]["text_to_image"]["win_rate"]
    board = build_board([found], found, "text_to_image", "corrected")
    tiers = {name: at for at, names in enumerate(details["tiers"]["tiers"], 1) for name in names}

    rates = details["corrected"]["win_rate"]
    assert {line.system: line.value for line in board["lines"]} == rates
    assert {line.system: line.tier for line in board["lines"]} == tiers
    assert f"judged by {JUDGE};" in board["about"]
    assert build_board([found], found, "image_to_image", "corrected")["note"] == NO_INTERVALS


SPACE = "pixel-lab/echo-leaderboard"


def test_the_files_are_a_gradio_space_of_that_dataset() -> None:
    files = build_space_files(REPO)
    _, front, text = files["README.md"].decode().split("---\n", 2)
    card = yaml.safe_load(front)
    required = Requirement(files["requirements.txt"].decode().splitlines()[-1])

    assert (card["sdk"], card["app_file"], card["datasets"]) == ("gradio", "app.py", [REPO])
    assert f"https://huggingface.co/datasets/{REPO}" in text
    assert "ORGANISATION" not in text
    assert len(card["short_description"]) <= 60
    assert (required.name, required.specifier.contains(version("echo-hf"))) == ("echo-hf", True)
    assert json.loads(files["leaderboard.json"]) == {"dataset": REPO}
    compile(files["app.py"], "app.py", "exec")
    other = (Path(evaluate_module()).parent / "README.md").read_text("utf-8")
    assert yaml.safe_load(other.split("---\n", 2)[1])["sdk_version"] == card["sdk_version"]


def test_a_folder_is_written_and_brought_up_to_date(tmp_path: Path) -> None:
    folder = write_space(REPO, tmp_path / "new" / "space")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == build_space_files(REPO)
    write_space("pixel-lab/other", folder)
    assert json.loads((folder / "leaderboard.json").read_bytes()) == {"dataset": "pixel-lab/other"}

    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "app.py").write_text("print('mine')")
    with pytest.raises(HubError, match=r"holds 'app.py' and no leaderboard"):
        write_space(REPO, tmp_path / "mine")
    assert (tmp_path / "mine" / "app.py").read_text() == "print('mine')"
    with pytest.raises(HubError, match="is a file"):
        write_space(REPO, tmp_path / "mine" / "app.py")


def test_one_commit_makes_the_space(hub: LocalHub, publish_scored: Publish) -> None:
    publish_scored("v1")
    before = hub.repositories[REPO].head
    address = create_space(REPO, SPACE, private=True, api=hub.api())
    assert address == f"{hub.url}/spaces/{SPACE}"
    assert hub.repositories[space_key(SPACE)].private
    files = hub.files(space_key(SPACE))
    assert (
        files.items() - {(".gitattributes", files[".gitattributes"])}
        == build_space_files(REPO).items()
    )
    assert create_space(REPO, SPACE, api=hub.api()) == address
    assert hub.files(space_key(SPACE)) == files
    assert hub.repositories[REPO].head == before


def test_another_space_or_a_public_one_is_left_as_it_is(
    hub: LocalHub, publish_scored: Publish
) -> None:
    publish_scored("v1")
    api = hub.api()
    api.create_repo(SPACE, repo_type="space", space_sdk="static")
    with pytest.raises(HubError, match="is public, and --private is for new ones"):
        create_space(REPO, SPACE, private=True, api=api)
    head = hub.repositories[space_key(SPACE)].change("theirs", notes=b"mine")
    with pytest.raises(HubError, match=r"holds 'notes.txt' and no leaderboard"):
        create_space(REPO, SPACE, api=api)
    assert hub.repositories[space_key(SPACE)].head == head


def test_nothing_is_made_where_it_could_not_work(hub: LocalHub, publish_scored: Publish) -> None:
    with pytest.raises(HubError, match=r"there is no dataset 'pixel-lab/echo'"):
        create_space(REPO, SPACE, api=hub.api())
    publish_scored("v1")
    with pytest.raises(HubError, match="there is no token"):
        create_space(REPO, SPACE, api=hub.api(None))
    with pytest.raises(HubError, match="the Hub refuses this token"):
        create_space(REPO, SPACE, api=hub.api(STRANGER))
    assert space_key(SPACE) not in hub.repositories


def test_the_command_writes_a_folder_or_makes_the_space(
    hub: LocalHub, publish_scored: Publish, command: Command, tmp_path: Path
) -> None:
    publish_scored("v1")
    given = ("leaderboard", "--repo-id", REPO)
    assert command(*given, "--folder", tmp_path / "space").code == 0
    assert {path.name for path in (tmp_path / "space").iterdir()} == set(build_space_files(REPO))
    done = command(*given, "--space", SPACE, hub=hub)
    assert (done.code, done.output.strip()) == (0, f"leaderboard: {hub.url}/spaces/{SPACE}")
    assert "app.py" in hub.files(space_key(SPACE))
    nowhere = command(*given)
    assert (nowhere.code, nowhere.errors.count("\n")) == (2, 1)
    assert "give --space, --folder or --hub" in nowhere.errors


def test_carried_samples_put_all_tags_on_one_scale() -> None:
    """A system of the first tag alone is compared on the samples that the second carries."""
    columns = {**dict.fromkeys(RATINGS.columns), "rubric": "overall", "repeat": 0, "outcome": "ok"}
    columns |= {"judge": "qwen", "split": SPLIT}

    def rate(prefix: str, **systems: float) -> list[dict[str, Any]]:
        return [
            {**columns, "sample_id": f"{prefix}{at}", "system": system, "rating": rating + at % 3}
            for at in range(20)
            for system, rating in systems.items()
        ]

    old = pa.Table.from_pylist(rate("o", ash=3.0, gone=5.0), RATINGS.schema)
    new = pa.Table.from_pylist(rate("n", ash=3.0, fir=6.0), RATINGS.schema)
    carried = [{**row, "release": "t1"} for row in rate("o", ash=3.0, gone=5.0, fir=6.0)]
    tags = [
        ScoredRelease(
            "t2",
            "2",
            ratings=new,
            samples={SPLIT: frozenset()},
            carried=pa.Table.from_pylist(carried, CARRIED_RATINGS.schema),
        ),
        ScoredRelease("t1", "1", ratings=old, samples={SPLIT: frozenset()}),
    ]
    part = build_through_time(tags, SPLIT)
    assert isinstance(part, dict)
    scale = part["scale"]
    assert scale.at == "t2"
    assert scale.difference("fir", "gone")[:1] == (1.0,)
    assert scale.difference("fir", "gone").how == "common"
    page = words(render_leaderboard(tags, "t2", SPLIT))
    assert "Through time" in page
    assert "3 systems of 2 releases, as t2 judges them: 3 by common samples" in page
    alone = render_leaderboard(tags[1:], "t1", SPLIT)
    assert "Through time" not in alone
