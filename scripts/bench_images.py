"""Measure what metrics of images cost beside what nothing can save: decoding, or the model.

    python scripts/bench_images.py color [--samples 12] [--side 1024] [--rounds 15]
    python scripts/bench_images.py structure [--systems 8]

Images are generated: soft shapes with the noise of a camera. What is compared gets the same images
in turn, and of each the best round counts. What is measured is work, the time of all processors
together, so that a busy machine does not count.

`color` compares color shift with decoding the same files in as many threads; people mostly post
JPEG, and systems mostly answer in PNG. `structure` compares structure distance, after decoding,
with its model alone, and shows what the cache of inputs saves; the model has the shape of DINO
ViT-S/16 and random weights, which take as long as any others.
"""

from __future__ import annotations

import argparse
import io
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image
from rich.console import Console
from rich.table import Table

from echo_hf.images.loader import load_rgb
from echo_hf.metrics import InputCache, color_shift, structure_distance

OPTIONS = {"PNG": {}, "JPEG": {"quality": 92}, "WEBP": {"quality": 90}}
PAIRS = (("JPEG", "PNG"), ("PNG", "PNG"), ("WEBP", "WEBP"), ("JPEG", "JPEG"))
LAYER, SIZE, BATCH_SIZE = 11, 224, 8
SHAPES, NOISE = 24, 3.0
AIM = 0.85


def generated(count: int, side: int, seed: int) -> list[Image.Image]:
    """Soft shapes with the noise of a camera, the same each time."""
    rng = np.random.default_rng(seed)
    images = []
    for _ in range(count):
        shapes = Image.fromarray(rng.integers(20, 236, (SHAPES, SHAPES, 3), dtype=np.uint8))
        large = np.asarray(shapes.resize((side, side), Image.Resampling.BICUBIC))
        noisy = large + rng.normal(0, NOISE, large.shape)
        images.append(Image.fromarray(noisy.round().clip(0, 255).astype(np.uint8)))
    return images


def encoded(image: Image.Image, name: str) -> bytes:
    file = io.BytesIO()
    image.save(file, name, **OPTIONS[name])
    return file.getvalue()


def work(*steps: Callable[[], object], rounds: int = 1) -> list[float]:
    """Milliseconds of work of each step, in its best round."""
    best = [float("inf")] * len(steps)
    for _ in range(rounds):
        for at, step in enumerate(steps):
            started = time.process_time()
            step()
            best[at] = min(best[at], 1000 * (time.process_time() - started))
    return best


def decoded(file: bytes) -> tuple[int, int]:
    with Image.open(io.BytesIO(file)) as image:
        image.load()
        return image.size


def each(step: Callable[[bytes], object], files: list[bytes], threads: int) -> None:
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(step, files):
            pass


def color_rows(samples: int, side: int, rounds: int) -> Iterator[tuple[str, ...]]:
    for formats in PAIRS:
        inputs, outputs = (
            [encoded(one, name) for one in generated(samples, side, at)]
            for at, name in enumerate(formats)
        )
        files = [*inputs, *outputs]
        for threads in sorted({1, os.cpu_count() or 1}):
            taken = work(
                partial(each, decoded, files, threads),
                partial(each, load_rgb, files, threads),
                partial(color_shift, inputs, outputs, threads=threads, n_boot=0),
                partial(color_shift, inputs, outputs, threads=threads),
                rounds=rounds,
            )
            figures = (f"{one / len(files):.2f}" for one in taken)
            yield *formats, f"{threads}", *figures, f"{taken[0] / taken[2]:.0%}"


def write_model(folder: Path) -> None:
    """A ViT of the shape of DINO ViT-S/16 with random weights."""
    import torch
    from transformers import ViTConfig, ViTModel
    from transformers.utils import logging

    logging.disable_progress_bar()
    torch.manual_seed(0)
    config = ViTConfig(hidden_size=384, num_attention_heads=6, intermediate_size=1536)
    ViTModel(config, add_pooling_layer=False).save_pretrained(folder)


def structure_rows(
    model: str, samples: int, systems: int, side: int, rounds: int
) -> Iterator[tuple[str, ...]]:
    from echo_hf.metrics.structure_distance import VitOptions, load_vit, resize, self_similarities

    inputs = generated(samples, side, 0)
    made = [generated(samples, side, 1 + system) for system in range(systems)]
    vit = load_vit(VitOptions(model, None, LAYER, SIZE, "cpu"))
    ready = np.stack([resize(one, SIZE).pixels for one in (*inputs, *made[0])])
    options = {"model": model, "device": "cpu", "batch_size": BATCH_SIZE, "n_boot": 0}

    def metric_with(cache: InputCache) -> Callable[..., object]:
        metric = partial(structure_distance, cache=cache, **options)
        metric([], [])  # which loads the model
        return metric

    metric = metric_with(InputCache(most_bytes=0))

    def bare() -> None:
        for at in range(0, len(ready), BATCH_SIZE):
            self_similarities(vit, LAYER, ready[at : at + BATCH_SIZE])

    alone, whole = work(bare, lambda: metric(inputs, made[0]), rounds=rounds)
    yield "model alone", f"{alone / samples:.1f}", "", "2"
    share = f"{alone / whole:.0%} (aim: {AIM:.0%})"
    yield "metric, after decoding", f"{whole / samples:.1f}", share, "2"
    for named, cache in (("", InputCache(most_bytes=0)), (", cached inputs", InputCache())):
        looks, taken, metric = 0, 0.0, metric_with(cache)
        for outputs in made:
            looks += len(inputs) + len(outputs) - len(cache)
            taken += work(partial(metric, inputs, outputs))[0]
        yield f"{systems} systems{named}", f"{taken / samples:.1f}", "", f"{looks / samples:g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("metric", choices=["color", "structure"])
    parser.add_argument("--samples", type=int, default=12)
    parser.add_argument("--systems", type=int, default=8)
    parser.add_argument("--side", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    if given.metric == "color":
        heads = ["inputs", "outputs", "threads", "decoding", "load_rgb", "color_shift"]
        heads += ["with draws", f"share (aim: {AIM:.0%})"]
        rows = list(color_rows(given.samples, given.side, given.rounds))
    else:
        heads = ["", "work, ms", "model's share", "images looked at"]
        sizes = (given.samples, given.systems, given.side, given.rounds)
        with tempfile.TemporaryDirectory() as folder:
            write_model(Path(folder))
            rows = list(structure_rows(folder, *sizes))
    table = Table(*heads, title=f"{given.side} x {given.side} pixels, milliseconds of work")
    for row in rows:
        table.add_row(*row)
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
