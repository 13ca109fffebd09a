"""Asking pairs that are not decided saves choices, and reaches the tiers of people's scores."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from echo_hf.scores import choice_decisions, choice_strengths
from echo_hf.scores.choices import choice_tiers
from tests.stages_for_tests import ROOT

Row = dict[str, Any]
NAMES = {1.0: "a", 0.0: "tie", -1.0: "b"}


@pytest.fixture
def bench() -> dict[str, Callable[..., Any]]:
    return runpy.run_path(str(ROOT / "scripts" / "bench_choices.py"), run_name="bench_choices")


def test_undecided_pairs_alone_save_a_fifth_to_two_fifths_of_the_choices(
    bench: dict[str, Callable[..., Any]], test_data: Path
) -> None:
    """By the time all samples are asked evenly; the note has 18 to 42 %, by another rule."""
    found = bench["race"](bench["read_scores"](test_data / "ratings"), 10, 179, 0.1, 10)
    assert 0.18 <= found.saved[-1] <= 0.42
    assert found.wrong == 0


def make_rows(signs: Any, stops: Any) -> list[Row]:
    """Return each person's choice in both orders, on the samples before a pair's stop."""
    rows = []
    people, pairs, samples = signs.shape
    names = list(combinations("abcdefgh", 2))
    for person, pair, sample in np.ndindex(people, pairs, samples):
        a, b = names[pair]
        row: Row = {"sample_id": f"{sample:03}", "system_a": a, "system_b": b, "judge": f"{person}"}
        is_needed = sample < stops[pair]
        row["winner"] = NAMES[signs[person, pair, sample]] if is_needed else None
        row["outcome"] = "ok" if is_needed else "not_needed"
        rows += [{**row, "order": order} for order in ("ab", "ba")]
    return rows


def test_the_tiers_of_peoples_scores_are_reached_with_fewer_choices(
    bench: dict[str, Callable[..., Any]], test_data: Path
) -> None:
    scores = bench["read_scores"](test_data / "ratings")
    first, second = np.triu_indices(8, 1)
    order = np.random.default_rng(0).permutation(179)
    signs = np.nan_to_num(np.sign(scores[:, first] - scores[:, second]))[..., order]
    stops = bench["find_stops"](np.stack([signs, signs], axis=1), 10)
    ways = [make_rows(signs, np.full(28, 179)), make_rows(signs, stops)]
    boards = [(choice_strengths(rows), choice_decisions(rows)) for rows in ways]
    (_, even), (_, adaptive) = boards
    assert set(even.decided) <= set(adaptive.decided)
    assert choice_tiers(*boards[0]) == choice_tiers(*boards[1])
    assert 0.18 <= adaptive.not_needed / adaptive.ratings <= 0.42
