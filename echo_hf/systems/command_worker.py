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
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
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
        self.hello: Hello | None = None
        self.has_ended = False
        self._hide, self._log, self._rest = hide, b"", b""
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
        self._said = selectors.DefaultSelector()
        self._said.register(self._stdout, selectors.EVENT_READ)
        self._said.register(self._stderr, selectors.EVENT_READ)

    def ask(self, request: bytes, timeout_s: float, key: str = "id") -> bytes:
        """Sends a line, and waits for one with a key; without an answer, the worker is ended."""
        try:
            for line in self._lines(self._said.select(0)):  # after the last answer
                self._note(line)
            return self._hide(self._answer(request, timeout_s, key))
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
        self._said.close()
        self._stdout.close()
        self._stderr.close()

    def _answer(self, unsent: bytes, timeout_s: float, key: str) -> bytes:
        until = time.monotonic() + timeout_s
        while (left := until - time.monotonic()) > 0:
            with suppress(OSError):  # its input is full, or closed: then it ends without an answer
                while unsent:
                    unsent = unsent[os.write(self._stdin.fileno(), unsent) :]
            is_gone = self._process.poll() is not None
            if is_gone:  # what it wrote last is still read; its children do not hold that up
                self.kill()
            ready = self._said.select(0 if is_gone else min(left, LOOK_EVERY_S))
            answer = None
            for line in self._lines(ready):
                if answer is None and key in object_in(line):
                    answer = line
                else:
                    self._note(line)
            if answer is not None:
                return answer
            if not ready and (is_gone or self._stdout not in self._said.get_map()):
                self._note(self._rest)
                raise WorkerError("worker_ended", f"it ended{self._how()}")
        raise WorkerError("timeout", f"it gave no answer in {timeout_s:g} s")

    def _lines(self, ready: Sequence[tuple[selectors.SelectorKey, int]]) -> Iterator[bytes]:
        """The lines that stand in its output; what else it says is noted."""
        for key, _ in ready:
            data = os.read(key.fd, AT_A_TIME)
            if not data:
                self._said.unregister(key.fileobj)
            elif key.fileobj is self._stderr:
                self._note(data)
            else:
                *lines, self._rest = (self._rest + data).split(b"\n")
                yield from (line + b"\n" for line in lines)
                if len(self._rest) > LONGEST_LINE:
                    said = f"it wrote {len(self._rest)} bytes without ending the line"
                    raise WorkerError("line_too_long", said)

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
        self._busy, self._lost = set[WorkerProcess](), set[str]()

    @contextmanager
    def borrowed(self, task: str) -> Iterator[tuple[WorkerProcess, Hello]]:
        """Waits for a worker that is ready, which is started where there is none."""
        device, worker = self._idle.get()
        try:
            with self._changing:
                if self.is_closed:
                    said = f"{self._name}: its workers have been ended: enter it again"
                    raise GenerationError(said)
                if worker is None or worker.has_ended:
                    worker = self._start(device)
                self._busy.add(worker)
            worker.hello = worker.hello or self._greeted(worker, task)
            yield worker, worker.hello
        finally:
            with self._changing:
                self._busy.difference_update([worker] if worker else [])
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
            for worker in self._busy:
                worker.kill()
        every = [self._idle.get() for _ in range(self._size)]
        for device, resting in every:
            if resting is not None:
                resting.end(GRACE_S)
            self._idle.put((device, resting))

    def _greeted(self, worker: WorkerProcess, task: str) -> Hello:
        try:
            line = worker.ask(b"", self._start_timeout_s, "echo_hf_worker")
            hello = read_told(line, Hello, f"{self._name}: the worker's first line")
        except WorkerError as error:
            if self._was_greeted:  # what could be started once may be started again
                raise self._loss(task, error) from None
            said = f"{self._name}: the worker could not be started: {error}"
            raise GenerationError(said) from None
        except ValueError as error:
            worker.end()
            raise GenerationError(str(error)) from None
        self._was_greeted = True
        return hello

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
