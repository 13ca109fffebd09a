"""Build a benchmark with an engine that takes its time, to be killed in the middle.

    python slow_build.py CONFIG RUNS LOG SECONDS

The engine keeps eight requests in flight and answers them last first. It writes a line to LOG for
each request that it is asked. Its answers are those that come with the bundled posts,
kept like a model's; but the very first one in RUNS is garbage, whatever process gives it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Self

import datasets

import echo_hf
from echo_hf.engines.base import Completion, Engine, Request, make_engine, register

IN_FLIGHT = 8


class SlowEngine:
    stored = True

    def __init__(self, log: str, seconds: float, runs: str) -> None:
        self.log, self.seconds = Path(log), seconds
        self.spoilt = Path(runs) / "spoilt"
        self.recorded: Engine = make_engine("recorded", source="quickstart")

    def signature(self) -> Mapping[str, Any]:
        return {**self.recorded.signature(), "kind": "slow"}

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        waiting = enumerate(requests)
        while group := list(islice(waiting, IN_FLIGHT)):
            for number, request in reversed(group):
                with self.log.open("a") as log:
                    log.write(f"{request.task} {hash(request.messages)}\n")
                time.sleep(self.seconds)
                for _, completion in self.recorded.stream([request]):
                    yield number, self._spoiling(completion)

    def _spoiling(self, completion: Completion) -> Completion:
        if self.spoilt.exists():
            return completion
        self.spoilt.touch()
        return Completion("Hm.")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    config, runs, log, seconds = sys.argv[1:]
    datasets.disable_progress_bars()
    register("slow")(lambda **_: SlowEngine(log, float(seconds), runs))
    echo_hf.build(config, runs=runs)
