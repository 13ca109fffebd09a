"""Ask platforms which of the collected posts are gone by now, so that they can be taken down."""

from __future__ import annotations

import datetime
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from echo_hf._infra.sqlite import Database
from echo_hf.builder.build import read_stage
from echo_hf.collect.crawl import LongWaitError, Patience
from echo_hf.collect.platforms.base import make_platform
from echo_hf.collect.sources.base import Missing
from echo_hf.collect.takedown import STAND_IN, hash_url
from echo_hf.collect.urls import WEB, name_platform, platform_of
from echo_hf.config.collection import PLATFORMS
from echo_hf.config.loading import Config, load_config
from echo_hf.errors import PlatformError
from echo_hf.pipeline.progress import ProgressListener
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.pipeline.runs import open_run_folder
from echo_hf.reasons import Reason


class RefreshEnd(Reason):
    """Why a platform is asked about no more posts for now."""

    ALL_ASKED = "all_asked", "all its posts were asked about"
    CANNOT_SAY = "cannot_say", "it has no way to say which posts are gone"
    NOT_PAID = "not_paid", "it charges for each post; --budget says how much it may take"
    LATER = "later", "the platform wants to be left alone for long; come back then"


REFRESH_LEDGER_FILE = "refreshed.sqlite"
UPSERT_CHECK = "insert or replace into checks values (?, ?, ?, ?)"
SELECT_CHECK = "select at, gone from checks where post = ?"
ONE_DAY = datetime.timedelta(hours=24)
MIN_POSTS = 20  # of fewer posts a majority means little


class RefreshLedger(Database):
    name = "record of refreshed posts"
    remedy = "ask about all posts again"
    damage = (sqlite3.DatabaseError, ValueError)  # the second for an unknown reason
    schema = """create table if not exists checks (
    post text primary key, platform text not null, at text not null, gone text
) without rowid"""

    def select_due(self, urls: Iterable[str], since: datetime.datetime) -> list[str]:
        limit = _format_time(since)
        return [url for url in urls if (check := self._find_check(url)) is None or check[0] < limit]

    def record_answers(
        self,
        platform: str,
        asked_urls: Sequence[str],
        gone: Mapping[str, Missing],
        at: datetime.datetime,
    ) -> None:
        rows = [(hash_url(url), platform, _format_time(at), gone.get(url)) for url in asked_urls]
        with self.write() as connection:
            connection.executemany(UPSERT_CHECK, rows)

    def read_gone(self, urls: Iterable[str]) -> dict[str, Missing]:
        """Return why posts are gone, by the last answer about each; the others are left out."""
        checks = ((url, self._find_check(url)) for url in urls)
        with self.connect():
            return {url: Missing(check[1]) for url, check in checks if check and check[1]}

    def _find_check(self, url: str) -> tuple[Any, ...] | None:
        return next(iter(self.execute(SELECT_CHECK, hash_url(url))), None)


def _format_time(moment: datetime.datetime) -> str:
    return moment.astimezone(datetime.UTC).isoformat(timespec="microseconds")


@dataclass
class PlatformRefresh:
    platform: str
    posts: int
    asked: int = 0
    fresh: int = 0
    left: int = 0
    end: RefreshEnd = RefreshEnd.ALL_ASKED
    gone: dict[str, Missing] = field(default_factory=dict)
    cost_usd: float | None = None
    unknown: int = 0

    @property
    def reasons(self) -> dict[Missing, int]:
        return dict(sorted(Counter(self.gone.values()).items()))

    @property
    def is_doubtful(self) -> bool:
        """Whether so many posts are gone that the key or the platform may be at fault."""
        answered = self.asked + self.fresh
        return answered >= MIN_POSTS and 2 * len(self.gone) > answered


@dataclass(frozen=True)
class RefreshResult:
    platforms: tuple[PlatformRefresh, ...]
    unasked: Mapping[str, int]

    @property
    def gone(self) -> list[str]:
        return [url for platform in self.platforms for url in platform.gone]


def refresh(
    config: Config | Path | str,
    watch: ProgressListener,
    *,
    runs: Path | str | None = None,
    only: Collection[str] = (),
    older_than: datetime.timedelta = ONE_DAY,
    budget_usd: float = 0.0,
    patience: Patience | None = None,
    make: Callable[[str], Any] = make_platform,
) -> RefreshResult:
    """Ask platforms which posts of a run are gone; after an interruption it resumes."""
    config = load_config(config)
    folder = open_run_folder(config, runs)
    for name in only:
        PLATFORMS.check(name)
    groups = _group_by_platform(folder)
    can_be_asked = only or PLATFORMS.list_names()
    asked_groups = {name: urls for name, urls in groups.items() if name in can_be_asked}
    unasked = {name: len(urls) for name, urls in sorted(groups.items()) if name not in asked_groups}
    since = datetime.datetime.now(datetime.UTC) - older_than
    results = []
    with folder.lock(), RefreshLedger(folder.root / REFRESH_LEDGER_FILE) as ledger:
        for name, urls in sorted(asked_groups.items()):
            platform, result = make(name), PlatformRefresh(name, len(urls))
            due = ledger.select_due(urls, since)
            result.fresh, result.left = len(urls) - len(due), len(due)
            if not hasattr(platform, "gone"):
                result.end = RefreshEnd.CANNOT_SAY
            elif due:
                price = platform.tariff.usd_per_post
                paid = due if not price else due[: int(min(budget_usd / price + 1e-9, len(due)))]
                result.end = RefreshEnd.ALL_ASKED if len(paid) == len(due) else RefreshEnd.NOT_PAID
                if paid:
                    _ask(platform, paid, result, ledger, watch, patience or Patience())
                result.cost_usd = None if price is None else price * result.asked
            result.gone = ledger.read_gone(urls)
            budget_usd -= result.cost_usd or 0.0
            results.append(result)
    return RefreshResult(tuple(results), unasked)


def _ask(
    platform: Any,
    due: Sequence[str],
    result: PlatformRefresh,
    ledger: RefreshLedger,
    watch: ProgressListener,
    patience: Patience,
) -> None:
    name, size, gone = result.platform, platform.most_refreshed, 0
    on_wait = partial(watch.report_wait, name)
    can_tell = getattr(platform, "can_tell", lambda _: True)
    try:
        with patience.connect(platform, on_wait):
            for batch in (due[start : start + size] for start in range(0, len(due), size)):
                answer = patience.call_until_done(partial(platform.gone, batch), on_wait)
                missing = {url: reason for url, reason in answer.items() if url in batch}
                answered = list(filter(can_tell, batch))
                ledger.record_answers(name, answered, missing, datetime.datetime.now(datetime.UTC))
                result.asked += len(answered)
                result.unknown += len(batch) - len(answered)
                result.left -= len(batch)
                gone += len(missing)
                progress = f"{name}: {gone:,} posts are gone"
                watch.report_progress(name, result.asked, progress, len(due))
    except LongWaitError:
        result.end = RefreshEnd.LATER
    except OSError as error:
        raise PlatformError(
            f"{name} does not answer ({error}): the same command resumes from here"
        ) from error


def _group_by_platform(folder: RunFolder) -> dict[str, list[str]]:
    table = read_stage(folder, "collect", ["url", "platform", "missing"], "collected", "collect")
    groups: dict[str, list[str]] = {}
    for row in table.filter(pc.is_null(table["missing"])).to_pylist():
        url, stated = row["url"], row["platform"]
        if not url.startswith(STAND_IN):
            platform = platform_of(url)
            if platform == WEB and stated:
                platform = name_platform(stated) or stated
            groups.setdefault(platform, []).append(url)
    return groups
