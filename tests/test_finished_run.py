"""A run that an earlier version finished: nobody is asked again, and all of it is still read."""

from __future__ import annotations

import datetime
import json
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from datasets import load_dataset

import echo_hf
from echo_hf.apps.rank import open_ranking
from echo_hf.apps.review import open_review
from echo_hf.builder.build import build
from echo_hf.builder.refresh import refresh
from echo_hf.collect.crawl import crawl_posts
from echo_hf.collect.platforms.base import Page, Question
from echo_hf.collect.platforms.mastodon import MastodonPlatform
from echo_hf.config.loading import load_config
from echo_hf.hub.diff import diff
from echo_hf.hub.redistribution import dehydrate
from echo_hf.hub.release import (
    read_release,
    read_release_facts,
    unpack_release,
    verify_release,
    write_release,
)
from echo_hf.images.store import ImageStore
from echo_hf.judging.judge import judge, judge_applicability, judge_pairs
from echo_hf.judging.score import score
from echo_hf.pipeline.progress import ProgressListener
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.systems.generate import generate
from echo_hf.tables import APPLICABILITY
from tests.engines.openai.loopback_server import LoopbackServer
from tests.finished_run import GONE, NAME, PHRASE, asks_later, extracted, serving

ROWS = {"image_to_image": 2, "text_to_image": 2, "analysis": 4, "outputs": 8, "ratings": 8}
ROWS |= {"comparisons": 8, "applicability": 4, "responses": 29}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    extracted(tmp_path)
    return tmp_path / "runs" / NAME


@pytest.fixture
def server(run: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving(config_of(run)) as loopback:
        yield loopback


def config_of(run: Path) -> Path:
    return run.parent.parent / "config.yaml"


def tables(run: Path) -> dict[str, pa.Table]:
    folders = [path for path in run.iterdir() if path.is_dir() and path.name != "cache"]
    files = [*run.glob("*.parquet"), *(one for each in folders for one in each.rglob("*.parquet"))]
    names = {str(path.relative_to(run)): path for path in files if path.parent.name != "results"}
    return {name: as_it_was(pq.read_table(path)) for name, path in names.items()}


LATER = {"timestamp", "keywords", "engagement", "doubts"}  # of samples, since that version
DIGEST = re.compile(r'"digest": "[0-9a-f]{64}"')


def as_it_was(table: pa.Table) -> pa.Table:
    """Samples without what later versions tell of them, and without the digests of their stages.

    Which metrics fit has a row for each answer since then, and not a column for each metric.
    """
    if "face_identity" in table.column_names:
        answers = [
            {**row, "metric": metric, "applies": row[metric]}
            for row in table.to_pylist()
            for metric in sorted(set(row) - {"sample_id", "rationale", "outcome"})
            if row[metric] is not None
        ]
        return pa.Table.from_pylist(answers, APPLICABILITY.schema)
    if "sample_digest" not in table.column_names or "provenance" not in table.column_names:
        return table
    place = table.column_names.index("provenance")
    made = [text and DIGEST.sub("", text) for text in table["provenance"].to_pylist()]
    table = table.set_column(place, "provenance", pa.array(made, pa.string()))
    return table.select([name for name in table.column_names if name not in LATER])


def as_before(before: pa.Table, after: pa.Table) -> pa.Table:
    """The columns and answers that there were; who made a row is told anew."""
    if "request_key" in before.column_names:
        after = after.filter(pc.is_in(after["request_key"], before["request_key"]))
    if "_reason" in before.column_names:  # its config says now how the model names places
        after = after.filter(pc.not_equal(after["_reason"], "assumed_convention"))
    return after.select([one for one in before.column_names if one != "provenance"])


# Of comparisons; nothing showed them.
UNSHOWN = ("decided", "first", "verdicts")


def figures(value: Any) -> Any:
    if isinstance(value, dict):
        gone = ("versions", *UNSHOWN) if "follows_position" in value else ("versions",)
        return {name: figures(one) for name, one in value.items() if name not in gone}
    if isinstance(value, list):
        return [figures(one) for one in value]
    return None if isinstance(value, str) else value


def held(before: Any, after: Any) -> Any:
    """Of what there is now, what there was a place for before."""
    if isinstance(before, dict) and isinstance(after, dict):
        return {name: held(one, after.get(name)) for name, one in before.items()}
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        return [held(*each) for each in zip(before, after, strict=True)]
    return after


def checks(run: Path) -> list[tuple[str, ...]]:
    with closing(sqlite3.connect(run / "fetched.sqlite")) as ledger:
        return ledger.execute("select * from fetches order by 1").fetchall()


@pytest.mark.parametrize("cached", [True, False], ids=["with its cache", "without"])
def test_it_is_gone_on_with_without_a_call(run: Path, server: LoopbackServer, cached: bool) -> None:
    if not cached:
        shutil.rmtree(run / "cache")
    before, fetched = tables(run), checks(run)
    results = figures(json.loads((run / "results.json").read_text("utf-8")))
    config, runs = config_of(run), run.parent
    build(config, runs=runs)
    generate(config, runs=runs)
    for asks in (judge_applicability, judge, judge_pairs):
        asks(config, runs=runs)
    score(config, runs=runs, n_boot=50)
    build(config, runs=runs, with_responses=True)
    assert len(server.asked) == 4  # once of each sample, and of nothing else
    assert all(map(asks_later, server.asked))
    assert checks(run) == fetched
    after = tables(run)
    assert set(after) == {*before, "origins.parquet"}  # since that version, for removals
    compared = {
        name: (as_before(one, one), as_before(one, after[name])) for name, one in before.items()
    }
    assert [name for name, (old, new) in compared.items() if not old.equals(new)] == []
    samples = after["stages/splits/kept.parquet"]
    assert samples["task_phrase"].to_pylist() == [PHRASE["task_phrase"]] * 4
    assert held(results, figures(json.loads((run / "results.json").read_text("utf-8")))) == results


def test_its_release_differs_from_no_copy_of_it(run: Path, tmp_path: Path) -> None:
    """Also from one that is written anew, with a row for each answer about a metric."""
    release = read_release(run / "release")
    images = ImageStore(tmp_path / "images")
    unpacked = unpack_release(release, images)
    assert unpacked["applicability"].column_names == list(APPLICABILITY.columns)
    copy = write_release(tmp_path / "copy", unpacked, images, read_release_facts(release))
    assert load_dataset(str(copy.path), "applicability", split="test").num_rows == 8
    difference = diff(release.path, copy.path)
    assert (difference.changed, difference.added, difference.removed) == ((), (), ())
    assert {drift.distance for drift in difference.drift.values()} <= {0, None}
    assert not difference.configs["applicability"].equal
    assert dehydrate(copy.path, tmp_path / "dry").manifest.configs["applicability"].rows == 8


def test_its_release_loads(run: Path) -> None:
    verify_release(run / "release")
    for name, count in ROWS.items():
        loaded = echo_hf.load_benchmark(str(run / "release"), name)
        split = load_dataset(str(run / "release"), name)
        answers = 2 * count if name == "applicability" else count  # 3 of an edit, 1 of words
        assert [len(loaded), *split.num_rows.values()] == [answers, count], name
    edits = load_dataset(str(run / "release"), "image_to_image", split="test")
    assert "Turn this harbour photo into a night scene" in edits["prompt"]
    assert {image.size for image in edits[0]["input_images"]} <= {(96, 64), (140, 80)}


class Mute(MastodonPlatform):
    def __enter__(self) -> Mute:
        return self

    def ask(self, question: Question, cursor: str | None = None) -> Page:
        raise AssertionError(question, cursor)


def test_its_ledgers_are_read(run: Path) -> None:
    config = load_config(config_of(run))
    (crawled,) = crawl_posts(config, RunFolder(run), ProgressListener(), make=lambda _: Mute())
    assert (crawled.end, crawled.by_terms, crawled.by_replies) == ("nothing_left", 2, 3)
    ages = datetime.timedelta(days=36_500)
    checked = refresh(
        config, ProgressListener(), runs=run.parent, older_than=ages, make=lambda _: Mute()
    )
    (said,) = (one for one in checked.platforms if one.platform == "mastodon")
    assert (said.posts, said.fresh, said.asked) == (5, 5, 0)
    assert [url.rpartition("/")[2] for url in checked.gone] == [str(GONE)]


def test_what_people_did_is_read(run: Path) -> None:
    human = pq.read_table(run / "human.parquet")
    desk = open_review(config_of(run), runs=run.parent)
    decided = desk.read_decisions().by_id.values()
    assert sorted((one.decision, one.note) for one in decided) == [
        ("flag", "is it one picture?"),
        ("keep", None),
    ]
    ranks = open_ranking(config_of(run), runs=run.parent)
    table = ranks.write()
    assert (table.rankings, table.kept, table.left_out) == (2, 0, {})
    assert pq.read_table(run / "human.parquet").equals(human)
    assert sorted((one["rater"], one["rank"]) for one in human.to_pylist()) == [
        ("bo", 1), ("bo", 2), ("cy", 1), ("cy", 2)
    ]  # fmt: skip
