"""The command line of reviewing: list, decide, serve the page, export gold."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from echo_hf._infra.console import say, terminal
from echo_hf.cli.verb import DEFAULT_RUNS, ConfigFile, Runs, Told

if TYPE_CHECKING:
    from rich.console import Console


Samples = list[str] | None


def review(
    config: ConfigFile,
    keep: Annotated[Samples, typer.Option(help="ID of a sample that may be published.")] = None,
    remove: Annotated[Samples, typer.Option(help="ID of a sample to leave out.")] = None,
    flag: Annotated[
        Samples, typer.Option(help="ID of a sample to leave for somebody else to decide.")
    ] = None,
    withdraw: Annotated[
        Samples, typer.Option(help="ID of a sample whose decision is withdrawn.")
    ] = None,
    note: Annotated[str | None, typer.Option(help="Why, kept with the decisions.")] = None,
    reviewer: Annotated[str | None, typer.Option(help="Your pseudonym, kept with them.")] = None,
    app: Annotated[
        bool, typer.Option("--app", help="Review in a browser: also prompts, roles and crops.")
    ] = False,
    people: Annotated[
        list[str] | None,
        typer.Option(
            help="With --app: pseudonym of who may review; may be repeated. auth: as "
            "ECHO_HF_PEOPLE has them, NAME:PASSWORD each. Else everybody may choose one."
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="With --app: network address to listen on.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="With --app: its port; 0: any that is free.")
    ] = 7861,
    anyone: Annotated[
        bool,
        typer.Option(
            "--anyone", help="With --app: allow review without passwords on another HOST."
        ),
    ] = False,
    gold: Annotated[
        Path | None,
        typer.Option(help="Write what was kept into this folder, for `check-engine --gold`."),
    ] = None,
    runs: Runs = DEFAULT_RUNS,
) -> Told:
    """List samples that need a decision, or decide. --app: in a browser."""
    from echo_hf.builder import review as reviews
    from echo_hf.cli.check_view import show_decisions, show_open

    console = terminal()
    if config.is_dir():  # a release: its run has the config that made it
        config, runs = config.resolve().parent / "config.yaml", config.resolve().parent.parent
    decided = {"keep": keep, "remove": remove, "flag": flag, "withdraw": withdraw}
    _check_together({**decided, "app": app, "gold": gold}, note or reviewer, people or anyone)
    if any(decided.values()):
        named = {what: names or () for what, names in decided.items()}
        said = {"note": note, "reviewer": reviewer}
        made = reviews.decide(config, **named, **said, runs=runs)  # type: ignore[arg-type]
        show_decisions(console, made, config)
        return {"decisions": [one.model_dump(mode="json") for one in made]}
    if app:
        _serve(console, config, runs, (host, port), people or (), anyone)
        return {}
    if gold is not None:
        return _export(console, config, runs, gold)
    found = reviews.open_reviews(config, runs=runs)
    show_open(console, found, config)
    return {"path": found.file, "open": found.open}


def _check_together(asked: Mapping[str, object], words: object, admitted: object) -> None:
    """Refuses what would be left undone."""
    from echo_hf.errors import ReviewError

    given = [f"--{name}" for name, value in asked.items() if value]
    *decisions, last = given or ["nothing"]
    if decisions and last in ("--app", "--gold"):
        raise ReviewError(f"{decisions[0]} and {last} are two things: give one at a time")
    if words and last in ("nothing", "--app", "--gold"):
        raise ReviewError(
            "--note and --reviewer go with a decision: add --keep, --remove, --flag or --withdraw"
        )
    if admitted and last != "--app":
        raise ReviewError("--people and --anyone go with --app: add it")


def _serve(
    console: Console,
    config: Path,
    runs: Path,
    place: tuple[str, int],
    people: list[str] | tuple[()],
    anyone: bool,
) -> None:

    from echo_hf.apps.page import Place, check_installed
    from echo_hf.apps.review.review import desk_of
    from echo_hf.apps.review.review import review as reviewed

    check_installed("`echo-hf review --app`")
    desk = desk_of(config, runs=runs)

    def ready(address: str) -> None:
        say(console, f"{len(desk.cases):,} samples to review at {address}")
        say(console, "Ctrl-C ends it; every decision is written down")

    try:
        reviewed(desk, place=Place(*place), people=people, anyone=anyone, ready=ready)
    finally:
        say(console, f"what makes it count: echo-hf build {config}")


def _export(console: Console, config: Path, runs: Path, folder: Path) -> Told:
    from echo_hf.builder.gold.export import export_gold

    made = export_gold(config, folder, runs=runs)
    for line in made.told():
        say(console, line)
    return {"path": folder, **vars(made)}
