"""How often systems succeed, in the results of a run: by hand, and where nobody can tell."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml
from rich.console import Console

from echo_hf.config.evaluation import SuccessOptions
from echo_hf.errors import ConfigError, RunError
from echo_hf.judging.board import show_board
from echo_hf.judging.reliability import describe_reliability, score_reliability
from echo_hf.judging.results import SavedResults
from echo_hf.judging.score import Scores, score
from echo_hf.scores import reliability
from echo_hf.tables import OUTPUTS, RATINGS
from tests.judging import run_for_tests as small
from tests.judging.run_for_tests import Row, output, page_of, put, rating, root, stripes, write

GRAY, BLUER = (stripes((100, 100, 100), (140, 140, 140)), stripes((100, 100, 130), (140, 140, 170)))
WORDS = tuple(f"w{number:02}" for number in range(12))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    small.run(tmp_path, {f"e{number}": [GRAY] for number in range(4)}, WORDS)
    return tmp_path


def drawn(draws: int = 3, systems: str = "ab") -> tuple[list[Row], list[Row]]:
    """Outputs and ratings: a succeeds with its first draw, b never does."""
    keys = [(name, system, draw) for name in WORDS for system in systems for draw in range(draws)]
    outputs = [output(name, system, draw=draw, cost_usd=0.25) for name, system, draw in keys]
    ratings = [
        rating(name, system, 9.0 if (system, draw) == ("a", 0) else 3.0, draw=draw)
        for name, system, draw in keys
    ]
    return outputs, ratings


def scored(folder: Path, **config: Any) -> Scores:
    path = folder / "evaluation.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text("utf-8")), **config}), "utf-8")
    return score(path, runs=folder / "runs", n_boot=0)


def values_of(scores: Scores, metric: str) -> dict[str, float | None]:
    return {row.system: row.value for row in scores.results if row.metric == metric}


def write_drawn(folder: Path, outputs: list[Row], ratings: list[Row]) -> None:
    image = put(folder, GRAY)
    rows = [{**row, "image": image if row["outcome"] == "ok" else None} for row in outputs]
    write(folder, OUTPUTS, rows)
    write(folder, RATINGS, ratings)


def test_results_hold_success_and_its_price_where_there_are_several_draws(folder: Path) -> None:
    """By hand: 1 of 3 outputs of a; 3 tries at 0.25 dollars each."""
    write_drawn(folder, *drawn())
    scores = scored(folder)
    assert values_of(scores, "success_rate") == {"a": pytest.approx(1 / 3), "b": 0}
    assert values_of(scores, "pass_at_2") == {"a": pytest.approx(2 / 3), "b": 0}
    assert values_of(scores, "pass_at_3") == {"a": 1, "b": 0}
    assert values_of(scores, "tries_per_success") == {"a": pytest.approx(3), "b": None}
    assert values_of(scores, "dollars_per_success") == {"a": pytest.approx(0.75), "b": None}
    (row,) = (
        row for row in scores.results if (row.metric, row.system) == ("dollars_per_success", "b")
    )
    assert isinstance(row.definition, dict)
    assert row.definition["direction"] == "lower is better"
    assert "fewer than 5 successes" in str(row.definition["missing"])
    saved = SavedResults.read(root(folder) / "results.json").details["text_to_image"].reliability
    assert saved is not None
    assert saved.result == reliability(pa.Table.from_pylist(drawn()[1], RATINGS.schema), drawn()[0])


def test_a_damaged_file_of_results_is_refused_in_a_line(folder: Path) -> None:
    write_drawn(folder, *drawn())
    scored(folder)
    path = root(folder) / "results.json"
    saved = json.loads(path.read_text("utf-8"))
    figures = saved["details"]["text_to_image"]["reliability"]["result"]
    for part, key in (("tries", "a"), ("definition", "k")):
        del figures[part][key]
        path.write_text(json.dumps(saved), "utf-8")
        with pytest.raises(RunError, match="expected the same systems in each figure"):
            SavedResults.read(path)
        figures[part][key] = [None, None, 0] if part == "tries" else 3


def test_one_output_of_each_sample_leaves_the_results_as_they_were(folder: Path) -> None:
    write_drawn(folder, *drawn(draws=1))
    scores = scored(folder)
    assert not {row.metric for row in scores.results} & {"success_rate", "pass_at_1"}
    assert "reliability" not in (root(folder) / "results.json").read_text("utf-8")


def test_the_threshold_and_the_rule_are_those_of_the_config(folder: Path) -> None:
    write_drawn(folder, *drawn())
    assert values_of(scored(folder, success={"threshold": 3}), "success_rate") == {"a": 1, "b": 1}
    by_checks = scored(folder, success={"rule": "checks"})
    assert values_of(by_checks, "success_rate") == {}
    assert "not known how often systems succeed: ratings: none is by a check" in shown(folder)
    for success, message in (
        ({"rule": "check"}, "success"),
        ({"rule": {"colour_shift": 5}}, "did you mean 'color_shift'"),
        ({"rule": {}}, "expected a metric and its bound"),
        ({"threshold": float("nan")}, "success.threshold"),
    ):
        with pytest.raises(ConfigError, match=message):
            scored(folder, success=success)


def test_a_metric_is_measured_on_every_draw_where_success_is_its_bound(folder: Path) -> None:
    """By hand: the second output of each sample is 30 levels bluer than its input."""
    names = [f"e{number}" for number in range(4)]
    images = [put(folder, GRAY), put(folder, BLUER)]
    rows = [
        output(name, "a", [GRAY], image=image, draw=draw)
        for name in names
        for draw, image in enumerate(images)
    ]
    write(folder, OUTPUTS, rows)
    for bound, share in ((5, 0.5), (31, 1.0)):
        scores = scored(folder, success={"rule": {"color_shift": bound}})
        assert values_of(scores, "success_rate") == {"a": share}


def test_checks_count_that_were_kept_where_they_fit() -> None:
    """The yes of a check that fell, or that does not fit the sample, is no failure."""
    checks = {"tint@1": 1.0, "text@1": 1.0, "fell@1": 1.0}
    rows = [
        rating(name, "a", yes if name == "w00" or check == "fell@1" else 0.0, rubric=check)
        for name in ("w00", "w01")
        for check, yes in checks.items()
    ]
    table = pa.Table.from_pylist(rows, RATINGS.schema)
    options = SuccessOptions(rule="checks")
    shares = {}
    for misfit in (frozenset[str](), frozenset({"w00"})):
        kept = {"tint@1": misfit, "text@1": misfit}
        found = score_reliability(None, table, options, kept, ()).result
        assert found is not None
        shares[len(misfit)] = found.success["a"]
    assert shares == {0: (0.5, None, 2), 1: (1.0, None, 1)}


def shown(folder: Path) -> str:
    page = io.StringIO()
    show_board(Console(file=page, width=100), root(folder) / "results.json")
    return page.getvalue()


def test_a_terminal_shows_success_its_price_and_what_outputs_became(folder: Path) -> None:
    outputs, ratings = drawn()
    outputs[-1] |= {"outcome": "failed", "stage": "request", "cost_usd": None}
    outputs[-2] |= {"outcome": "refused"}
    write_drawn(folder, outputs, ratings[:-2])
    scored(folder)
    board = shown(folder)
    assert "share of outputs with a rating of 7 or more, and dollars for one" in board
    rows = [" ".join(line.split()) for line in board.splitlines()]
    assert any(row.startswith("a 33 % (") and row.endswith(" 100 % 3 0.75") for row in rows)
    assert any(row.startswith("b 0 % (0-") and row.endswith("0 % - -") for row in rows)
    assert max(map(len, board.splitlines())) <= 100
    details = page_of(folder)
    assert "a: 12 of 36 outputs succeed" in details
    assert "b: 0 of 35 outputs succeed" in details
    assert "1 refused among them; 1 failed beside them, which are no tries" in details


def test_tries_are_sorted_by_number_and_systems_by_success() -> None:
    """JSON has names alone, and a file's keys may have any order."""
    rows = [
        rating("w00", system, 9.0 if draw < good else 3.0, draw=draw)
        for system, good in (("a", 2), ("b", 6))
        for draw in range(12)
    ]
    found = reliability(pa.Table.from_pylist(rows, RATINGS.schema))
    read_back = type(found)(**{**vars(found), "success": dict(sorted(found.success.items()))})
    lines = list(describe_reliability(read_back))
    assert [line.partition(":")[0] for line in lines[:2]] == ["b", "a"]
    assert "12 of a sample leave 0 % of the samples unsolved" in lines[0]


def test_a_system_that_is_rated_and_has_no_output_is_described() -> None:
    row = {"judge": "j", "rating": 8}
    ratings = [
        {**row, "sample_id": f"s{at}", "system": system, "draw": draw}
        for at in range(3)
        for system in "ab"
        for draw in (0, 1)
    ]
    outputs = [
        {"sample_id": one["sample_id"], "system": "a", "draw": one["draw"], "outcome": "ok"}
        for one in ratings
        if one["system"] == "a"
    ]
    lines = [*describe_reliability(reliability(ratings, outputs))]
    assert any(line.startswith("b: 0 of 0 outputs succeed") for line in lines)
