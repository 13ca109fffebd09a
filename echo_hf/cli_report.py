"""Verbs of the command line that show what was measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from echo_hf.cli_console import terminal
from echo_hf.cli_evaluation import DEFAULT_RUNS, Evaluation, Runs


def report(
    config: Evaluation,
    single_file: Annotated[
        bool,
        typer.Option("--single-file", help="Put the pictures into the page; up to 200 samples."),
    ] = False,
    runs: Runs = DEFAULT_RUNS,
) -> None:
    """Write a page with everything that was measured, which opens from a disk."""
    from echo_hf.report.report import report as written
    from echo_hf.report.show import show_report

    show_report(terminal(), written(config, runs=runs, single_file=single_file))


VERBS: tuple[Callable[..., None], ...] = (report,)
