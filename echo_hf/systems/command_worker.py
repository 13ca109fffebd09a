"""The workers of a system: processes that are spoken to line by line, and started again."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock
from typing import IO, Annotated, Any, Literal, cast

from pydantic import Field

from echo_hf.config.checks import Section, Statement, Whole, Words
from echo_hf.errors import GenerationError
from echo_hf.systems.base import TransientError
from echo_hf.systems.external_results import read_told

LONGEST_LINE = 1024 * 1024
AT_A_TIME = 65_536
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
    """A process that is asked line by line; all that it has started ends with it.

    Its pipes are read only while it is asked: until then, one that writes much waits.
    """

    def __init__(self, launch: Launch) -> None:
        self._hide = launch.hide
        self._process = subprocess.Popen(  # noqa: S603 - no shell, and the config's own command
            launch.command,
            cwd=launch.folder,
            env=launch.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        pipes = (self._process.stdin, self._process.stdout, self._process.stderr)
        self._stdin, self._stdout, self._stderr = cast("tuple[IO[bytes], ...]", pipes)
        self._unsent, self._unread, self._log = b"", b"", b""
        self._pipes = selectors.DefaultSelector()
        for pipe in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(pipe.fileno(), False)
        self._pipes.register(self._stdout, selectors.EVENT_READ)
        self._pipes.register(self._stderr, selectors.EVENT_READ)

    def ask(self, request: bytes, is_answer: Callable[[bytes], bool], timeout_s: float) -> bytes:
        """Sends a line, and waits for one that answers it; without one, the worker is ended."""
        self._unsent = request
        try:
            return self._answer(is_answer, time.monotonic() + timeout_s, timeout_s)
        except BaseException as error:
            self.end()
            if isinstance(error, WorkerError):
                raise WorkerError(error.code, f"{error}{self._said()}") from None
            raise

    def kill(self) -> None:
        """Kills the worker and what it started; it may be called from another thread."""
        if self._stderr.closed:  # it has ended, and its number may be another's by now
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def end(self, grace_s: float = 0.0) -> None:
        """Closes its input, waits for it to end by itself, and kills what is left."""
        if self._stderr.closed:
            return
        self._pipes.close()
        with suppress(OSError):
            self._stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(grace_s)
        self.kill()
        self._process.wait()
        self._stdout.close()
        self._stderr.close()

    def _answer(self, is_answer: Callable[[bytes], bool], until: float, timeout_s: float) -> bytes:
        while True:
            while (line := self._next_line()) is not None:
                if is_answer(line):
                    return self._hide(line)
                self._note(line + b"\n")
            if len(self._unread) > LONGEST_LINE:
                raise WorkerError(
                    "line_too_long", f"it wrote {len(self._unread)} bytes without ending the line"
                )
            left = until - time.monotonic()
            if left <= 0:
                raise WorkerError("timeout", f"it gave no answer in {timeout_s:g} s")
            # Asked before the pipes are: what it wrote last is then still read.
            gone = self._process.poll() is not None
            if not self._moved(min(left, LOOK_EVERY_S)) and (
                gone or self._stdout not in self._pipes.get_map()
            ):
                raise WorkerError("worker_ended", f"it ended{self._how()}")

    def _next_line(self) -> bytes | None:
        line, end, rest = self._unread.partition(b"\n")
        if not end:
            return None
        self._unread = rest
        return line

    def _moved(self, wait_s: float) -> bool:
        """Whether anything was read or written."""
        self._offer_input()
        moved = False
        for key, _ in self._pipes.select(wait_s):
            moved = (self._write() if key.fileobj is self._stdin else self._read(key)) or moved
        return moved

    def _offer_input(self) -> None:
        offered = self._stdin in self._pipes.get_map()
        if self._unsent and not offered:
            self._pipes.register(self._stdin, selectors.EVENT_WRITE)
        elif offered and not self._unsent:
            self._pipes.unregister(self._stdin)

    def _write(self) -> bool:
        try:
            sent = os.write(self._stdin.fileno(), self._unsent[:AT_A_TIME])
        except BrokenPipeError:  # that it ended is found out soon, with what it said
            self._unsent = b""
            return False
        self._unsent = self._unsent[sent:]
        return sent > 0

    def _read(self, key: selectors.SelectorKey) -> bool:
        data = os.read(key.fd, AT_A_TIME)
        if not data:
            self._pipes.unregister(key.fileobj)
        elif key.fileobj is self._stdout:
            self._unread += data
        else:
            self._note(data)
        return bool(data)

    def _note(self, data: bytes) -> None:
        self._log = (self._log + data)[-KEPT_LOG:]

    def _how(self) -> str:
        # A process that ends closes its output a little before its status is known.
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE_S)
        status = self._process.poll()
        if status is None:
            return " its output"
        return f" with status {status}" if status >= 0 else f" by signal {-status}"

    def _said(self) -> str:
        text = self._hide(self._log + self._unread).decode("utf-8", "replace").replace("\r", "\n")
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


def object_in(line: bytes) -> Mapping[str, Any]:
    """The JSON object that a line holds; an empty one where it holds none."""
    if not line.lstrip().startswith(b"{"):
        return {}
    try:
        found: Mapping[str, Any] = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found


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
        if object_in(line).get("id") != worker.task:
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
            return process.ask(request, lambda line: key in object_in(line), timeout_s)
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
