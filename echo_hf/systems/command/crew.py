"""The workers of a system: started when they are needed, and again when they have ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock

from echo_hf.errors import GenerationError
from echo_hf.systems.base import Passing
from echo_hf.systems.command.process import GRACE_S, WorkerError, WorkerProcess
from echo_hf.systems.command.protocol import ANSWER, GREETING, Hello, has_key
from echo_hf.systems.told import read_told


@dataclass(frozen=True, slots=True)
class Launch:
    """How a worker is started.

    Attributes:
        name: What messages call it.
        command: The program and its arguments.
        folder: Where it runs.
        environment: All its variables.
        start_timeout_s: Longest wait for its first line.
        most_restarts: In how many tasks in a row workers may end without an answer.
        hide: Takes what is secret out of what a worker wrote.
    """

    name: str
    command: Sequence[str]
    folder: Path
    environment: Mapping[str, str]
    start_timeout_s: float
    most_restarts: int
    hide: Callable[[bytes], bytes]


class Worker:
    """A place for one process at a time.

    Attributes:
        process: The process; null before its start and after its end.
        task: Sample of the task that it has, or had last.
        hello: What the process said of itself.
    """

    def __init__(self) -> None:
        self.process: WorkerProcess | None = None
        self.task = ""
        self.hello = Hello(echo_hf_worker=1, name="worker")


class Crew:
    """Several workers, of which each has one task at a time.

    Args:
        launch: How each is started.
        size: How many there are.
    """

    def __init__(self, launch: Launch, size: int) -> None:
        self._launch = launch
        self._every = tuple(Worker() for _ in range(size))
        self._idle: SimpleQueue[Worker] = SimpleQueue()
        for worker in self._every:
            self._idle.put(worker)
        self._changing = Lock()
        self._closed = self._greeted = False
        self._lost: set[str] = set()

    @contextmanager
    def borrowed(self, task: str) -> Iterator[Worker]:
        """Waits for a worker and sees that its process runs.

        Args:
            task: Sample of the task that it is for.

        Yields:
            The worker, for this thread alone.

        Raises:
            Passing: It could not be started this time.
            GenerationError: None can be started, or the crew is closed.
        """
        worker = self._idle.get()
        worker.task = task
        try:
            if worker.process is None:
                self._start(worker)
            yield worker
        finally:
            self._idle.put(worker)

    def ask(self, worker: Worker, request: bytes, timeout_s: float) -> bytes:
        """Gives a worker a request.

        Args:
            worker: A borrowed one.
            request: The line.
            timeout_s: Longest wait for the answer.

        Returns:
            The line of the answer.

        Raises:
            Passing: The worker ended, or gave no answer in time; it is started again when needed.
            GenerationError: That has happened in too many tasks in a row.
        """
        process = worker.process
        if process is None:
            raise GenerationError(f"{self._launch.name}: no worker runs: borrow one first")
        try:
            line = process.ask(request, lambda line: has_key(line, ANSWER), timeout_s)
        except WorkerError as error:
            worker.process = None
            raise self._loss(worker, error) from None
        except BaseException:
            worker.process = None
            raise
        with self._changing:
            self._lost.clear()
        return line

    def dismiss(self, worker: Worker, why: str) -> Exception:
        """Ends a worker whose answers do not fit the requests.

        Args:
            worker: A borrowed one.
            why: What it did.

        Returns:
            What to raise.
        """
        if worker.process is not None:
            worker.process.kill()
            worker.process.end()
            worker.process = None
        return self._loss(worker, WorkerError("wrong_id", why))

    def close(self) -> None:
        """Ends all workers, those that are at a task as well; none is started any more."""
        with self._changing:
            self._closed = True
        idle = list(self._taken())
        for worker in self._every:
            process = worker.process
            if worker not in idle and process is not None:
                process.kill()
        while len(idle) < len(self._every):
            idle.append(self._idle.get())
        for worker in idle:
            if worker.process is not None:
                worker.process.end(GRACE_S)
                worker.process = None
            self._idle.put(worker)

    def _taken(self) -> Iterator[Worker]:
        with suppress(Empty):
            while True:
                yield self._idle.get_nowait()

    def _start(self, worker: Worker) -> None:
        launch = self._launch
        with self._changing:
            if self._closed:
                raise GenerationError(f"{launch.name}: its workers have been ended: enter it again")
            try:
                worker.process = WorkerProcess(
                    launch.command, launch.folder, launch.environment, launch.hide
                )
            except OSError as error:
                raise GenerationError(
                    f"{launch.name}: cannot start {launch.command[0]!r} in {str(launch.folder)!r} "
                    f"({error.strerror}): set parameters.command"
                ) from None
        try:
            worker.hello = self._greeting(worker, worker.process)
        except BaseException:
            worker.process = None
            raise
        self._greeted = True

    def _greeting(self, worker: Worker, process: WorkerProcess) -> Hello:
        try:
            line = process.ask(b"", _is_greeting, self._launch.start_timeout_s)
        except WorkerError as error:
            if self._greeted:  # what could be started once may be started again
                raise self._loss(worker, error) from None
            raise GenerationError(
                f"{self._launch.name}: the worker could not be started: {error}"
            ) from None
        try:
            return read_told(line, Hello, f"{self._launch.name}: the worker's first line")
        except ValueError as error:
            process.kill()
            process.end()
            raise GenerationError(str(error)) from None

    def _loss(self, worker: Worker, error: WorkerError) -> Exception:
        # A task that kills its workers does so at every attempt, and says nothing about the others.
        with self._changing:
            self._lost.add(worker.task)
            lost = len(self._lost)
        if lost > self._launch.most_restarts:
            return GenerationError(
                f"{self._launch.name}: workers ended in {lost} tasks without an answer between, "
                f"the last one so: {error}"
            )
        return Passing(f"the worker is gone: {error}", error.code)


def _is_greeting(line: bytes) -> bool:
    return has_key(line, GREETING)
