"""Builds of the bundled posts with an engine that stands for a model and gives their answers."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import pyarrow.parquet as pq
import yaml

from echo_hf.collect.urls import canonical_url
from echo_hf.config.systems import shipped_config
from echo_hf.engines.base import Completion, Engine, Request, Usage, make_engine, register
from echo_hf.quickstart.truth import corpus_folder
from echo_hf.samples.sample import sample_id

KIND = "counted"
X, BOARD = "https://x.com/", "https://board.example/"
USAGE = Usage(70, 11, 40)
IMAGES = corpus_folder() / "pictures"
Post = dict[str, Any]
Row = dict[str, Any]
Fails = Callable[[Request], Completion | None]


def _never(asked: Request) -> None:
    del asked


@cache
def answers() -> str:
    urls = {
        url for post in bundled_posts(X) for url in (post["url"], post.get("parent_url")) if url
    }
    moved = {canonical_url(url): canonical_url(url.replace(X, BOARD)) for url in urls}
    ids = {sample_id(old): sample_id(new) for old, new in moved.items()}
    digests = [hashlib.sha256(file.read_bytes()).hexdigest() for file in IMAGES.iterdir()]
    ids |= {sample_id(a, one): sample_id(b, one) for a, b in ids.items() for one in digests}
    lines = (corpus_folder() / "answers.jsonl").read_text("utf-8").splitlines()
    given = [json.loads(line) for line in lines]
    given += [{**one, "row": (moved | ids)[one["row"]]} for one in given]
    return "\n".join({(one["stage"], one["row"]): json.dumps(one) for one in given}.values())


def recorded() -> Engine:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "answers.jsonl"
        path.write_text(answers(), "utf-8")
        return make_engine("recorded", path=path)


@dataclass
class RecordedAsModel:
    """Gives the recorded answers, but as a model whose answers are kept, and counts its calls."""

    model: str = "one"
    fails: Fails = _never
    asked: list[Request] = field(default_factory=list)
    stored = True

    def __post_init__(self) -> None:
        self.recorded = recorded()

    def signature(self) -> Mapping[str, Any]:
        sampling = {"temperature": 0.0, "top_p": 1.0, "seed": 7, "stop": ("</s>",)}
        return {"kind": KIND, "model": self.model, "sampling": sampling, "revision": None}

    def stream(self, requests: Iterable[Request]) -> Iterator[tuple[int, Completion]]:
        for number, request in enumerate(requests):
            self.asked.append(request)
            ((_, given),) = self.recorded.stream([request])
            found = self.fails(request) or given
            yield number, Completion(found.text, found.error, found.finish_reason, USAGE, 0.001)

    def use(self) -> Self:
        register(KIND)(lambda **_: self)
        return self

    def sources(self) -> set[str]:
        return {url for request in self.asked for url in request.sources}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def no_engine() -> None:

    def nothing(**_: object) -> Engine:
        raise AssertionError("the engine was made")

    register(KIND)(nothing)


def bundled_posts(place: str = BOARD) -> list[Post]:
    text = (corpus_folder() / "posts.jsonl").read_text("utf-8").replace(X, place)
    return [json.loads(line) for line in text.splitlines()]


def config_over(folder: Path, posts: Iterable[Post], kind: str = KIND, **more: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "pictures").exists():
        shutil.copytree(IMAGES, folder / "pictures")
    lines = [json.dumps(post, ensure_ascii=False) for post in posts]
    (folder / "posts.jsonl").write_text("\n".join(lines), "utf-8")
    config = yaml.safe_load(shipped_config().read_text("utf-8"))
    config["posts"] = [{"source": "jsonl", "path": "posts.jsonl"}]
    (folder / "answers.jsonl").write_text(answers(), "utf-8")
    said = {"model": "one", "coordinates": "rel_1000"}
    given = said if kind == KIND else {"path": "answers.jsonl"}
    config["engines"] = {"text": {"kind": kind, **given}}
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
    return list(pq.read_table(run / "stages" / stage / f"{part}.parquet").to_pylist())
