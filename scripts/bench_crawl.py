"""Measure a crawl of a platform on loopback, as ratios within one run.

    python scripts/bench_crawl.py [--posts 50000]

The same pages are asked for by the bare platform, without a crawl: what is left is the crawl's own
work (reading, the ledger, the trees). Memory is what a crawl adds to its process, once for a tenth
of the posts and once for all of them: it must not grow with them.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Crawled:
    posts: int
    requests: int
    seconds: float
    bare_seconds: float
    megabytes: float


def measured(count: int) -> Crawled:
    """A crawl in a process of its own of so many posts, which this one serves."""
    from tests.collect.platforms.simulated import ADDRESS, Service, World, registered

    world = World.of(count, seed=0)
    with tempfile.TemporaryDirectory() as folder, Service(world) as service:
        path = os.pathsep.join([str(registered(Path(folder) / "plugin")), str(ROOT)])
        environment = {**os.environ, ADDRESS: service.address, "PYTHONPATH": path}
        command = [sys.executable, __file__, "--crawl", folder]
        done = subprocess.run(
            command, env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
    result = Crawled(**json.loads(done.stdout))
    assert result.posts == len(world.reachable())
    return result


def crawl(root: Path) -> Crawled:
    """Crawls what the environment says, and then asks for the same pages again."""
    from tests.collect.platforms.crawling import config_of, crawled

    config, before = config_of(), _peak_megabytes()
    began = time.perf_counter()
    stats = crawled(root, config)
    seconds = time.perf_counter() - began
    megabytes = _peak_megabytes() - before
    posts = stats.by_terms + stats.by_replies
    return Crawled(posts, stats.spent.requests, seconds, _bare(root), megabytes)


def _bare(root: Path) -> float:
    from tests.collect.platforms.simulated import Simulated

    paths = list(_paths(root))
    began = time.perf_counter()
    with Simulated() as platform:
        for path in paths:
            json.loads(platform.get(path))
    return time.perf_counter() - began


def _paths(root: Path) -> Iterator[str]:
    from echo_hf.collect.crawl_ledger import read_stored_pages
    from tests.collect.platforms.simulated import NAME, path_of

    cursor = None
    for answer in read_stored_pages(root / "collected.sqlite", NAME):
        yield path_of(answer.ledger_row.question, cursor if answer.page else None)
        cursor = json.loads(answer.body)["cursor"]


def _peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def show(sizes: dict[int, Crawled]) -> None:
    table = Table("posts", "found", "requests", "posts/s", box=None)
    for name in ("share of the bare rate", "added memory (MB)"):
        table.add_column(name, justify="right")
    for count, one in sizes.items():
        table.add_row(
            f"{count:,}",
            f"{one.posts:,}",
            f"{one.requests:,}",
            f"{one.posts / one.seconds:,.0f}",
            f"{one.bare_seconds / one.seconds:.2f}",
            f"{one.megabytes:.0f}",
        )
    Console().print(table)


def main() -> None:
    sys.path.insert(0, str(ROOT))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--posts", type=int, default=50_000)
    parser.add_argument("--crawl", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.crawl:
        print(json.dumps(dataclasses.asdict(crawl(given.crawl))))
    else:
        show({count: measured(count) for count in (given.posts // 10, given.posts)})


if __name__ == "__main__":
    main()
