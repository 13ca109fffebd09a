"""Batch inference: ask a model what stored answers lack, in one window over all its requests."""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import count
from typing import TYPE_CHECKING, Any

from datasets import Dataset
from pydantic import BaseModel

from echo_hf._infra.text import counted, pace
from echo_hf.engines.base import (
    Completion,
    Engine,
    Message,
    Request,
    Text,
    Usage,
    check_sees_images,
)
from echo_hf.engines.planner import RequestPlan, extended, plan_order
from echo_hf.errors import EngineError
from echo_hf.pipeline.answer_store import MOST_TRIES, Store, request_keys
from echo_hf.pipeline.answers import Failure, StoredAnswers, answers_of, parse
from echo_hf.pipeline.usable_answers import UsableAnswers
from echo_hf.reasons import Failed, Reason
from echo_hf.tables import arrow_batches

if TYPE_CHECKING:
    from echo_hf.pipeline.stage import ModelStage

logger = logging.getLogger(__name__)
LONGEST_SHOWN = 4000
FEW = 5  # failures that the log repeats
SEGMENT = 8192
MOST_ERRORS = 50
LONGEST_ERROR = 300
NOT_AGAIN = frozenset({Failed.REFUSED, Failed.NEEDS_MODEL})
NOT_USABLE = frozenset({Failed.UNREADABLE, Failed.OFF_SCHEMA})
SAID = (
    "That answer cannot be used: {error}. Answer the same question again, whole, in the form that "
    "was described, and say nothing else."
)


def second_request(request: Request, completion: Completion | None, failure: Failure) -> Request:
    """The request to make after one that failed."""
    if failure.reason is Failed.CUT:
        return replace(request, max_tokens=2 * request.max_tokens)
    has_form = request.answer is not None or request.regex is not None
    if failure.reason not in NOT_USABLE or not has_form:
        return request
    said = (completion.text or "").strip()[:LONGEST_SHOWN] if completion else ""
    if not said:  # two turns of the user in a row are refused by some chat templates
        return request
    correction = SAID.format(error=failure.detail.rstrip("."))
    turns = (Message("assistant", (Text(said),)), Message("user", (Text(correction),)))
    return replace(request, messages=(*request.messages, *turns))


@dataclass
class FillStats:
    """What filling took, in this run and, `stage_*`, in all runs of these requests."""

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
        parts = [f"{counted(self.calls, 'call')}{pace(self.calls, self.seconds)}"]
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
        """What two fills took, one after the other."""
        failures = Counter(self.failures) + Counter(other.failures)
        return FillStats(
            **{
                each.name: getattr(self, each.name) + getattr(other, each.name)
                for each in fields(self)
                if each.name not in ("failures", "cost_usd", "stage_cost_usd")
            },
            failures=dict(sorted(failures.items())),
            cost_usd=_sum(self.cost_usd, other.cost_usd),
            stage_cost_usd=_sum(self.stage_cost_usd, other.stage_cost_usd),
        )

    def called(self, completion: Completion) -> None:
        """Adds a call of this run."""
        self.calls += 1
        self.usage = self.usage + completion.usage
        self.cost_usd = _sum(self.cost_usd, completion.cost_usd)
        self.paid(completion.usage, completion.cost_usd)

    def paid(self, usage: Usage, cost_usd: float | None) -> None:
        """Adds what a call of this run or an earlier one took."""
        self.stage_usage = self.stage_usage + usage
        self.stage_cost_usd = _sum(self.stage_cost_usd, cost_usd)


def _sum(one: float | None, other: float | None) -> float | None:
    return one if other is None else (one or 0.0) + other


Progress = Callable[[FillStats], None]
Enough = Callable[[FillStats], bool]
Unusable = Callable[[BaseModel], Reason | None]


def fill(
    stage: ModelStage,
    dataset: Dataset,
    engine: Engine,
    store: Store,
    *,
    again: bool = False,
    keep_going: bool = True,
    whole: Dataset | None = None,
    progress: Progress | None = None,
    enough: Enough | None = None,
) -> FillStats:
    """Asks an engine whatever the stage needs for these rows and the store does not hold.

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
        check_sees_images(engine, f"stage {stage.name!r}")
    if engine.stored:
        # What a stage asks may depend on who answers.
        asking = stage.answered_by(answers_of(engine, store))
        usable = UsableAnswers(asking, dataset if whole is None else whole, store)
        guard = None if keep_going else usable
        window = _Window(engine, store, stats, progress, enough, asking.unusable, guard)
        for _ in range(stage.rounds):
            window.ask(request_segments(asking, dataset), again=again)
        if guard is not None:
            guard.check()
    stats.seconds = time.perf_counter() - started
    return stats


def plan(
    stage: ModelStage, dataset: Dataset, engine: Engine, store: Store, *, again: bool = False
) -> RequestPlan:
    """What `fill` would ask: a pass over the rows that calls no model."""
    price = getattr(engine, "usd_per_million_prompt_tokens", None)
    planned, signature = RequestPlan(usd_per_million_prompt_tokens=price), engine.signature()
    seen: set[bytes] = set()
    for requests in request_segments(stage.answered_by(answers_of(engine, store)), dataset):
        keys = request_keys(signature, requests)
        first = {k: r for r, k in zip(requests, keys, strict=True) if k not in seen}
        seen.update(first)
        new: list[Request] = []
        if engine.stored:
            settled = settled_keys(store, signature, first, stage.unusable if again else None)
            new = [request for key, request in first.items() if key not in settled]
        planned = extended(planned, new, len(first) - len(new), len(requests) - len(first))
    return planned


def settled_keys(
    store: Store,
    signature: Mapping[str, Any],
    requests: Mapping[bytes, Request],
    unusable: Unusable | None = None,
) -> set[bytes]:
    """The keys of requests that need not be asked; given what is unusable, of usable answers."""
    if unusable is None:
        records = store.records(list(requests))
        return {key for key, record in records.items() if record.settled}
    answers = StoredAnswers(store, signature).read(list(requests.values()))
    pairs = zip(requests, answers, strict=True)
    return {key for key, one in pairs if not isinstance(one, Failure) and unusable(one) is None}


@dataclass(frozen=True, slots=True)
class _Asked:
    request: Request
    key: bytes
    tries: int = 1


class _Window:
    """One stream of requests and their second tries; each answer is kept as it comes."""

    def __init__(
        self,
        engine: Engine,
        store: Store,
        stats: FillStats,
        progress: Progress | None = None,
        enough: Enough | None = None,
        unusable: Unusable = lambda _: None,
        guard: UsableAnswers | None = None,
    ) -> None:
        self.engine, self.store, self.stats = engine, store, stats
        self.progress, self.enough = progress, enough
        self.unusable, self.guard = unusable, guard
        self.signature, self.started = engine.signature(), time.perf_counter()
        self.again: deque[_Asked] = deque()
        self.seen: set[bytes] = set()
        self.failures: Counter[str] = Counter()
        self.errors_in_a_row, self.last_error, self.logged = 0, "", 0

    def ask(self, segments: Iterable[Sequence[Request]], *, again: bool = False) -> None:
        """Streams what the store lacks through the engine, until nothing is left.

        What a call before this one streamed is not looked at again.
        """
        wanted = self._missing(segments, again)
        while (first := self._next(wanted)) is not None:
            in_flight: dict[int, _Asked] = {}
            for number, completion in self.engine.stream(self._given(first, wanted, in_flight)):
                asked = in_flight.pop(number, None)
                if asked is None:
                    raise EngineError(
                        f"engine {type(self.engine).__name__!r} answered request {number!r}, "
                        "which it was not given or had answered: each number may be reported once"
                    )
                self._keep(asked, completion)
            for asked in in_flight.values():
                nothing = Failure(Failed.NOT_ANSWERED, "no answer", asked.key.hex())
                self._failed(asked, None, nothing)
        self.stats.failures = dict(sorted(self.failures.items()))

    def _missing(self, segments: Iterable[Sequence[Request]], again: bool) -> Iterator[_Asked]:
        store, stats, seen = self.store, self.stats, self.seen
        earlier = frozenset(seen)
        for segment in segments:
            requests, keys = unseen(segment, self.signature, earlier)
            new = {k: r for k, r in zip(keys, requests, strict=True) if k not in seen}
            records = store.records(list(new))
            known = settled_keys(store, self.signature, new, self.unusable if again else None)
            stats.requests += len(requests)
            for record in records.values():
                stats.damaged += record.damaged
                stats.paid(record.usage, record.cost_usd)
            store.add_sources(source_pairs(requests, keys))
            for number in plan_order(requests):
                key = keys[number]
                if key in seen:
                    stats.repeated += 1
                elif key in known:
                    stats.store_hits += 1
                else:
                    # A killed run may not have come to the second try of an unreadable answer.
                    said = records.get(key)
                    tries = 0 if said is None or said.settled else said.tries
                    yield _Asked(requests[number], key, tries + 1)
                seen.add(key)

    def _given(
        self, first: _Asked, wanted: Iterator[_Asked], in_flight: dict[int, _Asked]
    ) -> Iterator[Request]:
        asked: _Asked | None = first
        for number in count():
            if asked is None:
                return
            in_flight[number] = asked
            yield asked.request
            asked = self._next(wanted)

    def _next(self, wanted: Iterator[_Asked]) -> _Asked | None:
        if self.guard is not None and self.guard.is_hopeless():
            return None  # what is under way may still prove the contrary
        if self.enough is not None and self.enough(self.stats):
            return None
        return self.again.popleft() if self.again else next(wanted, None)

    def _keep(self, asked: _Asked, completion: Completion) -> None:
        answer = parse(asked.request, completion, asked.key)
        readable = not isinstance(answer, Failure)
        self.store.put(
            asked.key,
            asked.request,
            completion,
            self.signature,
            readable=readable,
            tries=asked.tries,
        )
        self.stats.called(completion)
        self.stats.seconds = time.perf_counter() - self.started
        if self.progress is not None:
            self.progress(self.stats)
        if self.guard is not None:
            last = isinstance(answer, Failure) and self._is_final(asked, answer)
            self.guard.add(asked.request, completion, answer, last=last)
        if isinstance(answer, Failure):
            self._failed(asked, completion, answer)
        # Errors of single requests differ in what they say; a dead server repeats itself.
        said = ""
        if isinstance(answer, Failure) and answer.reason is Failed.ENGINE_ERROR:
            said = "" if completion.text else completion.error or completion.finish_reason
        is_same = said and said == self.last_error
        self.errors_in_a_row = self.errors_in_a_row + 1 if is_same else int(bool(said))
        self.last_error = said
        if self.errors_in_a_row >= MOST_ERRORS:
            raise EngineError(
                f"engine {type(self.engine).__name__!r} gave {MOST_ERRORS} equal errors in a row "
                f"and no answer, {said[:LONGEST_ERROR]!r}: fix that, the same command resumes from "
                "here"
            )

    def _is_final(self, asked: _Asked, failure: Failure) -> bool:
        return failure.reason in NOT_AGAIN or asked.tries >= MOST_TRIES

    def _failed(self, asked: _Asked, completion: Completion | None, failure: Failure) -> None:
        if failure.reason != Failed.NEEDS_MODEL and self.logged < FEW:
            self.logged += 1
            who = f"{asked.request.task}, {self.signature.get('kind')}"
            logger.info("%s: %s: %s", who, failure.reason, failure.detail)
        if self._is_final(asked, failure):
            self.failures[str(failure.reason)] += 1
        else:
            request = second_request(asked.request, completion, failure)
            self.again.append(_Asked(request, asked.key, asked.tries + 1))


@dataclass(frozen=True)
class AskedAnswers(StoredAnswers):
    """Stored answers of an engine, which is asked for what the store lacks as they are read."""

    engine: Engine | None

    def read(self, requests: Sequence[Request]) -> list[BaseModel | Failure]:
        """The answer to each request, in order."""
        if self.engine is None:
            raise EngineError(
                "this stage is a copy in another process than its engine: map it without "
                "`num_proc`, or run it with `echo_hf.run_stage`"
            )
        _Window(self.engine, self.store, FillStats()).ask([requests])
        return super().read(requests)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "engine": None}


def unseen(
    requests: Sequence[Request], signature: Mapping[str, Any], earlier: Collection[bytes]
) -> tuple[list[Request], list[bytes]]:
    """The requests whose keys are none of an earlier round, and their keys."""
    pairs = zip(requests, request_keys(signature, requests), strict=True)
    new = [(request, key) for request, key in pairs if key not in earlier]
    return [request for request, _ in new], [key for _, key in new]


def source_pairs(requests: Sequence[Request], keys: Sequence[bytes]) -> Iterator[tuple[str, bytes]]:
    """The posts that go into requests, each with the key of the request."""
    for request, key in zip(requests, keys, strict=True):
        for url in request.sources:
            yield url, key


def request_segments(stage: ModelStage, dataset: Dataset) -> Iterator[list[Request]]:
    """What a stage asks for these rows, some thousand rows at a time."""
    for batch in arrow_batches(dataset, SEGMENT):
        yield [request for row in stage.requests(batch) for request in row]
