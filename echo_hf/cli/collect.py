"""Verbs about posts: ask platforms for them, what found them, what became of them."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

from echo_hf._infra.console import terminal
from echo_hf.cli.verb import DEFAULT_RUNS, ConfigFile, Runs, Told, choice, flag, watching
from echo_hf.errors import ConfigError, RunError

MOST_HOURS = 1_000_000.0  # a century; there is no time before the year 1


def collect(
    config: ConfigFile,
    runs: Runs = DEFAULT_RUNS,
    offline: bool = flag("--offline", "Make no requests: read what is there already."),
    plan: bool = flag("--plan", "Only print what would be asked, and what it costs."),
    every: bool = flag("--all", "With --plan: each query on a line of its own."),
    estimate: bool = flag("--estimate", "With --plan: ask for numbers of posts even if it costs."),
    keywords: bool = flag("--keywords", "Only show what each search term brought, once scored."),
) -> Told:
    """Ask platforms for posts, read files, merge duplicates."""
    from echo_hf.builder import build
    from echo_hf.builder.search_yield import write_yields
    from echo_hf.cli.posts_view import show_crawled, show_plan, show_yields
    from echo_hf.collect.crawl import as_json, crawl_posts, planned_queries, searches
    from echo_hf.config.loading import load_config
    from echo_hf.pipeline.run_folder import RunFolder

    if (every or estimate) and not plan:
        raise ConfigError("--all and --estimate go with --plan: add it")
    if plan and keywords:
        raise ConfigError("--plan and --keywords are two things: give one at a time")
    if keywords:
        written = write_yields(config, runs=runs)
        show_yields(terminal(), written)
        figures = json.loads(written.figures.read_bytes())
        return {"path": written.figures, "plot": written.plot, **figures}
    loaded = load_config(config)
    asked, folder = searches(loaded), Path(runs) / loaded.name
    if plan and not asked:
        raise ConfigError(f"{str(config)!r} has no search among its posts: nobody would be asked")
    with watching() as watch:
        if plan:
            now, noticed = datetime.datetime.now(datetime.UTC), watch.noticed
            queries = list(planned_queries(loaded, folder, now, estimate=estimate, noticed=noticed))
        else:
            if asked and not offline:
                show_crawled(watch.console, crawl_posts(loaded, RunFolder(folder), watch))
            build.run_until(loaded, "collect", runs=runs, offline=offline, watch=watch)
            return {"path": None, "stages": watch.stats}
    show_plan(watch.console, queries, asked, every=every)
    return {"queries": list(map(as_json, queries))}


def refresh(
    config: ConfigFile,
    apply: bool = flag("--apply", "Permanently forget the posts that are gone."),
    platforms: list[str] | None = choice(None, "Only this one; may be repeated.", "--platform"),
    older_than: float = choice(
        24.0, "HOURS: leave out posts that were asked about in this time.", min=0, max=MOST_HOURS
    ),
    budget: float = choice(0.0, "USD: most that platforms may charge for it.", min=0),
    however_many: bool = flag("--however-many", "With --apply: even when most of them are gone."),
    runs: Runs = DEFAULT_RUNS,
) -> Told:
    """Ask platforms which posts no longer exist. --apply forgets those."""
    from datetime import timedelta

    from echo_hf.apps.events import forget
    from echo_hf.builder import refresh as refreshing
    from echo_hf.cli.posts_view import show_refresh, show_removal

    with watching() as watch:
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
    elif done.gone:
        said = f"next: echo-hf refresh {config} --apply takes {len(done.gone):,} posts out for good"
        watch.console.print(said, soft_wrap=True)
    return {"platforms": done.platforms, "unasked": done.unasked, "forgotten": removal}
