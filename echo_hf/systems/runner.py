"""One system at work in a run: what is left to draw, attempts, outcomes kept at once, budgets."""

from __future__ import annotations

import json
import logging
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, as_completed, wait
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from threading import Event
from typing import Any

from tenacity import sleep_using_event

from echo_hf._infra.rate_limit import RateLimiter
from echo_hf._infra.retry import RequestError, RetryPolicy
from echo_hf._infra.text import pace
from echo_hf.config.systems import SystemConfig
from echo_hf.engines.base import Usage
from echo_hf.engines.planner import Expected, Range, measured, shown_dollars, shown_time
from echo_hf.errors import EchoError, GenerationError, ImageError
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.progress import TOLD, NullProgress, ProgressListener
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import (
    TEXTS,
    GenerationResult,
    Retired,
    System,
    Task,
    TransientError,
    failed,
    may_fit_now,
    without_secrets,
)
from echo_hf.systems.journal import SETTLED, UNUSABLE, Journal, JournalEntry, digest_of
from echo_hf.systems.registry import expected_images

logger = logging.getLogger(__name__)
LONGEST_TEXT, LONGEST_REMARK = 1000, 300
MOST_FAILURES_IN_A_ROW = 10
# What an entry says as its task and its result do.
OF_THE_TASK = ("sample_id", "sample_digest", "split")
ALIKE = ("outcome", "stage", "seed", "usage", "cost_usd")
# Failures of one task alone: however many there are in a row, the next task may well do.
OF_ONE_TASK = frozenset({"no_file", "no_input", "several_files"})


@dataclass(frozen=True)
class GenerationPlan:
    """What a system is about to draw, and what that is expected to take."""

    system: str
    todo: tuple[Task, ...]
    stored: int
    stale: int
    expected: Expected

    @property
    def cost_usd(self) -> float | None:
        """About what it costs in US dollars, null where no price is known."""
        return self.expected.cost_usd

    def __str__(self) -> str:
        if not self.todo:
            return ""
        known, parts = self.expected, [f"{len(self.todo):>9,} to draw"]
        parts += [f"{self.stale:,} of them again"] if self.stale else []
        parts += [f"{self.stored:,} kept"] if self.stored else []
        parts += [f"price {shown_dollars(known.usd)}"] if known.cost_usd else []
        parts += (
            [f"time {shown_time(known.seconds)}"] if known.seconds and known.seconds.likely else []
        )
        return ", ".join(parts)


@dataclass
class Generations:
    """What a system has given so far, in words for people."""

    system: str
    entries: list[JournalEntry] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def __str__(self) -> str:
        counts = Counter(one.outcome for one in self.entries)
        outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(counts.items()))
        dollars = sum(one.cost_usd or 0.0 for one in self.entries)
        cost = f", ${dollars:.2f}" if dollars else ""
        return f"{self.system}: {outcomes}{pace(len(self.entries), self.seconds)}{cost}"

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def failures(self) -> Iterator[str]:
        """How many failed, by their codes, with an example each."""
        by_code = defaultdict[str, list[JournalEntry]](list)
        for one in self.entries:
            if one.outcome == Outcome.FAILED:
                by_code[one.code or str(one.stage)].append(one)
        for code, some in sorted(by_code.items()):
            yield f"{self.system}: {len(some)} failed, {code}: {some[0].text or ''}"


def is_settled(task: Task, entry: JournalEntry, images: ImageStore) -> bool:
    """Whether something that was written down says what became of a task, whatever the settings."""
    if entry.outcome not in SETTLED or entry.sample_digest != task.sample_digest:
        return False
    if entry.image is None:
        return True
    # A machine that lost its power may leave a name without bytes, or with too few.
    file = images.path(entry.image)
    size = file.stat().st_size if file.is_file() else 0
    return size > 0 if entry.image_bytes is None else size == entry.image_bytes


def added(*costs: float | None) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None


def failed_by(error: BaseException) -> GenerationResult:
    """What becomes of a task that something unforeseen happened to."""
    kind = type(error).__name__
    said = without_secrets(" ".join(str(error).split()))[:LONGEST_TEXT]
    return failed(said or kind, kind)


class SystemRun:
    def __init__(
        self,
        config: SystemConfig,
        system: System,
        folder: RunFolder,
        tasks: Sequence[Task],
        *,
        again: bool = False,
    ) -> None:
        self.config, self.system, self.images = config, system, folder.images
        self.journal = Journal(folder.root, config.name)
        self.concurrency = config.limits.concurrency or system.concurrency
        self.plan = self._planned(tasks, digest_of(system.signature()), anew=again)
        self.given = Generations(config.name)
        self.watch: ProgressListener = NullProgress()
        self.stopped: str | None = None
        self.cost_usd: float | None = None
        self.is_short = False
        self._signature, self._failed = "", 0
        self._limiter, self._stop = RateLimiter(config.limits.per_minute), Event()

    def _planned(
        self, tasks: Sequence[Task], signature: str, *, anew: bool = False
    ) -> GenerationPlan:
        """What is left of tasks; those that failed before come last."""
        config, entries = self.config, self.journal.entries
        todo, again, stale = list[Task](), list[Task](), 0
        for task in tasks:
            has_failed, entry = False, entries.get(task.sample_id)
            if entry is not None:
                is_same = entry.signature == signature
                is_done = is_same and is_settled(task, entry, self.images)
                is_done = is_done and not (anew and entry.outcome in UNUSABLE)
                if is_done and not may_fit_now(entry.details, config):
                    continue
                stale += entry.outcome in SETTLED
                is_same = is_same and entry.sample_digest == task.sample_digest
                has_failed = is_same and entry.outcome == Outcome.FAILED
            (again if has_failed else todo).append(task)
        known = [one for one in entries.values() if one.signature == signature]
        return GenerationPlan(
            system=config.name,
            todo=(*todo, *again),
            stored=len(tasks) - len(todo) - len(again),
            stale=stale,
            expected=self._expected((*todo, *again), known),
        )

    def _expected(self, tasks: Sequence[Task], known: Sequence[JournalEntry]) -> Expected:
        """What tasks will take: by what this run has measured, else by the list."""
        # A system of several models may know better than the list.
        count, own = len(tasks), getattr(self.system, "estimate", None)
        listed = own(tasks) if own else expected_images(self.config, tasks)
        if not tasks:
            return listed
        drawn = [one.cost_usd for one in known if one.outcome == Outcome.OK]
        paid = [cost for cost in drawn if cost is not None]
        took = [one.latency_s for one in known if one.attempts and one.latency_s is not None]
        is_free = self.config.usd_per_image == 0
        usd = listed.usd if is_free else measured(paid, count) or listed.usd
        seconds = measured(took, count) or listed.seconds
        if seconds is not None:
            rate = self.config.limits.per_minute
            slowest = 60 * count / rate if rate else 0.0
            seconds = Range(*(max(slowest, one / self.concurrency) for one in seconds))
        if paid or took:
            basis = f"measured in this run: {len(paid)} prices, {len(took)} times"
            listed = replace(
                listed,
                basis=basis if paid and took else "; ".join(filter(None, (basis, listed.basis))),
            )
        return replace(listed, usd=usd, seconds=seconds)

    def preflight(self) -> Retired | None:
        """Asks whether its model is still there; where that cannot be found out, it is stopped."""
        try:
            return self.system.preflight() if self.plan.todo else None
        except Exception as error:
            self.stopped = str(error)
            if not isinstance(error, EchoError):
                self.stopped = (
                    f"system {self.config.name!r} cannot be looked for ({failed_by(error).text}): "
                    "fix that, or choose other systems with --systems"
                )
        return None

    def run(
        self, retired: Retired | None, budget_usd: float | None, watch: ProgressListener
    ) -> None:
        """Draws what is left to do, and says how it ended."""
        self.watch, self.given.began = watch, time.monotonic()
        if self.stopped is None:
            if retired is None or self.journal.current is None:
                determinism = self.system.determinism
                self._signature = self.journal.sign(
                    self.system.signature(), determinism, self.config.answered_by.model_dump()
                )
            else:  # settings that nothing is drawn with take away nothing that was drawn before
                self._signature = self.journal.current
            if retired is None:
                self._draw_all(budget_usd)
            else:
                self._retire(self.plan.todo, retired)
        if self.given.entries:
            logger.info("system %s", self.given, extra=TOLD)
            watch.finished(self.given)
        for said in self.given.failures():
            watch.noticed(said)
        if self.stopped:  # why, the error at the end says
            watch.noticed(f"{self.config.name} was stopped")

    def _draw_all(self, budget_usd: float | None) -> None:
        """Draws within a budget, which what lies in files already costs nothing of."""
        entries, is_free = self.given.entries, self.config.usd_per_image == 0
        budget_usd = None if is_free else budget_usd
        try:
            with self.system:
                self._draw(budget_usd)
        except EchoError as error:  # the other systems go on
            self.stopped = str(error)
        else:
            all_failed = all(one.outcome == Outcome.FAILED for one in entries)
            if entries and all_failed and not self.plan.stored:
                self.stopped = self._broken(f"all {len(entries)} tasks failed", entries[-1])
        spent_usd = self._spent_usd()
        if not is_free and (spent_usd or any(one.cost_usd is not None for one in entries)):
            self.cost_usd = spent_usd
        is_spent = budget_usd is not None and spent_usd >= budget_usd
        self.is_short = is_spent and len(entries) < len(self.plan.todo)

    def _spent_usd(self) -> float:
        """What it cost; an image of which nobody says so costs as much as was planned."""
        entries, plan = self.given.entries, self.plan
        unstated = sum(one.cost_usd is None and one.outcome == Outcome.OK for one in entries)
        planned_usd = unstated * (plan.cost_usd or 0.0) / max(len(plan.todo), 1)
        return sum(one.cost_usd or 0.0 for one in entries) + planned_usd

    def _draw(self, budget_usd: float | None) -> None:
        """Draws tasks; what is under way when it is stopped is still waited for and kept."""
        waiting, running = iter(self.plan.todo), set[Future[JournalEntry]]()
        gone: JournalEntry | None = None
        with ThreadPoolExecutor(self.concurrency, thread_name_prefix="draw") as pool:
            try:
                while True:
                    is_spent = budget_usd is not None and self._spent_usd() >= budget_usd
                    room = 0 if gone or is_spent else self.concurrency - len(running)
                    for task in islice(waiting, room):
                        running.add(pool.submit(self._drawn, task))
                    if not running:
                        break
                    for work in wait(running, return_when=FIRST_COMPLETED).done:
                        running.discard(work)
                        entry = work.result()
                        self._told(entry)
                        self._count_failures(entry)
                        # Told of one task, as by a list of outputs, it says nothing of others.
                        is_asked = entry.stage != OutcomeStage.PREFLIGHT
                        gone = entry if entry.outcome == Outcome.RETIRED and is_asked else gone
            finally:
                self._stop.set()
                if running:
                    under_way = f"{len(running)} under way are waited for and kept"
                    self.watch.noticed(f"{self.config.name}: stopping; {under_way}")
                    for work in as_completed(running):
                        if not isinstance(work.exception(), EchoError):
                            self._told(work.result())
        if gone is not None:
            self._retire(waiting, Retired(gone.text or "", gone.code))

    def _retire(self, tasks: Iterable[Task], retired: Retired) -> None:
        """Notes that nobody can draw tasks any more; nothing is asked."""
        stage = OutcomeStage.PREFLIGHT
        drawn = GenerationResult(Outcome.RETIRED, stage=stage, code=retired.code, text=retired.text)
        for task in tasks:
            entry = self.journal.entries.get(task.sample_id)
            if entry is None or not is_settled(task, entry, self.images):
                entry = self._kept(task, drawn, 0, 0.0)
            self._told(entry)

    def _drawn(self, task: Task) -> JournalEntry:
        """Draws a task, again when a failure may pass, and keeps what became of it."""
        policy = RetryPolicy(self.config.limits.attempts)
        attempts, latency_s, paid = 0, 0.0, list[TransientError]()

        def attempt() -> GenerationResult:
            nonlocal attempts, latency_s
            if not self._limiter.turn_unless(self._stop):
                raise RequestError("it was stopped before it began", again=False)
            attempts += 1
            began = time.monotonic()
            try:
                drawn = self.system.draw(task)
                if not isinstance(drawn, GenerationResult):
                    kind = type(drawn).__name__
                    raise TypeError(f"the adapter gave {kind}, expected GenerationResult")
                return drawn
            except TransientError as passing:
                if passing.usage is not None or passing.cost_usd is not None:
                    paid.append(passing)
                if passing.wait_s is not None and policy.may_pass(passing):
                    self._limiter.hold(passing.wait_s)  # all tasks wait when the system says so
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
            drawn = policy.call(attempt, sleep_using_event(self._stop))
            cost_usd = drawn.cost_usd
        except RequestError as error:
            asks = f"; it asks to wait {error.wait_s:.0f} s" if error.wait_s else ""
            text = without_secrets(error.text)[:LONGEST_TEXT] + asks
            drawn, cost_usd = failed(text, error.code), 0.0
        if paid:
            told = (drawn.usage, *(one.usage for one in paid))
            usage = sum((one for one in told if one is not None), Usage())
            cost_usd = added(cost_usd, *(one.cost_usd for one in paid))
            drawn = replace(drawn, usage=usage, cost_usd=cost_usd)
        if self._stop.is_set() and drawn.outcome not in SETTLED:
            raise GenerationError("its attempts were cut short: it has not failed")
        return self._kept(task, drawn, attempts, latency_s)

    def _kept(
        self, task: Task, drawn: GenerationResult, attempts: int, latency_s: float
    ) -> JournalEntry:
        """Writes down what became of a task; an adapter's own contradiction is a failure."""
        digest, wrong = None, None
        if (drawn.outcome == Outcome.OK) != (drawn.image is not None):
            came = "no image" if drawn.image is None else "an image"
            wrong = f"the adapter gave {came} with the outcome {drawn.outcome!s}"
        elif drawn.image is not None:
            try:
                try:
                    digest = self.images.put(drawn.image)
                except FileNotFoundError:  # a build that begins took it for a half-written image
                    digest = self.images.put(drawn.image)
            except (ImageError, TypeError) as error:
                wrong = str(error)
        if wrong is not None:
            drawn = replace(drawn, outcome=Outcome.FAILED, stage=OutcomeStage.ANSWER, text=wrong)
        try:
            details = json.loads(json.dumps(dict(drawn.details), default=str), parse_constant=str)
        except (TypeError, ValueError, RecursionError):  # the image is not lost for a remark
            details = {"not_json": repr(drawn.details)[:LONGEST_REMARK]}
        told: dict[str, Any] = {name: getattr(task, name) for name in OF_THE_TASK}
        told |= {name: getattr(drawn, name) for name in ALIKE}
        told |= {name: _storable(getattr(drawn, name)) for name in TEXTS}
        entry = JournalEntry(
            **told,
            signature=self._signature,
            image=digest,
            image_bytes=None if digest is None else len(drawn.image or b""),
            latency_s=round(latency_s, 3),
            attempts=attempts,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            details=details,
        )
        return self.journal.add(entry)

    def _told(self, entry: JournalEntry) -> None:
        said = (self.config.name, entry.sample_id, entry.outcome, entry.code, entry.text)
        logger.debug("system %s: %s: %s, %s: %s", *said)
        self.given.entries.append(entry)
        self.watch.advanced(self.config.name, len(self.given.entries), self.given)

    def _count_failures(self, entry: JournalEntry) -> None:
        """Counts failures in the order in which they came; raises after too many in a row."""
        if entry.outcome != Outcome.FAILED:
            self._failed = 0
            return
        if entry.stage != OutcomeStage.INPUT and entry.code not in OF_ONE_TASK:
            self._failed += 1
        if self._failed >= MOST_FAILURES_IN_A_ROW:
            raise GenerationError(self._broken(f"{self._failed} tasks in a row failed", entry))

    def _broken(self, how: str, last: JournalEntry) -> str:
        return (
            f"system {self.config.name!r}: {how}, the last with "
            f"{(last.text or '')[:LONGEST_REMARK]!r}: fix that; the same command goes on from here"
        )


def _storable(text: str | None) -> str | None:
    """A text without half characters, which a service may well send and no table can hold."""
    return None if text is None else str(text).encode("utf-8", "replace").decode()
