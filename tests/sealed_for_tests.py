"""Runs with sealed samples, and a search for all that would give one of them away."""

from __future__ import annotations

import hashlib
import html
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from echo_hf.builder.build import build
from echo_hf.hub.release import Release
from tests.recorded_as_model import RecordedAsModel, bundled_posts, config_over

KEY = bytes(range(32))
Row = dict[str, Any]
ALL = bundled_posts()


def run_of(folder: Path) -> Path:
    return folder / "runs" / "quickstart"


def built(folder: Path, posts: list[Row] = ALL, share: float = 0.5, **more: Any) -> Release:
    RecordedAsModel().use()
    config = config_over(folder, posts, splits={"sealed": share}, **more)
    return build(config, runs=folder / "runs", with_responses=True)


def set_key(folder: Path, key: bytes = KEY) -> None:
    (run_of(folder) / "sealed").mkdir(parents=True)
    (run_of(folder) / "sealed" / "key").write_text(key.hex())


# What a run keeps to itself; everything else is passed on, or may be.
PRIVATE = ("stages", "pictures", "answers.sqlite", "cache", "sealed", "origins.parquet")
PRIVATE += ("answers.sqlite-wal", "answers.sqlite-shm", ".lock")


def released(release: Path) -> dict[str, Row]:
    """The samples of a release by id, with the digests of their images in their place."""
    samples = {}
    for config in ("image_to_image", "text_to_image", "analysis"):
        for file in release.glob(f"{config}/*.parquet"):
            samples |= {row["id"]: row for row in pq.read_table(file).to_pylist()}
    return samples


def sealed_rows(folder: Path) -> dict[str, Row]:
    return released(run_of(folder) / "sealed" / "release")


def words_of(row: Row) -> Iterator[bytes]:
    """All that would give a row away: words, names, addresses, digests, and images themselves."""
    images = [*row["input_images"], *row["output_images"], row["screenshot"]]
    for data in (image["bytes"] for image in images if image):
        yield from (data, hashlib.sha256(data).hexdigest().encode())
    comments = [comment["feedback"] for comment in row["community_feedback"]]
    names = [row["id"], row["sample_digest"], row["prompt_sha256"], *row["post_urls"]]
    digests = [source["sha256"] for source in row["picture_sources"] or ()]
    for text in filter(None, (row["prompt"], *comments, *names, *digests)):
        forms = {text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
        yield from (form.encode() for form in {*forms, html.escape(text), repr(text)[1:-1]})


def holding(words: set[bytes], *places: Path) -> set[tuple[str, bytes]]:
    files = [file for place in places for file in (place, *place.rglob("*")) if file.is_file()]
    assert files
    found = set()
    for file in files:
        data = file.read_bytes()
        if file.suffix == ".parquet":  # what is packed there, with the bytes of images
            table = pq.read_table(file).to_pylist()
            data += str(table).encode() + b"".join(list_bytes(table))
        found |= {(str(file), word) for word in words if word in data}
    return found


def list_bytes(value: Any) -> Iterator[bytes]:
    if isinstance(value, bytes):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from list_bytes(inner)
