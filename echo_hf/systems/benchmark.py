"""The tasks of a benchmark, a release on disk or a revision on the Hub, as systems get it."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
from datasets import Dataset
from pydantic import ValidationError

from echo_hf.config.checks import first_error, read_yaml, secrets_in, shown_value
from echo_hf.config.evaluation import Evaluated, Evaluation, with_files
from echo_hf.config.loading import located, parse_config
from echo_hf.config.runs import EXAMPLE, config_file, is_run
from echo_hf.config.systems import config_place
from echo_hf.curate.splits import BENCHMARKS
from echo_hf.engines.base import ImageRef
from echo_hf.errors import ConfigError, HubError, ImageError, ReleaseError, RunError
from echo_hf.hub.load import load_benchmark, load_manifest
from echo_hf.hub.release import rows_in
from echo_hf.images.embedded import embedded_bytes
from echo_hf.images.store import ImageStore, check_image
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.pipeline.runs import run_folder
from echo_hf.reasons import NoTask
from echo_hf.samples.sample import sample_digest
from echo_hf.systems.base import Task
from echo_hf.tables import arrow_rows

COLUMNS = (
    *("id", "prompt", "sample_digest", "input_images"),
    *("post_urls", "dehydrated", "missing_images"),
)


@dataclass(frozen=True)
class Tasks:
    """The tasks of a benchmark, and how many samples give none."""

    tasks: tuple[Task, ...]
    left_out: Mapping[NoTask, int]


@dataclass(frozen=True)
class Benchmark:
    """A benchmark by the folder of its release, or by its name and tag on the Hub."""

    reference: str
    cache: Path | None = field(default=None, kw_only=True)

    def identity(self) -> dict[str, Any]:
        """What tells this benchmark from another one, without the place of a folder."""
        repo, revision = self._place
        on_hub = None if Path(self.reference).exists() else self.reference
        try:
            manifest = load_manifest(repo, revision=revision)
        except ReleaseError:  # the dataset of ECHO's authors has no manifest
            return {"on_hub": on_hub, "name": None, "digests": None}
        parts = ((name, manifest.configs.get(name)) for name in BENCHMARKS)
        digests = {name: entry.digest for name, entry in parts if entry}
        return {"on_hub": on_hub, "name": manifest.name, "digests": digests}

    def tasks(self, images: ImageStore | None, limit: int | None = None) -> Tasks:
        """Reads the tasks, and puts their input images where adapters find them."""
        tasks: list[Task] = []
        left_out: Counter[NoTask] = Counter()
        ids: set[str] = set()
        for split in BENCHMARKS:
            dataset = self.load(split)
            columns = [name for name in COLUMNS if name in dataset.column_names]
            for row in islice(rows_in(dataset, 1, columns), limit):
                if row["id"] in ids:
                    raise ReleaseError(
                        f"benchmark {self.reference!r} has several samples of the id "
                        f"{row['id']!r}: expected one of each; download it again"
                    )
                ids.add(row["id"])
                task = _task(row, split, images)
                if isinstance(task, Task):
                    tasks.append(task)
                else:
                    left_out[task] += 1
        return Tasks(tuple(tasks), left_out)

    def table(self, name: str) -> pa.Table | None:
        """What the benchmark carries beside its samples under this name; null where it does not."""
        repo, revision = self._place
        try:
            known = load_manifest(repo, revision=revision).configs
        except ReleaseError:  # the dataset of ECHO's authors has no manifest
            return None
        return arrow_rows(self.load(name)) if name in known else None

    def load(self, split: str) -> Dataset:
        repo, revision = self._place
        try:
            if revision == "":
                said = f"{self.reference!r} names no revision: expected a tag after the @"
                raise HubError(said)
            return load_benchmark(repo, split, revision=revision, rows_cache=self.cache)
        except HubError as error:
            if Path(self.reference).exists():
                raise
            said = f"{error}; nor is there such a folder next to the config"
            raise HubError(said) from error.__cause__

    @property
    def _place(self) -> tuple[str, str | None]:
        """A folder or repository, and the revision that is named."""
        repo, at, revision = self.reference.rpartition("@")
        is_whole = not at or Path(self.reference).exists()
        return (self.reference, None) if is_whole else (repo, revision)


def _task(row: Mapping[str, Any], split: str, images: ImageStore | None) -> Task | NoTask:
    if row["prompt"] is None or row.get("dehydrated"):
        return NoTask.DEHYDRATED
    given = row["input_images"] or ()
    gone = any(one["column"] == "input_images" for one in row.get("missing_images") or ())
    if gone or None in given:
        return NoTask.MISSING_INPUT
    inputs = list[ImageRef]()
    for image in given:
        data = embedded_bytes(image, row["id"])
        digest = hashlib.sha256(data).hexdigest()
        try:
            (check_image if images is None else images.put)(data)
        except ImageError:
            return NoTask.UNREADABLE_INPUT
        inputs.append(ImageRef(digest, None if images is None else images.path(digest)))
    digest = row["sample_digest"] or sample_digest(row["prompt"], [one.sha256 for one in inputs])
    sources = tuple(row.get("post_urls") or ())
    return Task(row["id"], digest, split, row["prompt"], tuple(inputs), sources)


BENCHMARK, POSTS = "benchmark", "posts"
ON_HUB = re.compile(r"\w[\w.-]*/\w[\w.-]*(@[\w./-]*)?")


def load_evaluation(config: Evaluated | Path | str) -> Evaluated:
    """Reads a config of a benchmark that is there already, or of one to build, if it is a path."""
    if isinstance(config, Evaluated):
        return config
    path = config_file(config)
    folder = path.resolve().parent
    data = with_files(read_yaml(path, "config", EXAMPLE), folder)
    if isinstance(data, dict) and (BENCHMARK in data) == (POSTS in data):
        has = "both benchmark and" if BENCHMARK in data else "neither benchmark nor"
        raise ConfigError(
            f"{path}: has {has} posts: expected one that is there already "
            "(benchmark: ORGANISATION/NAME@TAG), or posts to build one from"
        )
    if not isinstance(data, dict) or BENCHMARK not in data:
        built = located(parse_config(data, str(path)), folder)
        placed = {"anchors": _placed(built, "anchors", folder)}
        return built.model_copy(update=placed).read_from(path)
    try:
        read = Evaluation.model_validate(data)
    except ValidationError as error:
        raise ConfigError(first_error(error, str(path), Evaluation)) from None
    here = {"metrics": read.metrics.located(folder), "analysis": read.analysis.located(folder)}
    places = {key: _placed(read, key, folder) for key in (BENCHMARK, "anchors")}
    return read.model_copy(update={**here, **places}).read_from(path)


def release_of(place: Path | str) -> Path:
    """The folder of a release: itself, or that of a run, by its folder or by its config."""
    path = config_place(Path(place))
    if is_run(path) or (path.suffix in (".yaml", ".yml") and path.is_file()):
        return run_folder(load_evaluation(path)).release
    return Path(place)


def _placed(config: Evaluated, key: str, folder: Path) -> str | None:
    """What a config names there: a file or folder beside it, else a name on the Hub."""
    named: str | None = getattr(config, key)
    if named is None or (folder / named).exists():
        return named and str(folder / named)
    if not ON_HUB.fullmatch(named):
        given = next(secrets_in({key: named}), None) or f"{key} is {shown_value(named)}"
        raise ConfigError(
            f"{given}: there is no such folder next to the config, and it is not a name on the "
            f"Hub: expected {'' if key == BENCHMARK else 'a results.json, '}the folder of a "
            "release, or ORGANISATION/NAME@TAG"
        )
    return named


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


def evaluation_folder(config: Evaluated, runs: Path | str | None) -> RunFolder:
    folder = run_folder(config, runs)
    if isinstance(config, Evaluation):
        folder.root.mkdir(parents=True, exist_ok=True)
        benchmark_of(config, folder)
        folder.save_config(config)
    return folder
