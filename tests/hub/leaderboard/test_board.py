"""A board and its page: every figure as published, every reason, and no word as markup."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.hub.leaderboard import (
    NO_INTERVALS,
    NO_RATINGS,
    NO_RESULTS,
    ScoredRelease,
    published_board,
    shown,
    splits_of,
)
from tests.hub.leaderboard.conftest import COUNT, DEFINITION, SPLIT, figure, ratings, words

SEEN = frozenset((f"s{at}", f"{at:064x}") for at in range(COUNT))
HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>'


def release(*figures: dict[str, Any], tag: str = "v1", **more: Any) -> ScoredRelease:
    """A release with these figures, and ratings by which a and b are alike and c is far below."""
    rated = ratings({"qwen": {"a": 8.0, "b": 8.0, "c": 2.0}}).data.table
    known = {"target": "Pixelbloom", "samples": {SPLIT: SEEN}, "ratings": rated}
    return ScoredRelease(tag, f"c-{tag}", figures=figures, **{**known, **more})


def board(found: ScoredRelease, split: str = SPLIT, protocol: Any = "corrected") -> dict[str, Any]:
    return published_board([found], found, split, protocol)


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
    assert splits_of(found) == ["other", SPLIT]
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
    held = release(samples={SPLIT: changed}).ratings_of(SPLIT)
    assert held is not None
    assert held.num_rows == 3 * (COUNT - 1)


def test_a_page_says_who_failed_and_whose_place_is_taken() -> None:
    one = {"model": "m", "developer": "P", "status": "substitute", "stands_for": "Old <Anole>"}
    told = {**DEFINITION, "failed_audit": {"qwen": ["swapped", "blank"]}}
    named = {**told, "answered_by": {"systems": {"a": one}, "judges": {"qwen": one}}}
    page = words(shown([release(figure("a", 0.5, definition=named))], "v1", SPLIT))
    assert "qwen failed its audit: swapped, blank" in page
    assert "a in place of Old &lt;Anole&gt;" in page
    assert "judged by qwen (in place of Old &lt;Anole&gt;)" in page
    hostile = {**DEFINITION, "answered_by": {"systems": {"a": 3}, "judges": ["qwen"]}}
    odd = release(figure("a", 0.5, definition=hostile))
    assert "in place of" not in words(shown([odd], "v1", SPLIT))


def test_a_board_shows_every_figure() -> None:
    rows = ratings({"qwen": {"a": 8.0, "b": 3.0}}).data.table
    found = release(figure("b", 0.25, coverage=0.9), figure("a", 0.75), ratings=rows)
    page = shown([found], "v1", SPLIT)
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
    said = words(shown([found], "v1", SPLIT))
    assert "color_shift ↓ value 95 % n coverage a 9.500 9.400 to 9.600 20 100 % b 3.000" in said
    assert said.count("face_identity ↑: needs packages") == 1
    other = figure("c", None, **{**face, "definition": {"missing": "Needs packages"}})
    assert "needs packages" not in words(shown([release(*missing, other)], "v1", SPLIT))


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
    assert expected in words(shown([release(figure("a", 0.5), tag="v2"), bare], *chosen))
    assert words(shown([], None, None)) == "no release to show"
    assert words(shown([], None, None, problem="cannot read <it>")).startswith("cannot read")


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
    page = shown([one], one.tag, text) + shown([one, release()], "v1", SPLIT, "corrected", one.tag)
    found = Markup(page + shown([], text, text, problem=text))
    ours = "style div h3 h4 p table thead tbody tr th td svg path circle"
    assert found.elements <= set(ours.split())
    assert not {name for name in found.attributes if name.startswith(("on", "href", "src"))}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 7.0, -3.0])
def test_numbers_beyond_the_axis_stay_on_it(value: float) -> None:
    """A published rate's interval may reach beyond 0 and 1; what is no number is a dash."""
    ends = {"low": value, "high": value}
    page = shown([release(figure("a", value, **ends), figure("b", 0.5, **ends))], "v1", SPLIT)
    places = [float(one) for one in re.findall(r'cx="([^"]*)"', page)]
    assert all(0 <= place <= 200 for place in places)
    assert "nan" not in page
    assert "inf" not in words(page)
