"""Work on many things at a time, in an event loop of a thread of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import AbstractAsyncContextManager
from itertools import islice
from queue import SimpleQueue
from typing import TypeVar

from anyio import TASK_STATUS_IGNORED, create_task_group, sleep_forever
from anyio.abc import TaskGroup, TaskStatus
from anyio.from_thread import start_blocking_portal

Item = TypeVar("Item")
Done = TypeVar("Done")
Work = Callable[[Item], Awaitable[Done]]


def finished(
    items: Iterable[Item],
    opened: Callable[[], AbstractAsyncContextManager[Work[Item, Done]]],
    most: int,
    thread: str,
) -> Generator[Done, None, None]:
    """Yields what becomes of items, in any order; an error comes after what was done before it.

    Args:
        items: Taken only when there is room for them.
        opened: Holds what all work shares, such as a client, open while there is work.
        most: Items under way at a time. Closing the generator cancels those, and joins the thread.
        thread: Its name.
    """
    ended: SimpleQueue[Done | _Error] = SimpleQueue()

    async def end(work: Work[Item, Done], item: Item) -> None:
        try:
            ended.put(await work(item))
        except BaseException as error:  # whatever happens is reported: somebody waits for it
            ended.put(_Error(error))
            if not isinstance(error, Exception):
                raise

    async def serve(
        *, task_status: TaskStatus[tuple[TaskGroup, Work[Item, Done]]] = TASK_STATUS_IGNORED
    ) -> None:
        async with opened() as work, create_task_group() as tasks:
            task_status.started((tasks, work))
            await sleep_forever()

    def start(item: Item) -> None:
        tasks.start_soon(end, work, item)  # without its result, which the portal would wait for

    with start_blocking_portal(name=thread) as portal:
        closed, (tasks, work) = portal.start_task(serve)
        try:
            waiting, under_way = iter(items), 0
            while True:
                for item in islice(waiting, most - under_way):
                    portal.call(start, item)
                    under_way += 1
                if not under_way:
                    return
                ready = [ended.get()]
                while not ended.empty():
                    ready.append(ended.get())
                under_way -= len(ready)
                yield from (one for one in ready if not isinstance(one, _Error))
                for one in ready:
                    if isinstance(one, _Error):
                        raise one.error
        finally:
            portal.call(tasks.cancel_scope.cancel)
            closed.result()


class _Error:
    def __init__(self, error: BaseException) -> None:
        self.error = error
