"""Measure builds of many sizes: seconds and memory of each stage, of the release, and without text.

    python scripts/bench_scale.py [--sizes 10000 100000 1000000] [--engine rules]

Posts are generated: a third of them show a prompt with an image, the rest reply to a recent post.
Every size is a build in a process of its own, its stages one after the other; then the same build
once more, which reads all results back; then its release as it may be passed on. Memory is the
most of each part, looked at every 5 ms: all that is resident, with the pages of files that are
mapped, and of that what is anonymous, which alone the system could not take back.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self

import datasets
from own_process import Held, Peak, forked
from PIL import Image
from rich.console import Console
from rich.table import Table as Shown

from echo_hf.builder.build import opened
from echo_hf.builder.steps import STAGES
from echo_hf.config.loading import Config, load_config
from echo_hf.engines.base import Completion, Request, register
from echo_hf.hub.redistribution import dehydrate
from echo_hf.samples.sample import sample_id

IMAGES = 64
SIDE = 32
GROWTH = 12
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
    """What remains is the cost of asking, keeping and reading answers."""

    stored = True

    def signature(self) -> Mapping[str, Any]:
        """Fixed."""
        return {"kind": "instant"}

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        """One answer a request, in order."""
        for number, request in enumerate(requests):
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
    """The sample of a thread that begins with this text."""
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
    """Writes posts, their images, and for `recorded` answers about every post and its sample."""
    for number in range(IMAGES):
        Image.new("RGB", (SIDE, SIDE), (4 * number, 255 - 4 * number, 99)).save(
            folder / f"{number}.png"
        )
    options = {"kind": engine}
    if engine == "recorded":
        options["path"] = "answers.jsonl"
    with (folder / "posts.jsonl").open("w") as file, (folder / "answers.jsonl").open("w") as kept:
        for post in posts(count):
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
    """The answers about a post, and where it is a root about its thread and sample."""
    yield {"stage": "relevance", "row": post["url"], "answer": ANSWERS["relevance"]}
    if "parent_url" not in post:
        yield {"stage": "extract", "row": post["url"], "answer": extracted(post["text"])}
        for stage in ("roles", "feedback", "safety"):
            yield {"stage": stage, "row": sample_id(post["url"]), "answer": ANSWERS[stage]}


def built(folder: Path, count: int, engine: str) -> list[Part]:
    """What the parts of a build of this size took."""
    config, parts = prepare(folder, count, engine), list[Part]()

    def took(name: str, rows: int) -> None:
        nonlocal started
        parts.append(Part(name, rows, time.perf_counter() - started, peak.taken()))
        print(f"{count:,} {name}: {rows:,} rows, {parts[-1].seconds:.1f} s, {parts[-1].most}", flush=True)
        started = time.perf_counter()

    with Peak() as peak:
        started = time.perf_counter()
        with opened(config, folder / "runs") as run:
            results = []
            for result in run.results(STAGES[-1]):
                results.append(result)
                took(result.stats.stage, result.stats.rows_in)
            release = run.release(results)
            took("release", len(results[-1].dataset))
            del results
        with opened(config, folder / "runs") as run:
            again = list(run.results(STAGES[-1]))
            run.release(again)
            took("the same again", count)
            del again
        dehydrate(release.path, folder / "passed-on")
        took("dehydrate", release.manifest.configs["analysis"].rows)
    return parts


def shown(every: Mapping[int, list[Part]], engine: str) -> Shown:
    """All sizes beside each other, with the growth from one to the next."""
    table = Shown(title=f"engine {engine}")
    table.add_column("part")
    for count in every:
        for heading in (f"{count:,} posts, s", "growth", "resident MB", "anonymous MB"):
            table.add_column(heading, justify="right")
    for number, name in enumerate([*(part.name for part in next(iter(every.values()))), "all"]):
        cells, before = [], None
        for parts in every.values():
            seconds = sum(one.seconds for one in parts)
            most = Held(*map(max, *(one.most for one in parts)))
            if number < len(parts):
                seconds, most = parts[number].seconds, parts[number].most
            growth = f"{seconds / before:.1f}" if before else ""
            cells += [f"{seconds:.1f}", growth, f"{most.resident:,.0f}", f"{most.anonymous:,.0f}"]
            before = seconds
        table.add_row(name, *cells)
    return table


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--engine", choices=("rules", "recorded", "instant"), default="rules")
    given = parser.parse_args()
    datasets.disable_progress_bars()
    every = {}
    for count in given.sizes:
        with tempfile.TemporaryDirectory(prefix="bench-scale-") as folder:
            every[count], _ = forked(lambda: built(Path(folder), count, given.engine))  # noqa: B023
    Console(width=60 + 50 * len(every)).print(shown(every, given.engine), AIMS)


if __name__ == "__main__":
    main()
