"""Fill the store: ask a model everything a stage will want to read, in one window over all rows.

Rows are taken in segments, ordered by the planner inside each, and fed to the engine without a
break between segments, so that it never drains and memory stays bounded. Each answer is durable
before the next is looked at: a killed run asks nothing twice.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from datasets import Dataset
from pydantic import BaseModel

from echo_hf.answers import Failure, StoredAnswers, parse
from echo_hf.engines.base import Completion, Engine, Request, Usage
from echo_hf.engines.planner import Plan, extended, plan_order
from echo_hf.errors import EngineError
from echo_hf.reasons import Failed
from echo_hf.request_key import request_keys
from echo_hf.stage import ModelStage
from echo_hf.store import Store

SEGMENT = 8192
NOT_AGAIN = frozenset({Failed.REFUSED, Failed.NEEDS_MODEL})


@dataclass
class FillStats:
    """What filling took.

    Attributes:
        requests: Calls that the rows need.
        store_hits: Those already answered.
        calls: Calls made, second tries included.
        failures: Calls that gave no usable answer in the end, by reason.
        usage: Tokens of the calls made.
        cost_usd: Price of the calls made, null when the engine names none.
        seconds: Wall-clock time.
    """

    requests: int = 0
    store_hits: int = 0
    calls: int = 0
    failures: dict[str, int] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = None
    seconds: float = 0.0


Progress = Callable[[FillStats], None]


def fill(
    stage: ModelStage,
    dataset: Dataset,
    engine: Engine,
    store: Store,
    *,
    again: bool = False,
    progress: Progress | None = None,
) -> FillStats:
    """Asks an engine whatever the stage needs for these rows and the store does not hold.

    A call that fails, is cut, or cannot be read is made once more; a cut one with twice the room.

    Args:
        stage: The stage.
        dataset: Its input rows.
        engine: Who is asked; one whose answers are not kept is asked nothing here.
        store: Where the answers go.
        again: Ask also where the stored answer cannot be read.
        progress: Called after each answer with the stats so far.

    Returns:
        What was asked and what it cost.
    """
    stats, started = FillStats(), time.perf_counter()
    if engine.stored:
        window = _Window(engine, store, stats, progress or _unwatched, started)
        failed = window.ask(_missing(stage, dataset, window, again))
        second = [_with_room(request, key, reason) for request, key, reason in failed]
        retried = [tried for tried in second if tried is not None]
        final = window.ask(iter(retried)) if retried else []
        unrepeated = [reason for _, _, reason in failed if reason in NOT_AGAIN]
        ended = Counter(str(reason) for reason in [*unrepeated, *(one[2] for one in final)])
        stats.failures = dict(sorted(ended.items()))
    stats.seconds = time.perf_counter() - started
    return stats


def plan(stage: ModelStage, dataset: Dataset, engine: Engine, store: Store) -> Plan:
    """What `fill` would ask: a pass over the rows that calls no model.

    Args:
        stage: The stage.
        dataset: Its input rows.
        engine: Who would be asked.
        store: Where answers are looked up.

    Returns:
        Numbers of calls, pictures and, estimated, tokens.
    """
    planned, signature = Plan(), engine.signature()
    seen: set[bytes] = set()
    for requests in _segments(stage, dataset):
        keys = request_keys(signature, requests)
        known = store.answered(keys) if engine.stored else set(keys)
        new = {k: r for r, k in zip(requests, keys, strict=True) if k not in known | seen}
        seen.update(new)
        planned = extended(planned, new.values(), len(requests) - len(new))
    return planned


def _unwatched(stats: FillStats) -> None:
    del stats


Asked = tuple[Request, bytes]
Unanswered = tuple[Request, bytes, Failed]


@dataclass
class _Window:
    engine: Engine
    store: Store
    stats: FillStats
    progress: Progress
    started: float

    def ask(self, wanted: Iterator[Asked]) -> list[Unanswered]:
        """Streams requests through the engine; returns those without a usable answer."""
        in_flight: dict[int, Asked] = {}
        failed: list[Unanswered] = []
        signature = self.engine.signature()
        first = next(wanted, None)
        if first is None:
            return []
        for number, completion in self.engine.stream(_numbered(first, wanted, in_flight)):
            request, key = self._reported(number, in_flight)
            self.store.put(key, request, completion, signature)
            self._count(completion)
            answer = parse(request, completion, key)
            if isinstance(answer, Failure):
                failed.append((request, key, answer.reason))
        unreported = [(*asked, Failed.NOT_ANSWERED) for asked in in_flight.values()]
        return failed + unreported

    def _reported(self, number: int, in_flight: dict[int, Asked]) -> Asked:
        asked = in_flight.pop(number, None)
        if asked is None:
            raise EngineError(
                f"engine {type(self.engine).__name__!r} answered request {number!r}, which it was "
                "not given or had answered: each number may be reported once"
            )
        return asked

    def _count(self, completion: Completion) -> None:
        self.stats.calls += 1
        self.stats.usage = self.stats.usage + completion.usage
        if completion.cost_usd is not None:
            self.stats.cost_usd = (self.stats.cost_usd or 0.0) + completion.cost_usd
        self.stats.seconds = time.perf_counter() - self.started
        self.progress(self.stats)


def _numbered(
    first: Asked, rest: Iterator[Asked], in_flight: dict[int, Asked]
) -> Iterator[Request]:
    for number, asked in enumerate(_chain(first, rest)):
        in_flight[number] = asked
        yield asked[0]


def _chain(first: Asked, rest: Iterator[Asked]) -> Iterator[Asked]:
    yield first
    yield from rest


def _missing(stage: ModelStage, dataset: Dataset, window: _Window, again: bool) -> Iterator[Asked]:
    signature = window.engine.signature()
    answers = StoredAnswers(window.store, signature)
    asked: set[bytes] = set()
    for requests in _segments(stage, dataset):
        keys = request_keys(signature, requests)
        known = _readable(answers, requests, keys) if again else window.store.answered(keys)
        window.stats.requests += len(requests)
        for number in plan_order(requests):
            if keys[number] in known or keys[number] in asked:
                window.stats.store_hits += 1
                continue
            asked.add(keys[number])
            yield requests[number], keys[number]


def _readable(
    answers: StoredAnswers, requests: Sequence[Request], keys: Sequence[bytes]
) -> set[bytes]:
    given: list[BaseModel | Failure] = answers.read(requests)
    return {key for key, one in zip(keys, given, strict=True) if not isinstance(one, Failure)}


def _segments(stage: ModelStage, dataset: Dataset) -> Iterator[list[Request]]:
    rows = dataset.with_format("arrow")
    for start in range(0, len(rows), SEGMENT):
        batch = rows[start : start + SEGMENT]
        yield [request for row in stage.requests(batch) for request in row]


def _with_room(request: Request, key: bytes, reason: Failed) -> Asked | None:
    if reason in NOT_AGAIN:
        return None
    if reason is Failed.CUT:
        return replace(request, max_tokens=2 * request.max_tokens), key
    return request, key
