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

from echo_hf.builder.build import build, run_until
from echo_hf.builder.takedown import Removal, find_named_images, forget, remove_rows
from echo_hf.builder.update import BACKUP_FOLDER, update
from echo_hf.collect.takedown import TOMBSTONES_FILE, add_tombstones, hash_url, read_tombstones
from echo_hf.curate.decisions import Decision, append_decisions, read_decisions
from echo_hf.curate.events import EVENTS_FILE, EventLog
from echo_hf.errors import RunError
from echo_hf.hub.release import Release, is_complete, read_release
from echo_hf.hub.run_tables import AGREEMENT_FILE
from echo_hf.judging.audit import AUDIT_FILE, read_audits
from echo_hf.pipeline.answer_store import Store
from echo_hf.quickstart.truth import corpus_folder
from echo_hf.tables import HUMAN, OUTPUTS, RATINGS
from tests.finished_run import NAME, extracted
from tests.recorded_as_model import BOARD, RecordedAsModel, X, bundled_posts, config_over, rows

CORPUS = corpus_folder()
FORGOTTEN = "https://x.com/hana_hikes/status/9900316480787844284"  # a lake turned into night
NUMBER = FORGOTTEN.rpartition("/")[2]
WORD = "zimtsternzimt"  # stands in that post alone
Row = dict[str, Any]


def posts() -> list[Row]:
    every = bundled_posts(X)[:60]
    (theirs,) = (one for one in every if one["url"] == FORGOTTEN)
    theirs["text"] += f" {WORD}"
    return every


def built(folder: Path, given: list[Row]) -> Release:
    return build(config_over(folder, given, "recorded"), runs=folder / "runs")


@pytest.fixture(scope="module")
def built_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    built(folder, posts())
    return folder


@pytest.fixture
def folder(built_once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built_once, tmp_path, dirs_exist_ok=True))


def forgotten(folder: Path, *urls: str) -> Removal:
    return forget(urls or [FORGOTTEN], folder / "config.yaml", runs=folder / "runs")


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
    config = config_over(tmp_path, own, "recorded")
    run_until(config, "collect", runs=tmp_path / "runs")
    removal = forgotten(tmp_path, f"{page}#old")
    run_until(config, "collect", runs=tmp_path / "runs")
    rejects = rows(run_of(tmp_path), "collect", "rejects")
    assert removal.posts == 1
    assert {row["_reason"] for row in rejects} == {"superseded"}
    assert [row["record"] and json.loads(row["record"]) for row in rejects] == [None, own[3]]
    assert holding(run_of(tmp_path), "list#old") == []


def test_a_forgotten_post_is_in_no_byte_of_the_next_release(folder: Path) -> None:
    run = run_of(folder)
    before = read_release(run / "release").datasets.values()
    samples = {row["id"]: row for some in before for row in some.to_list()}
    theirs = {name for name, row in samples.items() if NUMBER in " ".join(row["post_urls"])}
    post = next(one for one in posts() if one["url"] == FORGOTTEN)
    pixels = (CORPUS / post["pictures"][0]["path"]).read_bytes()
    log = EventLog(run / EVENTS_FILE)
    for sample in samples:
        log.append("review", sample, "ada", "edit", {"prompt": f"as in {sample}"})
    assert theirs
    assert holding(run, NUMBER, WORD)
    taken = forgotten(folder)
    assert (taken.posts, set(taken.samples) >= theirs, taken.images >= 1) == (1, True, True)
    own, *answers = taken.left_in
    assert own == f"posts.jsonl:{posts().index(post) + 1}"
    assert answers
    assert all(str(folder / "answers.jsonl:") in one for one in answers)
    assert {event.subject for event in log.read_events("review")} == samples.keys() - taken.samples
    assert holding(run, NUMBER, WORD, *(f"as in {one}" for one in taken.samples)) == []
    after = build(folder / "config.yaml", runs=folder / "runs").datasets.values()
    assert holding(run, NUMBER, WORD) == []
    assert not any(pixels in file.read_bytes() for file in run.rglob("*.parquet"))
    assert {row["id"]: row["prompt"] for some in after for row in some.to_list()} == {
        name: row["prompt"] for name, row in samples.items() if name not in theirs
    }
    # Its replies stay together, below a post without a word.
    kept = rows(run, "collect")
    (empty,) = (one for one in kept if one["missing"] == "removed")
    assert empty["url"].startswith("urn:sha256:")
    said = [empty[name] for name in ("text", "author", "pictures", "timestamp")]
    assert said == [None, None, [], None]
    answered = [one for one in posts() if one.get("parent_url") == FORGOTTEN]
    assert sum(one["parent_url"] == empty["url"] for one in kept) == len(answered) > 0


def test_it_does_not_come_back(folder: Path) -> None:
    forgotten(folder)
    again = {**posts()[0], "text": WORD, "url": f"https://mobile.twitter.com/x/status/{NUMBER}"}
    broken = {"text": WORD, "original": FORGOTTEN}  # a rejected record that holds it
    built(folder, [again, broken, *posts()])
    assert holding(run_of(folder), NUMBER, WORD) == []
    noted = json.loads((run_of(folder) / "stages/collect/stats.json").read_text())["noted"]
    answered = sum(FORGOTTEN in (one.get("parent_url"), one.get("quoted_url")) for one in posts())
    assert (noted["forgotten"], noted["forgotten_link"]) == (3, answered)


def test_answers_the_release_before_and_what_a_kill_left_go_with_it(tmp_path: Path) -> None:
    RecordedAsModel().use()
    theirs = FORGOTTEN.replace(X, BOARD)
    given = bundled_posts()[:20]
    (post,) = (one for one in given if one["url"] == theirs)
    post["text"] += f" {WORD}"
    run = run_of(tmp_path)
    for some in (given, given[:-5]):
        config = config_over(tmp_path, some)
        update(config, runs=tmp_path / "runs", with_responses=True)
    shutil.copytree(run / "release", run / ".release.previous")
    shutil.copytree(run / "release", run / "cache" / BACKUP_FOLDER)
    (run / ".report.lock").touch()
    places = {".release.previous", "cache", "previous", "release", "responses.parquet", "stages"}
    assert parts_holding(run, NUMBER) >= places
    with closing(Store(run / "answers.sqlite")) as store:
        before = len(store)
        assert before > forgotten(tmp_path, theirs).answers > 0
        assert 0 < len(store) < before
    assert holding(run, NUMBER, WORD) == []
    done = update(config, runs=tmp_path / "runs", with_responses=True)
    assert holding(run, NUMBER, WORD) == []
    assert (done.previous, done.changed) == (None, True)


@pytest.mark.slow
def test_the_release_before_is_searched_as_well(tmp_path: Path) -> None:
    given, theirs = bundled_posts(), FORGOTTEN.replace(X, BOARD)
    for some in (given, [one for one in given if one["url"] != theirs]):
        update(config_over(tmp_path, some, "recorded"), runs=tmp_path / "runs")
    run = run_of(tmp_path)
    assert forgotten(tmp_path, f"{BOARD}nobody").posts == 0
    assert "previous" in parts_holding(run, NUMBER)
    assert forgotten(tmp_path, theirs).posts == 1
    assert holding(run, NUMBER) == []


def test_it_can_be_done_twice_and_before_any_build(folder: Path) -> None:
    shutil.rmtree(folder / "runs")
    taken = [forgotten(folder) for _ in range(2)]
    assert [(one.posts, one.unknown, one.answers) for one in taken] == [(1, (), 0)] * 2
    assert len((run_of(folder) / TOMBSTONES_FILE).read_text().splitlines()) == 1


def test_images_of_two_posts_leave_one_after_the_other(folder: Path) -> None:
    both = (FORGOTTEN, posts()[0]["url"])
    shown = [image for post in posts() if post["url"] in both for image in post["pictures"]]
    files = [(CORPUS / image["path"]).read_bytes() for image in shown]
    theirs = {hashlib.sha256(data).hexdigest() for data in files}
    assert len(theirs) >= 3
    for url in both:
        forgotten(folder, url)
    assert {path.name for path in (run_of(folder) / "pictures").glob("*/*")}.isdisjoint(theirs)


def test_all_that_was_made_of_posts_leaves_with_one_after_the_other(tmp_path: Path) -> None:
    """No build comes between; the second to the fourth are in no stage any more."""
    config, run = extracted(tmp_path), tmp_path / "runs" / NAME
    samples = pq.read_table(run / "stages/splits/kept.parquet").to_pylist()
    drawn = pq.read_table(run / "outputs.parquet").to_pylist()
    names = [one["id"] for one in samples]
    shown = {name: [one["image"] for one in drawn if one["sample_id"] == name] for name in names}
    # The first two images of a sample: as itself, and in the place of the next sample's.
    rated = [[name, "real", shown[name][0], 5.0] for name in names]
    rated += [[names[at - 1], "shuffled", shown[name][0], 1.0] for at, name in enumerate(names)]
    rated += [[name, "blank", "0" * 64, 1.0] for name in names]
    rounds = [{"number": 0, "day": "2026-01-01", "digest": "d", "ratings": rated}]
    audit = {"judges": {"iris": {"failed": [], "rounds": rounds}}}
    (run / AUDIT_FILE).write_text(json.dumps(audit))
    (run / AGREEMENT_FILE).write_text(json.dumps({"worst": names}))
    assert len(samples) == 4
    assert {Path(one).name for one in holding(run, names[-1])} >= {
        *("outputs.parquet", "ratings.parquet", "comparisons.parquet"),
        *("amber.jsonl", "birch.jsonl", "audit.json", "agreement.json", "review.jsonl"),
    }
    for number, sample in enumerate(samples, 1):
        removal = forget(sample["post_urls"][:1], config, runs=run.parent)
        assert (removal.posts, removal.samples) == (1, (sample["id"],))
        words = [sample["id"], *sample["post_urls"][:1], *shown[sample["id"]]]
        assert holding(run, *words) == []
        assert {path.name for path in run.glob("pictures/*/*")}.isdisjoint(words)
        ratings = read_audits(run)["iris"]["rounds"][0]["ratings"]
        assert {name for name, *_ in ratings} == set(names[number:])
        assert sum(image == "0" * 64 for _, _, image, _ in ratings) == 4 - number


@pytest.mark.parametrize("updates", [1, 2])
def test_a_post_that_left_the_input_is_still_found(folder: Path, updates: int) -> None:
    """After one update it is in the release before, after two in no release."""
    run, others = run_of(folder), [one for one in posts() if one["url"] != FORGOTTEN]
    released = [row for some in read_release(run / "release").datasets.values() for row in some]
    theirs = {row["id"] for row in released if NUMBER in " ".join(row["post_urls"])}
    written = [{"sample_id": row["id"], "system": "a", "outcome": "ok"} for row in released]
    write(run, "outputs", *written)
    for number in range(updates):
        changed = [{**others[0], "text": f"a new text {number}"}, *others[1:]]
        update(config_over(folder, changed, "recorded"), runs=folder / "runs")
    assert holding(run, *theirs)
    removal = forgotten(folder)
    assert (removal.posts, set(removal.samples)) == (1, theirs)
    assert holding(run, NUMBER, *theirs) == []


def test_what_nobody_knows_costs_nothing(folder: Path) -> None:
    run = run_of(folder)
    before = {path for path in run.rglob("*") if path.is_file()}
    with pytest.raises(RunError, match="'mira_draws' is not an address of a post"):
        forgotten(folder, "mira_draws")
    taken = forgotten(folder, "https://x.com/i/status/1")
    assert (taken.posts, taken.unknown) == (0, ("https://x.com/i/status/1",))
    gone = before - {path for path in run.rglob("*") if path.is_file()}
    assert {path.relative_to(run).parts[0] for path in gone} == {"cache"}
    assert is_complete(run / "release")


def test_a_damaged_tombstone_stops_a_build(tmp_path: Path) -> None:
    path = tmp_path / TOMBSTONES_FILE
    add_tombstones(path, [hash_url("https://a.example/1")] * 2)
    path.write_text(path.read_text() + '{"sha256": "12')
    with pytest.raises(RunError, match="line 2 is "):
        read_tombstones(path)


def write(root: Path, name: str, *rows: dict[str, object]) -> None:
    schema = {"outputs": OUTPUTS, "ratings": RATINGS, "human": HUMAN}[name].schema
    pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), root / f"{name}.parquet")


def test_what_is_kept_about_a_sample_goes_with_its_images(tmp_path: Path) -> None:
    output = {"system": "a", "outcome": "ok"}
    gone, stays = {**output, "sample_id": "gone"}, {**output, "sample_id": "stays", "image": "2"}
    write(tmp_path, "outputs", gone | {"image": "1"}, gone | {"image": "2", "system": "b"}, stays)
    write(tmp_path, "ratings", {"sample_id": "gone", "explanation": "the lake is dark"})
    write(tmp_path, "human", {"sample_id": "gone", "rater": "r"}, {"sample_id": "stays"})
    log, file = EventLog(tmp_path / EVENTS_FILE), tmp_path / "review.jsonl"
    for name, digest in (("gone", "a" * 64), ("stays", "b" * 64), ("gone", "a" * 64)):
        log.append("review", name, "ann", "edit", {"text": f"teal words of {name}"})
        crop = {"role": "input", "box": (0, 0, 9, 9), "sha256": digest}
        made = {"id": name, "sample_digest": "d", "decision": "edit", "reasons": []}
        made |= {"changes": {"crops": {"screenshot": "c" * 64, "crops": [crop]}}}
        append_decisions(file, [Decision.model_validate({**made, "note": f"about {name}"})])
    with file.open("a") as written:
        written.write('{"id": "gone", "note": "cut sho')
    assert find_named_images(tmp_path) == {"1", "2", "a" * 64, "b" * 64}
    remove_rows(tmp_path, {"gone"})
    assert find_named_images(tmp_path) == {"2", "b" * 64}
    for name, left in {"outputs": ["stays"], "ratings": [], "human": ["stays"]}.items():
        assert pq.read_table(tmp_path / f"{name}.parquet")["sample_id"].to_pylist() == left
    assert set(read_decisions(file).by_id) == {"stays"}
    assert [event.subject for event in log.read_events("review")] == ["stays"]
    assert holding(tmp_path, "gone") == []


def test_what_was_removed_stays_removed_without_a_word(tmp_path: Path) -> None:
    said = {"sample_digest": "d", "reasons": ("may_show_minor",), "pictures": ("1",)}
    file = tmp_path / "review.jsonl"
    remove = {**said, "decision": "remove", "note": "a child"}
    kept = Decision(id="b", decision="keep", note="looks 30", **said)
    append_decisions(file, [*(Decision(id=name, **remove) for name in "ab"), kept])
    remove_rows(tmp_path, {"a", "b"})
    assert read_decisions(file).log == (
        Decision(id="a", decision="remove", sample_digest="d", reasons=("may_show_minor",)),
    )
