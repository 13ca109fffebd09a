"""Parts of a benchmark that know nothing of each other, merged, are the whole."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from PIL import Image
from typer.testing import CliRunner

from echo_hf.builder.build import build, open_run, run_until, select_shard
from echo_hf.builder.review import decide
from echo_hf.builder.shards import build_shard, make_shard_config, merge
from echo_hf.builder.takedown import forget
from echo_hf.builder.update import explain_changes
from echo_hf.cli import app
from echo_hf.collect.crawl_ledger import CRAWL_LEDGER_FILE as CRAWLED
from echo_hf.collect.fetch import FETCH_LEDGER_FILE, FetchLedger, FetchResult, Unfetched
from echo_hf.collect.takedown import STAND_IN, TOMBSTONES_FILE, add_tombstones, hash_url
from echo_hf.config.loading import parse_config
from echo_hf.engines.base import Completion, Request
from echo_hf.errors import ConfigError, EchoError, EngineError, RunError, StoreError
from echo_hf.images.store import ImageStore
from tests.collect.platforms.crawling import Serve, config_of, crawled
from tests.collect.platforms.simulated import World
from tests.errors_for_tests import said_by
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
WHOLE, SHARDS = "quickstart", 2
Row = dict[str, Any]
CONFIG = {
    "name": "lumen",
    "target": {"name": "Lumen", "developer": "Northlight", "released": "2026-03-02"},
    "posts": [{"source": "quickstart"}],
    "engines": {"main": {"kind": "rules"}},
}
POSTS = bundled_posts()[:50]  # every stage has something to ask
NEW_POST = {**POSTS[0], "url": NEW, "text": "A new one, of a heron", "pictures": []}


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
    """Some bundled ones, copies of one image in two threads, and images named by address."""
    (lake,) = (one for one in bundled_posts() if one["url"] == LAKE)
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
    own = {"url": f"{BOARD}first", "pictures": [{"path": "pictures/lake95.jpg"}]}
    first = {**lake, **own, "text": "mine, of a lake"}
    named = {"pictures": [{"url": FOX}, {"url": LOST}], "parent_url": LAKE, "text": "and a fox"}
    every = POSTS if lake in POSTS else [*POSTS, lake]
    return [*every, *copies, first, {"url": f"{LAKE}9", **named}]


def fetched(run: Path) -> None:
    """As if the images named by address had been asked for, so that no test asks for them."""
    digest = ImageStore(run / "pictures").put(encoded(Image.new("RGB", (64, 64), "orange"), "PNG"))
    with FetchLedger(run / FETCH_LEDGER_FILE) as ledger:
        ledger.record(FetchResult(FOX, digest))
        ledger.record(FetchResult(LOST, None, Unfetched.GONE, "404"))


def stored(run: Path) -> dict[str, list[Any]]:
    with closing(sqlite3.connect(run / "answers.sqlite")) as file:
        return {
            table: file.execute(f"select * from {table}").fetchall()  # noqa: S608
            for table in ("answers", "failures", "models", "sources")
        }


def build_shards(config: Path, runs: Path, numbers: Iterable[int], count: int) -> list[Path]:
    for number in numbers:
        fetched(runs / f"{WHOLE}.shard-{number}-of-{count}")
        build_shard(config, f"{number}/{count}", runs=runs)
    return shards_in(runs)


def shards_in(runs: Path) -> list[Path]:
    return sorted(runs.glob("*.shard-*"))


def changed(shard: Path, **sections: Any) -> None:
    config = yaml.safe_load((shard / "config.yaml").read_text())
    (shard / "config.yaml").write_text(yaml.safe_dump({**config, **sections}))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole, and shards of the same posts, one of them run twice; with their calls."""
    folder = tmp_path_factory.mktemp("shards")
    config = config_over(folder, posts(folder))
    shutil.copytree(IMAGES, folder / "pictures", dirs_exist_ok=True)
    engine = model()
    fetched(folder / "whole" / WHOLE)
    build(config, runs=folder / "whole")
    calls, keys = [len(engine.asked)], {request.messages for request in engine.asked}
    engine.asked.clear()
    build_shards(config, folder / "runs", (1, 0, 1), SHARDS)
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
    every = shards_in(built / "runs")
    merge([*reversed(every), every[0]], runs=built / "merged")
    assert tables(built / "merged" / WHOLE) == whole
    assert len(every) == SHARDS
    assert len(linked) == 3  # the copies are linked, one to another thread
    # A post is asked for in each shard that has one of the same words.
    assert calls <= in_shards < 1.1 * calls
    assert stored(built / "merged" / WHOLE) == stored(built / "whole" / WHOLE)
    engine = model()
    build(built / "config.yaml", runs=built / "merged")
    assert (engine.asked, tables(built / "merged" / WHOLE)) == ([], whole)


def test_the_whole_goes_beside_its_parts_or_where_it_is_said(copied: Path) -> None:
    no_engine()
    first, *others = shards_in(copied / "runs")
    assert merge([first, *others]).path.parent == copied / "runs" / WHOLE
    moved = shutil.copytree(first, copied / "apart" / first.name)
    with pytest.raises(RunError, match="several folders of runs"):
        merge([moved, *others])
    merge([moved, *others], runs=copied / "chosen")


@pytest.mark.slow
def test_shards_of_a_whole_that_is_there_ask_for_what_is_new(copied: Path) -> None:
    config = config_over(copied, [*posts(copied), NEW_POST])
    engine = model()
    for number in range(2):
        build_shard(config, f"{number}/2", runs=copied / "whole")

    assert engine.sources() == {NEW}
    merge(shards_in(copied / "whole"), runs=copied / "whole")
    fetched(copied / "alone" / WHOLE)
    build(config, runs=copied / "alone")
    assert tables(copied / "whole" / WHOLE) == tables(copied / "alone" / WHOLE)


def test_what_no_shard_has_answered_is_counted_and_asked_by_a_build(copied: Path) -> None:
    """Shards on a cluster that is gone, from the posts of before, where these stood."""
    config = config_over(copied, [*posts(copied), NEW_POST])
    shards, runs = shards_in(copied / "runs"), copied / "runs"
    cluster = {"kind": "ray", "address": "nowhere.example:1"}
    for one in shards:
        changed(
            one, runner=cluster, posts=[{"source": "jsonl", "path": str(copied / "posts.jsonl")}]
        )
    done = CliRunner().invoke(app, ["merge", *map(str, shards), "--runs", str(runs), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["not_answered"] == 1
    left = yaml.safe_load((runs / WHOLE / "config.yaml").read_text())["runner"]
    assert {**left, **cluster} == left
    engine = model()
    build(config, runs=runs)
    assert engine.sources() == {NEW}


@pytest.mark.slow
def test_a_shard_that_stopped_goes_on_and_is_not_merged_before(built: Path, tmp_path: Path) -> None:
    config, runs = config_over(tmp_path, posts(tmp_path)), tmp_path / "runs"
    shutil.copytree(IMAGES, tmp_path / "pictures", dirs_exist_ok=True)
    engine = model(stops=[30])
    with pytest.raises(EngineError):
        build_shards(config, runs, range(2), 2)
    engine.asked.pop()
    done = build_shards(config, runs, [1], 2)
    with pytest.raises(RunError, match=r"shard-0-of-2' has not ended: run `echo-hf build .* 0/2"):
        merge(done, runs=runs)
    build_shard(done[0] / "config.yaml", "0/2", runs=runs)
    calls, _ = json.loads((built / "calls.json").read_text())
    assert calls <= len(engine.asked) < 1.1 * calls
    merge(done, runs=runs)
    assert tables(runs / WHOLE) == tables(built / "whole" / WHOLE)


def test_what_was_forgotten_stays_so(copied: Path) -> None:
    config, runs = copied / "config.yaml", copied / "runs"
    shards = shards_in(runs)
    forget([LAKE], config, runs=runs)
    merge(shards, runs=runs)
    text = next(one for one in bundled_posts() if one["url"] == LAKE)["text"]
    files = [file for file in (runs / WHOLE).rglob("*") if file.is_file()]
    assert [str(one) for one in files if text[:30].encode() in one.read_bytes()] == []
    add_tombstones(shards[0] / TOMBSTONES_FILE, [hash_url(f"{BOARD}first")])
    with pytest.raises(RunError, match=r"1 posts are forgotten in .*0-of-2' and not in"):
        merge(shards, runs=runs)


@pytest.mark.parametrize(
    ("part", "name", "said"),
    [
        *((part, "lumen", f"--shard {part!r}: expected I/N, I from 0 to N - 1, such as 0/4")
          for part in ("4/4", "0/0", "-1/4", "1", "0/4/4", "٠/٤", "")),
        ("0/99999", "lumen", "--shard: shard.count is 99999: "),
        ("0/4", "n" * 90, "--shard: name"),
    ],
)  # fmt: skip
def test_a_part_that_there_is_not_is_one_line(part: str, name: str, said: str) -> None:
    config = parse_config({**CONFIG, "name": name}, "c.yaml")
    assert said_by(ConfigError, make_shard_config, config, part).startswith(said)


def of_another_model(shard: Path) -> None:
    record = shard / "stages" / "roles" / "digest.json"
    record.write_text(record.read_text().replace('"model": "one"', '"model": "two"'))


def of_a_stranger(shard: Path) -> None:
    """Answers that a view makes up for ever, which would fill the disk."""
    with closing(sqlite3.connect(shard / "answers.sqlite")) as store:
        (columns,) = store.execute(
            "select group_concat(name) from pragma_table_info('answers')"
        ).fetchone()
        values = ",".join("n" if name == "key" else "0" for name in columns.split(","))
        more = (
            f"with recursive n as (select 1 n union all select n + 1 from n) select {values} from n"  # noqa: S608
        )
        store.executescript(f"drop table answers; create view answers ({columns}) as {more}")


def link_of_a_stranger(shard: Path) -> None:
    (shard.parent / "mine.sqlite").write_bytes((shard / "answers.sqlite").read_bytes())
    (shard / "answers.sqlite").unlink()
    (shard / "answers.sqlite").symlink_to(shard.parent / "mine.sqlite")


REFUSED: dict[str, Callable[[Path], object]] = {
    "answers.sqlite' has the view 'answers', expected the tables of a store of": of_a_stranger,
    "cannot use the store of answers": link_of_a_stranger,
    "part 1 of 2 is missing: build it by `echo-hf build CONFIG --shard 1/2`": shutil.rmtree,
    "shard-1-of-2' has another 'splits' in its config than ": lambda shard: changed(
        shard, splits={"seed": 9}
    ),
    "by different engines 'text': build one of them again": of_another_model,
    "shard-1-of-2' has not ended": lambda shard: (shard / "shard.done").unlink(),
    "answers.sqlite' is being written, or was when": lambda shard: (
        shard / "answers.sqlite-wal"
    ).write_bytes(b"\0" * 32),
}


@pytest.mark.parametrize("said", REFUSED)
def test_what_cannot_be_merged_is_one_line(built: Path, tmp_path: Path, said: str) -> None:
    runs = Path(shutil.copytree(built / "runs", tmp_path / "runs"))
    REFUSED[said](runs / f"{WHOLE}.shard-1-of-2")
    assert said in said_by(EchoError, merge, shards_in(runs), runs=runs)


def test_nothing_of_a_finished_shard_would_run_again(built: Path, tmp_path: Path) -> None:
    name = f"{WHOLE}.shard-1-of-2"
    shard = Path(shutil.copytree(built / "runs" / name, tmp_path / name))
    with open_run(shard / "config.yaml", tmp_path, writes=False) as run:
        assert explain_changes(run) == []
    (shard / "stages" / "safety" / "digest.json").unlink()
    with open_run(shard / "config.yaml", tmp_path, writes=False) as run:
        assert [change.stage for change in explain_changes(run)] == ["safety"]


def test_a_whole_is_no_shard_and_a_shard_no_whole(built: Path, tmp_path: Path) -> None:
    runs, shard = built / "runs", built / "runs" / f"{WHOLE}.shard-1-of-2" / "config.yaml"
    with pytest.raises(RunError, match=r"quickstart' is no shard: expected the folders"):
        merge([built / "whole" / WHOLE], runs=tmp_path)
    with pytest.raises(RunError, match=r"1-of-2' is a part of 'quickstart' and has no release"):
        build(shard, runs=runs)
    with pytest.raises(RunError, match="has no samples to review"):
        decide(shard, keep=["any"], runs=runs)


def test_shards_read_what_was_crawled_for_the_whole(serve: Serve, tmp_path: Path) -> None:
    service, config = serve(World.of(60, seed=3)), config_of()
    whole = tmp_path / config.name
    crawled(whole, config)
    run_until(config, "collect", runs=tmp_path)
    asked = service.requests
    found = [build_shard(config, f"{n}/2", runs=tmp_path)[0].root for n in (0, 1)]
    parts = [rows(root, "collect") for root in found]
    assert all(parts)
    every = [one for part in parts for one in part]
    assert sorted(every, key=str) == sorted(rows(whole, "collect"), key=str)
    assert service.requests == asked
    (whole / f"{CRAWLED}-wal").write_bytes(b"\0" * 32)
    with pytest.raises(StoreError, match=r"is being written, or was when a process was killed"):
        build_shard(config, "0/2", runs=tmp_path)


NAMES = [f"https://board.example/{n}" for n in range(40)]


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(9))])
def test_shards_are_a_partition_into_whole_trees(tmp_path: Path, seed: int) -> None:
    """With posts twice, circles, and parents that nobody has; a line without a post is in each."""
    rng = random.Random(seed)
    given = []
    for name in rng.choices(NAMES, k=60):
        above = {"parent_url": rng.choice([*NAMES, "https://board.example/unknown"])}
        given.append({"url": name, "text": "a", **(above if rng.random() < 0.6 else {})})
    file = tmp_path / "posts.jsonl"
    file.write_text("\n".join(map(json.dumps, given)) + "\nno post\n")
    posts = [{"source": "jsonl", "path": str(file)}]
    config = parse_config({**CONFIG, "posts": posts}, "c.yaml")
    run_until(config, "collect", runs=tmp_path)
    whole, parts = rows(tmp_path / "lumen", "collect"), []
    for number in range(SHARDS):
        shard = make_shard_config(config, f"{number}/{SHARDS}")
        (left := tmp_path / shard.name / "cache" / "all").mkdir(parents=True)  # of a killed run
        run_until(shard, "collect", runs=tmp_path)
        assert not left.exists()
        parts.append(rows(tmp_path / shard.name, "collect"))
    assert sorted((row for part in parts for row in part), key=str) == sorted(whole, key=str)
    part_of = {row["url"]: number for number, part in enumerate(parts) for row in part}
    named: dict[str, set[int]] = {}
    for row in whole:
        for url in {row["url"], row["parent_url"]} - {None}:
            named.setdefault(url, set()).add(part_of[row["url"]])
    assert all(len(numbers) == 1 for numbers in named.values())


def test_a_forgotten_root_leaves_its_tree_in_its_shard() -> None:
    parts = [select_shard(url, 64) for url in NAMES]
    assert parts == [select_shard(STAND_IN + hash_url(url), 64) for url in NAMES]
    assert len(set(parts)) > 4
    assert select_shard("urn:sha256:..", 64) in range(64)


def test_on_the_command_line_a_part_says_how_to_merge(tmp_path: Path) -> None:
    def echo_hf(*words: str) -> str:
        done = CliRunner().invoke(app, list(words), catch_exceptions=False)
        assert done.exit_code == 0
        return done.stdout

    config, runs = str(config_over(tmp_path, POSTS[:12], "recorded")), ["--runs", str(tmp_path)]
    _, command = echo_hf("build", config, "--shard", "0/1", *runs).split(": echo-hf ")
    verb, every, *rest = command.split()
    assert "release: " in echo_hf(verb, *map(str, Path("/").glob(every[1:])), *rest)
    with pytest.raises(ConfigError, match="--shard goes with --runs and --runner"):
        echo_hf("build", config, "--shard", "0/2", "--offline")
    with pytest.raises(ConfigError, match="unknown runner 'slurm'"):
        echo_hf("build", config, "--shard", "0/2", "--runner", "slurm", *runs)
