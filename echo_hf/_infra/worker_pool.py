"""A pool of worker processes, one a device: items outlive a process that is lost.

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

VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"
POLL_SECONDS, GRACE_SECONDS = 0.5, 30.0
# Of a process at work on an item, and of the place of one, which no item is to blame for.
MAX_WORKER_CRASHES, MAX_REASSIGNMENTS = 2, 8
logger = logging.getLogger(__name__)

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
ItemStreams = Iterator[Iterator[tuple[int, ItemT]]]
ItemService = Callable[[ItemStreams[ItemT]], Iterator[tuple[int, ResultT | EchoError]]]
DeviceChoice = Literal["all"] | int | Sequence[int]
ItemBatch = list[tuple[int, bytes]] | None
WorkerMessage = list[tuple[int | None, Any]]
Inbox = SimpleQueue[tuple[int, bytes] | None]


def visible_gpus() -> list[str]:
    """Return the GPUs that this process may use, as `CUDA_VISIBLE_DEVICES` names them."""
    if find_spec("torch"):
        import torch

        count = torch.cuda.device_count()
    else:
        count = len(list(Path("/dev").glob("nvidia[0-9]*")))
    visible = os.environ.get(VISIBLE_DEVICES)
    names = map(str, range(count)) if visible is None else map(str.strip, visible.split(","))
    return [name for name in names if name not in ("", "-1")][:count]


def count_processes(devices: DeviceChoice) -> int:
    """Count the processes for devices; one for `all` of no GPUs, so that it can be planned."""
    if isinstance(devices, int):
        return devices
    return len(visible_gpus() if devices == "all" else devices) or 1


def assign_gpus(devices: DeviceChoice, gpus: Sequence[str], gpus_each: int = 1) -> list[str | None]:
    """Return each process's `CUDA_VISIBLE_DEVICES`; null for one on the processor."""
    numbers: Sequence[int] = range(len(gpus)) if devices == "all" else ()
    if isinstance(devices, int):
        numbers = range(devices)
    elif devices != "all":
        numbers = devices
    is_number_of_processes = isinstance(devices, int) and not gpus
    is_available = is_number_of_processes or (numbers and max(numbers) < len(gpus))
    if not is_available or len(numbers) % gpus_each:
        devices_shown = devices if isinstance(devices, int | str) else list(devices)
        raise ValueError(
            f"{devices_shown!r}, and this machine shows {len(gpus) or 'no'} GPUs: expected all, at "
            f"most as many, or numbers of theirs from 0 on, and a multiple of the {gpus_each} that "
            "a process takes; without GPUs, a number of processes such as 2"
        )
    if not gpus:
        return [None] * (len(numbers) // gpus_each)
    assigned = [gpus[number] for number in numbers]
    return [
        ",".join(assigned[start : start + gpus_each])
        for start in range(0, len(assigned), gpus_each)
    ]


class LostItemError(Exception):
    """Worker processes ended while working on an item, the last one on it alone."""

    def __init__(self, losses: int = MAX_WORKER_CRASHES) -> None:
        super().__init__(f"{losses} worker processes ended while they were at it")


@dataclass(eq=False, slots=True)
class _Job:
    data: bytes
    future: Future[Any] = field(default_factory=Future)
    losses: int = 0
    moves: int = 0


class Worker(ABC):
    """One worker of a pool, on this or another machine."""

    is_ready = True

    def __init__(self, name: str) -> None:
        self.name, self.has_answered = name, False
        self.jobs = dict[int, _Job]()
        self.thread = Thread()

    def start(self) -> None:  # noqa: B027 - a process takes them before it is there
        """Wait until it takes items; `EOFError` where it never will."""

    @abstractmethod
    def send(self, batch: ItemBatch) -> None:
        """Send numbered items, and null after the last; `OSError` where it is gone."""

    @abstractmethod
    def read_messages(self) -> WorkerMessage:
        """Return its next messages, soon and perhaps none; `EOFError` once it is gone."""

    @abstractmethod
    def wait_for_end(self) -> str:
        """Make sure that it has ended, and describe how."""

    @abstractmethod
    def kill(self) -> None:
        """Kill it and its children at once."""

    def successor(self) -> Worker | None:
        """Make its replacement, where neither it nor its items caused its end."""
        return None

    def notice(self, remark: str) -> None:
        """Report what became of it."""
        logger.warning("%s", remark)


# Makes a worker, given its name and a pickled service.
WorkerFactory = Callable[[str, bytes], Worker]


class ProcessWorker(Worker):
    """A worker process of this machine, at most `ahead` results before the received ones.

    It sees what is `visible` in `CUDA_VISIBLE_DEVICES`, and removes the folder `scratch` when it is
    left alone.
    """

    log = "above"

    def __init__(
        self,
        visible: str | None,
        name: str,
        pickled: bytes,
        ahead: int | None = None,
        scratch: Path | None = None,
    ) -> None:
        super().__init__(name)
        self.connection, child_end = Pipe()
        context = multiprocessing.get_context("spawn")
        self.process = context.Process(
            target=_run_worker, args=(child_end, visible, pickled, ahead, scratch)
        )
        self.process.start()
        child_end.close()

    def send(self, batch: ItemBatch) -> None:
        self.connection.send(batch)

    def allow_results(self, results: int) -> None:
        """Let it send so many further results."""
        self.connection.send(results)

    def read_messages(self, limit: int = 1) -> WorkerMessage:
        """Return its next messages, if any come soon."""
        if not self.connection.poll(POLL_SECONDS):
            # One that it has started may hold the connection open.
            if self.process.is_alive() or self.connection.poll():
                return []
            raise EOFError
        messages = [self.connection.recv()]
        with suppress(EOFError, OSError):  # what was said before is not lost
            while len(messages) < limit and self.connection.poll():
                messages.append(self.connection.recv())
        return messages

    def wait_for_end(self) -> str:
        self.process.join(GRACE_SECONDS)
        self.kill()
        self.process.join()
        code = self.process.exitcode or 0
        signal_text = f"was killed by signal {-code}"
        return signal_text if code < 0 else f"ended with status {code}, see {self.log}"

    def kill(self) -> None:
        """Kill the process and its children, which may outlive it."""
        with suppress(ProcessLookupError, PermissionError):  # it has no session yet, or no more
            os.killpg(self.process.pid or 0, signal.SIGKILL)
        self.process.kill()


def make_processes(devices: Sequence[str | None]) -> list[WorkerFactory]:
    """Return a factory of a local process for each device."""
    return [partial(ProcessWorker, visible) for visible in devices]


class WorkerPool(Generic[ItemT, ResultT]):
    """Workers with at most `depth` items at a time each; they end with this process.

    An error before a worker's first answer is everybody's: the others would meet it too.
    """

    def __init__(
        self,
        name: str,
        service: ItemService[ItemT, ResultT],
        factories: Sequence[WorkerFactory],
        error: type[EchoError],
        depth: int = 1,
    ) -> None:
        self.size, self.depth = len(factories), depth
        self._name, self._error, self._numbers = name, error, 0
        self._waiting, self._suspects = deque[list[_Job]](), deque[_Job]()
        self._lethal, self._workers = set[bytes](), list[Worker]()
        self._pool_error: EchoError | None = None
        self._lock, pickled = Lock(), pickle.dumps(service)
        atexit.register(self.close)  # multiprocessing, imported before, then waits for them
        with self._lock:
            for number, factory in enumerate(factories, 1):
                self._start_worker(factory(f"worker process {number} of {self.size}", pickled))

    @property
    def alive(self) -> int:
        """Number of workers that take items now."""
        return sum(worker.is_ready for worker in self._workers)

    def submit(self, *items: ItemT) -> list[Future[ResultT]]:
        """Submit items that go to one worker, one after the other."""
        jobs = [_Job(pickle.dumps(item)) for item in items]
        with self._lock:
            if self._pool_error is not None:
                raise self._pool_error
            lethal = [job for job in jobs if job.data in self._lethal]
            self._waiting.append([job for job in jobs if job not in lethal])
            self._dispatch()
        _fail_jobs(lethal, LostItemError())
        return [job.future for job in jobs]

    def close(self) -> None:
        """End the workers: idle ones by themselves, the others at once."""
        atexit.unregister(self.close)
        with self._lock:
            closed = self._error(f"{self._name}: its worker processes have been ended")
            self._pool_error, workers = self._pool_error or closed, list(self._workers)
        for worker in workers:
            if worker.jobs or not worker.is_ready:
                worker.kill()
            else:
                with suppress(OSError):
                    worker.send(None)
        for worker in workers:
            worker.thread.join(GRACE_SECONDS)
            if worker.thread.is_alive():
                worker.kill()
                worker.thread.join()

    def _start_worker(self, worker: Worker) -> None:
        worker.thread = Thread(target=self._listen_to, args=(worker,), daemon=True)
        self._workers.append(worker)
        worker.thread.start()

    def _dispatch(self) -> None:
        """Send waiting items to the least busy workers; suspects run alone."""
        while self._pool_error is None and (self._suspects or self._waiting):
            free_workers = [
                worker for worker in self._workers if worker.is_ready and self._has_room(worker)
            ]
            if not free_workers:
                return
            worker = min(free_workers, key=lambda worker: len(worker.jobs))
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

    def _listen_to(self, worker: Worker) -> None:
        """Receive a worker's messages until it is gone."""
        error: EchoError | None = None
        try:
            worker.start()
            with self._lock:
                worker.is_ready = True
                self._dispatch()
            while error is None:
                for number, outcome in worker.read_messages():
                    if number is None:
                        is_known = type(outcome) is not EchoError
                        error = outcome if is_known else self._error(f"{self._name}: {outcome}")
                        break
                    with self._lock:
                        job = worker.jobs.pop(number)
                        worker.has_answered = True
                        self._dispatch()
                    if isinstance(outcome, EchoError):
                        job.future.set_exception(outcome)
                    else:
                        job.future.set_result(outcome)
        except (EOFError, OSError):
            pass
        finally:
            ending = worker.wait_for_end()
            self._handle_loss(worker, error, f"stopped: {error}" if error else ending)

    def _handle_loss(self, worker: Worker, error: EchoError | None, ending: str) -> None:
        message = f"{self._name}: {worker.name} {ending}"
        with self._lock:
            self._workers.remove(worker)
            jobs, lost_jobs = list(worker.jobs.values()), list[_Job]()
            if self._pool_error is None:
                is_at_work = worker.has_answered or any(job.losses for job in jobs)
                successor = None if error else worker.successor()
                for job in jobs:
                    job.losses += successor is None
                    job.moves += successor is not None
                lost_jobs = [
                    job
                    for job in jobs
                    if job.losses >= MAX_WORKER_CRASHES or job.moves >= MAX_REASSIGNMENTS
                ]
                self._lethal.update(job.data for job in lost_jobs)
                if successor is not None:
                    self._start_worker(successor)
                elif error and not is_at_work:
                    self._pool_error = error
                elif not self._workers:
                    ending_message = (
                        f"{message}, and no other is left: the same command goes on from here"
                    )
                    self._pool_error = self._error(ending_message)
            jobs = [job for job in jobs if job not in lost_jobs]
            self._suspects.extend(job for job in jobs if job.losses)
            self._waiting.extendleft([job] for job in reversed(jobs) if not job.losses)
            self._dispatch()
            pool_error, unfinished, workers_left = self._pool_error, list[_Job](), self.alive
            if pool_error is not None:
                unfinished = [*self._suspects, *chain.from_iterable(self._waiting)]
                self._suspects.clear()
                self._waiting.clear()
        if pool_error is None:
            next_step = (
                f"{workers_left} go on with" if workers_left else "another is waited for with"
            )
            worker.notice(f"{message}; {next_step} what it was at")
        for job in lost_jobs:
            _fail_jobs([job], LostItemError(max(job.losses, job.moves)))
        if pool_error is not None:
            _fail_jobs(unfinished, pool_error)


def _fail_jobs(jobs: Sequence[_Job], error: Exception) -> None:
    for job in jobs:
        with suppress(InvalidStateError):  # nobody waits for it any more
            job.future.set_exception(error)


def _run_worker(
    connection: Any, visible: str | None, pickled: bytes, ahead: int | None, scratch: Path | None
) -> None:
    """Run a worker process; nothing heavy is imported before its device is set."""
    os.setsid()  # Ctrl-C is for the run, which ends its workers itself
    if visible is not None:
        os.environ[VISIBLE_DEVICES] = visible
    inbox, room = Inbox(), None if ahead is None else Semaphore(ahead)
    Thread(target=_listen, args=(connection, inbox, room, scratch), daemon=True).start()
    try:
        for numbered in pickle.loads(pickled)(_iterate_streams(inbox)):  # noqa: S301 - of the run itself
            if room is not None:
                room.acquire()
            connection.send(numbered)
    except EchoError as error:
        connection.send((None, error))
    except Exception as error:
        message = f"{type(error).__name__}: {' '.join(str(error).split())}"
        connection.send((None, EchoError(message)))
        raise


def _listen(connection: Any, inbox: Inbox, room: Semaphore | None, scratch: Path | None) -> None:
    """Receive items as they come, so that the run never waits for a busy worker."""
    try:
        while (batch := connection.recv()) is not None:
            if room is not None and isinstance(batch, int):
                room.release(batch)
            else:
                for numbered in batch:
                    inbox.put(numbered)
    except (EOFError, OSError):
        if scratch is not None:
            rmtree(scratch, ignore_errors=True)
        os.killpg(0, signal.SIGKILL)  # the run is gone, and with it goes what was started here
    inbox.put(None)


def _iterate_streams(inbox: Inbox) -> ItemStreams[Any]:
    is_ended = False

    def iterate_items(numbered: tuple[int, bytes] | None) -> Iterator[tuple[int, Any]]:
        nonlocal is_ended
        with suppress(Empty):
            while numbered is not None:
                yield numbered[0], pickle.loads(numbered[1])  # noqa: S301 - of the run itself
                numbered = inbox.get_nowait()
            is_ended = True

    while not is_ended and (first := inbox.get()) is not None:
        yield iterate_items(first)
