"""Verbs of the command line about collected posts: what found them, what became of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from echo_hf.cli_console import terminal

ConfigFile = Annotated[Path, typer.Argument(help="The YAML file that describes the benchmark.")]
Runs = Annotated[Path, typer.Option(help="Folder of runs; this one is named by its config.")]
DEFAULT_RUNS = Path("runs")


def keywords(config: ConfigFile, runs: Runs = DEFAULT_RUNS) -> None:
    """Show what each search term brought: posts, share on topic, and for how long."""
    from echo_hf.collect.yield_run import write_yields
    from echo_hf.collect.yield_view import show_yields

    show_yields(terminal(), write_yields(config, runs=runs))


VERBS: tuple[Callable[..., None], ...] = (keywords,)
