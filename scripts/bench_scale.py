"""Measure builds of many sizes: seconds and memory of each stage, and of the release.

    python scripts/bench_scale.py [--sizes 10000 100000 1000000] [--engine rules]
    python scripts/bench_scale.py --ray [--workers 1 8] [--answers 200]

Posts are generated, in no order: a third of them show a prompt with an image, the rest reply to a
recent post. Every size is a build in a process of its own, its stages one after the other; then the
same build once more, which reads results back; then its release as it may be passed on. Seconds are
those on the clock and those in which the processes worked, which other work on the machine changes
less; the growth is that of the latter. Memory is the most of each part, looked at every 20 ms,
forks every 0.5 s: all that is resident, with the pages of files that are mapped, and of that what
is anonymous, which alone the system could not take back. Engine `rules` takes what is marked,
`recorded` reads answers from a file, and `instant` gives answers that are kept as a model's are.

With `--ray`, the answers that one worker and eight workers of a Ray cluster on this machine give in
a second, 200 each and 50 ms for one, and apart from that the seconds until all of them had started.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

import datasets
import pyarrow as pa
from own_process import Held, Peak, forked
from PIL import Image
from rich.console import Console
from rich.table import Table as Shown

from echo_hf.builder.build import open_run
from echo_hf.collect.relevance import Relevance
from echo_hf.config.checks import EngineChoice
from echo_hf.config.loading import Config, load_config
from echo_hf.config.sections import BUILT_IN_STAGES as STAGES
from echo_hf.config.sections import RunnerOptions, Target
from echo_hf.engines.base import Completion, Request, make_engine, register
from echo_hf.engines.pooled import PooledEngine
from echo_hf.hub.redistribution import dehydrate
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.batch_inference import fill
from echo_hf.pipeline.progress import NullProgress
from echo_hf.pipeline.ray_runner import RayRunner
from echo_hf.samples.sample import sample_id
from echo_hf.tables import POSTS

IMAGES = 64
SIDE = 32
SECONDS_EACH = 0.05
AGAIN = "the same again"
KEPT = ("answers.sqlite", "cache", "stages", "release")
AIMS = "aims at a million posts: 600 s, 4,000 MB resident; ten times the posts: 12 times the time"
WORDS = ("small", "red", "boat", "paper", "fox", "castle", "in", "the", "snow", "near", "a", "lake")
REPLIES = ("Great result, I love it.", "The text is unreadable.", "Which model is that?", "Same.")
ANSWERS: Mapping[str, Any] = {
    "relevance": {"score": 5, "note": None},
    "roles": {"samples": [{"inputs": [], "outputs": [1], "posts": [0]}]},
    "screenshots": {"prompt": None, "inputs": [], "outputs": []},
    "feedback": {"kind": "task", "task": "text_to_image", "feedback": []},
    "safety": {"hazards": []},
}


class Part(NamedTuple):
    """What one part of a build took: seconds on the clock and of work, and its most of memory."""

    name: str
    rows: int
    seconds: float
    work: float
    most: Held


@register("instant", "no model: the same answer at once, kept as a model's are")
class InstantEngine:
    """What remains is the cost of asking, keeping and reading answers.

    Args:
        seconds: How long it takes for each.
    """

    stored = True

    def __init__(self, seconds: float = 0.0) -> None:
        self.seconds = seconds

    def signature(self) -> Mapping[str, Any]:
        return {"kind": "instant"}

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        for number, request in enumerate(requests):
            time.sleep(self.seconds)
            if request.task == "extract":
                answer = extracted(request.inputs["posts"][0]["text"])
            elif request.task == "feedback" and "comments" not in request.inputs:
                answer = {"task_phrase": "draw a small scene"}
            else:
                answer = ANSWERS[request.task]
            yield number, Completion(json.dumps(answer))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def extracted(text: str | None) -> dict[str, Any]:
    prompt = (text or "").partition("Prompt: ")[2] or "nothing"
    return {"samples": [{"prompt": prompt, "quality": "Benchmark", "posts": [0], "feedback": []}]}


def posts(count: int, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Posts: a third are roots, the rest reply to a recent post."""
    rng = random.Random(seed)  # noqa: S311 - reproducible, not secret
    for number in range(count):
        post: dict[str, Any] = {
            "url": f"https://x.com/i/status/{number + 1}",
            "author": f"author{rng.randrange(count // 10 + 1)}",
            "timestamp": 1_772_000_000 + number,
            "lang": "en",
            "keywords": ["lumen"],
            "engagement": {"likes": rng.randrange(1000)},
        }
        if number and rng.random() < 2 / 3:
            above = rng.randrange(max(0, number - 30), number)
            said = f"{rng.choice(REPLIES)} {' '.join(rng.choices(WORDS, k=25))}"
            yield {**post, "text": said, "parent_url": f"https://x.com/i/status/{above + 1}"}
        else:
            prompt = f"Draw {' '.join(rng.choices(WORDS, k=30))}, number {number}"
            image = {"path": f"{number % IMAGES}.png", "alt_text": "Output image"}
            text = f"Made with Lumen Image. Prompt: {prompt}"
            yield {**post, "text": text, "pictures": [image]}


def prepare(folder: Path, count: int, engine: str) -> Config:
    for number in range(IMAGES):
        Image.new("RGB", (SIDE, SIDE), (4 * number, 255 - 4 * number, 99)).save(
            folder / f"{number}.png"
        )
    options = {"kind": engine}
    if engine == "recorded":
        options["path"] = "answers.jsonl"
    shuffled = list(posts(count))  # nobody finds posts in the order of their times
    random.Random(0).shuffle(shuffled)  # noqa: S311
    with (folder / "posts.jsonl").open("w") as file, (folder / "answers.jsonl").open("w") as kept:
        for post in shuffled:
            file.write(json.dumps(post) + "\n")
            if engine == "recorded":
                for line in recorded(post):
                    kept.write(json.dumps(line) + "\n")
    target = {
        "name": "Lumen Image",
        "developer": "Northlight",
        "released": "2026-03-02",
        "aliases": ["lumen", "lumen-img"],
        "others": ["Paintbox"],
    }
    config = {
        "name": f"bench-{count}",
        "target": target,
        "posts": [{"source": "jsonl", "path": "posts.jsonl"}],
        "engines": {"reader": options},
    }
    (folder / "config.yaml").write_text(json.dumps(config))
    return load_config(folder / "config.yaml")


def recorded(post: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    yield {"stage": "relevance", "row": post["url"], "answer": ANSWERS["relevance"]}
    if "parent_url" not in post:
        yield {"stage": "extract", "row": post["url"], "answer": extracted(post["text"])}
        for stage in ("roles", "feedback", "safety"):
            yield {"stage": stage, "row": sample_id(post["url"]), "answer": ANSWERS[stage]}


def built(config: Config, folder: Path) -> tuple[list[Part], dict[str, float]]:
    """What the parts of a build took, and the bytes of each part of its folder, a post."""
    parts: list[Part] = []

    def took(name: str, rows: int) -> None:
        nonlocal started
        took = (now - before for now, before in zip(clocks(), started, strict=True))
        parts.append(Part(name, rows, *took, peak.taken()))
        print(f"{config.name}, {name}: {parts[-1].work:.0f} s", file=sys.stderr, flush=True)
        started = clocks()

    with Peak() as peak:
        started = clocks()
        with open_run(config, folder / "runs") as run:
            results = []
            for result in run.results(STAGES[-1]):
                results.append(result)
                took(result.stats.stage, result.stats.rows_in)
            release = run.release(results)
            took("release", len(results[-1].dataset))
            del results
        with open_run(config, folder / "runs") as run:
            again = list(run.results(STAGES[-1]))
            run.release(again)
            took(AGAIN, again[0].stats.rows_in)
            del again
        dehydrate(release.path, folder / "passed-on")
        took("dehydrate", release.manifest.configs["analysis"].rows)
    kept = {name: folder / "runs" / config.name / name for name in KEPT}
    files = {name: [*path.rglob("*")] if path.is_dir() else [path] for name, path in kept.items()}
    sizes = {name: sum(one.stat().st_size for one in some) for name, some in files.items()}
    return parts, {name: size / parts[0].rows for name, size in sizes.items()}


def clocks() -> tuple[float, float]:
    """The time on the clock, and that in which this process and those it started worked."""
    return time.perf_counter(), sum(os.times()[:4])


def shown(parts: list[Part], before: list[Part] | None) -> Iterator[tuple[str, ...]]:
    """The rows of the table of one size, with the growth of work over the size before."""
    every = [*parts, whole(parts)]
    earlier = [*before, whole(before)] if before else [None] * len(every)
    for one, smaller in zip(every, earlier, strict=True):
        growth = f"{one.work / smaller.work:.1f}" if smaller else ""
        cells = (f"{one.rows:,}", f"{one.seconds:.1f}", f"{one.work:.1f}", growth)
        yield one.name, *cells, *(f"{one:,.0f}" for one in one.most)


def whole(parts: list[Part]) -> Part:
    """All parts of one build together."""
    of_build = [one for one in parts if one.name != AGAIN]
    sums = (sum(one[at] for one in of_build) for at in (2, 3))
    return Part("all", parts[0].rows, *sums, Held(*map(max, *(one.most for one in parts))))


def on_ray(actors: int, answers: int, folder: Path) -> tuple[float, float]:
    choice = EngineChoice(kind="instant", seconds=SECONDS_EACH)
    share = {"gpus_per_actor": 0, "cpus_per_actor": 0}
    options = RunnerOptions(kind="ray", address="local", actors=actors, **share)
    stage = Relevance(Target(name="Lumen Image", developer="Northlight", released="2026-03-02"))

    def asked(first: int, count: int) -> datasets.Dataset:
        rows = [
            {"url": f"https://x.com/i/status/{nth}", "text": f"Image {nth}", "keywords": ["lumen"]}
            for nth in range(first, first + count)
        ]
        return datasets.Dataset(pa.Table.from_pylist(rows, POSTS.schema))

    with (
        RayRunner(options, folder, NullProgress()) as runner,
        runner.place_engine(make_engine(choice.kind, **choice.options), choice) as engine,
        closing(Store(folder / f"{actors}.sqlite")) as store,
    ):
        assert isinstance(engine, PooledEngine)
        started = time.perf_counter()
        fill(stage, asked(0, actors), engine, store)
        while engine.alive < actors:
            time.sleep(0.01)
        took = time.perf_counter() - started
        stats = fill(stage, asked(actors, actors * answers), engine, store)
    return took, stats.calls / stats.seconds


def ray_table(workers: Sequence[int], answers: int) -> Shown:
    """Several numbers of workers, which find the engine as that of an installed package."""
    table = Shown(title=f"Ray, {SECONDS_EACH:g} s an answer", caption="aim: 8 workers, 7 times")
    for heading in ("workers", "s to start", "answers a second", "times the first"):
        table.add_column(heading, justify="right")
    with tempfile.TemporaryDirectory(prefix="bench-scale-") as name:
        (facts := Path(name) / "bench-1.dist-info").mkdir()
        (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: bench\nVersion: 1\n")
        (facts / "entry_points.txt").write_text(
            f"[echo_hf.engines]\ninstant = bench_scale:{InstantEngine.__name__}\n"
        )
        os.environ["PYTHONPATH"] = os.pathsep.join([name, *sys.path])
        rates = {actors: on_ray(actors, answers, Path(name)) for actors in workers}
    for actors, (took, rate) in rates.items():
        times = rate / rates[workers[0]][1]
        table.add_row(f"{actors}", f"{took:.1f}", f"{rate:.1f}", f"{times:.2f}")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--engine", choices=("rules", "recorded", "instant"), default="rules")
    parser.add_argument("--ray", action="store_true", help="workers of a Ray cluster instead")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 8], help="with --ray")
    parser.add_argument("--answers", type=int, default=200, help="of each worker, with --ray")
    given = parser.parse_args()
    datasets.disable_progress_bars()
    if given.ray:
        Console(width=100).print(ray_table(given.workers, given.answers))
        return
    before = None
    for count in given.sizes:
        with tempfile.TemporaryDirectory(prefix="bench-scale-") as name:
            folder = Path(name)
            config, _ = forked(partial(prepare, folder, count, given.engine))
            (parts, sizes), _ = forked(partial(built, config, folder))
        disk = ", ".join(f"{name} {size:,.0f}" for name, size in sizes.items())
        caption = f"{AIMS}\nbytes a post on disk: {disk}"
        table = Shown(title=f"{count:,} posts, engine {given.engine}", caption=caption)
        for heading in ("part", "rows", "s", "CPU s", "growth", "resident MB", "anonymous MB"):
            table.add_column(heading, justify="left" if heading == "part" else "right")
        for row in shown(parts, before):
            table.add_row(*row)
        Console(width=100).print(table)
        before = parts


if __name__ == "__main__":
    main()
