"""Parts of a benchmark that know nothing of each other, merged, are the whole."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from typer.testing import CliRunner

from echo_hf.apps.events import forget
from echo_hf.builder.build import build, opened, run_until, shard_of
from echo_hf.builder.review import decide
from echo_hf.builder.shards import as_shard, build_shard, merge
from echo_hf.builder.update import why
from echo_hf.cli import app
from echo_hf.collect.crawl_ledger import LEDGER as CRAWLED
from echo_hf.collect.fetch import LEDGER, FetchLedger, FetchResult
from echo_hf.collect.takedown import STAND_IN, hashed
from echo_hf.config.loading import parse_config
from echo_hf.config.systems import shipped_config
from echo_hf.engines.base import Completion, Request
from echo_hf.errors import ConfigError, EchoError, EngineError, RunError, StoreError
from echo_hf.images.store import ImageStore
from echo_hf.reasons import Unfetched
from tests.collect.platforms.crawling import Serve, config_of, crawled
from tests.collect.platforms.simulated import World
from tests.images_for_tests import encoded
from tests.recorded_as_model import (
    BOARD,
    IMAGES,
    RecordedAsModel,
    bundled_posts,
    config_over,
    no_engine,
    rows,
    tables,
)

LAKE = f"{BOARD}hana_hikes/status/9900316480787844284"
NEW = f"{BOARD}new"
OWN = {NEW, f"{BOARD}first", *(f"{LAKE}{n}" for n in (9, 85, 90))}
FOX, LOST = "https://pictures.example/fox.png", "https://pictures.example/lost.png"
WHOLE = "quickstart"
Row = dict[str, Any]
CONFIG = {
    "name": "lumen",
    "target": {"name": "Lumen", "developer": "Northlight", "released": "2026-03-02"},
    "posts": [{"source": "quickstart"}],
    "engines": {"main": {"kind": "rules"}},
}


def model(stops: list[int] | None = None) -> RecordedAsModel:
    """Knows the bundled posts, finds others relevant and without a task, and may stop once."""
    given = {"relevance": '{"score": 5, "note": null}', "extract": '{"samples": []}'}

    def answer(asked: Request) -> Completion | None:
        if stops and len(engine.asked) == stops[0]:
            raise EngineError(f"the node is gone after {stops.pop()} calls")
        return Completion(given[asked.task]) if asked.row in OWN else None

    engine = RecordedAsModel(fails=answer)
    return engine.use()


def posts(folder: Path) -> list[Row]:
    """The bundled ones, with copies of one image in two threads, and images named by address."""
    every = bundled_posts()
    (lake,) = (one for one in every if one["url"] == LAKE)
    (folder / "pictures").mkdir(exist_ok=True)
    shown = Image.open(IMAGES.parent / lake["pictures"][0]["path"]).convert("RGB")
    for quality in (95, 90, 85):
        data = encoded(shown, "JPEG", quality=quality)
        (folder / "pictures" / f"lake{quality}.jpg").write_bytes(data)
    reply = {"parent_url": LAKE, "created_at": "2026-04-01T00:00:00Z", "text": ""}
    copies = [
        {**reply, "url": f"{LAKE}{n}", "pictures": [{"path": f"pictures/lake{n}.jpg"}]}
        for n in (90, 85)
    ]
    first = {
        **lake,
        "url": f"{BOARD}first",
        "text": "mine, of a lake",
        "pictures": [{"path": "pictures/lake95.jpg"}],
    }
    named = {"pictures": [{"url": FOX}, {"url": LOST}], "parent_url": LAKE, "text": "and a fox"}
    return [*every, *copies, first, {"url": f"{LAKE}9", **named}]


def fetched(run: Path) -> None:
    """As if the images named by address had been asked for, so that no test asks for them."""
    digest = ImageStore(run / "pictures").put(encoded(Image.new("RGB", (64, 64), "orange"), "PNG"))
    with FetchLedger(run / LEDGER) as ledger:
        ledger.record(FetchResult(FOX, digest))
        ledger.record(FetchResult(LOST, None, Unfetched.GONE, "404"))


def stored(run: Path) -> dict[str, list[Any]]:
    with closing(sqlite3.connect(run / "answers.sqlite")) as file:
        return {
            table: file.execute(f"select * from {table}").fetchall()  # noqa: S608
            for table in ("answers", "failures", "models", "sources")
        }


def shards_of(config: Path, runs: Path, numbers: Iterable[int], count: int = 4) -> list[Path]:
    for number in numbers:
        fetched(runs / f"{WHOLE}.shard-{number}-of-{count}")
        build_shard(config, f"{number}/{count}", runs=runs)
    return sorted(runs.glob("*.shard-*"))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole, and four shards of the same posts, one of them run twice; with their calls."""
    folder = tmp_path_factory.mktemp("shards")
    (folder / "pictures").mkdir()
    shutil.copytree(IMAGES, folder / "pictures", dirs_exist_ok=True)
    config = config_over(folder, posts(folder))
    engine = model()
    fetched(folder / "whole" / WHOLE)
    build(config, runs=folder / "whole")
    calls, keys = [len(engine.asked)], {request.messages for request in engine.asked}
    engine.asked.clear()
    shards_of(config, folder / "runs", (2, 0, 3, 1, 2))
    assert {request.messages for request in engine.asked} == keys
    (folder / "calls.json").write_text(json.dumps([*calls, len(engine.asked)]))
    return folder


@pytest.fixture
def copied(built: Path, tmp_path: Path) -> Path:
    shutil.copytree(built, tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_merged_in_any_order_they_are_the_whole_and_no_model_is_asked(built: Path) -> None:
    no_engine()
    whole = tables(built / "whole" / WHOLE)
    linked = {
        one["same_picture_of"]
        for row in rows(built / "whole" / WHOLE, "download")
        for post in row["posts"]
        for one in post["pictures"]
    }
    calls, in_shards = json.loads((built / "calls.json").read_text())
    every = sorted((built / "runs").glob("*.shard-*"))
    for seed in range(2):
        random.Random(seed).shuffle(every)
        merge([*every, every[0]], runs=built / "merged")
        assert tables(built / "merged" / WHOLE) == whole
    assert len(every) == 4
    assert len(linked) == 3  # the copies are linked, one to another thread
    # A post is asked for in each shard that has one of the same words.
    assert calls <= in_shards < 1.1 * calls
    assert stored(built / "merged" / WHOLE) == stored(built / "whole" / WHOLE)
    engine = model()
    build(built / "config.yaml", runs=built / "merged")
    assert (engine.asked, tables(built / "merged" / WHOLE)) == ([], whole)


def test_shards_of_a_whole_that_is_there_ask_for_what_is_new(copied: Path) -> None:
    new = {
        **bundled_posts()[0],
        "url": NEW,
        "text": "A new one, of a heron",
        "pictures": [],
    }
    config = config_over(copied, [*posts(copied), new])
    engine = model()
    for number in range(2):
        build_shard(config, f"{number}/2", runs=copied / "whole")

    assert engine.sources() == {NEW}
    merge(sorted((copied / "whole").glob("*.shard-*")), runs=copied / "whole")
    fetched(copied / "alone" / WHOLE)
    build(config, runs=copied / "alone")
    assert tables(copied / "whole" / WHOLE) == tables(copied / "alone" / WHOLE)


def test_what_no_shard_has_answered_is_counted_and_asked_by_a_build(copied: Path) -> None:
    new = {**bundled_posts()[0], "url": NEW, "text": "A new one, of a heron"}
    config = config_over(copied, [*posts(copied), new])
    shards = [str(one) for one in sorted((copied / "runs").glob("*.shard-*"))]
    cluster = {"kind": "ray", "address": "nowhere.example:1"}
    for one in shards:  # built from the posts of before, where these stood, on nodes that are gone
        of_shard = yaml.safe_load((Path(one) / "config.yaml").read_text())
        of_shard["runner"] = cluster
        of_shard["posts"][0]["path"] = str(copied / "posts.jsonl")
        (Path(one) / "config.yaml").write_text(yaml.safe_dump(of_shard))
    done = CliRunner().invoke(app, ["merge", *shards, "--runs", str(copied / "runs"), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["not_answered"] == 1
    left = yaml.safe_load((copied / "runs" / WHOLE / "config.yaml").read_text())["runner"]
    assert {**left, **cluster} == left
    engine = model()
    build(config, runs=copied / "runs")
    assert engine.sources() == {NEW}


def test_a_shard_that_stopped_goes_on_and_is_not_merged_before(tmp_path: Path) -> None:
    config = config_over(tmp_path, bundled_posts())
    whole = model()
    build(config, runs=tmp_path / "whole")

    engine = model(stops=[60])
    with pytest.raises(EngineError):
        shards_of(config, tmp_path, range(2), 2)
    engine.asked.pop()
    done = shards_of(config, tmp_path, [1], 2)
    with pytest.raises(RunError, match=r"shard-0-of-2' has not ended: run `echo-hf build .* 0/2"):
        merge(done, runs=tmp_path)
    build_shard(done[0] / "config.yaml", "0/2", runs=tmp_path)

    assert len(engine.asked) == len(whole.asked)
    merge(done, runs=tmp_path)
    assert tables(tmp_path / WHOLE) == tables(tmp_path / "whole" / WHOLE)


def test_what_was_forgotten_stays_so(copied: Path) -> None:
    config, runs = copied / "config.yaml", copied / "runs"
    shards = sorted(runs.glob("*.shard-*"))
    forget([LAKE], config, runs=runs)
    merge(shards, runs=runs)
    text = next(one for one in bundled_posts() if one["url"] == LAKE)["text"]
    files = [file for file in (runs / WHOLE).rglob("*") if file.is_file()]
    assert [str(one) for one in files if text[:30].encode() in one.read_bytes()] == []
    forget([f"{BOARD}first"], shards[0] / "config.yaml", runs=runs)
    build_shard(shards[0] / "config.yaml", "0/4", runs=runs)
    with pytest.raises(RunError, match=r"1 posts are forgotten in .*0-of-4' and not in"):
        merge(shards, runs=runs)


@pytest.mark.parametrize("part", ["4/4", "0/0", "-1/4", "1", "x/y", "0/4/4", "٠/٤", ""])
def test_a_part_that_there_is_not_is_one_line(part: str) -> None:
    with pytest.raises(ConfigError) as told:
        as_shard(parse_config(CONFIG, "c.yaml"), part)
    said = f"--shard {part!r}: expected I/N, I from 0 to N - 1, such as 0/4"
    assert str(told.value) == said


def test_parts_without_number_are_one_line() -> None:
    with pytest.raises(ConfigError, match=r"^--shard: shard.count is 99999: .*10000$"):
        as_shard(parse_config(CONFIG, "c.yaml"), "0/99999")


def test_a_name_with_no_room_for_a_part_is_one_line() -> None:
    with pytest.raises(ConfigError, match=r"^--shard: name.*at most 96 letters"):
        as_shard(parse_config({**CONFIG, "name": "n" * 90}, "c.yaml"), "0/4")


def of_another_config(shard: Path) -> None:
    config = yaml.safe_load((shard / "config.yaml").read_text())
    config["splits"]["seed"] = 9
    (shard / "config.yaml").write_text(yaml.safe_dump(config))


def of_another_model(shard: Path) -> None:
    record = shard / "stages" / "roles" / "digest.json"
    record.write_text(record.read_text().replace('"model": "one"', '"model": "two"'))


REFUSED = {
    r"part 2 of 4 is missing: build it by `echo-hf build CONFIG --shard 2/4`": shutil.rmtree,
    r"shard-2-of-4' has another 'splits' in its config than .*shard-0-of-4'": of_another_config,
    r"by different engines 'text': model is 'one' and 'two'": of_another_model,
    r"shard-2-of-4' has not ended": lambda shard: (shard / "shard.done").unlink(),
    r"answers.sqlite' is being written, or was when": lambda shard: (
        shard / "answers.sqlite-wal"
    ).write_bytes(b"\0" * 32),
}


@pytest.mark.parametrize("said", REFUSED)
def test_what_cannot_be_merged_is_one_line(copied: Path, said: str) -> None:
    REFUSED[said](copied / "runs" / f"{WHOLE}.shard-2-of-4")
    with pytest.raises(EchoError, match=said) as told:
        merge(sorted((copied / "runs").glob("*.shard-*")), runs=copied / "runs")
    assert "\n" not in str(told.value)


def test_where_a_shard_was_computed_changes_nothing_of_the_merge(copied: Path) -> None:
    """Ray is not needed to merge; what a build asks for afterwards goes where the parts went."""
    first, *others = sorted((copied / "runs").glob("*.shard-*"))
    config = yaml.safe_load((first / "config.yaml").read_text())
    config["runner"] = {"kind": "ray", "address": "127.0.0.1:9", "gpus_per_actor": 0}
    (first / "config.yaml").write_text(yaml.safe_dump(config))
    merge([*others, first], runs=copied / "runs")
    assert tables(copied / "runs" / WHOLE) == tables(copied / "whole" / WHOLE)
    kept = yaml.safe_load((copied / "runs" / WHOLE / "config.yaml").read_text())
    assert kept["runner"]["address"] == "127.0.0.1:9"


def test_nothing_of_a_finished_shard_would_run_again(copied: Path) -> None:
    shard = copied / "runs" / f"{WHOLE}.shard-2-of-4"
    with opened(shard / "config.yaml", copied / "runs", writes=False) as run:
        assert why(run) == []
    (shard / "stages" / "safety" / "digest.json").unlink()
    with opened(shard / "config.yaml", copied / "runs", writes=False) as run:
        assert [change.stage for change in why(run)] == ["safety"]


def test_a_whole_is_no_shard_and_a_shard_no_whole(copied: Path) -> None:
    with pytest.raises(RunError, match=r"quickstart' is no shard: expected the folders"):
        merge([copied / "whole" / WHOLE], runs=copied)
    shard = copied / "runs" / f"{WHOLE}.shard-2-of-4"
    with pytest.raises(RunError, match=r"2-of-4' is a part of 'quickstart' and has no release"):
        build(shard / "config.yaml", runs=copied / "runs")
    with pytest.raises(RunError, match="has no samples to review"):
        decide(shard / "config.yaml", keep=["any"], runs=copied / "runs")


def test_shards_read_what_was_crawled_for_the_whole(serve: Serve, tmp_path: Path) -> None:
    service, config = serve(World.of(60, seed=3)), config_of()
    whole = tmp_path / config.name
    crawled(whole, config)
    run_until(config, "collect", runs=tmp_path)
    asked = service.requests
    found = [build_shard(config, f"{n}/2", runs=tmp_path)[0].root for n in (0, 1)]
    (found[0] / "cache" / "all").mkdir()  # as a killed run leaves it
    build_shard(config, "0/2", runs=tmp_path)
    parts = [rows(root, "collect") for root in found]
    assert all(parts)
    every = [one for part in parts for one in part]
    assert sorted(every, key=str) == sorted(rows(whole, "collect"), key=str)
    assert service.requests == asked
    assert [list(root.rglob("all")) for root in found] == [[], []]
    (whole / f"{CRAWLED}-wal").write_bytes(b"\0" * 32)
    with pytest.raises(StoreError, match=r"is being written, or was when a process was killed"):
        build_shard(config, "0/2", runs=tmp_path)


NAMES = [f"https://board.example/{n}" for n in range(9)]
POSTS = st.lists(
    st.fixed_dictionaries(
        {"url": st.sampled_from(NAMES), "text": st.sampled_from(("a", "b c", "d"))},
        optional={
            "parent_url": st.sampled_from([*NAMES, "https://board.example/unknown"]),
            "quoted_url": st.sampled_from(NAMES),
            "created_at": st.sampled_from(("2026-03-02T00:00:00Z", "2026-03-03T00:00:00Z")),
        },
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=12, deadline=None)
@given(POSTS, st.integers(2, 4))
def test_shards_are_a_partition_into_whole_trees(given_posts: list[Row], count: int) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "posts.jsonl"
        file.write_text("\n".join(map(json.dumps, given_posts)) + "\nno post\n")
        posts = [{"source": "jsonl", "path": str(file)}]
        config = parse_config({**CONFIG, "posts": posts}, "c.yaml")
        run_until(config, "collect", runs=folder)
        whole = rows(Path(folder) / "lumen", "collect")
        parts = []
        for number in range(count):
            shard = as_shard(config, f"{number}/{count}")
            run_until(shard, "collect", runs=folder)
            parts.append(rows(Path(folder) / shard.name, "collect"))
    assert sorted((row for part in parts for row in part), key=str) == sorted(whole, key=str)
    part_of = {row["url"]: number for number, part in enumerate(parts) for row in part}
    named: dict[str, set[int]] = {}
    for row in whole:
        for url in {row["url"], row["parent_url"]} - {None}:
            named.setdefault(url, set()).add(part_of[row["url"]])
    assert all(len(numbers) == 1 for numbers in named.values())


def test_a_forgotten_root_leaves_its_tree_in_its_shard() -> None:
    parts = [shard_of(url, 64) for url in NAMES]
    assert parts == [shard_of(STAND_IN + hashed(url), 64) for url in NAMES]
    assert len(set(parts)) > 4
    assert shard_of("urn:sha256:..", 64) in range(64)


def test_on_the_command_line_a_part_says_how_to_merge(tmp_path: Path) -> None:
    def echo_hf(*words: str) -> str:
        done = CliRunner().invoke(app, list(words), catch_exceptions=False)
        assert done.exit_code == 0
        return done.stdout

    config = str(shipped_config())
    runs = ["--runs", str(tmp_path)]
    said = [echo_hf("build", config, "--shard", f"{number}/2", *runs) for number in range(2)]
    last = said[0].splitlines()[-1]
    assert last == said[1].splitlines()[-1]
    _, command = last.split(": echo-hf ")
    verb, every, *rest = command.split()
    assert "release: " in echo_hf(verb, *map(str, Path("/").glob(every[1:])), *rest)
    build(shipped_config(), runs=tmp_path / "whole")
    assert tables(tmp_path / WHOLE) == tables(tmp_path / "whole" / WHOLE)
    with pytest.raises(ConfigError, match="--shard goes with --runs and --runner"):
        echo_hf("build", config, "--shard", "0/2", "--offline")
    with pytest.raises(ConfigError, match="unknown runner 'slurm'"):
        echo_hf("build", config, "--shard", "0/2", "--runner", "slurm", *runs)
