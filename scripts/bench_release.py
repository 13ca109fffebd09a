"""Measure what writing a release costs: time and memory, against a plain copy of the same bytes.

    python scripts/bench_release.py [--samples 5000] [--kilobytes 100] [--shard-megabytes 500]

Samples are generated, each with an output image and every other one with an input as well; a
fifth of them is in each config of the benchmark, all of them in `analysis`. The plain copy reads
each image as often as the release embeds it, writes it to a file and computes the sha256 of its
bytes. Each measure runs in a process of its own, in turns; the fastest round counts, because
whatever else the machine does only adds. Memory is the peak of anonymous pages over what the
process held before.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Dataset
from own_process import forked
from PIL import Image
from rich.console import Console
from rich.table import Table as Shown

from echo_hf.config.sections import Target
from echo_hf.hub.facts import SAMPLE_CONFIGS, ReleaseFacts
from echo_hf.hub.release import write_release
from echo_hf.images.store import ImageStore
from echo_hf.tables import SAMPLES

TARGET = Target(name="Lumen Image", developer="Northlight", released="2026-03-02")
IN_BENCHMARK = 5  # one of so many samples is in each config of the benchmark
SIDE = 256
AIMS = {
    "plain copy and sha256": "",
    "write_release": "0.4 of the copy: each byte is hashed twice; memory below a shard",
}


@dataclass(frozen=True)
class Measure:
    """What one measured step took: bytes of images that it wrote, and its peak of memory."""

    name: str
    bytes: int
    seconds: float
    megabytes: float

    @property
    def rate(self) -> float:
        return self.bytes / self.seconds / 1e6


def prepare(folder: Path, count: int, size: int) -> None:
    images = ImageStore(folder / "pictures")
    drawn = drawing()
    rows = [row(number, images, drawn, size) for number in range(count)]
    pq.write_table(pa.Table.from_pylist(rows, schema=SAMPLES.schema), folder / "samples.parquet")


def row(number: int, images: ImageStore, drawn: bytes, size: int) -> dict[str, Any]:
    made = [images.put(padded(drawn, size, number, place)) for place in range(1 + number % 2)]
    full: dict[str, Any] = dict.fromkeys(SAMPLES.columns)
    lists = ("post_urls", "community_feedback", "input_images", "review")
    return {
        **full,
        **{name: [] for name in lists},
        "id": f"sample{number:016}",
        "prompt": f"image number {number}: " + "a small red boat on a paper sea, " * 8,
        "quality": "Benchmark",
        "output_images": made[:1],
        "input_images": made[1:],
        "provenance": json.dumps({"extract": {"digest": "a" * 64, "engine": {"kind": "bench"}}}),
    }


def drawing() -> bytes:
    """An image of noise, packed as photographs are."""
    noise = np.random.default_rng(0).integers(0, 256, (SIDE, SIDE, 3), np.uint8)
    sink = io.BytesIO()
    Image.fromarray(noise).save(sink, "JPEG", quality=80)
    return sink.getvalue()


def padded(drawn: bytes, size: int, *seed: int) -> bytes:
    """The same image with other bytes after its end, so that it is one of its own."""
    rest = max(size - len(drawn), 16)
    return drawn + np.random.default_rng(seed).bytes(rest)


def parts(folder: Path) -> dict[str, Dataset]:
    every = Dataset.from_parquet(str(folder / "samples.parquet"), cache_dir=str(folder / "cache"))
    numbers = range(len(every))
    chosen = {
        name: [n for n in numbers if n % IN_BENCHMARK == at]
        for at, name in enumerate(SAMPLE_CONFIGS[:2])
    }
    return {**{name: every.select(some) for name, some in chosen.items()}, "analysis": every}


def embedded(configs: dict[str, Dataset]) -> Iterator[str]:
    """The digest of each image as often as the release embeds it."""
    for rows in configs.values():
        columns = rows.select_columns(["input_images", "output_images"]).with_format("arrow")[:]
        for column in columns.columns:
            yield from (digest for some in column.to_pylist() for digest in some)


def copy(folder: Path, _: int) -> int:
    images, total = ImageStore(folder / "pictures"), 0
    (folder / "copied").mkdir()
    for number, digest in enumerate(embedded(parts(folder))):
        data = images.path(digest).read_bytes()
        hashlib.sha256(data).hexdigest()
        (folder / "copied" / str(number)).write_bytes(data)
        total += len(data)
    return total


def release(folder: Path, shard_bytes: int) -> int:
    configs, images = parts(folder), ImageStore(folder / "pictures")
    facts = ReleaseFacts("bench", TARGET)
    write_release(folder / "release", configs, images, facts, shard_bytes=shard_bytes)
    return sum(images.path(digest).stat().st_size for digest in embedded(configs))


STEPS: dict[str, Callable[[Path, int], int]] = {
    "plain copy and sha256": copy,
    "write_release": release,
}
WRITTEN = ("copied", "release")


def measured(name: str, folder: Path, shard_bytes: int) -> Measure:
    def timed() -> tuple[int, float]:
        started = time.perf_counter()
        return STEPS[name](folder, shard_bytes), time.perf_counter() - started

    for written in WRITTEN:
        shutil.rmtree(folder / written, ignore_errors=True)
    (size, seconds), megabytes = forked(timed)
    return Measure(name, size, seconds, megabytes)


def bench(count: int, size: int, shard_bytes: int, rounds: int) -> list[Measure]:
    """The fastest round of each step; memory is the largest of all rounds."""
    with tempfile.TemporaryDirectory(prefix="bench-release-") as given:
        folder = Path(given)
        prepare(folder, count, size)
        forked(lambda: list(embedded(parts(folder))))  # read into a cache once, in no step
        every = [measured(name, folder, shard_bytes) for _ in range(rounds) for name in STEPS]
    return [best([one for one in every if one.name == name]) for name in STEPS]


def best(rounds: list[Measure]) -> Measure:
    """The fastest of some rounds, with the most memory of any."""
    fastest = min(rounds, key=lambda one: one.seconds)
    return Measure(**{**asdict(fastest), "megabytes": max(one.megabytes for one in rounds)})


def shown(measures: list[Measure], count: int, shard_bytes: int) -> Shown:
    base = measures[0].rate
    table = Shown(title=f"{count:,} samples, shards of {shard_bytes / 1e6:,.0f} MB")
    for heading in ("step", "MB", "s", "MB a second", "of the copy", "peak MB", "aim"):
        table.add_column(heading, justify="left" if heading in ("step", "aim") else "right")
    for one in measures:
        table.add_row(
            one.name,
            f"{one.bytes / 1e6:,.0f}",
            f"{one.seconds:.2f}",
            f"{one.rate:,.0f}",
            f"{one.rate / base:.2f}",
            f"{one.megabytes:.0f}",
            AIMS[one.name],
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--samples", type=int, default=5000)
    parser.add_argument("--kilobytes", type=int, default=100, help="size of an image")
    parser.add_argument("--shard-megabytes", type=float, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    datasets.disable_progress_bars()
    shard_bytes = int(given.shard_megabytes * 1e6)
    measures = bench(given.samples, 1000 * given.kilobytes, shard_bytes, given.rounds)
    Console(width=110).print(shown(measures, given.samples, shard_bytes))


if __name__ == "__main__":
    main()
