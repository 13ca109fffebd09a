"""The board by choices: what is written, shown, compared and read back of a run and its release."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from echo_hf._infra.bootstrap import Unscored
from echo_hf.hub.leaderboard import ScoredRelease, render_leaderboard
from echo_hf.hub.run_tables import parse_definition, read_results
from echo_hf.judging.results import SavedResults
from echo_hf.judging.score import score
from echo_hf.report.report import report
from echo_hf.tables import COMPARISONS, HUMAN, OUTPUTS, RATINGS
from tests.judging import run_for_tests as small
from tests.judging.judges_for_tests import config_of, judge_of
from tests.judging.run_for_tests import Row, called, output, put, rating, root, stripes, write
from tests.scores.test_choices import draw_choices, fit_by_brute_force

SYSTEMS = ("ash", "birch", "cedar")
SPLIT = "text_to_image"
NAMES = [f"s{at:03}" for at in range(40)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run with choices of one judge between three systems in both orders, and its ratings."""
    small.run(tmp_path, {}, NAMES)
    config_of(tmp_path, board="pairwise")
    images = {name: put(tmp_path, stripes((at, 1, 1))) for at, name in enumerate(SYSTEMS)}
    write(
        tmp_path,
        OUTPUTS,
        [output(name, system, image=images[system]) for name in NAMES for system in SYSTEMS],
    )
    rows = [
        {
            **dict.fromkeys(COMPARISONS.columns),
            **row,
            "judge": "mira",
            "repeat": 0,
            "draw": 0,
            "outcome": "ok",
            "sample_digest": small.digest_of(row["sample_id"]),
            "output_a_sha256": images[row["system_a"]],
            "output_b_sha256": images[row["system_b"]],
        }
        for row in draw_choices(0, len(NAMES), SYSTEMS)
    ]
    write(tmp_path, COMPARISONS, rows)
    write(
        tmp_path,
        RATINGS,
        [
            rating(name, system, 4.0 + (at + number) % 3, output_sha256=images[system])
            for at, name in enumerate(NAMES)
            for number, system in enumerate(SYSTEMS)
        ],
    )
    return tmp_path


def read_choices(folder: Path) -> list[Row]:
    import pyarrow.parquet as pq

    rows: list[Row] = pq.read_table(root(folder) / "comparisons.parquet").to_pylist()
    return rows


def skip(folder: Path) -> None:
    """Mark the choices between ash and cedar on the last samples as not needed."""
    rows = read_choices(folder)
    for row in rows:
        if (row["system_a"], row["system_b"]) == ("ash", "cedar") and row["sample_id"] > "s029":
            row |= {"winner": None, "outcome": "not_needed"}
    write(folder, COMPARISONS, rows)


def rank(folder: Path, count: int) -> None:
    """Ada ranks ash above birch above cedar, with slips."""
    rng, rows = np.random.default_rng(0), list[Row]()
    for name in NAMES[:count]:
        worth = rng.normal([2, 1, 0], 1.5)
        for system, place in zip(SYSTEMS, 1 + (-worth).argsort().argsort(), strict=True):
            row = {"sample_id": name, "rater": "ada", "system": system, "rank": int(place)}
            rows.append({**row, "cannot_rank": False})
    write(folder, HUMAN, rows)


def scored(folder: Path) -> SavedResults:
    done = score(folder / "evaluation.yaml", runs=folder / "runs", n_boot=50)
    return SavedResults.read(done.path)


def test_results_have_the_strengths_of_the_largest_likelihood(folder: Path) -> None:
    results = scored(folder)
    strengths, place, _ = fit_by_brute_force(read_choices(folder))
    rows = {row.system: row for row in results.results if row.metric == "choice_strength"}
    assert {name: row.value for name, row in rows.items()} == pytest.approx(strengths, abs=1e-4)
    assert all(row.low < row.value < row.high for row in rows.values())
    assert {(row.split, row.n, row.coverage) for row in rows.values()} == {(SPLIT, 40, 1.0)}
    found = results.details[SPLIT].choices
    assert found is not None
    # Each system's row names the pairs that it is in, and no others.
    for name, row in rows.items():
        pairs = [*row.definition["decided"], *row.definition["undecided"]]
        of_system = [pair for pair in combinations(SYSTEMS, 2) if name in pair]
        assert sorted(tuple(sorted(pair)) for pair in pairs) == of_system
    assert found.strengths.position == pytest.approx(place, abs=1e-4)
    assert found.is_board
    pairs = len(found.decisions.decided), len(list(combinations(SYSTEMS, 2)))
    sentence = f"{pairs[0]} of {pairs[1]} pairs decided from 240 choices on 40 samples; the output "
    assert found.said.startswith(f"{sentence}shown first gains {place:+.2f} log odds (")


def test_after_asking_until_decided_there_are_tiers_and_no_interval(folder: Path) -> None:
    skip(folder)
    rows = [row for row in scored(folder).results if row.metric == "choice_strength"]
    assert {(row.low, row.high) for row in rows} == {(None, None)}
    assert {row.definition["asked"] for row in rows} == {"until decided"}
    assert {row.definition["missing"] for row in rows} == {"asked_unevenly"}
    assert all(row.definition["tier"] for row in rows)
    page = called(folder, "score").output
    assert "no intervals: judges were asked until pairs were decided" in " ".join(page.split())


def test_people_correct_strengths_or_the_number_of_ranks_missing_is_said(folder: Path) -> None:
    rank(folder, 12)
    found = scored(folder).details[SPLIT].choices
    assert found is not None
    assert found.missing is not None
    assert "ranked 12 of 40 compared samples: expected 20 or more" in found.missing
    rank(folder, 30)
    results = scored(folder)
    rows = [row for row in results.results if row.metric == "choice_strength_human_corrected"]
    assert [row.system for row in rows] == list(SYSTEMS)
    assert all(row.low < row.value < row.high for row in rows)
    assert {(row.n, row.definition["samples"]) for row in rows} == {(30, 40)}
    skip(folder)
    uneven = scored(folder).details[SPLIT].choices
    assert uneven is not None
    assert uneven.missing == Unscored.ASKED_UNEVENLY.meaning


def test_the_terminal_shows_choices_as_the_board_and_ratings_beside_it(folder: Path) -> None:
    done = called(folder, "score")
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert lines[0] == "strength by choices between two outputs, judged by mira; not certified"
    assert lines[1].split() == ["system", SPLIT, "95", "%", "tier", "by", "ratings"]
    results = scored(folder)
    rates, found = results.rates(SPLIT), results.details[SPLIT].choices
    assert rates is not None
    assert found is not None
    for line, system in zip(lines[2:5], found.order, strict=True):
        cells = line.split()
        assert cells[:2] == [system, f"{found.strengths.strength[system]:.2f}"]
        assert cells[-1] == f"{rates.win_rate[system]:.3f}"
    assert "win rate (corrected)" not in done.output
    config_of(folder, board="ratings")
    assert not [row for row in scored(folder).results if row.metric == "choice_strength"]
    assert called(folder, "score").output.startswith("win rate (corrected), judged by mira")


def test_the_report_has_a_section_of_choices_first_where_they_are_the_board(folder: Path) -> None:
    for board, first in (("pairwise", "choices"), ("ratings", "win-rates")):
        config_of(folder, board=board)
        results = scored(folder)
        page = report(folder / "evaluation.yaml", runs=folder / "runs").path.read_text("utf-8")
        sections = re.findall(r'<h2 id="([a-z-]+)-title"', page)
        assert sections[0] == first
        assert {"choices", "win-rates"} <= {*sections}
        found = results.details[SPLIT].choices
        assert found is not None
        assert found.said.split(";")[0] in page
        for better, worse in found.decisions.decided:
            assert f'<bdi>{better}</bdi></th><td class="name"><bdi>{worse}</bdi>' in page


def test_a_run_with_choices_alone_has_a_board(folder: Path) -> None:
    (root(folder) / "ratings.parquet").unlink()
    done = called(folder, "score")
    assert done.output.startswith("strength by choices between two outputs, judged by mira")
    assert "no win rates" not in done.output
    page = report(folder / "evaluation.yaml", runs=folder / "runs").path.read_text("utf-8")
    assert "judged by 1 judge." in " ".join(page.split())


def test_systems_are_compared_by_choices_where_they_are_the_board(folder: Path) -> None:
    """The share of points is counted by hand; its interval is near that of a normal mean."""
    outcomes: dict[str, float] = {}
    for row in read_choices(folder):
        if (row["system_a"], row["system_b"]) == ("ash", "cedar"):
            points = {"a": 0.25, "b": -0.25, "tie": 0.0}[row["winner"]]
            outcomes[row["sample_id"]] = outcomes.get(row["sample_id"], 0.0) + points
    mean = sum(outcomes.values()) / len(outcomes)
    done = called(folder, "compare", "ash", "cedar", "--json")
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["metric"] == "choice_strength"
    assert found["difference"] == pytest.approx(-mean)
    spread = (sum((value - mean) ** 2 for value in outcomes.values()) / 39 / 40) ** 0.5
    low, high = found["interval"]
    assert (high - low) / 2 == pytest.approx(norm.ppf(0.95) * spread, rel=0.1)
    opposite = json.loads(called(folder, "compare", "cedar", "ash", "--json").stdout)
    assert opposite["difference"] == pytest.approx(mean)
    skip(folder)
    refused = called(folder, "compare", "ash", "cedar")
    assert "until pairs were decided" in str(refused.exception)
    write(folder, COMPARISONS, [])
    assert "no judge chose" in str(called(folder, "compare", "ash", "cedar").exception)


def vote(folder: Path) -> None:
    """Add votes of people, as they are imported: cedar wins each of 40 against ash."""
    rows = read_choices(folder)
    of_pair = [row for row in rows if (row["system_a"], row["system_b"]) == ("ash", "cedar")]
    votes = [{**row, "judge": "people", "winner": "b"} for row in of_pair if row["order"] == "ab"]
    write(folder, COMPARISONS, [*rows, *votes])


def test_votes_of_people_are_no_judges_choices(folder: Path) -> None:
    """They are counted, and move no strength, no decision and no comparison of two systems."""
    before = scored(folder).details[SPLIT].choices
    gap = json.loads(called(folder, "compare", "ash", "cedar", "--json").stdout)
    vote(folder)
    results = scored(folder)
    after = results.details[SPLIT].choices
    assert before is not None
    assert after is not None
    assert after.strengths.strength == before.strengths.strength
    assert after.strengths.interval == before.strengths.interval
    assert after.decisions == before.decisions
    assert after.said == f"{before.said}; 40 votes of people are left out"
    definitions = [row.definition for row in results.results if row.metric == "choice_strength"]
    assert {row["votes_of_people_left_out"] for row in definitions} == {40}
    assert [row["judges"] for row in definitions] == [["mira"]] * 3
    voted = json.loads(called(folder, "compare", "ash", "cedar", "--json").stdout)
    assert (voted["difference"], voted["judges"]) == (gap["difference"], ["mira"])
    write(folder, COMPARISONS, [row for row in read_choices(folder) if row["judge"] == "people"])
    assert scored(folder).details[SPLIT].choices is None
    assert "no judge chose" in str(called(folder, "compare", "ash", "cedar").exception)


def test_a_judge_of_the_config_that_is_called_people_is_a_judge(folder: Path) -> None:
    vote(folder)
    config_of(folder, [judge_of("mira"), judge_of("people")], board="pairwise")
    found = scored(folder).details[SPLIT].choices
    assert found is not None
    assert found.strengths.definition["judges"] == ["mira", "people"]


def test_the_leaderboard_reads_the_board_back_from_released_figures(folder: Path) -> None:
    rank(folder, 30)
    results = scored(folder)
    figures: Any = [
        {**row, "definition": parse_definition(row)}
        for row in read_results(root(folder) / "results.json")
    ]
    release = ScoredRelease("v1", "c-1", figures=tuple(figures), target="Lumen")
    page = " ".join(re.sub(r"<[^>]*>", " ", render_leaderboard([release], "v1", SPLIT)).split())
    found, rates = results.details[SPLIT].choices, results.rates(SPLIT)
    assert found is not None
    assert rates is not None
    assert page.index("Strength by choices") < page.index("Win rate by ratings of one output")
    system = found.order[0]
    low, high = found.strengths.interval[system] or (0, 0)
    strength, people = found.strengths.strength[system], found.by_people
    assert people is not None
    row = f"{system} {strength:.3f} {low:.3f} to {high:.3f} 1 {people.strength[system]:.3f} "
    assert row in page
    assert f"Chosen by mira: {found.said}" in page.replace("&#39;", "'")


def test_what_a_release_says_of_choices_is_text() -> None:
    hostile = "<script>alert(1)</script>"
    definition = {"tier": hostile, "said": hostile, "judges": [hostile]}
    figure = {"metric": "choice_strength", "protocol": "corrected", "split": SPLIT}
    figure |= {"system": hostile, "value": float("nan"), "low": None, "high": None, "n": 3}
    figure |= {"coverage": None, "definition": {**definition, "failed_audit": [hostile]}}
    release = ScoredRelease("v1", "c-1", figures=(figure,), target="Lumen")
    assert "<script" not in render_leaderboard([release], "v1", SPLIT)
