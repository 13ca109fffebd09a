"""A run with outputs of two systems, and judges that say what a test tells them to say."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pyarrow.parquet as pq
import yaml

from echo_hf.engines.base import Completion, ImageRef, Request, Text, Usage, register
from echo_hf.tables import OUTPUTS
from tests.judging.run_for_tests import output, put, root, run, stripes, write

KIND = "scripted_judge"
SYSTEMS = ("amber", "birch")
GIVEN = stripes((100, 100, 100), (140, 140, 140))
EDITS = {"lamp": [GIVEN], "sky": [stripes((60, 60, 60), (180, 180, 180))]}
WORDS = ("boat", "fox", "tree")
SAMPLES = (*EDITS, *WORDS)
Row = dict[str, Any]
Says = Callable[[Request], Completion | str]


def rated(number: object) -> str:
    return f"I expected a boat, and there is one. Rating: [[{number}]]"


@dataclass
class ScriptedJudge:
    """An engine that says what it is told to say, and remembers what it was asked.

    `entered` is how often its model was loaded and not yet freed.
    """

    says: Says = lambda _: rated(7)
    model: str = "one"
    usd_per_million_prompt_tokens: float | None = 2.0
    usd_per_million_completion_tokens: float | None = 8.0
    stored: bool = True
    sees_images: bool | None = None
    entered: int = 0
    asked: list[Request] = field(default_factory=list)

    def signature(self) -> Mapping[str, Any]:
        return {"kind": KIND, "model": self.model}

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        for number, request in enumerate(requests):
            self.asked.append(request)
            said = self.says(request)
            if isinstance(said, str):
                said = Completion(said, usage=Usage(100, 20, 60), cost_usd=0.25)
            yield number, said

    def use(self, kind: str = KIND) -> Self:
        register(kind)(lambda **_: self)
        return self

    def __enter__(self) -> Self:
        self.entered += 1
        return self

    def __exit__(self, *_: object) -> None:
        self.entered -= 1


def judge_of(name: str = "mira", kind: str = KIND, **more: Any) -> Row:
    known = {"name": name, "developer": "Northlight", "status": "current"}
    return {**known, "engine": {"kind": kind}, **more}


def config_of(folder: Path, judges: Iterable[Row] = (judge_of(),), **more: Any) -> Path:
    path = folder / "evaluation.yaml"
    (folder / "benchmark").mkdir(exist_ok=True)
    known = {"name": "evaluation", "benchmark": "benchmark", "judges": list(judges)}
    path.write_text(yaml.safe_dump({**known, **more}), "utf-8")
    return path


def drawn(
    folder: Path,
    edits: Mapping[str, Any] = EDITS,
    words: Iterable[str] = WORDS,
    applicability: Iterable[Row] = (),
) -> None:
    """A run with another image of each system for every sample."""
    run(folder, edits, words, applicability)
    rows = []
    for number, name in enumerate([*edits, *words]):
        for at, system in enumerate(SYSTEMS):
            image = put(folder, stripes((10 * number, 90 * at, 5)))
            rows.append(output(name, system, edits.get(name, ()), image=image))
    write(folder, OUTPUTS, rows)


def rows_of(folder: Path, table: str = "ratings") -> list[Row]:
    return list(pq.read_table(root(folder) / f"{table}.parquet").to_pylist())


def prompt_of(request: Request) -> str:
    (text,) = (part.text for part in request.messages[1].parts[:1] if isinstance(part, Text))
    return str(json.loads(text.splitlines()[1])["prompt"])


def images_of(request: Request) -> list[str]:
    return [part.sha256 for part in request.messages[1].parts if isinstance(part, ImageRef)]
