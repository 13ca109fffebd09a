"""Carried samples from build to build: two releases of drawn posts, one carried by the next."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from echo_hf.builder.build import build
from echo_hf.builder.successor import derive_config
from echo_hf.builder.takedown import forget
from echo_hf.config.sections import PostsSource
from echo_hf.hub.diff import compare_releases
from echo_hf.hub.hydrate import hydrate
from echo_hf.hub.load import load_benchmark
from echo_hf.hub.publish import count_restricted_rows
from echo_hf.hub.redistribution import dehydrate
from echo_hf.hub.release import Release, read_release, verify_release
from echo_hf.judging.judge import judge
from echo_hf.judging.score import score
from echo_hf.report.report import report
from echo_hf.systems.base import GenerationResult, Task
from echo_hf.systems.evaluation_run import EvaluationRun
from echo_hf.systems.generate import generate
from echo_hf.tables import Outcome
from tests.complaints_corpus import DrawnEyes, draw, write_config, write_outputs, write_posts
from tests.systems.runs_for_tests import Acting, known, sha

CARRIED = ("carried_samples", "carried_outputs", "carried_ratings")
Row = dict[str, Any]
NEW = {"name": "mine", "adapter": "acting", "developer": "Northlight", "status": "current"}


def act(task: Task) -> GenerationResult:
    return GenerationResult(Outcome.OK, draw(int(sha(task.prompt.encode())[:6], 16)))


def on_x(path: Path) -> None:
    """Move posts to X, whose words and images a release may not pass on without a right."""
    text = re.sub(
        r"https://posts\.example/\w+/(\d+)/1", r"https://x.com/reader/status/9\1", path.read_text()
    )
    path.write_text(
        re.sub(r"https://posts\.example/\w+/(\d+)", r"https://x.com/maker/status/\1", text)
    )


def build_two(folder: Path) -> Path:
    """A release `lumen` with outputs of amber and birch, and the config of the next."""
    (folder / "first").mkdir()
    posts = write_posts(folder / "first", {"": 8}, name="old")
    on_x(posts)
    first = write_config(folder / "first", [posts])
    build(first)
    write_outputs(first)
    judge(first)
    build(first)
    (folder / "second").mkdir()
    carry = [{"release": "../first/runs/lumen/release", "samples": 3}]
    more = {"name": "second", "systems": [NEW], "carry": carry}
    second = write_config(
        folder / "second", [write_posts(folder / "second", {"": 5}, seed=1, name="new")], **more
    )
    build(second)
    with known(Acting(act)):
        generate(second)
    judge(second)
    build(second)
    return second


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("two")
    DrawnEyes().use()
    build_two(folder)
    return folder


@pytest.fixture
def folder(built: Path, tmp_path: Path) -> Path:
    shutil.copytree(built, tmp_path, dirs_exist_ok=True)
    return tmp_path


def release_of(folder: Path, run: str = "second") -> Release:
    name = "lumen" if run == "first" else run
    return read_release(folder / run / "runs" / name / "release")


def rows(release: Release, config: str) -> list[Row]:
    return list(release.datasets[config].with_format(None).to_list())


def test_a_release_has_carried_tables_that_name_where_they_are_from(built: Path) -> None:
    release, root = release_of(built), built / "second" / "runs" / "second"
    verify_release(release.path)
    samples, outputs, ratings = (rows(release, name) for name in CARRIED)
    ids = {row["id"] for row in samples}
    assert ids < {row["id"] for row in rows(release_of(built, "first"), "text_to_image")}
    assert len(ids) == 3
    expected = {(name, system) for name in ids for system in ("amber", "birch", "mine")}
    for table in (outputs, ratings):
        assert {(row["sample_id"], row["system"]) for row in table} == expected
        assert {(row["release"], row["split"]) for row in table} == {("lumen", "text_to_image")}
    old = {
        (row["sample_id"], row["system"]): row
        for row in rows(release_of(built, "first"), "outputs")
    }
    for row in outputs:
        if row["system"] != "mine":
            assert row["image"]["bytes"] == old[row["sample_id"], row["system"]]["image"]["bytes"]
    assert {row["rating"] for row in ratings} == {7.0}
    for name in ("samples", "outputs", "ratings"):
        table = pq.read_table(root / "carried" / f"{name}.parquet")
        assert table.num_rows == len(rows(release, f"carried_{name}"))
    assert len(load_benchmark(release.path, "carried_samples")) == 3


def test_a_run_is_opened_by_its_folder_also_where_it_was_moved_with_its_release(
    folder: Path,
) -> None:
    """The draw stays; neither the place nor the config's file is written into it for good."""
    place = folder / "second" / "runs" / "second"
    before = (place / "carried" / "from-lumen" / "release" / "manifest.json").stat().st_mtime_ns
    engine = DrawnEyes().use()
    for opened in (folder / "second" / "lumen.yaml", place):
        judge(opened)
        (part,) = EvaluationRun.from_config(opened).parts
        assert part.carried_from == "lumen"
    assert engine.asked == []
    after = (place / "carried" / "from-lumen" / "release" / "manifest.json").stat().st_mtime_ns
    assert after == before


def test_they_stand_in_no_other_table_page_or_difference(folder: Path) -> None:
    second, root = folder / "second" / "lumen.yaml", folder / "second" / "runs" / "second"
    release = release_of(folder)
    score(second), report(second)
    ids = {row["id"] for row in rows(release, "carried_samples")}
    other = release.manifest.configs.keys() - {*CARRIED, "responses"}
    held = json.dumps([rows(release, name) for name in other], default=repr)
    pages = [
        (root / "results.json").read_text(),
        *(p.read_text() for p in root.glob("report/*.html")),
    ]
    assert len(pages) > 1
    assert [name for name in ids for text in (held, *pages) if name in text] == []
    diff = json.dumps(vars(compare_releases(release_of(folder, "first"), release)), default=repr)
    assert "carried" not in diff


def test_without_carrying_release_and_figures_are_the_same_bytes(folder: Path) -> None:
    second, root = folder / "second" / "lumen.yaml", folder / "second" / "runs" / "second"
    figures = score(second).path.read_bytes()
    build(second)
    carried = release_of(folder)
    before = carried.manifest.configs
    settings = {**yaml.safe_load(second.read_text()), "carry": []}
    second.write_text(yaml.safe_dump(settings))
    assert score(second).path.read_bytes() == figures
    build(second)
    after = release_of(folder).manifest.configs
    assert after == {name: entry for name, entry in before.items() if name not in CARRIED}
    with known(Acting(act)):
        generate(second)
    assert [*(root / "carried").glob("*.parquet")] == []


def holding(root: Path, word: bytes) -> list[str]:
    held = []
    for file in (path for path in root.rglob("*") if path.is_file()):
        data = file.read_bytes()
        if file.suffix == ".parquet":
            data += repr(pq.read_table(file).to_pylist()).encode()
        if word in data:
            held.append(str(file))
    return held


def test_a_forgotten_post_of_a_carried_sample_is_in_no_byte(folder: Path) -> None:
    root, second = folder / "second" / "runs" / "second", folder / "second" / "lumen.yaml"
    (gone, *others) = rows(release_of(folder), "carried_samples")
    outputs = [
        row for row in rows(release_of(folder), "carried_outputs") if row["sample_id"] == gone["id"]
    ]
    words = [gone["id"].encode(), gone["prompt"].encode(), gone["post_urls"][0].encode()]
    assert all(holding(root, word) for word in words)
    images = [row["image"]["bytes"] for row in outputs]
    assert len(images) == 3
    posted = [image["bytes"] for image in gone["output_images"]]
    assert posted
    assert all(holding(root, image) for image in (*images, *posted))
    removal = forget([gone["post_urls"][0]], second)
    assert (removal.posts, removal.samples) == (1, (gone["id"],))
    assert [name for word in (*words, *images, *posted) for name in holding(root, word)] == []
    build(second)
    with known(Acting(act)):
        generate(second)
    judge(second)
    build(second)
    release = release_of(folder)
    verify_release(release.path)
    assert [name for word in (*words, *images, *posted) for name in holding(root, word)] == []
    left = {row["id"] for row in others}
    assert {row["id"] for row in rows(release, "carried_samples")} == left
    assert {row["sample_id"] for row in rows(release, "carried_outputs")} == left
    # Neither does another draw bring it back.
    for part in (root / "carried").glob("*/draw.json"):
        part.unlink()
    with known(Acting(act)):
        generate(second)
    assert [name for word in (*words, *posted) for name in holding(root, word)] == []


def test_what_a_killed_draw_has_left_is_forgotten_too(folder: Path) -> None:
    root, second = folder / "second" / "runs" / "second", folder / "second" / "lumen.yaml"
    (gone, *_) = rows(release_of(folder), "carried_samples")
    (root / "carried" / "from-lumen" / "draw.json").unlink()
    forget([gone["post_urls"][0]], second)
    assert holding(root, gone["id"].encode()) == []


def test_restricted_words_are_left_out_of_what_is_passed_on_and_put_back(folder: Path) -> None:
    release = release_of(folder)
    assert count_restricted_rows(release) > 0
    public = dehydrate(release.path, folder / "public")
    assert count_restricted_rows(public) == 0
    before, after = (
        {row["id"]: row for row in rows(each, "carried_samples")} for each in (release, public)
    )
    assert {row["dehydrated"] for row in after.values()} == {True}
    assert [row["prompt"] for row in after.values()] == [None] * 3
    assert {(row["release"], row["split"]) for row in after.values()} == {
        ("lumen", "text_to_image")
    }
    texts = b"".join(path.read_bytes() for path in public.path.glob("carried_*/*"))
    assert [row["prompt"] for row in before.values() if row["prompt"].encode() in texts] == []
    assert {row["explanation"] for row in rows(public, "carried_ratings")} == {None}
    archive = PostsSource.model_validate(
        {"source": "jsonl", "path": str(folder / "first" / "old.jsonl")}
    )
    whole = hydrate(public.path, folder / "whole", [archive])
    assert {match.id for match in whole.samples} >= before.keys()
    again = {row["id"]: row for row in rows(whole.release, "carried_samples")}
    columns = ("prompt", "sample_digest", "release", "split", "community_feedback")
    assert [[row[name] for name in columns] for row in again.values()] == [
        [before[name][column] for column in columns] for name in again
    ]


def test_a_dehydrated_release_falls_out_and_counts_once_hydrated(folder: Path) -> None:
    first, second = release_of(folder, "first"), folder / "second" / "lumen.yaml"
    public = dehydrate(first.path, folder / "public")
    settings = yaml.safe_load(second.read_text())

    def carried(path: Path) -> Counter[str]:
        settings["carry"][0]["release"] = str(path)
        second.write_text(yaml.safe_dump(settings))
        run = EvaluationRun.from_config(second)
        (part,) = run.parts
        tasks = part.read_tasks()
        return Counter(asked=len(tasks.tasks), **{str(k): n for k, n in tasks.left_out.items()})

    assert carried(public.path) == {"dehydrated": 3, "asked": 0}
    archive = PostsSource.model_validate(
        {"source": "jsonl", "path": str(folder / "first" / "old.jsonl")}
    )
    whole = hydrate(public.path, folder / "whole", [archive]).release
    assert carried(whole.path) == {"asked": 3}


def test_the_next_config_proposes_the_release_with_its_outputs(folder: Path) -> None:
    """It comes last, after those that the run carries and that are there; a note says the cost."""
    run, first = folder / "second" / "runs" / "second", folder / "first" / "runs" / "lumen"
    config = yaml.safe_load((run / "config.yaml").read_text())
    elsewhere = [
        {"release": "../../../first/runs/lumen/release", "samples": 3},
        {"release": "lab/echo@lumen-2025", "seed": 2},
        {"release": "lab/echo"},
        {"release": "/nowhere/release@one"},
    ]
    (run / "config.yaml").write_text(yaml.safe_dump({**config, "carry": elsewhere}))
    derived = derive_config(str(run), "Lumen Two")
    *earlier, newest = derived.sections["carry"]
    assert Path(earlier[0].pop("release")).samefile(first / "release")
    assert earlier == [{"samples": 3}, {"release": "lab/echo@lumen-2025", "seed": 2}]
    assert newest == {"release": str(run / "release")}
    notes = "\n".join(note for note in derived.remarks if note.startswith("carry: "))
    assert "samples of 3 older releases; each costs its number of samples x systems" in notes
    assert "'lab/echo' left out" in notes
    assert "'/nowhere/release@one' left out" in notes
    derived = derive_config(str(run / "release"), "Lumen Two")
    assert derived.sections["carry"] == [{"release": str(run / "release")}]
