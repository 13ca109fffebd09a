"""The data of the page of verdicts: what filters look at, and blocks that words cannot leave."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from echo_hf.report.report import write_report
from echo_hf.report.run_data import ReportSample
from echo_hf.report.verdicts import PAGE, SavedChoice, Verdicts, read_judgements
from echo_hf.tables import COMPARISONS, HUMAN
from tests.report.run_data_for_tests import (
    SYSTEMS,
    WORDS,
    Parsed,
    hostile_run,
    ratings_of,
    run_data,
)

FIRST, SECOND = SYSTEMS


def choice(order: Any, winner: Any, **values: Any) -> SavedChoice:
    known: dict[str, Any] = {"judge": "mira", "repeat": 0, "explanation": "", "outcome": "ok"}
    known |= {"system_a": FIRST, "system_b": SECOND, "order": order, "winner": winner}
    return SavedChoice(**{**known, **values})


def read_blocks(page: str) -> dict[str, Any]:
    """Read the JSON blocks of a page by their ids, as a browser does."""
    blocks = {}
    for start in page.split('<script type="application/json" id="')[1:]:
        name, rest = start.split('">', 1)
        blocks[name] = json.loads(rest.split("</script", 1)[0])
    return blocks


def page_of(folder: Path, verdicts: Verdicts) -> dict[str, Any]:
    sample = ReportSample("s1", "text_to_image", "draw a fox")
    ratings = {"s1": ratings_of({FIRST: [7, 9], SECOND: [None]})}
    rated = {name: tuple(rows) for name, rows in ratings.items()}
    data = run_data(folder, [sample], verdicts=verdicts)
    write_report(replace(data, ratings=rated), folder / "report")
    return read_blocks((folder / "report" / PAGE).read_text("utf-8"))


def test_the_index_has_mean_ratings_and_both_orders_of_choices(tmp_path: Path) -> None:
    verdicts = Verdicts(
        {"s1": (choice("ab", "a"), choice("ba", "b"), choice("ab", "tie", repeat=1))},
        {"s1": {(FIRST, SECOND): (2, 1, 0)}},
    )
    blocks = page_of(tmp_path, verdicts)
    (sample,) = blocks["index"]["samples"]
    assert sample["ratings"] == [[8, None]]
    assert sample["choices"] == [[0, 0, 1, "a", "b"], [0, 0, 1, "tie", None]]
    assert sample["people"] == [[0, 1, 2, 1, 0]]
    assert len(blocks["sample-0"]["choices"]) == 3


def test_people_are_counted_by_pair_and_nobody_is_named() -> None:
    empty = dict.fromkeys(HUMAN.columns)
    rows = [
        {**empty, "sample_id": "s1", "rater": rater, "system": system, **value}
        for rater, system, value in [
            ("ada", FIRST, {"score": 0.5}),
            ("ada", SECOND, {"score": 1.0}),
            ("ben", FIRST, {"rank": 2}),
            ("ben", SECOND, {"rank": 2}),
            ("cy", FIRST, {"cannot_rank": True}),
        ]
    ]
    people = read_judgements(None, pa.Table.from_pylist(rows, HUMAN.schema)).people
    assert people == {"s1": {(FIRST, SECOND): (0, 1, 1)}}


def test_choices_that_nobody_was_asked_for_are_left_out() -> None:
    empty = dict.fromkeys(COMPARISONS.columns)
    rows = [
        {**empty, **vars(choice("ab", winner)), "outcome": outcome, "sample_id": "s1", "draw": draw}
        for winner, outcome, draw in [("a", "ok", 0), (None, "not_needed", 0), ("a", "ok", 1)]
    ]
    choices = read_judgements(pa.Table.from_pylist(rows, COMPARISONS.schema), None).choices
    assert [row.winner for row in choices["s1"]] == ["a"]


def test_hostile_words_stay_in_their_blocks(tmp_path: Path) -> None:
    data = hostile_run(tmp_path)
    write_report(data, tmp_path / "report")
    text = (tmp_path / "report" / PAGE).read_text("utf-8")
    blocks = read_blocks(text)
    assert len(blocks) == 1 + len(WORDS)
    assert blocks["sample-0"]["prompt"] == WORDS[0]
    scripts = [attributes for tag, attributes in Parsed(text).tags if tag == "script"]
    assert len(scripts) == 2 + len(WORDS)
    assert [each for each in scripts if each.get("type") != "application/json"] == [{}]


@pytest.mark.parametrize("single_file", [True, False])
def test_a_single_file_has_no_second_page(tmp_path: Path, single_file: bool) -> None:
    sample = ReportSample("s1", "text_to_image", "draw a fox")
    written = write_report(run_data(tmp_path, [sample]), tmp_path / "r", single_file=single_file)
    assert (tmp_path / "r" / PAGE).exists() is not single_file
    assert (f'href="{PAGE}"' in written.path.read_text("utf-8")) is not single_file
