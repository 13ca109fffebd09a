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
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock
from typing import IO, Annotated, Any, Literal

from pydantic import Field

from echo_hf.config.checks import Section, Statement, Whole, Words
from echo_hf.config.systems import SystemConfig
from echo_hf.errors import GenerationError
from echo_hf.systems.base import Task, TransientError
from echo_hf.systems.external_results import ExternalResult, read_told

LONGEST_LINE = 1024 * 1024
AT_A_TIME = 65_536
KEPT_LOG = 8192
SHOWN_LINES = 3
LOOK_EVERY_S = 0.1
GRACE_S = 2.0


class WorkerError(Exception):
    """A worker gave no answer, and is no longer there."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class WorkerProcess:
    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        hide: Callable[[bytes], bytes],
    ) -> None:
        self._hide = hide
        self._process = subprocess.Popen(  # noqa: S603 - no shell, and the config's own command
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self.logged = 0
        self._unsent, self._unread, self._log = b"", b"", b""
        self._pipes = selectors.DefaultSelector()
        for pipe in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(pipe.fileno(), False)
        self._pipes.register(self._stdout, selectors.EVENT_READ)
        self._pipes.register(self._stderr, selectors.EVENT_READ)

    def ask(self, request: bytes, is_answer: Callable[[bytes], bool], timeout_s: float) -> bytes:
        self._unsent = request
        try:
            return self._answer(is_answer, time.monotonic() + timeout_s, timeout_s)
        except WorkerError as error:
            self.kill()
            self.end()
            raise WorkerError(error.code, f"{error}{self._said()}") from None
        except BaseException:
            self.kill()
            self.end()
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
                self.logged += 1
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

    @property
    def _stdin(self) -> IO[bytes]:
        return _pipe(self._process.stdin)

    @property
    def _stdout(self) -> IO[bytes]:
        return _pipe(self._process.stdout)

    @property
    def _stderr(self) -> IO[bytes]:
        return _pipe(self._process.stderr)


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:  # only where none was asked for
        raise ValueError("no pipe")
    return pipe


GREETING = "echo_hf_worker"
ANSWER = "id"
OUTPUT = "output.png"
VERSION = 1


class Hello(Section):
    """The first line of a worker, when it is ready.

    Attributes:
        echo_hf_worker: The version of the protocol.
        name: What it calls itself.
        version: Its version, or that of what it runs.
        determinism: What the same seed gives, in a sentence.
        most_inputs: Most input images of a task.
    """

    echo_hf_worker: Literal[1]
    name: Words
    version: Words | None = None
    determinism: Statement | None = None
    most_inputs: Annotated[Whole, Field(ge=0)] | None = None


class WorkerAnswer(ExternalResult):
    """What became of a request.

    Attributes:
        id: That of the request.
        output: Where the image lies; null for where it was asked for.
    """

    id: str
    output: str | None = None


def request_line(
    task: Task, config: SystemConfig, parameters: Mapping[str, Any], place: Path
) -> bytes:
    """One request, in pure ASCII so that no character of a prompt ends the line."""
    request = {
        "id": task.sample_id,
        "prompt": task.prompt,
        "inputs": [str(one.file) for one in task.inputs],
        "output": str(place / OUTPUT),
        "seed": config.seed,
        "size": config.model_dump(mode="json")["size"],
        "parameters": dict(parameters),
    }
    return json.dumps(request, allow_nan=False).encode("ascii") + b"\n"


def has_key(line: bytes, key: str) -> bool:
    return key in _object(line)


def answers(line: bytes, request_id: str) -> bool:
    return _object(line).get(ANSWER) == request_id


def _object(line: bytes) -> Mapping[str, Any]:
    if not line.lstrip().startswith(b"{"):
        return {}
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


@dataclass(frozen=True, slots=True)
class Launch:
    name: str
    command: Sequence[str]
    folder: Path
    environment: Mapping[str, str]
    start_timeout_s: float
    most_restarts: int
    hide: Callable[[bytes], bytes]


class Worker:
    def __init__(self) -> None:
        self.process: WorkerProcess | None = None
        self.task = ""
        self.hello = Hello(echo_hf_worker=1, name="worker")


class Crew:
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
        """Waits for a worker and sees that its process runs."""
        worker = self._idle.get()
        worker.task = task
        try:
            if worker.process is None:
                self._start(worker)
            yield worker
        finally:
            self._idle.put(worker)

    def ask(self, worker: Worker, request: bytes, timeout_s: float) -> bytes:
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
        """Ends a worker whose answers do not fit the requests."""
        if worker.process is not None:
            worker.process.kill()
            worker.process.end()
            worker.process = None
        return self._loss(worker, WorkerError("wrong_id", why))

    def close(self) -> None:
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
            line = process.ask(b"", partial(has_key, key=GREETING), self._launch.start_timeout_s)
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
        return TransientError(f"the worker is gone: {error}", error.code)
