"""Shared parts of all verbs: options, the log of a run, and the JSON object of `--json`."""

from __future__ import annotations

import inspect
import logging
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import wraps
from inspect import Parameter
from logging.handlers import MemoryHandler, RotatingFileHandler
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup
from typer.models import ParameterInfo

from echo_hf import __version__
from echo_hf._infra.console import DETAILS, make_console, print_json
from echo_hf._infra.text import clean, strip_controls
from echo_hf.errors import EchoError, GenerationError, unknown
from echo_hf.pipeline.progress import ALREADY_REPORTED, LOG_FILE, RUN_FOLDER_FIELD

if TYPE_CHECKING:
    from echo_hf.cli.progress import TerminalProgress


LOCAL_SERVER = "http://127.0.0.1:8000/v1"
NAME_WIDTH = 14
MAX_LINE_CHARACTERS = 1000
MAX_LOG_BYTES = 1_000_000
MAX_BUFFERED_RECORDS = 1000
LOG_FORMAT = "%(asctime)s %(levelname)-8s %(name)s: %(message)s"
EXPECTED_ERRORS = (EchoError, OSError, typer.Abort)


def option(name: str | None, help_text: str, **limits: Any) -> Any:
    """Declare an option that several verbs share; a name keeps Typer from adding `--no-...`."""
    return typer.Option(*([name] if name else []), help=help_text, **limits)


def flag(name: str, help_text: str) -> Any:
    """Declare an option that is off by default."""
    return typer.Option(False, name, help=help_text)


def choice(default: Any, help_text: str, *names: str, **limits: Any) -> Any:
    """Declare an option of a single verb, with its default."""
    return typer.Option(default, *names, help=help_text, **limits)


ConfigArgument = Annotated[Path, typer.Argument(help="The YAML file that describes the benchmark.")]
Runs = Annotated[
    Path | None, option(None, "Folder of runs, instead of the config's or `runs` beside it.")
]
Runner = Annotated[
    str | None, option(None, "local or ray, instead of the config's: where the work is done.")
]
Again = Annotated[
    bool, option("--again", "Ask again where an answer came that cannot be used, and nowhere else.")
]
KeepGoing = Annotated[
    bool, option("--keep-going", "Go on where none of a model's answers can be used.")
]
Images = Annotated[
    list[str] | None,
    option(
        "--images",
        "NAME=FOLDER with an image for each sample, named by its id, such as ID.png; or "
        "NAME=FILE.csv with the columns id and path. May be repeated.",
    ),
]
JudgeAt = Annotated[
    str | None,
    option("--judge", "With --images: the server of a model that judges, such as " + LOCAL_SERVER),
]
JudgedBy = Annotated[
    str | None, option("--model", "With --judge: its model; else the only one that it has.")
]
Payload = dict[str, Any]
Verbose = Annotated[
    int,
    typer.Option(
        "--verbose",
        "-v",
        count=True,
        show_default=False,
        help="Print details: each stage, all figures, retries; -vv: each call.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
Json = Annotated[bool, option("--json", "Print one JSON object; all else goes to standard error.")]
logger = logging.getLogger("echo_hf")


class PartlyDoneError(GenerationError):
    """Reports that a part of the work failed; `--json` prints the rest all the same."""

    def __init__(self, message: str, payload: Payload) -> None:
        super().__init__(message)
        self.told = payload


class VerdictExit(typer.Exit):
    """Ends a verb with a verdict as its exit code, and the reasons for `--json`."""

    def __init__(self, code: int, payload: Payload) -> None:
        super().__init__(code)
        self.told = payload


class VerbGroup(TyperGroup):
    """Lists verbs in groups, and answers an unknown verb in one line."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        del ctx
        groups: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            about = command.get_short_help_str(formatter.width - NAME_WIDTH - 4)
            group = getattr(command, "rich_help_panel", "")
            groups.setdefault(group, []).append((name.ljust(NAME_WIDTH - 2), about))
        for group, verbs in groups.items():
            with formatter.section(group):
                formatter.write_dl(verbs)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        command = super().get_command(ctx, cmd_name)
        if command is None and not ctx.resilient_parsing:
            from echo_hf.config.sections import STAGES

            if cmd_name in STAGES.list_names():
                hint = f"a stage runs with `echo-hf build CONFIG --until {cmd_name}`"
                raise EchoError(f"unknown command {cmd_name!r}: {hint}")
            raise EchoError(unknown("command", cmd_name, self.commands))
        return command


def locate(config: Path, runs: Path | None) -> str:
    """Format the arguments with which a command finds the same run."""
    return shlex.quote(str(config)) + (f" --runs {shlex.quote(str(runs))}" if runs else "")


def open_progress(*, sums_up_calls: bool = False) -> TerminalProgress:
    from echo_hf.cli.progress import TerminalProgress  # which loads the tables

    console = make_console()
    return TerminalProgress(console, details=console.details, sums_up_calls=sums_up_calls)


def get_verb_name(function: Callable[..., object]) -> str:
    return function.__name__.strip("_").replace("_", "-")


def call_verb(function: Callable[..., Payload], *args: Any, **options: Any) -> Payload:
    """Call a verb from another one; options that are not given have their defaults."""
    bound = inspect.signature(function).bind(*args, **options)
    bound.apply_defaults()
    for name, value in bound.arguments.items():
        if isinstance(value, ParameterInfo):
            bound.arguments[name] = value.default
    return function(*bound.args, **bound.kwargs)


def verb(function: Callable[..., Payload | None]) -> Callable[..., None]:
    """Turn a function into a verb with shared options; one that returns an object has `--json`."""

    @wraps(function)
    def command(
        ctx: typer.Context, verbose: int, quiet: bool, json: bool = False, **arguments: Any
    ) -> None:
        root_options = ctx.find_root().params  # `echo-hf -v VERB` is `echo-hf VERB -v`
        quiet, verbose = quiet or root_options["quiet"], verbose + root_options["verbose"]
        level = logging.ERROR if quiet else max(logging.WARNING - 10 * verbose, logging.DEBUG)
        payload: Payload | None = None
        details = DETAILS.set(verbose > 0)
        try:
            with _redirect_output(quiet=quiet, json=json), log_verb(get_verb_name(function), level):
                payload = function(**arguments) or {}
        except (PartlyDoneError, VerdictExit) as error:
            payload = error.told
            raise
        finally:
            DETAILS.reset(details)
            if json and payload is not None:
                print_json({"verb": get_verb_name(function), **payload})

    own = inspect.signature(function, eval_str=True)
    kind = Parameter.KEYWORD_ONLY
    parameters = [
        *own.parameters.values(),
        Parameter("ctx", kind, annotation=typer.Context),
        Parameter("verbose", kind, annotation=Verbose, default=0),
        Parameter("quiet", kind, annotation=Quiet, default=False),
    ]
    if own.return_annotation:
        parameters.append(Parameter("json", kind, annotation=Json, default=False))
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


class _SafeFormatter(logging.Formatter):
    """Formats a record as a line without secrets or control characters; indents tracebacks."""

    def __init__(self, line_format: str) -> None:
        from echo_hf.systems.base import remove_secrets  # which loads the tables

        super().__init__(line_format)
        self._mask = remove_secrets

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        record.message = clean(self._mask(record.message), MAX_LINE_CHARACTERS)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name
        return indent(strip_controls(self._mask(super().formatException(ei))), "  ")


class _LogFile(RotatingFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's name
        """Ignore the error: a full disk stops the work itself, where it matters."""


class _RunLogHandler(MemoryHandler):
    """Keeps records until the run's folder is known, then writes them into its log."""

    def __init__(self, verb: str) -> None:
        super().__init__(capacity=1)
        self.setLevel(logging.INFO)
        self._verb = verb

    def emit(self, record: logging.LogRecord) -> None:
        folder = getattr(record, RUN_FOLDER_FIELD, None)
        if folder is not None and self.target is None:
            try:
                file = _LogFile(
                    folder / LOG_FILE, maxBytes=MAX_LOG_BYTES, backupCount=1, encoding="utf-8"
                )
            except OSError as error:
                logger.warning("no log is kept: %s", error)
                return
            file.setFormatter(_SafeFormatter(LOG_FORMAT))
            self.setTarget(file)
            first_line = f"echo-hf {__version__}: {self._verb} {folder.name}"
            record = logging.makeLogRecord({**vars(record), "msg": first_line, "args": None})
            self.buffer.insert(0, record)
            self.flush()
        else:
            super().emit(record)
            del self.buffer[:-MAX_BUFFERED_RECORDS]

    def close(self) -> None:
        file = self.target
        super().close()
        if file is not None:
            file.close()


@contextmanager
def log_verb(verb: str, level: int) -> Iterator[None]:
    """Log a verb to standard error from a level on, and into the folder of its run."""
    console, file = logging.StreamHandler(), _RunLogHandler(verb)
    console.setLevel(level)
    console.setFormatter(_SafeFormatter("%(message)s"))
    console.addFilter(lambda record: not ALREADY_REPORTED.keys() & vars(record).keys())
    previous, started = (logger.level, logger.propagate), time.monotonic()
    logger.setLevel(min(level, logging.INFO))
    logger.propagate = False  # others' handlers mask no secrets
    for handler in (console, file):
        logger.addHandler(handler)
    try:
        yield
        logger.info("done in %.1f s", time.monotonic() - started)
    except typer.Exit:
        raise
    except BaseException as error:
        is_bug = isinstance(error, Exception) and not isinstance(error, EXPECTED_ERRORS)
        level, message = (logging.CRITICAL if is_bug else logging.ERROR), str(error)
        logger.log(
            level,
            "ended: %s",
            message or type(error).__name__,
            exc_info=is_bug,
            extra=ALREADY_REPORTED,
        )
        raise
    finally:
        logger.setLevel(previous[0])
        logger.propagate = previous[1]
        for handler in (console, file):
            logger.removeHandler(handler)
            handler.close()


@contextmanager
def _redirect_output(*, quiet: bool, json: bool) -> Iterator[None]:
    """Redirect standard output to standard error for JSON, or discard it if quiet."""
    if not (quiet or json):
        yield
        return
    if quiet:
        os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"  # read when it is imported
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        saved_stdout = os.dup(1)
        os.dup2(nowhere.fileno() if quiet else 2, 1)  # also what other processes print
        try:
            with redirect_stdout(nowhere if quiet else sys.stderr):
                yield
        finally:
            os.dup2(saved_stdout, 1)
            os.close(saved_stdout)
