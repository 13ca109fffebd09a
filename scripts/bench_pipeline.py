"""Measure the pipeline's own cost: microseconds a row and peak memory of each stage.

    python scripts/bench_pipeline.py [--sizes 10000 100000]

Posts are generated; models answer at once, so that what is measured is ours. Every size is
compared, in the same run, with a bare copy of the same rows through `Dataset.map`. Each measure
runs in a process of its own; memory is the peak of its anonymous pages, over what it held before.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import datasets
import pyarrow as pa
from datasets import Dataset
from own_process import forked
from rich.console import Console
from rich.table import Table as Shown

from echo_hf.collect.collect import Collect, Merge
from echo_hf.collect.records import read_records
from echo_hf.collect.relevance import Relevance
from echo_hf.config.sections import Posts, Target
from echo_hf.curate.splits import Splits
from echo_hf.engines.base import Completion, Engine, Request, make_engine
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.result import StageResult
from echo_hf.pipeline.stage import Stage, kept_rows, keys_of, parents_of
from echo_hf.pipeline.stage_runner import run_stage
from echo_hf.samples.extract import Extract
from echo_hf.samples.threads import Threads
from echo_hf.tables import POSTS, Table

TARGET = Target(
    name="Lumen Image",
    developer="Northlight",
    released="2026-03-02",
    aliases=("lumen", "lumen-img"),
    others=("Paintbox",),
)
REPEATED = ("relevance, read back",)
AIMS = {
    "pass (rule stage)": "2 us over the copy",
    "relevance, instant model": "40 us",
    "relevance, read back": "20 ms at 68,000 rows",
    "relevance, all stored": "3 s at 68,000 rows",
    "threads": "seconds at 100,000 posts",
}


@dataclass(frozen=True)
class Pass(Stage):
    """Lets every row through: what remains is the cost of the frame."""

    name: ClassVar[str] = "pass"
    version: ClassVar[int] = 1
    inputs: ClassVar[Table] = POSTS
    outputs: ClassVar[Table] = POSTS

    def __call__(self, table: pa.Table) -> pa.Table:
        """Every row, kept."""
        return kept_rows(table.select(list(POSTS.columns)), parents_of(keys_of(table, POSTS)))


class InstantEngine:
    """A model that answers at once and always the same."""

    stored = True

    def signature(self) -> Mapping[str, Any]:
        """Fixed."""
        return {"kind": "instant"}

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        """One answer a request, in order."""
        for number, request in enumerate(requests):
            yield number, Completion(_said(request))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def _said(request: Request) -> str:
    if request.task == "relevance":
        return '{"score": 5, "note": null}'
    first = request.inputs["posts"][0]
    sample = {
        "prompt": first["text"][:60],
        "quality": "Benchmark",
        "posts": [first["number"]],
        "feedback": [],
    }
    return json.dumps({"samples": [sample]})


@dataclass(frozen=True)
class Measure:
    """What one measured step took."""

    name: str
    rows: int
    seconds: float
    megabytes: float

    @property
    def microseconds(self) -> float:
        """Time for one row."""
        return 1e6 * self.seconds / self.rows


def write_posts(path: Path, count: int, seed: int = 0) -> None:
    """Writes posts: a third are roots, the rest reply to a recent post."""
    rng = random.Random(seed)  # noqa: S311 - reproducible, not secret
    words = ["make", "draw", "a", "small", "red", "boat", "paper", "fox", "castle", "in", "great"]
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            post: dict[str, Any] = {
                "url": f"https://example.org/post/{number}",
                "author": f"author{rng.randrange(count // 10 + 1)}",
                "text": f"{number} " + " ".join(rng.choices(words, k=30)),
                "timestamp": 1_772_000_000 + number,
                "keywords": ["lumen"],
                "engagement": {"likes": rng.randrange(1000)},
            }
            if number and rng.random() < 2 / 3:
                above = rng.randrange(max(0, number - 30), number)
                post["parent_url"] = f"https://example.org/post/{above}"
            file.write(json.dumps(post) + "\n")


Step = Callable[[Path], tuple[int, float]]


def measured(name: str, step: Step, folder: Path) -> Measure:
    """Runs a step in a process of its own and returns what it took."""

    def repeated() -> tuple[int, float]:
        if name in REPEATED:  # the first time, a process loads what it needs
            step(folder)
        return step(folder)

    (rows, seconds), megabytes = forked(repeated)
    return Measure(name, rows, seconds, megabytes)


def _rows(folder: Path, name: str) -> Dataset:
    dataset = Dataset.load_from_disk(str(folder / name))
    dataset._fingerprint = name
    return dataset


def _keep(folder: Path, name: str, result: StageResult) -> int:
    result.dataset.save_to_disk(str(folder / name))
    return result.stats.rows_in


def copy(folder: Path) -> tuple[int, float]:
    """The bare copy that the others are compared with."""
    posts = _rows(folder, "posts")
    started = time.perf_counter()
    posts.with_format("arrow").map(
        _same,
        batched=True,
        features=posts.features,
        new_fingerprint="copied",
        cache_file_name=str(folder / "copied.arrow"),
    )
    return len(posts), time.perf_counter() - started


def _same(table: pa.Table) -> pa.Table:
    return table


def through(stage: Stage, reads: str, engine: Engine | None = None, fresh: bool = True) -> Step:
    """A step that runs a stage over saved rows."""

    def step(folder: Path) -> tuple[int, float]:
        rows = _rows(folder, reads)
        cache = folder / f"cache-{stage.name}"
        if fresh:
            shutil.rmtree(cache, ignore_errors=True)
        store = Store(folder / f"{stage.name}.sqlite") if engine else None
        started = time.perf_counter()
        result = run_stage(stage, rows, engine=engine, store=store, cache_dir=cache)
        return result.stats.rows_in, time.perf_counter() - started

    return step


def collect(folder: Path) -> tuple[int, float]:
    """Reads and merges a file of posts."""
    started = time.perf_counter()
    records = read_records([Posts(source="jsonl", path=folder / "posts.jsonl")])
    read = run_stage(Collect(ImageStore(folder / "pictures")), records, cache_dir=folder / "c")
    run_stage(Merge(), read.dataset, cache_dir=folder / "c")
    return len(records), time.perf_counter() - started


def prepare(folder: Path, count: int) -> None:
    """Writes the rows that the steps read."""
    write_posts(folder / "posts.jsonl", count)
    records = read_records([Posts(source="jsonl", path=folder / "posts.jsonl")])
    read = run_stage(Collect(ImageStore(folder / "pictures")), records)
    posts = run_stage(Merge(), read.dataset)
    _keep(folder, "posts", posts)
    store = Store(folder / "prepare.sqlite")
    scored = run_stage(Relevance(TARGET), posts.dataset, engine=InstantEngine(), store=store)
    _keep(folder, "scored", scored)
    threads = run_stage(Threads(), scored.dataset)
    _keep(folder, "threads", threads)
    _keep(
        folder,
        "samples",
        run_stage(Extract(TARGET), threads.dataset, engine=InstantEngine(), store=store),
    )


def steps() -> dict[str, Step]:
    """All steps by name, in the order they run."""
    relevance, instant, rules = Relevance(TARGET), InstantEngine(), make_engine("rules")
    return {
        "copy through Dataset.map": copy,
        "collect": collect,
        "pass (rule stage)": through(Pass(), "posts"),
        "relevance, instant model": through(relevance, "posts", instant),
        "relevance, all stored": through(relevance, "posts", instant),
        "relevance, read back": through(relevance, "posts", instant, fresh=False),
        "relevance, rules": through(relevance, "posts", rules),
        "threads": through(Threads(), "scored"),
        "extract, instant model": through(Extract(TARGET), "threads", instant),
        "extract, rules": through(Extract(TARGET), "threads", rules),
        "splits": through(Splits(), "samples"),
    }


def bench(count: int) -> list[Measure]:
    """All measures at one size."""
    with tempfile.TemporaryDirectory(prefix="bench-pipeline-") as given:
        folder = Path(given)
        forked(lambda: prepare(folder, count))
        return [measured(name, step, folder) for name, step in steps().items()]


def shown(measures: list[Measure]) -> Shown:
    """The measures as a table, with the ratio to the copy."""
    base = measures[0].microseconds
    table = Shown(title=f"{measures[0].rows:,} posts")
    for heading in ("step", "rows", "s", "us a row", "over copy, us", "peak MB", "aim"):
        table.add_column(heading, justify="left" if heading in ("step", "aim") else "right")
    for one in measures:
        table.add_row(
            one.name,
            f"{one.rows:,}",
            f"{one.seconds:.3f}",
            f"{one.microseconds:.2f}",
            f"{one.microseconds - base:+.2f}",
            f"{one.megabytes:.0f}",
            AIMS.get(one.name, ""),
        )
    return table


def main() -> None:
    """Prints a table for each size."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 68_000, 100_000])
    given = parser.parse_args()
    datasets.disable_progress_bars()
    for count in given.sizes:
        Console(width=110).print(shown(bench(count)))


if __name__ == "__main__":
    main()
