"""A board shows what was published; tiers and single judges come from the released ratings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from echo_hf.hub.leaderboard import (
    NO_INTERVALS,
    NO_RATINGS,
    OTHERS,
    ScoredRelease,
    judge_board,
    may_stand_together,
    metrics_of,
    published_board,
    splits_of,
    verdict,
)
from tests.hub.leaderboard.scored_for_tests import COUNT, DEFINITION, SPLIT, figure, ratings

SEEN = frozenset((f"s{at}", f"{at:064x}") for at in range(COUNT))
# gpt prefers c to b to a, qwen a and b alike to c: told apart by looking at one judge alone.
RATES = {"qwen": {"a": 8.0, "b": 8.0, "c": 2.0}, "gpt": {"a": 1.0, "b": 5.0, "c": 9.0}}


def release(*figures: dict[str, Any], rated: bool = True, **more: Any) -> ScoredRelease:
    """A release with these figures."""
    rows: pa.Table = ratings(RATES).data.table
    known = {"target": "Pixelbloom", "samples": {SPLIT: SEEN}, "ratings": rows if rated else None}
    return ScoredRelease("v1", "c1", figures=figures, **{**known, **more})


def test_the_best_come_first_and_those_without_a_figure_last() -> None:
    """As published, whatever the order of the rows."""
    board = published_board(
        release(figure("a", 0.2), figure("c", None), figure("b", 0.9)), SPLIT, "corrected"
    )
    assert [(line.system, line.value) for line in board.lines] == [
        ("b", 0.9),
        ("a", 0.2),
        ("c", None),
    ]
    assert board.lines[0].interval == (0.8, 1.0)
    assert (board.judges, board.samples) == (("qwen",), COUNT)


def test_only_the_split_and_protocol_that_were_asked_for() -> None:
    """Others stay out of the board."""
    found = release(
        figure("a", 0.2), figure("a", 0.3, protocol="published"), figure("a", 0.4, split="other")
    )
    assert splits_of(found) == ["other", SPLIT]
    assert [line.value for line in published_board(found, SPLIT, "published").lines] == [0.3]
    assert [line.value for line in published_board(found, "other", "corrected").lines] == [0.4]


def test_tiers_come_from_the_ratings() -> None:
    """One judge who rates a and b alike and c far below, on 20 samples: two tiers, by hand."""
    rows = ratings({"qwen": RATES["qwen"]}).data.table
    found = release(figure("a", 0.75), figure("b", 0.75), figure("c", 0.0), ratings=rows)
    tiers = {line.system: line.tier for line in published_board(found, SPLIT, "corrected").lines}
    assert tiers == {"a": 1, "b": 1, "c": 2}


def test_without_ratings_or_intervals_there_are_no_tiers() -> None:
    """And the board says which of them is missing."""
    bare = published_board(release(figure("a", 0.7), rated=False), SPLIT, "corrected")
    few = published_board(release(figure("a", 0.7, low=None, high=None)), SPLIT, "corrected")
    assert (bare.lines[0].tier, bare.note) == (None, NO_RATINGS)
    assert (few.lines[0].tier, few.note) == (None, NO_INTERVALS)


@pytest.mark.parametrize(
    ("judge", "expected"),
    [("gpt", {"c": 1.0, "b": 0.5, "a": 0.0}), ("qwen", {"a": 0.75, "b": 0.75, "c": 0.0})],
)
def test_a_judge_alone_has_a_board_of_its_own(judge: str, expected: dict[str, float]) -> None:
    """Wins and ties counted by hand."""
    board = judge_board(release(figure("a", 0.5)), SPLIT, "corrected", judge)
    assert {line.system: line.value for line in board.lines} == expected
    assert (board.judges, board.samples) == ((judge,), COUNT)


def test_ratings_of_other_samples_do_not_count() -> None:
    """Of a sample that the split has with another digest, too."""
    changed = SEEN - {("s0", "0" * 64)} | {("s0", "f" * 64)}
    found = release(figure("a", 0.5), samples={SPLIT: changed})
    kept = judge_board(found, SPLIT, "corrected", "gpt")
    assert kept.samples == COUNT - 1
    none = judge_board(release(figure("a", 0.5), samples={}), SPLIT, "corrected", "gpt")
    assert (none.lines, none.note) == ((), "the release holds no ratings by 'gpt' here")


def test_a_judge_who_rated_nothing_is_said() -> None:
    """No lines, and one that says why."""
    board = judge_board(release(figure("a", 0.5)), SPLIT, "corrected", "nobody")
    assert (board.lines, board.note) == ((), "the release holds no ratings by 'nobody' here")


def test_failed_audits_are_told_of_the_judges_that_are_shown() -> None:
    """All of them on the common board, a judge's own on its own."""
    definition = {**DEFINITION, "failed_audit": {"qwen": ["blank"], "gpt": ["swapped", "blank"]}}
    found = release(figure("a", 0.5, definition=definition))
    everyone = published_board(found, SPLIT, "corrected")
    assert everyone.flags == {"qwen": ("blank",), "gpt": ("swapped", "blank")}
    assert judge_board(found, SPLIT, "corrected", "gpt").flags == {"gpt": ("swapped", "blank")}


def test_other_metrics_stand_beside_the_board() -> None:
    """With why there is none, and never among the win rates."""
    why = {"metric": "face_identity", "missing": "needs packages"}
    found = release(
        figure("a", 0.5),
        figure("b", 3.0, metric="color_shift"),
        figure("a", 9.0, metric="color_shift"),
        figure("a", None, metric="face_identity", definition=why),
    )
    metrics = metrics_of(found, SPLIT, "corrected")
    assert {
        name: [(line.system, line.value, line.missing) for line in lines]
        for name, lines in metrics.items()
    } == {
        "color_shift": [("a", 9.0, None), ("b", 3.0, None)],
        "face_identity": [("a", None, "needs packages")],
    }
    assert len(published_board(found, SPLIT, "corrected").lines) == 1


def test_boards_stand_together_only_where_all_is_the_same() -> None:
    """Samples, judges and systems; a failed audit changes no figure."""
    a = release(figure("a", 0.5), figure("b", 0.5))
    flagged = {**DEFINITION, "failed_audit": {"qwen": ["blank"]}}
    same = release(figure("b", 0.4, definition=flagged), figure("a", 0.6, definition=flagged))
    fewer = replace(a, samples={SPLIT: frozenset(list(SEEN)[1:])})
    other = replace(a, samples={SPLIT: frozenset({("z", "0" * 64)})})
    judged = release(
        *(figure(name, 0.5, definition={**DEFINITION, "judges": ["gpt"]}) for name in "ab")
    )
    said = {
        name: verdict(a, b, SPLIT, "corrected")
        for name, b in {
            "same": same,
            "fewer": fewer,
            "other": other,
            "judged": judged,
            "alone": release(figure("a", 0.5)),
        }.items()
    }
    assert said == {
        "same": "comparable: the same samples under the same protocol",
        "fewer": "comparable on the samples that both have (19), once recomputed on those",
        "other": "not comparable: no sample is in both",
        "judged": OTHERS,
        "alone": OTHERS,
    }
    assert [name for name, one in said.items() if may_stand_together(one)] == ["same"]
