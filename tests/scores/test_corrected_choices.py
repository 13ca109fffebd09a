"""Strengths by people from a part that they ranked, against what they say of all prompts."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from echo_hf._infra.bootstrap import Unscored
from echo_hf.errors import ScoreError
from echo_hf.scores import human_corrected_strengths
from tests.scores.ratings_for_tests import Row, real_people, real_rows


@pytest.fixture(scope="module")
def shared(test_data: Path) -> tuple[Any, Any]:
    """Points of each prompt and pair by one judge, and by each of three people: 1, 0 or -1."""
    names, people = (
        sorted({row["sample_id"] for row in real_rows(test_data)}),
        real_people(test_data),
    )
    systems, raters = (sorted({row[key] for row in people}) for key in ("system", "rater"))
    judged, human = np.full((179, 8), np.nan), np.full((3, 179, 8), np.nan)
    for row in real_rows(test_data):
        if row["judge"] == "gpt4o" and row["rating"] is not None:
            judged[names.index(row["sample_id"]), systems.index(row["system"])] = row["rating"]
    for row in people:
        at = names.index(row["sample_id"]), systems.index(row["system"])
        human[(raters.index(row["rater"]), *at)] = -row["rank"]
    first, second = np.triu_indices(8, 1)
    ways = (np.sign(scores[..., first] - scores[..., second]) for scores in (judged, human))
    judge_signs, people_signs = ways
    return judge_signs, people_signs


def make_rows(signs: Any, people: Any, prompts: Any, ranked: Any) -> tuple[list[Row], list[Row]]:
    """Return choices in both orders on drawn prompts, and ranks on those that people ranked."""
    names, rows, human = [f"{chr(97 + at)}" for at in range(8)], [], []
    for at, prompt in enumerate(prompts):
        for number, (a, b) in enumerate(combinations(names, 2)):
            if not np.isnan(signs[prompt, number]):
                winner = {1: "a", 0: "tie", -1: "b"}[int(signs[prompt, number])]
                row = {"sample_id": f"{at}", "system_a": a, "system_b": b, "judge": "j"}
                rows += [{**row, "order": order, "winner": winner} for order in ("ab", "ba")]
    first, second = np.triu_indices(8, 1)
    for at in ranked:
        for rater in range(3):
            of_pair = people[rater, prompts[at]]
            for system, name in enumerate(names):
                # How many are above it: the sign of each pair that it is in.
                above = (of_pair[second == system] == 1).sum() + (
                    of_pair[first == system] == -1
                ).sum()
                row = {"sample_id": f"{at}", "rater": f"r{rater}", "system": name}
                human.append({**row, "rank": int(above) + 1})
    return rows, human


def test_people_on_a_part_correct_judges_on_all(shared: tuple[Any, Any]) -> None:
    """Intervals cover what people say of all prompts, with errors below those without judges.

    The note's own simulation, of another model, gives errors of .89 of those of people alone.
    """
    signs, people = shared
    rows, human = make_rows(signs, people, range(179), range(179))
    truth = human_corrected_strengths(rows, human).people_alone
    covered, errors = [], {"strength": [], "people_alone": []}
    for seed in range(25):
        rng = np.random.default_rng(seed)
        rows, human = make_rows(signs, people, rng.integers(0, 179, 179), range(30))
        found = human_corrected_strengths(rows, human)
        assert (found.ranked, found.samples) == (30, 179)
        for name, value in truth.items():
            low, high = found.interval[name]
            covered.append(low <= value <= high)
            for key, gaps in errors.items():
                gaps.append(getattr(found, key)[name] - value)
    assert 0.88 <= np.mean(covered) <= 0.99
    corrected, alone = (np.sqrt(np.mean(np.square(gaps))) for gaps in errors.values())
    assert corrected < 0.97 * alone


def test_too_few_ranked_prompts_and_uneven_choices_correct_nothing(shared: tuple[Any, Any]) -> None:
    rows, human = make_rows(*shared, range(40), range(20))
    with pytest.raises(ScoreError, match=r"ranked 19 of 40 .* rank 1 more"):
        human_corrected_strengths(rows, [row for row in human if row["sample_id"] != "0"])
    rows[0] |= {"winner": None, "outcome": "not_needed"}
    found = human_corrected_strengths([{"outcome": "ok", **row} for row in rows], human)
    assert set(found.strength.values()) == {None}
    assert set(found.reasons.values()) == {Unscored.ASKED_UNEVENLY}


def test_judges_that_say_what_people_say_have_the_whole_weight(shared: tuple[Any, Any]) -> None:
    _, people = shared
    vote = np.sign(people.sum(axis=0))
    rows, human = make_rows(vote, np.array([vote] * 3), range(179), range(60))
    found = human_corrected_strengths(rows, human)
    assert found.weight == pytest.approx(1, abs=0.02)
    assert found.strength == pytest.approx(found.judges_alone, abs=0.05)
