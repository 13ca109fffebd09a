"""Ask the platforms of a config for posts; only this asks, and only `echo-hf collect` does it."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

from echo_hf.collect.crawl import Crawl
from echo_hf.collect.crawl_ledger import LEDGER, CrawlLedger
from echo_hf.collect.crawl_plan import uncovered
from echo_hf.collect.crawl_progress import CrawlWatcher
from echo_hf.collect.crawl_stats import STATS, CrawlStats, crawl_stats, write_stats
from echo_hf.collect.patience import LongWaitError, Patience
from echo_hf.collect.plan import planned
from echo_hf.collect.platforms.base import Platform
from echo_hf.collect.platforms.registry import make_platform
from echo_hf.collect.search_config import Search
from echo_hf.collect.sources.base import make_source
from echo_hf.collect.tombstones import TOMBSTONES, read_tombstones
from echo_hf.config import Config
from echo_hf.errors import PlatformError
from echo_hf.reasons import CrawlEnd
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
        EchoError: A platform cannot be asked, which the others are all the same, or another
            process works in the folder; what came is written down.
    """
    wanted, patience, refused = searches(config), patience or Patience(), list[PlatformError]()
    with folder.locked(), ExitStack() as connections:
        # A key that is missing is told before anybody is asked.
        connected = {name: _connected(make(name), patience, watch, connections) for name in wanted}
        ledger = connections.enter_context(CrawlLedger(folder.root / LEDGER))
        forgotten = read_tombstones(folder.root / TOMBSTONES)
        done = []
        for name, platform in connected.items():
            if isinstance(platform, CrawlEnd):
                done.append(crawl_stats(ledger, name, platform))
                continue
            search = wanted[name]
            crawl = Crawl(platform, make_source(name), search, ledger, watch, patience, forgotten)
            done.append(_crawled(crawl, config, refused))
        write_stats(folder.root / STATS, done)
    if refused:
        raise refused[0]
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


def _connected(
    platform: Platform, patience: Patience, watch: CrawlWatcher, connections: ExitStack
) -> Platform | CrawlEnd:
    """The platform, connected until the stack is left; or why nobody is there to be asked."""
    name = platform.name
    try:
        return connections.enter_context(
            patience.connected(platform, lambda seconds: watch.waits(name, seconds))
        )
    except LongWaitError as error:
        watch.noticed(f"{name} {error}: come back then")
        return CrawlEnd.TOLD_TO_WAIT
    except OSError as error:
        watch.noticed(f"{name} cannot be asked: {error}")
        return CrawlEnd.OUT_OF_REACH


def _crawled(crawl: Crawl, config: Config, refused: list[PlatformError]) -> CrawlStats:
    """What came of a crawl; where the platform refuses it for good, the error is added."""
    try:
        end = crawl.run(config.target.released, datetime.datetime.now(datetime.UTC))
    except PlatformError as error:
        crawl.watch.noticed(f"{crawl.platform.name} is asked no more: {error}")
        refused.append(error)
        end = CrawlEnd.KEY_REFUSED
    told = crawl.progress
    waited = (told.waits, told.waited_s, told.seconds)
    return crawl_stats(crawl.ledger, crawl.platform.name, end, *waited)
