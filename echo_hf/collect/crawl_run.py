"""Ask the platforms of a config for posts; only this asks, and only `echo-hf collect` does it."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

from echo_hf.collect.crawl import Crawl, CrawlWatcher, uncovered
from echo_hf.collect.crawl_ledger import LEDGER, CrawlLedger
from echo_hf.collect.crawl_stats import STATS, CrawlStats, crawl_stats, write_stats
from echo_hf.collect.patience import Patience
from echo_hf.collect.plan import planned
from echo_hf.collect.platforms.base import Platform
from echo_hf.collect.platforms.registry import make_platform
from echo_hf.collect.search_config import Search
from echo_hf.collect.sources.base import make_source
from echo_hf.collect.tombstones import TOMBSTONES, Tombstones, read_tombstones
from echo_hf.config import Config
from echo_hf.run_folder import RunFolder


def searches(config: Config) -> dict[str, Search]:
    """What a config asks of each platform, by its name."""
    return {entry.source: entry.search for entry in config.posts if entry.search is not None}


def crawl_posts(
    config: Config,
    folder: RunFolder,
    watch: CrawlWatcher,
    *,
    patience: Patience | None = None,
    make: Callable[[str], Platform] = make_platform,
) -> list[CrawlStats]:
    """Asks every platform that a config searches, and goes on where an earlier run has ended.

    Args:
        config: The config.
        folder: Of the run; it must not be locked.
        watch: Told of it.
        patience: How long to wait, and how often to try again; null for the usual.
        make: Gives the platform of a name, not yet connected.

    Returns:
        What was found on each platform; it is written down as `crawl.json`, too.

    Raises:
        EchoError: A platform cannot be asked, or another process works in the folder; what came
            before is written down.
    """
    wanted = searches(config)
    with folder.locked(), ExitStack() as connections:
        # A key that is missing is told before anybody is asked.
        platforms = [connections.enter_context(make(name)) for name in wanted]
        ledger = connections.enter_context(CrawlLedger(folder.root / LEDGER))
        forgotten = read_tombstones(folder.root / TOMBSTONES)
        done = [
            _crawled(config, platform, ledger, watch, patience or Patience(), forgotten)
            for platform in platforms
        ]
        write_stats(folder.root / STATS, done)
    return done


def open_questions(config: Config, root: Path, now: datetime.datetime) -> Iterator[tuple[str, int]]:
    """How many questions are not answered yet: of the plan, and about replies.

    Args:
        config: The config.
        root: Folder of the run.
        now: The time, with a zone.

    Yields:
        Each platform with such questions, and how many there are.
    """
    for name, search in searches(config).items():
        queries = (query.question for query in planned(search, config.target.released, now))
        if (root / LEDGER).exists():
            with CrawlLedger(root / LEDGER) as ledger:
                count = sum(1 for _ in uncovered(ledger, name, queries)) + ledger.count_open(name)
        else:
            count = sum(1 for _ in queries)
        if count:
            yield name, count


def _crawled(
    config: Config,
    platform: Platform,
    ledger: CrawlLedger,
    watch: CrawlWatcher,
    patience: Patience,
    forgotten: Tombstones,
) -> CrawlStats:
    search = searches(config)[platform.name]
    crawl = Crawl(platform, make_source(platform.name), search, ledger, watch, patience, forgotten)
    end = crawl.run(config.target.released, datetime.datetime.now(datetime.UTC))
    told = crawl.progress
    waited = (told.waits, told.waited_s, told.seconds)
    return crawl_stats(ledger, platform.name, end, *waited)
