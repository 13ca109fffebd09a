"""Verbs that build a benchmark, say what a build would do, and check who answers it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from echo_hf._infra.console import say, terminal
from echo_hf.builder.steps import STAGES
from echo_hf.cli.verb import DEFAULT_RUNS, ConfigFile, Runs, Told

if TYPE_CHECKING:
    from echo_hf.cli.progress import Watch
    from echo_hf.hub.release import Release

Offline = Annotated[bool, typer.Option("--offline", help="Ask no model: use stored answers only.")]
WithResponses = Annotated[
    bool,
    typer.Option("--with-responses", help="Let the release carry the answers, for replay."),
]
AllowEmpty = Annotated[
    bool, typer.Option("--allow-empty", help="Write the release even where it has no sample.")
]


def build(
    config: ConfigFile,
    until: Annotated[
        str | None,
        typer.Option(metavar="STAGE", help=f"Stop after this stage: {', '.join(STAGES)}."),
    ] = None,
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
) -> Told:
    """Run every stage that is not up to date; write the release."""
    from echo_hf.builder import build as run
    from echo_hf.errors import ConfigError

    if until is not None and (with_responses or allow_empty):
        raise ConfigError("--until writes no release: leave out --with-responses and --allow-empty")
    with _watch() as watch:
        if until is not None:
            run.run_until(
                config, until, runs=runs, offline=offline, responses=responses, watch=watch
            )
            return {"path": None, "stages": watch.stats, "samples": None}
        release = run.build(
            config,
            runs=runs,
            offline=offline,
            responses=responses,
            with_responses=with_responses,
            allow_empty=allow_empty,
            watch=watch,
        )
    return _show_release(watch, release)


def update(
    config: ConfigFile,
    runs: Runs = DEFAULT_RUNS,
    offline: Offline = False,
    with_responses: WithResponses = False,
    allow_empty: AllowEmpty = False,
) -> Told:
    """Build from the posts there are now. Compare with the release before."""
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
    calls = f"{done.asked:,} calls made, {done.reused:,} answers of earlier runs used again"
    told = _show_release(watch, done.release, f"\nanswers: {calls}")
    difference = compared(done.previous, done.release.path) if done.previous else None
    if difference is not None:
        say(watch.console, f"the one before: {done.previous}\n")
        show_diff(watch.console, difference)
    elif not done.changed:
        watch.console.print("nothing changed: it is the one that was there")
    counts = {"calls": done.asked, "reused": done.reused, "changed": done.changed}
    diff = difference and difference.as_json()
    return {**told, **counts, "previous": done.previous, "diff": diff}


def _show_release(watch: Watch, release: Release, *lines: str) -> Told:
    from echo_hf.hub.facts import SAMPLE_CONFIGS

    configs = release.manifest.configs.items()
    rows = {name: entry.rows for name, entry in configs if name in SAMPLE_CONFIGS}
    hint = "; it has no sample: the reasons stand above and in the stages' rejects"
    watch.funnel()
    for line in (*lines, f"\nrelease: {release.path}{'' if any(rows.values()) else hint}"):
        say(watch.console, line)
    return {"path": release.path, "stages": watch.stats, "samples": rows}


def why(
    config: ConfigFile,
    stage: Annotated[
        str | None, typer.Argument(help=f"Only this stage: {', '.join(STAGES)}.")
    ] = None,
    runs: Runs = DEFAULT_RUNS,
) -> Told:
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
    return {"changes": [{**one._asdict(), "sentence": one.sentence} for one in changes]}


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
) -> Told:
    """Measure how well an engine does each stage. Careful readers wrote down what is right."""
    from echo_hf.builder.gold import check
    from echo_hf.cli import check_view

    choice = check.engine_choice(engine, model, option or ())
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
    return check_view.as_json(result)


def _watch() -> Watch:
    from echo_hf.cli.progress import Watch

    return Watch(terminal())
