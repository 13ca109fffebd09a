"""All figures of a run: hand-counted win rates, hand-made colors, and what does not count."""

from __future__ import annotations

import io
import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from rich.console import Console
from typer.testing import CliRunner

from echo_hf.cli import app
from echo_hf.errors import RunError, ScoreError
from echo_hf.hub.run_tables import Result, read_results
from echo_hf.judging.board import show_scores
from echo_hf.judging.run_tables import RunTables, read_run
from echo_hf.judging.score import Scores, score
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import IgnoredRating, LeftOut
from echo_hf.systems.benchmark import Benchmark
from echo_hf.tables import APPLICABILITY, OUTPUTS, RATINGS
from tests.judging.run_for_tests import fits, output, put, rating, root, run, stripes, write

NEAR, FAR = (
    stripes((100, 100, 100), (140, 140, 140)),
    stripes((60, 60, 60), (180, 180, 180)),
)  # whose mean color is 120, 120, 120
BLUER = {
    NEAR: stripes((100, 100, 130), (140, 140, 170)),
    FAR: stripes((60, 60, 90), (180, 180, 210)),
}
EDITS = {"near": NEAR, "far": FAR}
WORDS = ("boat", "fox", "tree", "owl")
RATED = (("a", 9), ("b", 1))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run(tmp_path, {name: [one] for name, one in EDITS.items()}, WORDS)
    return tmp_path


def drawn(folder: Path) -> list[dict[str, Any]]:
    """What a copier and a system that adds 30 levels of blue made of the edits."""
    rows = []
    for name, given in EDITS.items():
        rows.append(output(name, "copy", [given], image=put(folder, given)))
        rows.append(output(name, "bluer", [given], image=put(folder, BLUER[given])))
    return rows


def scored(folder: Path, **options: Any) -> Scores:
    return score(folder / "evaluation.yaml", runs=folder / "runs", **{"n_boot": 0, **options})


def figures(scores: Scores) -> dict[tuple[str, str, str], float | None]:
    return {
        (row.metric, row.split, row.system): row.value
        for row in scores.results
        if row.protocol == scores.protocol
    }


def of_metric(scores: Scores, metric: str) -> dict[str, Result]:
    return {row.system: row for row in scores.results if row.metric == metric}


@pytest.mark.parametrize(
    ("flags", "value", "n", "coverage", "said"),
    [
        ({"near": True, "far": False}, 30, 1, 1, "said to fit"),
        ({"near": True, "far": None}, 30, 1, 0.5, "not_asked"),
        ({"near": True}, 30, 1, 0.5, "not_asked"),
        ({"near": False, "far": False}, None, 0, None, "fits no sample"),
    ],
)
def test_a_metric_is_for_the_samples_that_it_fits(
    folder: Path,
    flags: dict[str, bool | None],
    value: float | None,
    n: int,
    coverage: Any,
    said: str,
) -> None:
    rows = drawn(folder)
    rows[-1]["image"] = put(folder, stripes((0, 200, 0), (0, 20, 0)))  # bluer's of the far edit
    write(folder, OUTPUTS, rows)
    write(folder, APPLICABILITY, [fits(name, color_shift=flag) for name, flag in flags.items()])
    row = of_metric(scored(folder), "color_shift")["bluer"]
    assert (row.n, row.coverage) == (n, coverage)
    assert row.value == (value if value is None else pytest.approx(value))
    assert said in str(row.definition)


def test_what_a_system_did_not_draw_or_keep_is_not_covered(folder: Path) -> None:
    rows = drawn(folder)
    rows[0] |= {"outcome": "failed", "image": None}
    changed, images = rows[3]["image"], root(folder) / "pictures"
    (images / changed[:2] / changed).write_bytes(stripes((0, 0, 0), (9, 9, 9)))
    write(folder, OUTPUTS, [row for row in rows if row != rows[2]])
    found = of_metric(scored(folder), "color_shift")
    expected = {"copy": (0, 0), "bluer": (1, 0.5)}
    assert {name: (row.n, row.coverage) for name, row in found.items()} == expected


def test_the_protocols_stand_side_by_side(folder: Path) -> None:
    """The first judge alone decides as published, the majority as corrected."""
    said = {"ann": (1, 9), "ben": (9, 1), "cy": (9, 1)}
    rows = [
        rating(name, system, values[at], judge=judge)
        for name in WORDS
        for judge, values in said.items()
        for at, system in enumerate(("a", "b"))
    ]
    write(folder, RATINGS, rows)
    rates = {
        (row.protocol, row.system): row.value
        for row in scored(folder).results
        if row.metric == "win_rate"
    }
    assert rates == {
        ("published", "a"): 0,
        ("published", "b"): 1,
        ("corrected", "a"): 1,
        ("corrected", "b"): 0,
    }


def test_colors_are_compared_with_the_inputs(folder: Path) -> None:
    write(folder, OUTPUTS, drawn(folder))
    scores = scored(folder)
    found = figures(scores)
    assert found["color_shift", "image_to_image", "copy"] == 0
    assert found["color_shift", "image_to_image", "bluer"] == pytest.approx(30)
    page = io.StringIO()
    show_scores(Console(file=page, width=160), scores.path)
    assert re.search(r"bluer +30\.000 .* \d+\.\d bluer *$", page.getvalue(), re.MULTILINE)


def test_a_system_that_drew_nothing_stays_on_the_board(folder: Path) -> None:
    """One that the config names, or that was rated, has coverage 0 where it has no output."""
    config = yaml.safe_load((folder / "evaluation.yaml").read_text("utf-8"))
    idle = {"name": "idle", "adapter": "files", "developer": "Northlight", "status": "current"}
    config["systems"] = [idle]
    (folder / "evaluation.yaml").write_text(yaml.safe_dump(config), "utf-8")
    write(folder, OUTPUTS, drawn(folder))
    found = of_metric(scored(folder), "color_shift")
    assert {name: row.coverage for name, row in found.items()} == {"bluer": 1, "copy": 1, "idle": 0}


def test_a_metric_without_its_packages_says_what_to_install(folder: Path) -> None:
    """It has no value and coverage 0, for every system; the others are measured."""
    if find_spec("torch"):
        pytest.skip("torch is here: nothing is missing")
    write(folder, OUTPUTS, drawn(folder))
    told = CliRunner().invoke(
        app, ["score", str(folder / "evaluation.yaml"), "--runs", str(folder / "runs")]
    )
    assert told.exit_code == 0, told.output
    (line,) = [one for one in told.output.splitlines() if one.startswith("structure_distance ↓")]
    assert "0 of 2" in line
    assert "echo-hf[metrics]" in told.output
    assert "30.000" in told.output  # of the color shift, whose packages are always there


def test_text_that_nobody_rated_has_coverage_0(folder: Path) -> None:
    write(folder, RATINGS, [rating(name, s, 5) for name in WORDS for s in "ab"])
    rows = [row for row in scored(folder).results if row.metric == "text_rendering"]
    assert [(row.system, row.value, row.coverage) for row in rows] == [
        ("a", None, 0),
        ("b", None, 0),
    ]
    assert "text_rendering" in str(rows[0].definition)


def test_text_is_a_tenth_of_its_ratings(folder: Path) -> None:
    rows = [rating(name, s, 5) for name in WORDS for s in "ab"]
    rows += [rating("boat", "a", 8, rubric="text_rendering")]
    rows += [rating("fox", "a", 2, rubric="text_rendering")]
    write(folder, RATINGS, rows)
    assert figures(scored(folder))["text_rendering", "text_to_image", "a"] == pytest.approx(0.5)
    write(
        folder,
        APPLICABILITY,
        [fits("boat", text_rendering=True), fits("fox", text_rendering=False)],
    )
    rows = {row.system: row for row in scored(folder).results if row.metric == "text_rendering"}
    assert (rows["a"].value, rows["a"].coverage) == (pytest.approx(0.8), pytest.approx(1 / 3))
    assert (rows["b"].value, rows["b"].coverage) == (None, 0)  # rated on none of them


def test_a_judge_that_failed_its_audit_is_flagged_where_it_rated_text(folder: Path) -> None:
    words = [rating(name, s, 5) for name in WORDS for s in "ab"]
    text = [rating("boat", s, 8, judge="otto", rubric="text_rendering") for s in "ab"]
    write(folder, RATINGS, [*words, *text])
    failed = {"mira": {"failed": ["blank"]}, "otto": {"failed": ["shuffled"]}}
    (root(folder) / "audit.json").write_text(json.dumps({"judges": failed}))

    scores = scored(folder)
    rows = [row for row in scores.results if row.metric == "text_rendering"]
    assert [row.definition["failed_audit"] for row in rows] == [{"otto": ["shuffled"]}] * 2
    written = json.loads(scores.path.read_text())
    assert written["failed_audit"] == {"mira": ["blank"], "otto": ["shuffled"]}
    page = io.StringIO()
    show_scores(Console(file=page, width=160), scores.path)
    line = next(one for one in page.getvalue().splitlines() if "text_rendering" in one)
    assert line.split()[2:] == ["otto", "(failed", "its", "audit:", "shuffled)"]


def test_rows_about_other_samples_are_counted_and_do_not_count(folder: Path) -> None:
    good = [rating(name, s, {"a": 9, "b": 1}[s]) for name in WORDS for s in "ab"]
    write(
        folder,
        OUTPUTS,
        [output(name, s, image="f" * 64) for name in WORDS for s in "ab"],
    )
    gone = [rating("gone", s, {"a": 1, "b": 9}[s]) for s in "ab"]
    older = [
        rating("boat", s, {"a": 1, "b": 9}[s], sample_digest="0" * 64, judge="old") for s in "ab"
    ]
    redrawn = [
        rating("fox", s, {"a": 1, "b": 9}[s], output_sha256="e" * 64, judge="old") for s in "ab"
    ]
    write(folder, RATINGS, [*good, *gone, *older, *redrawn])
    scores = scored(folder)
    assert figures(scores)["win_rate", "text_to_image", "a"] == 1
    assert scores.left_out == {
        "ratings": {
            LeftOut.NOT_RELEASED: 2,
            LeftOut.OTHER_SAMPLE: 2,
            LeftOut.OTHER_OUTPUT: 2,
        }
    }


def test_the_file_is_what_a_release_reads(folder: Path) -> None:
    """The written figures, read as a release reads them, are those that were returned."""
    write(folder, OUTPUTS, drawn(folder))
    scores = scored(folder, n_boot=50)
    rows = read_results(scores.path)
    key = ["metric", "protocol", "split", "system"]
    returned = {tuple(getattr(row, name) for name in key): row.value for row in scores.results}
    assert {tuple(row[name] for name in key): row["value"] for row in rows} == returned


def test_nothing_in_the_file_says_where_it_was_made(folder: Path) -> None:
    write(folder, OUTPUTS, drawn(folder))
    text = scored(folder).path.read_text("utf-8")
    assert str(folder) not in text
    manifest = json.loads((folder / "benchmark" / "manifest.json").read_text("utf-8"))
    assert json.loads(text)["benchmark"] == {
        "name": "lumen",
        "on_hub": None,
        "digests": {name: entry["digest"] for name, entry in manifest["configs"].items()},
    }


def test_the_same_run_gives_the_same_file(folder: Path) -> None:
    rows = drawn(folder)
    write(folder, OUTPUTS, rows)
    first = scored(folder, n_boot=50).path.read_bytes()
    write(folder, OUTPUTS, rows[::-1])
    assert scored(folder, n_boot=50).path.read_bytes() == first


def test_a_table_without_rows_is_scored_as_one(folder: Path) -> None:
    write(folder, OUTPUTS, [])
    write(folder, RATINGS, [])
    assert figures(scored(folder)) == {}


def test_ratings_by_an_unknown_rubric_are_counted(folder: Path) -> None:
    write(folder, RATINGS, [rating(name, s, 5, rubric="overal") for name in WORDS for s in "ab"])
    scores = scored(folder)
    assert scores.left_out == {"ratings": {IgnoredRating.OTHER_RUBRIC: 8}}
    assert all(value is None for value in figures(scores).values())


def test_a_table_of_ones_own_needs_four_columns(folder: Path) -> None:
    rows = [
        {"sample_id": n, "system": s, "judge": "j", "rating": r} for n in WORDS for s, r in RATED
    ]
    pq.write_table(pa.Table.from_pylist(rows), root(folder) / "ratings.parquet")
    assert figures(scored(folder))["win_rate", "text_to_image", "a"] == 1


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"sample_id": ["boat"], "judge": ["j"]}, "has no column 'system', 'rating'"),
        (
            {"sample_id": ["boat"], "system": ["a"], "judge": ["j"], "rating": ["9"]},
            "column 'rating' is of type 'string', expected 'double'",
        ),
    ],
)
def test_what_is_wrong_with_a_table_is_named_at_once(
    folder: Path, columns: dict[str, list[str]], said: str
) -> None:
    pq.write_table(pa.table(columns), root(folder) / "ratings.parquet")
    with pytest.raises(RunError, match=said) as error:
        scored(folder)
    assert "/reference/tables/" in str(error.value)


def test_names_are_printed_without_what_moves_a_terminal(folder: Path) -> None:
    judge = "[red]\x1b[31m\u202e mira"
    write(folder, RATINGS, [rating(name, s, 5, judge=judge) for name in WORDS for s in "ab"])
    told = CliRunner().invoke(
        app, ["score", str(folder / "evaluation.yaml"), "--runs", str(folder / "runs")]
    )
    assert "judged by [red][31m mira" in told.output
    assert "\x1b[31m" not in told.output


def test_a_file_that_is_no_table_is_one_line(folder: Path) -> None:
    (root(folder) / "ratings.parquet").write_bytes(b"no table")
    with pytest.raises(RunError, match=r"ratings\.parquet' is not a table of ratings"):
        scored(folder)
    assert not (root(folder) / "results.json").exists()


def test_an_unknown_protocol_has_the_nearest_name(folder: Path) -> None:
    with pytest.raises(ScoreError, match="'publish'; did you mean 'published'"):
        scored(folder, protocol="publish")


def read(folder: Path) -> RunTables:
    return read_run(Benchmark(str(folder / "benchmark")), RunFolder(root(folder)))


def test_a_rating_of_no_image_does_not_count(folder: Path) -> None:
    outputs = [
        output("boat", "a", image="f" * 64),
        output("fox", "a", outcome="refused"),
        output("tree", "b", image="e" * 64),
    ]
    write(folder, OUTPUTS, outputs)
    write(folder, RATINGS, [rating(name, "a", 9) for name in ("boat", "fox", "tree")])
    tables = read(folder)
    assert tables.ratings is not None
    assert tables.ratings["sample_id"].to_pylist() == ["boat"]
    assert tables.left_out == {"ratings": {IgnoredRating.NO_IMAGE: 1, IgnoredRating.NO_OUTPUT: 1}}


def test_ratings_alone_are_taken_at_their_word(folder: Path) -> None:
    write(folder, RATINGS, [rating("boat", "a", 9)])
    tables = read(folder)
    assert tables.ratings is not None
    assert tables.ratings.num_rows == 1
    assert tables.left_out == {}


def test_two_outputs_for_one_sample_are_refused(folder: Path) -> None:
    write(folder, OUTPUTS, [output("boat", "a", image=digit * 64) for digit in "ef"])
    with pytest.raises(ScoreError, match="system 'a' has 2 outputs for sample 'boat'"):
        read(folder)


def test_a_run_without_tables_is_one_line(folder: Path) -> None:
    with pytest.raises(RunError, match=r"nothing to score in .*echo-hf generate"):
        scored(folder)
