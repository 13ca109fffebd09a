"""Verbs of the command line that say what is in a benchmark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from echo_hf.cli_console import terminal

DEFAULT_RUNS = Path("runs")


def analyze(
    config: Annotated[
        str,
        typer.Argument(help="The YAML file; or the folder of a release, or ORG/NAME@TAG."),
    ],
    runs: Annotated[
        Path, typer.Option(help="Folder of runs; this one is named by its config.")
    ] = DEFAULT_RUNS,
) -> None:
    """Analyze prompts, feedback and activity, and write the run's analysis.json."""
    from rich.text import Text

    from echo_hf.analysis.analyze import analyze as analyzed
    from echo_hf.analysis.show import show_analysis

    console = terminal()
    with console.status("analysis") as status:
        done = analyzed(
            config, runs=runs, say=lambda what: status.update(Text(f"analysis: {what}"))
        )
    show_analysis(console, done)


VERBS: tuple[Callable[..., None], ...] = (analyze,)
