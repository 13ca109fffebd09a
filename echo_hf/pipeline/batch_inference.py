"""Batch inference: ask a model for the missing answers, in one window over all requests."""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from datasets import Dataset
from pydantic import BaseModel

from echo_hf._infra.text import format_rate, pluralize
from echo_hf.engines.base import (
    Completion,
    Engine,
    Failed,
    Message,
    Packing,
    Request,
    Text,
    Usage,
    check_vision,
)
from echo_hf.engines.planner import RequestPlan, extend_plan, plan_order
from echo_hf.errors import EngineError
from echo_hf.pipeline.answer_store import MAX_TRIES, Store, compute_request_keys
from echo_hf.pipeline.answers import Failure, StoredAnswers, as_source, parse
from echo_hf.pipeline.packing import group_by_packing, pack_requests, unpack_completion
from echo_hf.pipeline.usable_answers import UsableAnswers
from echo_hf.reasons import Reason
from echo_hf.tables import arrow_batches

if TYPE_CHECKING:
    from echo_hf.pipeline.stage import ModelStage

logger = logging.getLogger(__name__)
MAX_REPEATED_CHARACTERS = 4000
LOGGED_FAILURES = 5  # failures that the log repeats
SEGMENT_ROWS = 8192
MAX_EQUAL_ERRORS = 50
MAX_ERROR_CHARACTERS = 300
FINAL_REASONS = frozenset({Failed.REFUSED, Failed.NEEDS_MODEL})
CORRECTABLE_REASONS = frozenset({Failed.UNREADABLE, Failed.OFF_SCHEMA})
RETRY_INSTRUCTION = (
    "That answer cannot be used: {error}. Answer the same question again, whole, in the form that "
    "was described, and say nothing else."
)


def build_retry(request: Request, completion: Completion | None, failure: Failure) -> Request:
    """Build the request to send after a failed one; of several posts, one about its own alone."""
    if request.packing is not None:
        return replace(request, packing=None)
    if failure.reason is Failed.CUT:
        return replace(request, max_tokens=2 * request.max_tokens)
    has_form = request.answer is not None or request.regex is not None
    if failure.reason not in CORRECTABLE_REASONS or not has_form:
        return request
    answer = (completion.text or "").strip()[:MAX_REPEATED_CHARACTERS] if completion else ""
    if not answer:  # two turns of the user in a row are refused by some chat templates
        return request
    correction = RETRY_INSTRUCTION.format(error=failure.detail.rstrip("."))
    turns = (Message("assistant", (Text(answer),)), Message("user", (Text(correction),)))
    return replace(request, messages=(*request.messages, *turns))


@dataclass
class FillStats:
    """Statistics of a fill: this run's, and in `stage_*` those of all runs."""

    requests: int = 0
    store_hits: int = 0
    repeated: int = 0
    damaged: int = 0
    calls: int = 0
    failures: dict[str, int] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = None
    stage_usage: Usage = field(default_factory=Usage)
    stage_cost_usd: float | None = None
    seconds: float = 0.0

    def __str__(self) -> str:
        usage = self.usage
        tokens = usage.prompt + usage.completion
        parts = [f"{pluralize(self.calls, 'call')}{format_rate(self.calls, self.seconds)}"]
        parts += [f"{self.store_hits:,} answered before"] if self.store_hits else []
        parts += [f"{self.damaged:,} damaged since and asked again"] if self.damaged else []
        parts += [f"{tokens:,} tokens"] if tokens else []
        if usage.cached and usage.prompt:
            parts.append(f"{100 * usage.cached / usage.prompt:.0f} % of prompts from cache")
        if self.cost_usd is not None:
            parts.append(f"${self.cost_usd:.2f}")
        if self.stage_cost_usd not in (None, self.cost_usd):
            parts.append(f"${self.stage_cost_usd:.2f} with earlier runs")
        return ", ".join(parts)

    def __add__(self, other: FillStats) -> FillStats:
        """Add the statistics of two fills, one after the other."""
        failures = Counter(self.failures) + Counter(other.failures)
        return FillStats(
            **{
                count.name: getattr(self, count.name) + getattr(other, count.name)
                for count in fields(self)
                if count.name not in ("failures", "cost_usd", "stage_cost_usd")
            },
            failures=dict(sorted(failures.items())),
            cost_usd=_add_costs(self.cost_usd, other.cost_usd),
            stage_cost_usd=_add_costs(self.stage_cost_usd, other.stage_cost_usd),
        )

    def add_call(self, completion: Completion) -> None:
        self.calls += 1
        self.usage = self.usage + completion.usage
        self.cost_usd = _add_costs(self.cost_usd, completion.cost_usd)
        self.add_cost(completion.usage, completion.cost_usd)

    def add_cost(self, usage: Usage, cost_usd: float | None) -> None:
        """Add the cost of a call of this run or an earlier one."""
        self.stage_usage = self.stage_usage + usage
        self.stage_cost_usd = _add_costs(self.stage_cost_usd, cost_usd)


def _add_costs(first: float | None, second: float | None) -> float | None:
    return first if second is None else (first or 0.0) + second


OnProgress = Callable[[FillStats], None]
StopTest = Callable[[FillStats], bool]
UnusableTest = Callable[[BaseModel], Reason | None]


def fill(
    stage: ModelStage,
    dataset: Dataset,
    engine: Engine,
    store: Store,
    *,
    again: bool = False,
    keep_going: bool = True,
    whole: Dataset | None = None,
    progress: OnProgress | None = None,
    enough: StopTest | None = None,
    is_sealed: bool = False,
) -> FillStats:
    """Ask an engine for all answers that a stage needs and the store lacks.

    A call that fails, is cut, or cannot be read is made once more: a cut one with twice the room,
    an unreadable one with its answer and what was wrong with it. Refusals are final. The second
    try of a cut or unreadable answer is still made by a later run where this one was killed before
    it. A later run asks again where a call failed without an answer; where an answer came that
    cannot be used it asks only when told to.

    Args:
        stage: The stage.
        dataset: Its input rows.
        engine: Who is asked; one whose answers are not kept is asked nothing here.
        store: Where the answers go.
        again: Ask also where the stored answer cannot be used.
        keep_going: Whether to ask on where no answer can be used.
        whole: All rows of the question, where these are a part: an answer to any of them counts.
        progress: Called after each answer with the stats so far.
        enough: Whether to ask nothing more, given the stats so far; what is under way then is
            waited for and kept.
        is_sealed: Whether log and errors may quote no answer.

    Returns:
        What was asked and what it cost.

    Raises:
        EngineError: The engine gives nothing but errors, or breaks its contract; what it answered
            before is kept. The stage sends images, and the model reads text alone.
        UnusableAnswersError: None of the first ten answers can be used, or of all where there are
            fewer; they are kept. Only where it is not to keep going.
    """
    stats, started = FillStats(), time.perf_counter()
    if stage.sends_images:
        check_vision(engine, f"stage {stage.name!r}")
    if engine.stored:
        # What a stage asks may depend on who answers.
        answering = stage.answered_by(as_source(engine, store))
        rows = dataset if whole is None else whole
        usable = UsableAnswers(answering, rows, store, is_sealed=is_sealed)
        guard = None if keep_going else usable
        window = _Window(engine, store, stats, progress, enough, answering.unusable, guard)
        window.is_sealed = is_sealed
        for _ in range(stage.rounds):
            window.ask(iterate_segments(answering, dataset), again=again)
        if guard is not None:
            guard.check()
    stats.seconds = time.perf_counter() - started
    return stats


def plan_requests(
    stage: ModelStage,
    dataset: Dataset,
    engine: Engine,
    store: Store,
    *,
    again: bool = False,
    handled: set[bytes] | None = None,
) -> RequestPlan:
    """Count what `fill` would ask, in a pass over the rows that calls no model.

    Of several plans with one set of `handled` requests each request is counted in the first.
    """
    return _plan(stage, dataset, engine, store, [lambda request: request], again, handled)[0]


def plan_packings(
    stage: ModelStage,
    dataset: Dataset,
    engine: Engine,
    store: Store,
    packings: Sequence[Packing | None],
) -> list[RequestPlan]:
    """Count what is left to ask for each packing that the same requests could have."""
    ways = [partial(replace, packing=packing) for packing in packings]
    return _plan(stage, dataset, engine, store, ways)


def _plan(
    stage: ModelStage,
    dataset: Dataset,
    engine: Engine,
    store: Store,
    ways: Sequence[Callable[[Request], Request]],
    again: bool = False,
    handled: set[bytes] | None = None,
) -> list[RequestPlan]:
    price = getattr(engine, "usd_per_million_prompt_tokens", None)
    plans = [RequestPlan(usd_per_million_prompt_tokens=price) for _ in ways]
    signature, handled = engine.signature(), set() if handled is None else handled
    for requests in iterate_segments(stage.answered_by(as_source(engine, store)), dataset):
        keys = compute_request_keys(signature, requests)
        fresh = {k: r for r, k in zip(requests, keys, strict=True) if k not in handled}
        handled.update(fresh)
        new: list[Request] = []
        if engine.stored:
            settled = find_settled(store, signature, fresh, stage.unusable if again else None)
            new = [request for key, request in fresh.items() if key not in settled]
        counts = len(fresh) - len(new), len(requests) - len(fresh)
        for position, way in enumerate(ways):
            groups = group_by_packing(map(way, new), lambda request: request)
            sent = list(map(pack_requests, groups))
            plans[position] = extend_plan(plans[position], sent, *counts)
    return plans


def find_settled(
    store: Store,
    signature: Mapping[str, Any],
    requests: Mapping[bytes, Request],
    unusable: UnusableTest | None = None,
) -> set[bytes]:
    """Return keys of requests that need no asking; with a test, those answered usably."""
    if unusable is None:
        records = store.records(list(requests))
        return {key for key, record in records.items() if record.is_settled}
    answers = StoredAnswers(store, signature).read(list(requests.values()))
    pairs = zip(requests, answers, strict=True)
    return {
        key for key, answer in pairs if not isinstance(answer, Failure) and unusable(answer) is None
    }


@dataclass(frozen=True, slots=True)
class _Attempt:
    request: Request
    key: bytes
    tries: int = 1


class _Window:
    """One stream of requests and their second tries; each answer is stored as it comes."""

    def __init__(
        self,
        engine: Engine,
        store: Store,
        stats: FillStats,
        progress: OnProgress | None = None,
        should_stop: StopTest | None = None,
        unusable: UnusableTest = lambda _: None,
        guard: UsableAnswers | None = None,
    ) -> None:
        self.engine, self.store, self.stats = engine, store, stats
        self.progress, self.should_stop = progress, should_stop
        self.unusable, self.guard = unusable, guard
        self.signature, self.started = engine.signature(), time.perf_counter()
        self.retries: deque[_Attempt] = deque()
        self.handled: set[bytes] = set()
        self.failures: Counter[str] = Counter()
        self.errors_in_a_row, self.last_error, self.logged_failures = 0, "", 0
        self.is_sealed = False

    def ask(self, segments: Iterable[Sequence[Request]], *, again: bool = False) -> None:
        """Stream the requests that the store lacks through the engine, until none is left.

        What a call before this one streamed is not looked at again.
        """
        attempts = self._find_missing(segments, again)
        missing = group_by_packing(attempts, lambda attempt: attempt.request)
        while (first := self._take_next(missing)) is not None:
            in_flight: dict[int, Sequence[_Attempt]] = {}
            for number, completion in self.engine.stream(self._send(first, missing, in_flight)):
                sent = in_flight.pop(number, None)
                if sent is None:
                    raise EngineError(
                        f"engine {type(self.engine).__name__!r} answered request {number!r}, "
                        "which it was not given or had answered: each number may be reported once"
                    )
                self._keep(sent, completion)
            for attempt in chain.from_iterable(in_flight.values()):
                failure = Failure(Failed.NOT_ANSWERED, "no answer", attempt.key.hex())
                self._handle_failure(attempt, None, failure)
        self.stats.failures = dict(sorted(self.failures.items()))

    def _find_missing(
        self, segments: Iterable[Sequence[Request]], again: bool
    ) -> Iterator[_Attempt]:
        store, stats, handled = self.store, self.stats, self.handled
        earlier = frozenset(handled)
        for segment in segments:
            requests, keys = select_new_requests(segment, self.signature, earlier)
            fresh = {k: r for k, r in zip(keys, requests, strict=True) if k not in handled}
            records = store.records(list(fresh))
            settled = find_settled(store, self.signature, fresh, self.unusable if again else None)
            stats.requests += len(requests)
            for stored in records.values():
                stats.damaged += stored.damaged
                stats.add_cost(stored.usage, stored.cost_usd)
            store.add_sources(list_sources(requests, keys))
            for number in plan_order(requests):
                key = keys[number]
                if key in handled:
                    stats.repeated += 1
                elif key in settled:
                    stats.store_hits += 1
                else:
                    # A killed run may not have come to the second try of an unreadable answer.
                    record = records.get(key)
                    tries = 0 if record is None or record.is_settled else record.tries
                    request = requests[number]
                    yield _Attempt(
                        replace(request, packing=None) if tries else request, key, tries + 1
                    )
                handled.add(key)

    def _send(
        self,
        first: Sequence[_Attempt],
        missing: Iterator[Sequence[_Attempt]],
        in_flight: dict[int, Sequence[_Attempt]],
    ) -> Iterator[Request]:
        attempts: Sequence[_Attempt] | None = first
        for number in count():
            if attempts is None:
                return
            in_flight[number] = attempts
            yield pack_requests([attempt.request for attempt in attempts])
            attempts = self._take_next(missing)

    def _take_next(self, missing: Iterator[Sequence[_Attempt]]) -> Sequence[_Attempt] | None:
        if self.guard is not None and self.guard.is_hopeless():
            return None  # what is under way may still prove the contrary
        if self.should_stop is not None and self.should_stop(self.stats):
            return None
        return [self.retries.popleft()] if self.retries else next(missing, None)

    def _keep(self, attempts: Sequence[_Attempt], completion: Completion) -> None:
        parts = unpack_completion([attempt.request for attempt in attempts], completion)
        answers = list[BaseModel | Failure]()
        # Of a killed run a call is stored or it is not: the same calls are then left to make.
        with self.store.write_together(self.signature) if len(parts) > 1 else nullcontext():
            for attempt, part in zip(attempts, parts, strict=True):
                request, key = attempt.request, attempt.key
                answers.append(parse(request, part, key))
                readable = not isinstance(answers[-1], Failure)
                options: dict[str, Any] = {"readable": readable, "tries": attempt.tries}
                self.store.put(key, request, part, self.signature, **options)
        self.stats.add_call(completion)
        self.stats.seconds = time.perf_counter() - self.started
        if self.progress is not None:
            self.progress(self.stats)
        for attempt, part, answer in zip(attempts, parts, answers, strict=True):
            if self.guard is not None:
                last = isinstance(answer, Failure) and self._is_final(attempt, answer)
                self.guard.add(attempt.request, part, answer, last=last)
            if isinstance(answer, Failure):
                self._handle_failure(attempt, part, answer)
        # Errors of single requests differ in what they say; a dead server repeats itself.
        error = ""
        if isinstance(answers[0], Failure) and answers[0].reason is Failed.ENGINE_ERROR:
            error = "" if completion.text else completion.error or completion.finish_reason
        if error != self.last_error:
            self.errors_in_a_row = 0
        if error:
            self.errors_in_a_row += 1
        self.last_error = error
        if self.errors_in_a_row >= MAX_EQUAL_ERRORS:
            raise EngineError(
                f"engine {type(self.engine).__name__!r} gave {MAX_EQUAL_ERRORS} equal errors in a "
                f"row and no answer, {error[:MAX_ERROR_CHARACTERS]!r}: fix that, the same command "
                "resumes from here"
            )

    def _is_final(self, attempt: _Attempt, failure: Failure) -> bool:
        return failure.reason in FINAL_REASONS or attempt.tries >= MAX_TRIES

    def _handle_failure(
        self, attempt: _Attempt, completion: Completion | None, failure: Failure
    ) -> None:
        if failure.reason != Failed.NEEDS_MODEL and self.logged_failures < LOGGED_FAILURES:
            self.logged_failures += 1
            asker = f"{attempt.request.task}, {self.signature.get('kind')}"
            detail = failure.reason.meaning if self.is_sealed else failure.detail
            logger.info("%s: %s: %s", asker, failure.reason, detail)
        if self._is_final(attempt, failure):
            self.failures[str(failure.reason)] += 1
        else:
            request = build_retry(attempt.request, completion, failure)
            self.retries.append(_Attempt(request, attempt.key, attempt.tries + 1))


@dataclass(frozen=True)
class AskedAnswers(StoredAnswers):
    """Stored answers of an engine, which is asked for missing ones as they are read."""

    engine: Engine | None

    def read(self, requests: Sequence[Request]) -> list[BaseModel | Failure]:
        """Return the answer to each request, in order."""
        if self.engine is None:
            raise EngineError(
                "this stage is a copy in another process than its engine: map it without "
                "`num_proc`, or run it with `echo_hf.run_stage`"
            )
        _Window(self.engine, self.store, FillStats()).ask([requests])
        return super().read(requests)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "engine": None}


def select_new_requests(
    requests: Sequence[Request], signature: Mapping[str, Any], earlier: Collection[bytes]
) -> tuple[list[Request], list[bytes]]:
    """Select the requests whose keys no earlier round has asked, and return their keys too."""
    pairs = zip(requests, compute_request_keys(signature, requests), strict=True)
    new = [(request, key) for request, key in pairs if key not in earlier]
    return [request for request, _ in new], [key for _, key in new]


def list_sources(requests: Sequence[Request], keys: Sequence[bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield each post that requests quote, with the request's key."""
    for request, key in zip(requests, keys, strict=True):
        for url in request.sources:
            yield url, key


def iterate_segments(stage: ModelStage, dataset: Dataset) -> Iterator[list[Request]]:
    """Yield a stage's requests, some thousand rows at a time."""
    for batch in arrow_batches(dataset, SEGMENT_ROWS):
        yield [request for row in stage.requests(batch) for request in row]
