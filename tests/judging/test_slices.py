"""Boards by slice, since a day and by demand, from a release's own columns to every reader."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from datasets import Dataset

from echo_hf._infra.bootstrap import Unscored
from echo_hf.config.evaluation import SliceOptions
from echo_hf.errors import ConfigError
from echo_hf.hub.facts import ColumnEntry, ReleaseFacts, get_table
from echo_hf.hub.release import write_release
from echo_hf.images.store import ImageStore
from echo_hf.judging.results import SavedResults, SavedSlices
from echo_hf.judging.score import score
from echo_hf.judging.slices import SampleKinds, Unsliced, score_slices
from echo_hf.scores import demand_rates, slice_rates, win_rate
from echo_hf.scores.rating_table import read_ratings
from echo_hf.tables import DERIVED, POST_TEXT, RATINGS, STRING, Column
from tests.judging import run_for_tests as small
from tests.judging.run_for_tests import TARGET, Row, called, page_of, rating, write
from tests.scores.ratings_for_tests import rows_of
from tests.scores.test_slices import draw_cube

SPLIT, SAMPLES_RATED = "text_to_image", 48
FIRST = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
DOUBTS = ((), ("sure_of_nothing",), ("sure_of_nothing", "two_tasks"))


ADDED = {  # by packages of others
    name: ColumnEntry.from_column(name, Column(STRING, "invented", content=content))
    for name, content in (("mood", DERIVED), ("caption", POST_TEXT))
}


def make_sample(at: int) -> Row:
    """A sample a day, of three tasks; every tenth has no date, every eighth no task."""
    return small.sample(f"s{at:02}", []) | {
        "timestamp": None if at % 10 == 9 else FIRST + datetime.timedelta(days=at),
        "task": None if at % 8 == 7 else ("edit", "text_rendering", "text_to_image")[at % 3],
        "kind": "a castle that is made of bread " * 4,
        "doubts": list(DOUBTS[at % 3]),
        "mood": ("calm", None, "bright", "calm")[at % 4],
        "caption": "as posted",
        "post_urls": [f"https://{'bsky.app/profile/a/post' if at % 2 else 'example.org'}/{at}"],
    }


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with 48 rated samples of a release that also has 30 of collages, and 12 of edits."""
    folder = tmp_path_factory.mktemp("sliced")
    small.run(folder, {}, ())
    images = ImageStore(folder / "made")
    rated = [make_sample(at) for at in range(SAMPLES_RATED)]
    others = [make_sample(at) | {"id": f"more{at}", "task": "composition"} for at in range(30)]
    picture = images.put(small.stripes((9, 9, 9)))
    edits = [make_sample(at) | {"id": f"edit{at}", "input_images": [picture]} for at in range(12)]
    table = get_table("analysis", ADDED)
    configs = {"text_to_image": rated, "image_to_image": [], "analysis": [*rated, *others, *edits]}
    write_release(
        folder / "sliced",
        {
            name: Dataset(pa.Table.from_pylist(rows, table.features.arrow_schema))
            for name, rows in configs.items()
        },
        images,
        ReleaseFacts("lumen", TARGET, columns=ADDED),
    )
    set_slices(folder, {})
    rng = np.random.default_rng(0)
    systems = {"ash": 2.0, "birch": 0.0, "cedar": -1.0}
    rows = [
        rating(f"s{at:02}", system, float(round(5 + lead + rng.normal(0, 2))))
        for at in range(SAMPLES_RATED)
        for system, lead in systems.items()
    ]
    write(folder, RATINGS, rows)
    return folder


def set_slices(folder: Path, slices: dict[str, Any]) -> None:
    config = {"name": "evaluation", "benchmark": "sliced", "slices": slices}
    (folder / "evaluation.yaml").write_text(yaml.safe_dump(config), "utf-8")


def score_run(folder: Path, **options: Any) -> SavedSlices:
    path = score(folder / "evaluation.yaml", runs=folder / "runs", n_boot=100, **options).path
    slices = SavedResults.read(path).details[SPLIT].slices
    assert slices is not None
    return slices


def read_rows(folder: Path) -> list[Row]:
    from pyarrow import parquet

    return parquet.read_table(small.root(folder) / "ratings.parquet").to_pylist()


def list_values(column: str) -> dict[str, list[str]]:
    values = {}
    for at in range(SAMPLES_RATED):
        row = make_sample(at)
        found = {
            "task_family": [row["task"]] if row["task"] else [],
            "task": [row["task"]] if row["task"] else [],
            "month": [f"{row['timestamp']:%Y-%m}"] if row["timestamp"] else [],
            "platform": ["bluesky" if at % 2 else "web"],
            "doubts": row["doubts"] or ["(none)"],
            "prompt_fill_blank": [],
            "mood": [row["mood"]] if row["mood"] else [],
        }
        values[row["id"]] = found[column]
    return values


@pytest.mark.parametrize(
    "column", ["task_family", "task", "month", "platform", "doubts", "prompt_fill_blank", "mood"]
)
def test_slices_of_a_column_are_those_of_its_values(made: Path, column: str) -> None:
    """A list counts a sample in each value, and in `(none)` where it is empty."""
    expected = slice_rates(read_rows(made), values=list_values(column), n_boot=100)
    found = score_run(made, by=[column]).by[column]
    assert found.slices == expected.slices
    assert (found.no_value, found.spread) == (expected.no_value, expected.spread)


def test_since_a_day_counts_the_samples_posted_then_or_later(made: Path) -> None:
    saved = score_run(made, since="2026-04-01", by=["month"])
    late = {f"s{at:02}" for at in range(31, SAMPLES_RATED) if at % 10 != 9}
    undated = sum(at % 10 == 9 for at in range(SAMPLES_RATED))
    assert saved.samples == len(late)
    assert saved.left_out == {
        Unsliced.EARLIER: SAMPLES_RATED - undated - len(late),
        Unsliced.NO_DATE: undated,
    }
    assert saved.board is not None
    alone = win_rate([row for row in read_rows(made) if row["sample_id"] in late], n_boot=100)
    assert (saved.board.win_rate, saved.board.interval) == (alone.win_rate, alone.interval)
    assert list(saved.by["month"].slices) == ["2026-04"]


def count_tasks(days: range) -> dict[str, int]:
    """What was asked for without images: by rated samples, and 30 that nobody rated."""
    counts: dict[str, int] = {}
    rows = [make_sample(at) for at in range(SAMPLES_RATED)]
    rows += [make_sample(at) | {"task": "composition"} for at in range(30)]
    for row in rows:
        is_in = not days or (row["timestamp"] and (row["timestamp"] - FIRST).days in days)
        if is_in and row["task"]:
            counts[row["task"]] = counts.get(row["task"], 0) + 1
    return counts


@pytest.mark.parametrize(
    ("window", "days"),
    [("all", range(0)), ("10d", range(38, 48)), ("2026-03-11..2026-03-20", range(10, 20))],
)
def test_demand_is_counted_over_all_samples_of_the_release(
    made: Path, window: str, days: range
) -> None:
    """Those that start as the split's do; edits of images are asked for in the other split."""
    saved = score_run(made, demand=window).demand
    assert saved is not None
    strata = {name: own[0] if own else None for name, own in list_values("task").items()}
    expected = demand_rates(read_rows(made), strata=strata, asked=count_tasks(days), n_boot=100)
    assert saved.result.win_rate == expected.win_rate
    assert saved.result.interval == expected.interval
    assert saved.result.strata == expected.strata
    assert saved.asked == sum(count_tasks(days).values())
    assert saved.asked + sum(saved.left_out.values()) == SAMPLES_RATED + 30


def test_a_config_says_it_as_the_command_does_and_the_command_comes_first(made: Path) -> None:
    set_slices(made, {"by": ["month"], "since": "2026-03-05", "demand": "all"})
    try:
        saved = score_run(made)
        assert (list(saved.by), str(saved.since)) == (["month"], "2026-03-05")
        assert list(score_run(made, by=["task"]).by) == ["task"]
        done = called(made, "score", "--by", "doubts", "--since", "2026-03-20", "--json")
    finally:
        set_slices(made, {})
    slices = json.loads(done.stdout)["details"][SPLIT]["slices"]
    assert (list(slices["by"]), slices["since"]) == (["doubts"], "2026-03-20")
    assert slices["demand"]["window"] == "all"


def test_boards_beside_the_main_one_are_rows_of_results_and_it_stays(made: Path) -> None:
    plain = score(made / "evaluation.yaml", runs=made / "runs", n_boot=100).results
    saved = score_run(made, since="2026-03-20", demand="all")
    written = json.loads((small.root(made) / "results.json").read_text())["results"]
    rows = {(row["metric"], row["system"]): row for row in written}
    kept = [row.model_dump(mode="json") for row in plain]
    assert [row for row in written if row in kept] == kept
    assert saved.board is not None
    assert saved.demand is not None
    for system in ("ash", "birch", "cedar"):
        assert rows["win_rate_since", system]["value"] == saved.board.win_rate[system]
        row = rows["win_rate_by_demand", system]
        assert (row["low"], row["high"]) == saved.demand.result.interval[system]
        assert row["definition"]["strata"]["composition"]["samples"] == 0


def test_a_terminal_shows_each_board_and_what_does_not_count(made: Path) -> None:
    options = ["--by", "task_family", "--since", "2026-03-02", "--demand", "all"]
    done = called(made, "score", *options)
    page = " ".join(done.output.split())
    for words in (
        "win rate on 43 samples since 2026-03-02",
        "each sample once as people ask 95 % effective n",
        "of what people ask for is not in these rates: no sample was rated of composition",
        "task_family samples ash birch cedar",
        "task_family: no shrunken rates: fewer than 4 slices",
        "posted nobody knows when",
    ):
        assert words in page
    row = score_run(made, by=["task"]).by["task"].slices["edit"]
    low, high = row.interval["ash"] or (0, 0)
    line = f"edit ash {row.samples} {row.win_rate['ash']:.3f} {low:.3f} to {high:.3f} - -"
    assert line in " ".join(page_of(made).split())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"by": ["task_familly"]}, "unknown column of kinds 'task_familly'.*task_family"),
        ({"by": ["prompt"]}, "'prompt' holds no kinds but words.*task_family"),
        ({"by": ["caption"]}, "'caption' holds no kinds"),  # words of posts
        ({"by": ["engagement"]}, "'engagement' holds no kinds"),
        ({"by": ["kind"]}, "1 values of up to 124 characters: expected a column of kinds"),
        ({"since": "March"}, "slices: since is 'March': expected a day, such as 2026-04-01"),
        ({"demand": "3 months"}, "slices: demand is '3 months': expected all, days before"),
        ({"demand": "2026-04-01..2026-03-01"}, "expected the earlier day first"),
    ],
)
def test_what_cannot_be_sliced_is_refused_before_anything_is_written(
    made: Path, options: dict[str, Any], words: str
) -> None:
    before = (small.root(made) / "results.json").read_bytes()
    with pytest.raises(ConfigError, match=words):
        score_run(made, **options)
    assert (small.root(made) / "results.json").read_bytes() == before


def test_a_day_that_leaves_few_samples_gives_reasons_and_no_rate() -> None:
    rows = rows_of(draw_cube(3, 40, missing=0.0))
    days = {row["sample_id"]: datetime.date(2026, 1, 1) for row in rows}
    late = sorted(days)[:9]
    days |= dict.fromkeys(late, datetime.date(2026, 5, 1))
    options = SliceOptions(since="2026-04-01")
    saved = score_slices(options, read_ratings(rows), SampleKinds(dates=days), "corrected", 50)
    assert saved.samples == 9
    assert saved.board is not None
    assert {*saved.board.win_rate.values(), *saved.board.interval.values()} == {None}
    assert {*saved.board.reasons.values()} == {Unscored.FEW_SAMPLES}


def test_a_day_after_all_posts_leaves_no_sample_and_says_so(made: Path) -> None:
    saved = score_run(made, since="2030-01-01", by=["task_family"], demand="all")
    assert (saved.samples, sum(saved.left_out.values())) == (0, SAMPLES_RATED)
    assert saved.board is not None
    assert saved.demand is not None
    rates = (*saved.board.win_rate.values(), *saved.demand.result.win_rate.values())
    assert {*rates} == {None}
    assert saved.by["task_family"].slices == {}
    assert saved.demand.result.not_rated == pytest.approx(1)
