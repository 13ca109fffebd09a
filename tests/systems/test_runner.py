"""One system at work: what is left to draw, attempts, what is kept, and what stops it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Event, Lock
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.engines.base import Usage
from echo_hf.errors import EngineError, GenerationError
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.systems import runner
from echo_hf.systems.base import GenerationResult, OutcomeStage, Retired, Task, TransientError
from echo_hf.systems.journal import Journal, JournalEntry, hash_signature
from echo_hf.systems.runner import GenerationPlan, GenerationStats, SystemRun
from echo_hf.tables import Outcome
from tests.progress_for_tests import Heard
from tests.systems.runs_for_tests import Acting, drawn_for, entry, png, sha, system, task

PATIENCE_S = 30
TASKS = [task(number) for number in range(12)]
BUSY = GenerationResult(Outcome.FAILED, stage=OutcomeStage.REQUEST, code="busy")


class Watching(Heard):
    def __init__(self, look: Callable[[JournalEntry], None] = lambda _: None) -> None:
        super().__init__()
        self.look = look

    def report_progress(
        self, part: str, done: int, stats: object, total: int | None = None
    ) -> None:
        super().report_progress(part, done, stats, total)
        assert isinstance(stats, GenerationStats)
        self.look(stats.entries[-1])


def run(
    root: Path,
    acting: Acting,
    tasks: Sequence[Task] = TASKS,
    *,
    retired: Retired | None = None,
    budget_usd: float | None = None,
    watch: Watching | None = None,
    **config: Any,
) -> SystemRun:
    one = SystemRun(system(**config), acting, RunFolder(root), tasks)
    one.run(retired, budget_usd, watch or Watching())
    return one


def kept(root: Path) -> dict[str, JournalEntry]:
    return {name: entry for (name, _), entry in Journal(root, "mine").entries.items()}


def only(root: Path, act: Callable[[Task], GenerationResult], **config: Any) -> JournalEntry:
    run(root, Acting(act), TASKS[:1], **config)
    (one,) = kept(root).values()
    return one


@pytest.fixture
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "sleep_using_event", lambda _: lambda _: None)


def failing(times: int, wait_s: float | None = 0.0) -> Acting:
    left = iter(range(times))

    def act(one: Task) -> GenerationResult:
        if next(left, None) is not None:
            raise TransientError("busy", "429", wait_s)
        return drawn_for(one)

    return Acting(act)


# Attempts.


@pytest.mark.usefixtures("_hurried")
@pytest.mark.parametrize(("attempts", "failures"), [(1, 0), (2, 1), (5, 9)])
def test_attempts_are_bounded(tmp_path: Path, attempts: int, failures: int) -> None:
    acting = failing(failures)
    run(tmp_path, acting, TASKS[:1], limits={"attempts": attempts})
    (one,) = kept(tmp_path).values()
    assert one.attempts == len(acting.asked) == min(attempts, failures + 1)
    if failures < attempts:
        assert (one.outcome, one.image) == ("ok", sha(png(TASKS[0].prompt)))
    else:
        said = (one.outcome, one.stage, one.code, one.text)
        assert said == ("failed", "request", "429", "busy")


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (SystemExit(3), "SystemExit", "3"),
        (EngineError(), "EngineError", "EngineError"),
        (
            ValueError("at https://me:tulip@host/?key=abc\n" + "x" * 5000),
            *("ValueError", ("at https://[hidden]@host/?key=[hidden] " + "x" * 5000)[:1000]),
        ),
    ],
    ids=lambda one: type(one).__name__,
)
def test_what_nobody_foresaw_is_a_failure_of_its_task_alone(
    tmp_path: Path, error: BaseException, code: str, text: str
) -> None:
    def act(one: Task) -> GenerationResult:
        if one == TASKS[0]:
            raise error
        return None if one == TASKS[1] else drawn_for(one)  # type: ignore[return-value]

    run(tmp_path, Acting(act), TASKS[:3])
    bad, none, good = (kept(tmp_path)[one.sample_id] for one in TASKS[:3])
    said = (bad.outcome, bad.stage, bad.code, bad.text, bad.attempts)
    assert said == ("failed", "request", code, text, 1)
    assert (none.code, good.outcome) == ("TypeError", "ok")
    assert "NoneType" in (none.text or "")


@pytest.mark.usefixtures("_hurried")
@pytest.mark.parametrize(
    ("seconds", "outcome", "held"), [(250.0, "ok", [250.0]), (301.0, "failed", [])]
)
def test_all_wait_as_long_as_is_asked_and_nobody_for_hours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, outcome: str, held: list[float]
) -> None:
    holds: list[float] = []
    monkeypatch.setattr(runner.RateLimiter, "hold", lambda _, seconds: holds.append(seconds))
    run(tmp_path, failing(1, seconds), TASKS[:2], limits={"concurrency": 1})
    found = kept(tmp_path)
    assert (found["s0"].outcome, found["s1"].outcome, holds) == (outcome, "ok", held)
    assert outcome == "ok" or f"asks to wait {seconds:.0f} s" in (found["s0"].text or "")


@pytest.mark.usefixtures("_hurried")
@pytest.mark.parametrize(
    ("paid", "last", "usage", "cost_usd"),
    [
        ([(10, 0.5), (None, None)], (1, 0.125), 11, 0.625),
        ([(10, None)], (1, 0.125), 11, None),
        ([(10, 0.5), (5, 0.25)], None, 15, 0.75),
        ([(None, None)], (1, 0.125), 1, 0.125),
    ],
)
def test_what_all_attempts_cost_adds_up(
    tmp_path: Path,
    paid: list[tuple[int | None, float | None]],
    last: tuple[int | None, float | None] | None,
    usage: int | None,
    cost_usd: float | None,
) -> None:
    left = iter(paid)

    def counted(tokens: int | None) -> Usage | None:
        return None if tokens is None else Usage(tokens)

    def act(one: Task) -> GenerationResult:
        if (failure := next(left, None)) is not None:
            raise TransientError("busy", None, 0.0, counted(failure[0]), failure[1])
        assert last is not None
        return replace(drawn_for(one), usage=counted(last[0]), cost_usd=last[1])

    one = only(tmp_path, act, limits={"attempts": len(paid) + (last is not None)})
    assert one.outcome == ("failed" if last is None else "ok")
    assert (one.usage, one.cost_usd) == (counted(usage), cost_usd)


# What is kept.


def test_an_output_is_kept_with_all_that_was_said_of_it(tmp_path: Path) -> None:
    """Half a character, numbers of a library, a deep tree and what JSON does not know among it."""
    as_it_is: dict[str, Any] = {"half": "half \ud83d", "tree": []}
    for _ in range(300):
        as_it_is["tree"] = [as_it_is["tree"]]
    said = GenerationResult(
        Outcome.OK,
        png("fox"),
        text="half \ud83d",
        seed=np.int64(3),  # type: ignore[arg-type]
        revised_prompt="a red fox",
        model_reported="lumen-2",
        usage=Usage(prompt=np.int64(5)),  # type: ignore[arg-type]
        cost_usd=np.float32(0.5),  # type: ignore[arg-type]
        details={"size": (8, 8), "share": float("nan"), "at": Path("/data"), **as_it_is},
    )
    one = only(tmp_path, lambda _: said)
    assert ImageStore(tmp_path / "pictures").open(sha(png("fox"))) == png("fox")
    assert one == entry(
        0,
        signature=one.signature,
        outcome=Outcome.OK,
        image=sha(png("fox")),
        image_bytes=len(png("fox")),
        text="half ?",
        seed=3,
        revised_prompt="a red fox",
        model_reported="lumen-2",
        usage=Usage(5),
        cost_usd=0.5,
        latency_s=one.latency_s,
        at=one.at,
        details={"size": [8, 8], "share": "NaN", "at": "/data", **as_it_is},
    )
    assert 0 <= (one.latency_s or 0) < PATIENCE_S


@pytest.mark.parametrize(
    ("drawn", "words"),
    [
        (GenerationResult(Outcome.OK, b"no picture"), "expected one of AVIF"),
        (GenerationResult(Outcome.OK), "no image with the outcome ok"),
        (GenerationResult(Outcome.REFUSED, png("fox")), "an image with the outcome refused"),
        (GenerationResult(Outcome.OK, "text"), "encoded"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_image_is_a_failure(tmp_path: Path, drawn: GenerationResult, words: str) -> None:
    one = only(tmp_path, lambda _: drawn)
    assert (one.outcome, one.stage, one.image) == ("failed", OutcomeStage.ANSWER, None)
    assert words in (one.text or "")


def test_a_remark_that_json_cannot_hold_costs_no_image(tmp_path: Path) -> None:
    details: Any = {("a", 1): 2}
    one = only(tmp_path, lambda _: GenerationResult(Outcome.OK, png("x"), details=details))
    assert (one.outcome, one.image) == ("ok", sha(png("x")))
    assert one.details == {"not_json": repr(details)}


def test_a_beginning_build_costs_no_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename, swept = Path.replace, list[Path]()

    def sweeping(partial: Path, target: Path) -> Path:
        if not swept:
            swept.append(partial)
            partial.unlink()
        return rename(partial, target)

    monkeypatch.setattr(Path, "replace", sweeping)
    one = only(tmp_path, lambda _: GenerationResult(Outcome.OK, png("x")))
    assert len(swept) == 1
    assert ImageStore(tmp_path / "pictures").open(one.image or "") == png("x")


# Several tasks at a time.


def test_no_more_tasks_than_allowed_are_under_way(tmp_path: Path) -> None:
    """The window is filled, which a barrier of its width proves, and never exceeded."""
    lock, under_way, most = Lock(), 0, 0
    full = Barrier(3)

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
    run(tmp_path, acting, limits={"concurrency": 3})
    assert most == 3
    assert sorted(acting.asked) == sorted(one.sample_id for one in TASKS)


def test_an_output_is_durable_before_the_next_one_comes(tmp_path: Path) -> None:
    first_is_there = Event()

    def act(one: Task) -> GenerationResult:
        if one == TASKS[1]:
            assert first_is_there.wait(PATIENCE_S)
        return drawn_for(one)

    def look(_: JournalEntry) -> None:
        if set(kept(tmp_path)) == {"s0"}:
            first_is_there.set()

    done = run(tmp_path, Acting(act), TASKS[:2], watch=Watching(look))
    assert [one.sample_id for one in done.stats.entries] == ["s0", "s1"]


def test_failures_in_a_row_stop_the_system(tmp_path: Path) -> None:
    def act(_: Task) -> GenerationResult:
        raise OSError("no such socket")

    acting = Acting(act, concurrency=1)
    said = run(tmp_path, acting).stopped or ""
    assert "'mine': 10 tasks in a row failed, the last with 'no such socket'" in said
    assert acting.asked == [one.sample_id for one in TASKS[:10]]
    assert {one.outcome for one in kept(tmp_path).values()} == {Outcome.FAILED}


@pytest.mark.parametrize(
    ("bad", "good"),
    [
        # Inputs that nobody can open: the next task may well do.
        (replace(BUSY, stage=OutcomeStage.INPUT, code=None), 18),
        # Nine failures, one image, nine failures.
        (BUSY, 9),
    ],
    ids=["input", "apart"],
)
def test_failures_of_one_task_stop_none(tmp_path: Path, bad: GenerationResult, good: int) -> None:
    tasks = [task(number) for number in range(19)]
    acting = Acting(lambda one: drawn_for(one) if one == tasks[good] else bad, concurrency=1)
    done = run(tmp_path, acting, tasks)
    assert (done.stopped, len(done.stats.entries)) == (None, 19)


def test_a_system_that_cannot_go_on_keeps_what_is_under_way(tmp_path: Path) -> None:
    said = Event()

    def act(one: Task) -> GenerationResult:
        if one == TASKS[1]:
            said.set()
            raise GenerationError("the key was taken back")
        assert said.wait(PATIENCE_S)
        return drawn_for(one)

    acting = Acting(act)
    assert run(tmp_path, acting).stopped == "the key was taken back"
    assert kept(tmp_path)["s0"].outcome == Outcome.OK
    assert set(kept(tmp_path)) == set(acting.asked) - {"s1"}


def test_an_interruption_loses_nothing_that_came(tmp_path: Path) -> None:
    together = Barrier(2)

    def interrupt(one: JournalEntry) -> None:
        if one.sample_id == "s0":
            together.wait(PATIENCE_S)
            raise KeyboardInterrupt

    def act(one: Task) -> GenerationResult:
        if one == TASKS[1]:
            together.wait(PATIENCE_S)
        return drawn_for(one)

    watch = Watching(interrupt)
    one = SystemRun(system(), Acting(act), RunFolder(tmp_path), TASKS[:2])
    with pytest.raises(KeyboardInterrupt):
        one.run(None, None, watch)
    assert set(kept(tmp_path)) == {"s0", "s1"}
    assert watch.remarks == ["mine: stopping; 1 under way are waited for and kept"]
    given = [(each.sample_id, each.outcome) for each in one.stats.entries]
    assert given == [("s0", "ok"), ("s1", "ok")]


def test_a_task_that_is_cut_short_has_not_failed(tmp_path: Path) -> None:
    both = Barrier(2)

    def act(one: Task) -> GenerationResult:
        both.wait(PATIENCE_S)
        if one == TASKS[0]:
            raise TransientError("busy", wait_s=200)
        raise GenerationError("no key")

    assert run(tmp_path, Acting(act), TASKS[:2]).stopped == "no key"
    assert kept(tmp_path) == {}


@pytest.mark.parametrize(
    ("cost_usd", "budget_usd", "asked", "spent"),
    [(0.5, 1.2, 3, 1.5), (None, 0.5, 2, 0.5), (0.5, 99.0, 4, 2.0)],
)
def test_a_budget_ends_with_the_task_that_spends_it(
    tmp_path: Path, cost_usd: float | None, budget_usd: float, asked: int, spent: float
) -> None:
    acting = Acting(lambda one: replace(drawn_for(one), cost_usd=cost_usd), concurrency=1)
    price = {"usd_per_image": 0.25, "as_of": "2026-01-01"}
    done = run(tmp_path, acting, TASKS[:4], budget_usd=budget_usd, price=price)
    assert (len(acting.asked), done.cost_usd) == (asked, spent)
    assert done.is_short == (asked < 4)


# Models that are gone.


def test_a_retired_model_is_asked_nothing(tmp_path: Path) -> None:
    image = ImageStore(tmp_path / "pictures").put(png("fox"))
    before = entry(0, outcome=Outcome.OK, signature="other", image=image)
    Journal(tmp_path, "mine").add(before)
    acting = Acting()
    run(tmp_path, acting, TASKS[:3], retired=Retired("gone since May", "404"))
    first, *others = kept(tmp_path).values()
    assert (acting.asked, first) == ([], before)
    assert {(one.outcome, one.stage, one.code, one.text, one.attempts) for one in others} == {
        ("retired", "preflight", "404", "gone since May", 0)
    }


def test_a_model_that_goes_away_while_it_draws_is_asked_no_more(tmp_path: Path) -> None:
    gone, is_told = replace(BUSY, outcome=Outcome.RETIRED, text="gone since noon"), Event()

    def act(one: Task) -> GenerationResult:
        if one == TASKS[0]:
            return gone
        assert is_told.wait(PATIENCE_S)
        return drawn_for(one)

    acting = Acting(act)
    done = run(tmp_path, acting, watch=Watching(lambda _: is_told.set()))
    assert sorted(acting.asked) == ["s0", "s1"]
    found = kept(tmp_path)
    assert len(done.stats.entries) == len(found) == len(TASKS)
    assert found["s1"].outcome == Outcome.OK
    left = {(found[one.sample_id].outcome, found[one.sample_id].text) for one in TASKS[2:]}
    assert left == {(Outcome.RETIRED, "gone since noon")}


def test_a_task_that_was_never_asked_of_a_retired_model_retires_no_other(tmp_path: Path) -> None:
    never = GenerationResult(Outcome.RETIRED, stage=OutcomeStage.PREFLIGHT)
    acting = Acting(lambda one: never if one == TASKS[0] else drawn_for(one), concurrency=1)
    run(tmp_path, acting, TASKS[:3])
    assert len(acting.asked) == 3


# Plans.

SIGNATURE = hash_signature(Acting().signature())


def plan(
    root: Path, *entries: JournalEntry, tasks: Sequence[Task] = TASKS[:4], **config: Any
) -> GenerationPlan:
    for one in entries:
        signature = SIGNATURE if one.signature == "s" else one.signature
        Journal(root, "mine").add(replace(one, signature=signature))
    return SystemRun(system(**config), Acting(), RunFolder(root), tasks).plan


OUTCOMES = st.lists(
    # The outcome, and whether prompt and inputs, settings and image are the same.
    st.tuples(st.sampled_from(Outcome), st.booleans(), st.booleans(), st.booleans()),
    max_size=6,
)


@given(OUTCOMES)
def test_what_is_settled_as_it_would_be_now_is_kept(
    tmp_path_factory: pytest.TempPathFactory, given: list[tuple[Outcome, bool, bool, bool]]
) -> None:
    root = tmp_path_factory.mktemp("run")
    there = RunFolder(root).images.put(png("there"))
    entries = [
        entry(
            number,
            "fox" if same else "owl",
            outcome=outcome,
            signature="s" if signed else "t",
            image=(there if held else sha(b"gone")) if outcome == "ok" else None,
        )
        for number, (outcome, same, signed, held) in enumerate(given)
    ]
    made = plan(root, *entries, tasks=TASKS[:6])
    final = ("ok", "refused", "no_image", "unsupported")
    done, failed = set[str](), set[str]()
    for number, (outcome, same, signed, held) in enumerate(given):
        if same and signed and outcome in final and (held or outcome != "ok"):
            done.add(f"s{number}")
        if same and signed and outcome == "failed":
            failed.add(f"s{number}")
    left = [one.sample_id for one in TASKS[:6] if one.sample_id not in done]
    # What failed so before comes last.
    left.sort(key=lambda name: name in failed)
    assert [one.sample_id for one in made.todo] == left
    assert made.stored == len(done)
    assert made.stale == sum(outcome in final for outcome, *_ in given) - len(done)


@pytest.mark.parametrize(("noted", "bytes_left"), [(False, 0), (True, -1)])
def test_an_image_of_too_few_bytes_is_gone(tmp_path: Path, noted: bool, bytes_left: int) -> None:
    store, data = RunFolder(tmp_path).images, png("fox")
    digest = store.put(data)
    drawn = entry(0, outcome=Outcome.OK, image=digest, image_bytes=len(data) if noted else None)
    assert plan(tmp_path, drawn).stored == 1
    store.path(digest).write_bytes(data[:bytes_left])
    assert plan(tmp_path).stored == 0


def test_the_estimate_is_the_mean_of_what_was_drawn_so(tmp_path: Path) -> None:
    """By hand: images of 0.1 and 0.3 dollars; a refusal costs time, a retired model none.

    The ends are two standard errors away: with deviations of 0.1414 and 2, these are 0.2828 x
    sqrt(10 x 10 / 2 + 10) = 2.191 dollars, and 4 x sqrt(10 x 10 / 3 + 10) = 26.331 seconds.
    """
    ok = {"outcome": Outcome.OK, "image": RunFolder(tmp_path).images.put(png("fox"))}
    tasks = [task(number) for number in range(13)]
    made = plan(
        tmp_path,
        entry(0, **ok, cost_usd=0.1, latency_s=4.0),
        entry(1, **ok, cost_usd=0.3, latency_s=6.0),
        entry(2, cost_usd=0.0, latency_s=2.0),
        entry(8, outcome=Outcome.RETIRED, latency_s=0.0, attempts=0),
        entry(9, **ok, cost_usd=99, latency_s=99, signature="other settings"),
        tasks=tasks,
    )
    assert len(made.todo) == 10
    assert made.cost_usd == pytest.approx(10 * 0.2)
    assert made.expected.usd == pytest.approx((0.0, 2.0, 4.191), abs=1e-3)
    assert made.expected.seconds == pytest.approx((6.834, 10 * 4.0 / 2, 33.166), abs=1e-3)
    assert made.expected.basis == "measured in this run: 2 prices, 3 times"
    # Four tasks at two a minute take two minutes, however fast each is.
    fast = entry(9, latency_s=1.0)
    for folder, per_minute, seconds in (("a", 2, (120, 120, 120)), ("b", 1000, (1.0, 2.0, 4.0))):
        limited = plan(tmp_path / folder, fast, limits={"per_minute": per_minute})
        assert limited.expected.seconds == pytest.approx(seconds)


def test_a_task_that_was_turned_away_for_other_limits_is_done_again(tmp_path: Path) -> None:
    before: dict[str, Any] = {"most_inputs": 1}
    turned_away = entry(0, outcome="unsupported", details={"limits": before})
    for parameters in ({**before, "quality": "low"}, {"most_inputs": 2}, {}):
        todo = () if "quality" in parameters else TASKS[:1]
        made = plan(tmp_path, turned_away, tasks=TASKS[:1], parameters=parameters)
        assert (made.todo, made.stored) == (tuple(todo), 1 - len(todo))
