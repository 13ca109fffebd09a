"""The verb that asks platforms for posts; no other one does."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Annotated

import typer

from echo_hf.cli_console import terminal

ConfigFile = Annotated[Path, typer.Argument(help="The YAML file that describes the benchmark.")]
Runs = Annotated[Path, typer.Option(help="Folder of runs; this one is named by its config.")]
DEFAULT_RUNS = Path("runs")


def collect(
    config: ConfigFile,
    runs: Runs = DEFAULT_RUNS,
    offline: Annotated[
        bool, typer.Option("--offline", help="Ask nobody: read what is there already.")
    ] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Only print what would be asked, and what it costs.")
    ] = False,
    every: Annotated[
        bool, typer.Option("--all", help="With --plan: each query on a line of its own.")
    ] = False,
    estimate: Annotated[
        bool,
        typer.Option("--estimate", help="With --plan: ask for numbers of posts even if it costs."),
    ] = False,
    json: Annotated[
        Path | None, typer.Option(dir_okay=False, help="With --plan: write each query here, too.")
    ] = None,
) -> None:
    """Run up to collect: ask platforms for posts, read files, merge what is there twice."""
    from echo_hf import run
    from echo_hf.collect.crawl_run import crawl_posts, searches
    from echo_hf.collect.show_crawl import CrawlWatch, show_crawled
    from echo_hf.config import load_config
    from echo_hf.errors import ConfigError
    from echo_hf.run_folder import RunFolder

    if (every or estimate or json) and not plan:
        raise ConfigError("--all, --estimate and --json go with --plan: add it")
    if plan:
        _plan(config, runs, every, estimate, json)
        return
    loaded = load_config(config)
    with CrawlWatch(terminal()) as watch:
        if searches(loaded) and not offline:
            done = crawl_posts(loaded, RunFolder(Path(runs) / loaded.name), watch)
            show_crawled(watch.console, done)
        run.run_until(loaded, "collect", runs=runs, offline=offline, watch=watch)


def _plan(config: Path, runs: Path, every: bool, estimate: bool, json: Path | None) -> None:
    from echo_hf.collect.crawl_run import searches
    from echo_hf.collect.plan_costs import planned_queries, write_plan
    from echo_hf.collect.show_crawl import CrawlWatch
    from echo_hf.collect.show_plan import show_plan
    from echo_hf.config import load_config
    from echo_hf.errors import ConfigError

    loaded, now = load_config(config), datetime.datetime.now(datetime.UTC)
    if not searches(loaded):
        raise ConfigError(f"{str(config)!r} has no search among its posts: nobody would be asked")
    with CrawlWatch(terminal()) as watch:
        queries = list(
            planned_queries(
                loaded, runs / loaded.name, now, estimate=estimate, noticed=watch.noticed
            )
        )
    show_plan(watch.console, queries, searches(loaded), every=every)
    if json:
        write_plan(json, queries)
