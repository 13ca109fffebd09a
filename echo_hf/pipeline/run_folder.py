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

from echo_hf._infra.atomic import lock_file, replace_folder, restore_folder, write_json
from echo_hf._infra.regular_file import read_regular
from echo_hf.config.evaluation import EvaluationBase
from echo_hf.config.runs import CONFIG_FILE, ORIGIN_FILE, is_run, read_origin
from echo_hf.config.systems import shipped_configs
from echo_hf.errors import RunError
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.progress import RUN_FOLDER_FIELD
from echo_hf.pipeline.result import StageResult
from echo_hf.pipeline.stage import ROWS_PER_READ
from echo_hf.tables import arrow_batches

logger = logging.getLogger(__name__)
PARTS = ("kept", "rejects", "quarantine", "notices")
UNFINISHED_PATTERNS = ("tmp*", ".*.partial")  # as datasets calls them, and as we do
MAX_RECORD_BYTES = 1 << 24
STAGE_FILES = (*(f"{part}.parquet" for part in PARTS), "stats.json", "digest.json")


@dataclass(frozen=True)
class StageRecord:
    """Everything that decided the result of a stage, as `digest.json` holds it."""

    stage: str
    describe: Mapping[str, Any]
    input: str
    output: str

    @property
    def digest(self) -> str:
        # Whoever knows a few names could test them against a digest of all authors.
        published = {name: value for name, value in self.describe.items() if name != "authors"}
        text = json.dumps(published, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()


class RunFolder:
    """The folder of a run and the paths in it.

    A part of a run has a folder of its own; images, answers and cache are
    those of `shared`, if given.
    """

    def __init__(self, root: Path, shared: RunFolder | None = None) -> None:
        self.root, self.images = root, ImageStore(root / "pictures")
        self.cache = root / "cache"  # memory-mapped copies of the results; safe to delete
        self.release = root / "release"
        self.previous = root / "previous"  # the release whose place the one there now took
        self.responses = root / "responses.parquet"  # the answers that the release carries
        self.answers = root / "answers.sqlite"
        if shared is not None:
            self.images, self.answers, self.cache = shared.images, shared.answers, shared.cache

    def open_store(self) -> Store:
        return Store(self.answers)

    def stage_folder(self, name: str) -> Path:
        return self.root / "stages" / name

    def log_entry(self) -> None:
        logger.info("run %s", self.root.name, extra={RUN_FOLDER_FIELD: self.root})

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other processes out while a run writes."""
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
        with lock_file(self.root / ".lock", busy):
            self.log_entry()
            # What a killed run left half written.
            for folder in (self.root / "stages").glob(".*.previous"):
                restore_folder(folder.with_name(folder.name[1:].removesuffix(".previous")))
            pictures = self.root / "pictures"
            for stray in chain(*map(self.cache.glob, UNFINISHED_PATTERNS), pictures.glob("*/.*")):
                stray.unlink(missing_ok=True)
            yield

    def save_config(self, config: EvaluationBase) -> None:
        text = yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
        origin = config.file
        if origin and origin.name == CONFIG_FILE and is_run(origin.parent):
            origin = RunFolder(origin.parent).made_from
        (self.root / CONFIG_FILE).write_text(text, "utf-8")
        if origin or not (self.root / ORIGIN_FILE).exists():
            write_json(
                self.root / ORIGIN_FILE, {"config": origin and self._relative_origin(origin)}
            )

    def _relative_origin(self, origin: Path) -> str:
        """Return a config's path, such that it is found again when moved together with its runs."""
        root, shipped = self.root.resolve(), shipped_configs().resolve()
        if origin.is_relative_to(shipped):
            return str(origin.relative_to(shipped.parent))
        try:
            return os.path.relpath(origin, root)
        except ValueError:  # on another drive
            return str(origin)

    @property
    def made_from(self) -> Path | None:
        """The file whose config this run has; null where that is unknown."""
        return read_origin(self.root)

    def read_record(self, name: str) -> StageRecord | None:
        try:
            path = self.stage_folder(name) / "digest.json"
            return StageRecord(**json.loads(read_regular(path, max_bytes=MAX_RECORD_BYTES)))
        except (OSError, ValueError, TypeError, RecursionError):
            return None  # it has not run, or the file is damaged

    def save_result(self, result: StageResult, record: StageRecord) -> None:
        """Write a stage's result atomically; an unchanged one is left as it is."""
        folder = self.stage_folder(record.stage)
        is_whole = all((folder / name).exists() for name in STAGE_FILES)
        # A call that failed again leaves the same rows, but may tell another reason.
        if is_whole and self.read_record(record.stage) == record and not result.stats.fill.calls:
            return
        stats = json.dumps(dataclasses.asdict(result.stats), indent=1, sort_keys=True)
        text = json.dumps(dataclasses.asdict(record), indent=1, sort_keys=True, default=str)
        parts = (result.dataset, result.rejects, result.quarantine, result.notices)
        with replace_folder(folder) as folder:
            for part, dataset in zip(PARTS, parts, strict=True):
                _write(dataset, folder / f"{part}.parquet")
            (folder / "stats.json").write_text(stats + "\n", "utf-8")
            (folder / "digest.json").write_text(text + "\n", "utf-8")


def _write(dataset: Dataset, path: Path) -> None:
    # Unlike `to_parquet` of datasets, without its copies of the features, and with as many rows
    # to a group as a stage reads at once.
    with pq.ParquetWriter(path, dataset.data.table.schema) as writer:
        for rows in arrow_batches(dataset, ROWS_PER_READ):
            writer.write_table(rows)
        if not len(dataset):
            writer.write_table(dataset.data.table)
