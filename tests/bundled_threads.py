"""The bundled corpus on its way through the stages before a model is asked about its threads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from datasets import Dataset

from echo_hf.collect.collect import Collect, PostMerge
from echo_hf.collect.records import read_records
from echo_hf.collect.relevance import Relevance
from echo_hf.config.sections import PostsSource, Target
from echo_hf.engines.base import Engine, Request, make_engine
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.stage import ModelStage
from echo_hf.pipeline.stage_runner import run_stage
from echo_hf.samples.threads import Threads

TARGET = Target(
    name="Lumen Image",
    developer="Northlight",
    released="2026-03-02",
    aliases=("lumen", "lumen-img", "l-image"),
    others=("Paintbox", "DreamMill"),
    chat_window="Lumen Chat",
)
READER: Engine = make_engine("recorded", source="quickstart")


@dataclass(frozen=True)
class Bundled:
    """The corpus as tables."""

    images: ImageStore
    posts: Dataset
    threads: Dataset


def bundled(folder: Path) -> Bundled:
    images = ImageStore(folder / "pictures")
    records = read_records([PostsSource(source="quickstart")])
    posts = run_stage(PostMerge(), run_stage(Collect(images), records).dataset).dataset
    scored = run_stage(Relevance(TARGET), posts, engine=READER).dataset
    return Bundled(images, posts, run_stage(Threads(), scored).dataset)


def requests_of(stage: ModelStage, rows: Dataset) -> list[Request]:
    table = rows.with_format("arrow")[:]
    return [request for row in stage.requests(table) for request in row]
