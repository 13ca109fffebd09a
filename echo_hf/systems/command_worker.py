"""The workers of a system: processes that are spoken to line by line, and started again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import IO, Annotated, Any, Literal, cast

from pydantic import Field

from echo_hf.config.checks import Section, Statement, Whole, Words
from echo_hf.errors import GenerationError
from echo_hf.systems.base import TransientError
from echo_hf.systems.external_results import read_told

LONGEST_LINE = 1024 * 1024
KEPT_LOG = 8192
SHOWN_LINES = 3
LOOK_EVERY_S = 0.1
GRACE_S = 2.0


@dataclass(frozen=True, slots=True)
class Launch:
    """How a worker is started, and what it is called in messages."""

    name: str
    command: Sequence[str]
    folder: Path
    environment: Mapping[str, str]
    start_timeout_s: float
    most_restarts: int
    hide: Callable[[bytes], bytes]


class WorkerError(Exception):
    """A worker gave no answer, and is no longer there."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class WorkerProcess:
    """A process that is asked line by line; all that it has started ends with it."""

    def __init__(self, launch: Launch) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - no shell, and the config's own command
            launch.command,
            cwd=launch.folder,
            env=launch.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._hide, self._log, self._has_ended = launch.hide, b"", False
        self._stdin = cast("IO[bytes]", self._process.stdin)
        # What it writes, and whether that is to its log; an empty line is the end of the pipe.
        self._written: SimpleQueue[tuple[bytes, bool]] = SimpleQueue()
        self._readers = [
            Thread(target=self._read, args=(pipe, pipe is self._process.stderr), daemon=True)
            for pipe in (self._process.stdout, self._process.stderr)
        ]
        for reader in self._readers:
            reader.start()

    def ask(self, request: bytes, is_answer: Callable[[bytes], bool], timeout_s: float) -> bytes:
        """Sends a line, and waits for one that answers it; without one, the worker is ended."""
        # In a thread of its own: whoever does not read must not keep anybody waiting.
        Thread(target=self._send, args=(request,), daemon=True).start()
        try:
            return self._hide(self._answer(is_answer, time.monotonic() + timeout_s, timeout_s))
        except BaseException as error:
            self.end()
            if isinstance(error, WorkerError):
                raise WorkerError(error.code, f"{error}{self._last_words()}") from None
            raise

    def kill(self) -> None:
        """Kills the worker and what it started; it may be called from another thread."""
        if not self._has_ended:  # its number may be another's by then
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def end(self, grace_s: float = 0.0) -> None:
        """Lets it end by itself for a while, and kills what is left."""
        if grace_s:
            with suppress(OSError):
                self._stdin.close()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(grace_s)
        self.kill()
        self._process.wait()
        self._has_ended = True
        with suppress(OSError):
            self._stdin.close()
        for reader in self._readers:
            reader.join(GRACE_S)

    def _answer(self, is_answer: Callable[[bytes], bool], until: float, timeout_s: float) -> bytes:
        while (left := until - time.monotonic()) > 0:
            try:
                line, is_log = self._written.get(timeout=min(left, LOOK_EVERY_S))
            except Empty:
                if self._process.poll() is not None:
                    self.kill()  # what it started, and holds its output open
                continue
            if is_log:
                self._note(line)
            elif not line:
                # A process that ends closes its output a little before its status is known.
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(GRACE_S)
                status = self._process.poll()
                how = " its output" if status is None else f" with status {status}"
                how = f" by signal {-status}" if status and status < 0 else how
                raise WorkerError("worker_ended", f"it ended{how}")
            elif len(line) > LONGEST_LINE:
                said = f"it wrote {len(line)} bytes without ending the line"
                raise WorkerError("line_too_long", said)
            elif line.endswith(b"\n") and is_answer(line):
                return line[:-1]
            else:
                self._note(line)
        raise WorkerError("timeout", f"it gave no answer in {timeout_s:g} s")

    def _send(self, request: bytes) -> None:
        with suppress(OSError, ValueError):  # that it ended is found out soon, with what it said
            self._stdin.write(request)
            self._stdin.flush()

    def _read(self, pipe: IO[bytes], is_log: bool) -> None:
        with pipe:
            while line := pipe.readline(LONGEST_LINE + 1):
                self._written.put((line, is_log))
        self._written.put((b"", is_log))

    def _note(self, data: bytes) -> None:
        self._log = (self._log + data)[-KEPT_LOG:]

    def _last_words(self) -> str:
        with suppress(Empty):
            while True:
                self._note(self._written.get_nowait()[0])
        text = self._hide(self._log).decode("utf-8", "replace").replace("\r", "\n")
        lines = ["".join(filter(str.isprintable, line)).strip() for line in text.split("\n")]
        last = [line[:200] for line in lines if line][-SHOWN_LINES:]
        return f"; its last words: {' | '.join(last)}" if last else ", without a word"


VERSION = 1


class Hello(Section):
    """The first line of a worker, when it is ready."""

    echo_hf_worker: Literal[1]
    name: Words
    version: Words | None = None
    determinism: Statement | None = None
    most_inputs: Annotated[Whole, Field(ge=0)] | None = None


def value_in(line: bytes, key: str) -> Any:
    """A value of the JSON object that a line holds; null where it holds none."""
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        return json.loads(line).get(key)
    except (ValueError, RecursionError):
        return None


class Worker:
    """A place for a process, which is started for the first task and after each loss."""

    def __init__(self) -> None:
        self.process: WorkerProcess | None = None
        self.task = ""
        self.hello = Hello(echo_hf_worker=1, name="worker")


class WorkerPool:
    """The workers of a system; each is on one task at a time."""

    def __init__(self, launch: Launch, size: int) -> None:
        self._launch = launch
        self._every = tuple(Worker() for _ in range(size))
        self._idle: SimpleQueue[Worker] = SimpleQueue()
        for worker in self._every:
            self._idle.put(worker)
        self._changing, self._closed, self._greeted = Lock(), False, False
        self._lost: set[str] = set()

    @contextmanager
    def borrowed(self, task: str) -> Iterator[Worker]:
        """Waits for a worker, and sees that its process runs."""
        worker = self._idle.get()
        worker.task = task
        try:
            if worker.process is None:
                self._start(worker)
            yield worker
        finally:
            self._idle.put(worker)

    def ask(self, worker: Worker, request: bytes, timeout_s: float) -> bytes:
        """Gives a worker its task; one that answers to another task is ended."""
        line = self._asked(worker, request, "id", timeout_s)
        with self._changing:
            self._lost.clear()
        if value_in(line, "id") != worker.task:
            if worker.process is not None:
                worker.process.end()
                worker.process = None
            said = f"it answered {line[:80]!r} to another request"
            raise self._loss(worker, WorkerError("wrong_id", said))
        return line

    def close(self) -> None:
        """Ends all workers; those at a task are killed."""
        with self._changing:
            self._closed = True
        idle = list[Worker]()
        with suppress(Empty):
            while True:
                idle.append(self._idle.get_nowait())
        for worker in self._every:
            if worker not in idle and worker.process is not None:
                worker.process.kill()
        while len(idle) < len(self._every):
            idle.append(self._idle.get())
        for worker in idle:
            if worker.process is not None:
                worker.process.end(GRACE_S)
                worker.process = None
            self._idle.put(worker)

    def _start(self, worker: Worker) -> None:
        launch = self._launch
        with self._changing:
            if self._closed:
                raise GenerationError(f"{launch.name}: its workers have been ended: enter it again")
            try:
                worker.process = WorkerProcess(launch)
            except OSError as error:
                raise GenerationError(
                    f"{launch.name}: cannot start {launch.command[0]!r} in {str(launch.folder)!r} "
                    f"({error.strerror}): set parameters.command"
                ) from None
        line = self._asked(worker, b"", "echo_hf_worker", launch.start_timeout_s)
        try:
            worker.hello = read_told(line, Hello, f"{launch.name}: the worker's first line")
        except ValueError as error:
            worker.process.end()
            worker.process = None
            raise GenerationError(str(error)) from None
        self._greeted = True

    def _asked(self, worker: Worker, request: bytes, key: str, timeout_s: float) -> bytes:
        process = cast("WorkerProcess", worker.process)
        try:
            return process.ask(request, lambda line: value_in(line, key) is not None, timeout_s)
        except WorkerError as error:
            worker.process = None
            if self._greeted:  # what could be started once may be started again
                raise self._loss(worker, error) from None
            raise GenerationError(
                f"{self._launch.name}: the worker could not be started: {error}"
            ) from None
        except BaseException:
            worker.process = None
            raise

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
        return TransientError(f"the worker is gone: {error}", error.code)
