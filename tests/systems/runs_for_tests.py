"""A small benchmark, and a system that does whatever a test gives it to do."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, Self

from datasets import Dataset
from PIL import Image

from echo_hf.config.evaluation import EvaluationConfig
from echo_hf.config.sections import Target
from echo_hf.config.systems import SystemConfig
from echo_hf.hub.facts import ReleaseFacts
from echo_hf.hub.release import write_release
from echo_hf.images.store import ImageStore
from echo_hf.systems.base import GenerationResult, Retired, Task
from echo_hf.systems.journal import JournalEntry
from echo_hf.systems.registry import SYSTEMS, describe_config, register
from echo_hf.tables import SAMPLES, Outcome

TARGET = Target(name="Lumen Image", developer="Northlight", released="2026-03-02")
ADAPTER = "acting"
Row = dict[str, Any]
Act = Callable[[Task], GenerationResult]


def png(words: str) -> bytes:
    sink = io.BytesIO()
    color = tuple(hashlib.sha256(words.encode()).digest()[:3])
    Image.new("RGB", (8, 8), color).save(sink, "PNG")
    return sink.getvalue()


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def drawn_for(task: Task) -> GenerationResult:
    return GenerationResult(Outcome.OK, png(task.prompt), seed=7, cost_usd=0.5)


def task(number: int, words: str = "fox") -> Task:
    return Task(
        f"s{number}", sha(f"{words}{number}".encode()), "text_to_image", f"{words} {number}"
    )


def entry(number: int, words: str = "fox", **changes: Any) -> JournalEntry:
    one = task(number, words)
    given: Row = {"split": one.split, "signature": "s", "outcome": Outcome.REFUSED, **changes}
    return JournalEntry(sample_id=one.sample_id, sample_digest=one.sample_digest, **given)


def sample(name: str, **values: Any) -> Row:
    lists = ("post_urls", "community_feedback", "input_images", "output_images")
    empty: Row = {**dict.fromkeys(SAMPLES.columns), **{column: [] for column in lists}}
    safety = {"flagged": False, "categories": [], "model": "guard"}
    named = {"id": name, "prompt": name, "sample_digest": sha(name.encode())}
    return {**empty, **named, "safety": safety, **values}


def written(folder: Path, texts: Sequence[Row], edits: Sequence[Row] = ()) -> Path:
    images = ImageStore(folder / "pictures")
    for row in (*texts, *edits):
        row["input_images"] = [images.put(png(words)) for words in row["input_images"]]
    configs = {
        "image_to_image": _dataset(edits),
        "text_to_image": _dataset(texts),
        "analysis": _dataset([*edits, *texts]),
    }
    facts = ReleaseFacts(name="small", target=TARGET)
    return write_release(folder / "release", configs, images, facts).path


def benchmark(folder: Path, texts: int = 3, edits: int = 2) -> Path:
    """A release with samples t0, t1, ... and e0, e1, ..., which have an input each."""
    return written(
        folder,
        [sample(f"t{number}") for number in range(texts)],
        [sample(f"e{number}", input_images=[f"in{number}"]) for number in range(edits)],
    )


def system(name: str = "mine", **values: Any) -> SystemConfig:
    given = {"adapter": ADAPTER, "developer": "Northlight", "status": "current", **values}
    return SystemConfig.model_validate({"name": name, **given})


def evaluation(release: Path | str, *systems: SystemConfig) -> EvaluationConfig:
    return EvaluationConfig(name="measured", benchmark=str(release), systems=systems or (system(),))


def _dataset(rows: Sequence[Row]) -> Dataset:
    columns = {name: [row[name] for row in rows] for name in SAMPLES.columns}
    return Dataset.from_dict(columns, features=SAMPLES.features)


@dataclass
class Acting:
    act: Act = drawn_for
    concurrency: int = 2
    gone: Retired | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    config: SystemConfig = field(default_factory=system)
    determinism: str = "the same seed gives the same image"
    asked: list[str] = field(default_factory=list)
    entered: list[str] = field(default_factory=list)
    lock: Any = field(default_factory=Lock)

    def signature(self) -> Mapping[str, Any]:
        return {**describe_config(self.config), **self.more}

    def preflight(self) -> Retired | None:
        return self.gone

    def draw(self, task: Task) -> GenerationResult:
        with self.lock:
            self.asked.append(task.sample_id)
        return self.act(task)

    def __enter__(self) -> Self:
        self.entered.append("in")
        return self

    def __exit__(self, *_: object) -> None:
        self.entered.append("out")


@contextmanager
def known(*systems: Acting, **by_name: Acting) -> Iterator[None]:

    @register(ADAPTER, "acts for tests")
    def make(config: SystemConfig) -> Acting:
        one = by_name[config.name] if by_name else systems[0]
        one.config = config
        return one

    try:
        yield
    finally:
        del SYSTEMS.entries[ADAPTER]
