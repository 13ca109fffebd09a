"""A post that is forgotten is in no byte of a run, and does not come back."""

from __future__ import annotations

import hashlib
import json
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from echo_hf.apps.events import EVENTS, EVENTS_FILE, JOURNALS, EventLog, forget
from echo_hf.builder.build import build
from echo_hf.builder.takedown import images_named, remove_rows
from echo_hf.builder.update import ASIDE, update
from echo_hf.collect.takedown import TOMBSTONES, add_tombstones, hashed, read_tombstones
from echo_hf.curate.decisions import Decision, append_decisions, read_decisions
from echo_hf.errors import RunError
from echo_hf.hub.release import Release, is_complete, read_release
from echo_hf.pipeline.answer_store import Store
from echo_hf.quickstart.truth import corpus
from echo_hf.tables import HUMAN, OUTPUTS, RATINGS
from tests.recorded_as_model import BOARD, RecordedAsModel, X, bundled_posts, config_over

CORPUS = corpus()
FORGOTTEN = "https://x.com/hana_hikes/status/9900316480787844284"  # a lake turned into night
NUMBER = FORGOTTEN.rpartition("/")[2]
WORD = "zimtsternzimt"  # stands in that post alone
Row = dict[str, Any]


def posts() -> list[Row]:
    every = bundled_posts(X)[:60]
    (theirs,) = (one for one in every if one["url"] == FORGOTTEN)
    theirs["text"] += f" {WORD}"
    return every


def built(folder: Path, given: list[Row]) -> tuple[Path, Release]:
    config = config_over(folder, given, "recorded")
    return config, build(config, runs=folder / "runs")


@pytest.fixture(scope="module")
def built_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    built(folder, posts())
    return folder


@pytest.fixture
def build_of_posts(built_once: Path, tmp_path: Path) -> tuple[Path, Release]:
    shutil.copytree(built_once, tmp_path, dirs_exist_ok=True)
    return tmp_path / "config.yaml", read_release(run_of(tmp_path) / "release")


def run_of(folder: Path) -> Path:
    return folder / "runs" / "quickstart"


def holding(folder: Path, *words: str) -> list[str]:
    files = (file for file in folder.rglob("*") if file.is_file())
    return [str(file) for file in files if any(word.encode() in unpacked(file) for word in words)]


def unpacked(file: Path) -> bytes:
    data = file.read_bytes()
    if file.suffix == ".parquet":
        data += str(pq.read_table(file).to_pylist()).encode()
    return data


def parts_holding(run: Path, *words: str) -> set[str]:
    return {Path(file).relative_to(run).parts[0] for file in holding(run, *words)}


def test_an_old_text_keeps_no_link_to_a_forgotten_post(tmp_path: Path) -> None:
    page = "https://art.example/list"
    own = [
        {"url": f"{page}#old", "text": "gone", "keywords": ["lumen"]},
        {"url": f"{page}#new", "text": "so good", "parent_url": f"{page}#old"},
        {"url": f"{page}#new", "text": "so very good", "parent_url": f"{page}#old"},
        *({"url": f"{page}#other", "text": text} for text in ("a fox", "a bear")),
    ]
    config, _ = built(tmp_path, posts()[:20] + own)
    removal = forget([f"{page}#old"], config, runs=tmp_path / "runs")
    build(config, runs=tmp_path / "runs")
    rejects = pq.read_table(run_of(tmp_path) / "stages" / "collect" / "rejects.parquet").to_pylist()
    assert removal.posts == 1
    assert {row["_reason"] for row in rejects} == {"superseded"}
    assert [row["record"] and json.loads(row["record"]) for row in rejects] == [None, own[3]]
    assert holding(run_of(tmp_path), "list#old") == []


def test_a_forgotten_post_is_in_no_byte_of_the_next_release(
    tmp_path: Path, build_of_posts: tuple[Path, Release]
) -> None:
    config, before = build_of_posts
    samples = {row["id"]: row for rows in before.datasets.values() for row in rows.to_list()}
    theirs = {name for name, row in samples.items() if NUMBER in " ".join(row["post_urls"])}
    post = next(one for one in posts() if one["url"] == FORGOTTEN)
    pixels = (CORPUS / post["pictures"][0]["path"]).read_bytes()
    log = EventLog(run_of(tmp_path) / EVENTS_FILE)
    for sample in samples:
        log.append("review", sample, "ada", "edit", {"prompt": f"as in {sample}"})
    assert theirs
    assert holding(run_of(tmp_path), NUMBER, WORD)
    taken = forget([FORGOTTEN], config, runs=tmp_path / "runs")
    assert (taken.posts, set(taken.samples) >= theirs, taken.images >= 1) == (1, True, True)
    own, *answers = taken.left_in
    assert own == f"posts.jsonl:{posts().index(post) + 1}"
    assert answers
    assert all(str(tmp_path / "answers.jsonl:") in one for one in answers)
    assert {event.subject for event in log.events("review")} == samples.keys() - taken.samples
    assert holding(run_of(tmp_path), NUMBER, WORD, *(f"as in {one}" for one in taken.samples)) == []
    release = build(config, runs=tmp_path / "runs")
    assert holding(run_of(tmp_path), NUMBER, WORD) == []
    assert not any(pixels in file.read_bytes() for file in run_of(tmp_path).rglob("*.parquet"))
    after = {row["id"]: row for rows in release.datasets.values() for row in rows.to_list()}
    assert {name: row["prompt"] for name, row in after.items()} == {
        name: row["prompt"] for name, row in samples.items() if name not in theirs
    }
    # Its replies stay together, below a post without a word.
    kept = pq.read_table(run_of(tmp_path) / "stages" / "collect" / "kept.parquet").to_pylist()
    (empty,) = (one for one in kept if one["missing"] == "removed")
    assert empty["url"].startswith("urn:sha256:")
    assert (empty["text"], empty["author"], empty["pictures"], empty["timestamp"]) == (
        None, None, [], None,
    )  # fmt: skip
    answered = [one for one in posts() if one.get("parent_url") == FORGOTTEN]
    assert sum(one["parent_url"] == empty["url"] for one in kept) == len(answered) > 0


def test_it_does_not_come_back(tmp_path: Path, build_of_posts: tuple[Path, Release]) -> None:
    config, _ = build_of_posts
    forget([FORGOTTEN], config, runs=tmp_path / "runs")
    again = {**posts()[0], "text": WORD, "url": f"https://mobile.twitter.com/x/status/{NUMBER}"}
    broken = {"text": WORD, "original": FORGOTTEN}  # a rejected record that holds it
    built(tmp_path, [again, broken, *posts()])
    assert holding(run_of(tmp_path), NUMBER, WORD) == []
    noted = json.loads((run_of(tmp_path) / "stages/collect/stats.json").read_text())["noted"]
    answered = sum(FORGOTTEN in (one.get("parent_url"), one.get("quoted_url")) for one in posts())
    assert (noted["forgotten"], noted["forgotten_link"]) == (3, answered)


def test_answers_and_the_release_before_go_with_it(tmp_path: Path) -> None:
    RecordedAsModel().use()
    theirs = FORGOTTEN.replace("https://x.com/", BOARD)
    given = bundled_posts()[:40]
    (post,) = (one for one in given if one["url"] == theirs)
    post["text"] += f" {WORD}"
    run = run_of(tmp_path)
    for some in (given, given[:-10]):
        config = config_over(tmp_path, some)
        update(config, runs=tmp_path / "runs", with_responses=True)
    shutil.copytree(run / "release", run / ".release.previous")
    shutil.copytree(run / "release", run / "cache" / ASIDE)
    places = {".release.previous", "cache", "previous", "release", "responses.parquet", "stages"}
    assert parts_holding(run, NUMBER) >= places
    with closing(Store(run / "answers.sqlite")) as store:
        before = len(store)
        assert before > forget([theirs], config, runs=tmp_path / "runs").answers > 0
        assert 0 < len(store) < before
    assert holding(run, NUMBER, WORD) == []
    done = update(config, runs=tmp_path / "runs", with_responses=True)
    assert holding(run, NUMBER, WORD) == []
    assert (done.previous, done.changed) == (None, True)


@pytest.mark.slow
def test_the_release_before_is_searched_as_well(tmp_path: Path) -> None:
    given = bundled_posts()
    theirs = FORGOTTEN.replace("https://x.com/", BOARD)
    for some in (given, [one for one in given if one["url"] != theirs]):
        config = config_over(tmp_path, some, "recorded")
        update(config, runs=tmp_path / "runs")
    run = run_of(tmp_path)
    assert "previous" in parts_holding(run, NUMBER)
    assert forget([f"{BOARD}nobody"], config, runs=tmp_path / "runs").posts == 0
    assert "previous" in parts_holding(run, NUMBER)
    assert forget([theirs], config, runs=tmp_path / "runs").posts == 1
    assert holding(run, NUMBER) == []


def test_it_can_be_done_twice_and_before_any_build(
    tmp_path: Path, build_of_posts: tuple[Path, Release]
) -> None:
    config, _ = build_of_posts
    shutil.rmtree(tmp_path / "runs")
    taken = [forget([FORGOTTEN], config, runs=tmp_path / "runs") for _ in range(2)]
    assert [(one.posts, one.unknown, one.answers) for one in taken] == [(1, (), 0)] * 2
    assert len((run_of(tmp_path) / TOMBSTONES).read_text().splitlines()) == 1


def test_images_of_two_posts_leave_one_after_the_other(
    tmp_path: Path, build_of_posts: tuple[Path, Release]
) -> None:
    config, _ = build_of_posts
    both = (FORGOTTEN, posts()[0]["url"])
    theirs = [
        hashlib.sha256((CORPUS / image["path"]).read_bytes()).hexdigest()
        for post in posts()
        if post["url"] in both
        for image in post["pictures"]
    ]
    assert len(theirs) >= 3
    for url in both:
        forget([url], config, runs=tmp_path / "runs")
    assert {path.name for path in (run_of(tmp_path) / "pictures").glob("*/*")}.isdisjoint(theirs)


def test_what_nobody_knows_costs_nothing(
    tmp_path: Path, build_of_posts: tuple[Path, Release]
) -> None:
    config, release = build_of_posts
    before = {path for path in run_of(tmp_path).rglob("*") if path.is_file()}
    with pytest.raises(RunError, match="'mira_draws' is not an address of a post"):
        forget(["mira_draws"], config, runs=tmp_path / "runs")
    taken = forget(["https://x.com/i/status/1"], config, runs=tmp_path / "runs")
    assert (taken.posts, taken.unknown) == (0, ("https://x.com/i/status/1",))
    assert before <= {path for path in run_of(tmp_path).rglob("*") if path.is_file()}
    assert is_complete(release.path)


def test_what_a_killed_build_left_goes_too(
    tmp_path: Path, build_of_posts: tuple[Path, Release]
) -> None:
    config, release = build_of_posts
    shutil.copytree(release.path, release.path.with_name("previous"))
    release.path.rename(release.path.with_name(".release.previous"))
    (run_of(tmp_path) / ".report.lock").touch()
    forget([FORGOTTEN], config, runs=tmp_path / "runs")
    assert not release.path.exists()
    assert [path.name for path in run_of(tmp_path).glob("*previous*")] == []


def test_a_damaged_tombstone_stops_a_build(tmp_path: Path) -> None:
    path = tmp_path / TOMBSTONES
    add_tombstones(path, [hashed("https://a.example/1")] * 2)
    path.write_text(path.read_text() + '{"sha256": "12')
    with pytest.raises(RunError, match="line 2 is "):
        read_tombstones(path)


FILES = (JOURNALS, EVENTS)


def write(root: Path, name: str, *rows: dict[str, object]) -> None:
    schema = {"outputs": OUTPUTS, "ratings": RATINGS, "human": HUMAN}[name].schema
    pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), root / f"{name}.parquet")


def test_rows_and_decisions_about_a_sample_go(tmp_path: Path) -> None:
    output = {"system": "a", "outcome": "ok"}
    gone, stays = {**output, "sample_id": "gone"}, {**output, "sample_id": "stays", "image": "2"}
    write(tmp_path, "outputs", gone | {"image": "1"}, gone | {"image": "2", "system": "b"}, stays)
    write(tmp_path, "ratings", {"sample_id": "gone", "explanation": "the lake is dark"})
    write(tmp_path, "human", {"sample_id": "gone", "rater": "r"}, {"sample_id": "stays"})
    said = {"sample_digest": "d", "decision": "keep", "reasons": ()}
    made = [Decision(id=name, note=f"about {name}", **said) for name in ("gone", "stays", "gone")]
    append_decisions(tmp_path / "review.jsonl", made)
    with (tmp_path / "review.jsonl").open("a") as file:
        file.write('{"id": "gone", "note": "cut sho')
    assert images_named(tmp_path, FILES) == {"1", "2"}
    remove_rows(tmp_path, {"gone"}, FILES)
    assert images_named(tmp_path, FILES) == {"2"}
    for name, left in {"outputs": ["stays"], "ratings": [], "human": ["stays"]}.items():
        assert pq.read_table(tmp_path / f"{name}.parquet")["sample_id"].to_pylist() == left
    assert set(read_decisions(tmp_path / "review.jsonl").by_id) == {"stays"}
    held = [path for path in tmp_path.iterdir() if b"gone" in path.read_bytes()]
    assert [path.name for path in held] == []


def test_what_was_removed_stays_removed_without_a_word(tmp_path: Path) -> None:
    said = {"sample_digest": "d", "reasons": ("may_show_minor",), "pictures": ("1",)}
    file = tmp_path / "review.jsonl"
    remove = {**said, "decision": "remove", "note": "a child"}
    kept = Decision(id="b", decision="keep", note="looks 30", **said)
    append_decisions(file, [*(Decision(id=name, **remove) for name in "ab"), kept])
    remove_rows(tmp_path, {"a", "b"}, FILES)
    assert read_decisions(file).every == (
        Decision(id="a", decision="remove", sample_digest="d", reasons=("may_show_minor",)),
    )


def test_what_was_done_in_apps_and_cut_out_goes_with_a_sample(tmp_path: Path) -> None:
    log = EventLog(tmp_path / EVENTS_FILE)
    for name, digest in (("gone", "a" * 64), ("stays", "b" * 64)):
        log.append("review", name, "ann", "edit", {"text": f"teal words of {name}"})
        crop = {"role": "input", "box": (0, 0, 9, 9), "sha256": digest}
        made = {"id": name, "sample_digest": "d", "decision": "edit", "reasons": []}
        made |= {"changes": {"crops": {"screenshot": "c" * 64, "crops": [crop]}}}
        append_decisions(tmp_path / "review.jsonl", [Decision.model_validate(made)])
    assert images_named(tmp_path, FILES) == {"a" * 64, "b" * 64}
    remove_rows(tmp_path, {"gone"}, FILES)
    assert images_named(tmp_path, FILES) == {"b" * 64}
    assert [event.subject for event in log.events("review")] == ["stays"]
    held = [path for path in tmp_path.iterdir() if b"words of gone" in path.read_bytes()]
    assert held == []
