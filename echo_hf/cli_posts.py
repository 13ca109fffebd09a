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
MOST_HOURS = 1_000_000.0  # a century; there is no time before the year 1


def keywords(config: ConfigFile, runs: Runs = DEFAULT_RUNS) -> None:
    """Show what each search term brought: posts, share on topic, and for how long."""
    from echo_hf.collect.yield_run import write_yields
    from echo_hf.collect.yield_view import show_yields

    show_yields(terminal(), write_yields(config, runs=runs))


def refresh(
    config: ConfigFile,
    apply: Annotated[
        bool, typer.Option("--apply", help="Forget the posts that are gone, for good.")
    ] = False,
    platforms: Annotated[
        list[str] | None, typer.Option("--platform", help="Only this one; may be repeated.")
    ] = None,
    older_than: Annotated[
        float,
        typer.Option(
            min=0,
            max=MOST_HOURS,
            help="HOURS: leave out posts that were asked about in this time.",
        ),
    ] = 24.0,
    budget: Annotated[
        float, typer.Option(min=0, help="USD: most that platforms may charge for it.")
    ] = 0.0,
    however_many: Annotated[
        bool, typer.Option("--however-many", help="With --apply: even when most of them are gone.")
    ] = False,
    runs: Runs = DEFAULT_RUNS,
) -> None:
    """Ask platforms which collected posts are gone by now, and forget those with --apply."""
    from datetime import timedelta

    from echo_hf import refresh as refreshing
    from echo_hf.errors import RunError
    from echo_hf.refresh_view import RefreshWatch, show_refresh, what_next
    from echo_hf.removal import forget
    from echo_hf.removal_view import show_removal

    with RefreshWatch(terminal()) as watch:
        done = refreshing.refresh(
            config,
            watch,
            runs=runs,
            only=platforms or (),
            older_than=timedelta(hours=older_than),
            budget_usd=budget,
        )
    show_refresh(watch.console, done)
    doubtful = [one.platform for one in done.platforms if one.is_doubtful]
    if apply and doubtful and not however_many:
        raise RunError(
            f"most posts of {doubtful[0]} are said to be gone: check its key and whether it is "
            "well, and add --however-many if that is so; nothing was forgotten"
        )
    if apply and done.gone:
        show_removal(watch.console, forget(done.gone, config, runs=runs), config)
    elif next_step := what_next(done, config):
        watch.console.print(next_step, soft_wrap=True)


VERBS: tuple[Callable[..., None], ...] = (keywords, refresh)
