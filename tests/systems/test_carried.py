"""Carried samples: their draw, who is asked for them, and what is refused."""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from echo_hf.collect.takedown import TOMBSTONES_FILE, add_tombstones, hash_url
from echo_hf.config.evaluation import CarriedRelease
from echo_hf.errors import ConfigError, EchoError, ReleaseError
from echo_hf.pipeline.progress import ProgressListener
from echo_hf.systems.base import GenerationResult, Retired, Task
from echo_hf.systems.evaluation_run import EvaluationRun
from echo_hf.systems.generate import generate, generate_outputs
from echo_hf.tables import Outcome
from tests.errors_for_tests import said_by
from tests.systems.carried_for_tests import (
    PAST,
    carrying,
    old_samples,
    older_release,
    outputs_of,
    sharing,
    write_old,
)
from tests.systems.runs_for_tests import Acting, Row, benchmark, drawn_for, known, png, sha, system


class Notices(ProgressListener):
    def __init__(self) -> None:
        self.notices: list[str] = []

    def report_notice(self, text: str) -> None:
        self.notices.append(text)


def drawn_ids(seed: int, count: int) -> set[str]:
    """The ids with the smallest digests of each split, as the page describes the draw."""

    def key(name: str) -> str:
        return hashlib.sha256(f"{seed}:{name}".encode()).hexdigest()

    splits = old_samples().values()
    return {
        name for rows in splits for name in sorted((row["id"] for row in rows), key=key)[:count]
    }


def carried_ids(run: EvaluationRun) -> set[str]:
    (part,) = run.parts
    return {task.sample_id for task in part.read_tasks().tasks}


def test_as_many_of_each_split_are_drawn_at_random(tmp_path: Path) -> None:
    for seed in (0, 1, 2):
        assert carried_ids(carrying(tmp_path, seed=seed)) == drawn_ids(seed, 2)
    assert drawn_ids(0, 2) < drawn_ids(0, 3) == carried_ids(carrying(tmp_path, samples=3))
    assert len(carried_ids(carrying(tmp_path, samples=50))) == 10


def test_new_systems_draw_carried_samples_once_and_kept_outputs_stay(tmp_path: Path) -> None:
    run, mine = carrying(tmp_path), Acting()
    ids = drawn_ids(0, 2)
    with known(mine=mine):
        generate(run)
        assert sorted(mine.asked) == sorted(["t0", "t1", "t2", "e0", "e1", *ids])
        assert mine.entered == ["in", "out"]  # loaded once for run and parts
        generate(run)
    assert len(mine.asked) == 9
    assert outputs_of(run).keys() == {(name, who) for name in ids for who in ("mine", "past")}
    (part,) = run.parts
    for (name, _), row in outputs_of(run).items():
        assert row["outcome"] == "ok"
        assert part.folder.images.open(row["image"]) == png(name)


def test_the_run_itself_is_as_without_carrying(tmp_path: Path) -> None:
    run = carrying(tmp_path)
    plain = run.config.model_copy(update={"carry": ()})
    with known(Acting()):
        path = generate(run).path
        other = generate(plain, runs=tmp_path / "other").path
    rows = [
        [{**row, "latency_s": None, "provenance": None} for row in _rows(file)]
        for file in (path, other)
    ]
    assert rows[0] == rows[1]


def _rows(path: Path | None) -> list[Row]:
    import pyarrow.parquet as pq

    return list(pq.read_table(path).to_pylist())


def test_a_sample_that_is_in_the_benchmark_as_well_is_asked_for_once(tmp_path: Path) -> None:
    sharing(tmp_path)
    run, mine = carrying(tmp_path, samples=50), Acting()
    with known(mine=mine):
        planned = generate(run, dry_run=True)
        assert [len(plan.todo) for plan in planned.plans] == [3, 9]
        path = generate(run).path
    assert mine.asked.count("o0") == 1
    (own,) = (row for row in _rows(path) if row["sample_id"] == "o0")
    assert outputs_of(run)["o0", "mine"]["image"] == own["image"] == sha(png("o0"))


def test_a_dry_run_plans_what_is_drawn_then(tmp_path: Path) -> None:
    """Of `past` all carried samples are kept; o0 is in the benchmark as well."""
    sharing(tmp_path)
    run = carrying(tmp_path, PAST, system(), samples=50)
    for settings, counts in (({}, [3, 0, 3, 9]), ({}, [0] * 4), ({"steps": 2}, [3, 9, 3, 9])):
        by_name = {name: Acting(more=settings) for name in ("past", "mine")}
        with known(**by_name):
            dry, done = (generate(run, dry_run=is_dry).plans for is_dry in (True, False))
        assert [len(plan.todo) for plan in dry] == counts
        assert [(plan.todo, plan.stored, plan.stale) for plan in dry] == [
            (plan.todo, plan.stored, plan.stale) for plan in done
        ]
        assert [len(one.asked) for one in by_name.values()] == [sum(counts[:2]), sum(counts[2:])]
        assert all(plan.stale in (0, len(plan.todo)) for plan in dry)


def test_a_kept_output_under_the_same_settings_is_not_drawn_again(tmp_path: Path) -> None:
    """Under other settings it is: a name stands for what it is today."""
    run, past = carrying(tmp_path, PAST), Acting()
    with known(past=past):
        generate(run)
    assert {*past.asked} == {"t0", "t1", "t2", "e0", "e1"}
    assert {who for _, who in outputs_of(run)} == {"past"}
    changed = Acting(lambda _: GenerationResult(Outcome.OK, png("new")), more={"steps": 50})
    with known(past=changed):
        generate(run)
    assert {row["image"] for row in outputs_of(run).values()} == {sha(png("new"))}
    back = Acting()
    with known(past=back):
        generate(run)
    assert {*back.asked} == {"t0", "t1", "t2", "e0", "e1"}
    assert {row["image"] for row in outputs_of(run).values()} == {
        sha(png(name)) for name in drawn_ids(0, 2)
    }


def test_kept_outputs_of_a_model_that_is_gone_stay(tmp_path: Path) -> None:
    run = carrying(tmp_path, PAST)
    with known(Acting(gone=Retired("gone", "404"), more={"steps": 50})):
        generate(run)
    assert {row["outcome"] for row in outputs_of(run).values()} == {"ok"}
    assert len(outputs_of(run)) == 4


def test_kept_outputs_stay_where_a_model_is_found_gone_while_it_draws(tmp_path: Path) -> None:
    def act(task: Task) -> GenerationResult:
        if task.sample_id in drawn_ids(0, 2):
            return GenerationResult(Outcome.RETIRED, code="404", text="gone")
        return drawn_for(task)

    run = carrying(tmp_path, PAST)
    before = outputs_of(run)
    with known(Acting(act, more={"steps": 50})):
        generate(run)
    assert outputs_of(run) == before
    assert {row["outcome"] for row in before.values()} == {"ok"}


def another_past(task: Task) -> GenerationResult:
    """It draws another image of the first carried sample, and of no other."""
    if task.sample_id in drawn_ids(0, 2) - {min(drawn_ids(0, 2))}:
        return GenerationResult(Outcome.FAILED, text="no")
    return GenerationResult(Outcome.OK, png("new"))


@pytest.mark.parametrize("then", [None, "another-model-1"])
def test_another_model_of_a_kept_name_is_another_system(tmp_path: Path, then: str | None) -> None:
    """All that the old one drew stays, and what fails for the new one is a failure."""
    older_release(tmp_path / "then", system("past", model=then))
    run = carrying(tmp_path, system("past", model="another-model-2"))
    ids, first = drawn_ids(0, 2), min(drawn_ids(0, 2))
    for _ in range(2):  # generating again changes nothing
        with known(past=Acting(another_past)):
            generate(run)
        rows = outputs_of(run)
        images = {name: rows[name, "past (old)"]["image"] for name in ids}
        assert images == {name: sha(png(name)) for name in ids}
        outcomes = {name: rows[name, "past"]["outcome"] for name in ids}
        assert outcomes == {name: "ok" if name == first else "failed" for name in ids}
        assert rows[first, "past"]["image"] == sha(png("new"))
        assert len(rows) == 8
    gathered = pq.read_table(run.folder.root / "carried" / "outputs.parquet").to_pylist()
    assert {(row["sample_id"], row["system"]) for row in gathered} == rows.keys()


def test_the_same_model_of_a_kept_name_is_one_system_drawn_once(tmp_path: Path) -> None:
    past = system("past", model="/mnt/models/another-model-1")  # a folder is no part of a model
    older_release(tmp_path / "then", past)
    run, drawer = carrying(tmp_path, past), Acting()
    with known(past=drawer):
        generate(run)
    assert not {*drawer.asked} & drawn_ids(0, 2)
    assert {who for _, who in outputs_of(run)} == {"past"}


def test_a_kept_name_follows_the_model_in_the_config(tmp_path: Path) -> None:
    """The draw stays as it is: the name is plain again once the config has the old model."""
    past = system("past", model="another-model-1")
    older_release(tmp_path / "then", past)
    for model, name in (("2", "past (old)"), ("1", "past"), ("3", "past (old)")):
        run = carrying(tmp_path, system("past", model=f"another-model-{model}"))
        run.prepare()
        assert {who for _, who in outputs_of(run)} == {name}


def test_a_name_that_is_taken_is_given_to_no_other_system(tmp_path: Path) -> None:
    run = hostile(tmp_path, {"system": "mine", "provenance": "["}, {"system": "mine (old)"})
    with known(Acting()):
        generate(run)
    assert {who for _, who in outputs_of(run)} == {"mine", "mine (old)", "mine (old) (old)"}


def test_a_plan_has_a_row_for_each_part_and_writes_nothing(tmp_path: Path) -> None:
    run = carrying(tmp_path)
    with known(Acting()):
        plans = generate(run, dry_run=True).plans
    assert [(plan.system, plan.part, len(plan.todo)) for plan in plans] == [
        ("mine", "", 5),
        ("mine", "carried from old", 4),
    ]
    assert not (tmp_path / "runs").exists()


def test_a_limit_holds_for_parts(tmp_path: Path) -> None:
    run, mine = carrying(tmp_path), Acting()
    with known(mine=mine):
        generate(run, limit=1)
    assert len(mine.asked) == 4


def test_a_budget_covers_parts_and_the_next_call_goes_on(tmp_path: Path) -> None:
    """An image costs half a dollar: three dollars are the five of the run and one of the part."""
    price = {"usd_per_image": 0.5, "as_of": "2026-03-02"}
    run, mine = carrying(tmp_path, system(price=price)), Acting(concurrency=1)
    with known(mine=mine):
        assert generate_outputs(run, budget_usd=3.0).spent
        assert len(mine.asked) == 6
        generate(run)
    assert len(mine.asked) == 9


def test_a_run_killed_between_its_parts_goes_on(tmp_path: Path) -> None:
    old = drawn_ids(0, 2)

    def killed(task: Task) -> GenerationResult:
        if task.sample_id in old:
            raise KeyboardInterrupt
        return drawn_for(task)

    run, mine = carrying(tmp_path), Acting(concurrency=1)
    with known(Acting(killed, concurrency=1)), pytest.raises(KeyboardInterrupt):
        generate(run)
    with known(mine=mine):
        generate(EvaluationRun.from_config(run.config, tmp_path / "runs"))
    assert {*mine.asked} == old
    assert len(outputs_of(run)) == 8


def test_a_draw_that_was_killed_is_made_again(tmp_path: Path) -> None:
    run = carrying(tmp_path)
    run.prepare()
    (part,) = run.parts
    before = outputs_of(run)
    (part.folder.root / "draw.json").unlink()
    shutil.rmtree(part.folder.release)
    again = EvaluationRun.from_config(run.config, tmp_path / "runs")
    assert carried_ids(again) == drawn_ids(0, 2)
    assert outputs_of(again) == before


def test_a_draw_stays_when_its_release_is_gone(tmp_path: Path) -> None:
    run = carrying(tmp_path)
    run.prepare()
    ids = carried_ids(run)
    shutil.rmtree(tmp_path / "then" / "old")
    again = EvaluationRun.from_config(run.config, tmp_path / "runs")
    assert carried_ids(again) == ids
    with known(Acting()):
        generate(again)


def test_what_was_drawn_of_a_smaller_draw_is_kept(tmp_path: Path) -> None:
    mine, first, second = Acting(), carrying(tmp_path), carrying(tmp_path, samples=3)
    with known(mine=mine):
        generate(first)
        mine.asked.clear()
        generate(second)
    assert {*mine.asked} == drawn_ids(0, 3) - drawn_ids(0, 2)


def test_samples_of_forgotten_posts_and_without_words_fall_out_counted(tmp_path: Path) -> None:
    samples = old_samples()
    first = sorted(drawn_ids(0, 2))
    for row in (row for rows in samples.values() for row in rows):
        if row["id"] == first[0]:
            row |= {"prompt": None, "dehydrated": True}
    (tmp_path / "then").mkdir()
    write_old(tmp_path / "then", samples)
    run = carrying(tmp_path)
    gone = hash_url(f"https://example.org/{first[1]}")
    add_tombstones(run.prepare().root / TOMBSTONES_FILE, [gone])
    watch = Notices()
    with known(Acting()):
        generate(run, watch=watch)
    assert carried_ids(run) == {*first[2:]}
    text = "\n".join(watch.notices)
    assert "1 samples left out (carried from old), dehydrated" in text
    assert "1 samples left out (carried from old), taken_down" in text
    assert "carried from old: the release has no outputs" in text


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"samples": 0}, ["carry", "0", "greater than or equal to 1"]),
        ({"release": "lab/echo"}, ["lab/echo", "names no tag"]),
        ({"release": "lab/echo@../x"}, ["lab/echo@../x", "names no tag"]),
        ({"release": "release"}, ["the benchmark of this run"]),
        ({"release": "nothing"}, ["carry.0.release", "nothing", "no such folder"]),
    ],
)
def test_a_carry_that_cannot_be_used_is_refused(
    tmp_path: Path, entry: Row, words: list[str]
) -> None:
    import yaml

    benchmark(tmp_path)
    given = {"release": "release", **entry}
    config = {"name": "measured", "benchmark": "release", "carry": [given]}
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(config), "utf-8")

    def open_parts() -> None:
        _ = EvaluationRun.from_config(path, tmp_path / "runs").parts

    said = said_by(ConfigError, open_parts)
    assert [word for word in words if word not in said] == []


def test_the_tag_of_the_run_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "then").mkdir()
    older_release(tmp_path / "then", name="measured")
    run = carrying(tmp_path, release=str(tmp_path / "then" / "measured"))
    assert "expected an older release" in said_by(ConfigError, lambda: run.parts)


def test_two_releases_of_one_tag_are_refused(tmp_path: Path) -> None:
    run = carrying(tmp_path)
    (tmp_path / "too").mkdir()
    other = CarriedRelease(release=str(older_release(tmp_path / "too")))
    config = run.config.model_copy(update={"carry": (*run.config.carry, other)})
    again = EvaluationRun.from_config(config, tmp_path / "runs")
    assert "expected each tag once" in said_by(ConfigError, lambda: again.parts)


def hostile(folder: Path, *rows: Row) -> EvaluationRun:
    """A run that carries a release along whose outputs are these."""
    past = older_release(folder / "then") if not (folder / "then").exists() else None
    assert past is not None
    from echo_hf.systems.run_tables import read_table
    from echo_hf.tables import OUTPUTS

    kept = read_table(folder / "then" / "runs" / "drawn", OUTPUTS)
    assert kept is not None
    (row, *_) = kept.to_pylist()
    write_old(folder / "then", outputs=[{**row, **changes} for changes in rows])
    return carrying(folder, samples=50)


def test_names_of_strangers_are_no_paths(tmp_path: Path) -> None:
    run = hostile(tmp_path, {"system": "../../../outside"}, {"system": "mine"})
    with known(Acting()):
        generate(run)
    assert not [*tmp_path.rglob("outside*")]
    assert {who for _, who in outputs_of(run)} == {"mine", "../../../outside"}


def test_two_outputs_for_one_are_refused(tmp_path: Path) -> None:
    run = hostile(tmp_path, {}, {})
    assert "several outputs of 'past'" in said_by(ReleaseError, lambda: run.parts)


def test_a_release_of_too_many_systems_is_refused_before_an_output_is_read(tmp_path: Path) -> None:
    run = hostile(tmp_path, *({"system": f"s{number}"} for number in range(101)))
    said = said_by(ReleaseError, lambda: run.parts)
    assert str(tmp_path / "then" / "old") in said
    assert "101 systems: expected 100 at most" in said
    assert [*(tmp_path / "runs").rglob("kept.parquet")] == []


def test_as_many_systems_as_may_be_are_kept(tmp_path: Path) -> None:
    run = hostile(tmp_path, *({"system": f"s{number}"} for number in range(100)))
    run.prepare()
    assert len(outputs_of(run)) == 100


def test_of_several_draws_for_a_sample_the_first_is_kept(tmp_path: Path) -> None:
    past = older_release(tmp_path / "then")
    (file,) = (past / "outputs").glob("*.parquet")
    rows = pq.read_table(file).to_pylist()
    several = [
        {**row, "draw": draw, **({"seed": 100 + draw} if draw else {})}
        for row in rows
        for draw in ((1, 0, 2) if row["sample_id"] != rows[0]["sample_id"] else (3, None))
    ]
    schema = pq.read_schema(file).remove_metadata()
    write_cells(past, pa.Table.from_pylist(several, schema))
    run = carrying(tmp_path, samples=50)
    run.prepare()
    assert len(outputs_of(run)) == len(rows) == 10
    assert {row["seed"] for row in outputs_of(run).values()} == {7}


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    run = carrying(tmp_path)
    (file,) = (tmp_path / "then" / "old" / "outputs").glob("*.parquet")
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    assert "has changed" in said_by(EchoError, lambda: run.parts)
    assert not json.dumps([str(path) for path in tmp_path.rglob("draw.json")]).count("draw")


def rewrite_outputs(folder: Path, **changes: object) -> EvaluationRun:
    """A run whose older release has these cells in its outputs, with digests that fit them."""
    past = older_release(folder / "then")
    (file,) = (past / "outputs").glob("*.parquet")
    table = pq.read_table(file)
    rows = [{**row, **changes} for row in table.to_pylist()]
    write_cells(past, pa.Table.from_pylist(rows, table.schema))
    return carrying(folder, samples=50)


def write_cells(past: Path, table: pa.Table) -> None:
    """Write the outputs of a release again, with the digests that fit them."""
    (file,) = (past / "outputs").glob("*.parquet")
    pq.write_table(table, file)
    manifest = json.loads((past / "manifest.json").read_text())
    (entry,) = manifest["configs"]["outputs"]["files"]
    data = file.read_bytes()
    entry |= {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    (past / "manifest.json").write_text(json.dumps(manifest))


def bomb() -> bytes:
    """A PNG of few bytes that says it has 40,000 times 40,000 pixels."""
    header = struct.pack(">IIBBBBB", 40_000, 40_000, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + header
    sized = struct.pack(">I", len(header)) + chunk + struct.pack(">I", zlib.crc32(chunk))
    return b"\x89PNG\r\n\x1a\n" + sized + b"\x00\x00\x00\x00IEND\xaeB`\x82"


@pytest.mark.parametrize(
    ("image", "words"),
    [
        ({"bytes": None, "path": "../../../../etc/passwd"}, "no path or address in a table"),
        ({"bytes": None, "path": "https://example.org/x.png"}, "no path or address in a table"),
        ({"bytes": bomb(), "path": "x.png"}, "pixels"),
        ({"bytes": b"<svg onload='x'/>", "path": "x.svg"}, "image"),
    ],
)
def test_an_image_of_a_stranger_is_no_path_and_not_too_large(
    tmp_path: Path, image: Row, words: str
) -> None:
    run = rewrite_outputs(tmp_path, image=image)
    said = said_by(EchoError, lambda: run.parts)
    assert words in said
    assert "\n" not in said
    assert [*(tmp_path / "runs").rglob("draw.json")] == []


def test_a_kept_output_of_another_image_than_its_row_says_is_known_by_its_bytes(
    tmp_path: Path,
) -> None:
    """The name in a cell is a stranger's word: the digest is made of the bytes."""
    named = {"bytes": png("theirs"), "path": f"{'0' * 64}.png"}
    run = rewrite_outputs(tmp_path, image=named)
    run.prepare()
    assert {row["image"] for row in outputs_of(run).values()} == {sha(png("theirs"))}


def test_outputs_about_another_sample_do_not_count(tmp_path: Path) -> None:
    run = rewrite_outputs(tmp_path, sample_digest="f" * 64)
    with known(Acting()):
        generate(run)
    rows = pq.read_table(run.folder.root / "carried" / "outputs.parquet").to_pylist()
    assert {row["system"] for row in rows} == {"mine"}


def test_a_sample_id_with_slashes_is_a_name(tmp_path: Path) -> None:
    samples = old_samples(2, 0)
    samples["text_to_image"][0]["id"] = "../../../outside"
    (tmp_path / "then").mkdir()
    write_old(tmp_path / "then", samples)
    run = carrying(tmp_path)
    with known(Acting()):
        generate(run)
    assert ("../../../outside", "mine") in outputs_of(run)
    assert [*tmp_path.parent.rglob("outside*")] == []
