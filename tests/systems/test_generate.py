"""Systems draw the tasks of a benchmark; what is settled is never asked for again."""

from __future__ import annotations

import base64
import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import Mock

import datasets
import pyarrow.parquet as pq
import pytest
import yaml
from PIL import Image
from typer.testing import CliRunner

from echo_hf._infra.http_errors import REFUSAL_CODES
from echo_hf.builder.build import build
from echo_hf.builder.takedown import forget
from echo_hf.cli import app
from echo_hf.errors import ConfigError, GenerationError, RunError
from echo_hf.hub.release import read_release
from echo_hf.images.store import ImageStore
from echo_hf.systems.base import GenerationResult, OutcomeStage, Retired
from echo_hf.systems.benchmark import load_evaluation
from echo_hf.systems.generate import GenerationSummary, generate, generate_outputs
from echo_hf.systems.google_images import NO_IMAGE_REASONS, REFUSAL_REASONS
from echo_hf.systems.journal import SETTLED, Journal, NotTabled, lock_systems
from echo_hf.systems.registry import register
from echo_hf.tables import OUTPUTS, Outcome
from tests.engines.openai.loopback_server import Answer, Asked, LoopbackServer, completion
from tests.hub.quickstart_release import built
from tests.markdown_for_tests import titled_files
from tests.package.blocks import blocks
from tests.stages_for_tests import ROOT
from tests.systems.drawing_for_tests import KEY, image_answer
from tests.systems.drawing_for_tests import config as hosted_config
from tests.systems.runs_for_tests import (
    Acting,
    benchmark,
    drawn_for,
    evaluation,
    known,
    png,
    sample,
    sha,
    system,
    written,
)

EVERY = ["e0", "e1", "t0", "t1", "t2"]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return benchmark(tmp_path_factory.mktemp("small"))


@pytest.fixture
def acting() -> Iterator[Acting]:
    one = Acting()
    with known(one):
        yield one


def table(root: Path) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = pq.read_table(root / "measured" / "outputs.parquet").to_pylist()
    return rows


def test_each_task_is_drawn_and_written_down(tmp_path: Path, release: Path, acting: Acting) -> None:
    made = generate(evaluation(release), runs=tmp_path)
    assert sorted(acting.asked) == EVERY
    assert acting.entered == ["in", "out"]
    path = tmp_path / "measured" / "outputs.parquet"
    outcomes = {"mine": {Outcome.OK: 5}}
    assert made == GenerationSummary(path, made.plans, outcomes, cost_usd=2.5, left_out={})
    assert made.path is not None
    assert pq.read_schema(made.path).equals(OUTPUTS.schema)
    rows = pq.read_table(made.path).to_pylist()
    assert [row["sample_id"] for row in rows] == EVERY
    for row in rows:
        assert row["sample_digest"] == sha(row["sample_id"].encode())
        assert row["image"] == sha(png(row["sample_id"]))
        assert (row["system"], row["outcome"], row["stage"]) == ("mine", "ok", None)
        assert (row["seed"], row["cost_usd"]) == (7, 0.5)
        made_by = json.loads(row["provenance"])
        assert made_by["system"] == acting.signature()
        assert (made_by["attempts"], made_by["split"][-8:]) == (1, "to_image")
    images = ImageStore(tmp_path / "measured" / "pictures")
    assert images.open(rows[0]["image"]) == png("e0")


def test_a_change_of_settings_is_never_scored_as_a_blend(
    tmp_path: Path, release: Path, acting: Acting
) -> None:
    """What a retired model never drew with takes nothing away."""
    generate(evaluation(release), runs=tmp_path)
    acting.gone = Retired("retired in May")
    made = generate(evaluation(release, system(seed=1)), runs=tmp_path)
    assert (made.outcomes, made.not_tabled) == ({"mine": {"ok": 5}}, {})
    assert [row["sample_id"] for row in table(tmp_path)] == EVERY
    acting.gone = None
    made = generate(evaluation(release, system(seed=1)), runs=tmp_path, limit=1)
    assert made.outcomes == {"mine": {"ok": 2}}
    assert made.not_tabled == {"mine": {NotTabled.OTHER_SETTINGS: 3}}
    assert [row["sample_id"] for row in table(tmp_path)] == ["e0", "t0"]


def test_a_limit_holds_for_each_split(tmp_path: Path, release: Path, acting: Acting) -> None:
    generate(evaluation(release), runs=tmp_path, limit=1)
    assert sorted(acting.asked) == ["e0", "t0"]
    generate(evaluation(release), runs=tmp_path)
    assert Counter(acting.asked) == Counter(EVERY)
    with pytest.raises(ConfigError, match="limit is 0: expected 1 or more"):
        generate(evaluation(release), runs=tmp_path, limit=0)


def test_a_dry_run_asks_nobody_and_writes_nothing(
    tmp_path: Path, release: Path, acting: Acting, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = system(price={"usd_per_image": 0.25, "as_of": "2026-01-01"})
    acting.gone = Retired("nobody should ask")
    made = generate(evaluation(release, config), runs=tmp_path / "runs", dry_run=True)
    (plan,) = made.plans
    assert (len(plan.todo), plan.cost_usd, plan.expected.seconds) == (5, 1.25, None)
    assert (made.path, acting.asked, acting.entered) == (None, [], [])
    assert not (tmp_path / "runs").exists()
    acting.gone = None
    monkeypatch.setattr("echo_hf.hub.release.MAX_MEMORY_BYTES", 0)
    generate(evaluation(release, config), runs=tmp_path / "runs")
    # A large release is read through the run's own cache, which goes when posts are forgotten.
    assert not (tmp_path / "cache").exists()
    assert list((tmp_path / "runs" / "measured" / "cache").rglob("*.arrow"))


def test_only_the_systems_that_are_named(tmp_path: Path, release: Path) -> None:
    config = evaluation(release, system("first"), system("second"))
    systems = {name: Acting() for name in ("first", "second")}
    with known(**systems):
        made = generate(config, runs=tmp_path, systems=["first", "first"], limit=1)
        assert list(made.outcomes) == ["first"]
        assert systems["second"].asked == []
        with pytest.raises(ConfigError, match="unknown system 'secnd'; did you mean 'second'"):
            generate(config, runs=tmp_path, systems=["secnd"])
        none = config.model_copy(update={"systems": ()})
        with pytest.raises(ConfigError, match="names no systems"):
            generate(none, runs=tmp_path)


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_missing_package_stops_system_alone(tmp_path: Path, release: Path, dry_run: bool) -> None:
    register("absent", extra="diffusers", packages=("nobody_has_this",))(lambda _: Acting())
    absent, good = system("absent", adapter="absent"), Acting()
    install = r'pip install "echo-hf\[diffusers\]"'
    with known(good):
        config = evaluation(release, absent, system("good"))
        with pytest.raises(
            GenerationError, match=f"system 'absent' .*{install}, or .*; its 5 tasks"
        ):
            generate(config, runs=tmp_path, dry_run=dry_run)
        if dry_run:  # what it would take is told before anything is installed
            plans = generate_outputs(config, tmp_path, dry_run=True).plans
            assert {one.system: len(one.todo) for one in plans} == {"good": 5, "absent": 5}
    assert sorted(good.asked) == ([] if dry_run else EVERY)
    with pytest.raises(GenerationError, match=install):
        generate(evaluation(release, absent), runs=tmp_path)


LOST = GenerationResult(Outcome.FAILED, stage=OutcomeStage.REQUEST, text="no key to the host")


@pytest.mark.parametrize(
    ("method", "error"),
    [
        ("draw", GenerationError("no key in BAD_KEY")),
        ("preflight", ConnectionError("no route, no key")),
        ("act", None),
    ],
    ids=["draw", "preflight", "all fail"],
)
def test_a_system_that_stops_stops_no_other(
    tmp_path: Path, release: Path, method: str, error: Exception | None
) -> None:
    bad, good, config = Acting(), Acting(), evaluation(release, system("bad"), system("good"))
    setattr(bad, method, Mock(side_effect=error, return_value=LOST))
    with known(bad=bad, good=good):
        with pytest.raises(GenerationError, match="no key"):
            generate(config, runs=tmp_path)
        assert sorted(good.asked) == EVERY
        assert sum(row["system"] == "good" for row in table(tmp_path)) == 5
        # The same command goes on; one task of many that fails is no error.
        delattr(bad, method)
        bad.act = lambda one: LOST if one.sample_id == "t0" else drawn_for(one)
        made = generate(config, runs=tmp_path)
        assert made.outcomes["good"] == {"ok": 5}
        assert made.outcomes["bad"]["ok"] >= 4
        assert sorted(good.asked) == EVERY


def test_a_retired_model_is_found_before_anything_is_spent(tmp_path: Path, release: Path) -> None:
    gone, there = Acting(gone=Retired("retired in May", "model_not_found")), Acting()
    config = evaluation(release, system("there"), system("gone"))
    with known(gone=gone, there=there):
        made = generate(config, runs=tmp_path)
        assert made.outcomes == {"there": {"ok": 5}, "gone": {"retired": 5}}
        assert (gone.asked, gone.entered) == ([], [])
        gone.gone = None
        assert generate(config, runs=tmp_path).outcomes["gone"] == {"ok": 5}


def test_a_stop_while_a_system_is_looked_for_is_no_error_of_it(
    tmp_path: Path, release: Path, acting: Acting
) -> None:
    acting.preflight = Mock(side_effect=KeyboardInterrupt)  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        generate(evaluation(release), runs=tmp_path)
    assert acting.asked == []


def test_what_is_damaged_is_told_beforehand(tmp_path: Path, release: Path, acting: Acting) -> None:
    outputs = tmp_path / "measured" / "outputs"
    outputs.mkdir(parents=True)
    (outputs / "theirs.jsonl").write_text("no line\n")
    with pytest.raises(RunError, match=r"theirs\.jsonl"):
        generate(evaluation(release), runs=tmp_path)
    (outputs / "theirs.jsonl").unlink()
    (tmp_path / "measured" / "outputs.parquet").write_bytes(b"PAR1")
    with pytest.raises(RunError, match="not a table of outputs"):
        generate(evaluation(release), runs=tmp_path)
    assert acting.asked == []


def test_two_at_once_are_refused(tmp_path: Path, release: Path, acting: Acting) -> None:
    with lock_systems(tmp_path / "measured", ["mine"]):
        with pytest.raises(RunError, match=r"another process .* 'mine'"):
            generate(evaluation(release), runs=tmp_path)
        generate(evaluation(release), runs=tmp_path, dry_run=True)
    assert acting.asked == []


def test_rows_without_a_journal_stay(tmp_path: Path, release: Path, acting: Acting) -> None:
    generate(evaluation(release), runs=tmp_path, limit=1)
    path = tmp_path / "measured" / "outputs.parquet"
    rows = pq.read_table(path).to_pylist()
    theirs = {**dict.fromkeys(OUTPUTS.columns), "sample_id": "t2", "system": "theirs"}
    stale = {**rows[0], "sample_id": "zz"}
    pq.write_table(OUTPUTS.make_empty().from_pylist([*rows, theirs, stale], OUTPUTS.schema), path)
    generate(evaluation(release), runs=tmp_path)
    assert [(row["sample_id"], row["system"]) for row in table(tmp_path)] == [
        *((name, "mine") for name in EVERY),
        ("t2", "theirs"),
    ]
    assert Journal(tmp_path / "measured", "mine").entries.keys() == {(name, 0) for name in EVERY}


def test_the_command_says_what_it_does(tmp_path: Path, release: Path, acting: Acting) -> None:
    config = evaluation(release).model_dump(mode="json")
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(config), "utf-8")
    told = ["generate", str(tmp_path / "config.yaml"), "--runs", str(tmp_path), "--limit", "1"]
    dry = CliRunner().invoke(app, [*told, "--dry-run", "--systems", "mine"])
    assert (dry.exit_code, acting.asked) == (0, []), dry.output
    assert "2 to draw\n" in dry.output
    assert "no price known for mine" in dry.output
    assert dry.output.endswith("nothing was asked: leave out --dry-run to draw\n")
    done = CliRunner().invoke(app, told)
    assert done.exit_code == 0, done.output
    assert "cost: $1.00" in done.output
    assert "outputs.parquet" in done.output


# A benchmark of one's own.

FORGOTTEN = "https://x.com/hana_hikes/status/9900316480787844284"  # a lake turned into night


def test_outputs_go_into_the_release_and_leave_it(tmp_path: Path, acting: Acting) -> None:
    root = built(tmp_path / "work")
    path, runs = tmp_path / "work" / "config.yaml", root.parent
    config = yaml.safe_load(path.read_text("utf-8"))
    config["systems"] = [system().model_dump(mode="json")]
    path.write_text(yaml.safe_dump(config), "utf-8")
    with pytest.raises(RunError, match="run `echo-hf build` first"):
        generate(path, runs=tmp_path / "nowhere")
    assert (acting.asked, (tmp_path / "nowhere").exists()) == ([], False)
    made = generate(path, runs=runs)
    benchmarks = read_release(root / "release").datasets
    ids = {
        name for split in ("image_to_image", "text_to_image") for name in benchmarks[split]["id"]
    }
    assert sorted(acting.asked) == sorted(ids)
    assert made.outcomes == {"mine": {"ok": len(ids)}}

    release = build(path, runs=runs).path
    entries = Journal(root, "mine").entries
    raw = read_release(release).datasets["outputs"].with_format("arrow")[:].to_pylist()
    assert {row["sample_id"]: sha(row["image"]["bytes"]) for row in raw} == {
        name: one.image for (name, _), one in entries.items()
    }
    assert generate(path, runs=runs).plans[0].todo == ()

    with (
        lock_systems(root, ["mine"]),
        pytest.raises(RunError, match="at work on the outputs of 'mine'"),
    ):
        forget([FORGOTTEN], path, runs=runs)
    assert Journal(root, "mine").entries == entries

    theirs = forget([FORGOTTEN], path, runs=runs).samples
    drawn = {entries[name, 0].image for name in theirs if (name, 0) in entries}
    assert drawn
    others = {one.image for (name, _), one in entries.items() if name not in theirs}
    files = (file for file in root.rglob("*") if file.is_file())
    held = [file for file in files if any(name.encode() in file.read_bytes() for name in theirs)]
    assert held == []
    rows = pq.read_table(root / "outputs.parquet")["sample_id"].to_pylist()
    assert sorted(rows) == sorted(ids - set(theirs))
    left = {path.name for path in (root / "pictures").glob("*/*")}
    assert left.isdisjoint(drawn - others)
    assert others - {None} <= left


# What `docs/how-to/systems.md` tells to write is understood, word for word.

GUIDE = (ROOT / "docs" / "how-to" / "systems.md").read_text("utf-8")


def rows(heading: str) -> dict[str, list[str]]:
    _, _, rest = GUIDE.partition(f"| {heading} |")
    lines = rest.split("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {name: one for one in cells for name in re.findall(r"`(\w+)`", one[0])}


def test_every_outcome_is_told_with_whether_it_is_asked_again() -> None:
    told = rows("outcome")
    assert set(told) == {outcome.value for outcome in Outcome}
    for outcome in Outcome:
        assert told[outcome][2] == ("no" if outcome in SETTLED else "yes")


def test_the_config_is_a_config(tmp_path: Path) -> None:
    (block,) = blocks(GUIDE, "yaml")
    (tmp_path / "config.yaml").write_text(block.text, "utf-8")
    config = load_evaluation(tmp_path / "config.yaml")
    assert [one.name for one in config.systems] == ["lumen_2", "drawn_before"]


def test_the_adapter_of_the_guide_draws(tmp_path: Path) -> None:
    (script,) = (one.text for one in blocks(GUIDE, "python"))
    ((name, code),) = titled_files((ROOT / "docs/how-to/add_system.md").read_text("utf-8"))
    exec(compile(code, name, "exec"), {"__name__": "guide"})  # noqa: S102 - our own words
    compile(script, "systems.md", "exec")
    release = written(
        tmp_path,
        [sample("text")],
        [sample("edit", input_images=["a"]), sample("two", input_images=["b", "c"])],
    )
    config = evaluation(release, system(adapter="one_color", seed=200))
    made = generate(config, runs=tmp_path)
    assert made.outcomes == {"mine": {"ok": 2, "unsupported": 1}}
    assert made.path is not None
    found = {row["sample_id"]: row for row in pq.read_table(made.path).to_pylist()}
    images = ImageStore(tmp_path / "measured" / "pictures")
    for name in ("text", "edit"):
        with Image.open(images.path(found[name]["image"])) as image:
            assert (image.size, image.getpixel((0, 0))) == ((64, 64), (200, 0, 0))
    assert (found["two"]["stage"], found["two"]["text"]) == ("task", "takes one input")


def test_every_sign_of_a_refusal_is_told() -> None:
    _, codes, _, gemini, *_ = GUIDE.partition("Since refusals")[2].split("\n- ")
    named, _, _ = codes.partition("or the mark")
    assert {code.lower() for code in re.findall(r"`(\w+)`", named)} == REFUSAL_CODES
    refused, _, undrawn = gemini.partition(";")
    assert set(re.findall(r"`([A-Z_]+)`", refused)) == REFUSAL_REASONS
    assert set(re.findall(r"`([A-Z_]+)`", undrawn)) == NO_IMAGE_REASONS


COMMAND = "from echo_hf.cli import main; main()"
CONCURRENCY, SAMPLES, KILLS = 4, 200, 5


REFUSAL = {"refusal": "No."}


def saved(folder: Path, server: LoopbackServer, samples: int, **more: str) -> Path:
    release = written(folder, [sample(f"t{number}") for number in range(samples)])
    limits = {"concurrency": CONCURRENCY, "attempts": 1}
    system = hosted_config("openai_images", {"base_url": server.url, **more}, limits=limits)
    systems = [system.model_dump(mode="json")]
    text = yaml.safe_dump({"name": "run", "benchmark": str(release), "systems": systems})
    (folder / "config.yaml").write_text(text, "utf-8")
    return folder / "config.yaml"


@contextmanager
def drawing(config: Path) -> Iterator[subprocess.Popen[str]]:
    options = ["generate", str(config), "--runs", str(config.parent)]
    cache = {"HF_DATASETS_CACHE": str(config.parent / "cache"), "OPENAI_API_KEY": KEY}
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **cache},
    ) as process:
        yield process


def test_again_asks_where_no_image_came_and_nowhere_else(
    tmp_path: Path, server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal stays, which scores count; a failure is tried again by itself."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    says = {"t0": completion("I only describe."), "t1": completion(None, message=REFUSAL)}

    def behave(asked: Asked) -> Answer:
        text = json.dumps(asked.body)
        url = {"url": f"data:image/png;base64,{base64.b64encode(png(text)).decode()}"}
        drawn = completion("", message={"images": [{"type": "image_url", "image_url": url}]})
        return next((answer for name, answer in says.items() if name in text), drawn)

    def called(*options: str) -> tuple[str, list[str]]:
        before = len(server.asked)
        given = ["generate", str(path), "--runs", str(tmp_path), *options]
        done = CliRunner().invoke(app, given, catch_exceptions=False)
        asked = [json.dumps(one.body) for one in server.asked[before:] if one.body]
        names = (f"t{number}" for number in range(4))
        return done.output, sorted(name for name in names for text in asked if name in text)

    server.behave = behave
    path = saved(tmp_path, server, 4, mode="chat")
    said, asked = called()
    assert asked == ["t0", "t1", "t2", "t3"]
    assert "1 answer without an image: --again asks anew" in said
    assert called()[1] == []
    del says["t0"], says["t1"]
    assert called()[1] == []
    said, asked = called("--again")
    assert (asked, "without an image" in said) == (["t0"], False)
    assert called("--again")[1] == []
    rows = pq.read_table(tmp_path / "run" / "outputs.parquet").to_pylist()
    assert [row["outcome"] for row in rows] == ["ok", "refused", "ok", "ok"]


def image_for(asked: Asked) -> Answer:
    return image_answer(png(asked.body["prompt"])) if asked.body else Answer({"id": "tiny-image"})


def prompts(server: LoopbackServer, since: int = 0) -> list[str]:
    return [asked.body["prompt"] for asked in server.asked[since:] if asked.body]


def answered(folder: Path) -> set[str]:
    path = folder / "run" / "outputs" / "tiny.jsonl"
    whole = path.read_bytes().rpartition(b"\n")[0].splitlines() if path.exists() else []
    rows = [json.loads(line) for line in whole]
    return {row["sample_id"] for row in rows if row.get("outcome") == "ok"}


@pytest.mark.slow
def test_a_killed_run_asks_for_no_answer_twice(tmp_path: Path, server: LoopbackServer) -> None:
    server.behave, chosen = image_for, random.Random(7)
    path, kept = saved(tmp_path, server, SAMPLES), set[str]()
    for _ in range(KILLS):
        before = len(server.asked)
        with drawing(path) as process:
            server.wait_for(before + chosen.randint(2, 60))
            process.kill()
        assert kept.isdisjoint(prompts(server, before))
        assert kept <= answered(tmp_path)
        kept = answered(tmp_path)
    before = len(server.asked)
    with drawing(path) as process:
        said, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    assert f"{SAMPLES - len(kept):,} ok" in said
    assert kept.isdisjoint(prompts(server, before))
    times = Counter(prompts(server))
    assert set(times) == {f"t{number}" for number in range(SAMPLES)}
    assert times.total() - SAMPLES <= KILLS * CONCURRENCY
    table_rows = pq.read_table(tmp_path / "run" / "outputs.parquet").to_pylist()
    assert {row["sample_id"]: row["image"] for row in table_rows} == {
        name: sha(png(name)) for name in times
    }
    images = ImageStore(tmp_path / "run" / "pictures")
    assert all(images.open(row["image"]) for row in table_rows)


def test_several_outputs_are_drawn_one_round_after_the_other(
    tmp_path: Path, release: Path, acting: Acting
) -> None:
    """A run that is given more of them draws those that it lacks alone."""
    acting.concurrency = 1
    generate(evaluation(release), runs=tmp_path, outputs=2)
    assert sorted(acting.asked[:5]) == sorted(acting.asked[5:]) == EVERY
    generate(evaluation(release), runs=tmp_path, outputs=3)
    assert Counter(acting.asked) == dict.fromkeys(EVERY, 3)
    keys = {(row["sample_id"], row["draw"]) for row in table(tmp_path)}
    assert keys == {(name, draw) for name in EVERY for draw in range(3)}
    assert generate(evaluation(release), runs=tmp_path).plans[0].todo == ()
    assert len(table(tmp_path)) == 15
    for wrong in (0, 65):
        with pytest.raises(ConfigError, match=f"outputs is {wrong}: expected 1 to 64"):
            generate(evaluation(release), runs=tmp_path, outputs=wrong)


@pytest.mark.parametrize(
    ("own", "common", "option", "expected"), [(3, 2, None, 3), (None, 2, None, 2), (3, 2, 1, 1)]
)
def test_the_option_goes_before_the_system_and_the_system_before_the_config(
    own: int | None, common: int, option: int | None, expected: int, tmp_path: Path, release: Path
) -> None:
    with known(Acting()):
        config = evaluation(release, system(outputs=own)).model_copy(update={"outputs": common})
        generate(config, runs=tmp_path, outputs=option, dry_run=True)
        (plan,) = generate(config, runs=tmp_path, outputs=option, dry_run=True).plans
    assert len(plan.todo) == expected * len(EVERY)
