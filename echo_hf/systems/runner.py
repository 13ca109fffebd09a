"""One system's work in a run: what is left to draw, attempts, journal and budget."""

from __future__ import annotations

import json
import logging
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, as_completed, wait
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from threading import Event
from typing import Any

import pyarrow as pa
from tenacity import sleep_using_event

from echo_hf._infra.rate_limit import RateLimiter
from echo_hf._infra.retry import RequestError, RetryPolicy, hide_errors
from echo_hf._infra.text import format_rate
from echo_hf.config.systems import SystemConfig
from echo_hf.engines.base import Usage
from echo_hf.engines.planner import ExpectedCost, Range, extrapolate, format_dollars, format_seconds
from echo_hf.errors import EchoError, GenerationError, ImageError
from echo_hf.hub.sealed import SEALED_FOLDER
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.progress import ALREADY_REPORTED, NullProgress, ProgressListener
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.systems.base import (
    TEXTS,
    GenerationResult,
    OutcomeStage,
    Retired,
    System,
    Task,
    TransientError,
    failure_result,
    may_be_supported,
    remove_secrets,
)
from echo_hf.systems.files import NO_FILE, SEVERAL_FILES
from echo_hf.systems.journal import (
    SETTLED,
    UNUSABLE,
    Journal,
    JournalEntry,
    hash_signature,
    restore_entries,
)
from echo_hf.systems.registry import estimate_cost
from echo_hf.tables import Outcome

logger = logging.getLogger(__name__)
MAX_TEXT, MAX_REMARK = 1000, 300
MAX_FAILURES_IN_A_ROW = 10
# Fields that an entry takes over from its task and its result.
TASK_FIELDS = ("sample_id", "sample_digest", "split", "draw")
RESULT_FIELDS = ("outcome", "stage", "seed", "usage", "cost_usd")
# Codes of failures that say nothing about the next task, however many there are in a row.
SINGLE_TASK_CODES = frozenset({NO_FILE, "no_input", SEVERAL_FILES})
PLAIN_CODE = re.compile(r"[A-Za-z_]{1,40}|[0-9]{3}")  # quotes neither a prompt nor an id


@dataclass(frozen=True)
class GenerationPlan:
    """The tasks that a system is about to draw, and the expected cost."""

    system: str
    todo: tuple[Task, ...]
    stored: int
    stale: int
    expected: ExpectedCost
    part: str = ""  # of the run

    @property
    def label(self) -> str:
        return f"{self.system} ({self.part})" if self.part else self.system

    @property
    def cost_usd(self) -> float | None:
        """Return about what it costs in US dollars; null where no price is known."""
        return self.expected.cost_usd

    def __str__(self) -> str:
        if not self.todo:
            return ""
        expected, parts = self.expected, [f"{len(self.todo):>9,} to draw"]
        if self.stale:
            parts.append(f"{self.stale:,} of them again")
        if self.stored:
            parts.append(f"{self.stored:,} kept")
        if expected.cost_usd:
            parts.append(f"price {format_dollars(expected.usd)}")
        if expected.seconds and expected.seconds.likely:
            parts.append(f"time {format_seconds(expected.seconds)}")
        return ", ".join(parts)


@dataclass
class GenerationStats:
    """The outputs of a system so far, with a summary for people."""

    system: str
    entries: list[JournalEntry] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    is_sealed: bool = False  # whether no example may be shown

    def __str__(self) -> str:
        counts = Counter(entry.outcome for entry in self.entries)
        outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(counts.items()))
        dollars = sum(entry.cost_usd or 0.0 for entry in self.entries)
        cost = f", ${dollars:.2f}" if dollars else ""
        return f"{self.system}: {outcomes}{format_rate(len(self.entries), self.seconds)}{cost}"

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def describe_failures(self) -> Iterator[str]:
        """Yield the number of failures by code, with an example each unless they are sealed."""
        by_code = defaultdict[str, list[JournalEntry]](list)
        for entry in self.entries:
            if entry.outcome == Outcome.FAILED:
                code = find_plain_code(entry) if self.is_sealed else entry.code or str(entry.stage)
                by_code[code].append(entry)
        for code, entries in sorted(by_code.items()):
            example = "" if self.is_sealed else f": {entries[0].text or ''}"
            yield f"{self.system}: {len(entries)} failed, {code}{example}"


def find_plain_code(entry: JournalEntry) -> str:
    """Return the code of a failure if it is a word or a status, and else where it failed."""
    code = entry.code or ""
    return code if PLAIN_CODE.fullmatch(code) else str(entry.stage)


def list_draws(tasks: Sequence[Task], outputs: int) -> tuple[Task, ...]:
    """List tasks with that many draws of each: all that are first, then all that are second."""
    return tuple(replace(task, draw=draw) for draw in range(outputs) for task in tasks)


def is_settled(task: Task, entry: JournalEntry, images: ImageStore) -> bool:
    """Return whether an output is final for its task, whatever the settings."""
    if entry.outcome not in SETTLED or entry.sample_digest != task.sample_digest:
        return False
    if entry.image is None:
        return True
    # A power failure may leave a file that is empty or too short.
    file = images.path(entry.image)
    size = file.stat().st_size if file.is_file() else 0
    return size > 0 if entry.image_bytes is None else size == entry.image_bytes


def add_costs(*costs: float | None) -> float | None:
    stated = [cost for cost in costs if cost is not None]
    return sum(stated) if len(stated) == len(costs) else None


def result_of_error(error: BaseException) -> GenerationResult:
    """Return the result of a task that raised an unexpected error."""
    kind = type(error).__name__
    message = remove_secrets(" ".join(str(error).split()))[:MAX_TEXT]
    return failure_result(message or kind, kind)


class _ManyFailuresError(GenerationError):
    """So many tasks in a row failed that no other is begun."""


class SystemRun:
    def __init__(
        self,
        config: SystemConfig,
        system: System,
        folder: RunFolder,
        tasks: Sequence[Task],
        *,
        retry: bool = False,
        main: SystemRun | None = None,
        part: str = "",
        kept: pa.Table | None = None,
        outputs: int = 1,
    ) -> None:
        """Plan a system's work; in a part of a run its outputs of `main` and kept ones count."""
        self.config, self.system, self.images = config, system, folder.images
        tasks = list_draws(tasks, outputs)
        self.journal = Journal(folder.root, config.name)
        self.main, self.part, self.tasks = main, part, tasks
        self._kept = () if kept is None else tuple(self._restore(kept))
        self.concurrency = config.limits.concurrency or system.concurrency
        self.plan = self._plan_tasks(tasks, hash_signature(system.signature()), retry=retry)
        self.is_sealed = part == SEALED_FOLDER
        self.stats = GenerationStats(self.plan.label, is_sealed=self.is_sealed)
        self.watch: ProgressListener = NullProgress()
        self.stopped: str | None = None
        self.cost_usd: float | None = None
        self.is_short = False
        self._signature, self._failed = "", 0
        self._limiter, self._stop = RateLimiter(config.limits.per_minute), Event()

    def _plan_tasks(
        self, tasks: Sequence[Task], signature: str, *, retry: bool = False
    ) -> GenerationPlan:
        """Plan the tasks that are left; those that failed before come last."""
        config, entries = self.config, {**self.journal.entries}
        entries |= {entry.output_key: entry for entry in self._kept}
        todo, failed, stale = list[Task](), list[Task](), 0
        shared = set[tuple[tuple[str, int], str]]()
        if self.main is not None:
            shared = {(task.output_key, task.sample_digest) for task in self.main.tasks}
        for task in tasks:
            if (task.output_key, task.sample_digest) in shared:
                continue
            # A result under other settings or of another digest is stale, and drawn again.
            has_failed, entry = False, entries.get(task.output_key)
            if entry is not None:
                is_same = entry.signature == signature
                is_done = is_same and is_settled(task, entry, self.images)
                is_done = is_done and not (retry and entry.outcome in UNUSABLE)
                if is_done and not may_be_supported(entry.details, config):
                    continue
                stale += entry.outcome in SETTLED
                is_same = is_same and entry.sample_digest == task.sample_digest
                has_failed = is_same and entry.outcome == Outcome.FAILED
            if has_failed:
                failed.append(task)
            else:
                todo.append(task)
        current = [entry for entry in entries.values() if entry.signature == signature]
        return GenerationPlan(
            system=config.name,
            todo=(*todo, *failed),
            stored=len(tasks) - len(todo) - len(failed),
            stale=stale,
            expected=self._estimate((*todo, *failed), current),
            part=self.part,
        )

    def _restore(self, kept: pa.Table) -> Iterator[JournalEntry]:
        """Yield kept outputs under the present settings that the journal has none of."""
        signature = hash_signature(self.system.signature())
        for entry in restore_entries(kept, self.config.name, signature, self.images):
            known = self.journal.entries.get(entry.output_key)
            if known is None or known.signature != signature:
                yield entry

    def _list_copies(self) -> list[JournalEntry]:
        """List what a part takes over: kept outputs, and those of the same samples in the run."""
        copies = {entry.output_key: entry for entry in self._kept}
        if self.main is None:
            return [*copies.values()]
        drawn, images = self.main.journal, self.images
        for task in self.tasks:
            entry = drawn.entries.get(task.output_key)
            if entry is None or entry.signature != drawn.current:
                continue
            own = copies.get(task.output_key) or self.journal.entries.get(task.output_key)
            if own is not None and own.signature == entry.signature:
                is_better = own.outcome in UNUSABLE and entry.outcome not in UNUSABLE
                if is_settled(task, own, images) and not is_better:
                    continue
            if is_settled(task, entry, images):
                copies[task.output_key] = entry
        return [*copies.values()]

    def _estimate(self, tasks: Sequence[Task], entries: Sequence[JournalEntry]) -> ExpectedCost:
        """Estimate what tasks take: by this run's measurements, or else by the list."""
        # A system of several models may have a better estimate than the list.
        count, estimate = len(tasks), getattr(self.system, "estimate", None)
        listed = estimate(tasks) if estimate else estimate_cost(self.config, tasks)
        names = ("batch_share", "batch_hours", "is_batched")
        share, hours, is_batched = (getattr(self.system, name, None) for name in names)
        if share is not None and listed.usd:
            in_batches = listed.usd.scale(share)
            listed = replace(listed, plain_usd=listed.usd, batch_usd=in_batches, batch_hours=hours)
        if is_batched:
            listed = replace(listed, usd=listed.batch_usd, seconds=None, is_batched=True)
        if not tasks:
            return listed
        costs = [entry.cost_usd for entry in entries if entry.outcome == Outcome.OK]
        paid = [cost for cost in costs if cost is not None]
        latencies = [entry.latency_s for entry in entries if entry.attempts]
        times = [latency for latency in latencies if latency is not None]
        is_free = self.config.usd_per_image == 0
        usd = listed.usd if is_free else extrapolate(paid, count) or listed.usd
        seconds = None if is_batched else extrapolate(times, count) or listed.seconds
        if seconds is not None:
            rate = self.config.limits.per_minute
            slowest = 60 * count / rate if rate else 0.0
            # Neither the rate limit nor the tasks at a time let it be faster.
            seconds = Range(*(max(slowest, bound / self.concurrency) for bound in seconds))
        if paid or times:
            basis = f"measured in this run: {len(paid)} prices, {len(times)} times"
            if listed.basis and not (paid and times):
                basis = f"{basis}; {listed.basis}"
            listed = replace(listed, basis=basis)
        return replace(listed, usd=usd, seconds=seconds)

    def preflight(self) -> Retired | None:
        """Look for the system's model; stop the system where that fails."""
        try:
            return self.system.preflight() if self.plan.todo else None
        except Exception as error:
            self.stopped = str(error)
            if not isinstance(error, EchoError):
                reason = result_of_error(error).text
                self.stopped = (
                    f"system {self.config.name!r} cannot be looked for ({reason}): fix that, or "
                    "choose other systems with --systems"
                )
        return None

    def run(
        self,
        retired: Retired | None,
        budget_usd: float | None,
        watch: ProgressListener,
        load: Callable[[], object] | None = None,
    ) -> None:
        """Draw what is left to do, and report how it ended; `load` keeps the system open after."""
        self.watch, self.stats.began = watch, time.monotonic()
        copies = self._list_copies() if self.stopped is None else []
        if self.part and not copies and (retired is not None or not self.plan.todo):
            return  # what lies there from before stays
        if self.stopped is None:
            if retired is None or self.journal.current is None or copies:
                model = self.config.answered_by.model_dump()
                settings, determinism = self.system.signature(), self.system.determinism
                self._signature = self.journal.sign(settings, determinism, model)
            else:  # settings that draw nothing do not replace those of earlier outputs
                self._signature = self.journal.current
            for entry in copies:
                self.journal.add(entry)
            if retired is None:
                self._draw_all(budget_usd, load)
            elif not self.part:
                self._retire(self.plan.todo, retired)
        if self.stats.entries:
            logger.info("system %s", self.stats, extra=ALREADY_REPORTED)
            watch.report_result(self.stats)
        for failure in self.stats.describe_failures():
            watch.report_notice(failure)
        if self.stopped:  # the final error says why
            watch.report_notice(f"{self.plan.label} was stopped")

    def _draw_all(self, budget_usd: float | None, load: Callable[[], object] | None) -> None:
        """Draw within a budget; outputs from files cost nothing of it."""
        entries, is_free = self.stats.entries, self.config.usd_per_image == 0
        budget_usd = None if is_free else budget_usd
        try:
            with (
                self.system if load is None else nullcontext(load()),
                hide_errors() if self.is_sealed else nullcontext(),
            ):
                if getattr(self.system, "is_batched", False):
                    self._draw_in_batches(budget_usd)
                else:
                    self._draw(budget_usd)
        except EchoError as error:  # the other systems go on
            self.stopped = str(error)
            if self.is_sealed and not isinstance(error, _ManyFailuresError):
                self.stopped = (
                    f"system {self.plan.label!r} gave up ({type(error).__name__}), and what it "
                    "says is not shown, as it may quote a sealed sample: the same command goes on "
                    "from here"
                )
        else:
            # A folder of images may lack those of a part, which says nothing of the system.
            own_codes = SINGLE_TASK_CODES if self.part else frozenset[str]()
            counted = [entry for entry in entries if entry.code not in own_codes]
            all_failed = counted and all(entry.outcome == Outcome.FAILED for entry in counted)
            if all_failed and not self.plan.stored:
                self.stopped = self._describe(f"all {len(entries)} tasks failed", entries[-1])
        spent_usd = self._sum_costs()
        if not is_free and (spent_usd or any(entry.cost_usd is not None for entry in entries)):
            self.cost_usd = spent_usd
        is_spent = budget_usd is not None and spent_usd >= budget_usd
        self.is_short = is_spent and len(entries) < len(self.plan.todo)

    def _sum_costs(self) -> float:
        """Sum the costs; an image without a stated cost counts as planned."""
        entries, plan = self.stats.entries, self.plan
        unstated = sum(entry.cost_usd is None and entry.outcome == Outcome.OK for entry in entries)
        planned_usd = unstated * (plan.cost_usd or 0.0) / max(len(plan.todo), 1)
        return sum(entry.cost_usd or 0.0 for entry in entries) + planned_usd

    def _draw_in_batches(self, budget_usd: float | None) -> None:
        """Draw tasks in batches, and what may go better again, as often as the limits say."""
        system: Any = self.system
        task_usd, under_way = (self.plan.cost_usd or 0.0) / max(len(self.plan.todo), 1), 0
        again, attempts = list(self.plan.todo), self.config.limits.attempts

        def take(tasks: Iterable[Task]) -> Iterator[Task]:
            nonlocal under_way
            for task in tasks:
                # All tasks of a batch go before the first comes back.
                planned_usd = self._sum_costs() + under_way * task_usd
                if budget_usd is not None and planned_usd >= budget_usd:
                    return
                under_way += 1
                yield task

        for attempt in range(1, attempts + 1):
            tasks, again = again, []
            for task, result in system.draw_batch(take(tasks)) if tasks else ():
                under_way -= 1
                if isinstance(result, RequestError):
                    if attempt < attempts:
                        again.append(task)
                        continue
                    result = failure_result(remove_secrets(result.text)[:MAX_TEXT], result.code)
                entry = self._record_result(task, result, attempt, None)
                self._report_entry(entry)
                self._count_failures(entry)

    def _draw(self, budget_usd: float | None) -> None:
        """Draw tasks; when stopped, wait for those that are under way and keep them."""
        waiting, running = iter(self.plan.todo), set[Future[JournalEntry]]()
        gone: JournalEntry | None = None
        with ThreadPoolExecutor(self.concurrency, thread_name_prefix="draw") as pool:
            try:
                while True:
                    is_spent = budget_usd is not None and self._sum_costs() >= budget_usd
                    room = 0 if gone or is_spent else self.concurrency - len(running)
                    for task in islice(waiting, room):
                        running.add(pool.submit(self._draw_task, task))
                    if not running:
                        break
                    for work in wait(running, return_when=FIRST_COMPLETED).done:
                        running.discard(work)
                        entry = work.result()
                        self._report_entry(entry)
                        self._count_failures(entry)
                        # Stored outputs may call one task's model retired: that is of no other.
                        is_asked = entry.stage != OutcomeStage.PREFLIGHT
                        if entry.outcome == Outcome.RETIRED and is_asked:
                            gone = entry
            finally:
                self._stop.set()
                if running:
                    under_way = f"{len(running)} under way are waited for and kept"
                    self.watch.report_notice(f"{self.config.name}: stopping; {under_way}")
                    for work in as_completed(running):
                        if not isinstance(work.exception(), EchoError):
                            self._report_entry(work.result())
        if gone is not None:
            self._retire(waiting, Retired(gone.text or "", gone.code))

    def _retire(self, tasks: Iterable[Task], retired: Retired) -> None:
        """Record that the model is retired for tasks; nothing is asked."""
        result = GenerationResult(
            Outcome.RETIRED, stage=OutcomeStage.PREFLIGHT, code=retired.code, text=retired.text
        )
        for task in tasks:
            entry = self.journal.entries.get(task.output_key)
            if entry is None or not is_settled(task, entry, self.images):
                entry = self._record_result(task, result, 0, 0.0)
            self._report_entry(entry)

    def _draw_task(self, task: Task) -> JournalEntry:
        """Draw a task, again after a transient failure, and record the result."""
        policy = RetryPolicy(self.config.limits.attempts)
        attempts, latency_s, billed = 0, 0.0, list[TransientError]()

        def attempt() -> GenerationResult:
            nonlocal attempts, latency_s
            if not self._limiter.wait_unless(self._stop):
                raise RequestError("it was stopped before it began", again=False)
            attempts += 1
            started = time.monotonic()
            try:
                result = self.system.draw(task)
                if not isinstance(result, GenerationResult):
                    kind = type(result).__name__
                    raise TypeError(f"the adapter gave {kind}, expected GenerationResult")
                return result
            except TransientError as transient:
                if transient.usage is not None or transient.cost_usd is not None:
                    billed.append(transient)
                if transient.wait_s is not None and policy.can_retry(transient):
                    self._limiter.hold(transient.wait_s)  # all tasks wait, as the system asks
                raise
            except (GenerationError, KeyboardInterrupt):
                raise
            # An error of a library is a failure of this task alone. Some are no `Exception`:
            # SystemExit, or the panic of a library in Rust.
            except BaseException as error:
                return result_of_error(error)
            finally:
                latency_s = time.monotonic() - started

        try:
            result = policy.call(attempt, sleep_using_event(self._stop))
            cost_usd = result.cost_usd
        except RequestError as error:
            asks = f"; it asks to wait {error.wait_s:.0f} s" if error.wait_s else ""
            text = remove_secrets(error.text)[:MAX_TEXT] + asks
            result, cost_usd = failure_result(text, error.code), 0.0
        if billed:
            usages = (result.usage, *(failure.usage for failure in billed))
            usage = sum((usage for usage in usages if usage is not None), Usage())
            cost_usd = add_costs(cost_usd, *(failure.cost_usd for failure in billed))
            result = replace(result, usage=usage, cost_usd=cost_usd)
        if self._stop.is_set() and result.outcome not in SETTLED:
            raise GenerationError("its attempts were cut short: it has not failed")
        return self._record_result(task, result, attempts, latency_s)

    def _record_result(
        self, task: Task, result: GenerationResult, attempts: int, latency_s: float | None
    ) -> JournalEntry:
        """Record a result in the journal; one that contradicts itself is a failure."""
        digest, problem = None, None
        if (result.outcome == Outcome.OK) != (result.image is not None):
            came = "no image" if result.image is None else "an image"
            problem = f"the adapter gave {came} with the outcome {result.outcome!s}"
        elif result.image is not None:
            try:
                try:
                    digest = self.images.put(result.image)
                except FileNotFoundError:  # a build that just began took it for an incomplete image
                    digest = self.images.put(result.image)
            except (ImageError, TypeError) as error:
                problem = str(error)
        if problem is not None:
            stage = OutcomeStage.ANSWER
            result = replace(result, outcome=Outcome.FAILED, stage=stage, text=problem)
        try:
            details = json.loads(json.dumps(dict(result.details), default=str), parse_constant=str)
        except (TypeError, ValueError, RecursionError):  # the image is kept all the same
            details = {"not_json": repr(result.details)[:MAX_REMARK]}
        fields: dict[str, Any] = {name: getattr(task, name) for name in TASK_FIELDS}
        fields |= {name: getattr(result, name) for name in RESULT_FIELDS}
        fields |= {name: _make_storable(getattr(result, name)) for name in TEXTS}
        entry = JournalEntry(
            **fields,
            signature=self._signature,
            image=digest,
            image_bytes=None if digest is None else len(result.image or b""),
            latency_s=None if latency_s is None else round(latency_s, 3),
            attempts=attempts,
            at=datetime.now(UTC).isoformat(timespec="seconds"),
            details=details,
        )
        return self.journal.add(entry)

    def _report_entry(self, entry: JournalEntry) -> None:
        values = (self.config.name, entry.sample_id, entry.outcome, entry.code, entry.text)
        if not self.part:  # the log says nothing of a sealed sample
            logger.debug("system %s: %s: %s, %s: %s", *values)
        self.stats.entries.append(entry)
        self.watch.report_progress(self.plan.label, len(self.stats.entries), self.stats)

    def _count_failures(self, entry: JournalEntry) -> None:
        """Count failures in a row; raise an error after too many."""
        if entry.outcome != Outcome.FAILED:
            self._failed = 0
            return
        if entry.stage != OutcomeStage.INPUT and entry.code not in SINGLE_TASK_CODES:
            self._failed += 1
        if self._failed >= MAX_FAILURES_IN_A_ROW:
            raise _ManyFailuresError(self._describe(f"{self._failed} tasks in a row failed", entry))

    def _describe(self, reason: str, last: JournalEntry) -> str:
        if self.is_sealed:
            return (
                f"system {self.plan.label!r}: {reason}, the last with {find_plain_code(last)!r}, "
                f"and what it says is only in {str(self.journal.path)!r}: fix that; the same "
                "command goes on from here"
            )
        return (
            f"system {self.config.name!r}: {reason}, the last with "
            f"{(last.text or '')[:MAX_REMARK]!r}: fix that; the same command goes on from here"
        )


def _make_storable(text: str | None) -> str | None:
    """Replace surrogates, which a service may send but no table can hold."""
    return None if text is None else str(text).encode("utf-8", "replace").decode()
