"""An engine of another package: it takes its time, and writes down what it answered.

    {kind: paced, log: FOLDER, seconds: 0.02}

Its answers depend on the question alone, and on the bytes of its images; `recorded: true` gives
those that come with the bundled posts.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from echo_hf.engines.base import Completion, ImageRef, Request, Usage, make_engine


class PacedEngine:
    stored = True

    def __init__(self, log: str, seconds: float = 0.0, recorded: bool = False) -> None:
        self.log, self.seconds = Path(log), seconds
        self.recorded = make_engine("recorded", source="quickstart") if recorded else None

    def signature(self) -> Mapping[str, Any]:
        return {"kind": "paced", "recorded": self.recorded is not None}

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        for number, request in enumerate(requests):
            time.sleep(self.seconds)
            seen = [sha256(one.file.read_bytes()).hexdigest() for one in images(request)]
            if seen != [one.sha256 for one in images(request)]:
                yield number, Completion(None, "other images than were named", "error")
                continue
            places = sorted({str(one.file.parent) for one in images(request)})
            with (self.log / str(os.getpid())).open("a") as log:
                log.write(json.dumps([request.task, request.row, request.part, places]) + "\n")
            yield number, self.answer(request)

    def answer(self, request: Request) -> Completion:
        if self.recorded is not None:
            ((_, completion),) = self.recorded.stream([request])
            return completion
        digest = sha256(repr(request.messages).encode()).digest()
        said = {
            "relevance": {"score": 1 + digest[0] % 5, "note": digest.hex()},
            "extract": {
                "samples": [
                    {"prompt": f"a fox, {digest.hex()}", "quality": "Benchmark", "posts": [1]}
                ]
            },
            "feedback": {"kind": "task", "task": "edit", "feedback": []},
            "safety": {"hazards": []},
        }
        # Messages name the paths of images, which are not those of another run.
        rating = f"Rating: [[{1 + sum(int(one.sha256, 16) for one in images(request)) % 10}]]"
        text = json.dumps(said[request.task]) if request.task in said else rating
        return Completion(text, usage=Usage(len(request.messages), len(text)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def images(request: Request) -> list[ImageRef]:
    parts = (part for message in request.messages for part in message.parts)
    return [part for part in parts if isinstance(part, ImageRef)]


def answered(log: Path) -> list[tuple[str, str, int]]:
    """What was answered in all processes, as task, row and part."""
    lines = (line for file in log.iterdir() for line in file.read_text().splitlines())
    return [tuple(json.loads(line)[:3]) for line in lines]
