"""Verbs about posts: ask platforms for them, what found them, what became of them."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Annotated

import typer

from echo_hf._infra.console import terminal
from echo_hf.cli.verb import DEFAULT_RUNS, ConfigFile, Runs, Told


def collect(
    config: ConfigFile,
    runs: Runs = DEFAULT_RUNS,
    offline: Annotated[
        bool, typer.Option("--offline", help="Make no requests: read what is there already.")
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
    keywords: Annotated[
        bool,
        typer.Option("--keywords", help="Only show what each search term brought, once scored."),
    ] = False,
) -> Told:
    """Ask platforms for posts, read files, merge duplicates."""
    from echo_hf.builder import build
    from echo_hf.cli.posts_view import show_crawled
    from echo_hf.cli.progress import Watch
    from echo_hf.collect.crawl import crawl_posts, searches
    from echo_hf.config.loading import load_config
    from echo_hf.errors import ConfigError
    from echo_hf.pipeline.run_folder import RunFolder

    if (every or estimate) and not plan:
        raise ConfigError("--all and --estimate go with --plan: add it")
    if plan and keywords:
        raise ConfigError("--plan and --keywords are two things: give one at a time")
    if plan:
        return _plan(config, runs, every, estimate)
    if keywords:
        return _keywords(config, runs)
    loaded = load_config(config)
    with Watch(terminal()) as watch:
        if searches(loaded) and not offline:
            done = crawl_posts(loaded, RunFolder(Path(runs) / loaded.name), watch)
            show_crawled(watch.console, done)
        build.run_until(loaded, "collect", runs=runs, offline=offline, watch=watch)
    return {"path": None, "stages": watch.stats}


def _plan(config: Path, runs: Path, every: bool, estimate: bool) -> Told:
    from echo_hf.cli.posts_view import show_plan
    from echo_hf.cli.progress import Watch
    from echo_hf.collect.crawl import searches
    from echo_hf.collect.query_plan import as_json, planned_queries
    from echo_hf.config.loading import load_config
    from echo_hf.errors import ConfigError

    loaded, now = load_config(config), datetime.datetime.now(datetime.UTC)
    if not searches(loaded):
        raise ConfigError(f"{str(config)!r} has no search among its posts: nobody would be asked")
    with Watch(terminal()) as watch:
        queries = list(
            planned_queries(
                loaded, runs / loaded.name, now, estimate=estimate, noticed=watch.noticed
            )
        )
    show_plan(watch.console, queries, searches(loaded), every=every)
    return {"queries": list(map(as_json, queries))}


MOST_HOURS = 1_000_000.0  # a century; there is no time before the year 1


def _keywords(config: Path, runs: Path) -> Told:
    """Shows what each search term brought: posts, share on topic, and for how long."""
    import json

    from echo_hf.builder.search_yield import write_yields
    from echo_hf.cli.posts_view import show_yields

    written = write_yields(config, runs=runs)
    show_yields(terminal(), written)
    figures = json.loads(written.figures.read_bytes())
    return {"path": written.figures, "plot": written.plot, **figures}


def refresh(
    config: ConfigFile,
    apply: Annotated[
        bool, typer.Option("--apply", help="Permanently forget the posts that are gone.")
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
) -> Told:
    """Ask platforms which posts no longer exist. --apply forgets those."""
    from datetime import timedelta

    from echo_hf.builder import refresh as refreshing
    from echo_hf.cli.posts_view import forget, show_refresh, show_removal, what_next
    from echo_hf.cli.progress import Watch
    from echo_hf.errors import RunError

    with Watch(terminal()) as watch:
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
    removal = forget(done.gone, config, runs=runs) if apply and done.gone else None
    if removal is not None:
        show_removal(watch.console, removal, config)
    elif next_step := what_next(done, config):
        watch.console.print(next_step, soft_wrap=True)
    return {"platforms": done.platforms, "unasked": done.unasked, "forgotten": removal}
