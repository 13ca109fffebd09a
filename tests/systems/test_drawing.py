"""Tasks are given to a system a few at a time, and each output is kept the moment it comes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Event, Lock

import pytest

from echo_hf.config.systems import Limits
from echo_hf.errors import GenerationError
from echo_hf.images.store import ImageStore
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import GenerationResult, Retired, Task, TransientError
from echo_hf.systems.journal import Journal, JournalEntry
from echo_hf.systems.plan import Generations
from echo_hf.systems.runner import MOST_FAILURES_IN_A_ROW, GenerationRun
from tests.progress_for_tests import Heard
from tests.systems.runs_for_tests import Acting, drawn_for, entry, png, sha, task

PATIENCE_S = 30
TASKS = [task(number) for number in range(12)]


class Watching(Heard):
    """May raise when it is told of an output."""

    def __init__(self, raises: Callable[[JournalEntry], None] = lambda _: None) -> None:
        super().__init__()
        self.raises = raises

    def advanced(self, what: str, done: int, stats: object, total: int | None = None) -> None:
        """An output is known."""
        super().advanced(what, done, stats, total)
        assert isinstance(stats, Generations)
        self.raises(stats.entries[-1])


def drawing(root: Path, acting: Acting, limits: Limits | None = None) -> GenerationRun:
    """A system at work in a run."""
    journal, images = Journal(root, "mine"), ImageStore(root / "pictures")
    given = Generations("mine")
    return GenerationRun(acting, journal, images, limits or Limits(), "s", Watching(), given)


def kept(root: Path) -> dict[str, JournalEntry]:
    """What is written down, read anew."""
    return dict(Journal(root, "mine").entries)


def test_an_output_is_kept_with_all_that_was_said_of_it(tmp_path: Path) -> None:
    """Every field of what the system gave is in the journal, and the very bytes of the image."""
    said = GenerationResult(
        Outcome.OK,
        png("fox"),
        text="Here.",
        seed=3,
        revised_prompt="a red fox",
        model_reported="lumen-2",
        cost_usd=0.04,
        details={"size": [8, 8], "share": float("nan")},
    )
    at_work = drawing(tmp_path, Acting(lambda _: said))
    (told,) = at_work.run([TASKS[0]])

    (one,) = kept(tmp_path).values()
    assert one == told
    assert at_work.images.open(sha(png("fox"))) == png("fox")
    assert (one.sample_id, one.sample_digest, one.split) == (
        TASKS[0].sample_id,
        TASKS[0].sample_digest,
        "text_to_image",
    )
    assert (one.image, one.text, one.seed, one.revised_prompt) == (
        sha(png("fox")),
        "Here.",
        3,
        "a red fox",
    )
    assert (one.model_reported, one.cost_usd, one.attempts) == ("lumen-2", 0.04, 1)
    assert one.details == {"size": [8, 8], "share": "NaN"}
    assert one.signature == "s"


@pytest.mark.parametrize("concurrency", [1, 3])
def test_no_more_tasks_than_allowed_are_under_way(tmp_path: Path, concurrency: int) -> None:
    """The window is filled, which a barrier of its width proves, and never exceeded."""
    lock, under_way, most = Lock(), 0, 0
    full = Barrier(concurrency)

    def act(one: Task) -> GenerationResult:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        full.wait(PATIENCE_S)
        with lock:
            under_way -= 1
        return drawn_for(one)

    acting = Acting(act, concurrency=9)
    drawing(tmp_path, acting, Limits(concurrency=concurrency)).run(TASKS)

    assert most == concurrency
    assert sorted(acting.asked) == sorted(one.sample_id for one in TASKS)


def test_an_output_is_durable_before_the_next_one_comes(tmp_path: Path) -> None:
    """While a task is still drawn, the one beside it is on disk already."""
    first_is_there = Event()

    def act(one: Task) -> GenerationResult:
        if one == TASKS[1]:
            assert first_is_there.wait(PATIENCE_S)
        return drawn_for(one)

    def look(_: JournalEntry) -> None:
        if set(kept(tmp_path)) == {"s0"}:
            first_is_there.set()

    at_work = replace(drawing(tmp_path, Acting(act, concurrency=2)), watch=Watching(look))
    assert [one.sample_id for one in at_work.run(TASKS[:2])] == ["s0", "s1"]


def test_what_nobody_foresaw_is_a_failure_of_its_task_alone(tmp_path: Path) -> None:
    """An exception of a library, even one that would end a program, is written down by its type."""

    def act(one: Task) -> GenerationResult:
        if one == TASKS[1]:
            raise ZeroDivisionError("no pixels")
        if one == TASKS[2]:
            raise SystemExit(3)
        return None if one == TASKS[3] else drawn_for(one)  # type: ignore[return-value]

    drawing(tmp_path, Acting(act)).run(TASKS[:5])
    said = {name: (one.outcome, one.stage, one.code) for name, one in kept(tmp_path).items()}
    assert said == {
        "s0": ("ok", None, None),
        "s1": ("failed", "request", "ZeroDivisionError"),
        "s2": ("failed", "request", "SystemExit"),
        "s3": ("failed", "request", "TypeError"),
        "s4": ("ok", None, None),
    }
    assert kept(tmp_path)["s1"].text == "no pixels"
    assert "NoneType" in (kept(tmp_path)["s3"].text or "")


def test_failures_in_a_row_stop_the_system(tmp_path: Path) -> None:
    """Ten in a row: no task is begun after them, and the message says what the last one said."""
    tasks = [task(number) for number in range(40)]

    def act(_: Task) -> GenerationResult:
        raise OSError("no such socket")

    acting = Acting(act, concurrency=1)
    with pytest.raises(GenerationError, match=r"'mine': 10 tasks in a row .*no such socket"):
        drawing(tmp_path, acting).run(tasks)
    assert acting.asked == [one.sample_id for one in tasks[:MOST_FAILURES_IN_A_ROW]]
    assert {one.outcome for one in kept(tmp_path).values()} == {Outcome.FAILED}


@pytest.mark.parametrize(
    "failed",
    [
        GenerationResult(
            Outcome.FAILED, stage=OutcomeStage.REQUEST, code="no_file", text="no file"
        ),
        GenerationResult(Outcome.FAILED, stage=OutcomeStage.INPUT, text="cannot be decoded"),
    ],
)
def test_failures_of_single_tasks_stop_nothing(tmp_path: Path, failed: GenerationResult) -> None:
    """A gap in a folder, or inputs that nobody can open: the next task may well do."""
    tasks = [task(number) for number in range(15)]
    acting = Acting(lambda one: drawn_for(one) if one == tasks[14] else failed, concurrency=1)
    entries = drawing(tmp_path, acting).run(tasks)
    assert [one.outcome for one in entries] == [*14 * ["failed"], "ok"]


def test_a_success_in_between_counts_failures_anew(tmp_path: Path) -> None:
    """Nine failures, one image, nine failures: all are tried."""
    tasks = [task(number) for number in range(19)]

    def act(one: Task) -> GenerationResult:
        if one != tasks[9]:
            raise OSError("busy")
        return drawn_for(one)

    assert len(drawing(tmp_path, Acting(act, concurrency=1)).run(tasks)) == 19


def test_a_system_that_cannot_go_on_keeps_what_is_under_way(tmp_path: Path) -> None:
    """One task says that none could succeed: the one beside it is waited for and kept."""
    said = Event()

    def act(one: Task) -> GenerationResult:
        if one == TASKS[1]:
            said.set()
            raise GenerationError("the key was taken back")
        assert said.wait(PATIENCE_S)
        return drawn_for(one)

    acting = Acting(act, concurrency=2)
    at_work = drawing(tmp_path, acting)
    with pytest.raises(GenerationError, match="taken back"):
        at_work.run(TASKS)
    assert kept(tmp_path)["s0"].outcome == Outcome.OK
    assert set(kept(tmp_path)) == set(acting.asked) - {"s1"}


def test_an_interruption_loses_nothing_that_came(tmp_path: Path) -> None:
    """Ctrl-C in the middle of telling one output: both that were under way are kept and told."""

    def interrupt(one: JournalEntry) -> None:
        if one.sample_id == "s0":
            together.wait(PATIENCE_S)
            raise KeyboardInterrupt

    together = Barrier(2)

    def act(one: Task) -> GenerationResult:
        if one == TASKS[1]:
            together.wait(PATIENCE_S)
        return drawn_for(one)

    watch = Watching(interrupt)
    at_work = replace(drawing(tmp_path, Acting(act, concurrency=2)), watch=watch)
    with pytest.raises(KeyboardInterrupt):
        at_work.run(TASKS[:2])
    assert set(kept(tmp_path)) == {"s0", "s1"}
    assert watch.remarks == ["mine: stopping; 1 under way are waited for and kept"]
    given = at_work.given.entries
    assert [(one.sample_id, one.outcome) for one in given] == [("s0", "ok"), ("s1", "ok")]


def test_a_task_that_is_cut_short_has_not_failed(tmp_path: Path) -> None:
    """Waiting for its next attempt when the system is stopped, it leaves no line."""
    both = Barrier(2)

    def act(one: Task) -> GenerationResult:
        both.wait(PATIENCE_S)
        if one == TASKS[0]:
            raise TransientError("busy", wait_s=200)
        raise GenerationError("no key")

    with pytest.raises(GenerationError, match="no key"):
        drawing(tmp_path, Acting(act, concurrency=2)).run(TASKS[:2])
    assert kept(tmp_path) == {}


def test_what_cannot_be_written_down_is_told(tmp_path: Path) -> None:
    """A disk that takes nothing ends the run with its own error."""
    (tmp_path / "outputs").write_text("a file where the folder should be")
    with pytest.raises(FileExistsError):
        drawing(tmp_path, Acting()).run(TASKS[:3])


def test_a_retired_model_is_asked_nothing(tmp_path: Path) -> None:
    """Every task gets the outcome, the maker's words and no attempt."""
    acting = Acting()
    drawing(tmp_path, acting).retire(TASKS[:2], Retired("gone since May", "404"))
    assert acting.asked == []
    assert {
        (one.outcome, one.stage, one.code, one.text, one.attempts)
        for one in kept(tmp_path).values()
    } == {("retired", "preflight", "404", "gone since May", 0)}


def test_a_model_that_goes_away_while_it_draws_is_asked_no_more(tmp_path: Path) -> None:
    """What was under way is kept; the tasks that are left get the maker's words, unasked."""
    gone = GenerationResult(
        Outcome.RETIRED, stage=OutcomeStage.REQUEST, code="404", text="gone since noon"
    )
    both = Barrier(2)

    def act(one: Task) -> GenerationResult:
        both.wait(PATIENCE_S)
        return gone if one == TASKS[0] else drawn_for(one)

    acting = Acting(act, concurrency=2)
    entries = drawing(tmp_path, acting).run(TASKS)
    assert sorted(acting.asked) == ["s0", "s1"]
    found = kept(tmp_path)
    assert len(entries) == len(found) == len(TASKS)
    assert found["s1"].outcome == Outcome.OK
    left = {(found[one.sample_id].code, found[one.sample_id].text) for one in TASKS[2:]}
    assert left == {("404", "gone since noon")}
    assert {found[one.sample_id].outcome for one in TASKS[2:]} == {Outcome.RETIRED}


def test_a_task_that_was_never_asked_of_a_retired_model_retires_no_other(tmp_path: Path) -> None:
    """As a list of outputs that were made before may say of a sample."""
    never = GenerationResult(Outcome.RETIRED, stage=OutcomeStage.PREFLIGHT)
    acting = Acting(lambda one: never if one == TASKS[0] else drawn_for(one), concurrency=1)
    assert len(drawing(tmp_path, acting).run(TASKS[:3])) == len(acting.asked) == 3


def test_an_image_that_cannot_be_had_again_stays(tmp_path: Path) -> None:
    """Drawn with other settings before the model retired; one of other words does not stay."""
    at_work = drawing(tmp_path, Acting())
    image = at_work.images.put(png("fox"))
    before = entry(0, outcome=Outcome.OK, signature="other", image=image)
    at_work.journal.add(before)
    at_work.journal.add(entry(1, "owl", outcome=Outcome.OK, signature="other", image=image))
    at_work.retire(TASKS[:2], Retired("gone"))
    assert kept(tmp_path)["s0"] == before
    assert kept(tmp_path)["s1"].outcome == Outcome.RETIRED
