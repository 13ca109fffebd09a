"""Whole builds: the bundled corpus, the accounting, a killed run, a run repeated."""

from __future__ import annotations

import errno
import hashlib
import json
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
from datasets import Image, load_dataset

from echo_hf.builder.build import build, opened, run_until
from echo_hf.builder.steps import STAGES
from echo_hf.config.systems import shipped_config
from echo_hf.engines.base import Completion, register
from echo_hf.errors import MissingExtraError, ReleaseError, RunError, SourceError
from echo_hf.hub.release import read_release, verify_release
from echo_hf.tables import OUTPUTS, Table
from tests.engines.openai.loopback_server import Answer, closed_port, running
from tests.progress_for_tests import Heard
from tests.recorded_as_model import KIND, RecordedAsModel, bundled_posts, config_over

HERE = Path(__file__).resolve().parents[1]


def rows(run: Path, stage: str, part: str = "kept") -> list[dict[str, Any]]:
    """Rows of a part of a stage's result."""
    return list(pq.read_table(run / "stages" / stage / f"{part}.parquet").to_pylist())


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder of the bundled corpus."""
    runs = tmp_path_factory.mktemp("runs")
    build(shipped_config(), runs=runs)
    return runs / "quickstart"


def test_the_release_loads_as_a_user_would_load_it(quickstart: Path) -> None:
    """`load_dataset` on the release folder gives the samples with their images."""
    loaded = load_dataset(str(quickstart / "release"), "text_to_image", split="test")
    drawn = [row["id"] for row in rows(quickstart, "splits") if "text_to_image" in row["splits"]]

    assert sorted(loaded["id"]) == sorted(drawn)
    assert len(drawn) >= 8
    assert all(image.size[0] >= 200 for row in loaded for image in row["output_images"])


def test_no_stage_changes_an_image(quickstart: Path) -> None:
    """The bytes in the release are the bytes beside the posts, but for what was cut out of some."""
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


def test_every_post_is_accounted_for(quickstart: Path) -> None:
    """A post is context of a kept thread or in the rejects; none is in both or in neither."""
    collected = {row["url"] for row in rows(quickstart, "collect")}
    context = {post["url"] for row in rows(quickstart, "threads") for post in row["posts"]}
    rejected = {row["url"] for row in rows(quickstart, "threads", "rejects")}
    unknown = {
        post["url"]
        for row in rows(quickstart, "threads")
        for post in row["posts"]
        if post["missing"] == "not_fetched"
    }

    assert collected == (context - unknown) | rejected
    assert not context & rejected


def test_every_thread_and_sample_is_accounted_for(quickstart: Path) -> None:
    """A thread gives samples or stands aside with a reason; a sample is released or rejected."""
    home = {
        post["url"]: row["root_url"] for row in rows(quickstart, "threads") for post in row["posts"]
    }
    roots = {row["root_url"] for row in rows(quickstart, "threads")}
    sampled = {home[row["post_urls"][0]] for row in rows(quickstart, "extract")}
    aside = {
        row["root_url"]
        for part in ("rejects", "quarantine")
        for row in rows(quickstart, "extract", part)
    }
    samples = [row["id"] for row in rows(quickstart, "roles")]
    placed = [row["id"] for part in ("kept", "rejects") for row in rows(quickstart, "splits", part)]

    assert roots == sampled | aside
    assert not sampled & aside
    assert sorted(row["id"] for row in rows(quickstart, "feedback")) == sorted(samples)
    assert sorted(samples) == sorted(placed)
    assert len(set(samples)) == len(samples)


def test_every_image_of_a_sample_is_accounted_for(quickstart: Path) -> None:
    """An image that extraction gave a sample is input, output or screenshot, or under a notice."""
    looked_at = {
        digest
        for row in rows(quickstart, "extract")
        if row["quality"] != "Trash"
        for digest in row["output_images"]
    }
    waiting = {
        digest for row in rows(quickstart, "roles", "quarantine") for digest in row["output_images"]
    }
    placed = {
        digest
        for row in rows(quickstart, "roles")
        for digest in [*row["input_images"], *row["output_images"], row["screenshot"]]
    }
    noted = {row["_detail"] for row in rows(quickstart, "roles", "notices")}

    assert looked_at <= placed | waiting | noted
    assert not waiting & placed


def test_images_and_words_belong_to_one_sample(quickstart: Path) -> None:
    """A post's image is in one sample at most, and its words are feedback of one at most.

    Completions of one template may share its input; here none has one.
    """
    samples = rows(quickstart, "feedback")
    urls = {row["url"]: row for row in rows(quickstart, "collect")}
    shown = [digest for row in samples for digest in row["input_images"] + row["output_images"]]
    said = [one["post_url"] for row in samples for one in row["community_feedback"]]

    assert len(shown) == len(set(shown))
    assert len(said) == len(set(said))
    for row in samples:
        of_posts = {one["sha256"] for url in row["post_urls"] for one in urls[url]["pictures"]}
        assert row["is_screenshot"] or set(row["output_images"]) <= of_posts
        assert row["screenshot"] is None or row["screenshot"] in of_posts


def test_an_unmodified_prompt_stands_in_its_thread(quickstart: Path) -> None:
    """Where `prompt_modified` is false every three words stand in the posts, but at one join."""
    home = {post["url"]: row for row in rows(quickstart, "threads") for post in row["posts"]}
    for sample in rows(quickstart, "extract"):
        posts = home[sample["post_urls"][0]]["posts"]
        texts = [post["text"] or "" for post in posts]
        texts += [one["alt_text"] or "" for post in posts for one in post["pictures"]]
        written = "\n".join(" ".join(text.split()) for text in texts)
        words = sample["prompt"].split()
        runs = [" ".join(words[at : at + 3]) for at in range(max(len(words) - 2, 1))]
        strange = sum(run not in written for run in runs)
        assert (strange <= 2) is not sample["prompt_modified"]


def test_a_repeated_build_changes_nothing(quickstart: Path) -> None:
    """An unchanged config rewrites no file of the stages or the release."""

    def stamps() -> dict[Path, int]:
        files = [*quickstart.glob("stages/**/*"), *quickstart.glob("release/**/*")]
        return {path: path.stat().st_mtime_ns for path in files if path.is_file()}

    before = stamps()
    build(shipped_config(), runs=quickstart.parent)

    assert stamps() == before


def test_the_scores_of_a_run_go_into_its_release(quickstart: Path, tmp_path: Path) -> None:
    """Outputs and results beside the stages are released; rows of other samples are counted."""
    run = Path(shutil.copytree(quickstart, tmp_path / "quickstart"))
    known = rows(run, "splits")[0]
    about = [known["id"], known["id"], "gone"]
    made = {
        "sample_id": about,
        "system": ["a", "b", "a"],
        "sample_digest": [known["sample_digest"], "older", "x"],
        "image": [known["output_images"][0], None, None],
    }
    pq.write_table(as_table(OUTPUTS, made), run / "outputs.parquet")
    (run / "results.json").write_text('{"results": []}', "utf-8")
    release = build(shipped_config(), runs=tmp_path)

    assert {"outputs", "results"} <= set(release.manifest.configs)
    assert release.datasets["outputs"]["system"][:] == ["a"]
    assert release.stats["left_out"] == {"outputs": {"not_released": 1, "other_sample": 1}}
    verify_release(release.path)
    (run / "outputs.parquet").unlink()
    assert "outputs" not in build(shipped_config(), runs=tmp_path).manifest.configs


def as_table(table: Table, columns: dict[str, list[Any]]) -> pa.Table:
    """Rows of a declared table; columns that are not given are null."""
    count = len(next(iter(columns.values())))
    full = {name: columns.get(name, [None] * count) for name in table.columns}
    return pa.table(full, schema=table.schema)


def test_the_release_knows_its_prompts_and_what_it_leans_towards(quickstart: Path) -> None:
    """Each stage that asks has the digest of its instructions, each sample is measured."""
    release = read_release(quickstart / "release")
    prompts = {name: origin.prompt for name, origin in release.manifest.provenance.items()}
    described = json.loads((quickstart / "stages/extract/digest.json").read_text("utf-8"))
    text = described["describe"]["prompt"]

    assert prompts["extract"] == hashlib.sha256(text.encode()).hexdigest()
    assert prompts["splits"] is None
    measured = release.stats["measured"]
    assert measured["all"]["samples"] == len(rows(quickstart, "splits"))
    posted = {post["url"]: post for post in rows(quickstart, "collect")}
    platforms = [posted[one["post_urls"][0]]["platform"] for one in rows(quickstart, "splits")]
    assert measured["all"]["platforms"] == dict(Counter(platforms).most_common())


def test_two_builds_are_equal(quickstart: Path, tmp_path: Path) -> None:
    """The same config in another folder gives byte for byte the same release."""
    build(shipped_config(), runs=tmp_path)

    def digests(run: Path) -> dict[str, str]:
        files = [path for path in (run / "release").rglob("*") if path.is_file()]
        return {
            str(path.relative_to(run)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in files
        }

    assert digests(tmp_path / "quickstart") == digests(quickstart)


def test_a_second_process_is_kept_out(quickstart: Path) -> None:
    """While one build works in a folder another is refused in one line."""
    with (
        opened(shipped_config(), quickstart.parent),
        pytest.raises(RunError, match="another process is working"),
    ):
        build(shipped_config(), runs=quickstart.parent)


def test_a_stage_can_be_run_alone(tmp_path: Path) -> None:
    """`run_until` runs the stages before, and leaves those behind."""
    results = run_until(shipped_config(), "threads", runs=tmp_path)

    assert [result.stats.stage for result in results] == ["collect", "relevance", "threads"]
    assert not (tmp_path / "quickstart" / "stages" / "extract").exists()


def slow_build(config: Path, runs: Path, log: Path, seconds: float) -> subprocess.Popen[bytes]:
    """Starts a build with an engine that takes this long for a request."""
    script = HERE / "slow_build.py"
    arguments = [str(config), str(runs), str(log), str(seconds)]
    return subprocess.Popen([sys.executable, str(script), *arguments])


def asked(log: Path) -> int:
    """Number of requests that an engine was asked."""
    return len(log.read_text().splitlines()) if log.exists() else 0


def answers_given(path: Path) -> int:
    """Number of answers that came for the requests of a store, second tries counted."""
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("select sum(tries) from answers").fetchone()[0])


@pytest.mark.parametrize("requests_before", [4, 22])
def test_a_killed_build_goes_on_where_it_was(tmp_path: Path, requests_before: int) -> None:
    """After kill -9 the same command gives the rows of a whole run, and asks nothing twice.

    The first answer cannot be read: it is asked for again, by whichever process comes to it.
    """
    config = tmp_path / "config.yaml"
    text = shipped_config().read_text().replace("kind: recorded", "kind: slow")
    config.write_text(text, "utf-8")
    logs = {name: tmp_path / f"{name}.log" for name in ("first", "second", "whole")}

    process = slow_build(config, tmp_path / "killed", logs["first"], 0.03)
    deadline = time.monotonic() + 60
    while asked(logs["first"]) < requests_before and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    answered = answers_given(tmp_path / "killed" / "quickstart" / "answers.sqlite")

    assert slow_build(config, tmp_path / "killed", logs["second"], 0).wait() == 0
    assert slow_build(config, tmp_path / "whole", logs["whole"], 0).wait() == 0

    assert requests_before - 1 <= answered < asked(logs["whole"])
    assert answered + asked(logs["second"]) == asked(logs["whole"])
    for stage in STAGES:
        for part in ("kept", "rejects", "quarantine", "notices"):
            killed = rows(tmp_path / "killed" / "quickstart", stage, part)
            assert killed == rows(tmp_path / "whole" / "quickstart", stage, part)


def test_an_empty_source_is_refused(tmp_path: Path) -> None:
    """Posts files without a record are a mistake, and the message names them."""
    (tmp_path / "posts.jsonl").write_text("\n\n")
    config = tmp_path / "config.yaml"
    config.write_text(
        json.dumps(
            {
                "name": "empty",
                "target": {"name": "A", "developer": "B", "released": "2026-01-01"},
                "posts": [{"source": "jsonl", "path": "posts.jsonl"}],
                "engines": {"text": {"kind": "rules"}},
            }
        )
    )

    with pytest.raises(SourceError, match=r"posts\.jsonl' holds no record"):
        build(config, runs=tmp_path / "runs")


@pytest.mark.parametrize(
    "damage",
    [
        "text_to_image/test-00000-of-00001.parquet",
        "README.md",
        "manifest.json",
    ],
)
def test_a_damaged_release_is_written_again(tmp_path: Path, damage: str) -> None:
    """A build does not call a release good whose files are missing or cut."""
    build(shipped_config(), runs=tmp_path)
    path = tmp_path / "quickstart" / "release" / damage
    whole = path.read_bytes()
    path.write_bytes(whole[:100])
    build(shipped_config(), runs=tmp_path)

    assert path.read_bytes() == whole


def set_posts(config: Path, *, source: str = "jsonl", size: int | None = None) -> Path:
    """A config of the bundled posts, read by this reader, cut after so many characters."""
    corpus = HERE.parent / "echo_hf" / "quickstart"
    if not (config.parent / "pictures").exists():
        shutil.copytree(corpus / "pictures", config.parent / "pictures")
    posts = (corpus / "posts.jsonl").read_text("utf-8")[:size]
    (config.parent / "posts.jsonl").write_text(posts, "utf-8")
    text = shipped_config().read_text("utf-8")
    config.write_text(
        text.replace("- source: quickstart", f"- {{source: {source}, path: posts.jsonl}}"), "utf-8"
    )
    return config


def contents(folder: Path) -> dict[Path, bytes]:
    """The bytes of every file below a folder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("source", "size"), [("snscrape", None), ("x", None), ("jsonl", 60)])
def test_posts_without_a_sample_write_no_release(
    tmp_path: Path, quickstart: Path, source: str, size: int | None
) -> None:
    """A wrong reader or a cut file is a mistake: nothing is written, and what is there stays."""
    config, runs = set_posts(tmp_path / "config.yaml", source=source, size=size), tmp_path / "runs"
    with pytest.raises(ReleaseError, match=r"no post became a sample, .*--allow-empty writes"):
        build(config, runs=runs)
    assert not (runs / "quickstart" / "release").exists()

    shutil.copytree(quickstart / "release", runs / "quickstart" / "release")
    before = contents(runs / "quickstart" / "release")
    with pytest.raises(ReleaseError, match="one that is there stays"):
        build(config, runs=runs)
    assert contents(runs / "quickstart" / "release") == before


def test_an_empty_release_is_written_on_demand(tmp_path: Path) -> None:
    """At first, and again after that."""
    config = set_posts(tmp_path / "config.yaml", size=60)
    for _ in range(2):
        release = build(config, runs=tmp_path / "runs", allow_empty=True)
        assert {entry.rows for entry in release.manifest.configs.values()} == {0}


def test_a_dead_engine_stops_the_build(tmp_path: Path) -> None:
    """One line with the address and the cause, exit code 2, and no release."""
    url = closed_port()
    options = {"model": "tiny", "base_url": url, "api_key_env": None, "backoff_s": 0.01}
    engines = {"text": {"kind": "openai", **options}}
    config = config_over(tmp_path, bundled_posts(), engines=engines)
    command = [sys.executable, "-m", "echo_hf", "build", config.name]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert f"the connection to '{url}' failed: [Errno {errno.ECONNREFUSED}]" in done.stderr
    assert not (tmp_path / "runs" / "quickstart" / "release").exists()


def test_an_engine_that_only_fails_is_quoted(tmp_path: Path) -> None:
    """It is there, and answers nobody: what it said explains why there is no sample."""
    with running() as server:
        server.behave = lambda _: Answer(b"Bad Gateway", 502)
        options = {"model": "tiny", "base_url": server.url, "api_key_env": None}
        text = {"kind": "openai", **options, "max_attempts": 1}
        config = config_over(tmp_path, bundled_posts()[:6], engines={"text": text})
        with pytest.raises(ReleaseError) as raised:
            build(config, runs=tmp_path / "runs")
    failed = re.search(r"in 'relevance' the engine failed on (\d+) rows", str(raised.value))
    assert failed
    assert int(failed[1]) == len(rows(tmp_path / "runs" / "quickstart", "relevance", "quarantine"))
    assert "'status 502: Bad Gateway'" in str(raised.value)


def test_a_missing_package_is_told_before_a_post_is_read(tmp_path: Path) -> None:
    """And not where stored answers are enough."""
    engine = RecordedAsModel().use()
    config, runs = config_over(tmp_path, bundled_posts()), tmp_path / "runs"
    absent = register(KIND, extra="vllm", packages=("nobody_has_this",))
    absent(lambda **_: engine)
    with pytest.raises(MissingExtraError, match=r'pip install "echo-hf\[vllm\]"'):
        build(config, runs=runs)
    assert not (runs / "quickstart" / "stages").exists()

    engine.use()
    build(config, runs=runs)
    absent(lambda **_: engine)
    build(config, runs=runs)


@pytest.mark.parametrize("stage", STAGES[1:])
@pytest.mark.parametrize("size", [0, 1000])
def test_a_cut_cache_file_is_computed_again(tmp_path: Path, stage: str, size: int) -> None:
    """The cache is safe to delete, and to damage."""
    build(shipped_config(), runs=tmp_path)
    run = tmp_path / "quickstart"
    before = rows(run, "splits")
    (cached,) = (run / "cache").glob(f"{stage}-*.arrow")
    with cached.open("r+b") as file:
        file.truncate(size)
    build(shipped_config(), runs=tmp_path)

    assert rows(run, "splits") == before


def test_other_answers_reach_what_follows(tmp_path: Path) -> None:
    """When a model answers the same requests otherwise, no later stage keeps its old result."""
    config = tmp_path / "config.yaml"
    config.write_text(shipped_config().read_text().replace("kind: recorded", "kind: slow"), "utf-8")
    runs, log = tmp_path / "runs", tmp_path / "log"
    assert slow_build(config, runs, log, 0).wait() == 0
    run = runs / "quickstart"
    assert rows(run, "threads")
    for path in run.glob("cache/relevance-*"):
        path.unlink()
    connection = sqlite3.connect(run / "answers.sqlite")
    with connection:
        connection.execute(
            "update answers set text = '{\"score\": 1}' where task = 'relevance'",
        )
    connection.close()
    assert slow_build(config, runs, log, 0).wait() == 1  # without a sample there is no release

    assert rows(run, "threads") == []
    assert rows(run, "splits") == []


def test_each_file_says_for_itself_what_found_its_posts(tmp_path: Path) -> None:
    """Beside a file with search terms, all posts of one without any are scored."""
    text = "Prompt: a red paper boat on calm water, made with Lumen Image"
    told = [{"url": "https://example.org/1", "text": text, "keywords": ["lumen"]}]
    told.append({"url": "https://example.org/2", "text": text + "!"})
    untold = [{"url": "https://example.org/3", "text": text + "?"}]
    for name, posts in (("told", told), ("untold", untold)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(post) + "\n" for post in posts))
    config = tmp_path / "config.yaml"
    target = {"name": "Lumen Image", "developer": "Northlight", "released": "2026-03-02"}
    sources = [{"source": "jsonl", "path": f"{name}.jsonl"} for name in ("told", "untold")]
    engines = {"text": {"kind": "rules"}}
    config.write_text(
        json.dumps({"name": "two", "target": target, "posts": sources, "engines": engines})
    )
    run_until(config, "threads", runs=tmp_path)
    kept = {row["root_url"] for row in rows(tmp_path / "two", "threads")}
    rejected = {row["url"]: row["_reason"] for row in rows(tmp_path / "two", "threads", "rejects")}

    assert kept == {"https://example.org/1", "https://example.org/3"}
    assert rejected == {"https://example.org/2": "not_asked"}


def test_a_first_run_says_what_it_will_ask(tmp_path: Path) -> None:
    """The plan of each stage is told before its calls, also where nothing was ever answered."""
    engine = RecordedAsModel().use()

    heard = Heard()
    build(config_over(tmp_path, bundled_posts()), runs=tmp_path / "runs", watch=heard)
    asked = Counter(request.task for request in engine.asked)
    assert {name: calls for name, (calls, _) in heard.plans.items()} == dict(asked)


def test_of_what_failed_the_release_tells_kinds_and_keys(tmp_path: Path) -> None:
    """Those that stand in quarantine, stage by stage; a word of them is in no file of it."""
    refused = Completion("I would rather not.", None, "refusal")
    RecordedAsModel(fails=lambda one: refused if one.task == "roles" else None).use()
    release = build(config_over(tmp_path, bundled_posts()), runs=tmp_path)
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
