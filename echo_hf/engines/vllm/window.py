"""A sliding window of requests in flight, so that the model never waits for the slowest of a batch.

vLLM answers a list of conversations as a whole, when the last one is done, and not at all when one
of them is bad. Here each request is handed over by itself, its failure is its own, and as soon as
one is answered another takes its place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from echo_hf.engines.base import Completion, Request
from echo_hf.engines.vllm.conversation import completion
from echo_hf.engines.vllm.loading import reason
from echo_hf.errors import EngineError

# A few more than are computed at a time: the next ones are ready when a place becomes free.
MORE_THAN_COMPUTED = 1.1

Numbered = tuple[int, Request]
Send = Callable[[Request], str]


def window_size(max_num_seqs: int) -> int:
    """How many requests to keep in flight.

    Args:
        max_num_seqs: Most requests that are computed at a time.

    Returns:
        A tenth more, rounded up.

    Example:
        >>> window_size(16), window_size(256)
        (18, 282)
    """
    return math.ceil(max_num_seqs * MORE_THAN_COMPUTED)


@dataclass
class Window:
    """The requests that vLLM is working on.

    Attributes:
        engine: vLLM's own engine, which computes a step at a time.
        send: Hands a request to it, and returns the identifier it got.
        size: Most requests in flight.
    """

    engine: Any
    send: Send
    size: int
    _in_flight: dict[str, tuple[int, str]] = field(default_factory=dict)

    def stream(self, requests: Iterator[Numbered]) -> Iterator[tuple[int, Completion]]:
        """Answers requests, in the order in which they are done.

        Args:
            requests: Requests with their numbers; taken as places become free.

        Yields:
            Number and completion of each.

        Raises:
            EngineError: vLLM stopped working.
        """
        try:
            yield from self._topped_up(requests)
            # A request that vLLM lost is never reported: no reason to wait for ever.
            while self._in_flight and self.engine.has_unfinished_requests():
                yield from self._step()
                yield from self._topped_up(requests)
        finally:
            self._abort()

    def _topped_up(self, requests: Iterator[Numbered]) -> Iterator[tuple[int, Completion]]:
        while len(self._in_flight) < self.size and (numbered := next(requests, None)):
            number, request = numbered
            failed = self._sent(number, request)
            if failed is not None:
                yield number, failed

    def _sent(self, number: int, request: Request) -> Completion | None:
        try:
            identifier = self.send(request)
        except Exception as error:  # too long, too many pictures, a bad picture, half a character
            if _is_dead(error):
                raise self._stopped(error) from error
            return Completion(None, reason(error), "error")
        # vLLM reports a request by its identifier without the ending that makes it unique.
        self._in_flight[identifier.rpartition("-")[0] or identifier] = number, identifier
        return None

    def _step(self) -> Iterator[tuple[int, Completion]]:
        try:
            outputs = self.engine.step()
        except Exception as error:
            raise self._stopped(error) from error
        for output in outputs:
            if output.finished and output.request_id in self._in_flight:
                number, _ = self._in_flight.pop(output.request_id)
                yield number, completion(output)

    def _abort(self) -> None:
        left = [identifier for _, identifier in self._in_flight.values()]
        self._in_flight.clear()
        if left:
            self.engine.abort_request(left, internal=True)

    def _stopped(self, error: Exception) -> EngineError:
        self._in_flight.clear()  # nobody is left who could abort them
        return EngineError(
            f"vLLM stopped working, {reason(error)}: see what it wrote above; the same command "
            "goes on from here"
        )


def _is_dead(error: Exception) -> bool:
    from vllm.v1.engine.exceptions import EngineDeadError

    return isinstance(error, EngineDeadError)
