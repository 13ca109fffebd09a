"""All figures of a run: hand-counted win rates, hand-made colors, and what does not count."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from echo_hf.errors import ConfigError, RunError, ScoreError, WeightsError
from echo_hf.hub.facts import LeftOut
from echo_hf.hub.run_tables import ResultRow, read_results
from echo_hf.judging.score import Scores, score
from echo_hf.metrics import Metric, MetricResult, register
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.report.report import report
from echo_hf.scores.rating_table import IgnoredRating
from echo_hf.systems.benchmark import Benchmark
from echo_hf.systems.run_tables import RunTables, read_run
from echo_hf.tables import APPLICABILITY, COMPARISONS, HUMAN, OUTPUTS, RATINGS
from tests.judging import run_for_tests as small
from tests.judging.run_for_tests import (
    Row,
    called,
    output,
    page_of,
    put,
    rating,
    root,
    stripes,
    write,
)

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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    small.run(tmp_path, {name: [one] for name, one in EDITS.items()}, WORDS)
    return tmp_path


def drawn(folder: Path) -> list[Row]:
    """What a copier and a system that adds 30 levels of blue made of the edits."""
    rows = []
    for name, given in EDITS.items():
        rows.append(output(name, "copy", [given], image=put(folder, given)))
        rows.append(output(name, "bluer", [given], image=put(folder, BLUER[given])))
    return rows


def rated(a: float, b: float, words: tuple[str, ...] = WORDS, **more: Any) -> list[Row]:
    return [rating(name, s, value, **more) for name in words for s, value in (("a", a), ("b", b))]


def scored(folder: Path, **options: Any) -> Scores:
    return score(folder / "evaluation.yaml", runs=folder / "runs", **{"n_boot": 0, **options})


def of_metric(scores: Scores, metric: str) -> dict[str, ResultRow]:
    return {
        row.system: row
        for row in scores.results
        if row.metric == metric and row.protocol == scores.protocol
    }


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
    folder: Path, flags: dict[str, Any], value: float | None, n: int, coverage: Any, said: str
) -> None:
    rows = drawn(folder)
    rows[-1]["image"] = put(folder, stripes((0, 200, 0), (0, 20, 0)))  # bluer's of the far edit
    write(folder, OUTPUTS, rows)
    write(
        folder,
        APPLICABILITY,
        [row for name, flag in flags.items() for row in small.fits(name, color_shift=flag)],
    )
    row = of_metric(scored(folder), "color_shift")["bluer"]
    assert (row.n, row.coverage) == (n, coverage)
    assert row.value == (value if value is None else pytest.approx(value))
    assert said in str(row.definition)


def test_what_a_system_did_not_draw_or_keep_is_not_covered(folder: Path) -> None:
    """One that the config names has coverage 0 where it has no output at all."""
    config = yaml.safe_load((folder / "evaluation.yaml").read_text("utf-8"))
    idle = {"name": "idle", "adapter": "files", "developer": "Northlight", "status": "current"}
    config["systems"] = [idle]
    (folder / "evaluation.yaml").write_text(yaml.safe_dump(config), "utf-8")
    rows = drawn(folder)
    rows[0] |= {"outcome": "failed", "image": None}
    changed, images = rows[3]["image"], root(folder) / "pictures"
    (images / changed[:2] / changed).write_bytes(stripes((0, 0, 0), (9, 9, 9)))
    write(folder, OUTPUTS, [row for row in rows if row != rows[2]])
    found = of_metric(scored(folder), "color_shift")
    expected = {"copy": (0, 0), "bluer": (1, 0.5), "idle": (0, 0)}
    assert {name: (row.n, row.coverage) for name, row in found.items()} == expected


def test_the_protocols_stand_side_by_side(folder: Path) -> None:
    """The first judge alone decides as published, the majority as corrected."""
    said = {"ann": (1, 9), "ben": (9, 1), "cy": (9, 1)}
    write(folder, RATINGS, [row for who, ab in said.items() for row in rated(*ab, judge=who)])
    rows = [row for row in scored(folder).results if row.metric == "win_rate"]
    rates = {(row.protocol, row.system): row.value for row in rows}
    published = {("published", "a"): 0, ("published", "b"): 1}
    assert rates == {**published, ("corrected", "a"): 1, ("corrected", "b"): 0}


def test_colors_are_compared_with_the_inputs(folder: Path) -> None:
    """The file, read as a release reads it, holds what was returned, and no folder."""
    write(folder, OUTPUTS, drawn(folder))
    scores = scored(folder, n_boot=50)
    shifts = of_metric(scores, "color_shift")
    assert shifts["copy"].value == 0
    assert shifts["bluer"].value == pytest.approx(30)
    assert re.search(r"bluer +30\.000 .* \d+\.\d bluer *$", page_of(folder), re.MULTILINE)

    key = ["metric", "protocol", "split", "system"]
    returned = {tuple(getattr(row, name) for name in key): row.value for row in scores.results}
    read = {tuple(row[name] for name in key): row["value"] for row in read_results(scores.path)}
    assert read == returned
    text = scores.path.read_text("utf-8")
    assert str(folder) not in text
    manifest = json.loads((folder / "benchmark" / "manifest.json").read_text("utf-8"))
    digests = {name: entry["digest"] for name, entry in manifest["configs"].items()}
    assert json.loads(text)["benchmark"] == {"name": "lumen", "on_hub": None, "digests": digests}
    write(folder, OUTPUTS, drawn(folder)[::-1])
    assert scored(folder, n_boot=50).path.read_text("utf-8") == text


def test_a_metric_without_its_packages_says_what_to_install(folder: Path) -> None:
    """It has no value and coverage 0, for every system; the others are measured."""
    if find_spec("torch"):
        pytest.skip("torch is here: nothing is missing")
    write(folder, OUTPUTS, drawn(folder))
    told = called(folder, "score", "-v")
    assert told.exit_code == 0, told.output
    (line,) = [one for one in told.output.splitlines() if one.startswith("structure_distance ↓")]
    assert "0 of 2" in line
    assert "echo-hf[metrics]" in told.output
    assert "30.000" in told.output  # of the color shift, whose packages are always there


def test_weights_that_cannot_be_had_are_told_without_a_folder_of_this_machine(folder: Path) -> None:
    @register
    class Fails(Metric):
        name = "fails"

        class Options(Metric.Options):
            folders = ("model",)
            model: str = "vit"

        def measure(self, *_: Any, options: Any, **__: Any) -> MetricResult:
            raise WeightsError(f"no model {options.model!r}")

    (folder / "vit").mkdir()
    config = yaml.safe_load((folder / "evaluation.yaml").read_text("utf-8"))
    config["metrics"] = {"fails": {"model": "vit"}}
    (folder / "evaluation.yaml").write_text(yaml.safe_dump(config), "utf-8")
    write(folder, OUTPUTS, drawn(folder))
    row = of_metric(scored(folder), "fails")["copy"]
    assert row.definition["missing"] == "no model 'vit'"


def test_text_is_a_tenth_of_its_ratings(folder: Path) -> None:
    write(folder, RATINGS, rated(5, 5))
    rows = of_metric(scored(folder), "text_rendering")
    assert {(row.system, row.value, row.coverage) for row in rows.values()} == {
        (name, None, 0) for name in "ab"
    }
    text = [rating(name, "a", value, rubric="text_rendering") for name, value in
            (("boat", 8), ("fox", 2))]  # fmt: skip
    write(folder, RATINGS, [*rated(5, 5), *text])
    assert of_metric(scored(folder), "text_rendering")["a"].value == pytest.approx(0.5)
    flags = {"boat": True, "fox": False}
    write(
        folder,
        APPLICABILITY,
        [row for name, flag in flags.items() for row in small.fits(name, text_rendering=flag)],
    )
    rows = of_metric(scored(folder), "text_rendering")
    assert (rows["a"].value, rows["a"].coverage) == (pytest.approx(0.8), pytest.approx(1 / 3))
    assert (rows["b"].value, rows["b"].coverage) == (None, 0)  # rated on none of them


def test_a_judge_that_failed_its_audit_is_flagged_where_it_rated_text(folder: Path) -> None:
    text = rated(8, 8, ("boat",), judge="otto", rubric="text_rendering")
    write(folder, RATINGS, [*rated(5, 5), *text])
    failed = {"mira": {"failed": ["blank"]}, "otto": {"failed": ["shuffled"]}}
    (root(folder) / "audit.json").write_text(json.dumps({"judges": failed}))

    scores = scored(folder)
    rows = of_metric(scores, "text_rendering").values()
    assert [row.definition["failed_audit"] for row in rows] == [{"otto": ["shuffled"]}] * 2
    written = json.loads(scores.path.read_text())
    assert written["failed_audit"] == {"mira": ["blank"], "otto": ["shuffled"]}
    line = next(one for one in page_of(folder).splitlines() if "text_rendering" in one)
    assert line.split()[2:] == ["otto", "(failed", "its", "audit:", "shuffled)"]


def test_rows_about_other_samples_are_counted_and_do_not_count(folder: Path) -> None:
    write(folder, OUTPUTS, [output(name, s, image="f" * 64) for name in WORDS for s in "ab"])
    gone = rated(1, 9, ("gone",))
    older = rated(1, 9, ("boat",), sample_digest="0" * 64, judge="old")
    redrawn = rated(1, 9, ("fox",), output_sha256="e" * 64, judge="old")
    strange = rated(1, 9, rubric="overal")
    write(folder, RATINGS, [*rated(9, 1), *gone, *older, *redrawn, *strange])
    scores = scored(folder)
    assert of_metric(scores, "win_rate")["a"].value == 1
    assert scores.left_out == {
        "ratings": {
            LeftOut.NOT_RELEASED: 2,
            LeftOut.OTHER_SAMPLE: 2,
            LeftOut.OTHER_OUTPUT: 2,
            IgnoredRating.OTHER_RUBRIC: 8,
        }
    }


def test_a_table_of_ones_own_needs_four_columns(folder: Path) -> None:
    names = ("sample_id", "system", "judge", "rating")
    rows = [{name: row[name] for name in names} for row in rated(9, 1)]
    pq.write_table(pa.Table.from_pylist(rows), root(folder) / "ratings.parquet")
    assert of_metric(scored(folder), "win_rate")["a"].value == 1
    for table in (OUTPUTS, RATINGS):
        write(folder, table, [])
    assert scored(folder).results == []


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"sample_id": ["boat"], "judge": ["j"]}, "has no column 'system', 'rating'.*/tables/"),
        (
            {"sample_id": ["boat"], "system": ["a"], "judge": ["j"], "rating": ["9"]},
            "column 'rating' is of type 'string', expected 'double'.*/reference/tables/",
        ),
        (None, r"ratings\.parquet' is not a table of ratings"),
        ({}, r"nothing to score in .*echo-hf generate"),
    ],
)
def test_what_is_wrong_with_a_table_is_named_at_once(
    folder: Path, columns: dict[str, list[str]] | None, said: str
) -> None:
    if columns is None:
        (root(folder) / "ratings.parquet").write_bytes(b"no table")
    elif columns:
        pq.write_table(pa.table(columns), root(folder) / "ratings.parquet")
    with pytest.raises(RunError, match=said):
        scored(folder)
    assert not (root(folder) / "results.json").exists()


def read(folder: Path) -> RunTables:
    return read_run(Benchmark(str(folder / "benchmark")), RunFolder(root(folder)))


def test_a_rating_of_no_image_does_not_count(folder: Path) -> None:
    """Ratings alone are taken at their word."""
    write(folder, RATINGS, [rating(name, "a", 9) for name in ("boat", "fox", "tree")])
    alone = read(folder)
    assert alone.ratings is not None
    assert (alone.ratings.num_rows, alone.left_out) == (3, {})
    outputs = [
        output("boat", "a", image="f" * 64),
        output("fox", "a", outcome="refused"),
        output("tree", "b", image="e" * 64),
    ]
    write(folder, OUTPUTS, outputs)
    tables = read(folder)
    assert tables.ratings is not None
    assert tables.ratings["sample_id"].to_pylist() == ["boat"]
    assert tables.left_out == {"ratings": {IgnoredRating.NO_IMAGE: 1, IgnoredRating.NO_OUTPUT: 1}}
    write(folder, OUTPUTS, [output("boat", "a", image=digit * 64) for digit in "ef"])
    with pytest.raises(ScoreError, match="system 'a' has 2 outputs for sample 'boat'"):
        read(folder)


DOZEN = tuple(f"word{at:02}" for at in range(12))


@pytest.fixture
def chosen(tmp_path: Path) -> Path:
    """Two systems on a dozen samples, of which a judge rates the first higher."""
    small.run(tmp_path, {}, DOZEN)
    made = {name: put(tmp_path, stripes((at, 1, 1))) for at, name in enumerate("ab")}
    write(tmp_path, OUTPUTS, [output(name, s, image=made[s]) for name in DOZEN for s in "ab"])
    write(tmp_path, RATINGS, rated(9, 4, DOZEN))
    return tmp_path


def choice(folder: Path, name: str, order: str, winner: str, **values: Any) -> Row:
    images = (put(folder, stripes((at, 1, 1))) for at in range(2))
    shown = dict(zip(("output_a_sha256", "output_b_sha256"), images, strict=True))
    key = {"sample_id": name, "system_a": "a", "system_b": "b", "judge": "mira", "order": order}
    known = {**key, **shown, "repeat": 0, "outcome": "ok", "winner": winner}
    digest = {"sample_digest": small.digest_of(name)}
    return {**dict.fromkeys(COMPARISONS.columns), **known, **digest, **values}


def test_the_line_of_each_judge_is_what_was_counted(chosen: Path) -> None:
    """By hand: nine pairs agree with the ratings; three follow the place, which is a tie."""
    winners = {name: ("a", "b" if at < 3 else "a") for at, name in enumerate(DOZEN)}
    rows = [
        choice(chosen, name, order, winner)
        for name, both in winners.items()
        for order, winner in zip(("ab", "ba"), both, strict=True)
    ]
    write(chosen, COMPARISONS, rows)
    (root(chosen) / "audit.json").write_text('{"judges": {"mira": {"failed": ["renamed"]}}}')
    scores = scored(chosen, n_boot=200)
    details = json.loads(scores.path.read_text())["details"]["text_to_image"]["pairwise"]

    mira = details["judges"]["mira"]
    assert mira["pairs"] == 12
    values = {name: mira[name]["value"] for name in ("consistent", "follows_position", "agreement")}
    assert values == {"consistent": 0.75, "follows_position": 0.25, "agreement": 0.75}
    low, high = mira["agreement"]["interval"]
    assert low < 0.75 < high
    line = f"12 pairs, same winner in both orders 0.75 ({low:.2f} to {high:.2f})"
    assert f"mira (failed its audit: renamed): {line}" in page_of(chosen)


def test_people_say_whether_ratings_or_choices_are_nearer(chosen: Path) -> None:
    """By hand: ratings are for a, choices for b on nine samples of twelve, as people are on all."""
    winners = {name: "b" if at < 9 else "tie" for at, name in enumerate(DOZEN)}
    rows = [choice(chosen, name, order, winners[name]) for name in DOZEN for order in ("ab", "ba")]
    write(chosen, COMPARISONS, rows)
    scored(chosen, n_boot=200)
    assert "nothing decides it without people, who have to rank 10 samples" in page_of(chosen)
    ranks = [
        {"sample_id": name, "rater": "ada", "system": system, "rank": rank, "cannot_rank": False}
        for name in (*DOZEN, "elsewhere")
        for system, rank in {"a": 2, "b": 1}.items()
    ]
    write(chosen, HUMAN, ranks)
    scores = scored(chosen, n_boot=200)
    found = json.loads(scores.path.read_text())
    sides = found["details"]["text_to_image"]["pairwise"]["sides"]
    assert sides["nearer"] == "pairwise"
    taus = {way: near["tau"]["value"] for way, near in sides["with_people"].items()}
    assert taus == {"pointwise": -1, "pairwise": 0.75}
    low, high = sides["difference"]["interval"]
    (line,) = (one for one in found["trust"] if one["measure"] == "pairwise")
    assert line["said"] == (
        "choices, which are nearer to people: tau of choices less that of ratings "
        f"+1.750 ({low:+.3f} to {high:+.3f}) on 12 samples"
    )
    page = " ".join(page_of(chosen).split())
    assert line["said"] in page
    made = report(chosen / "evaluation.yaml", runs=chosen / "runs").path.read_text("utf-8")
    assert "Ratings and choices beside people, on the same pairs" in made
    assert line["said"] in made


def test_choices_between_other_images_do_not_count(chosen: Path) -> None:
    """And without ratings the line says that there are none."""
    (root(chosen) / "ratings.parquet").unlink()
    rows = [
        *(choice(chosen, "word00", order, "a") for order in ("ab", "ba")),
        choice(chosen, "word01", "ab", "a", output_b_sha256="0" * 64),
        choice(chosen, "word02", "ab", "a", sample_digest="0" * 64),
        choice(chosen, "word03", "ab", "a", system_b="cedar"),
    ]
    write(chosen, COMPARISONS, rows)
    scores = scored(chosen)
    left_out = {str(reason): count for reason, count in scores.left_out["comparisons"].items()}
    assert left_out == {"other_output": 1, "other_sample": 1, "no_output": 1}
    page = page_of(chosen)
    assert "mira: 1 pairs, same winner in both orders 1.00, the place decides 0.00" in page
    assert "agrees with its ratings - (not_rated)" in page
    assert "no pairwise of text_to_image: no judge rated any of its outputs" in page


MANY = tuple(f"word{at:02}" for at in range(20))


@pytest.fixture
def ranked(tmp_path: Path) -> Path:
    """A run whose judge always prefers a; people rank some samples, and b in 3 of 10 of them."""
    small.run(tmp_path, {"near": [NEAR]}, MANY)
    write(tmp_path, RATINGS, rated(9, 1, MANY))
    return tmp_path


def ranks(count: int, **more: Any) -> list[Row]:
    return [
        {"sample_id": name, "rater": "ada", "system": system, "rank": 1 + won, **more}
        for at, name in enumerate(MANY[:count])
        for system, won in (("a", at % 10 < 3), ("b", at % 10 >= 3))
    ]


def test_people_correct_a_judge_who_always_says_the_same(ranked: Path) -> None:
    """Judges explain nothing then: the rate is people's own, 7 of 10, with a known interval."""
    write(ranked, HUMAN, ranks(10))
    write(ranked, OUTPUTS, [output(name, s, image="f" * 64) for name in MANY for s in "ab"])
    scores = scored(ranked)
    row = of_metric(scores, "win_rate_human_corrected")["a"]
    error = (0.7 * 0.3 * 10 / 9) ** 0.5 * (1 / 10 - 1 / 20) ** 0.5
    assert row.value == pytest.approx(0.7)
    assert (row.low, row.high) == pytest.approx((0.7 - 2.2622 * error, 0.7 + 2.2622 * error), 1e-4)
    assert (row.split, row.n, row.coverage) == ("text_to_image", 10, 0.5)
    assert of_metric(scores, "win_rate")["a"].value == 1
    lines = page_of(ranked).splitlines()
    at = lines.index("text_to_image: win rate by people, estimated on all samples")
    assert lines[at + 2].split() == ["a", "0.700", "0.456", "to", "0.944", "0.700", "1.000"]
    assert lines[at + 4] == (
        "people ranked 10 of 20 samples; judges explain 0 % of how people's verdicts vary (rho2): "
        "as good as 10 without judges; intervals of ±0.03 need 10 more"
    )
    read = {row["metric"] for row in read_results(scores.path)}
    assert "win_rate_human_corrected" in read


def test_people_speak_by_the_corrected_protocol_whatever_the_run_follows(ranked: Path) -> None:
    write(ranked, HUMAN, ranks(10))
    found = [one for one in scored(ranked, protocol="published").results if "human" in one.metric]
    assert {one.protocol for one in found} == {"corrected"}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (ranks(9), "people ranked 9 of 20 rated samples: expected 10 or more, so rank 1"),
        (ranks(12)[::2], "human: ranks are of ['a']: expected two systems or more"),
        (ranks(12, rater="ada") + ranks(1, rater="b\x1b[31m", rank=0), "expected a rank from 1"),
    ],
)
def test_what_people_cannot_correct_is_a_line_and_all_else_is_there(
    ranked: Path, rows: list[Row], said: str
) -> None:
    write(ranked, HUMAN, [*rows, {**ranks(1)[0], "sample_id": "gone"}])
    scores = scored(ranked)
    (line,) = [one for one in page_of(ranked).splitlines() if "no win rates by people: " in one]
    assert said in line
    assert "\x1b" not in line
    assert of_metric(scores, "win_rate")["a"].value == 1
    assert of_metric(scores, "win_rate_human_corrected") == {}
    assert scores.left_out["human"] == {LeftOut.NOT_RELEASED: 1}


def test_a_board_is_of_first_draws_or_of_the_mean_rating_of_all(folder: Path) -> None:
    """By hand: b wins each first draw by 1, and a the mean of both by 2."""
    rows = rated(5, 6) + rated(9, 4, draw=1)
    write(folder, RATINGS, rows)
    path = folder / "evaluation.yaml"
    config = yaml.safe_load(path.read_text("utf-8"))
    boards = {}
    for draws in ("first", "all"):
        path.write_text(yaml.safe_dump({**config, "draws": draws}), "utf-8")
        found = of_metric(scored(folder), "win_rate")
        boards[draws] = {name: row.value for name, row in found.items()}
        definition = found["a"].definition
        assert isinstance(definition, dict)
        assert ("draws" in definition) is (draws == "all")
    assert boards == {"first": {"a": 0.0, "b": 1.0}, "all": {"a": 1.0, "b": 0.0}}
    path.write_text(yaml.safe_dump({**config, "draws": "last"}), "utf-8")
    with pytest.raises(ConfigError, match="draws"):
        scored(folder)


def test_a_rating_is_held_against_the_output_of_its_draw(folder: Path) -> None:
    outputs = [output("boat", "a", image=put(folder, NEAR), draw=draw) for draw in (0, 1)]
    outputs[1] |= {"image": None, "outcome": "refused"}
    write(folder, OUTPUTS, outputs)
    write(folder, RATINGS, [rating("boat", "a", 7, draw=draw) for draw in (0, 1, 2)])
    tables = read(folder)
    assert tables.left_out["ratings"] == {IgnoredRating.NO_IMAGE: 1, IgnoredRating.NO_OUTPUT: 1}
    assert tables.all_outputs is not None
    assert (tables.all_outputs.num_rows, tables.outputs and tables.outputs.num_rows) == (2, 1)


def test_tables_of_before_there_were_draws_are_of_the_first(folder: Path) -> None:
    write(folder, OUTPUTS, [output("boat", "a", image=put(folder, NEAR))])
    write(folder, RATINGS, [rating("boat", "a", 7)])
    for name in ("outputs", "ratings"):
        file = root(folder) / f"{name}.parquet"
        pq.write_table(pq.read_table(file).drop_columns(["draw"]), file)
    tables = read(folder)
    assert tables.left_out == {}
    for table in (tables.outputs, tables.all_outputs, tables.ratings, tables.all_ratings):
        assert table is not None
        assert table["draw"].to_pylist() == [0]
