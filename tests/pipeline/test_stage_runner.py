"""Running a stage over a dataset: rows sorted by their fate, caches, later answers."""

from __future__ import annotations

import hashlib
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from datasets import Dataset, Image, Value
from datasets.fingerprint import Hasher

from echo_hf.curate.splits import SampleReject
from echo_hf.engines.base import Completion, Request, make_engine
from echo_hf.errors import EngineError, TableError
from echo_hf.pipeline.answer_store import Store, compute_request_keys
from echo_hf.pipeline.answers import StoredAnswers
from echo_hf.pipeline.batch_inference import FillStats, fill
from echo_hf.pipeline.result import StageResult
from echo_hf.pipeline.stage import RowIssue, Stage, issue_rows, keep_rows, parent_lists
from echo_hf.pipeline.stage_runner import iterate_keyed_requests, run_stage
from echo_hf.quickstart.truth import corpus_folder
from echo_hf.tables import POSTS, STRING, Column, Table
from tests.errors_for_tests import said_by
from tests.stages_for_tests import ByAuthor, Echo, Guess, Scripted, posts, request, url


def _texts(dataset: Dataset) -> list[str | None]:
    return list(dataset["text"])


def _names(result: StageResult) -> dict[str, list[str]]:
    return dict(zip(result.dataset["url"], result.dataset["names"], strict=True))


def _reasons(result: StageResult) -> dict[str, str]:
    return dict(zip(result.quarantine["url"], result.quarantine["_reason"], strict=True))


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def test_each_row_is_sorted_by_what_became_of_it() -> None:
    """Rejects hold the input rows whole, notices stand beside rows that go on."""
    rows = posts("red", "drop it", "note blue", "twice", None, "drop that").add_column(
        "likes", [1, 2, 3, 4, 5, 6]
    )
    result = run_stage(Echo("!"), rows)
    assert result.dataset.features == POSTS.features
    assert _texts(result.dataset) == ["red!", "note blue!", "twice!", "twice!", None]
    columns = [*POSTS.columns, "likes", "_reason", "_detail", "_request"]
    assert list(result.rejects.features) == columns
    said = ["text", "likes", "_reason", "_detail", "_request"]
    assert [tuple(row[name] for name in said) for row in result.rejects.to_list()] == [
        ("drop it", 2, "trash", "it", None),
        ("drop that", 6, "trash", "that", None),
    ]
    notice = {"_parent": [url(2)], "_reason": "bad_field", "_detail": None}
    assert result.notices.to_list() == [notice]
    stats = result.stats
    assert (stats.stage, stats.rows_in, stats.kept) == ("echo", 6, 5)
    assert (stats.rejected, stats.quarantined, stats.noted) == ({"trash": 2}, {}, {"bad_field": 1})
    assert (stats.tally, stats.fill, stats.seconds > 0) == ({"texts": 4}, FillStats(), True)
    chosen = run_stage(Echo(), rows.select([5, 2, 0]))
    assert _texts(chosen.dataset) == ["note blue", "red"]
    assert _texts(chosen.rejects) == ["drop that"]


def test_quarantine_holds_the_input_rows_and_the_request_and_can_be_run_again(store: Store) -> None:
    rows = posts("red", "error blue", "green\noff pink", "once tan")
    result = run_stage(Guess(), rows, engine=Scripted(), store=store)
    keys = compute_request_keys(
        Scripted().signature(), [request("error blue"), request("off pink")]
    )
    assert _names(result) == {url(0): ["red"], url(3): ["tan"]}
    assert _texts(result.quarantine) == ["error blue", "green\noff pink"]
    assert list(result.quarantine["_reason"]) == ["engine_error", "off_schema"]
    assert result.quarantine["_detail"][0] == "no power for blue"
    assert list(result.quarantine["_request"]) == [key.hex() for key in keys]
    second = run_stage(Guess(), result.quarantine, engine=Scripted(), store=store)
    assert second.quarantine.features == result.quarantine.features
    assert _reasons(second) == _reasons(result)
    empty = run_stage(Guess(), posts(), engine=Scripted(), store=store)
    for name in ("dataset", "rejects", "quarantine", "notices"):
        assert len(getattr(empty, name)) == 0
        assert getattr(empty, name).features == getattr(result, name).features, name


def test_a_rejection_of_several_rows_rejects_each() -> None:
    rows = posts("a", "b", "c", authors=[None, "tomo", None])  # type: ignore[list-item]
    result = run_stage(ByAuthor(), rows)
    assert _texts(result.rejects) == ["a", "c"]
    assert result.stats.rejected == {"no_url": 2}
    assert result.dataset.to_list() == [{"author": "tomo", "urls": [url(1)]}]
    table = posts("drop a", "drop b").with_format("arrow")[:]
    table = table.set_column(0, "url", pa.array(["u", "u"]))
    assert _texts(run_stage(Echo(), Dataset(table)).rejects) == ["drop a", "drop b"]


def test_more_rows_than_a_batch_keep_their_order(store: Store) -> None:
    lines = [f"{'error' if at % 100 == 7 else 'colour'} x{at}" for at in range(1300)]
    result = run_stage(Guess(), posts(*lines), engine=Scripted(window=64), store=store)
    assert list(result.quarantine["url"]) == [url(at) for at in range(7, 1300, 100)]
    wanted = [at for at in range(1300) if at % 100 != 7]
    assert list(result.dataset["url"]) == [url(at) for at in wanted]
    assert list(result.dataset["names"]) == [[f"x{at}"] for at in wanted]


@dataclass(frozen=True)
class Careless(Echo):
    """Makes one row more, of this parent and status."""

    parents: tuple[str, ...] = ()
    status: str | None = "kept"

    def __call__(self, table: pa.Table) -> pa.Table:
        rows = super().__call__(table)
        more = {"_parent": list(self.parents), "_status": self.status}
        new = [{**rows.slice(0, 1).to_pylist()[0], **more}]
        return pa.concat_tables([rows, pa.Table.from_pylist(new, schema=rows.schema)])


RED = posts("red")
LACKING, OTHER = RED.remove_columns(["text"]), RED.cast_column("text", Value("large_string"))


@pytest.mark.parametrize(
    ("stage", "rows", "message"),
    [
        (
            Echo(),
            posts("red", "lose it", "blue", "lose that"),
            f"stage 'echo' lost 2 rows, the first is '{url(1)}': every input row must",
        ),
        (Careless("", "", ("nobody",)), RED, "made a row with _parent ['nobody'] or _status []: e"),
        (Careless(), RED, "made a row with _parent [] or _status []"),
        (Careless("", "", (url(0),), "dropped"), RED, "_status ['dropped']: expected keys of inp"),
        (Careless("", "", (url(0),), None), RED, "_status [None]"),
        (
            Echo(),
            LACKING,
            "'echo' reads column 'text' of table 'posts', the dataset has "
            f"{LACKING.column_names!r}: add it, or run the stage before",
        ),
        (
            Echo(),
            OTHER,
            "column 'text' has type 'large_string', 'echo' expects 'string': cast it to "
            "echo_hf.tables' features",
        ),
    ],
    ids=str,
)
def test_a_row_that_would_vanish_or_a_wrong_column_is_refused(
    cache: Path, stage: Stage, rows: Dataset, message: str
) -> None:
    for _ in range(2):  # nothing stays in the cache
        assert message in said_by(TableError, run_stage, stage, rows, cache_dir=cache)


def test_an_unchanged_run_asks_nothing_and_reads_back_the_same(store: Store, cache: Path) -> None:
    rows = posts("red", "blue\ngreen")
    first = run_stage(Guess(), rows, engine=Scripted(), store=store, cache_dir=cache)
    [file] = cache.glob("guess-*.arrow")
    written = file.stat().st_mtime_ns
    engine = Scripted()
    second = run_stage(Guess(), rows, engine=engine, store=store, cache_dir=cache)
    assert (engine.streams, second.stats.fill.calls) == (0, 0)
    assert file.stat().st_mtime_ns == written
    assert second.dataset.to_list() == first.dataset.to_list()
    assert second.dataset._fingerprint == first.dataset._fingerprint
    assert (second.stats.kept, second.stats.tally) == (first.stats.kept, first.stats.tally)


@pytest.mark.parametrize("again", [False, True])
def test_only_quarantined_rows_are_tried_again(store: Store, cache: Path, again: bool) -> None:
    """Where no answer came, by itself; where one cannot be used, only if that is wanted."""
    rows = posts("red", "short blue", "silent green", "refuse pink")
    first = run_stage(Guess(), rows, engine=Scripted(), store=store, cache_dir=cache)
    assert _reasons(first) == {url(1): "cut", url(2): "not_answered", url(3): "refused"}
    engine = Scripted()
    patient = request("short blue")
    [key] = compute_request_keys(engine.signature(), [patient])
    store.put(key, patient, Scripted()._completion(request("blue")), engine.signature())
    how = {"engine": engine, "store": store, "cache_dir": cache, "again": again}
    second = run_stage(Guess(), rows, **how)
    assert second.stats.fill.requests == (3 if again else 1)
    assert set(engine.lines()) == {"silent green", *(["refuse pink"] if again else [])}
    assert _names(second) == {url(0): ["red"], url(1): ["blue"]}
    assert _reasons(second) == {url(2): "not_answered", url(3): "refused"}
    assert second.dataset._fingerprint != first.dataset._fingerprint


@pytest.mark.parametrize("cached", [False, True])
def test_offline_asks_nothing_and_reads_what_is_there(
    store: Store, cache: Path, cached: bool
) -> None:
    """As a stage does that was given answers, and not an engine."""
    rows, engine = posts("red", "blue"), Scripted()
    given = {"cache_dir": cache if cached else None, "offline": True}
    reading = Guess().answered_by(StoredAnswers(store, engine.signature()))
    ways = [(Guess(), engine), (Guess(engine=engine, store=store), None), (reading, None)]
    prints = set()
    for there, names in ((0, {}), (1, {url(1): ["blue"]})):
        fill(Guess(), rows.select(range(1, 1 + there)), Scripted(), store)
        for stage, who in ways:
            result = run_stage(stage, rows, engine=who, store=who and store, **given)
            assert _names(result) == names
            assert set(_reasons(result).values()) == {"not_answered"}
            prints.add((there, result.dataset._fingerprint))
    assert engine.streams == 0
    assert len(prints) == len({told for _, told in prints})  # what follows notices more rows


def test_anew_computes_what_the_cache_holds(tmp_path: Path, cache: Path) -> None:
    notes = tmp_path / "notes.txt"

    @dataclass(frozen=True)
    class Reads(Echo):
        def __call__(self, table: pa.Table) -> pa.Table:
            return Echo(notes.read_text())(table)

    notes.write_text("!")
    run_stage(Reads(), posts("red"), cache_dir=cache)
    notes.write_text("?")
    texts = [
        _texts(run_stage(Reads(), posts("red"), cache_dir=cache, anew=anew).dataset)
        for anew in (False, True, False)
    ]
    assert texts == [["red!"], ["red?"], ["red?"]]


@dataclass
class Rules(Scripted):
    stored: bool = False

    def _completion(self, _: Request) -> Completion:
        return Completion(None, "needs_model", "error")


def test_rules_that_abstain_are_not_asked_the_same_again(cache: Path) -> None:
    rows, engine = posts("red"), Rules()
    for _ in range(2):
        result = run_stage(Guess(), rows, engine=engine, cache_dir=cache)
        assert _reasons(result) == {url(0): "needs_model"}
    assert engine.streams == 1


def test_the_tables_beside_have_fingerprints_of_their_content(store: Store) -> None:
    results = [
        run_stage(Echo(), posts("red", "drop it", "note blue")),
        run_stage(Echo("!"), posts("red", "drop it", "note blue")),
        run_stage(Echo(), posts("drop red", "drop it", "note blue")),
    ]
    failed = run_stage(Guess(), posts("red", "error it"), engine=Scripted(), store=store)
    prints = [one.rejects._fingerprint for one in results] + [failed.quarantine._fingerprint]
    assert prints[0] == prints[1]
    assert len(set(prints)) == 3


@dataclass(frozen=True)
class Told(ByAuthor):
    asked: ClassVar[list[str]] = []

    def parts(self, _: Dataset) -> None:
        self.asked.append("parts")

    def __call__(self, table: pa.Table) -> pa.Table:
        self.asked.append(f"{len(table)} rows")
        return super().__call__(table)


def test_a_whole_stage_is_asked_nothing_where_its_result_is_kept(tmp_path: Path) -> None:
    results = [run_stage(Told(), posts("a", "b", "c"), cache_dir=tmp_path) for _ in range(2)]
    assert Told.asked == ["parts", "3 rows"]
    assert results[0].dataset.to_list() == results[1].dataset.to_list() != []
    assert results[0].dataset._fingerprint == results[1].dataset._fingerprint


@dataclass(frozen=True)
class GuessWhole(Guess):
    whole: ClassVar[bool] = True


def _by_hand(stage: Stage, rows: Dataset) -> list[dict[str, Any]]:
    # Two rows a batch, but for a stage that needs all.
    given = stage.map_arguments(rows) | ({} if stage.whole else {"batch_size": 2})
    mapped = rows.with_format("arrow").map(stage, **given)
    return list(mapped.with_format(None))


@pytest.mark.parametrize(
    ("kind", "is_kept"), [(Guess, True), (Guess, False), (GuessWhole, True)], ids=str
)
def test_map_by_hand_gives_what_run_stage_gives(
    kind: type[Guess], is_kept: bool, store: Store
) -> None:
    rows = posts("red", "error blue", "cut green", "off teal", "refuse pink", "", "red\nonce gold")
    engine, other = Scripted(), Scripted()
    result = run_stage(kind(), rows, engine=other)
    found = _by_hand(kind(engine=engine, store=store if is_kept else None), rows)
    kept = [row for row in found if row["_status"] == "kept"]
    assert [(row["url"], row["names"]) for row in kept] == list(_names(result).items())
    failed = {row["_parent"][0]: row["_reason"] for row in found if row["_status"] != "kept"}
    assert failed == _reasons(result)
    assert failed == {url(1): "engine_error", url(3): "off_schema", url(4): "refused"}
    assert sorted(engine.lines()) == sorted(other.lines())


def test_map_by_hand_asks_nothing_twice(store: Store) -> None:
    rows = posts("red", "blue", "red")
    engine = Scripted()
    stage = Guess(engine=engine, store=store)
    first = _by_hand(stage, rows)
    assert _by_hand(stage, rows) == first
    again = run_stage(stage, rows)
    assert sorted(engine.lines()) == ["blue", "red"]
    assert (again.dataset.num_rows, again.stats.fill.store_hits) == (3, 2)


def test_a_copy_of_a_stage_leaves_its_engine_behind(store: Store) -> None:
    class Held(Scripted):
        def __reduce__(self) -> str:
            raise AssertionError("the engine is pickled")

    stages = [Guess(engine=Held(), store=store) for _ in range(2)]
    assert len({Hasher.hash(stage) for stage in stages}) == 1
    copy = pickle.loads(pickle.dumps(stages[0]))  # noqa: S301 - our own bytes
    with pytest.raises(EngineError, match=r"copy in another process.*num_proc.*run_stage"):
        _by_hand(copy, posts("red"))


@pytest.mark.parametrize(("cached", "decode"), [(False, False), (True, True)])
def test_images_travel_as_the_bytes_they_were(tmp_path: Path, cached: bool, decode: bool) -> None:
    columns = {"name": Column(STRING, "name"), "picture": Column(Image(decode=decode), "picture")}
    photos = Table("photos", "one image", ("name",), columns)

    @dataclass(frozen=True)
    class Passes(Stage):
        name: ClassVar[str] = "passes"
        version: ClassVar[int] = 1
        inputs: ClassVar[Table] = photos
        outputs: ClassVar[Table] = photos

        def __call__(self, table: pa.Table) -> pa.Table:
            even = table.take(pa.array(range(0, len(table), 2)))
            odd = [RowIssue([one], SampleReject.TRASH) for one in table["name"].to_pylist()[1::2]]
            rows = keep_rows(even.replace_schema_metadata(None), parent_lists(even["name"]))
            return pa.concat_tables([rows, issue_rows(photos, odd)])

    data = [file.read_bytes() for file in sorted((corpus_folder() / "pictures").glob("*.jpg"))[:4]]
    given = [{"name": str(at), "picture": {"bytes": one}} for at, one in enumerate(data)]
    rows = Dataset(pa.Table.from_pylist(given, schema=photos.features.arrow_schema))
    result = run_stage(Passes(), rows, cache_dir=tmp_path if cached else None)
    assert result.dataset.features == photos.features
    assert result.rejects.features["picture"] == Image(decode=decode)

    def digests(dataset: Dataset) -> list[str]:
        images = dataset.with_format("arrow")[:]["picture"].to_pylist()
        return [hashlib.sha256(image["bytes"]).hexdigest() for image in images]

    wanted = [hashlib.sha256(one).hexdigest() for one in data]
    assert (digests(result.dataset), digests(result.rejects)) == (wanted[::2], wanted[1::2])


def test_each_question_comes_with_its_key(store: Store) -> None:
    one, two = Scripted("one"), Scripted("two")
    first, second = posts("red\nblue", "green"), posts("red")
    # What is kept nowhere is left out.
    kept_nowhere = [(Echo(), None), (Guess(), None), (Guess(), make_engine("rules"))]
    stages = [(Guess(), one), (Guess(loud=True), two), *kept_nowhere]
    found = list(iterate_keyed_requests(stages, [first, second, first, first, first], store))
    lines = [
        request(line, sources=(url(n),)) for line, n in (("red", 0), ("blue", 0), ("green", 1))
    ]
    expected = [
        *zip(compute_request_keys(one.signature(), lines), lines, strict=True),
        *zip(compute_request_keys(two.signature(), lines[:1]), lines[:1], strict=True),
    ]
    assert found == expected
    assert (one.asked, two.asked) == ([], [])
