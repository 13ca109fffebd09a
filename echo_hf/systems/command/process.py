"""One process of a worker, spoken to line by line, and ended with everything that it started.

It is started in a group of its own, which is killed whatever happens: a child that the worker
leaves behind may hold a GPU. Killed with no time to do that, echo-hf closes the pipes all the same,
and a worker that reads its input sees the end of it.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

LONGEST_LINE = 1024 * 1024
AT_A_TIME = 65_536
KEPT_LOG = 8192
SHOWN_LINES = 3
LOOK_EVERY_S = 0.1
GRACE_S = 2.0


class WorkerError(Exception):
    """A worker gave no answer, and is no longer there.

    Attributes:
        code: `worker_ended`, `timeout` or `line_too_long`.
    """

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class WorkerProcess:
    """A running worker.

    Args:
        command: The program and its arguments.
        folder: Where it runs.
        environment: All its variables.
        hide: Takes what is secret out of all that it wrote.

    Attributes:
        logged: How many lines of its output were none of the protocol.

    Raises:
        OSError: It cannot be started.
    """

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
        """Sends a request and waits for its answer.

        Args:
            request: A line with its end; nothing, to wait for the first line.
            is_answer: Tells a line of the protocol from what else is printed.
            timeout_s: Longest wait, in seconds.

        Returns:
            The answer, without secrets and without the end of the line.

        Raises:
            WorkerError: The worker ended, took too long, or wrote a line that does not end. It is
                killed by then.
        """
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
        """Closes its input, waits for it to end by itself, and kills what is left.

        Args:
            grace_s: How long to wait, in seconds.
        """
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
            if not self._moved(min(left, LOOK_EVERY_S)) and (gone or self._is_closed()):
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

    def _is_closed(self) -> bool:
        return self._stdout not in self._pipes.get_map()

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
