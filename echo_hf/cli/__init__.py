"""The command line: its verbs in groups, and the exit code of each error.

A user's mistake is one line on standard error and exit code 2. Whatever is heavy is imported by
the command that needs it.
"""

from __future__ import annotations

import atexit
import gc
import io
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Annotated, Any

import typer

from echo_hf.cli.build import build, check_engine, collect, merge, refresh, review, update, why
from echo_hf.cli.evaluate import (
    agree,
    analyze,
    audit,
    checks,
    compare,
    eval_,
    export,
    generate,
    judge,
    rank,
    report,
    ruler,
    score,
)
from echo_hf.cli.release import diff, forget, hydrate, leaderboard, publish, schedule, submit
from echo_hf.cli.start import engines, init, plugins, quickstart, systems
from echo_hf.cli.verb import Quiet, VerbGroup, Verbose, get_verb_name, verb

EPILOG = """\b
Begin with `echo-hf quickstart`; `echo-hf VERB --help` explains a verb.
Exit codes: 0 done; 2 a mistake to fix, in one line; 130 stopped; 70 a bug.
"""
EXIT_BUG = 70  # EX_SOFTWARE of sysexits.h: 1 is a verdict of `compare`
GROUPS: Mapping[str, tuple[Callable[..., Any], ...]] = {
    "Start": (quickstart, init, engines, systems),
    "Build": (collect, build, merge, update, why, check_engine, review, refresh),
    "Release": (diff, publish, hydrate, forget, leaderboard, schedule),
    "Evaluate": (
        eval_,
        generate,
        judge,
        audit,
        score,
        compare,
        rank,
        agree,
        checks,
        ruler,
        analyze,
        report,
        export,
        submit,
    ),
    "Extend": (plugins,),
}
GC_THRESHOLD = 100_000  # new ones, before Python looks for what nobody uses any more
app = typer.Typer(
    name="echo-hf",
    cls=VerbGroup,
    help="Turn what people post about a new image model into a versioned benchmark.",
    epilog=EPILOG,
    subcommand_metavar="VERB [ARGS]...",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _group, _verbs in GROUPS.items():
    for _verb in _verbs:
        app.command(get_verb_name(_verb), rich_help_panel=_group)(verb(_verb))


@app.callback(invoke_without_command=True)
def _handle_options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    skill: Annotated[
        bool, typer.Option("--skill", help="Print what an agent should know to use it: a SKILL.md.")
    ] = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    del verbose, quiet  # each verb reads them
    if version:
        import echo_hf

        typer.echo(echo_hf.__version__)
        raise typer.Exit
    if skill:
        typer.echo(files("echo_hf.cli").joinpath("SKILL.md").read_text("utf-8"), nl=False)
        raise typer.Exit


def main() -> None:
    from echo_hf.errors import EchoError

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # posts hold characters that no code page has
            stream.reconfigure(errors="replace")
    for interrupt in (signal.SIGINT, signal.SIGTERM):  # a cluster ends a job with the second
        signal.signal(interrupt, _stop)
    # Imports make 200,000 objects that stay. To look through them time and again, and once more at
    # the end, is a tenth of a short run.
    gc.set_threshold(GC_THRESHOLD)
    atexit.register(gc.freeze)
    try:
        app()
    except EchoError as error:
        _exit(str(error), 2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads on
    except OSError as error:
        _exit(f"cannot read or write: {error}: fix it; the same command resumes from here", 2)
    except _StoppedError:
        _exit("stopped; the same command resumes where it stopped", 130)
    except Exception:
        traceback.print_exc()
        sys.exit(EXIT_BUG)


class _StoppedError(BaseException):
    """Stands for Ctrl-C or SIGTERM; no library catches it, and typer does not swallow it."""


def _stop(number: int, frame: object) -> None:
    del number, frame
    raise _StoppedError("stopped")


def _exit(message: str, code: int) -> None:
    # Names in a stranger's file may hold what moves a cursor, or turns a line around.
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in message)
    print(f"echo-hf: {line}", file=sys.stderr)
    sys.exit(code)
