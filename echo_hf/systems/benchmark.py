"""The tasks of a benchmark, a release on disk or a revision on the Hub, as systems get it."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datasets import Dataset
from pydantic import ValidationError

from echo_hf.config.checks import first_error, read_yaml, secrets_in, shown_value
from echo_hf.config.evaluation import Evaluated, Evaluation
from echo_hf.config.judges import with_files
from echo_hf.config.loading import Config, located, parse_config
from echo_hf.config.systems import config_place
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.engines.base import ImageRef
from echo_hf.errors import ConfigError, HubError, ImageError, ReleaseError, RunError
from echo_hf.hub.load import load_benchmark, load_manifest
from echo_hf.images.store import ImageStore, check_image
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import NoTask
from echo_hf.samples.sample import sample_digest
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
    """The tasks of a benchmark."""

    tasks: tuple[Task, ...]
    left_out: Mapping[NoTask, int]


@dataclass(frozen=True)
class Benchmark:
    reference: str
    cache: Path | None = field(default=None, kw_only=True)

    def identity(self) -> dict[str, Any]:
        """What tells this benchmark from another one, without the place of a folder."""
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

    def tasks(self, images: ImageStore | None, limit: int | None = None) -> Tasks:
        """Reads the tasks, and puts their input images where adapters find them."""
        tasks: list[Task] = []
        left_out: Counter[NoTask] = Counter()
        for split in BENCHMARKS:
            for row in _rows(self.load(split), limit):
                task = _task(row, split, images)
                if isinstance(task, Task):
                    tasks.append(task)
                else:
                    left_out[task] += 1
        return Tasks(tuple(tasks), left_out)

    def load(self, split: str) -> Dataset:
        try:
            return self._loaded(split)
        except HubError as error:
            if Path(self.reference).exists():
                raise
            said = f"{error}; nor is there such a folder next to the config"
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


def _task(row: Mapping[str, Any], split: str, images: ImageStore | None) -> Task | NoTask:
    reason = _reason(row)
    if reason is not None:
        return reason
    try:
        inputs = tuple(_input(_bytes(one), images) for one in row["input_images"] or ())
    except ImageError:
        return NoTask.UNREADABLE_INPUT
    digests = [one.sha256 for one in inputs]
    digest = row["sample_digest"] or sample_digest(row["prompt"], digests)
    sources = tuple(row.get("post_urls") or ())
    return Task(row["id"], digest, split, row["prompt"], inputs, sources)


def _input(data: bytes, images: ImageStore | None) -> ImageRef:
    if images is None:
        check_image(data)
        return ImageRef(hashlib.sha256(data).hexdigest())
    digest = images.put(data)
    return ImageRef(digest, images.path(digest))


def _bytes(image: Mapping[str, Any]) -> bytes:
    data: bytes | None = image["bytes"]
    return Path(image["path"]).read_bytes() if data is None else data


BENCHMARK = "benchmark"
POSTS = "posts"
EXAMPLE = "eval_configs/quickstart.yaml"
ON_HUB = re.compile(r"\w[\w.-]*/\w[\w.-]*(@[\w./-]*)?")


def load_evaluation(path: Path | str) -> Config | Evaluation:
    path = config_place(Path(path))
    data = read_yaml(path, "config", EXAMPLE)
    folder = path.resolve().parent
    data = with_files(data, folder)
    if isinstance(data, dict) and not {BENCHMARK, POSTS} & data.keys():
        raise ConfigError(
            f"{path}: has neither benchmark nor posts: expected one that is there already "
            "(benchmark: ORGANISATION/NAME@TAG), or posts to build one from"
        )
    if not isinstance(data, dict) or BENCHMARK not in data:
        return located(parse_config(data, str(path)), folder)
    if POSTS in data:
        raise ConfigError(
            f"{path}: has both benchmark and posts: expected a benchmark that is there already, or "
            "posts to build one from"
        )
    try:
        return _located(Evaluation.model_validate(data), folder)
    except ValidationError as error:
        raise ConfigError(first_error(error, str(path), Evaluation)) from None


def benchmark_of(config: Evaluated, folder: RunFolder) -> Benchmark:
    if isinstance(config, Evaluation):
        if (folder.root / "stages").exists():
            raise RunError(
                f"{str(folder.root)!r} holds a benchmark that was built under the same name: give "
                "this config another name"
            )
        return Benchmark(config.benchmark, cache=folder.cache)
    if not folder.release.exists():
        raise RunError(
            f"there is no benchmark in {str(folder.release)!r}: run `echo-hf build` first, or name "
            "one that is there already (benchmark: ORGANISATION/NAME@TAG)"
        )
    return Benchmark(str(folder.release), cache=folder.cache)


def evaluation_folder(config: Evaluated, runs: Path | str) -> RunFolder:
    folder = RunFolder(Path(runs) / config.name)
    if isinstance(config, Evaluation):
        folder.root.mkdir(parents=True, exist_ok=True)
        benchmark_of(config, folder)
        folder.save_config(config)
    return folder


def _located(config: Evaluation, folder: Path) -> Evaluation:
    own = folder / config.benchmark
    benchmark = str(own) if own.exists() else config.benchmark
    if not own.exists() and not ON_HUB.fullmatch(benchmark):
        secret = next(secrets_in({BENCHMARK: benchmark}), None)
        given = secret or f"benchmark is {shown_value(benchmark)}"
        raise ConfigError(
            f"{given}: there is no such folder next to the config, and it is not a name on the "
            "Hub: "
            "expected the folder of a release, or ORGANISATION/NAME@TAG"
        )
    metrics, analysis = config.metrics.located(folder), config.analysis.located(folder)
    return config.model_copy(
        update={"benchmark": benchmark, "metrics": metrics, "analysis": analysis}
    )
