"""Measure what the engines cost on top of what they drive, as ratios within one run.

    python scripts/bench_engines.py [--only vllm] [--model Qwen/Qwen2.5-VL-7B-Instruct]

`vllm`: a stage, with planner, window, store and all, against one bare `LLM.chat` over the same
conversations, by the same loaded model, with an empty prefix cache each time. Without `--model` it
is a tiny one of random weights, so that nearly all of the time is not the model's: the worst case.
`openai`: a stage against a bare asyncio loop around the same client, with as many requests under
way, on a server on loopback that answers after a fixed time. Rounds alternate; the
fastest counts, because whatever else the machine does only adds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import datasets
import numpy as np
import pyarrow as pa
from datasets import Dataset
from PIL import Image
from pydantic import BaseModel, Field
from rich.console import Console
from rich.table import Table as Shown

from echo_hf.collect.collect import Collect, Merge
from echo_hf.collect.records import read_records
from echo_hf.collect.relevance import Relevance
from echo_hf.config.sections import Posts, Target
from echo_hf.engines.base import ImageRef, Message, Request, Text
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.answers import Failure
from echo_hf.pipeline.batch_inference import fill
from echo_hf.pipeline.stage import ModelStage, kept_rows, keys_of, parents_of
from echo_hf.pipeline.stage_runner import run_stage
from echo_hf.prompts import Prompt
from echo_hf.tables import POSTS, Table

ROOT = Path(__file__).resolve().parent.parent
TARGET = Target(name="Lumen Image", developer="Northlight", released="2026-03-02")
AIMS = {"vllm": 0.95, "openai": 0.9}
TINY = {"dtype": "float32", "max_model_len": 8192, "max_num_seqs": 16, "enforce_eager": True}
REAL = {"max_model_len": 16_384}
SIDE = 448
CONCURRENCY = 32


class Score(BaseModel):
    """A number, which even a model of random weights brings to an end."""

    score: Annotated[int, Field(ge=1, le=5)]


@dataclass(frozen=True)
class Look(ModelStage):
    """Asks about the first image of each post."""

    name: ClassVar[str] = "look"
    version: ClassVar[int] = 1
    inputs: ClassVar[Table] = POSTS
    outputs: ClassVar[Table] = POSTS
    answer: ClassVar[type[BaseModel]] = Score

    images: ImageStore

    @property
    def prompt(self) -> Prompt:
        """The instructions."""
        return Prompt("look", "Rate from 1 to 5 how red the image is. Answer in JSON. " * 8)

    def requests(self, table: pa.Table) -> list[list[Request]]:
        """One request a post."""
        system = Message("system", (Text(self.prompt.text),))
        shown = [post[0]["sha256"] for post in table["pictures"].to_pylist()]
        references = (ImageRef(digest, self.images.path(digest)) for digest in shown)
        users = (Message("user", (reference, Text("The image."))) for reference in references)
        return [[Request("look", (system, user), self.answer, 64)] for user in users]

    def finish(self, table: pa.Table, answers: list[list[BaseModel | Failure]]) -> pa.Table:
        """The posts as they were."""
        del answers
        return kept_rows(table.select(list(POSTS.columns)), parents_of(keys_of(table, POSTS)))


@dataclass(frozen=True)
class Measure:
    """Two ways to do the same, in seconds."""

    name: str
    requests: int
    ours: float
    bare: float
    aim: float

    @property
    def ratio(self) -> float:
        """Share of the bare speed that is left."""
        return self.bare / self.ours


def write_posts(folder: Path, count: int) -> Dataset:
    """Posts of thirty words with an image of noise each."""
    rng = random.Random(0)  # noqa: S311 - reproducible, not secret
    noise = np.random.default_rng(0)
    words = ["make", "draw", "a", "small", "red", "boat", "paper", "fox", "castle", "in", "great"]
    with (folder / "posts.jsonl").open("w", encoding="utf-8") as file:
        for number in range(count):
            pixels = noise.integers(0, 255, (SIDE, SIDE, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / f"{number}.jpg", quality=90)
            text = f"{number} " + " ".join(rng.choices(words, k=30))
            url, images = f"https://example.org/post/{number}", [{"path": f"{number}.jpg"}]
            file.write(json.dumps({"url": url, "text": text, "pictures": images}) + "\n")
    records = read_records([Posts(source="jsonl", path=folder / "posts.jsonl")])
    read = run_stage(Collect(ImageStore(folder / "pictures")), records)
    return run_stage(Merge(), read.dataset).dataset


def fastest(
    name: str, requests: int, aim: float, rounds: int, *ways: Callable[[], None]
) -> Measure:
    """Does the same in both ways in turn."""
    taken: list[list[float]] = [[], []]
    for _ in range(rounds):
        for seconds, way in zip(taken, ways, strict=True):
            started = time.perf_counter()
            way()
            seconds.append(time.perf_counter() - started)
    return Measure(name, requests, min(taken[0]), min(taken[1]), aim)


def filled(stage: ModelStage, posts: Dataset, engine: Any) -> None:
    """A stage's answers through the engine into a store of their own."""
    with tempfile.TemporaryDirectory() as folder:
        stats = fill(stage, posts, engine, Store(Path(folder) / "answers.sqlite"))
    assert (stats.calls, stats.failures) == (len(posts), {}), stats


def asked(stage: ModelStage, posts: Dataset) -> list[Request]:
    """What a stage asks."""
    return [one for row in stage.requests(posts.with_format("arrow")[:]) for one in row]


def bench_vllm(folder: Path, posts: Dataset, model: str | None, rounds: int) -> Iterator[Measure]:
    """A stage of texts, and one of images."""
    from echo_hf.engines.vllm import VllmEngine

    options: dict[str, Any] = REAL if model else TINY
    source = model or str(_tiny_model(folder))
    with VllmEngine(model=source, **options) as engine:
        stages = {
            "vllm, texts": Relevance(TARGET),
            "vllm, images": Look(ImageStore(folder / "pictures")),
        }
        for name, stage in stages.items():
            list(engine.stream(asked(stage, posts.select(range(2)))))
            yield _against_chat(name, engine, stage, posts, rounds)


def _against_chat(
    name: str, engine: Any, stage: ModelStage, posts: Dataset, rounds: int
) -> Measure:
    from echo_hf.engines.pixels import sent_reference
    from echo_hf.engines.vllm import conversation, sampling

    llm = engine._loaded
    family = "qwen2_5_vl"  # images of 448 x 448 need no resizing: both only decode them
    requests = asked(stage, posts)

    def ours() -> None:
        llm.reset_prefix_cache()
        llm.llm_engine.reset_mm_cache()
        filled(stage, posts, engine)

    def bare() -> None:
        llm.reset_prefix_cache()
        llm.llm_engine.reset_mm_cache()
        talks = [
            conversation(one, lambda ref: sent_reference(ref, family=family)) for one in requests
        ]
        answers = llm.chat(
            talks, [sampling(one, engine.options) for one in requests], use_tqdm=False
        )
        assert len(answers) == len(requests)

    return fastest(name, len(requests), AIMS["vllm"], rounds, ours, bare)


def _tiny_model(folder: Path) -> Path:
    sys.path.append(str(ROOT))
    from tests.tiny_models import write_tiny_qwen2_5_vl

    return write_tiny_qwen2_5_vl(folder / "tiny-qwen")


def bench_openai(posts: Dataset, rounds: int) -> Iterator[Measure]:
    """A server that answers at once, and one that takes its time."""
    from echo_hf.engines.openai import OpenAIEngine

    stage = Relevance(TARGET)
    requests = asked(stage, posts)
    for seconds in (0.0, 0.25):
        with served(seconds) as url:
            options = {"model": "m", "base_url": url, "api_key_env": None}
            engine = OpenAIEngine(**options, concurrency=CONCURRENCY)
            with engine:
                yield fastest(
                    f"openai, {seconds} s an answer",
                    len(requests),
                    AIMS["openai"],
                    rounds,
                    lambda engine=engine: filled(stage, posts, engine),
                    lambda url=url: asyncio.run(_bare_loop(url, requests)),
                )


async def _bare_loop(url: str, requests: list[Request]) -> None:
    from openai import AsyncOpenAI

    room = asyncio.Semaphore(CONCURRENCY)
    async with AsyncOpenAI(base_url=url, api_key="none") as client:

        async def answer(request: Request) -> str | None:
            talk: Any = [
                {"role": message.role, "content": part.text}
                for message in request.messages
                for part in message.parts
                if isinstance(part, Text)
            ]
            async with room:
                said = await client.chat.completions.create(
                    model="m", messages=talk, max_tokens=request.max_tokens, temperature=0
                )
            return said.choices[0].message.content

        answers = await asyncio.gather(*map(answer, requests))
    assert all(answers)


@contextmanager
def served(seconds: float) -> Iterator[str]:
    """A server in a process of its own, by its address."""
    command = [sys.executable, __file__, "--serve", str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
        process.terminate()


async def serve(seconds: float) -> None:
    """Answers every request with the same completion, after so many seconds."""
    message = {"role": "assistant", "content": '{"score": 5, "note": null}'}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    usage = {"prompt_tokens": 600, "completion_tokens": 12, "total_tokens": 612}
    body = json.dumps(
        {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": "m",
            "choices": [choice],
            "usage": usage,
        }
    ).encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not reader.at_eof():
            try:
                asked = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                break
            lines = asked.lower().split(b"\r\n")
            length = next(line for line in lines if line.startswith(b"content-length:"))
            await reader.readexactly(int(length.partition(b":")[2]))
            await asyncio.sleep(seconds)
            writer.write(head % len(body) + body)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def shown(measures: list[Measure]) -> Shown:
    """The measures as a table."""
    table = Shown(title="share of the bare speed")
    for heading in ("engine", "requests", "ours, s", "bare, s", "ratio", "aim"):
        table.add_column(heading, justify="left" if heading == "engine" else "right")
    for one in measures:
        table.add_row(
            one.name,
            f"{one.requests:,}",
            f"{one.ours:.2f}",
            f"{one.bare:.2f}",
            f"{one.ratio:.3f}",
            f"{one.aim:.2f}",
        )
    return table


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", choices=list(AIMS))
    parser.add_argument("--model", help="a real model for vllm, on the Hub or in a folder")
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--serve", type=float, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve is not None:
        asyncio.run(serve(given.serve))
        return
    if not given.model:  # threads that share such small sums mostly wait for each other
        os.environ |= {"OMP_NUM_THREADS": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
    datasets.disable_progress_bars()
    measures: list[Measure] = []
    with tempfile.TemporaryDirectory(prefix="bench-engines-") as name:
        folder = Path(name)
        posts = write_posts(folder, given.requests)
        if given.only != "openai":
            measures += bench_vllm(folder, posts, given.model, given.rounds)
        if given.only != "vllm":
            measures += bench_openai(posts, given.rounds)
    Console(width=100).print(shown(measures))


if __name__ == "__main__":
    main()
