"""The log: what the console shows of it, and the file that a run keeps."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from logging.handlers import MemoryHandler, RotatingFileHandler
from textwrap import indent
from typing import Any

import typer

from echo_hf import __version__
from echo_hf._infra.text import disarmed, plain
from echo_hf.errors import EchoError
from echo_hf.pipeline.progress import LOG, RUN_FOLDER, TOLD
from echo_hf.systems.base import without_secrets

LONGEST = 1000
MOST_BYTES = 1_000_000
MOST_WAITING = 1000
LINE = "%(asctime)s %(levelname)-8s %(name)s: %(message)s"
EXPECTED = (EchoError, OSError, typer.Abort)
logger = logging.getLogger("echo_hf")


class _Safe(logging.Formatter):
    """A line a record, without secrets and what moves a cursor; a traceback stands indented."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        record.message = plain(without_secrets(record.message), LONGEST)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name
        return indent(disarmed(without_secrets(super().formatException(ei))), "  ")


class _File(RotatingFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Goes on: a full disk stops the work itself, where it matters."""


class _RunLog(MemoryHandler):
    """Keeps records until work goes on in a run's folder, then writes them into its log."""

    def __init__(self, verb: str) -> None:
        super().__init__(capacity=1)
        self.setLevel(logging.INFO)
        self._verb = verb

    def emit(self, record: logging.LogRecord) -> None:
        folder = getattr(record, RUN_FOLDER, None)
        if folder is not None and self.target is None:
            try:
                file = _File(folder / LOG, maxBytes=MOST_BYTES, backupCount=1, encoding="utf-8")
            except OSError as error:
                logger.warning("no log is kept: %s", error)
                return
            file.setFormatter(_Safe(LINE))
            self.setTarget(file)
            began = f"echo-hf {__version__}: {self._verb} {folder.name}"
            record = logging.makeLogRecord({**vars(record), "msg": began, "args": None})
            self.buffer.insert(0, record)
            self.flush()
        else:
            super().emit(record)
            del self.buffer[:-MOST_WAITING]

    def close(self) -> None:
        file = self.target
        super().close()
        if file is not None:
            file.close()


@contextmanager
def logged(verb: str, level: int) -> Iterator[None]:
    """Logs what a verb does: to standard error from a level on, and into the folder of its run."""
    console, file = logging.StreamHandler(), _RunLog(verb)
    console.setLevel(level)
    console.setFormatter(_Safe("%(message)s"))
    console.addFilter(lambda record: not TOLD.keys() & vars(record).keys())
    before, began = (logger.level, logger.propagate), time.monotonic()
    logger.setLevel(min(level, logging.INFO))
    logger.propagate = False  # others' handlers mask no secrets
    for handler in (console, file):
        logger.addHandler(handler)
    try:
        yield
        logger.info("done in %.1f s", time.monotonic() - began)
    except typer.Exit:
        raise
    except BaseException as error:
        is_bug = isinstance(error, Exception) and not isinstance(error, EXPECTED)
        level, said = (logging.CRITICAL if is_bug else logging.ERROR), str(error)
        logger.log(level, "ended: %s", said or type(error).__name__, exc_info=is_bug, extra=TOLD)
        raise
    finally:
        logger.setLevel(before[0])
        logger.propagate = before[1]
        for handler in (console, file):
            logger.removeHandler(handler)
            handler.close()
