"""What the figure tells, read from a finished quickstart: a thread, its sample, and the board."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from echo_hf import load_benchmark
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.run_folder import RunFolder

ROOT_URL = "https://x.com/i/status/9900316480787844284"
SPLIT = "image_to_image"
MEASURED_ON = "text_to_image"


@dataclass(frozen=True)
class Place:
    split: str
    samples: int
    value: float
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class Standing:
    system: str
    image: bytes
    places: tuple[Place, ...]


@dataclass(frozen=True)
class Story:
    posts: tuple[Mapping[str, Any], ...]
    images: Mapping[str, bytes]
    row: Mapping[str, Any]
    judges: tuple[str, ...]
    standings: tuple[Standing, ...]

    def texts_for(self, column: str, post: Mapping[str, Any]) -> list[str]:
        if column == "prompt":
            return [self.row["prompt"]] if self.row["prompt"] in post["text"] else []
        said = self.row["community_feedback"]
        return [each["feedback"] for each in said if each["post_url"] == post["url"]]


def read_story(run: Path) -> Story:
    folder = RunFolder(run)
    posts = _thread(folder)
    row = _row(run, {post["url"] for post in posts})
    digests = [each["sha256"] for post in posts for each in post["pictures"]]
    judges, standings = _board(run, row, folder.images)
    images = {digest: folder.images.open(digest) for digest in digests}
    return Story(tuple(posts), images, row, judges, standings)


def _thread(folder: RunFolder) -> list[dict[str, Any]]:
    threads = pq.read_table(folder.stage_folder("threads") / "kept.parquet").to_pylist()
    (found,) = (thread["posts"] for thread in threads if thread["root_url"] == ROOT_URL)
    return list(found)


def _row(run: Path, urls: set[str]) -> dict[str, Any]:
    loaded = load_benchmark(run / "release", SPLIT, rows_cache=run / "cache").with_format("arrow")
    (row,) = (row for row in loaded[:].to_pylist() if urls & set(row["post_urls"]))
    for column in ("input_images", "output_images"):
        row[column] = [image["bytes"] for image in row[column]]
    return dict(row)


def _board(
    run: Path, row: Mapping[str, Any], images: ImageStore
) -> tuple[tuple[str, ...], tuple[Standing, ...]]:
    figures = json.loads((run / "results.json").read_text("utf-8"))
    rates = [
        each
        for each in figures["results"]
        if each["metric"] == "win_rate" and each["protocol"] == figures["protocol"]
    ]
    made = {each["system"]: each["image"] for each in _outputs(run, row["id"])}
    best = sorted(
        (each for each in rates if each["split"] == MEASURED_ON), key=lambda each: -each["value"]
    )
    standings = tuple(
        Standing(
            each["system"], images.open(made[each["system"]]), tuple(_places(rates, each["system"]))
        )
        for each in best
    )
    return tuple(best[0]["definition"]["judges"]), standings


def _outputs(run: Path, sample: str) -> Iterator[dict[str, Any]]:
    rows = pq.read_table(run / "outputs.parquet").to_pylist()
    return (row for row in rows if row["sample_id"] == sample)


def _places(rates: list[dict[str, Any]], system: str) -> Iterator[Place]:
    for each in rates:
        if each["system"] == system:
            interval = None if each["low"] is None else (each["low"], each["high"])
            samples = each["definition"]["samples"]
            yield Place(each["split"], samples, each["value"], interval)


def digest_of(image: bytes) -> str:
    return hashlib.sha256(image).hexdigest()
