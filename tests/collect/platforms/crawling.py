"""Crawls of the simulated platform, and what came of them."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from echo_hf.collect.crawl import Patience, crawl_posts
from echo_hf.collect.crawl_ledger import CRAWL_LEDGER_FILE, CrawlStats, read_stored_pages
from echo_hf.collect.sources.base import make_source
from echo_hf.config.loading import Config, parse_config
from echo_hf.pipeline.run_folder import RunFolder
from tests.collect.platforms.simulated import (
    ADDRESS,
    FIRST_DAY,
    NAME,
    TERMS,
    Service,
    World,
    registered,
)
from tests.progress_for_tests import Heard

RELEASED = FIRST_DAY.date()
LAST_DAY = (FIRST_DAY + datetime.timedelta(days=20)).date()
PHASES = [
    {"days": 8, "window": "1d", "terms": list(TERMS[:2])},
    {"until": LAST_DAY, "window": "7d", "terms": list(TERMS)},
    {"start": FIRST_DAY.date(), "days": 8, "window": "2d", "terms": [TERMS[2]]},
]
HURRIED = Patience(attempts=3, backoff_s=0.001)


def config_of(**search: Any) -> Config:
    return config_with({"source": NAME, "search": {"phases": PHASES, **search}})


def config_with(*posts: dict[str, Any], released: datetime.date = RELEASED) -> Config:
    target = {"name": "A", "developer": "B", "released": released}
    engines = {"text": {"kind": "rules"}}
    whole = {"name": "crawled", "target": target, "posts": list(posts), "engines": engines}
    return parse_config(whole, "c.yaml")


def searching(platform: str, term: str, days: int = 1) -> Config:
    phase = {"days": days, "window": "1d", "terms": [term]}
    released = datetime.date(2025, 3, 25)
    return config_with({"source": platform, "search": {"phases": [phase]}}, released=released)


def crawled(root: Path, config: Config, watch: Heard | None = None) -> CrawlStats:
    (stats,) = crawl_posts(config, RunFolder(root), watch or Heard(), patience=HURRIED)
    return stats


def collected(root: Path) -> dict[str, Mapping[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for answer in read_stored_pages(root / CRAWL_LEDGER_FILE, NAME):
        for _, record in answer.split_records():
            for post in make_source(answer.source).posts(json.loads(record), answer.keywords):
                one = found.setdefault(post.url.rpartition("/")[2], {"missing": None, "times": 0})
                one["missing"] = post.missing
                one["times"] += 1
    return found


Serve = Callable[..., Service]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Serve]:
    with ExitStack() as running:
        monkeypatch.syspath_prepend(registered(tmp_path / "plugin"))

        def served(world: World, limit_each: int = 0) -> Service:
            service = running.enter_context(Service(world, limit_each))
            monkeypatch.setenv(ADDRESS, service.address)
            return service

        yield served
