"""A build is repeated from the answers that its release carries, and asks nobody."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from echo_hf.builder.build import build
from echo_hf.builder.replay import ReplayEngine, import_answers
from echo_hf.config.sections import BUILT_IN_STAGES as STAGES
from echo_hf.engines.base import Completion, Request, Usage
from echo_hf.errors import ReleaseError
from echo_hf.hub.manifest import MANIFEST
from echo_hf.hub.release import Release
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.answer_store import Store, compute_request_keys
from echo_hf.pipeline.batch_inference import MAX_EQUAL_ERRORS, fill
from echo_hf.pipeline.stage import ModelStage
from echo_hf.pipeline.stage_order import load_stage_class
from echo_hf.pipeline.stage_runner import run_stage
from echo_hf.samples.roles import Roles
from tests.errors_for_tests import said_by
from tests.progress_for_tests import Heard
from tests.recorded_as_model import (
    RecordedAsModel,
    X,
    bundled_posts,
    config_over,
    no_engine,
    rows,
    tables,
)
from tests.samples_for_tests import TARGET, Speaking, dataset, post, sample
from tests.stages_for_tests import Guess, Scripted, posts, request, url

PRIVATE = "no route to 10.0.0.7"
POSTS = bundled_posts()[:45]  # every stage has something to ask
MODEL_STAGES = [name for name in STAGES if issubclass(load_stage_class(name), ModelStage)]


class FailsOnOne:
    """Fails the first request of each task that is named, whenever it is asked."""

    def __init__(self, **failures: Completion) -> None:
        self.failures = failures
        self.chosen: dict[str, tuple[str, ...]] = {}

    def __call__(self, asked: Request) -> Completion | None:
        is_chosen = self.chosen.setdefault(asked.task, asked.sources) == asked.sources
        return self.failures.get(asked.task) if is_chosen else None


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return config_over(tmp_path, POSTS)


def recorded(config: Path, engine: RecordedAsModel, watch: Heard | None = None) -> Release:
    engine.use()
    how = {"with_responses": True, "keep_going": True, "watch": watch}
    release = build(config, runs=config.parent / "first", **how)
    no_engine()
    return release


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Release, Counter[str]]:
    """A release that carries its answers, and the calls that each stage made for it."""
    engine = RecordedAsModel()
    release = recorded(config_over(tmp_path_factory.mktemp("first"), POSTS), engine)
    return release, Counter(request.task for request in engine.asked)


def replayed(config: Path, release: Release, watch: Heard | None = None) -> Path:
    runs = config.parent / "second"
    given = {"offline": True, "with_responses": True, "allow_empty": True, "watch": watch}
    return build(config, runs=runs, responses=release.path, **given).path.parent


def test_tables_and_release_are_equal(config: Path, first: tuple[Release, Counter[str]]) -> None:
    (release, asked), notes = first, Heard()
    no_engine()
    run = replayed(config, release, notes)
    made = tables(release.path.parent)
    assert len(made) > 4 * len(STAGES)
    assert tables(run) == made
    assert notes.remarks == []
    fills = {one.stats.stage: one.stats.fill for one in notes.results}
    filled = {name: fills[name] for name in MODEL_STAGES}
    assert {name: one.calls for name, one in filled.items()} == dict.fromkeys(MODEL_STAGES, 0)
    abstained = {name: one.requests - one.repeated - one.store_hits for name, one in filled.items()}
    assert {name: filled[name].store_hits + abstained[name] for name in asked} == dict(asked)


def test_what_failed_fails_the_same_way_without_the_words_of_an_error(config: Path) -> None:
    fails = FailsOnOne(
        extract=Completion("I will not.", None, "refusal"),
        roles=Completion('{"pictures": [', None, "length"),
        feedback=Completion("Hm.", None, "stop"),
        safety=Completion(None, PRIVATE, "error"),
    )
    release = recorded(config, RecordedAsModel(fails=fails))
    run, again = release.path.parent, replayed(config, release)
    waiting = {name: rows(run, name, "quarantine") for name in fails.failures}
    reasons = {name: {row["_reason"] for row in found} for name, found in waiting.items()}
    assert reasons.pop("extract") >= {"refused"}
    expected = {"roles": {"cut"}, "feedback": {"unreadable"}, "safety": {"engine_error"}}
    assert reasons == expected
    words = {"extract": "I will not.", "roles": '{"pictures": [', "safety": PRIVATE}
    first, second = tables(run), tables(again)
    assert {name for name in first if first[name] != second[name]} == {
        f"stages/{name}/quarantine.parquet" for name in words
    }
    for name, said in words.items():
        failed = [row for row in waiting[name] if row["_detail"] == said]
        other = [row for row in rows(again, name, "quarantine") if row["_reason"] != "needs_model"]
        assert failed
        assert [{**row, "_detail": said} for row in other][: len(failed)] == failed
    files = [path for path in release.path.rglob("*") if path.is_file()]
    assert not any(PRIVATE.encode() in path.read_bytes() for path in files)


def test_changed_instructions_are_named(config: Path, first: tuple[Release, Counter[str]]) -> None:
    release, _ = first
    text = config.read_text("utf-8").replace("Northlight", "Southlight")
    config.write_text(text, "utf-8")
    notes = Heard()
    run = replayed(config, release, notes)
    assert notes.remarks[0].startswith("relevance: recorded with other posts, instructions, opt")
    assert {row["_reason"] for row in rows(run, "relevance", "quarantine")} == {"not_answered"}
    kept = "stages/collect/kept.parquet"
    assert tables(run)[kept] == tables(release.path.parent)[kept]


def test_an_engine_without_a_model_answers_anew(tmp_path: Path) -> None:
    config = config_over(tmp_path, POSTS[:15], "recorded")
    release = build(config, runs=tmp_path / "first", with_responses=True)
    notes = Heard()
    run = replayed(config, release, notes)
    assert release.manifest.configs["responses"].rows == 0
    assert tables(run) == tables(release.path.parent)
    assert notes.remarks == []
    # Another file than was answered from is named.
    origin, manifest = release.manifest.provenance["roles"], release.path / MANIFEST
    text = manifest.read_text("utf-8").replace(origin.digest, "1" * 64)
    assert origin.engine is not None
    manifest.write_text(text.replace(str(origin.engine["sha256"]), "0" * 64), "utf-8")
    shutil.rmtree(run)
    replayed(config, release, notes)
    assert [one.partition(":")[0] for one in notes.remarks] == ["roles"]


def test_other_posts_cost_what_is_new(config: Path, first: tuple[Release, Counter[str]]) -> None:
    release, _ = first
    new = {"url": "https://board.example/1", "text": "made with Lumen Image: a kite over dunes"}
    config_over(config.parent, [*POSTS, {**new, "keywords": ["lumen"]}])
    notes = Heard()
    run = replayed(config, release, notes)
    assert [line.partition(":")[0] for line in notes.remarks] == ["collect"]
    waiting = rows(run, "relevance", "quarantine")
    assert [row["url"] for row in waiting if row["_reason"] == "not_answered"] == [new["url"]]
    before = {row["id"]: row for row in rows(release.path.parent, "splits")}
    assert {row["id"]: row for row in rows(run, "splits")} == before


def test_answers_about_posts_of_x_are_not_carried(tmp_path: Path) -> None:
    config, notes = config_over(tmp_path, bundled_posts(X)[:30]), Heard()
    release = recorded(config, RecordedAsModel(), notes)
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


def test_a_release_without_answers_is_refused(tmp_path: Path) -> None:
    config = config_over(tmp_path, POSTS[:1], "recorded")
    release = build(config, runs=tmp_path / "first", allow_empty=True)
    told = said_by(ReleaseError, replayed, config, release)
    assert "carries no responses, only 'analysis'" in told
    assert "--with-responses" in told


@pytest.mark.parametrize("place", ["nowhere", "@v1", "mira/echo@"])
def test_a_place_is_a_folder_or_a_tag(config: Path, place: str) -> None:
    told = said_by(ReleaseError, build, config, runs=config.parent / "runs", responses=place)
    assert told.startswith(f"{place!r} is neither a folder nor a revision on the Hub")


ENGINE = ReplayEngine(Scripted().signature())
RED, BLUE = '{"name": "red", "number": 3}', '{"name": "blue", "number": 4}'


class Recorded(dict[bytes, Completion]):
    def __init__(self, **answers: Completion) -> None:
        super().__init__({key_of(line): answer for line, answer in answers.items()})
        self.wanted: list[bytes] = []

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Completion]:  # type: ignore[override]
        self.wanted += keys
        return {key: self[key] for key in keys if key in self}


def key_of(line: str) -> bytes:
    (key,) = compute_request_keys(ENGINE.signature(), [request(line)])
    return key


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path / "answers.sqlite")) as opened:
        yield opened


def test_what_is_asked_for_and_not_there_is_taken_and_nothing_else(store: Store) -> None:
    red, other = Completion(RED, usage=Usage(5, 6, 7)), Completion(BLUE)
    recorded = Recorded(red=red, blue=other)
    stats = import_answers(Guess(), posts("red", "green", "red"), ENGINE, store, recorded)
    assert (stats.requests, stats.store_hits, stats.repeated, stats.calls) == (3, 1, 1, 0)
    assert store.get([key_of("red"), key_of("blue")]) == {key_of("red"): red}
    assert set(recorded.wanted) == {key_of("red"), key_of("green")}
    recorded = Recorded(red=other)
    stats = import_answers(Guess(), posts("red"), ENGINE, store, recorded)
    assert store.get([key_of("red")]) == {key_of("red"): red}
    assert (stats.store_hits, recorded.wanted) == (1, [])
    # They belong to the posts that ask here.
    assert store.forget([url(2)]) == 1
    assert len(store) == 0


def test_what_is_asked_for_after_an_answer_is_taken_as_well(store: Store, tmp_path: Path) -> None:
    told = {"inputs": [], "outputs": [1], "posts": []}
    engine = Speaking(lambda _: {"samples": [told], "needs_absent_image": True})
    rows = dataset(sample([post(0, -1, "p", "a")], prompt="Turn this photo into a stamp"))
    stage = Roles(TARGET, ImageStore(tmp_path))
    before = run_stage(stage, rows, engine=engine, store=store).dataset
    keys = compute_request_keys(engine.signature(), engine.asked)
    answers = Recorded()
    answers |= store.get(keys)
    with closing(Store(tmp_path / "again.sqlite")) as again:
        replay = ReplayEngine(engine.signature())
        stats = import_answers(stage, rows, replay, again, answers)
        assert (stats.requests, stats.store_hits, len(keys)) == (2, 2, 2)
        after = run_stage(stage, rows, engine=replay, store=again)
    assert after.dataset.to_list() == before.to_list()
    assert len(after.quarantine) == 0


def test_a_failure_is_kept_once_and_gives_way_to_an_answer(store: Store) -> None:
    refused = Completion(None, None, "refusal", Usage(5, 0, 0))
    for _ in range(2):
        stats = import_answers(Guess(), posts("red"), ENGINE, store, Recorded(red=refused))
        assert (stats.requests, stats.store_hits) == (1, 0)
        assert store.get([key_of("red")]) == {key_of("red"): refused}
    import_answers(Guess(), posts("red"), ENGINE, store, Recorded(red=Completion(RED)))
    assert store.get([key_of("red")])[key_of("red")].text == RED


def test_an_engine_that_comes_later_asks_only_what_is_missing(store: Store) -> None:
    recorded = Recorded(red=Completion(RED), babble=Completion("Hm."))
    asking = posts("red", "babble", "green")
    import_answers(Guess(), asking, ENGINE, store, recorded)
    engine = Scripted()
    stats = fill(Guess(), asking, engine, store)
    assert engine.lines() == ["green"]
    assert (stats.calls, stats.store_hits) == (1, 2)


def test_stages_read_what_the_other_engine_answered(tmp_path: Path) -> None:
    answered = posts("a red kite", "a blue\na green kite")
    more = posts(
        "a red kite", "a blue\na green kite", *(f"no {n}" for n in range(MAX_EQUAL_ERRORS + 9))
    )
    with closing(Store(tmp_path / "answers.sqlite")) as store:
        first = run_stage(Guess(), answered, engine=Scripted(), store=store)
        engine = ReplayEngine({"kind": "scripted", "model": "one"})
        second = run_stage(Guess(), more, engine=engine, store=store)
    assert second.dataset.to_list() == first.dataset.to_list()
    assert second.stats.quarantined == {"not_answered": MAX_EQUAL_ERRORS + 9}
