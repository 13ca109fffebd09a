"""A build is repeated from the answers that its release carries, and asks nobody."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from echo_hf.builder import build as pipeline
from echo_hf.builder import steps
from echo_hf.builder.build import build
from echo_hf.builder.steps import STAGES
from echo_hf.engines.base import Completion, Request
from echo_hf.errors import ReleaseError
from echo_hf.hub.diff import diff
from echo_hf.hub.manifest import MANIFEST
from echo_hf.hub.release import Release
from echo_hf.pipeline.answer_store import Store
from tests.progress_for_tests import Heard
from tests.recorded_as_model import (
    USAGE,
    RecordedAsModel,
    X,
    bundled_posts,
    config_over,
    no_engine,
    rows,
    tables,
)

PRIVATE = "no route to 10.0.0.7"
MODEL_STAGES = ("relevance", "extract", "roles", "screenshots", "safety", "feedback")


class FailsOnOne:
    """Fails the first request of each task that is named, whenever it is asked."""

    def __init__(self, **failures: Completion) -> None:
        self.failures = failures
        self.chosen: dict[str, tuple[str, ...]] = {}

    def __call__(self, asked: Request) -> Completion | None:
        """What comes in place of an answer."""
        is_chosen = self.chosen.setdefault(asked.task, asked.sources) == asked.sources
        return self.failures.get(asked.task) if is_chosen else None


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A config over the bundled posts, none of them from a platform that keeps them."""
    return config_over(tmp_path, bundled_posts())


def recorded(config: Path, engine: RecordedAsModel | None = None) -> Release:
    """A release that carries the answers of an engine, which nobody can make after that."""
    (engine or RecordedAsModel()).use()
    release = build(config, runs=config.parent / "first", with_responses=True)
    no_engine()
    return release


def replayed(config: Path, release: Release, watch: Heard | None = None) -> Path:
    """Folder of a run that was built from a release's answers."""
    runs = config.parent / "second"
    again = build(
        config,
        runs=runs,
        offline=True,
        responses=release.path,
        with_responses=True,
        allow_empty=True,
        watch=watch,
    )
    return again.path.parent


def test_every_table_and_the_release_are_equal(config: Path) -> None:
    """Byte for byte, without the engine; nothing is called, and every answer is found."""
    engine, notes = RecordedAsModel(), Heard()
    release = recorded(config, engine)
    run = replayed(config, release, notes)

    first, second = tables(release.path.parent), tables(run)
    assert len(first) > 4 * len(STAGES)
    assert second == first
    assert notes.remarks == []
    fills = {one.stats.stage: one.stats.fill for one in notes.results}
    filled = {name: fills[name] for name in MODEL_STAGES}
    assert {name: one.calls for name, one in filled.items()} == dict.fromkeys(MODEL_STAGES, 0)
    asked = {name: sum(one.task == name for one in engine.asked) for name in MODEL_STAGES}
    abstained = {name: one.requests - one.repeated - one.store_hits for name, one in filled.items()}
    assert {name: filled[name].store_hits + abstained[name] for name in asked} == asked


def test_the_order_of_safety_and_feedback_makes_no_difference(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Built with the guard first: the run goes on, and the release is replayed, without a call."""
    guard_first = (*STAGES[:7], "safety", "feedback", *STAGES[9:])
    with monkeypatch.context() as before:
        before.setattr(steps, "STAGES", guard_first)
        before.setattr(pipeline, "STAGES", guard_first)
        RecordedAsModel().use()
        old = build(config, runs=config.parent / "old", with_responses=True)
        build(config, runs=config.parent / "first")
        same = RecordedAsModel().use()  # is asked nothing
        build(config, runs=config.parent / "first")
    other = RecordedAsModel().use()
    new = build(config, runs=config.parent / "first", with_responses=True)
    assert _asked(other) == _asked(same)
    no_engine()
    run = replayed(config, old)
    assert tuple(row.stage for row in old.manifest.funnel) == guard_first
    assert tuple(row.stage for row in new.manifest.funnel) == STAGES

    for place in (new.path, run / "release"):
        found = diff(old.path, place)
        assert (found.added, found.removed, found.changed, found.stages) == ((), (), (), ())
        assert (found.remade, {one.distance for one in found.drift.values()}) == (0, {0.0})
        assert all(one.equal for one in found.configs.values())


def _asked(engine: RecordedAsModel) -> list[tuple[str, tuple[str, ...]]]:
    return sorted((one.task, one.sources) for one in engine.asked)


def test_answers_that_could_not_be_used_fail_the_same_way(config: Path) -> None:
    """Refused, cut and unreadable ones: the same rows are in quarantine, with the same detail."""
    fails = FailsOnOne(
        extract=Completion("I will not.", None, "refusal"),
        roles=Completion('{"pictures": [', None, "length"),
        feedback=Completion("Hm.", None, "stop"),
    )
    release = recorded(config, RecordedAsModel(fails=fails))
    reasons = {
        name: {row["_reason"] for row in rows(release.path.parent, name, "quarantine")}
        for name in fails.failures
    }
    assert reasons["extract"] >= {"refused"}
    assert reasons["roles"] == {"cut"}
    assert reasons["feedback"] == {"unreadable"}
    assert tables(replayed(config, release)) == tables(release.path.parent)


def test_of_an_error_its_kind_is_passed_on_and_not_its_words(config: Path) -> None:
    """What an engine says of an error may name its server: no byte of the release has it."""
    fails = FailsOnOne(feedback=Completion(None, PRIVATE, "error"))
    release = recorded(config, RecordedAsModel(fails=fails))
    first = rows(release.path.parent, "feedback", "quarantine")
    second = rows(replayed(config, release), "feedback", "quarantine")

    assert {row["_detail"] for row in first} == {PRIVATE}
    assert [{**row, "_detail": None} for row in second] == [{**r, "_detail": None} for r in first]
    assert {row["_reason"] for row in second} == {"engine_error"}
    files = [path for path in release.path.rglob("*") if path.is_file()]
    assert not any(PRIVATE.encode() in path.read_bytes() for path in files)


def test_replaying_twice_changes_nothing(config: Path) -> None:
    """The second time the store has all there is: tokens are not counted twice."""
    fails = FailsOnOne(roles=Completion('{"pictures": [', None, "length"))
    release = recorded(config, RecordedAsModel(fails=fails))
    run = replayed(config, release)
    first = tables(run)
    assert tables(replayed(config, release)) == first
    usage = pq.read_table(run / "responses.parquet")["usage"].to_pylist()
    assert {one["prompt_tokens"] for one in usage} == {USAGE.prompt, 2 * USAGE.prompt}


def test_changed_instructions_are_named(config: Path) -> None:
    """One line says which stage; its rows wait, and what does not depend on them is equal."""
    release = recorded(config)
    text = config.read_text("utf-8").replace("Northlight", "Southlight")
    config.write_text(text, "utf-8")
    notes = Heard()
    run = replayed(config, release, notes)

    assert notes.remarks[0] == (
        "relevance: recorded with other instructions or options; "
        "rows without an answer will be in quarantine"
    )
    assert {row["_reason"] for row in rows(run, "relevance", "quarantine")} == {"not_answered"}
    first, second = tables(release.path.parent), tables(run)
    assert second["stages/collect/kept.parquet"] == first["stages/collect/kept.parquet"]


def test_an_engine_without_a_model_answers_anew(tmp_path: Path) -> None:
    """Its answers stand in no release: the config's file of them is read again."""
    config = config_over(tmp_path, bundled_posts(), "recorded")
    release = build(config, runs=tmp_path / "first", with_responses=True)
    notes = Heard()
    run = replayed(config, release, notes)
    assert release.manifest.configs["responses"].rows == 0
    assert tables(run) == tables(release.path.parent)
    assert notes.remarks == []


def test_another_file_than_was_answered_from_is_named(tmp_path: Path) -> None:
    """Their results may differ, and a line for each stage says so."""
    config = config_over(tmp_path, bundled_posts(), "recorded")
    release = build(config, runs=tmp_path / "first", with_responses=True)
    source = release.manifest.provenance["roles"].engine
    assert source is not None
    manifest = release.path / MANIFEST
    other = manifest.read_text("utf-8").replace(str(source["sha256"]), "0" * 64)
    manifest.write_text(other, "utf-8")
    # The digests of that version's stages were others, too.
    digest = release.manifest.provenance["roles"].digest
    manifest.write_text(manifest.read_text("utf-8").replace(digest, "1" * 64), "utf-8")
    notes = Heard()
    replayed(config, release, notes)
    assert notes.remarks == [
        "roles: recorded with other rules or answers than those here; its rows may differ"
    ]


def test_other_posts_cost_what_is_new(config: Path) -> None:
    """Threads that were recorded are as they were; a new one waits for a model."""
    release = recorded(config)
    new = {"url": "https://board.example/1", "text": "made with Lumen Image: a kite over dunes"}
    config_over(config.parent, [*bundled_posts(), {**new, "keywords": ["lumen"]}])
    notes = Heard()
    run = replayed(config, release, notes)

    assert [line.partition(":")[0] for line in notes.remarks] == ["collect"]
    waiting = rows(run, "relevance", "quarantine")
    assert [row["url"] for row in waiting if row["_reason"] == "not_answered"] == [new["url"]]
    before = {row["id"]: row for row in rows(release.path.parent, "splits")}
    assert {row["id"]: row for row in rows(run, "splits")} == before


def test_what_the_store_has_stays(config: Path) -> None:
    """An answer that is there already is not replaced by a recorded one."""
    release = recorded(config)
    run = config.parent / "second" / "quickstart"
    mine = '{"score": 1, "note": "mine"}'
    keys = pq.read_table(release.path.parent / "responses.parquet").to_pylist()
    relevance = [bytes.fromhex(row["request_key"]) for row in keys if row["task"] == "relevance"]
    question = Request("relevance", (), None, 8)
    with closing(Store(run / "answers.sqlite")) as store:
        for key in relevance:
            store.put(key, question, Completion(mine), {"kind": "mine"})
    replayed(config, release)

    with closing(Store(run / "answers.sqlite")) as store:
        assert {one.text for one in store.get(relevance).values()} == {mine}
    assert rows(run, "threads") == []


def test_an_answer_is_forgotten_with_its_posts(config: Path) -> None:
    """Replayed answers are kept under the posts that the requests here were made from."""
    release = recorded(config)
    run = replayed(config, release)
    forgotten = rows(run, "extract")[0]["post_urls"][0]
    answers = pq.read_table(release.path.parent / "responses.parquet").to_pylist()
    theirs = [row for row in answers if forgotten in row["sources"] and row["text"]]
    with closing(Store(run / "answers.sqlite")) as store:
        assert store.forget([forgotten]) == len(theirs) > 0


def test_answers_about_posts_of_x_are_not_carried(tmp_path: Path) -> None:
    """They are counted; without them their rows wait, and those of other platforms are there."""
    config = config_over(tmp_path, bundled_posts(X))
    notes = Heard()
    RecordedAsModel().use()
    release = build(config, runs=tmp_path / "first", with_responses=True, watch=notes)
    no_engine()
    carried = pq.read_table(release.path.parent / "responses.parquet").to_pylist()
    left_out = release.stats["left_out"]["responses"]

    assert carried
    assert not any(url.startswith(X) for row in carried for url in row["sources"])
    assert list(left_out) == ["may_quote"]
    assert notes.remarks == [
        f"responses: {left_out['may_quote']} left out, may_quote: "
        "it may repeat posts that must not be passed on"
    ]
    run = replayed(config, release)
    scored = {row["url"] for row in rows(run, "relevance") if (row["relevance"] or {}).get("score")}
    assert scored
    assert not any(url.startswith(X) for url in scored)


def test_with_a_right_to_them_answers_about_x_are_carried(tmp_path: Path) -> None:
    """The config states what permits it; then the posts of X are built again like all others."""
    config = config_over(tmp_path, bundled_posts(X), rights={"x": "written leave of the authors"})
    release = recorded(config)
    assert "responses" not in release.stats["left_out"]
    assert tables(replayed(config, release)) == tables(release.path.parent)


def test_a_release_without_answers_is_refused(tmp_path: Path) -> None:
    """One line says what it carries; what was built before from it stays."""
    config = config_over(tmp_path, bundled_posts(), "recorded")
    release = build(config, runs=tmp_path / "first")
    with pytest.raises(ReleaseError, match="carries no responses, only 'analysis'") as raised:
        replayed(config, release)
    assert "--with-responses" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_changed_file_is_refused(config: Path) -> None:
    """Answers are those that the manifest is about, or none is read."""
    release = recorded(config)
    (file,) = release.manifest.configs["responses"].files
    path = release.path / file.path
    path.write_bytes(path.read_bytes()[:-1] + b"\0")
    with pytest.raises(ReleaseError, match="sha256 is"):
        replayed(config, release)


@pytest.mark.parametrize("place", ["nowhere", "mira/echo", "@v1", "mira/echo@"])
def test_a_place_is_a_folder_or_a_tag(config: Path, place: str) -> None:
    """A name without a tag would be another release tomorrow."""
    with pytest.raises(ReleaseError, match="neither a folder nor a revision on the Hub") as raised:
        build(config, runs=config.parent / "runs", responses=place)
    assert repr(place) in str(raised.value)
    assert "\n" not in str(raised.value)
