"""Whole builds: the bundled corpus, the accounting, a killed run, a run repeated, an update."""

from __future__ import annotations

import errno
import hashlib
import importlib
import json
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from datasets import Image, load_dataset
from typer.testing import CliRunner, Result

from echo_hf import tables as declared
from echo_hf.builder.build import build, open_run, run_until
from echo_hf.builder.update import BACKUP_FOLDER, UpdateResult, plan_build, update
from echo_hf.cli import app
from echo_hf.config.sections import BUILT_IN_STAGES as STAGES
from echo_hf.config.sections import asks_model
from echo_hf.config.systems import shipped_config
from echo_hf.engines.base import Completion, register
from echo_hf.engines.planner import NO_WORK
from echo_hf.engines.prices import read_price_list
from echo_hf.errors import (
    EngineError,
    MissingExtraError,
    ReleaseError,
    RunError,
    SourceError,
    UnusableAnswersError,
)
from echo_hf.hub.release import Release, read_release, verify_release
from echo_hf.pipeline import stage as stages
from echo_hf.samples.threads import Threads
from echo_hf.tables import OUTPUTS
from tests.engines.openai.loopback_server import Answer, closed_port, completion, running
from tests.paced_plugin import PacedEngine, answered
from tests.progress_for_tests import Heard
from tests.recorded_as_model import (
    BOARD,
    KIND,
    Post,
    RecordedAsModel,
    X,
    bundled_posts,
    config_over,
    rows,
    tables,
)

HERE = Path(__file__).resolve().parents[1]


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = tmp_path_factory.mktemp("runs")
    build(shipped_config(), runs=runs)
    return runs / "quickstart"


def test_no_stage_changes_an_image(quickstart: Path) -> None:
    corpus = HERE.parent / "echo_hf" / "quickstart" / "pictures"
    given = {hashlib.sha256(path.read_bytes()).hexdigest() for path in corpus.iterdir()}
    loaded = load_dataset(str(quickstart / "release"), "analysis", split="test")
    loaded = loaded.cast_column("output_images", [Image(decode=False)])
    released = {
        hashlib.sha256(image["bytes"]).hexdigest()
        for row in loaded
        for image in row["output_images"]
    }
    kept = rows(quickstart, "splits")
    named = {digest for row in kept for digest in row["output_images"]}
    cut = {digest for row in kept for digest in row["output_images"][: len(row["output_bboxs"])]}
    assert len(named) > 20
    assert released == named
    assert released - cut <= given
    assert len(cut) == 3


def test_a_build_can_be_repeated_here_and_elsewhere(quickstart: Path, tmp_path: Path) -> None:
    """Nothing is written anew; in another folder, the same bytes are."""
    files = [*quickstart.glob("stages/**/*"), *quickstart.glob("release/**/*")]
    before = {path: path.stat().st_mtime_ns for path in files}
    build(shipped_config(), runs=quickstart.parent)
    assert {path: path.stat().st_mtime_ns for path in files} == before
    build(shipped_config(), runs=tmp_path)
    assert contents(tmp_path / "quickstart" / "release") == contents(quickstart / "release")


def test_the_scores_of_a_run_go_into_its_release(quickstart: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(quickstart, tmp_path / "quickstart"))
    known = rows(run, "splits")[0]
    about = [known["id"], known["id"], "gone"]
    made = {
        "sample_id": about,
        "system": ["a", "b", "a"],
        "sample_digest": [known["sample_digest"], "older", "x"],
        "image": [known["output_images"][0], None, None],
    }
    full = {name: made.get(name, [None] * 3) for name in OUTPUTS.columns}
    pq.write_table(pa.table(full, schema=OUTPUTS.schema), run / "outputs.parquet")
    (run / "results.json").write_text('{"results": []}', "utf-8")
    release = build(shipped_config(), runs=tmp_path)
    assert {"outputs", "results"} <= set(release.manifest.configs)
    assert release.datasets["outputs"]["system"][:] == ["a"]
    assert release.stats["left_out"] == {"outputs": {"not_released": 1, "other_sample": 1}}
    verify_release(release.path)
    (run / "outputs.parquet").unlink()
    assert "outputs" not in build(shipped_config(), runs=tmp_path).manifest.configs


RAW = ("timestamp", "keywords", "engagement")


def test_a_release_tells_of_its_prompts_and_of_the_posts_behind_it(quickstart: Path) -> None:
    """What a run keeps of samples does not: there a forgotten post has nothing more to lose."""
    release = read_release(quickstart / "release")
    origins = release.manifest.provenance
    described = json.loads((quickstart / "stages/extract/digest.json").read_text("utf-8"))
    text = described["describe"]["prompt"]
    assert origins["extract"].prompt == hashlib.sha256(text.encode()).hexdigest()
    assert origins["splits"].prompt is None
    posts = {post["url"]: post for post in rows(quickstart, "collect")}
    samples = list(release.datasets["analysis"])
    primary = {one["id"]: posts[one["post_urls"][0]] for one in samples}
    platforms = Counter(post["platform"] for post in primary.values())
    measured = release.stats["measured"]["all"]
    assert (measured["samples"], measured["platforms"]) == (len(samples), dict(platforms))
    for name in RAW:
        assert all(one[name] == primary[one["id"]][name] for one in samples)
        assert sum(one[name] is not None for one in samples) > 40
        for stage in ("extract", "privacy", "splits"):
            assert {one[name] for one in rows(quickstart, stage)} == {None}


def test_a_second_process_is_kept_out(quickstart: Path) -> None:
    with (
        open_run(shipped_config(), quickstart.parent),
        pytest.raises(RunError, match="another process is working"),
    ):
        build(shipped_config(), runs=quickstart.parent)


BUILD = """
import sys, echo_hf
from echo_hf.engines.base import register
from tests.paced_plugin import PacedEngine
config, runs, log = sys.argv[1:]
register("paced")(lambda **_: PacedEngine(log, 0.03, recorded=True))
echo_hf.build(config, runs=runs)
"""


def paced(folder: Path) -> Path:
    """Here the engine takes no time; what it answers is logged in a folder."""
    register("paced")(lambda **_: PacedEngine(str(folder), recorded=True))
    folder.mkdir()
    return folder


def test_a_killed_build_goes_on_where_it_was(tmp_path: Path) -> None:
    config = config_over(tmp_path, bundled_posts(X)[:25], "paced")
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    (first := tmp_path / "first").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", BUILD, str(config), str(killed), str(first)], cwd=HERE.parent
    )
    deadline = time.monotonic() + 60
    while len(answered(first)) < 14 and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    with closing(sqlite3.connect(killed / "quickstart" / "answers.sqlite")) as connection:
        ((kept,),) = connection.execute("select sum(tries) from answers")
    second = paced(tmp_path / "second")
    build(config, runs=killed)
    every = paced(tmp_path / "every")
    build(config, runs=whole)
    assert 13 <= kept < len(answered(every))
    assert kept + len(answered(second)) == len(answered(every))
    for stage in STAGES:
        for part in ("kept", "rejects", "quarantine", "notices"):
            assert rows(killed / "quickstart", stage, part) == rows(
                whole / "quickstart", stage, part
            )


def test_an_empty_source_is_refused(tmp_path: Path) -> None:
    config = config_over(tmp_path, [], "rules", engines={"text": {"kind": "rules"}})
    with pytest.raises(SourceError, match=r"posts\.jsonl' holds no record"):
        build(config, runs=tmp_path / "runs")


def test_what_is_damaged_is_made_again(quickstart: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(quickstart, tmp_path / "quickstart"))
    damaged = [run / "release" / "manifest.json", *run.glob("release/text_to_image/*.parquet")]
    damaged += [one for one in run.glob("cache/roles-*.arrow") if one.stem.count("-") == 1]
    assert len(damaged) == 3
    for path in damaged:
        path.write_bytes(path.read_bytes()[:100])
    build(shipped_config(), runs=tmp_path)
    assert contents(run / "release") == contents(quickstart / "release")
    assert rows(run, "splits") == rows(quickstart, "splits")


def reading(folder: Path, sources: list[Any], posts: list[Post], **more: Any) -> Path:
    config = config_over(folder, posts, "recorded", **more)
    given = yaml.safe_load(config.read_text("utf-8"))
    config.write_text(yaml.safe_dump({**given, "posts": sources}), "utf-8")
    return config


def test_posts_without_a_sample_write_no_release(tmp_path: Path, quickstart: Path) -> None:
    """As when they are read as those of another source; and one that is there stays."""
    config = reading(tmp_path, [{"source": "x", "path": "posts.jsonl"}], bundled_posts()[:20])
    release = tmp_path / "runs" / "quickstart" / "release"
    shutil.copytree(quickstart / "release", release)
    before = contents(release)
    with pytest.raises(SourceError, match=r"no post in 20 records: 20 not_a_post in collect \("):
        run_until(config, "collect", runs=tmp_path / "runs")
    with pytest.raises(ReleaseError) as raised:
        build(config, runs=tmp_path / "runs")
    assert contents(release) == before
    said = "no post became a sample, so no release is written, and one that is there stays: "
    assert str(raised.value).startswith(f"{said}20 not_a_post in collect (")
    assert "--allow-empty writes one all the same" in str(raised.value)
    assert len(rows(tmp_path / "runs" / "quickstart", "collect", "rejects")) == 20


def test_samples_for_analysis_alone_are_no_benchmark(tmp_path: Path) -> None:
    """It says why, and keeps what it built; who wants the release all the same gets it."""
    config, runs, engine = config_over(tmp_path, POSTS), tmp_path / "runs", RecordedAsModel()
    engine.use()
    release, run = build(config, runs=runs).path, runs / "quickstart"
    before = contents(release)
    for path in run.glob("cache/*"):
        path.unlink()
    with closing(sqlite3.connect(run / "answers.sqlite")) as file, file:
        told = "update answers set digest = null, text = replace(text, 'Benchmark', 'Analysis')"
        file.execute(f"{told} where task = 'extract'")
    with pytest.raises(ReleaseError) as raised:
        build(config, runs=runs)
    assert contents(release) == before
    samples = rows(run, "splits")
    assert samples
    assert {tuple(one["splits"]) for one in samples} == {("analysis",)}
    said = f"no post became a sample of the benchmark, {len(samples)} are for analysis alone"
    assert str(raised.value).startswith(f"{said}, so no release is written")
    counts: Counter[tuple[str, str]] = Counter()
    for stage in STAGES:
        for part in ("rejects", "quarantine"):
            counts.update((one["_reason"], stage) for one in rows(run, stage, part))
    first, stage = max(counts, key=counts.__getitem__)
    assert f"{counts[first, stage]:,} {first} in {stage} (" in str(raised.value)
    heard = Heard()
    written = build(config, runs=runs, allow_empty=True, watch=heard)
    assert [len(written.datasets[name]) for name in ("image_to_image", "text_to_image")] == [0, 0]
    assert any(one.startswith(f"{said}: ") for one in heard.remarks)


def failing(folder: Path, url: str) -> Path:
    reader = {"kind": "openai", "model": "tiny", "base_url": url, "api_key_env": None}
    reader |= {"backoff_s": 0.01, "max_attempts": 1}
    return config_over(folder, bundled_posts()[:6], engines={"text": reader})


def test_a_dead_engine_stops_the_build(tmp_path: Path) -> None:
    url = closed_port()
    with pytest.raises(EngineError) as raised:
        build(failing(tmp_path, url), runs=tmp_path / "runs")
    cause = f"the connection to '{url}' failed: [Errno {errno.ECONNREFUSED}]"
    assert cause in str(raised.value)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "runs" / "quickstart" / "release").exists()


def test_an_engine_that_only_fails_is_quoted(tmp_path: Path) -> None:
    with running() as server:
        server.behave = lambda _: Answer(b"Bad Gateway", 502)
        config = failing(tmp_path, server.url)
        with pytest.raises(UnusableAnswersError, match=r"'relevance'.*'status 502: Bad Gateway'"):
            build(config, runs=tmp_path / "runs")
        with pytest.raises(ReleaseError) as raised:
            build(config, runs=tmp_path / "runs", keep_going=True)
    failed = re.search(r"in 'relevance' the engine failed on (\d+) rows", str(raised.value))
    assert failed
    assert int(failed[1]) == len(rows(tmp_path / "runs" / "quickstart", "relevance", "quarantine"))
    assert "'status 502: Bad Gateway'" in str(raised.value)


def test_a_model_that_only_chats_ends_the_build_and_is_asked_again_once_mended(
    tmp_path: Path,
) -> None:
    """What it answered well is never asked for twice, and an unchanged build asks nothing."""
    engine = {"kind": "openai", "model": "tiny", "api_key_env": None, "concurrency": 1}

    def called(*options: str) -> Result:
        known = ["build", str(config), "--runs", str(tmp_path / "runs")]
        return CliRunner().invoke(app, [*known, "--until", "relevance", *options])

    with running() as server:
        server.behave = lambda _: completion("I would keep this one.")
        engines = {"text": {**engine, "base_url": server.url}}
        config = config_over(tmp_path, bundled_posts()[:20], engines=engines)
        stopped = called()
        assert isinstance(stopped.exception, UnusableAnswersError)
        said = "stage 'relevance': none of 10 answers can be used, such as 'I would keep this one.'"
        assert said in str(stopped.exception)
        assert len(server.asked) == 10
        server.behave = lambda _: completion('{"note": "About it.", "score": 4}')
        mended = called()
        assert mended.exit_code == 0
        posts = len(server.asked) - 10 + 5  # of five, both answers were prose
        assert "5 answers cannot be used: --again asks anew" in mended.output
        assert called().exit_code == 0
        assert len(server.asked) == posts + 5
        assert called("--again").exit_code == 0
        assert len(server.asked) == posts + 10
        assert len({json.dumps(one.body) for one in server.asked[10:]}) == posts
        again = called("--again")
        assert again.exit_code == 0
        assert "cannot be used" not in again.output
        assert len(server.asked) == posts + 10
    assert not rows(tmp_path / "runs" / "quickstart", "relevance", "quarantine")


def test_a_trial_of_a_stage_asks_once_and_builds_nothing(tmp_path: Path) -> None:
    engine = {"kind": "openai", "model": "tiny", "api_key_env": None}

    def called(*options: str) -> Result:
        known = ["build", str(config), "--runs", str(tmp_path / "runs")]
        return CliRunner().invoke(app, [*known, *options], env={"COLUMNS": "200"})

    with running() as server:
        server.behave = lambda _: completion('Sure: {"note": "About it.", "score": 9}')
        engines = {"text": {**engine, "base_url": server.url}}
        config = config_over(tmp_path, bundled_posts()[:20], engines=engines)
        early = called("--try", "relevance")
        assert "run `echo-hf build` with --until collect on this config first" in str(
            early.exception
        )
        assert "stage 'threads' asks no model" in str(called("--try", "threads").exception)
        assert server.asked == []
        assert called("--until", "collect").exit_code == 0
        stages = tmp_path / "runs" / "quickstart" / "stages"
        before = sorted(stages.rglob("*"))
        done = called("--try", "relevance")
        assert done.exit_code == 0
        (asked,) = server.asked
    told = [one["content"] for one in asked.body["messages"]]
    assert {line for text in told for line in text.splitlines()} <= set(done.output.splitlines())
    assert "nothing, off_schema: score: Input should be less than or equal to 5" in done.output
    assert "no price known for tiny" in done.output
    assert sorted(stages.rglob("*")) == before
    assert not (tmp_path / "runs" / "quickstart" / "answers.sqlite").exists()


def test_a_missing_package_is_told_before_a_post_is_read(tmp_path: Path) -> None:
    engine = RecordedAsModel().use()
    config, runs = config_over(tmp_path, bundled_posts()[:5]), tmp_path / "runs"
    absent = register(KIND, extra="vllm", packages=("nobody_has_this",))
    absent(lambda **_: engine)
    with pytest.raises(MissingExtraError, match=r'pip install "echo-hf\[vllm\]"'):
        run_until(config, "relevance", runs=runs)
    assert not (runs / "quickstart" / "stages").exists()
    engine.use()
    run_until(config, "relevance", runs=runs)
    absent(lambda **_: engine)
    run_until(config, "relevance", runs=runs)


def test_what_cannot_fit_is_refused_before_a_post_is_read_or_calls_are_counted(
    tmp_path: Path,
) -> None:
    """Of engines that are asked: a guard's stage comes last."""
    guard = {"kind": "vllm", "model": "Qwen/Qwen2.5-VL-32B-Instruct", "gpu_memory_gib": 79.1}
    engines = {"reader": {"kind": "rules"}, "guard": guard}
    config = config_over(tmp_path, bundled_posts()[:6], engines=engines)
    for begin in (build, plan_build):
        with pytest.raises(
            EngineError, match=r"^engine 'guard' does not fit: weights 62\.3 GiB \+"
        ):
            begin(config, runs=tmp_path / "runs")
    assert not (tmp_path / "runs" / "quickstart" / "stages").exists()


@pytest.mark.slow
def test_other_answers_reach_what_follows(tmp_path: Path) -> None:
    config, runs = config_over(tmp_path, bundled_posts(X)[:20], "paced"), tmp_path / "runs"
    paced(tmp_path / "log")
    build(config, runs=runs)
    run = runs / "quickstart"
    assert rows(run, "threads")
    for path in run.glob("cache/relevance-*"):
        path.unlink()
    with closing(sqlite3.connect(run / "answers.sqlite")) as file, file:
        file.execute("update answers set text = '{\"score\": 1}' where task = 'relevance'")
    with pytest.raises(ReleaseError, match="no post became a sample"):
        build(config, runs=runs)
    assert rows(run, "threads") == rows(run, "splits") == []


def test_of_what_failed_the_release_tells_kinds_and_keys(tmp_path: Path) -> None:
    refused = Completion("I would rather not.", None, "refusal")
    RecordedAsModel(fails=lambda one: refused if one.task == "roles" else None).use()
    how = {"runs": tmp_path, "keep_going": True, "allow_empty": True}
    release = build(config_over(tmp_path, bundled_posts()[:25]), **how)
    told = json.loads((release.path / "stats.json").read_text("utf-8"))["failed"]
    waiting = {name: rows(release.path.parent, name, "quarantine") for name in STAGES}
    assert {name: sum(one["rows"] for one in by.values()) for name, by in told.items()} == {
        name: len(found) for name, found in waiting.items() if found
    }
    keys = sorted({row["_request"] for row in waiting["roles"]})
    count = len(waiting["roles"])
    assert told["roles"] == {"refused": {"rows": count, "requests": keys, "unlisted": 0}}
    texts = [path.read_bytes() for path in release.path.rglob("*.*") if path.suffix != ".parquet"]
    assert not any(b"rather not" in text for text in texts)


REPLY = {
    "url": f"{BOARD}wren_writes/status/9900316480399999999",
    "author": "wren_writes",
    "text": "that second one is perfect, the light is exactly right",
    "timestamp": "2026-03-09T09:00:00Z",
}
POSTS = bundled_posts()[:60]


def updated(folder: Path, posts: list[Post]) -> tuple[UpdateResult, RecordedAsModel]:
    """An update, which says before what it will ask."""
    engine, heard = RecordedAsModel().use(), Heard()
    done = update(config_over(folder, posts), runs=folder / "runs", watch=heard)
    asked = Counter(request.task for request in engine.asked)
    assert {name: calls for name, (calls, _) in heard.plans.items() if calls} == asked
    return done, engine


def samples(release: Release) -> dict[str, dict[str, Any]]:
    rows = release.datasets["analysis"].with_format("arrow")[:].to_pylist()
    return {row["id"]: row for row in rows}


def thread(posts: list[Post], root: str) -> set[str]:
    found = {root}
    while more := {p["url"] for p in posts if p.get("parent_url") in found} - found:
        found |= more
    return found


@pytest.fixture(scope="module")
def updated_once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, UpdateResult, int]:
    folder = tmp_path_factory.mktemp("first")
    done, engine = updated(folder, POSTS)
    return folder, done, len(engine.asked)


@pytest.fixture
def first(updated_once: tuple[Path, UpdateResult, int], tmp_path: Path) -> Release:
    shutil.copytree(updated_once[0], tmp_path, dirs_exist_ok=True)
    return read_release(tmp_path / "runs" / "quickstart" / "release")


def test_without_changes_nothing_is_asked_or_written(
    updated_once: tuple[Path, UpdateResult, int], tmp_path: Path, first: Release
) -> None:
    _, done, asked = updated_once
    assert (done.previous, done.changed, done.reused_answers) == (None, True, 0)
    assert done.calls_made == asked > 50
    run = tmp_path / "runs" / "quickstart"
    before = tables(run)
    done, engine = updated(tmp_path, POSTS)
    assert (done.previous, done.changed, done.calls_made, engine.asked) == (None, False, 0, [])
    assert tables(run) == before
    assert not (run / "previous").exists()
    assert not (run / "cache" / BACKUP_FOLDER).exists()


def test_other_counts_are_released_and_cost_nothing(tmp_path: Path, first: Release) -> None:
    before = samples(first)
    url = next(iter(before.values()))["post_urls"][0]
    posts = [
        {**post, "engagement": {"likes": 4321}} if post["url"] == url else post for post in POSTS
    ]
    done, engine = updated(tmp_path, posts)
    after = samples(done.release)
    assert (engine.asked, done.changed) == ([], True)
    changed = {name: row for name, row in after.items() if row != before[name]}
    assert changed
    for name, row in changed.items():
        assert (row["post_urls"][0], row["engagement"]["likes"]) == (url, 4321)
        assert {**row, "engagement": None} == {**before[name], "engagement": None}


def test_a_new_post_costs_its_thread_alone(tmp_path: Path, first: Release) -> None:
    before = samples(first)
    root = next(p["url"] for p in POSTS if len(thread(POSTS, p["url"])) > 2 and _of(before, p))
    done, engine = updated(tmp_path, [*POSTS, {**REPLY, "parent_url": root}])
    around = thread(POSTS, root) | {REPLY["url"]}
    assert engine.asked
    assert engine.sources() <= around
    assert done.calls_made == len(engine.asked)
    assert done.reused_answers > 50
    after = samples(done.release)
    untouched = {name for name, row in before.items() if around.isdisjoint(row["post_urls"])}
    assert len(untouched) > 10
    assert {name: after[name] for name in untouched} == {name: before[name] for name in untouched}
    assert set(before) <= set(after)


def test_the_release_before_is_kept_whole(tmp_path: Path, first: Release) -> None:
    """And both stay where an update is refused."""
    run = tmp_path / "runs" / "quickstart"
    previous, before, whole = run / "previous", set(samples(first)), contents(first.path)
    done, _ = updated(tmp_path, POSTS[:-20])
    assert done.previous == previous
    verify_release(previous)
    assert contents(previous) == whole
    assert before - set(samples(done.release))
    now = contents(run / "release")
    with pytest.raises(ReleaseError, match="no post became a sample"):
        updated(tmp_path, [{"url": "https://board.example/1", "text": "hello"}])
    assert (contents(run / "release"), contents(previous)) == (now, whole)
    assert not (run / "cache" / BACKUP_FOLDER).exists()


def test_after_a_kill_the_release_before_is_still_known(tmp_path: Path, first: Release) -> None:
    run = tmp_path / "runs" / "quickstart"
    whole = contents(first.path)
    shutil.copytree(first.path, run / "cache" / BACKUP_FOLDER)
    build(config_over(tmp_path, POSTS[:-20]), runs=tmp_path / "runs")
    done, engine = updated(tmp_path, POSTS[:-20])
    assert (done.previous, done.changed, engine.asked) == (run / "previous", True, [])
    assert contents(run / "previous") == whole


def test_answers_are_carried_only_while_they_are_asked_for(tmp_path: Path, first: Release) -> None:
    config = config_over(tmp_path, POSTS)
    RecordedAsModel().use()
    carrying = update(config, runs=tmp_path / "runs", with_responses=True)
    assert carrying.release.manifest.configs["responses"].rows > 50
    after = update(config, runs=tmp_path / "runs")
    assert "responses" not in after.release.manifest.configs
    assert not (tmp_path / "runs" / "quickstart" / "responses.parquet").exists()
    assert after.changed


def test_each_file_says_for_itself_what_found_its_posts(tmp_path: Path) -> None:
    text = "Prompt: a red paper boat on calm water, made with Lumen Image"
    posts = [{"url": f"https://a.example/{n}", "text": text + "!" * n} for n in range(3)]
    files = {"told": [{**posts[0], "keywords": ["lumen"]}, posts[1]], "untold": posts[2:]}
    for name, own in files.items():
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, own)))
    sources = [{"source": "jsonl", "path": f"{name}.jsonl"} for name in files]
    engines = {"text": {"kind": "rules"}}
    config = reading(tmp_path, sources, [], engines=engines)
    run_until(config, "threads", runs=tmp_path)
    run = tmp_path / "quickstart"
    kept = {row["root_url"] for row in rows(run, "threads")}
    assert kept == {posts[0]["url"], posts[2]["url"]}
    rejects = {row["url"]: row["_reason"] for row in rows(run, "threads", "rejects")}
    assert rejects == {posts[1]["url"]: "not_asked"}


def _of(samples: dict[str, dict[str, Any]], post: Post) -> bool:
    return any(post["url"] in row["post_urls"] for row in samples.values())


ASKED = tuple(filter(asks_model, STAGES))


@pytest.fixture
def engine() -> RecordedAsModel:
    return RecordedAsModel().use()


def test_the_next_stage_is_counted_and_the_rest_are_as_in_the_bundled_corpus(
    tmp_path: Path, engine: RecordedAsModel
) -> None:
    """The shares in the list are those of the corpus, so that here they come to what is asked."""
    config, runs = config_over(tmp_path, bundled_posts(), KIND), tmp_path / "runs"
    posts, before = plan_build(config, runs=runs)
    assert (posts, [one.stage for one in before]) == (len(bundled_posts()), [*ASKED])
    assert not any(one.counted for one in before)
    assert (engine.asked, runs.exists()) == ([], False)

    run_until(config, "collect", runs=runs)
    (first, *rest) = plan_build(config, runs=runs)[1]
    assert (first.counted, [one.counted for one in rest]) == (True, [False] * (len(ASKED) - 1))
    assert engine.asked == []

    build(config, runs=runs)
    asked = Counter(request.task for request in engine.asked)
    assert first.todo == asked["relevance"]
    shares = read_price_list()["stages"].keys() & asked
    assert {one.stage for one in before if one.todo is not None} == shares
    for one in before:
        assert one.todo is None or one.todo == pytest.approx(asked[one.stage], rel=0.05)
    assert plan_build(config, runs=runs) == (posts, ())


def test_what_is_stored_is_not_asked_again(tmp_path: Path, engine: RecordedAsModel) -> None:
    config, runs = config_over(tmp_path, bundled_posts()[:20], KIND), tmp_path / "runs"
    run_until(config, "relevance", runs=runs)
    made = len(engine.asked)
    (lost,) = runs.glob("*/stages/relevance")
    shutil.rmtree(lost)
    first = plan_build(config, runs=runs)[1][0]
    assert (first.stage, first.todo, first.stored) == ("relevance", 0, made)
    assert first.expected == NO_WORK


def test_the_command_says_what_it_would_ask_and_makes_nothing(
    tmp_path: Path, engine: RecordedAsModel
) -> None:
    config = config_over(tmp_path, bundled_posts(), KIND)
    told = ["build", str(config), "--runs", str(tmp_path / "runs"), "--dry-run"]
    done = CliRunner().invoke(app, told)
    assert done.exit_code == 0, done.output
    for said in ("121 posts", "relevance", "about 48", "nothing was asked: leave out --dry-run"):
        assert said in done.output
    assert not (tmp_path / "runs").exists()
    refused = CliRunner().invoke(app, [*told, "--until", "threads"])
    assert "--dry-run asks nobody" in str(refused.exception)


LISTED = {"kind": "openai", "model": "gpt-4.1-mini", "api_key_env": "HOME"}
SHARES = {name: share for name, share in read_price_list()["stages"].items() if name != "as_of"}


@pytest.mark.parametrize("number", [1, 16])
def test_a_dry_run_has_the_price_of_each_way_of_asking(tmp_path: Path, number: int) -> None:
    """gpt-4.1-mini takes 0.40 dollars a million prompt tokens and 1.60 of answers; a batch half."""
    stages = {"relevance": {"posts_per_request": number}}
    file = config_over(tmp_path, bundled_posts(), engines={"text": LISTED}, stages=stages)
    count, planned = plan_build(file, runs=tmp_path / "runs")
    posts = count * SHARES["relevance"]["calls"]
    by_stage = {stage.stage: stage for stage in planned}
    for name, share in SHARES.items():
        stage, calls = by_stage[name], count * share["calls"]
        tokens = calls * (share["text"] + share["images"] * 1280)
        usd = (tokens * 0.40 + calls * share["answer"] * 1.60) / 1e6
        plain, packed, batched, both = (way and way.likely for way in stage.ways.values())
        assert plain == pytest.approx(usd, rel=0.05)
        assert batched == pytest.approx(plain / 2)
        assert both == pytest.approx(packed / 2)
        if name != "relevance":
            assert (stage.todo, packed) == (round(calls), plain)
            continue
        assert packed < plain / 2
        assert stage.todo == (round(posts) if number == 1 else 3)
        own = packed if number > 1 else plain
        assert stage.expected.usd
        assert stage.expected.usd.likely == pytest.approx(own)
    shown = CliRunner().invoke(app, ["build", str(file), "--runs", str(tmp_path), "--dry-run"])
    totals = [
        sum(way.likely for stage in planned if (way := stage.ways[name]))
        for name in ("plain", "packed", "batched", "both")
    ]
    words = ("one by one", "16 posts a request", "in batches (up to 24 h a batch)", "both")
    line = ", ".join(f"${usd:.2f} {way}" for usd, way in zip(totals, words, strict=True))
    assert f"by way of asking: {line}" in " ".join(shown.output.split())


def test_ways_of_counted_posts_are_what_is_sent(tmp_path: Path) -> None:
    plans = []
    for number in (1, 16):
        stages = {"relevance": {"posts_per_request": number}}
        file = config_over(tmp_path, bundled_posts(), engines={"text": LISTED}, stages=stages)
        run_until(file, "collect", runs=tmp_path / "runs")
        plans.append(plan_build(file, runs=tmp_path / "runs")[1][0])
    alone, packed = plans
    assert (alone.counted, alone.todo, packed.todo) == (True, 48, 3)
    assert alone.ways == packed.ways
    assert packed.prompt_tokens is not None
    assert alone.prompt_tokens is not None
    assert packed.prompt_tokens < alone.prompt_tokens / 3
    assert (alone.expected.usd, packed.expected.usd) == (alone.ways["plain"], alone.ways["packed"])


def test_recorded_answers_cost_nothing(tmp_path: Path) -> None:
    config = config_over(tmp_path, bundled_posts()[:5], "recorded")
    assert {one.expected for one in plan_build(config, runs=tmp_path)[1]} == {NO_WORK}


def stages_of(folder: Path) -> dict[str, bytes]:
    """What stages make of posts in no order, some of them twice."""
    folder.mkdir()
    mixed = [*bundled_posts(), *bundled_posts()[:10]]
    random.Random(0).shuffle(mixed)
    run_until(config_over(folder, mixed, "recorded"), "extract", runs=folder)
    made = folder / "quickstart" / "stages"
    files = [*made.rglob("*.parquet"), *made.rglob("digest.json")]
    return {str(path.relative_to(made)): path.read_bytes() for path in files}


def test_small_parts_give_the_bytes_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build does not depend on how many rows are in memory at once."""
    whole = stages_of(tmp_path / "whole")
    monkeypatch.setattr(Threads, "part_posts", 20)
    monkeypatch.setattr(declared, "ROWS_PER_TAKE", 8)
    monkeypatch.setattr(stages, "BATCH_ROWS", 9)
    monkeypatch.setattr(importlib.import_module("echo_hf._infra.atomic"), "ROWS_PER_BATCH", 7)
    parted = stages_of(tmp_path / "parted")
    assert len(whole) == 25
    assert [name for name in whole if whole[name] != parted[name]] == []
