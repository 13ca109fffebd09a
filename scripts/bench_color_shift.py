"""Measure what color shift costs beside decoding its images, which nothing can save.

    python scripts/bench_color_shift.py [--samples 12] [--side 1024] [--rounds 15]

Images are generated: soft shapes with the noise of a camera. Both are done with the same files,
the same number of threads and in turn, and of each the best round counts. What is measured is
work, the time of all processors together, so that a busy machine does not count. People mostly
post JPEG, and systems mostly answer in PNG.
"""

from __future__ import annotations

import argparse
import io
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from PIL import Image
from rich.console import Console
from rich.table import Table as Shown

from echo_hf.images.loader import load_rgb
from echo_hf.metrics import color_shift

OPTIONS = {"PNG": {}, "JPEG": {"quality": 92}, "WEBP": {"quality": 90}}
PAIRS = (("JPEG", "PNG"), ("PNG", "PNG"), ("WEBP", "WEBP"), ("JPEG", "JPEG"))
SHAPES, NOISE = 24, 3.0
AIM = 0.85


@dataclass(frozen=True)
class Measure:
    """Milliseconds of work an image, in the best of all rounds."""

    formats: tuple[str, str]
    threads: int
    decoding: float
    loading: float
    metric: float
    drawn: float


def generated(name: str, count: int, side: int, seed: int) -> list[bytes]:
    """Files of one format, the same each time."""
    rng = np.random.default_rng(seed)
    files = []
    for _ in range(count):
        shapes = Image.fromarray(rng.integers(20, 236, (SHAPES, SHAPES, 3), dtype=np.uint8))
        large = np.asarray(shapes.resize((side, side), Image.Resampling.BICUBIC))
        noisy = large + rng.normal(0, NOISE, large.shape)
        file = io.BytesIO()
        Image.fromarray(noisy.round().clip(0, 255).astype(np.uint8)).save(
            file, name, **OPTIONS[name]
        )
        files.append(file.getvalue())
    return files


def decoded(file: bytes) -> tuple[int, int]:
    """Decodes a file and does nothing with it."""
    with Image.open(io.BytesIO(file)) as image:
        image.load()
        return image.size


def measured(
    formats: tuple[str, str], samples: int, side: int, threads: int, rounds: int
) -> Measure:
    """All measures of one pair of formats."""
    inputs, outputs = (generated(name, samples, side, at) for at, name in enumerate(formats))
    files = [*inputs, *outputs]
    steps: list[Callable[[], object]] = [
        lambda: _each(decoded, files, threads),
        lambda: _each(load_rgb, files, threads),
        lambda: color_shift(inputs, outputs, threads=threads, n_boot=0),
        lambda: color_shift(inputs, outputs, threads=threads),
    ]
    seconds = [min(one) for one in zip(*(_round(steps) for _ in range(rounds)), strict=True)]
    return Measure(formats, threads, *(1000 * one / len(files) for one in seconds))


def _round(steps: list[Callable[[], object]]) -> list[float]:
    taken = []
    for step in steps:
        started = time.process_time()
        step()
        taken.append(time.process_time() - started)
    return taken


def _each(work: Callable[[bytes], object], files: list[bytes], threads: int) -> None:
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(work, files):
            pass


def shown(measures: list[Measure], side: int) -> Shown:
    """The measures as a table."""
    table = Shown(title=f"{side} x {side} pixels, milliseconds of work an image; aim: {AIM:.0%}")
    for heading in ("inputs", "outputs"):
        table.add_column(heading)
    for heading in ("threads", "decoding", "load_rgb", "color_shift", "with draws", "share"):
        table.add_column(heading, justify="right")
    for one in measures:
        table.add_row(
            *one.formats,
            str(one.threads),
            *(f"{ms:.2f}" for ms in (one.decoding, one.loading, one.metric, one.drawn)),
            f"{one.decoding / one.metric:.0%}",
        )
    return table


def main() -> None:
    """Prints a table; its last column is the share of the metric's time that decoding takes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--samples", type=int, default=12)
    parser.add_argument("--side", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    measures = [
        measured(formats, given.samples, given.side, threads, given.rounds)
        for formats in PAIRS
        for threads in sorted({1, os.cpu_count() or 1})
    ]
    Console(width=110).print(shown(measures, given.side))


if __name__ == "__main__":
    main()
