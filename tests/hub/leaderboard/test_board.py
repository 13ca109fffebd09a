"""A board and its page: every figure as published, every reason, and no word as markup."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.hub.leaderboard import (
    EVERY,
    NO_INTERVALS,
    NO_RATINGS,
    Board,
    judge_board,
    metrics_of,
    published_board,
    shown,
    splits_of,
)
from echo_hf.hub.scored import NO_RESULTS, OTHERS, ScoredRelease, verdict
from tests.hub.leaderboard.conftest import COUNT, DEFINITION, SPLIT, figure, ratings

SEEN = frozenset((f"s{at}", f"{at:064x}") for at in range(COUNT))
# gpt prefers c to b to a, qwen a and b alike to c: told apart by looking at one judge alone.
RATES = {"qwen": {"a": 8.0, "b": 8.0, "c": 2.0}, "gpt": {"a": 1.0, "b": 5.0, "c": 9.0}}
HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>'


def release(*figures: dict[str, Any], tag: str = "v1", **more: Any) -> ScoredRelease:
    """A release with these figures, and the ratings of two judges."""
    known = {"target": "Pixelbloom", "samples": {SPLIT: SEEN}, "ratings": ratings(RATES).data.table}
    return ScoredRelease(tag, f"c-{tag}", figures=figures, **{**known, **more})


def lines(board: Board) -> list[tuple[str, float | None, int | None]]:
    return [(line.system, line.value, line.tier) for line in board.lines]


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
    board = published_board(found, SPLIT, "corrected")
    assert lines(board) == [("b", 0.9, None), ("a", 0.2, None), ("c", None, None)]
    assert (board.lines[0].interval, board.judges, board.samples) == ((0.8, 1.0), ("qwen",), COUNT)
    assert splits_of(found) == ["other", SPLIT]
    assert lines(published_board(found, SPLIT, "published")) == [("a", 0.3, None)]
    assert lines(published_board(found, "other", "corrected")) == [("a", 0.4, None)]


def test_tiers_come_from_the_ratings() -> None:
    """One judge who rates a and b alike and c far below, on 20 samples: two tiers, by hand."""
    rows = ratings({"qwen": RATES["qwen"]}).data.table
    found = release(figure("a", 0.75), figure("b", 0.75), figure("c", 0.0), ratings=rows)
    board = published_board(found, SPLIT, "corrected")
    assert lines(board) == [("a", 0.75, 1), ("b", 0.75, 1), ("c", 0.0, 2)]
    # Without ratings or intervals there are none, and the board says which of them is missing.
    bare = published_board(release(figure("a", 0.7), ratings=None), SPLIT, "corrected")
    few = published_board(release(figure("a", 0.7, low=None, high=None)), SPLIT, "corrected")
    assert (bare.lines[0].tier, bare.note) == (None, NO_RATINGS)
    assert (few.lines[0].tier, few.note) == (None, NO_INTERVALS)


@pytest.mark.parametrize(
    ("judge", "expected"),
    [("gpt", {"c": 1.0, "b": 0.5, "a": 0.0}), ("qwen", {"a": 0.75, "b": 0.75, "c": 0.0})],
)
def test_a_judge_alone_has_a_board_of_its_own(judge: str, expected: dict[str, float]) -> None:
    """Wins and ties counted by hand; nobody takes it for a published figure."""
    definition = {**DEFINITION, "failed_audit": {"qwen": ["blank"], "gpt": ["swapped", "blank"]}}
    found = release(figure("a", 0.5, definition=definition))
    board = judge_board(found, SPLIT, "corrected", judge)
    assert {line.system: line.value for line in board.lines} == expected
    assert (board.judges, board.samples) == ((judge,), COUNT)
    flags = {"qwen": ("blank",), "gpt": ("swapped", "blank")}
    assert published_board(found, SPLIT, "corrected").flags == flags
    assert board.flags == {judge: flags[judge]}
    said = words(shown([found], "v1", SPLIT, judge=judge))
    assert "computed from the released ratings" in said
    assert f"{judge} failed its audit: {', '.join(flags[judge])}" in said
    assert "computed" not in words(shown([found], "v1", SPLIT, judge=EVERY))


def test_ratings_of_other_samples_do_not_count() -> None:
    changed = SEEN - {("s0", "0" * 64)} | {("s0", "f" * 64)}
    found = release(figure("a", 0.5), samples={SPLIT: changed})
    assert judge_board(found, SPLIT, "corrected", "gpt").samples == COUNT - 1
    for one, judge in ((replace(found, samples={}), "gpt"), (found, "nobody")):
        none = judge_board(one, SPLIT, "corrected", judge)
        assert (none.lines, none.note) == ((), f"the release holds no ratings by {judge!r} here")


def test_boards_stand_together_only_where_all_is_the_same() -> None:
    """Samples, judges and systems; a failed audit changes no figure."""
    a = release(figure("a", 0.5), figure("b", 0.5))
    flagged = dict(sorted({**DEFINITION, "failed_audit": {"qwen": ["blank"]}}.items()))
    judged = {**DEFINITION, "judges": ["gpt"]}
    others = {
        "same": release(figure("b", 0.4, definition=flagged), figure("a", 0.6, definition=flagged)),
        "fewer": replace(a, samples={SPLIT: frozenset(list(SEEN)[1:])}),
        "other": replace(a, samples={SPLIT: frozenset({("z", "0" * 64)})}),
        "judged": release(*(figure(name, 0.5, definition=judged) for name in "ab")),
        "alone": release(figure("a", 0.5)),
    }
    said = {name: verdict(a, b, SPLIT, "corrected") for name, b in others.items()}
    assert said == {
        "same": "comparable: the same samples under the same protocol",
        "fewer": "comparable on the samples that both have (19), once recomputed on those",
        "other": "not comparable: no sample is in both",
        "judged": OTHERS,
        "alone": OTHERS,
    }
    assert [name for name, one in said.items() if one.startswith("comparable: ")] == ["same"]


def named(model: str, status: str, place: str | None = None) -> dict[str, Any]:
    """A definition that says which model answers to the name of system a, and of its judge."""
    one = {"model": model, "developer": "Pip", "status": status, "stands_for": place}
    return {**DEFINITION, "answered_by": {"systems": {"a": one}, "judges": {"qwen": one}}}


def test_a_substitute_is_never_the_row_of_another_model() -> None:
    """One name with two models, or two states of one, has no common board; older files say none."""
    boards = {
        "old": DEFINITION,
        "here": named("m-2", "substitute", "Old"),
        "model": named("m-1", "substitute", "Old"),
        "status": named("m-2", "as_published", "Old"),
    }
    releases = {
        tag: release(figure("a", 0.5, definition=one), tag=tag) for tag, one in boards.items()
    }
    said = {
        tag: verdict(releases["here"], one, SPLIT, "corrected") for tag, one in releases.items()
    }
    assert said["here"].startswith("comparable: ")
    assert said["old"].startswith("comparable: ")
    apart = "not comparable: 'a' is m-2 (substitute) in here and"
    assert said["model"] == f"{apart} m-1 (substitute) in model"
    assert said["status"] == f"{apart} m-2 (as_published) in status"


@pytest.mark.parametrize("judge", [None, "qwen"])
def test_a_page_says_whose_place_is_taken(judge: str | None) -> None:
    found = release(figure("a", 0.5, definition=named("m", "substitute", "Old <Anole>")))
    page = words(shown([found], "v1", SPLIT, "corrected", judge))
    assert "a in place of Old &lt;Anole&gt;" in page
    assert "judged by qwen (in place of Old &lt;Anole&gt;)" in page
    hostile = {**DEFINITION, "answered_by": {"systems": {"a": 3}, "judges": ["qwen"]}}
    odd = release(figure("a", 0.5, definition=hostile))
    assert "in place of" not in words(shown([odd], "v1", SPLIT, "corrected", judge))


def words(page: str) -> str:
    body = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", body).split())


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
    metrics = metrics_of(found, SPLIT, "corrected")
    values = [(line.system, line.value) for line in metrics["color_shift"]]
    assert values == [("a", 9.5), ("b", 3.0)]
    assert [line.missing for line in metrics["face_identity"]] == ["needs packages"] * 2
    assert len(published_board(found, SPLIT, "corrected").lines) == 1
    said = words(shown([found], "v1", SPLIT))
    assert "color_shift ↓ value 95 % n coverage a 9.500 9.400 to 9.600 20 100 %" in said
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
        (("v2", SPLIT, "corrected", None, "v1"), f"nothing to compare with: {NO_RESULTS}"),
        (("v2", SPLIT, "corrected", None, "v9"), "nothing to compare with: no such release"),
    ],
)
def test_what_cannot_be_shown_says_why(chosen: tuple[Any, ...], expected: str) -> None:
    bare = ScoredRelease("v1", "c1", "Pixelbloom", problem=NO_RESULTS)
    assert expected in words(shown([release(figure("a", 0.5), tag="v2"), bare], *chosen))
    assert words(shown([], None, None)) == "no release to show"
    assert words(shown([], None, None, problem="cannot read <it>")).startswith("cannot read")


def test_two_boards_stand_together_only_where_they_compare() -> None:
    values = {"v1": 0.125, "v2": 0.625, "v3": 0.375}
    a, b, apart = (release(figure("a", value), tag=tag) for tag, value in values.items())
    apart = replace(apart, samples={SPLIT: frozenset({("z", "1")})})
    together = words(shown([a, b, apart], "v1", SPLIT, beside="v2"))
    alone = words(shown([a, b, apart], "v1", SPLIT, beside="v3"))
    assert "v1 and v2 comparable: the same samples" in together
    assert "0.125" in together
    assert "0.625" in together
    assert "0.375" not in alone
    assert "not comparable: no sample is in both" in alone


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
    page = shown([one], one.tag, text, judge=text) + shown(
        [one, release()], "v1", SPLIT, "corrected", None, text
    )
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
