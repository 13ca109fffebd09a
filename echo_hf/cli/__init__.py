"""The command line: its verbs in groups, and how it ends.

A user's mistake is one line on standard error and exit code 2. Whatever is heavy is imported by
the command that needs it.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from echo_hf.cli.build import build, check_engine, merge, review, update, why
from echo_hf.cli.collect import collect, refresh
from echo_hf.cli.evaluate import (
    agree,
    analyze,
    audit,
    eval_,
    export,
    generate,
    judge,
    rank,
    report,
    score,
)
from echo_hf.cli.release import diff, forget, hydrate, leaderboard, publish
from echo_hf.cli.start import engines, init, quickstart, systems
from echo_hf.cli.verb import Quiet, Verbose, Verbs, name_of, verb

END = """\b
Begin with `echo-hf quickstart`; `echo-hf VERB --help` explains a verb.
Exit codes: 0 done; 2 a mistake to fix, in one line; 130 stopped; 1 a bug.
"""
GROUPS: Mapping[str, tuple[Callable[..., Any], ...]] = {
    "Start": (quickstart, init, engines, systems),
    "Build": (collect, build, merge, update, why, check_engine, review, refresh),
    "Release": (diff, publish, hydrate, forget, leaderboard),
    "Evaluate": (eval_, generate, judge, audit, score, rank, agree, analyze, report, export),
}
app = typer.Typer(
    name="echo-hf",
    cls=Verbs,
    help="Turn what people post about a new image model into a versioned benchmark.",
    epilog=END,
    subcommand_metavar="VERB [ARGS]...",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _group, _verbs in GROUPS.items():
    for _verb in _verbs:
        app.command(name_of(_verb), rich_help_panel=_group)(verb(_verb))


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    del verbose, quiet  # each verb reads them
    if version:
        import echo_hf

        typer.echo(echo_hf.__version__)
        raise typer.Exit


def main() -> None:
    from echo_hf.errors import EchoError

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # posts hold characters that no code page has
            stream.reconfigure(errors="replace")
    for one in (signal.SIGINT, signal.SIGTERM):  # a cluster ends a job with the second
        signal.signal(one, _stop)
    try:
        app()
    except EchoError as error:
        _end(str(error), 2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads on
    except OSError as error:
        _end(f"cannot read or write: {error}: fix it; the same command resumes from here", 2)
    except _StoppedError:
        _end("stopped; the same command resumes where it stopped", 130)


class _StoppedError(BaseException):
    """Ctrl-C or a polite kill: no error of a library, and a name that typer does not swallow."""


def _stop(number: int, frame: object) -> None:
    del number, frame
    raise _StoppedError("stopped")


def _end(said: str, code: int) -> None:
    # Names in a stranger's file may hold what moves a cursor, or turns a line around.
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in said)
    print(f"echo-hf: {line}", file=sys.stderr)
    sys.exit(code)
