"""Give tasks to one system, a few at a time, each until it has an outcome that is kept at once."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, as_completed, wait
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from threading import Event
from typing import Any

from pydantic import TypeAdapter, ValidationError
from tenacity import sleep_using_event

from echo_hf._infra.rate_limit import RateLimiter
from echo_hf._infra.retry import RequestError, RetryPolicy
from echo_hf.config.systems import Limits
from echo_hf.engines.base import Usage
from echo_hf.errors import EchoError, GenerationError, ImageError
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.progress import ProgressListener
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import (
    GenerationResult,
    Retired,
    System,
    Task,
    TransientError,
    without_secrets,
)
from echo_hf.systems.journal import SETTLED, Journal, JournalEntry
from echo_hf.systems.plan import Generations, added, is_settled

logger = logging.getLogger(__name__)
LONGEST_TEXT = 1000
FEW = 5  # failures that the log repeats


@dataclass(frozen=True, slots=True)
class AttemptedTask:
    drawn: GenerationResult
    attempts: int
    latency_s: float


def tried(
    system: System, task: Task, limiter: RateLimiter, attempts: int, stopped: Event
) -> AttemptedTask:
    """Gives a task to a system, again when a failure may pass; the last attempt is timed."""
    policy = RetryPolicy(attempts)
    number, latency_s, paid = 0, 0.0, list[TransientError]()

    def attempt() -> GenerationResult:
        nonlocal number, latency_s
        if not limiter.turn_unless(stopped):
            raise RequestError("it was stopped before it began", again=False)
        number += 1
        began = time.monotonic()
        try:
            return _drawn(system.draw(task))
        except TransientError as passing:
            if passing.usage is not None or passing.cost_usd is not None:
                paid.append(passing)
            if passing.wait_s is not None and policy.may_pass(passing):
                limiter.hold(passing.wait_s)  # all tasks wait when the system says so
            raise
        except (GenerationError, KeyboardInterrupt):
            raise
        # Whatever a library trips over is this task's failure alone. Some raise what is no
        # Exception: SystemExit, or the panic of a library in Rust.
        except BaseException as error:
            return failed_by(error)
        finally:
            latency_s = time.monotonic() - began

    try:
        drawn = policy.call(attempt, sleep_using_event(stopped))
        cost_usd = drawn.cost_usd
    except RequestError as error:
        drawn, cost_usd = _not_passed(error), 0.0
    if paid:
        told = (drawn.usage, *(one.usage for one in paid))
        used = [usage for usage in told if usage is not None]
        costs = [one.cost_usd for one in paid]
        drawn = replace(drawn, usage=sum(used, Usage()), cost_usd=added(cost_usd, *costs))
    return AttemptedTask(drawn, number, latency_s)


def _drawn(given: object) -> GenerationResult:
    if not isinstance(given, GenerationResult):
        raise TypeError(f"the adapter gave {type(given).__name__}, expected GenerationResult")
    return given


def _not_passed(error: RequestError) -> GenerationResult:
    asks = f"; it asks to wait {error.wait_s:.0f} s" if error.wait_s else ""
    text = without_secrets(error.text)[:LONGEST_TEXT] + asks
    return GenerationResult(Outcome.FAILED, stage=OutcomeStage.REQUEST, code=error.code, text=text)


def failed_by(error: BaseException) -> GenerationResult:
    """What becomes of a task that something unforeseen happened to."""
    kind = type(error).__name__
    said = without_secrets(" ".join(str(error).split()))[:LONGEST_TEXT]
    return GenerationResult(
        Outcome.FAILED, stage=OutcomeStage.REQUEST, code=kind, text=said or kind
    )


LONGEST_REMARK = 300
# What an adapter says in numbers, and how a journal has it.
FIELDS: Mapping[str, TypeAdapter[Any]] = {
    "seed": TypeAdapter(int | None),
    "usage": TypeAdapter(Usage | None),
    "cost_usd": TypeAdapter(float | None),
}


def entry_of(
    task: Task, attempted: AttemptedTask, signature: str, images: ImageStore
) -> JournalEntry:
    drawn, digest = _stored(_fitting(_sound(attempted.drawn)), images)
    return JournalEntry(
        sample_id=task.sample_id,
        sample_digest=task.sample_digest,
        split=task.split,
        signature=signature,
        outcome=drawn.outcome,
        image=digest,
        image_bytes=None if drawn.image is None else len(drawn.image),
        stage=drawn.stage,
        code=_storable(drawn.code),
        text=_storable(drawn.text),
        seed=drawn.seed,
        revised_prompt=_storable(drawn.revised_prompt),
        model_reported=_storable(drawn.model_reported),
        usage=drawn.usage,
        cost_usd=drawn.cost_usd,
        latency_s=round(attempted.latency_s, 3),
        attempts=attempted.attempts,
        at=datetime.now(UTC).isoformat(timespec="seconds"),
        details=_plain(drawn.details),
    )


def _sound(drawn: GenerationResult) -> GenerationResult:
    """An adapter's own contradiction is a failure: `ok` is what has an image, nothing else is."""
    if (drawn.outcome == Outcome.OK) == (drawn.image is not None):
        return drawn
    came = "an image" if drawn.image is not None else "no image"
    return _failed(drawn, f"the adapter gave {came} with the outcome {drawn.outcome!s}")


def _fitting(drawn: GenerationResult) -> GenerationResult:
    """What a journal reads back; any other object is told beside it."""
    plain = {name: _plain_number(getattr(drawn, name)) for name in FIELDS}
    unfit = {name: value for name, value in plain.items() if not _fits(name, value)}
    kept: dict[str, Any] = {name: None if name in unfit else value for name, value in plain.items()}
    if not unfit:
        return replace(drawn, **kept)
    said = {name: repr(value)[:LONGEST_REMARK] for name, value in unfit.items()}
    return replace(drawn, **kept, details={**drawn.details, "unfit": said})


def _plain_number(value: Any) -> Any:
    # A number of torch or numpy says which plain one it is.
    return value.item() if hasattr(value, "item") and not getattr(value, "shape", ()) else value


def _fits(name: str, value: Any) -> bool:
    plain = asdict(value) if isinstance(value, Usage) else value
    try:
        FIELDS[name].validate_python(plain, strict=not isinstance(plain, dict))
    except ValidationError:
        return False
    return True


def _stored(drawn: GenerationResult, images: ImageStore) -> tuple[GenerationResult, str | None]:
    if drawn.image is None:
        return drawn, None
    try:
        return drawn, _put(drawn.image, images)
    except (ImageError, TypeError) as error:
        return _failed(drawn, str(error)), None


def _put(image: bytes, images: ImageStore) -> str:
    try:
        return images.put(image)
    except FileNotFoundError:
        # A build that begins sweeps half-written images away, and may take this for one.
        return images.put(image)


def _failed(drawn: GenerationResult, said: str) -> GenerationResult:
    stage = OutcomeStage.ANSWER
    return replace(drawn, outcome=Outcome.FAILED, image=None, stage=stage, text=said)


def _storable(text: str | None) -> str | None:
    # Half a character, which a service may well send, cannot stand in a table.
    return None if text is None else str(text).encode("utf-8", "replace").decode()


def _plain(details: Mapping[str, Any]) -> Mapping[str, Any]:
    """What JSON can hold of it; the image beside it is not lost for a remark."""
    try:
        plain: Mapping[str, Any] = json.loads(
            json.dumps(dict(details), default=str), parse_constant=str
        )
    except (TypeError, ValueError, RecursionError):
        return {"not_json": _storable(repr(details)[:LONGEST_REMARK])}
    return plain


MOST_FAILURES_IN_A_ROW = 10
# Failures of one task alone: however many there are in a row, the next task may well do.
OF_ONE_TASK = frozenset({"no_file", "no_input", "several_files"})
Work = Future[JournalEntry | None]


def concurrency_of(limits: Limits, system: System) -> int:
    """Most tasks at a time: what a config says, else what the system does."""
    return limits.concurrency or system.concurrency


@dataclass(frozen=True)
class GenerationRun:
    system: System
    journal: Journal
    images: ImageStore
    limits: Limits
    signature: str
    watch: ProgressListener
    given: Generations
    budget_usd: float | None = None
    usd_unstated: float = 0.0

    @property
    def spent_usd(self) -> float:
        """What it cost; an image of which nobody says so counts as `usd_unstated`."""
        entries = self.given.entries
        unstated = sum(one.cost_usd is None and one.outcome == Outcome.OK for one in entries)
        known = sum(one.cost_usd or 0.0 for one in entries)
        return known + (unstated * self.usd_unstated if unstated else 0.0)

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left of the budget."""
        return self.budget_usd is not None and self.spent_usd >= self.budget_usd

    def run(self, tasks: Iterable[Task]) -> list[JournalEntry]:
        """Draws tasks; what is under way when it is stopped is still waited for and kept."""
        limiter, stopped = RateLimiter(self.limits.per_minute), Event()
        waiting = iter(tasks)
        concurrency = concurrency_of(self.limits, self.system)
        running: set[Work] = set()
        entries: list[JournalEntry] = []
        left: list[Task] = []
        row = _Row(self.journal.system)
        with ThreadPoolExecutor(concurrency, thread_name_prefix="draw") as pool:
            try:
                while True:
                    if self.is_spent:
                        waiting = iter(())
                    for task in islice(waiting, concurrency - len(running)):
                        running.add(pool.submit(self._drawn, task, limiter, stopped))
                    if not running:
                        break
                    for work in wait(running, return_when=FIRST_COMPLETED).done:
                        running.discard(work)
                        told = self._told(work.result())
                        entries += told
                        row.check(told)
                        if any(map(_is_gone, told)):
                            left, waiting = [*left, *waiting], iter(())
            finally:
                stopped.set()
                self._wait_for(running)
        return entries + self._left(left, entries)

    def retire(self, tasks: Sequence[Task], retired: Retired) -> list[JournalEntry]:
        """Notes that nobody can draw tasks any more; nothing is asked."""
        drawn = GenerationResult(
            Outcome.RETIRED, stage=OutcomeStage.PREFLIGHT, code=retired.code, text=retired.text
        )
        entries: list[JournalEntry] = []
        for task in tasks:
            before = self.journal.entries.get(task.sample_id)
            if before is None or not is_settled(task, before, self.images):
                before = self._keep(task, AttemptedTask(drawn, 0, 0.0))
            entries += self._told(before)
        return entries

    def _left(self, tasks: Sequence[Task], entries: Sequence[JournalEntry]) -> list[JournalEntry]:
        """Retires what was not begun when the model was found to be gone."""
        gone = next(filter(_is_gone, entries), None)
        return self.retire(tasks, Retired(gone.text or "", gone.code)) if gone else []

    def _drawn(self, task: Task, limiter: RateLimiter, stopped: Event) -> JournalEntry | None:
        """Draws a task and keeps what became of it; in a thread of its own."""
        one = tried(self.system, task, limiter, self.limits.attempts, stopped)
        if stopped.is_set() and one.drawn.outcome not in SETTLED:
            return None  # its attempts were cut short: it has not failed
        return self._keep(task, one)

    def _keep(self, task: Task, one: AttemptedTask) -> JournalEntry:
        entry = entry_of(task, one, self.signature, self.images)
        self.journal.add(entry)
        return entry

    def _told(self, entry: JournalEntry | None) -> list[JournalEntry]:
        if entry is None:
            return []
        logger.debug("system %s: %s: %s", self.given.system, entry.sample_id, entry.outcome)
        self.given.entries.append(entry)
        self.watch.advanced(self.given.system, len(self.given.entries), self.given)
        return [entry]

    def _wait_for(self, running: set[Work]) -> None:
        """Waits for what is paid for already; it keeps itself."""
        if not running:
            return
        under_way = f"{len(running)} under way are waited for and kept"
        self.watch.noticed(f"{self.journal.system}: stopping; {under_way}")
        lost: BaseException | None = None
        for work in as_completed(running):
            error = work.exception()
            if error is None:
                self._told(work.result())
            elif not isinstance(error, EchoError):
                lost = error
        if lost is not None:
            raise lost


def _is_gone(entry: JournalEntry) -> bool:
    # Told of one task, as by a list of outputs that were made before, it says nothing of others.
    return entry.outcome == Outcome.RETIRED and entry.stage != OutcomeStage.PREFLIGHT


class _Row:
    """The failures in a row of a system that may be out of order."""

    def __init__(self, system: str) -> None:
        self._system, self._failed, self._logged = system, 0, 0

    def check(self, entries: Sequence[JournalEntry]) -> None:
        """Counts outputs in the order in which they came; raises where too many have failed."""
        for one in entries:
            if one.outcome == Outcome.FAILED and self._logged < FEW:
                self._logged += 1
                logger.info("system %s: %s: %s", self._system, one.code or one.stage, one.text)
            if one.outcome != Outcome.FAILED:
                self._failed = 0
            elif one.stage != OutcomeStage.INPUT and one.code not in OF_ONE_TASK:
                self._failed += 1
            if self._failed >= MOST_FAILURES_IN_A_ROW:
                raise broken(self._system, f"{self._failed} tasks in a row failed", one)


def broken(system: str, how: str, last: JournalEntry) -> GenerationError:
    said = (last.text or "")[:LONGEST_REMARK]
    return GenerationError(
        f"system {system!r}: {how}, the last with {said!r}: fix that; the same command goes on "
        "from here"
    )
