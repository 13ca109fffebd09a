"""Measure what the engine for servers costs on top of what it drives, as ratios within one run.

    python scripts/bench_engines.py [--requests 300] [--rounds 5]

A stage is compared with a bare asyncio loop around the same client, with as many requests under
way, on a server on loopback that answers after a fixed time. Rounds alternate; the fastest counts,
because whatever else the machine does only adds. `gpu_check.py` does the same for vLLM.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
from datasets import Dataset
from rich.console import Console
from rich.table import Table as Shown

from echo_hf.collect.relevance import Relevance
from echo_hf.config.sections import Target
from echo_hf.engines.base import Request, Text
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.batch_inference import fill
from echo_hf.pipeline.stage import ModelStage
from echo_hf.tables import POSTS

TARGET = Target(name="Lumen Image", developer="Northlight", released="2026-03-02")
AIM = 0.9
CONCURRENCY = 32


@dataclass(frozen=True)
class Measure:
    """Two ways to do the same, in seconds."""

    name: str
    requests: int
    ours: float
    bare: float

    @property
    def ratio(self) -> float:
        """Share of the bare speed that is left."""
        return self.bare / self.ours


def made_up(count: int) -> Dataset:
    """Posts of thirty words."""
    rng = random.Random(0)  # noqa: S311 - reproducible, not secret
    words = ["make", "draw", "a", "small", "red", "boat", "paper", "fox", "castle", "in", "great"]
    rows = [
        {"url": f"https://example.org/{at}", "text": f"{at} {' '.join(rng.choices(words, k=30))}"}
        for at in range(count)
    ]
    return Dataset(pa.Table.from_pylist(rows, POSTS.schema))


def fastest(name: str, requests: int, rounds: int, *ways: Callable[[], None]) -> Measure:
    taken: list[list[float]] = [[], []]
    for _ in range(rounds):
        for seconds, way in zip(taken, ways, strict=True):
            started = time.perf_counter()
            way()
            seconds.append(time.perf_counter() - started)
    return Measure(name, requests, min(taken[0]), min(taken[1]))


def filled(stage: ModelStage, posts: Dataset, engine: Any) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(Store(Path(folder) / "answers.sqlite")) as store,
    ):
        stats = fill(stage, posts, engine, store)
    assert (stats.calls, stats.failures) == (len(posts), {}), stats


def asked(stage: ModelStage, posts: Dataset) -> list[Request]:
    return [one for row in stage.requests(posts.with_format("arrow")[:]) for one in row]


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
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
        finally:
            process.terminate()


async def serve(seconds: float) -> None:
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
            f"{AIM:.2f}",
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--serve", type=float, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve is not None:
        asyncio.run(serve(given.serve))
        return
    datasets.disable_progress_bars()
    measures = list(bench_openai(made_up(given.requests), given.rounds))
    Console(width=100).print(shown(measures))


if __name__ == "__main__":
    main()
