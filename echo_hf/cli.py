"""The command line: one verb a stage, in the order of the paper.

A user's mistake is one line on standard error and exit code 2. Whatever is heavy is imported by
the command that needs it.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from echo_hf.terminal import Watch

app = typer.Typer(
    name="echo-hf",
    help="Turn what people post about a new image model into a versioned benchmark.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

ConfigFile = Annotated[Path, typer.Argument(help="The YAML file that describes the benchmark.")]
Runs = Annotated[Path, typer.Option(help="Folder of runs; this one is named by its config.")]
Offline = Annotated[bool, typer.Option("--offline", help="Ask no model: use stored answers only.")]
DEFAULT_RUNS = Path("runs")


class StageName(StrEnum):
    """The stages, in order."""

    COLLECT = "collect"
    RELEVANCE = "relevance"
    THREADS = "threads"
    EXTRACT = "extract"
    SPLITS = "splits"


@app.command()
def quickstart(runs: Runs = DEFAULT_RUNS) -> None:
    """Build the bundled benchmark, load it back, and show what happened. Needs no model."""
    from echo_hf.quickstart.show import show

    show(_console(), runs)


@app.command()
def build(config: ConfigFile, runs: Runs = DEFAULT_RUNS, offline: Offline = False) -> None:
    """Run every stage that is not up to date, and write the release."""
    from rich.text import Text

    from echo_hf import run

    with _watch() as watch:
        release = run.build(config, runs=runs, offline=offline, watch=watch)
    watch.funnel()
    rows = sum(counts["rows"] for counts in release.stats["configs"].values())
    hint = "" if rows else "; it has no sample: the reasons stand above and in the stages' rejects"
    watch.console.print(Text(f"\nrelease: {release.path}{hint}"), soft_wrap=True)


def _stage_command(stage: StageName, about: str) -> None:
    def command(config: ConfigFile, runs: Runs = DEFAULT_RUNS, offline: Offline = False) -> None:
        from echo_hf import run

        with _watch() as watch:
            run.run_until(config, stage.value, runs=runs, offline=offline, watch=watch)

    command.__doc__ = about
    app.command(stage.value)(command)


_stage_command(StageName.COLLECT, "Read the posts of all sources, and merge what is there twice.")
_stage_command(StageName.RELEVANCE, "Run up to relevance: score how likely posts are on topic.")
_stage_command(StageName.THREADS, "Run up to threads: join posts into reply trees.")
_stage_command(StageName.EXTRACT, "Run up to extract: find prompts, their posts, and feedback.")
_stage_command(StageName.SPLITS, "Run up to splits: draw the benchmark from the samples.")


@app.command()
def why(
    config: ConfigFile,
    stage: Annotated[StageName | None, typer.Argument(help="Only this stage.")] = None,
    runs: Runs = DEFAULT_RUNS,
) -> None:
    """Say which stages would run again, and what changed."""
    from rich.text import Text

    from echo_hf import why as reasons
    from echo_hf.run import opened

    console = _console()
    with opened(config, runs, writes=False) as pipeline:
        changes = reasons.why(pipeline, stage.value if stage else None)
    for change in changes:
        console.print(
            Text.assemble((change.stage, "bold"), f" runs because {change.field} changed")
        )
        for sign, text in (("-", change.before), ("+", change.now)):
            for line in text.splitlines():
                console.print(Text(f"  {sign} {line}", "red" if sign == "-" else "green"))
    if not changes:
        console.print("every result is up to date: nothing would run", highlight=False)


@app.command()
def engines() -> None:
    """List the engines that a config may name."""
    from echo_hf.engines.base import engine_names

    for name in engine_names():
        typer.echo(name)


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        import echo_hf

        typer.echo(echo_hf.__version__)
        raise typer.Exit


def main() -> None:
    """Runs the command line; a user's mistake is one line and exit code 2."""
    from echo_hf.errors import EchoError

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # posts hold characters that no code page has
            stream.reconfigure(errors="replace")
    signal.signal(signal.SIGINT, _stop)
    try:
        app()
    except EchoError as error:
        _end(str(error), 2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads on
    except OSError as error:
        _end(f"cannot read or write: {error}: mend that; the same command goes on from here", 2)
    except _StoppedError:
        _end("stopped; the same command goes on where it was", 130)


class _StoppedError(Exception):
    """Ctrl-C, under a name that the command line's library does not swallow."""


def _stop(number: int, frame: object) -> None:
    del number, frame
    raise _StoppedError


def _end(said: str, code: int) -> None:
    print(f"echo-hf: {said}", file=sys.stderr)
    sys.exit(code)


def _console() -> Console:
    import datasets
    from rich.console import Console

    datasets.disable_progress_bars()
    return Console()


def _watch() -> Watch:
    from echo_hf.terminal import Watch

    return Watch(_console())
