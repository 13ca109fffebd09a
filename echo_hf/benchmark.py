"""The tasks of a benchmark: a release on disk, or a revision on the Hub, as systems get it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datasets import Dataset

from echo_hf.context.sample_id import sample_digest
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.engines.base import ImageRef
from echo_hf.errors import HubError, PictureError, ReleaseError
from echo_hf.hub.load import load_benchmark, load_manifest
from echo_hf.pictures import PictureStore, check_picture
from echo_hf.reasons import NoTask
from echo_hf.systems.base import Task

COLUMNS = (
    "id",
    "prompt",
    "sample_digest",
    "input_images",
    "post_urls",
    "dehydrated",
    "missing_images",
)


@dataclass(frozen=True)
class Tasks:
    """The tasks of a benchmark.

    Attributes:
        tasks: In the order of the benchmark, split by split.
        left_out: How many samples cannot be given to a system, by reason.
    """

    tasks: tuple[Task, ...]
    left_out: Mapping[NoTask, int]


@dataclass(frozen=True)
class Benchmark:
    """A benchmark by its name.

    Attributes:
        reference: Folder of a release, or `ORGANISATION/NAME` with or without `@REVISION`.
        cache: Where its rows are copied to when they are read; null for the cache of datasets.
    """

    reference: str
    cache: Path | None = field(default=None, kw_only=True)

    def identity(self) -> dict[str, Any]:
        """What tells this benchmark from another one, without the place of a folder.

        Returns:
            Name and digests of its splits, as the manifest has them, and its name on the Hub; null
            where there is none.

        Raises:
            HubError: As for `tasks`.
            ReleaseError: As for `tasks`.
        """
        is_folder = Path(self.reference).exists()
        repo, at, revision = self.reference.rpartition("@")
        known = {"on_hub": None if is_folder else self.reference, "name": None, "digests": None}
        try:
            if is_folder or not at:
                manifest = load_manifest(self.reference)
            else:
                manifest = load_manifest(repo, revision=revision)
        except ReleaseError:
            return known  # the dataset of ECHO's authors has no manifest
        splits = {name: manifest.configs[name] for name in BENCHMARKS if name in manifest.configs}
        digests = {name: entry.digest for name, entry in splits.items()}
        return {**known, "name": manifest.name, "digests": digests}

    def tasks(self, pictures: PictureStore | None, limit: int | None = None) -> Tasks:
        """Reads the tasks, and puts their input pictures where adapters find them.

        Args:
            pictures: Where the inputs go; null to write nothing, and have tasks without files.
            limit: Most samples of each split; the first ones, which are a random draw.

        Returns:
            The tasks.

        Raises:
            HubError: There is no such repository or revision, or it cannot be reached.
            ReleaseError: A file is not the one that was published.
        """
        tasks: list[Task] = []
        left_out: Counter[NoTask] = Counter()
        for split in BENCHMARKS:
            for row in _rows(self.load(split), limit):
                task = _task(row, split, pictures)
                if isinstance(task, Task):
                    tasks.append(task)
                else:
                    left_out[task] += 1
        return Tasks(tuple(tasks), left_out)

    def load(self, split: str) -> Dataset:
        """Loads the samples of a split.

        Args:
            split: `image_to_image` or `text_to_image`.

        Returns:
            Rows of samples.

        Raises:
            HubError: As for `tasks`.
            ReleaseError: As for `tasks`.
        """
        try:
            return self._loaded(split)
        except HubError as error:
            if Path(self.reference).exists():
                raise
            said = f"{error}; nor is there such a folder beside the config"
            raise HubError(said) from error.__cause__

    def _loaded(self, split: str) -> Dataset:
        repo, at, revision = self.reference.rpartition("@")
        if not at or Path(self.reference).exists():
            return load_benchmark(self.reference, split, rows_cache=self.cache)
        if not revision:
            raise HubError(f"{self.reference!r} names no revision: expected a tag after the @")
        return load_benchmark(repo, split, revision=revision, rows_cache=self.cache)


def _rows(dataset: Dataset, limit: int | None) -> Iterator[dict[str, Any]]:
    dataset = dataset.select_columns([name for name in COLUMNS if name in dataset.column_names])
    if limit is not None:
        dataset = dataset.select(range(min(limit, len(dataset))))
    for table in dataset.with_format("arrow").iter(1):
        yield from table.to_pylist()


def _reason(row: Mapping[str, Any]) -> NoTask | None:
    if row["prompt"] is None or row.get("dehydrated"):
        return NoTask.DEHYDRATED
    gone = [one for one in row.get("missing_images") or () if one["column"] == "input_images"]
    if gone or None in (row["input_images"] or ()):
        return NoTask.MISSING_INPUT
    return None


def _task(row: Mapping[str, Any], split: str, pictures: PictureStore | None) -> Task | NoTask:
    reason = _reason(row)
    if reason is not None:
        return reason
    try:
        inputs = tuple(_input(_bytes(one), pictures) for one in row["input_images"] or ())
    except PictureError:
        return NoTask.UNREADABLE_INPUT
    digests = [one.sha256 for one in inputs]
    digest = row["sample_digest"] or sample_digest(row["prompt"], digests)
    sources = tuple(row.get("post_urls") or ())
    return Task(row["id"], digest, split, row["prompt"], inputs, sources)


def _input(data: bytes, pictures: PictureStore | None) -> ImageRef:
    if pictures is None:
        check_picture(data)
        return ImageRef(hashlib.sha256(data).hexdigest())
    digest = pictures.put(data)
    return ImageRef(digest, pictures.path(digest))


def _bytes(picture: Mapping[str, Any]) -> bytes:
    data: bytes | None = picture["bytes"]
    return Path(picture["path"]).read_bytes() if data is None else data
