"""Measure what structure distance costs beside its model, and what the cache of inputs saves.

    python scripts/bench_structure.py [--samples 12] [--systems 8] [--side 1024] [--rounds 5]

The model has the shape of DINO ViT-S/16 and random weights, which take as long as any others.
Images are generated and given decoded, so that what is measured is what comes after decoding:
loading into RGB, looking for sheets of one color, digests, squashing, the model, and distances.
The model alone is given the same images, ready as numbers, in the same batches. Both are done in
turn, and of each the best round counts. What is measured is work, the time of all processors
together, so that a busy machine does not count.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image
from rich.console import Console
from rich.table import Table as Shown

from echo_hf.metrics import InputCache, structure_distance
from echo_hf.metrics.structure_distance import VitOptions, load_vit, resized, self_similarities

LAYER, SIZE, BATCH_SIZE = 11, 224, 8
SHAPES, NOISE = 24, 3.0
AIM = 0.85


@dataclass(frozen=True)
class Measure:
    """Milliseconds of work a sample, in the best of all rounds, and images looked at."""

    model: float
    metric: float
    alone: float
    cached: float
    work_alone: float
    work_cached: float


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


def write_model(folder: Path) -> None:
    """A ViT of the shape of DINO ViT-S/16 with random weights."""
    import torch
    from transformers import ViTConfig, ViTModel
    from transformers.utils import logging

    logging.disable_progress_bar()
    torch.manual_seed(0)
    config = ViTConfig(hidden_size=384, num_attention_heads=6, intermediate_size=1536)
    ViTModel(config, add_pooling_layer=False).save_pretrained(folder)


def measured(model: str, samples: int, systems: int, side: int, rounds: int) -> Measure:
    """All measures."""
    inputs = generated(samples, side, 0)
    made = [generated(samples, side, 1 + system) for system in range(systems)]
    vit = load_vit(VitOptions(model, None, LAYER, SIZE, "cpu"))
    ready = np.stack([resized(one, SIZE).pixels for one in (*inputs, *made[0])])
    metric = _metric(model, InputCache(most_bytes=0))
    steps: list[Callable[[], object]] = [
        lambda: [
            self_similarities(vit, LAYER, ready[at : at + BATCH_SIZE])
            for at in range(0, len(ready), BATCH_SIZE)
        ],
        lambda: metric(inputs, made[0]),
    ]
    seconds = [min(one) for one in zip(*(_round(steps) for _ in range(rounds)), strict=True)]
    alone = _all_systems(model, inputs, made, None)
    cached = _all_systems(model, inputs, made, InputCache())
    counted = alone[0], cached[0], 1000 * alone[1], 1000 * cached[1]
    return Measure(*(1000 * one / samples for one in seconds), *(one / samples for one in counted))


def _round(steps: list[Callable[[], object]]) -> list[float]:
    taken = []
    for step in steps:
        started = time.process_time()
        step()
        taken.append(time.process_time() - started)
    return taken


def _all_systems(
    model: str,
    inputs: list[Image.Image],
    made: list[list[Image.Image]],
    cache: InputCache | None,
) -> tuple[int, float]:
    """Images that the model looks at for all systems, and seconds of work."""
    forwards, taken = 0, 0.0
    kept = InputCache(most_bytes=0) if cache is None else cache
    metric = _metric(model, kept)
    for outputs in made:
        forwards += len(inputs) + len(outputs) - len(kept)
        taken += _round([partial(metric, inputs, outputs)])[0]
    return forwards, taken


def _metric(model: str, cache: InputCache) -> Callable[..., object]:
    """The metric with its model loaded."""
    options = {"model": model, "device": "cpu", "batch_size": BATCH_SIZE, "n_boot": 0}
    metric = partial(structure_distance, cache=cache, **options)
    metric([], [])
    return metric


def shown(found: Measure, systems: int, side: int) -> Shown:
    """The measures as a table."""
    table = Shown(title=f"structure distance, {side} x {side} pixels, a sample")
    for heading in ("", "work, ms", "model's share", "images looked at"):
        table.add_column(heading, justify="right" if heading else "left")
    table.add_row("model alone", f"{found.model:.1f}", "", "2")
    share = f"{found.model / found.metric:.0%} (aim: {AIM:.0%})"
    table.add_row("metric, after decoding", f"{found.metric:.1f}", share, "2")
    table.add_row(f"{systems} systems", f"{found.work_alone:.1f}", "", f"{found.alone:g}")
    table.add_row(
        f"{systems} systems, cached inputs", f"{found.work_cached:.1f}", "", f"{found.cached:g}"
    )
    return table


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--samples", type=int, default=12)
    parser.add_argument("--systems", type=int, default=8)
    parser.add_argument("--side", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write_model(Path(folder))
        found = measured(folder, given.samples, given.systems, given.side, given.rounds)
    Console(width=110).print(shown(found, given.systems, given.side))


if __name__ == "__main__":
    main()
