"""One worker process a device: items go to whichever is free, and outlive a process that is lost.

A service runs in each worker. It is given runs of numbered items, and yields each item's result, or
an `EchoError` in its place. A run begins with the first item that comes and ends when no further
one waits: what computes a window of items at a time goes on for as long as there are more.
Where a worker is, and how it is spoken to, is its own affair: here it is a process of this machine
(`ProcessWorker`), in `ray_pool` one of another.
"""

from __future__ import annotations

import atexit
import logging
import multiprocessing
import os
import pickle
import signal
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from itertools import chain
from multiprocessing.connection import Pipe
from pathlib import Path
from queue import Empty, SimpleQueue
from shutil import rmtree
from threading import Lock, Semaphore, Thread
from typing import Any, Generic, Literal, TypeVar

from echo_hf.errors import EchoError

VISIBLE = "CUDA_VISIBLE_DEVICES"
LOOK_EVERY_S, GRACE_S = 0.5, 30.0
# Of a process at work on an item, and of the place of one, which no item is to blame for.
MOST_LOSSES, MOST_MOVES = 2, 8
logger = logging.getLogger(__name__)

Item = TypeVar("Item")
Result = TypeVar("Result")
Runs = Iterator[Iterator[tuple[int, Item]]]
Service = Callable[[Runs[Item]], Iterator[tuple[int, Result | EchoError]]]
Choice = Literal["all"] | int | Sequence[int]
Batch = list[tuple[int, bytes]] | None
Said = list[tuple[int | None, Any]]
Inbox = SimpleQueue[tuple[int, bytes] | None]


def visible_gpus() -> list[str]:
    """What `CUDA_VISIBLE_DEVICES` calls each GPU that this process may use, in CUDA's order."""
    if find_spec("torch"):
        import torch

        count = torch.cuda.device_count()
    else:
        count = len(list(Path("/dev").glob("nvidia[0-9]*")))
    given = os.environ.get(VISIBLE)
    names = map(str, range(count)) if given is None else map(str.strip, given.split(","))
    return [name for name in names if name not in ("", "-1")][:count]


def process_count(devices: Choice) -> int:
    """How many processes that will be; one for `all` of no GPUs, so that it can be planned."""
    if isinstance(devices, int):
        return devices
    return len(visible_gpus() if devices == "all" else devices) or 1


def shared_out(devices: Choice, gpus: Sequence[str], each: int = 1) -> list[str | None]:
    """What each process is to see in `CUDA_VISIBLE_DEVICES`; null for one on the processor."""
    numbers: Sequence[int] = range(len(gpus)) if devices == "all" else ()
    if isinstance(devices, int):
        numbers = range(devices)
    elif devices != "all":
        numbers = devices
    is_number_of_processes = isinstance(devices, int) and not gpus
    is_there = is_number_of_processes or (numbers and max(numbers) < len(gpus))
    if not is_there or len(numbers) % each:
        shown = devices if isinstance(devices, int | str) else list(devices)
        raise ValueError(
            f"{shown!r}, and this machine shows {len(gpus) or 'no'} GPUs: expected all, at most as "
            f"many, or numbers of theirs from 0 on, and a multiple of the {each} that a process "
            "takes; without GPUs, a number of processes such as 2"
        )
    if not gpus:
        return [None] * (len(numbers) // each)
    seen = [gpus[one] for one in numbers]
    return [",".join(seen[at : at + each]) for at in range(0, len(seen), each)]


class LostItemError(Exception):
    """Worker processes ended at work on an item, the last one on it alone."""

    def __init__(self, losses: int = MOST_LOSSES) -> None:
        super().__init__(f"{losses} worker processes ended while they were at it")


@dataclass(eq=False, slots=True)
class _Job:
    data: bytes
    future: Future[Any] = field(default_factory=Future)
    losses: int = 0
    moves: int = 0


class Worker(ABC):
    """One worker of a pool, wherever it is."""

    is_ready = True

    def __init__(self, name: str) -> None:
        self.name, self.has_answered = name, False
        self.jobs = dict[int, _Job]()
        self.thread = Thread()

    def start(self) -> None:  # noqa: B027 - a process takes them before it is there
        """Waits until it takes items; an `EOFError` where it never will."""

    @abstractmethod
    def send(self, batch: Batch) -> None:
        """Hands over numbered items, and null after the last; an `OSError` where it is gone."""

    @abstractmethod
    def heard(self) -> Said:
        """What it says next, and soon, so perhaps nothing; an `EOFError` once it is gone."""

    @abstractmethod
    def ended(self) -> str:
        """Makes sure that it has ended, and says how it did."""

    @abstractmethod
    def kill(self) -> None:
        """Ends it at once, and what it has started."""

    def successor(self) -> Worker | None:
        """What takes its place after an end that neither it nor its items are to blame for."""
        return None

    def notice(self, remark: str) -> None:
        """Says what became of it."""
        logger.warning("%s", remark)


# Makes a worker, given its name and a pickled service.
Place = Callable[[str, bytes], Worker]


class ProcessWorker(Worker):
    """A process of this machine, which may be so many results `ahead` of those that were `taken`.

    It sees what is `visible` in `CUDA_VISIBLE_DEVICES`, and removes a folder `aside` when it is
    left alone.
    """

    log = "above"

    def __init__(
        self,
        visible: str | None,
        name: str,
        made: bytes,
        ahead: int | None = None,
        aside: Path | None = None,
    ) -> None:
        super().__init__(name)
        self.connection, theirs = Pipe()
        context = multiprocessing.get_context("spawn")
        self.process = context.Process(target=_work, args=(theirs, visible, made, ahead, aside))
        self.process.start()
        theirs.close()

    def send(self, batch: Batch) -> None:
        self.connection.send(batch)

    def taken(self, results: int) -> None:
        """Lets it send so many further results."""
        self.connection.send(results)

    def heard(self, most: int = 1) -> Said:
        """What it says next, if it says something soon."""
        if not self.connection.poll(LOOK_EVERY_S):
            # One that it has started may hold the connection open.
            if self.process.is_alive() or self.connection.poll():
                return []
            raise EOFError
        said = [self.connection.recv()]
        with suppress(EOFError, OSError):  # what was said before is not lost
            while len(said) < most and self.connection.poll():
                said.append(self.connection.recv())
        return said

    def ended(self) -> str:
        self.process.join(GRACE_S)
        self.kill()
        self.process.join()
        code = self.process.exitcode or 0
        signalled = f"was killed by signal {-code}"
        return signalled if code < 0 else f"ended with status {code}, see {self.log}"

    def kill(self) -> None:
        """Kills the process, and what it has started, which may outlive it."""
        with suppress(ProcessLookupError, PermissionError):  # it has no session yet, or no more
            os.killpg(self.process.pid or 0, signal.SIGKILL)
        self.process.kill()


def processes(devices: Sequence[str | None]) -> list[Place]:
    """A process of this machine for each device."""
    return [partial(ProcessWorker, visible) for visible in devices]


class WorkerPool(Generic[Item, Result]):
    """Workers with at most `depth` items at a time; they end with this process.

    An error before a worker's first answer is everybody's: the others would meet it too.
    """

    def __init__(
        self,
        name: str,
        service: Service[Item, Result],
        places: Sequence[Place],
        error: type[EchoError],
        depth: int = 1,
    ) -> None:
        self.size, self.depth = len(places), depth
        self._name, self._error, self._numbers = name, error, 0
        self._waiting, self._suspects = deque[list[_Job]](), deque[_Job]()
        self._lethal, self._workers = set[bytes](), list[Worker]()
        self._over: EchoError | None = None
        self._lock, made = Lock(), pickle.dumps(service)
        atexit.register(self.close)  # multiprocessing, imported before, then waits for them
        with self._lock:
            for number, place in enumerate(places, 1):
                self._hire(place(f"worker process {number} of {self.size}", made))

    @property
    def alive(self) -> int:
        """How many workers take items now."""
        return sum(worker.is_ready for worker in self._workers)

    def submit(self, *items: Item) -> list[Future[Result]]:
        """Hands over items that go to one worker, one after the other."""
        jobs = [_Job(pickle.dumps(item)) for item in items]
        with self._lock:
            if self._over is not None:
                raise self._over
            lethal = [job for job in jobs if job.data in self._lethal]
            self._waiting.append([job for job in jobs if job not in lethal])
            self._dispatch()
        _fail(lethal, LostItemError())
        return [job.future for job in jobs]

    def close(self) -> None:
        """Ends the workers: those without an item by themselves, the others at once."""
        atexit.unregister(self.close)
        with self._lock:
            ended = self._error(f"{self._name}: its worker processes have been ended")
            self._over, workers = self._over or ended, list(self._workers)
        for worker in workers:
            if worker.jobs or not worker.is_ready:
                worker.kill()
            else:
                with suppress(OSError):
                    worker.send(None)
        for worker in workers:
            worker.thread.join(GRACE_S)
            if worker.thread.is_alive():
                worker.kill()
                worker.thread.join()

    def _hire(self, worker: Worker) -> None:
        worker.thread = Thread(target=self._hear, args=(worker,), daemon=True)
        self._workers.append(worker)
        worker.thread.start()

    def _dispatch(self) -> None:
        """Gives what waits to the workers with the fewest items; a suspect is alone with one."""
        while self._over is None and (self._suspects or self._waiting):
            free = [one for one in self._workers if one.is_ready and self._has_room(one)]
            if not free:
                return
            worker = min(free, key=lambda one: len(one.jobs))
            batch = []
            for job in [self._suspects.popleft()] if self._suspects else self._waiting.popleft():
                if job.future.running() or job.future.set_running_or_notify_cancel():
                    self._numbers += 1
                    worker.jobs[self._numbers] = job
                    batch.append((self._numbers, job.data))
            with suppress(OSError):  # it has just ended, which is heard of
                worker.send(batch)

    def _has_room(self, worker: Worker) -> bool:
        if not worker.jobs:
            return True
        if self._suspects or any(job.losses for job in worker.jobs.values()):
            return False
        return len(worker.jobs) + len(self._waiting[0]) <= self.depth

    def _hear(self, worker: Worker) -> None:
        """Takes what a worker says until it is gone."""
        error: EchoError | None = None
        try:
            worker.start()
            with self._lock:
                worker.is_ready = True
                self._dispatch()
            while error is None:
                for number, said in worker.heard():
                    if number is None:
                        is_ours = type(said) is not EchoError
                        error = said if is_ours else self._error(f"{self._name}: {said}")
                        break
                    with self._lock:
                        job = worker.jobs.pop(number)
                        worker.has_answered = True
                        self._dispatch()
                    if isinstance(said, EchoError):
                        job.future.set_exception(said)
                    else:
                        job.future.set_result(said)
        except (EOFError, OSError):
            pass
        finally:
            how = worker.ended()
            self._lost(worker, error, f"stopped: {error}" if error else how)

    def _lost(self, worker: Worker, error: EchoError | None, how: str) -> None:
        said = f"{self._name}: {worker.name} {how}"
        with self._lock:
            self._workers.remove(worker)
            jobs, lost = list(worker.jobs.values()), list[_Job]()
            if self._over is None:
                is_at_work = worker.has_answered or any(job.losses for job in jobs)
                successor = None if error else worker.successor()
                for job in jobs:
                    job.losses += successor is None
                    job.moves += successor is not None
                lost = [o for o in jobs if o.losses >= MOST_LOSSES or o.moves >= MOST_MOVES]
                self._lethal.update(job.data for job in lost)
                if successor is not None:
                    self._hire(successor)
                elif error and not is_at_work:
                    self._over = error
                elif not self._workers:
                    last = f"{said}, and no other is left: the same command goes on from here"
                    self._over = self._error(last)
            jobs = [job for job in jobs if job not in lost]
            self._suspects.extend(job for job in jobs if job.losses)
            self._waiting.extendleft([job] for job in reversed(jobs) if not job.losses)
            self._dispatch()
            over, unfinished, left = self._over, list[_Job](), self.alive
            if over is not None:
                unfinished = [*self._suspects, *chain.from_iterable(self._waiting)]
                self._suspects.clear()
                self._waiting.clear()
        if over is None:
            then = f"{left} go on with" if left else "another is waited for with"
            worker.notice(f"{said}; {then} what it was at")
        for job in lost:
            _fail([job], LostItemError(max(job.losses, job.moves)))
        if over is not None:
            _fail(unfinished, over)


def _fail(jobs: Sequence[_Job], error: Exception) -> None:
    for job in jobs:
        with suppress(InvalidStateError):  # nobody waits for it any more
            job.future.set_exception(error)


def _work(
    connection: Any, visible: str | None, made: bytes, ahead: int | None, aside: Path | None
) -> None:
    """What a worker does; nothing heavy is imported before it knows its device."""
    os.setsid()  # Ctrl-C is for the run, which ends its workers itself
    if visible is not None:
        os.environ[VISIBLE] = visible
    inbox, room = Inbox(), None if ahead is None else Semaphore(ahead)
    Thread(target=_listen, args=(connection, inbox, room, aside), daemon=True).start()
    try:
        for numbered in pickle.loads(made)(_runs(inbox)):  # noqa: S301 - of the run itself
            if room is not None:
                room.acquire()
            connection.send(numbered)
    except EchoError as error:
        connection.send((None, error))
    except Exception as error:
        said = f"{type(error).__name__}: {' '.join(str(error).split())}"
        connection.send((None, EchoError(said)))
        raise


def _listen(connection: Any, inbox: Inbox, room: Semaphore | None, aside: Path | None) -> None:
    """Takes items as they come, so that the run never waits for a worker at work."""
    try:
        while (batch := connection.recv()) is not None:
            if room is not None and isinstance(batch, int):
                room.release(batch)
            else:
                for one in batch:
                    inbox.put(one)
    except (EOFError, OSError):
        if aside is not None:
            rmtree(aside, ignore_errors=True)
        os.killpg(0, signal.SIGKILL)  # the run is gone, and with it goes what was started here
    inbox.put(None)


def _runs(inbox: Inbox) -> Runs[Any]:
    ended = False

    def run(one: tuple[int, bytes] | None) -> Iterator[tuple[int, Any]]:
        nonlocal ended
        with suppress(Empty):
            while one is not None:
                yield one[0], pickle.loads(one[1])  # noqa: S301 - of the run itself
                one = inbox.get_nowait()
            ended = True

    while not ended and (first := inbox.get()) is not None:
        yield run(first)
