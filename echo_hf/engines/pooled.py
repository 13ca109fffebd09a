"""An engine asked through workers: each makes one like it, and is given a part of the requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from itertools import count, islice
from queue import SimpleQueue
from typing import Any

from echo_hf._infra.worker_pool import LostItemError, Place, Runs, WorkerPool
from echo_hf.engines.base import Answers, Completion, Engine, Request, StreamingEngine
from echo_hf.engines.schema import portable_answer
from echo_hf.errors import EngineError

# A window is filled in so many parts, of which each goes to one worker.
CHUNKS = 8
# How many requests an engine takes at a time that does not say so.
WINDOW = 64


def portable(request: Request) -> Request:
    answer = request.answer and portable_answer(request.answer)
    return replace(request, answer=answer, inputs={}, sources=(), accepts=None)


def _answering(
    make: Callable[[], Engine], signature: Mapping[str, Any], runs: Runs[Request]
) -> Iterator[tuple[int, Completion]]:
    """What a worker answers, in a window that goes on while requests wait."""
    with make() as engine:
        if (own := engine.signature()) != signature:  # its answers would be kept as another's
            differing = sorted(
                key for key in {*own, *signature} if own.get(key) != signature.get(key)
            )
            raise EngineError(
                f"a worker has another engine than the run, which differ in {differing}: install "
                "the same packages and models wherever workers run"
            )
        for run in runs:
            numbers = list[int]()
            for place, completion in engine.stream(_noted(run, numbers)):
                yield numbers[place], completion


def _noted(run: Iterator[tuple[int, Request]], numbers: list[int]) -> Iterator[Request]:
    for number, request in run:
        numbers.append(number)
        yield request


class PooledEngine(StreamingEngine):
    """Answers as an engine does that is never loaded here.

    Args:
        engine: The engine; its signature and prices are those of this one.
        make: Makes one like it, in the process of a worker.
        places: Where the workers are, which start with the first request.
    """

    def __init__(
        self, engine: Engine, make: Callable[[], Engine], places: Callable[[], Sequence[Place]]
    ) -> None:
        super().__init__()
        self._engine, self._make, self._places = engine, make, places
        self._pool: WorkerPool[Request, Completion] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def signature(self) -> Mapping[str, Any]:
        return self._engine.signature()

    @property
    def alive(self) -> int:
        return self._pool.alive if self._pool else 0

    def _free(self) -> None:
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _answers(self, requests: Iterator[Request]) -> Answers:
        window = getattr(self._engine, "window", WINDOW)
        size, numbers = max(1, window // CHUNKS), count()
        in_flight, done = dict[Future[Completion], int](), SimpleQueue[Future[Completion]]()
        try:
            while True:
                while self._pool is None or len(in_flight) < self._pool.size * self._pool.depth:
                    if not (chunk := list(islice(requests, size))):
                        break
                    # Two chunks wait beside a full window, so that none runs dry.
                    self._pool = self._pool or self._started(window + 2 * size)
                    for future in self._pool.submit(*map(portable, chunk)):
                        in_flight[future] = next(numbers)
                        future.add_done_callback(done.put)
                if not in_flight:
                    return
                answered = done.get()
                try:
                    completion = answered.result()
                except LostItemError as error:
                    completion = Completion(None, f"{type(error).__name__}: {error}", "error")
                yield in_flight.pop(answered), completion
        finally:
            for future in in_flight:
                future.cancel()

    def _started(self, depth: int) -> WorkerPool[Request, Completion]:
        signature = self._engine.signature()
        service = partial(_answering, self._make, signature)
        place = f"engine {signature.get('kind', type(self._engine).__name__)!r}"
        return WorkerPool(place, service, self._places(), EngineError, depth)
