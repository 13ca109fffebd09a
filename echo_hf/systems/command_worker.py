"""The workers of a system: processes that are spoken to line by line, and started again."""

from __future__ import annotations

import json
import math
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
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
AT_A_TIME, KEPT_LOG, SHOWN_LINES = 65_536, 8192, 3
LOOK_EVERY_S, GRACE_S = 0.1, 2.0
VERSION = 1


class Hello(Section):
    """The first line of a worker, when it is ready."""

    echo_hf_worker: Literal[1] = 1
    name: Words
    version: Words | None = None
    determinism: Statement | None = None
    most_inputs: Annotated[Whole, Field(ge=0)] | None = None


class WorkerError(Exception):
    """A worker gave no answer, and is no longer there."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class WorkerProcess:
    """A process that is asked line by line; all that it has started ends with it."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        hide: Callable[[bytes], bytes],
    ) -> None:
        self.hello, self.has_ended = Hello(name="worker"), False
        self._hide, self._log, self._unsent = hide, b"", b""
        # An answer, null where there will be none, or why there is none.
        self._answers: SimpleQueue[bytes | WorkerError | None] = SimpleQueue()
        self._wanted = "echo_hf_worker"  # the key of an answer
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
        pipes = (self._process.stdin, self._process.stdout, self._process.stderr)
        self._stdin, self._stdout, self._stderr = cast("tuple[IO[bytes], ...]", pipes)
        os.set_blocking(self._stdin.fileno(), False)
        self._read_until, self._reader = math.inf, Thread(target=self._read, daemon=True)
        self._reader.start()

    def ask(self, request: bytes | None, timeout_s: float) -> bytes:
        """Sends a line, null for the first answer, and waits; without one, the worker is ended."""
        if request is not None:
            self._wanted, self._unsent = "id", self._unsent + request
        try:
            return self._hide(self._answer(time.monotonic() + timeout_s, timeout_s))
        except BaseException as error:
            self.end()
            if isinstance(error, WorkerError):
                raise WorkerError(error.code, f"{error}{self._last_words()}") from None
            raise

    def kill(self) -> None:
        """Kills the worker and what it started; it may be called from another thread."""
        if not self.has_ended:  # else its number may be another's by now
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def end(self, grace_s: float = 0.0) -> None:
        """Closes its input, waits for it to end by itself, and kills what is left."""
        if self.has_ended:
            return
        self._stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(grace_s)
        self.kill()
        self.has_ended = True
        self._process.wait()
        # A child that has left the group of the worker may hold its pipes open for ever.
        self._read_until = time.monotonic() + GRACE_S
        self._reader.join()
        self._stdout.close()
        self._stderr.close()

    def _answer(self, until: float, timeout_s: float) -> bytes:
        while (left := until - time.monotonic()) > 0:
            with suppress(OSError):  # its input is full, or closed: then it ends without an answer
                while self._unsent:
                    self._unsent = self._unsent[os.write(self._stdin.fileno(), self._unsent) :]
            is_gone = self._process.poll() is not None
            if is_gone:  # what it wrote last is still read; its children do not hold that up
                self.kill()
            try:
                answer = self._answers.get(timeout=min(left, GRACE_S if is_gone else LOOK_EVERY_S))
            except Empty:
                if not is_gone:
                    continue
                answer = None
            if isinstance(answer, bytes):
                return answer
            raise answer or WorkerError("worker_ended", f"it ended{self._how()}")
        raise WorkerError("timeout", f"it gave no answer in {timeout_s:g} s")

    def _read(self) -> None:
        """Reads what it writes, asked or not, so that it never waits."""
        rest = b""
        with selectors.DefaultSelector() as pipes:
            pipes.register(self._stdout, selectors.EVENT_READ)
            pipes.register(self._stderr, selectors.EVENT_READ)
            while pipes.get_map() and time.monotonic() < self._read_until:
                for key, _ in pipes.select(LOOK_EVERY_S):
                    data = os.read(key.fd, AT_A_TIME)
                    if not data:
                        pipes.unregister(key.fileobj)
                    if key.fileobj is self._stderr:
                        self._note(data)
                        continue
                    *lines, rest = (rest + data).split(b"\n")
                    for line in lines:
                        self._take(line)
                    if not data:
                        self._note(rest)
                        self._answers.put(None)
                    elif len(rest) > LONGEST_LINE:
                        pipes.unregister(self._stdout)
                        said = f"it wrote {len(rest)} bytes without ending the line"
                        self._answers.put(WorkerError("line_too_long", said))

    def _take(self, line: bytes) -> None:
        if self._wanted and self._wanted in object_in(line):
            self._wanted = ""
            self._answers.put(line)
        else:
            self._note(line + b"\n")

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

    def _last_words(self) -> str:
        text = self._hide(self._log).decode("utf-8", "replace").replace("\r", "\n")
        lines = ["".join(filter(str.isprintable, line)).strip() for line in text.split("\n")]
        last = [line[:200] for line in lines if line][-SHOWN_LINES:]
        return f"; its last words: {' | '.join(last)}" if last else ", without a word"


def object_in(line: bytes) -> Mapping[str, Any]:
    """The JSON object that a line holds; an empty one where it holds none."""
    try:
        found = json.loads(line) if line.lstrip().startswith(b"{") else {}
    except (ValueError, RecursionError):
        return {}
    return cast("Mapping[str, Any]", found)


class WorkerPool:
    """The workers of a system, each on one task at a time; one that is lost is started again."""

    def __init__(
        self,
        name: str,
        start: Callable[[str | None], WorkerProcess],
        devices: Sequence[str | None],
        start_timeout_s: float,
        most_restarts: int,
    ) -> None:
        self.is_closed = False
        self._name, self._start, self._size = name, start, len(devices)
        self._start_timeout_s, self._most_restarts = start_timeout_s, most_restarts
        self._idle: SimpleQueue[tuple[str | None, WorkerProcess | None]] = SimpleQueue()
        for device in devices:
            self._idle.put((device, None))
        self._changing, self._was_greeted = Lock(), False
        self._running, self._lost = list[WorkerProcess](), set[str]()

    @contextmanager
    def borrowed(self, task: str) -> Iterator[WorkerProcess]:
        """Waits for a worker, and sees that its process runs."""
        device, worker = self._idle.get()
        try:
            if worker is None or worker.has_ended:
                worker = self._started(task, device)
            yield worker
        finally:
            self._idle.put((device, worker))

    def ask(self, worker: WorkerProcess, task: str, request: bytes, timeout_s: float) -> bytes:
        """Gives a worker its task; one that answers to another task is ended."""
        try:
            line = worker.ask(request, timeout_s)
        except WorkerError as error:
            raise self._loss(task, error) from None
        with self._changing:
            self._lost.clear()
        if object_in(line).get("id") != task:
            worker.end()
            said = f"it answered {line[:80]!r} to another request"
            raise self._loss(task, WorkerError("wrong_id", said))
        return line

    def close(self) -> None:
        """Ends all workers; those at a task are killed."""
        with self._changing:
            self.is_closed = True
        idle = list[tuple[str | None, WorkerProcess | None]]()
        with suppress(Empty):
            while True:
                idle.append(self._idle.get_nowait())
        resting = [worker for _, worker in idle]
        for worker in self._running:
            if worker not in resting:
                worker.kill()
        while len(idle) < self._size:
            idle.append(self._idle.get())
        for device, each in idle:
            if each is not None:
                each.end(GRACE_S)
            self._idle.put((device, each))

    def _started(self, task: str, device: str | None) -> WorkerProcess:
        with self._changing:
            if self.is_closed:
                raise GenerationError(f"{self._name}: its workers have been ended: enter it again")
            worker = self._start(device)
            self._running = [one for one in self._running if not one.has_ended] + [worker]
        try:
            line = worker.ask(None, self._start_timeout_s)
            worker.hello = read_told(line, Hello, f"{self._name}: the worker's first line")
        except WorkerError as error:
            if self._was_greeted:  # what could be started once may be started again
                raise self._loss(task, error) from None
            said = f"{self._name}: the worker could not be started: {error}"
            raise GenerationError(said) from None
        except ValueError as error:
            worker.end()
            raise GenerationError(str(error)) from None
        self._was_greeted = True
        return worker

    def _loss(self, task: str, error: WorkerError) -> Exception:
        # A task that kills its workers does so at every attempt, and says nothing about the others.
        with self._changing:
            self._lost.add(task)
            lost = len(self._lost)
        if lost > self._most_restarts:
            return GenerationError(
                f"{self._name}: workers ended in {lost} tasks without an answer between, "
                f"the last one so: {error}"
            )
        return TransientError(f"the worker is gone: {error}", error.code)
