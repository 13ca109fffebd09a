"""Systems draw the tasks of a benchmark; what is settled is not asked for again."""

from __future__ import annotations

import errno
import fcntl
import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import datasets
import pyarrow.parquet as pq
import pytest
import yaml
from datasets import load_dataset
from PIL import Image

from echo_hf._infra.http_errors import REFUSALS
from echo_hf.builder.build import build
from echo_hf.cli.posts_view import forget
from echo_hf.errors import ConfigError, EchoError, EngineError, GenerationError, RunError
from echo_hf.hub.release import read_release
from echo_hf.images.store import ImageStore
from echo_hf.reasons import NotTabled, Outcome, OutcomeStage
from echo_hf.systems.base import GenerationResult, Retired, Task
from echo_hf.systems.benchmark import load_evaluation
from echo_hf.systems.generate import Generated, generate
from echo_hf.systems.google_images import HELD_BACK, UNDRAWN
from echo_hf.systems.journal import SETTLED, Journal, locked
from echo_hf.systems.registry import register
from echo_hf.tables import OUTPUTS
from tests.hub.quickstart_release import built
from tests.package.blocks import blocks
from tests.stages_for_tests import ROOT
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


def test_every_task_is_drawn_and_written_down(
    tmp_path: Path, release: Path, acting: Acting
) -> None:
    made = generate(evaluation(release), runs=tmp_path)
    assert sorted(acting.asked) == EVERY
    assert acting.entered == ["in", "out"]
    assert made == Generated(
        path=tmp_path / "measured" / "outputs.parquet",
        plans=made.plans,
        outcomes={"mine": {Outcome.OK: 5}},
        cost_usd=2.5,
        left_out={},
    )
    assert made.path is not None
    assert pq.read_schema(made.path).equals(OUTPUTS.schema)
    loaded = load_dataset("parquet", data_files=str(made.path), split="train")
    assert loaded.column_names == list(OUTPUTS.columns)
    rows = loaded.to_list()
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


def test_inputs_lie_where_the_system_finds_them(
    tmp_path: Path, release: Path, acting: Acting
) -> None:
    seen: dict[str, list[bytes]] = {}

    def act(one: Task) -> GenerationResult:
        seen[one.sample_id] = [ref.file.read_bytes() for ref in one.inputs if ref.file is not None]
        assert [ref.sha256 for ref in one.inputs] == [sha(data) for data in seen[one.sample_id]]
        return drawn_for(one)

    acting.act = act
    generate(evaluation(release), runs=tmp_path)
    assert seen == {"e0": [png("in0")], "e1": [png("in1")], "t0": [], "t1": [], "t2": []}


def test_nothing_that_is_settled_is_asked_twice(
    tmp_path: Path, release: Path, acting: Acting
) -> None:
    ends = dict(zip(EVERY, ("ok", "refused", "no_image", "unsupported", "failed"), strict=True))

    def act(one: Task) -> GenerationResult:
        outcome = Outcome(ends[one.sample_id])
        return drawn_for(one) if outcome == Outcome.OK else GenerationResult(outcome, text="no")

    acting.act = act
    made = generate(evaluation(release), runs=tmp_path)
    assert made.outcomes["mine"] == dict.fromkeys(map(Outcome, ends.values()), 1)
    again = generate(evaluation(release), runs=tmp_path)
    assert Counter(acting.asked) == Counter([*EVERY, "t2"])
    assert [(plan.stored, plan.stale) for plan in again.plans] == [(4, 0)]
    assert {row["sample_id"]: row["outcome"] for row in table(tmp_path)} == ends


def test_another_signature_is_drawn_anew(tmp_path: Path, release: Path, acting: Acting) -> None:
    first = system(parameters={"steps": 2, "folder": "/here"})
    generate(evaluation(release, first), runs=tmp_path)
    same = system(
        parameters={"steps": 2, "folder": "/there"},
        limits={"concurrency": 1},
        price={"usd_per_image": 1, "as_of": "2026-01-01"},
    )
    assert generate(evaluation(release, same), runs=tmp_path).plans[0].todo == ()
    for change in ({"seed": 1}, {"size": "match_input"}, {"parameters": {"steps": 3}}):
        (plan,) = generate(
            evaluation(release, system(**{**first.model_dump(), **change})),
            runs=tmp_path,
            dry_run=True,
        ).plans
        assert (len(plan.todo), plan.stored, plan.stale) == (5, 0, 5)


def test_a_change_of_settings_is_never_scored_as_a_blend(
    tmp_path: Path, release: Path, acting: Acting
) -> None:
    generate(evaluation(release), runs=tmp_path)
    made = generate(evaluation(release, system(seed=1)), runs=tmp_path, limit=1)
    assert [row["sample_id"] for row in table(tmp_path)] == ["e0", "t0"]
    assert made.outcomes == {"mine": {"ok": 2}}
    assert made.not_tabled == {"mine": {NotTabled.OTHER_SETTINGS: 3}}

    def act(one: Task) -> GenerationResult:
        if one.sample_id == "t0":
            raise GenerationError("no key")
        return drawn_for(one)

    acting.act, acting.concurrency = act, 1
    with pytest.raises(GenerationError, match="no key"):
        generate(evaluation(release, system(seed=2)), runs=tmp_path)
    assert [row["sample_id"] for row in table(tmp_path)] == ["e0", "e1"]


def test_settings_that_a_retired_model_never_drew_with_take_nothing_away(
    tmp_path: Path, release: Path, acting: Acting
) -> None:
    generate(evaluation(release), runs=tmp_path)
    acting.gone = Retired("retired in May")
    made = generate(evaluation(release, system(seed=1)), runs=tmp_path)
    assert (made.outcomes, made.not_tabled) == ({"mine": {"ok": 5}}, {})
    assert [row["sample_id"] for row in table(tmp_path)] == EVERY


def test_another_prompt_or_a_lost_image_is_drawn_anew(tmp_path: Path, acting: Acting) -> None:
    before = written(tmp_path / "v1", [sample("a"), sample("b"), sample("c")])
    after = written(tmp_path / "v2", [sample("a"), sample("b", sample_digest="new"), sample("c")])
    generate(evaluation(before), runs=tmp_path)
    ImageStore(tmp_path / "measured" / "pictures").path(sha(png("c"))).write_bytes(b"")
    acting.asked.clear()
    generate(evaluation(after), runs=tmp_path)
    assert sorted(acting.asked) == ["b", "c"]
    assert [row["sample_digest"] for row in table(tmp_path)][1] == "new"


def test_a_limit_holds_for_each_split(tmp_path: Path, release: Path, acting: Acting) -> None:
    generate(evaluation(release), runs=tmp_path, limit=1)
    assert sorted(acting.asked) == ["e0", "t0"]
    generate(evaluation(release), runs=tmp_path)
    assert Counter(acting.asked) == Counter(EVERY)
    for limit in (0, -1):
        with pytest.raises(ConfigError, match=f"limit is {limit}: expected 1 or more"):
            generate(evaluation(release), runs=tmp_path, limit=limit)


def test_a_dry_run_asks_nobody_and_writes_nothing(
    tmp_path: Path, release: Path, acting: Acting
) -> None:
    config = system(price={"usd_per_image": 0.25, "as_of": "2026-01-01"})
    acting.gone = Retired("nobody should ask")
    made = generate(evaluation(release, config), runs=tmp_path / "runs", dry_run=True)
    (plan,) = made.plans
    assert (len(plan.todo), plan.cost_usd, plan.seconds) == (5, 1.25, None)
    assert (made.path, acting.asked, acting.entered) == (None, [], [])
    assert not (tmp_path / "runs").exists()
    acting.gone = None
    generate(evaluation(release, config), runs=tmp_path / "runs")
    # Rows are read through the run's own cache, which goes when posts are forgotten.
    assert not (tmp_path / "cache").exists()
    assert list((tmp_path / "runs" / "measured" / "cache").rglob("*.arrow"))


@pytest.mark.parametrize("name", ["flock", "copy"])
def test_a_disk_without_locks_is_one_line_that_names_the_file(
    tmp_path: Path, release: Path, acting: Acting, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:

    def flock(descriptor: int, how: int) -> None:
        path = str(Path(f"/proc/self/fd/{descriptor}").readlink())
        if how & fcntl.LOCK_EX and (name == "flock") == path.endswith(".mine.lock"):
            raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(EchoError, match="No locks available") as raised:
        generate(evaluation(release), runs=tmp_path)
    where = {
        "flock": str(tmp_path / "measured" / "outputs" / ".mine.lock"),
        "copy": str(tmp_path / "measured" / "cache"),
    }
    assert where[name] in str(raised.value)
    assert acting.asked == []


def test_only_the_systems_that_are_named(tmp_path: Path, release: Path) -> None:
    config = evaluation(release, system("first"), system("second"), system("third"))
    systems = {name: Acting() for name in ("first", "second", "third")}
    with known(**systems):
        made = generate(config, runs=tmp_path, systems=["third", "first", "third"], limit=1)
        assert list(made.outcomes) == ["third", "first"]
        assert systems["second"].asked == []
        with pytest.raises(ConfigError, match="unknown system 'secnd'; did you mean 'second'"):
            generate(config, runs=tmp_path, systems=["secnd"])
        none = config.model_copy(update={"systems": ()})
        with pytest.raises(ConfigError, match="names no systems"):
            generate(none, runs=tmp_path)


@pytest.mark.parametrize("error", [GenerationError, EngineError])
def test_one_system_that_stops_does_not_stop_the_others(
    tmp_path: Path, release: Path, error: type[Exception]
) -> None:

    def act(_: Task) -> GenerationResult:
        raise GenerationError("no key in BAD_KEY")

    bad, good = Acting(act), Acting()
    if error is EngineError:
        bad = Acting()
        bad.__class__ = type("Broken", (Acting,), {"__exit__": _raising(EngineError("no key in"))})
    config = evaluation(release, system("bad"), system("good"))
    with known(bad=bad, good=good):
        with pytest.raises(GenerationError, match="no key in"):
            generate(config, runs=tmp_path)
        assert sorted(good.asked) == EVERY
        assert sum(row["system"] == "good" for row in table(tmp_path)) == 5


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_missing_package_stops_its_own_system_alone(
    tmp_path: Path, release: Path, dry_run: bool
) -> None:
    register("absent", extra="diffusers", packages=("nobody_has_this",))(lambda _: Acting())
    absent, good = system("absent", adapter="absent"), Acting()
    install = r'pip install "echo-hf\[diffusers\]"'
    with known(good):
        config = evaluation(release, absent, system("good"))
        with pytest.raises(GenerationError, match=f"system 'absent' .*{install}; its 5 tasks"):
            generate(config, runs=tmp_path, dry_run=dry_run)
    assert sorted(good.asked) == ([] if dry_run else EVERY)
    with pytest.raises(GenerationError, match=install):
        generate(evaluation(release, absent), runs=tmp_path)


def test_a_system_that_fails_at_every_task_is_an_error(tmp_path: Path, release: Path) -> None:
    broken = {"on": True}

    def act(one: Task) -> GenerationResult:
        lost = GenerationResult(Outcome.FAILED, stage=OutcomeStage.REQUEST, text="no route to host")
        return lost if broken["on"] or one.sample_id == "t0" else drawn_for(one)

    bad, good = Acting(act), Acting()
    config = evaluation(release, system("bad"), system("good"))
    with known(bad=bad, good=good):
        said = "system 'bad': all 5 tasks failed, the last with 'no route to host'"
        with pytest.raises(GenerationError, match=said):
            generate(config, runs=tmp_path)
        assert sorted(good.asked) == EVERY
        broken["on"] = False
        for _ in range(2):
            made = generate(config, runs=tmp_path)
            assert made.outcomes["bad"] == {Outcome.OK: 4, Outcome.FAILED: 1}


def _raising(error: Exception):  # type: ignore[no-untyped-def]
    def leave(*_: object) -> None:
        raise error

    return leave


def test_a_retired_model_is_found_before_anything_is_spent(tmp_path: Path, release: Path) -> None:
    gone, there = Acting(gone=Retired("retired in May", "model_not_found")), Acting()
    there.act = lambda one: (
        drawn_for(one) if gone.entered == [] else GenerationResult(Outcome.FAILED)
    )
    config = evaluation(release, system("there"), system("gone"))
    with known(gone=gone, there=there):
        made = generate(config, runs=tmp_path)
        assert made.outcomes == {"there": {"ok": 5}, "gone": {"retired": 5}}
        assert (gone.asked, gone.entered) == ([], [])
        rows = [row for row in table(tmp_path) if row["system"] == "gone"]
        said = {(row["stage"], row["code"], row["text"], row["image"]) for row in rows}
        assert said == {("preflight", "model_not_found", "retired in May", None)}
        gone.gone = None
        assert generate(config, runs=tmp_path).outcomes["gone"] == {"ok": 5}


@pytest.mark.parametrize("error", [GenerationError("no key"), ConnectionError("no route, no key")])
def test_a_system_that_cannot_be_run_stops_alone(
    tmp_path: Path, release: Path, error: Exception
) -> None:
    good, bad = Acting(), Acting()
    bad.__class__ = type("Bad", (Acting,), {"preflight": _raising(error)})
    config = evaluation(release, system("good"), system("bad"))
    with known(good=good, bad=bad), pytest.raises(GenerationError, match="no key"):
        generate(config, runs=tmp_path)
    assert (sorted(good.asked), bad.asked) == (EVERY, [])


def test_what_is_damaged_is_told_before_anything_is_spent(
    tmp_path: Path, release: Path, acting: Acting
) -> None:
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
    with locked(tmp_path / "measured", ["mine"]):
        with pytest.raises(RunError, match=r"another process .* 'mine'"):
            generate(evaluation(release), runs=tmp_path)
        generate(evaluation(release), runs=tmp_path, dry_run=True)
    assert acting.asked == []


def test_rows_of_systems_without_a_journal_stay(
    tmp_path: Path, release: Path, acting: Acting
) -> None:
    generate(evaluation(release), runs=tmp_path, limit=1)
    path = tmp_path / "measured" / "outputs.parquet"
    rows = pq.read_table(path).to_pylist()
    theirs = {**dict.fromkeys(OUTPUTS.columns), "sample_id": "t2", "system": "theirs"}
    stale = {**rows[0], "sample_id": "zz"}
    pq.write_table(OUTPUTS.empty().from_pylist([*rows, theirs, stale], OUTPUTS.schema), path)
    generate(evaluation(release), runs=tmp_path)
    assert [(row["sample_id"], row["system"]) for row in table(tmp_path)] == [
        *((name, "mine") for name in EVERY),
        ("t2", "theirs"),
    ]
    assert Journal(tmp_path / "measured", "mine").entries.keys() == set(EVERY)


def test_what_another_machine_drew_is_taken_over(
    tmp_path: Path, release: Path, acting: Acting
) -> None:
    generate(evaluation(release), runs=tmp_path / "there")
    here = tmp_path / "here" / "measured"
    for part in ("outputs", "pictures"):
        shutil.copytree(tmp_path / "there" / "measured" / part, here / part)
    acting.asked.clear()
    generate(evaluation(release), runs=tmp_path / "here")
    assert acting.asked == []
    assert [row["sample_id"] for row in table(tmp_path / "here")] == EVERY


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
    outputs = load_dataset(str(release), "outputs", split="test")
    assert set(outputs["sample_id"]) == ids
    assert all(image.size == (8, 8) for image in outputs["image"])
    entries = Journal(root, "mine").entries
    raw = read_release(release).datasets["outputs"].with_format("arrow")[:].to_pylist()
    assert {row["sample_id"]: sha(row["image"]["bytes"]) for row in raw} == {
        name: one.image for name, one in entries.items()
    }
    assert generate(path, runs=runs).plans[0].todo == ()

    with (
        locked(root, ["mine"]),
        pytest.raises(RunError, match="at work on the outputs of 'mine'"),
    ):
        forget([FORGOTTEN], path, runs=runs)
    assert Journal(root, "mine").entries == entries

    theirs = forget([FORGOTTEN], path, runs=runs).samples
    drawn = {entries[name].image for name in theirs if name in entries}
    assert drawn
    others = {one.image for name, one in entries.items() if name not in theirs}
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
    code, script = (one.text for one in blocks(GUIDE, "python"))
    exec(compile(code, "systems.md", "exec"), {"__name__": "guide"})  # noqa: S102 - our own words
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
    assert {code.lower() for code in re.findall(r"`(\w+)`", named)} == REFUSALS
    refused, _, undrawn = gemini.partition(";")
    assert set(re.findall(r"`([A-Z_]+)`", refused)) == HELD_BACK
    assert set(re.findall(r"`([A-Z_]+)`", undrawn)) == UNDRAWN
