"""The tasks of a benchmark, which is a release on disk or a revision on the Hub."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

import pyarrow as pa
from datasets import Dataset
from huggingface_hub import HfApi
from pydantic import ValidationError

from echo_hf._infra.atomic import find_complete
from echo_hf.config.checks import find_secrets, first_error, format_value, read_yaml
from echo_hf.config.evaluation import EvaluationBase, EvaluationConfig, load_named_files
from echo_hf.config.loading import parse_config, resolve_paths
from echo_hf.config.plugins import load_plugins
from echo_hf.config.runs import EXAMPLE_CONFIG, find_config_file, find_release, is_run
from echo_hf.config.systems import find_config
from echo_hf.curate.splits import ANALYSIS, BENCHMARKS
from echo_hf.engines.base import ImageRef
from echo_hf.errors import ConfigError, HubError, ImageError, ReleaseError
from echo_hf.hub.load import load_benchmark, load_manifest
from echo_hf.hub.manifest import MANIFEST, Manifest, NoManifestError
from echo_hf.hub.release import iterate_rows
from echo_hf.images.embedded import read_embedded
from echo_hf.images.store import ImageStore, check_image
from echo_hf.pipeline.runs import open_run_folder
from echo_hf.reasons import Reason
from echo_hf.samples.sample import sample_digest
from echo_hf.systems.base import Task
from echo_hf.tables import arrow_rows


def select_sample_configs(names: Collection[str]) -> list[str]:
    """Select configs that together hold every sample of a release at least once."""
    return [ANALYSIS] if ANALYSIS in names else [name for name in BENCHMARKS if name in names]


class NoTask(Reason):
    """Why a sample of a benchmark cannot be given to a system."""

    DEHYDRATED = "dehydrated", "words or images are left out: `echo-hf hydrate` puts them back"
    MISSING_INPUT = "missing_input", "an input image is no longer available"
    UNREADABLE_INPUT = "unreadable_input", "an input image cannot be decoded"


ValueT = TypeVar("ValueT")
FileStates = tuple[tuple[str, int, int, int], ...]
TASK_COLUMNS = (
    *("id", "prompt", "sample_digest", "input_images"),
    *("post_urls", "dehydrated", "missing_images"),
)


def read_states(paths: Iterable[Path]) -> FileStates:
    """Return name, inode, size and time of change of the files that are there."""
    states = []
    for path in paths:
        with suppress(FileNotFoundError):
            status = path.stat()
            states.append((str(path), status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(states)


@dataclass(frozen=True)
class BenchmarkTasks:
    """The tasks of a benchmark, and the number of samples without one, by reason."""

    tasks: tuple[Task, ...]
    left_out: Mapping[NoTask, int]
    names: Collection[str] = ()  # of all samples, also of those left out


@dataclass(frozen=True)
class Benchmark:
    """A benchmark, given by the folder of its release or its name and tag on the Hub."""

    reference: str
    cache: Path | None = field(default=None, kw_only=True)
    # Null for one with huggingface_hub's own address and token.
    api: HfApi | None = field(default=None, kw_only=True, repr=False, compare=False)
    is_sealed: bool = field(default=False, kw_only=True)  # its run's own sealed samples
    # What was read, beside the state of the files that it was read from.
    _read: dict[str, tuple[FileStates, Any]] = field(
        default_factory=dict, kw_only=True, repr=False, compare=False
    )

    @property
    def label(self) -> str:
        """The tag of a revision on the Hub, or the name of a release in a folder."""
        return self._place[1] or self.read_manifest().name

    def identity(self) -> dict[str, Any]:
        """Return what identifies this benchmark, without the path of a folder."""
        on_hub = None if Path(self.reference).exists() else self.reference
        try:
            manifest = self.read_manifest()
        except ReleaseError:  # the dataset of ECHO's authors has no manifest
            return {"on_hub": on_hub, "name": None, "digests": None}
        parts = ((name, manifest.configs.get(name)) for name in BENCHMARKS)
        digests = {name: entry.digest for name, entry in parts if entry}
        return {"on_hub": on_hub, "name": manifest.name, "digests": digests}

    def tasks(self, images: ImageStore | None, limit: int | None = None) -> BenchmarkTasks:
        """Read the tasks, and store their input images for the adapters."""
        tasks: list[Task] = []
        left_out: Counter[NoTask] = Counter()
        ids: set[str] = set()
        for split in BENCHMARKS:
            for name, task in self._read_tasks(split, images, limit):
                if name in ids:
                    raise ReleaseError(
                        f"benchmark {self.reference!r} has several samples of the id {name!r}: "
                        "expected one of each; download it again"
                    )
                ids.add(name)
                if isinstance(task, Task):
                    tasks.append(task)
                else:
                    left_out[task] += 1
        return BenchmarkTasks(tuple(tasks), left_out, ids)

    def _read_tasks(
        self, split: str, images: ImageStore | None, limit: int | None
    ) -> Sequence[tuple[str, Task | NoTask]]:
        """Read the first tasks of a split, each row once for each image store."""
        dataset = self.load(split)
        known: list[tuple[str, Task | NoTask]] = self._read_once(
            f"tasks of {split}, {images and images.root}", list
        )
        columns = [name for name in TASK_COLUMNS if name in dataset.column_names]
        end = len(dataset) if limit is None else min(limit, len(dataset))
        if len(known) < end:
            rows = iterate_rows(dataset.select(range(len(known), end)), 1, columns)
            known += ((row["id"], _build_task(row, split, images)) for row in rows)
        return known[:end]

    def table(self, name: str) -> pa.Table | None:
        """Read a table that the benchmark has beside its samples; null where it has none."""
        try:
            configs = self.read_manifest().configs
        except NoManifestError:
            return None
        return arrow_rows(self.load(name)) if name in configs else None

    def read_manifest(self) -> Manifest:
        repo, revision = self._place
        manifest = self._read_once(
            MANIFEST, lambda: load_manifest(repo, revision=revision, api=self.api)
        )
        if manifest.sealed and manifest.sealed.private and not self.is_sealed:
            raise ReleaseError(
                f"release {self.reference!r} holds sealed samples themselves, which no other run "
                "may take: name the public release of that run"
            )
        return manifest

    def load(self, split: str) -> Dataset:
        """Load a config, verified against the manifest, once for each state of the files."""
        return self._read_once(f"rows of {split}", lambda: self._load(split))

    def _read_once(self, name: str, read: Callable[[], ValueT]) -> ValueT:
        state = self.read_state()
        if name not in self._read or self._read[name][0] != state:
            self._read[name] = state, read()
        return cast(ValueT, self._read[name][1])

    def read_state(self) -> FileStates:
        """Return the state of the release's files; a revision on the Hub stays as it was opened."""
        folder = Path(self.reference)
        if not folder.is_dir():
            return ()
        return read_states(sorted(find_complete(find_release(folder)).rglob("*")))

    def _load(self, split: str) -> Dataset:
        repo, revision = self._place
        try:
            if revision == "":
                message = f"{self.reference!r} names no revision: expected a tag after the @"
                raise HubError(message)
            rows = load_benchmark(
                repo, split, revision=revision, rows_cache=self.cache, api=self.api
            )
        except HubError as error:
            if Path(self.reference).exists():
                raise
            message = f"{error}; nor is there such a folder next to the config"
            raise HubError(message) from error.__cause__
        with suppress(NoManifestError):
            self.read_manifest()  # refuses sealed samples
        return rows

    @property
    def _place(self) -> tuple[str, str | None]:
        """Split the reference into a folder or repository, and a revision if one is named."""
        repo, at, revision = self.reference.rpartition("@")
        is_whole = not at or Path(self.reference).exists()
        return (self.reference, None) if is_whole else (repo, revision)


def _build_task(row: Mapping[str, Any], split: str, images: ImageStore | None) -> Task | NoTask:
    if row["prompt"] is None or row.get("dehydrated"):
        return NoTask.DEHYDRATED
    given_images = row["input_images"] or ()
    gone = any(missing["column"] == "input_images" for missing in row.get("missing_images") or ())
    if gone or None in given_images:
        return NoTask.MISSING_INPUT
    inputs = list[ImageRef]()
    for image in given_images:
        encoded = read_embedded(image, row["id"])
        digest = hashlib.sha256(encoded).hexdigest()
        try:
            if images is None:
                check_image(encoded)
            else:
                images.put(encoded)
        except ImageError:
            return NoTask.UNREADABLE_INPUT
        inputs.append(ImageRef(digest, None if images is None else images.path(digest)))
    digests = [image.sha256 for image in inputs]
    digest = row["sample_digest"] or sample_digest(row["prompt"], digests)
    sources = tuple(row.get("post_urls") or ())
    return Task(row["id"], digest, split, row["prompt"], tuple(inputs), sources)


BENCHMARK, POSTS = "benchmark", "posts"
ON_HUB = re.compile(r"\w[\w.-]*/\w[\w.-]*(@[\w./-]*)?")


def load_evaluation(config: EvaluationBase | Path | str) -> EvaluationBase:
    """Read a config of an existing benchmark, or of one to build, if a path is given."""
    if isinstance(config, EvaluationBase):
        return config
    path = find_config_file(config)
    folder = path.resolve().parent
    settings = read_yaml(path, "config", EXAMPLE_CONFIG)
    load_plugins(settings, path)
    settings = load_named_files(settings, folder)
    if isinstance(settings, dict) and (BENCHMARK in settings) == (POSTS in settings):
        has = "both benchmark and" if BENCHMARK in settings else "neither benchmark nor"
        raise ConfigError(
            f"{path}: has {has} posts: expected one that is there already "
            "(benchmark: ORGANISATION/NAME@TAG), or posts to build one from"
        )
    if not isinstance(settings, dict) or BENCHMARK not in settings:
        build_config = resolve_paths(parse_config(settings, str(path)), folder)
        placed = _resolve_references(build_config, folder)
        return build_config.model_copy(update=placed).read_from(path)
    try:
        read = EvaluationConfig.model_validate(settings)
    except ValidationError as error:
        raise ConfigError(first_error(error, str(path), EvaluationConfig)) from None
    update = _resolve_references(read, folder)
    update[BENCHMARK] = _resolve_reference(read.benchmark, BENCHMARK, folder)
    update["metrics"] = read.metrics.resolve_paths(folder)
    update["analysis"] = read.analysis.resolve_paths(folder)
    return read.model_copy(update=update).read_from(path)


def find_release_folder(place: Path | str) -> Path:
    """Find the folder of a release, which may be given by its run's folder or config."""
    path = find_config(Path(place))
    if is_run(path) or (path.suffix in (".yaml", ".yml") and path.is_file()):
        return open_run_folder(load_evaluation(path)).release
    return Path(place)


def _resolve_references(config: EvaluationBase, folder: Path) -> dict[str, Any]:
    """Resolve the references to other releases that both kinds of config have."""
    carried = (
        each.model_copy(
            update={"release": _resolve_reference(each.release, f"carry.{number}.release", folder)}
        )
        for number, each in enumerate(config.carry)
    )
    anchors = config.anchors and _resolve_reference(config.anchors, "anchors", folder)
    return {"anchors": anchors, "carry": tuple(carried)}


def _resolve_reference(reference: str, key: str, folder: Path) -> str:
    """Return the path of a file or folder beside the config, or else a name on the Hub."""
    if (folder / reference).exists():
        return str(folder / reference)
    if key.startswith("carry") and Path(reference).is_absolute():
        return reference  # what was drawn of it may lie in the run
    if not ON_HUB.fullmatch(reference):
        reason = next(find_secrets({key: reference}), None) or f"{key} is {format_value(reference)}"
        raise ConfigError(
            f"{reason}: there is no such folder next to the config, and it is not a name on the "
            f"Hub: expected {'a results.json, ' if key == 'anchors' else ''}the folder of a "
            "release, or ORGANISATION/NAME@TAG"
        )
    return reference
