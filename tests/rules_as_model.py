"""Builds of the bundled posts with an engine that stands for a model: plain rules, answers kept."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pyarrow.parquet as pq
import yaml

from echo_hf.config.systems import shipped_config
from echo_hf.engines.base import Completion, Engine, Request, Usage, make_engine, register
from echo_hf.quickstart.truth import corpus

KIND = "counted"
X, BOARD = "https://x.com/", "https://board.example/"
USAGE = Usage(70, 11, 40)
SAFE = Completion('{"hazards": []}')  # rules have nothing to say on hazards
Post = dict[str, Any]
Row = dict[str, Any]
Fails = Callable[[Request], Completion | None]


def _never(asked: Request) -> None:
    del asked


@dataclass
class RulesAsModel:
    """Answers like the rules do, but as a model whose answers are kept, and counts its calls.

    Attributes:
        model: Part of the signature.
        fails: What comes in place of the rules' answer to a request, null for none.
        asked: Every request.
    """

    model: str = "one"
    fails: Fails = _never
    asked: list[Request] = field(default_factory=list)
    stored = True

    def __post_init__(self) -> None:
        self.rules: Engine = make_engine("rules")

    def signature(self) -> Mapping[str, Any]:
        """With numbers and lists, as those of real engines."""
        sampling = {"temperature": 0.0, "top_p": 1.0, "seed": 7, "stop": ("</s>",)}
        return {"kind": KIND, "model": self.model, "sampling": sampling, "revision": None}

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        """One answer after the other."""
        for number, request in enumerate(requests):
            self.asked.append(request)
            ((_, given),) = self.rules.stream([request])
            found = self.fails(request) or _as_model(request, given)
            yield number, Completion(found.text, found.error, found.finish_reason, USAGE, 0.001)

    def use(self) -> Self:
        """Makes it the engine of every config that names its kind."""
        register(KIND)(lambda **_: self)
        return self

    def sources(self) -> set[str]:
        """Addresses of all posts that it was asked about."""
        return {url for request in self.asked for url in request.sources}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def _as_model(request: Request, given: Completion) -> Completion:
    """What rules say, and what they leave to models to say."""
    if request.task == "safety":
        return SAFE
    if request.task != "roles" or given.text is None:
        return given
    answer = json.loads(given.text)
    for sample in answer["samples"]:
        sample["may_show_minor"] = False
    return Completion(json.dumps(answer))


def no_engine() -> None:
    """From now on nobody can make the engine: neither a model nor its packages are there."""

    def nothing(**_: object) -> Engine:
        raise AssertionError("the engine was made")

    register(KIND)(nothing)


def bundled_posts(place: str = BOARD) -> list[Post]:
    """The bundled posts; those of X come from another place instead."""
    text = (corpus() / "posts.jsonl").read_text("utf-8").replace(X, place)
    return [json.loads(line) for line in text.splitlines()]


def config_over(folder: Path, posts: Iterable[Post], kind: str = KIND, **more: Any) -> Path:
    """A config over these posts, with their pictures, whose engine is of this kind."""
    if not (folder / "pictures").exists():
        shutil.copytree(corpus() / "pictures", folder / "pictures")
    lines = [json.dumps(post, ensure_ascii=False) for post in posts]
    (folder / "posts.jsonl").write_text("\n".join(lines), "utf-8")
    config = yaml.safe_load(shipped_config().read_text("utf-8"))
    config["posts"] = [{"source": "jsonl", "path": "posts.jsonl"}]
    config["engines"] = {"text": {"kind": kind, "model": "one"} if kind == KIND else {"kind": kind}}
    (folder / "config.yaml").write_text(yaml.safe_dump({**config, **more}), "utf-8")
    return folder / "config.yaml"


def tables(run: Path) -> dict[str, str]:
    """The sha256 of every table and every file of the release, by its path in the run."""
    files = [*run.glob("stages/*/*.parquet"), *run.glob("release/**/*"), *run.glob("*.parquet")]
    return {
        str(path.relative_to(run)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if path.is_file()
    }


def rows(run: Path, stage: str, part: str = "kept") -> list[Row]:
    """Rows of a part of a stage's result."""
    return list(pq.read_table(run / "stages" / stage / f"{part}.parquet").to_pylist())
