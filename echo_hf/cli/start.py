"""Verbs to begin with: the quickstart, and what there is to choose from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from echo_hf._infra.console import terminal
from echo_hf.cli.verb import DEFAULT_RUNS, Runs, Told


def quickstart(runs: Runs = DEFAULT_RUNS) -> None:
    """Build and evaluate the bundled benchmark, without a model."""
    from echo_hf.cli.progress import Watch
    from echo_hf.quickstart.run import show

    with Watch(terminal()) as watch:
        show(watch, runs)


def engines() -> Told:
    """List the engines that a config may name, and what they need."""
    from echo_hf.cli.progress import engine_table
    from echo_hf.engines.base import engine_needs

    found = engine_needs()
    terminal().print(engine_table(found))
    return {
        "engines": [
            {"name": name, "about": one.about, "missing": one.missing, "extra": one.extra}
            | ({"takes": one.chooses()} if one.chooses else {})
            for name, one in found.items()
        ]
    }


def systems(
    config: Annotated[
        Path | None,
        typer.Argument(help="Show only the systems that this file names; else all included ones."),
    ] = None,
) -> Told:
    """List systems under test, and what is missing to run them."""
    from echo_hf.cli.evaluation_view import system_table, what_seeds_give, what_to_do
    from echo_hf.systems.generate import list_systems

    console, found = terminal(), list_systems(config)
    console.print(system_table(found))
    for line in (*what_to_do(found), *what_seeds_give(found)):
        console.print(line, style="dim", soft_wrap=True)
    configs = [one.config.model_dump(mode="json") for one in found]
    listed = [{**vars(one), "config": each} for one, each in zip(found, configs, strict=True)]
    return {"systems": [{"name": one["config"]["name"], **one} for one in listed]}
