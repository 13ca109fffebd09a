"""An event loop in a thread of its own, which works while the caller's thread waits or reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import TYPE_CHECKING

from echo_hf.engines.base import Completion, Request
from echo_hf.engines.openai.caller import Caller

if TYPE_CHECKING:
    from anyio import Event
    from anyio.abc import TaskGroup, TaskStatus
    from anyio.from_thread import BlockingPortal

THREAD = "echo-hf openai"


@dataclass
class Worker:
    """Requests under way.

    Attributes:
        portal: The way into the loop.
        tasks: The loop's tasks.
        caller: Asks the server.
    """

    portal: BlockingPortal
    tasks: TaskGroup
    caller: Caller
    _under_way: int = 0
    _finished: SimpleQueue[tuple[int, Completion | BaseException]] = field(
        default_factory=SimpleQueue
    )

    def __len__(self) -> int:
        return self._under_way

    def start(self, number: int, request: Request) -> None:
        """Begins a request; it is the caller's task to bound how many are under way."""
        self.portal.call(self._spawn, number, request)
        self._under_way += 1

    def finished(self) -> Iterator[tuple[int, Completion]]:
        """Waits for the next request to end, and yields all that have.

        Yields:
            The number of the request and its completion.

        Raises:
            EngineError: No request could succeed; what was answered before is yielded first.
        """
        error: BaseException | None = None
        first = True
        while first or not self._finished.empty():
            number, result = self._finished.get()
            self._under_way -= 1
            first = False
            if isinstance(result, BaseException):
                error = result
            else:
                yield number, result
        if error is not None:
            raise error

    def _spawn(self, number: int, request: Request) -> None:
        # Without its result, which the portal would wait for.
        self.tasks.start_soon(self._answer, number, request)

    async def _answer(self, number: int, request: Request) -> None:
        try:
            completion = await self.caller.answer(request)
        except BaseException as error:  # whatever happens is reported: somebody waits for it
            self._finished.put((number, error))
            if not isinstance(error, Exception):
                raise
        else:
            self._finished.put((number, completion))


@contextmanager
def working(caller: Callable[[], AbstractAsyncContextManager[Caller]]) -> Iterator[Worker]:
    """Runs a worker; leaving cancels what is under way, closes the client, and joins the thread.

    Args:
        caller: Opens the client, inside the loop.

    Yields:
        The worker.
    """
    from anyio import Event
    from anyio.from_thread import start_blocking_portal

    with start_blocking_portal(name=THREAD) as portal:
        stop = portal.call(Event)
        closed, (tasks, opened) = portal.start_task(_serve, caller, stop)
        try:
            yield Worker(portal, tasks, opened)
        finally:
            portal.call(stop.set)
            closed.result()


async def _serve(
    opened: Callable[[], AbstractAsyncContextManager[Caller]],
    stop: Event,
    *,
    task_status: TaskStatus[tuple[TaskGroup, Caller]],
) -> None:
    from anyio import create_task_group

    async with opened() as caller, create_task_group() as tasks:
        task_status.started((tasks, caller))
        await stop.wait()
        tasks.cancel_scope.cancel()
