"""The command line: one verb a stage, in the order of the paper.

A user's mistake is one line on standard error and exit code 2. Whatever is heavy is imported by
the command that needs it.
"""

from __future__ import annotations

import io
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from echo_hf._infra.console import say, terminal
from echo_hf.builder.steps import STEPS
from echo_hf.cli import collect as collect_verbs
from echo_hf.cli import evaluate as evaluate_verbs
from echo_hf.cli import init as init_verb
from echo_hf.cli import release as release_verbs
from echo_hf.cli import review as review_verbs

if TYPE_CHECKING:
    from rich.console import Console

    from echo_hf.cli.progress import Watch
    from echo_hf.hub.release import Release


app = typer.Typer(
    name="echo-hf",
    help="Turn what people post about a new image model into a versioned benchmark.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

ConfigFile = Annotated[Path, typer.Argument(help="The YAML file that describes the benchmark.")]
Runs = Annotated[Path, typer.Option(help="Folder of runs; this one is named by its config.")]
Offline = Annotated[bool, typer.Option("--offline", help="Ask no model: use stored answers only.")]
WithResponses = Annotated[
    bool,
    typer.Option("--with-responses", help="Let the release carry the answers, for replay."),
]
AllowEmpty = Annotated[
    bool, typer.Option("--allow-empty", help="Write the release even where it has no sample.")
]
DEFAULT_RUNS = Path("runs")


@app.command()
def quickstart(runs: Runs = DEFAULT_RUNS) -> None:
    """Build the bundled benchmark, load it back, and show what happened. Needs no model."""
    from echo_hf.cli.progress import Watch
    from echo_hf.quickstart.run import show

    with Watch(terminal()) as watch:
        show(watch, runs)


app.command()(init_verb.init)


@app.command()
def build(
    config: ConfigFile,
    runs: Runs = DEFAULT_RUNS,
    offline: Offline = False,
    responses: Annotated[
        str | None,
        typer.Option(
            help="Folder of a release, or ORG/NAME@TAG: read the answers it carries, ask no model."
        ),
    ] = None,
    with_responses: WithResponses = False,
    allow_empty: AllowEmpty = False,
) -> None:
    """Run every stage that is not up to date, and write the release."""
    from echo_hf.builder import build as run

    with _watch() as watch:
        release = run.build(
            config,
            runs=runs,
            offline=offline,
            responses=responses,
            with_responses=with_responses,
            allow_empty=allow_empty,
            watch=watch,
        )
    watch.funnel()
    _name_release(watch.console, release)


@app.command()
def update(
    config: ConfigFile,
    runs: Runs = DEFAULT_RUNS,
    offline: Offline = False,
    with_responses: WithResponses = False,
    allow_empty: AllowEmpty = False,
) -> None:
    """Build from the posts that are there now, and compare with the release before."""
    from echo_hf.builder import update as updates
    from echo_hf.cli.release_view import show_diff
    from echo_hf.hub.diff import diff as compared

    with _watch() as watch:
        done = updates.update(
            config,
            runs=runs,
            offline=offline,
            with_responses=with_responses,
            allow_empty=allow_empty,
            watch=watch,
        )
    watch.funnel()
    calls = f"{done.asked:,} calls made, {done.reused:,} answers of earlier runs used again"
    say(watch.console, f"\nanswers: {calls}")
    _name_release(watch.console, done.release)
    if done.previous is not None:
        say(watch.console, f"the one before: {done.previous}\n")
        show_diff(watch.console, compared(done.previous, done.release.path))
    elif not done.changed:
        watch.console.print("nothing changed: it is the one that was there")


def _name_release(console: Console, release: Release) -> None:
    from echo_hf.hub.facts import SAMPLE_CONFIGS

    configs = release.manifest.configs.items()
    rows = sum(entry.rows for name, entry in configs if name in SAMPLE_CONFIGS)
    hint = "" if rows else "; it has no sample: the reasons stand above and in the stages' rejects"
    say(console, f"\nrelease: {release.path}{hint}")


def _stage_command(stage: str, about: str) -> None:
    def command(config: ConfigFile, runs: Runs = DEFAULT_RUNS, offline: Offline = False) -> None:
        from echo_hf.builder import build as run

        with _watch() as watch:
            run.run_until(config, stage, runs=runs, offline=offline, watch=watch)

    command.__doc__ = f"Run up to {stage}: {about}."
    app.command(stage)(command)


for _stage, _step in STEPS.items():
    if _stage == "collect":
        app.command()(collect_verbs.collect)
    else:
        _stage_command(_stage, _step.about)


@app.command()
def why(
    config: ConfigFile,
    stage: Annotated[
        str | None, typer.Argument(help=f"Only this stage: {', '.join(STEPS)}.")
    ] = None,
    runs: Runs = DEFAULT_RUNS,
) -> None:
    """Show which stages would run again, and why."""
    from echo_hf.builder import update as reasons
    from echo_hf.builder.build import opened

    console = terminal()
    with opened(config, runs, writes=False) as pipeline:
        changes = reasons.why(pipeline, stage)
    for change in changes:
        say(console, change.sentence, "bold")
        for sign, text in (("-", change.before), ("+", change.now)):
            for line in text.splitlines():
                style = "red" if sign == "-" else "green"
                say(console, f"  {sign} {line}", style)
    if not changes:
        console.print("every result is up to date: nothing would run")


@app.command()
def forget(
    config: ConfigFile,
    urls: Annotated[list[str], typer.Argument(help="Addresses of posts.")],
    repo_id: Annotated[
        str | None, typer.Option(help="ORG/NAME on the Hub: say which tags still hold them.")
    ] = None,
    delete_tags: Annotated[
        bool, typer.Option("--delete-tags", help="Delete those tags, with --repo-id.")
    ] = False,
    runs: Runs = DEFAULT_RUNS,
) -> None:
    """Permanently remove posts from a run, with their samples, images and stored answers."""
    from echo_hf.cli import posts_view
    from echo_hf.cli.release_view import show_holding
    from echo_hf.errors import HubError

    if delete_tags and not repo_id:
        raise HubError("--delete-tags needs --repo-id ORG/NAME: whose tags?")
    console = terminal()
    taken = posts_view.forget(urls, config, runs=runs)
    posts_view.show_removal(console, taken, config)
    if repo_id:
        show_holding(console, repo_id, taken.urls, delete=delete_tags)


app.command()(review_verbs.review)


@app.command("check-engine")
def check_engine(
    config: Annotated[
        Path | None, typer.Argument(help="Names engines, options and, for --gold, the target.")
    ] = None,
    engine: Annotated[
        str | None, typer.Option(help="Kind of engine, instead of all that CONFIG names.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Its model.")] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="KEY=VALUE: an option of it, as in a config.")
    ] = None,
    gold: Annotated[
        Path | None,
        typer.Option(help="Folder of threads you annotated yourself; else the bundled ones."),
    ] = None,
    half: Annotated[str, typer.Option(help="held_out, tune or all.")] = "held_out",
    stage: Annotated[list[str] | None, typer.Option(help="Only this stage.")] = None,
    runs: Runs = DEFAULT_RUNS,
    offline: Offline = False,
    errors: Annotated[
        bool, typer.Option("--errors", help="Show what was wrong; with --half tune only.")
    ] = False,
    json: Annotated[Path | None, typer.Option(help="Write all figures here, too.")] = None,
) -> None:
    """Measure how well an engine does each stage, against what careful readers wrote down."""
    from echo_hf.builder.gold import check
    from echo_hf.builder.gold import check as setting
    from echo_hf.cli import check_view

    check_view.check_target(json)
    choice = setting.engine_choice(engine, model, option or ())
    with _watch() as watch:
        result = check.check_engine(
            config,
            engine=choice,
            gold=gold,
            half=half,
            stages=stage or None,
            errors=errors,
            runs=runs,
            offline=offline,
            watch=watch,
        )
    check_view.show_check(watch.console, result)
    check_view.show_errors(watch.console, result)
    if json:
        check_view.write_json(json, result)


for _verb in collect_verbs.VERBS:
    app.command()(_verb)


for _verb in release_verbs.VERBS:
    app.command()(_verb)


@app.command()
def engines() -> None:
    """List the engines that a config may name: what each is for, and what it needs."""
    from echo_hf.cli.progress import engine_table
    from echo_hf.engines.base import engine_needs

    terminal().print(engine_table(engine_needs()))


app.command("eval")(evaluate_verbs.evaluate)
for _verb in (*evaluate_verbs.VERBS, *evaluate_verbs.ANALYSIS_VERBS, *evaluate_verbs.REPORT_VERBS):
    app.command()(_verb)


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
    raise _StoppedError


def _end(said: str, code: int) -> None:
    # Names in a stranger's file may hold what moves a cursor, or turns a line around.
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in said)
    print(f"echo-hf: {line}", file=sys.stderr)
    sys.exit(code)


def _watch() -> Watch:
    from echo_hf.cli.progress import Watch

    return Watch(terminal())
