"""Ask platforms which of the collected posts are gone by now, so that they can be forgotten."""

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
from echo_hf.builder.build import stage_table
from echo_hf.collect.crawl import LongWaitError, Patience
from echo_hf.collect.platforms.base import make_platform
from echo_hf.collect.takedown import STAND_IN, hashed
from echo_hf.collect.urls import is_x_name, platform_of
from echo_hf.config.collection import PLATFORMS
from echo_hf.config.loading import Config, load_config
from echo_hf.errors import PlatformError
from echo_hf.pipeline.progress import ProgressListener
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.pipeline.runs import run_folder
from echo_hf.reasons import Missing, RefreshEnd

RECORD = "refreshed.sqlite"
KEEP = "insert or replace into checks values (?, ?, ?, ?)"
FIND = "select at, gone from checks where post = ?"


class RefreshRecord(Database):
    name = "record of refreshed posts"
    remedy = "ask about all posts again"
    damage = (sqlite3.DatabaseError, ValueError)  # the second: a reason that there is not
    schema = """create table if not exists checks (
    post text primary key, platform text not null, at text not null, gone text
) without rowid"""

    def due(self, urls: Iterable[str], since: datetime.datetime) -> list[str]:
        limit = _written(since)
        return [url for url in urls if (found := self._found(url)) is None or found[0] < limit]

    def keep(
        self,
        platform: str,
        asked: Sequence[str],
        gone: Mapping[str, Missing],
        at: datetime.datetime,
    ) -> None:
        rows = [(hashed(url), platform, _written(at), gone.get(url)) for url in asked]
        with self.transaction() as connection:
            connection.executemany(KEEP, rows)

    def gone(self, urls: Iterable[str]) -> dict[str, Missing]:
        """Why posts are gone, by the last answer about each; others are left out."""
        said = ((url, self._found(url)) for url in urls)
        with self.opened():
            return {url: Missing(found[1]) for url, found in said if found and found[1]}

    def _found(self, url: str) -> tuple[Any, ...] | None:
        return next(iter(self.execute(FIND, hashed(url))), None)


def _written(moment: datetime.datetime) -> str:
    return moment.astimezone(datetime.UTC).isoformat(timespec="microseconds")


ONE_DAY = datetime.timedelta(hours=24)
FEWEST = 20  # posts of which a majority says something


@dataclass
class Refreshed:
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
        """Whether so many are gone that the key or the platform may be at fault."""
        known = self.asked + self.fresh
        return known >= FEWEST and 2 * len(self.gone) > known


@dataclass(frozen=True)
class Refresh:
    platforms: tuple[Refreshed, ...]
    unasked: Mapping[str, int]

    @property
    def gone(self) -> list[str]:
        return [url for one in self.platforms for url in one.gone]


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
) -> Refresh:
    """Asks platforms which posts of a run are gone; ended at any moment, it goes on from there."""
    config = load_config(config)
    folder = run_folder(config, runs)
    for name in only:
        PLATFORMS.check(name)
    groups = _by_platform(folder)
    can_be_asked = only or PLATFORMS.names()
    asked = {name: urls for name, urls in groups.items() if name in can_be_asked}
    rest = {name: len(urls) for name, urls in sorted(groups.items()) if name not in asked}
    since = datetime.datetime.now(datetime.UTC) - older_than
    done = []
    with folder.locked(), RefreshRecord(folder.root / RECORD) as record:
        for name, urls in sorted(asked.items()):
            platform, result = make(name), Refreshed(name, len(urls))
            due = record.due(urls, since)
            result.fresh, result.left = len(urls) - len(due), len(due)
            if not hasattr(platform, "gone"):
                result.end = RefreshEnd.CANNOT_SAY
            elif due:
                price = platform.tariff.usd_per_post
                paid = due if not price else due[: int(min(budget_usd / price + 1e-9, len(due)))]
                result.end = RefreshEnd.ALL_ASKED if len(paid) == len(due) else RefreshEnd.NOT_PAID
                if paid:
                    _ask(platform, paid, result, record, watch, patience or Patience())
                result.cost_usd = None if price is None else price * result.asked
            result.gone = record.gone(urls)
            budget_usd -= result.cost_usd or 0.0
            done.append(result)
    return Refresh(tuple(done), rest)


def _ask(
    platform: Any,
    due: Sequence[str],
    result: Refreshed,
    record: RefreshRecord,
    watch: ProgressListener,
    patience: Patience,
) -> None:
    name, most, gone = result.platform, platform.most_refreshed, 0
    waits = partial(watch.waits, name)
    can_tell = getattr(platform, "can_tell", lambda _: True)
    try:
        with patience.connected(platform, waits):
            for batch in (due[at : at + most] for at in range(0, len(due), most)):
                answer = patience.until_done(partial(platform.gone, batch), waits)
                said = {url: why for url, why in answer.items() if url in batch}
                known = list(filter(can_tell, batch))
                record.keep(name, known, said, datetime.datetime.now(datetime.UTC))
                result.asked += len(known)
                result.unknown += len(batch) - len(known)
                result.left -= len(batch)
                gone += len(said)
                watch.advanced(name, result.asked, f"{name}: {gone:,} posts are gone", len(due))
    except LongWaitError:
        result.end = RefreshEnd.LATER
    except OSError as error:
        raise PlatformError(
            f"{name} does not answer ({error}): the same command resumes from here"
        ) from error


def _by_platform(folder: RunFolder) -> dict[str, list[str]]:
    table = stage_table(folder, "collect", ["url", "platform", "missing"], "collected", "collect")
    groups: dict[str, list[str]] = {}
    for row in table.filter(pc.is_null(table["missing"])).to_pylist():
        url, said = row["url"], row["platform"]
        if not url.startswith(STAND_IN):
            known = platform_of(url)
            if known == "web" and said:
                known = "x" if is_x_name(said) else said
            groups.setdefault(known, []).append(url)
    return groups
