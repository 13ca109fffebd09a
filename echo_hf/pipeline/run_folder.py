"""The folder of one run: config, answers, images, and the result of each stage."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import yaml
from datasets import Dataset

from echo_hf._infra.atomic import held, replaced_whole, restore, write_json
from echo_hf._infra.regular_file import read_regular
from echo_hf.config.evaluation import Evaluated
from echo_hf.config.runs import CONFIG, ORIGIN, is_run
from echo_hf.config.systems import shipped_configs
from echo_hf.errors import RunError
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.progress import RUN_FOLDER
from echo_hf.pipeline.result import StageResult
from echo_hf.pipeline.stage import ROWS_AT_ONCE
from echo_hf.tables import arrow_batches

logger = logging.getLogger(__name__)
PARTS = ("kept", "rejects", "quarantine", "notices")
UNFINISHED = ("tmp*", ".*.partial")  # as datasets calls them, and as we do
MOST_RECORD_BYTES = 1 << 24
FILES = (*(f"{part}.parquet" for part in PARTS), "stats.json", "digest.json")


@dataclass(frozen=True)
class StageRecord:
    """What made a stage's result, as `digest.json` keeps it."""

    stage: str
    describe: Mapping[str, Any]
    input: str
    output: str

    @property
    def digest(self) -> str:
        # Whoever knows a few names could test them against a digest of all authors.
        told = {name: value for name, value in self.describe.items() if name != "authors"}
        text = json.dumps(told, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


class RunFolder:
    """The folder of a run, and what stands where in it."""

    def __init__(self, root: Path) -> None:
        self.root, self.images = root, ImageStore(root / "pictures")
        self.cache = root / "cache"  # memory-mapped copies of the results; safe to delete
        self.release = root / "release"
        self.previous = root / "previous"  # the release whose place the one there now took
        self.responses = root / "responses.parquet"  # the answers that the release carries
        self.answers = root / "answers.sqlite"

    def store(self) -> Store:
        return Store(self.answers)

    def stage(self, name: str) -> Path:
        return self.root / "stages" / name

    def enter(self) -> None:
        logger.info("run %s", self.root.name, extra={RUN_FOLDER: self.root})

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other processes out while a run writes."""
        busy = RunError(
            f"another process is working in {str(self.root)!r}: wait for it, or choose another "
            "folder with --runs"
        )
        try:
            self.root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(
                f"cannot write in {str(self.root)!r} ({error}): choose another folder with --runs"
            ) from error
        with held(self.root / ".lock", busy):
            self.enter()
            # What a killed run left half written.
            for folder in (self.root / "stages").glob(".*.previous"):
                restore(folder.with_name(folder.name[1:].removesuffix(".previous")))
            pictures = self.root / "pictures"
            for stray in chain(*map(self.cache.glob, UNFINISHED), pictures.glob("*/.*")):
                stray.unlink(missing_ok=True)
            yield

    def save_config(self, config: Evaluated) -> None:
        text = yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
        origin = config.file
        if origin and origin.name == CONFIG and is_run(origin.parent):
            origin = RunFolder(origin.parent).made_from
        (self.root / CONFIG).write_text(text, "utf-8")
        if origin or not (self.root / ORIGIN).exists():
            write_json(self.root / ORIGIN, {"config": origin and self._named(origin)})

    def _named(self, origin: Path) -> str:
        """A config's file as it is found again after it was moved together with its runs."""
        root, brought = self.root.resolve(), shipped_configs().resolve()
        if origin.is_relative_to(brought):
            return str(origin.relative_to(brought.parent))
        try:
            return os.path.relpath(origin, root)
        except ValueError:  # on another drive
            return str(origin)

    @property
    def made_from(self) -> Path | None:
        """The file whose config this run has; null where nobody knows."""
        try:
            named = json.loads(read_regular(self.root / ORIGIN, most_bytes=MOST_RECORD_BYTES))
            place = Path(named["config"])
        except (OSError, ValueError, TypeError, LookupError, RecursionError):
            return None
        brought = shipped_configs()
        start = brought.parent if place.parts[:1] == (brought.name,) else self.root
        return (start / place).resolve()

    def record(self, name: str) -> StageRecord | None:
        try:
            path = self.stage(name) / "digest.json"
            return StageRecord(**json.loads(read_regular(path, most_bytes=MOST_RECORD_BYTES)))
        except (OSError, ValueError, TypeError, RecursionError):
            return None  # it has not run, or the file is damaged

    def save(self, result: StageResult, record: StageRecord) -> None:
        """Writes a stage's result, whole or not at all; an unchanged one is left as it is."""
        folder = self.stage(record.stage)
        is_whole = all((folder / name).exists() for name in FILES)
        # A call that failed again leaves the same rows, but may tell another reason.
        if is_whole and self.record(record.stage) == record and not result.stats.fill.calls:
            return
        stats = json.dumps(dataclasses.asdict(result.stats), indent=1, sort_keys=True)
        text = json.dumps(dataclasses.asdict(record), indent=1, sort_keys=True, default=str)
        parts = (result.dataset, result.rejects, result.quarantine, result.notices)
        with replaced_whole(folder) as folder:
            for part, dataset in zip(PARTS, parts, strict=True):
                _write(dataset, folder / f"{part}.parquet")
            (folder / "stats.json").write_text(stats + "\n", "utf-8")
            (folder / "digest.json").write_text(text + "\n", "utf-8")


def _write(dataset: Dataset, path: Path) -> None:
    # Unlike `to_parquet` of datasets, without its copies of the features, and with as many rows
    # to a group as a stage reads at once.
    with pq.ParquetWriter(path, dataset.data.table.schema) as writer:
        for rows in arrow_batches(dataset, ROWS_AT_ONCE):
            writer.write_table(rows)
        if not len(dataset):
            writer.write_table(dataset.data.table)
