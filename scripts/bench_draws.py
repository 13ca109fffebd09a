"""Measure what several outputs of a sample cost in time and memory against one.

    python scripts/bench_draws.py [--samples 1000] [--systems 8] [--outputs 4]

A benchmark is invented, systems draw small images and a judge rates them, both without a model, and
the run is scored: what is measured is our own work. Each number of outputs has a process of its
own, so that its peak of memory is its own. What counts is the ratio to one output, which may be no
more than the number of outputs.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

from datasets import Dataset
from own_process import forked
from PIL import Image
from rich.console import Console
from rich.table import Table as Screen

from echo_hf.config.evaluation import EvaluationConfig
from echo_hf.config.sections import Target
from echo_hf.config.systems import SystemConfig
from echo_hf.engines.base import Completion, Request, Usage
from echo_hf.engines.base import register as register_engine
from echo_hf.hub.facts import ReleaseFacts
from echo_hf.hub.release import write_release
from echo_hf.images.store import ImageStore
from echo_hf.judging.judge import judge
from echo_hf.judging.score import score
from echo_hf.samples.sample import sample_digest
from echo_hf.systems.base import GenerationResult, Task
from echo_hf.systems.generate import generate
from echo_hf.systems.registry import register
from echo_hf.tables import SAMPLES, Outcome

TARGET = Target(name="Lumen Image", developer="Northlight", released="2026-03-02")
PARTS = ("generate", "judge", "score", "all of it")
KIND = "bench"


class PlainSystem:
    """Draws a color that depends on system, prompt and draw."""

    concurrency, determinism = 1, "the same every time"

    def __init__(self, config: SystemConfig) -> None:
        self.name = config.name

    def signature(self) -> Mapping[str, Any]:
        return {"adapter": KIND, "model": self.name}

    def preflight(self) -> None:
        pass

    def draw(self, task: Task) -> GenerationResult:
        words = f"{self.name} {task.prompt} {task.draw}"
        color, sink = hashlib.sha256(words.encode()).digest(), io.BytesIO()
        Image.frombytes("RGB", (2, 4), color[:24]).save(sink, "PNG")
        return GenerationResult(Outcome.OK, sink.getvalue(), seed=task.draw, cost_usd=0.01)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class PlainJudge:
    """Rates an output by a digit of its digest."""

    stored = True
    usd_per_million_prompt_tokens = usd_per_million_completion_tokens = 0.0

    def signature(self) -> Mapping[str, Any]:
        return {"kind": KIND}

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        for number, request in enumerate(requests):
            rating = 1 + int(request.images[-1].sha256[:8], 16) % 10
            yield number, Completion(f"As asked for. [[{rating}]]", usage=Usage(900, 40))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def write_benchmark(folder: Path, samples: int) -> Path:
    empty = {**dict.fromkeys(SAMPLES.columns), "quality": "Benchmark"}
    empty |= {name: [] for name in ("post_urls", "community_feedback", "picture_sources")}
    empty |= {"input_images": [], "output_images": []}
    rows = [
        {
            **empty,
            "id": f"sample{number:06}",
            "prompt": f"a boat, {number}",
            "sample_digest": sample_digest(f"a boat, {number}", []),
        }
        for number in range(samples)
    ]
    splits = {
        split: Dataset.from_dict(
            {name: [row[name] for row in chosen] for name in SAMPLES.columns},
            features=SAMPLES.features,
        )
        for split, chosen in (("text_to_image", rows), ("image_to_image", []))
    }
    images, facts = ImageStore(folder / "none"), ReleaseFacts(name="bench", target=TARGET)
    return write_release(folder / "release", splits, images, facts).path


def measure(release: Path, runs: Path, systems: int, outputs: int) -> list[float]:
    """Return the processor seconds of each part, and of all, with that many outputs."""
    register(KIND, "for this measurement")(PlainSystem)
    register_engine(KIND)(lambda **_: PlainJudge())
    known = {"developer": "Northlight", "status": "current"}
    config = EvaluationConfig.model_validate(
        {
            "name": f"outputs_{outputs}",
            "benchmark": str(release),
            "systems": [
                {"name": f"s{number}", "adapter": KIND, **known} for number in range(systems)
            ],
            "judges": [{"name": "j", "engine": {"kind": KIND}, **known}],
            "outputs": outputs,
        }
    )
    seconds = [time.process_time()]
    for work in (generate, judge, score):
        work(config, runs=runs)
        seconds.append(time.process_time())
    parts = [after - before for before, after in pairwise(seconds)]
    return [*parts, sum(parts)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--systems", type=int, default=8)
    parser.add_argument("--outputs", type=int, default=4)
    given, measured = parser.parse_args(), []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        release = write_benchmark(folder, given.samples)
        for outputs in (1, given.outputs):
            step = partial(measure, release, folder / "runs", given.systems, outputs)
            measured.append(forked(step))
    (first, *_), (several, *_) = measured
    screen = Screen("", "1 output", f"{given.outputs} outputs", "ratio", box=None)
    for name, before, after in zip(PARTS, first, several, strict=True):
        screen.add_row(name, f"{before:.1f} s", f"{after:.1f} s", f"{after / before:.2f}")
    memory = [max(megabytes, 1) for _, megabytes in measured]
    ratio = f"{memory[1] / memory[0]:.2f}"
    screen.add_row("more memory", f"{memory[0]:,.0f} MB", f"{memory[1]:,.0f} MB", ratio)
    Console().print(screen)


if __name__ == "__main__":
    main()
