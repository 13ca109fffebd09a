"""An engine that hands its requests to workers, each with an equal engine of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from itertools import count, islice
from queue import SimpleQueue
from typing import Any

from echo_hf._infra.worker_pool import ItemStreams, LostItemError, WorkerFactory, WorkerPool
from echo_hf.engines.base import Completion, CompletionStream, Engine, Request, StreamingEngine
from echo_hf.engines.schema import make_portable_answer
from echo_hf.errors import EngineError

# A window is filled in so many parts, of which each goes to one worker.
CHUNKS_PER_WINDOW = 8
# How many requests an engine takes at a time that does not say so.
DEFAULT_WINDOW = 64


def make_portable(request: Request) -> Request:
    answer = request.answer and make_portable_answer(request.answer)
    return replace(request, answer=answer, inputs={}, sources=(), accepts=None, packing=None)


def _serve_worker(
    make: Callable[[], Engine], signature: Mapping[str, Any], streams: ItemStreams[Request]
) -> Iterator[tuple[int, Completion]]:
    """Answer the requests of a worker, in a window that goes on while requests wait."""
    with make() as engine:
        if (own := engine.signature()) != signature:  # its answers would be kept as another's
            differing = sorted(
                key for key in {*own, *signature} if own.get(key) != signature.get(key)
            )
            raise EngineError(
                f"a worker has another engine than the run, which differ in {differing}: install "
                "the same packages and models wherever workers run"
            )
        for stream in streams:
            numbers = list[int]()
            for position, completion in engine.stream(_note_numbers(stream, numbers)):
                yield numbers[position], completion


def _note_numbers(stream: Iterator[tuple[int, Request]], numbers: list[int]) -> Iterator[Request]:
    for number, request in stream:
        numbers.append(number)
        yield request


class PooledEngine(StreamingEngine):
    """Answers through workers, without loading the model in this process.

    Args:
        engine: The engine; its signature and prices are those of this one.
        make: Makes one like it, in the process of a worker.
        workers: Returns the factories of the workers, which start with the first request.
    """

    def __init__(
        self,
        engine: Engine,
        make: Callable[[], Engine],
        workers: Callable[[], Sequence[WorkerFactory]],
    ) -> None:
        super().__init__()
        self._engine, self._make, self._workers = engine, make, workers
        self._pool: WorkerPool[Request, Completion] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def signature(self) -> Mapping[str, Any]:
        return self._engine.signature()

    @property
    def alive(self) -> int:
        return self._pool.alive if self._pool else 0

    def _release(self) -> None:
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    def _iterate_completions(self, requests: Iterator[Request]) -> CompletionStream:
        window = getattr(self._engine, "window", DEFAULT_WINDOW)
        size, numbers = max(1, window // CHUNKS_PER_WINDOW), count()
        in_flight, done = dict[Future[Completion], int](), SimpleQueue[Future[Completion]]()
        try:
            while True:
                while self._pool is None or len(in_flight) < self._pool.size * self._pool.depth:
                    if not (chunk := list(islice(requests, size))):
                        break
                    # Two chunks wait beside a full window, so that none runs dry.
                    self._pool = self._pool or self._start_pool(window + 2 * size)
                    for future in self._pool.submit(*map(make_portable, chunk)):
                        in_flight[future] = next(numbers)
                        future.add_done_callback(done.put)
                if not in_flight:
                    return
                finished = done.get()
                try:
                    completion = finished.result()
                except LostItemError as error:
                    completion = Completion(None, f"{type(error).__name__}: {error}", "error")
                yield in_flight.pop(finished), completion
        finally:
            for future in in_flight:
                future.cancel()

    def _start_pool(self, depth: int) -> WorkerPool[Request, Completion]:
        signature = self._engine.signature()
        service = partial(_serve_worker, self._make, signature)
        place = f"engine {signature.get('kind', type(self._engine).__name__)!r}"
        return WorkerPool(place, service, self._workers(), EngineError, depth)
