"""Systems whose model runs on this machine: files, weights, devices, processes and errors."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, ClassVar, Generic, Literal, Self, TypeVar

from PIL import Image
from pydantic import StringConstraints

from echo_hf._infra.text import remove_folders
from echo_hf._infra.worker_pool import (
    ItemStreams,
    LostItemError,
    WorkerFactory,
    WorkerPool,
    count_processes,
    make_processes,
)
from echo_hf.config.checks import Section, Words
from echo_hf.config.systems import SystemConfig
from echo_hf.engines.checkpoint import frame_bytes, is_hub_name, sample_weights
from echo_hf.engines.transformers import free_memory, is_out_of_memory
from echo_hf.errors import EchoError, GenerationError, ImageError
from echo_hf.images.loader import BadImageError
from echo_hf.systems.base import GenerationResult, OutcomeStage, Task, failure_result
from echo_hf.systems.images import open_inputs
from echo_hf.systems.registry import assign_devices, require_model
from echo_hf.tables import Outcome

# Files that decide an image, unlike a README.
SETTINGS_SUFFIXES = frozenset({".json", ".jinja", ".model", ".txt", ".tiktoken"})
WEIGHTS_SUFFIXES = frozenset({".safetensors", ".ckpt", ".bin", ".pt"})
MAIN = "main"
MAX_TEXT = 300


@dataclass(frozen=True)
class LocalModel:
    """A model in a folder, in the cache or on the Hub; `index` is its first file."""

    system: str
    source: str
    revision: str | None
    index: str

    @cached_property
    def folder(self) -> Path | None:
        return Path(self.source) if Path(self.source).is_dir() else None

    @cached_property
    def identity(self) -> dict[str, str | None]:
        """Identify the weights: `model` without a path, and `revision` or a folder's digest."""
        if self.folder is not None:
            return {"model": self.folder.resolve().name, "revision": hash_folder(self.folder)}
        return {"model": self.source, "revision": self.revision or MAIN}

    @property
    def commit(self) -> str | None:
        """The commit of the model in the cache; null for a folder, or where it is not cached."""
        index_path = None if self.folder else self._find_in_cache()
        return index_path.parent.name if index_path else None

    @property
    def load_revision(self) -> str | None:
        """The revision to load: the cached commit, so that all files are of one, or `revision`."""
        return self.commit or self.revision

    def find_index(self) -> Path | None:
        """Find the model's index without a download; null where it may be on the Hub."""
        from huggingface_hub import constants

        index_path = self._find_in_cache() if self.folder is None else self.folder / self.index
        if self.folder is None:
            may_be = index_path or (is_hub_name(self.source) and not constants.HF_HUB_OFFLINE)
        else:
            may_be = self.revision is None and (self.folder / self.index).is_file()
        if not may_be:
            raise GenerationError(
                f"system {self.system!r}: there is no {self.index!r} of model {self.source!r} "
                f"(revision {self.revision!r}): expected a folder as its library saves it, which "
                "has no revision, or a name on the Hub such as ORGANISATION/NAME, which is "
                "downloaded unless HF_HUB_OFFLINE is set"
            )
        return index_path

    def fetch_index(self) -> Path:
        """Return the model's index, and download it where it is missing."""
        from huggingface_hub import hf_hub_download

        index_path = self.find_index()
        return index_path or Path(hf_hub_download(self.source, self.index, revision=self.revision))

    def _find_in_cache(self) -> Path | None:
        from huggingface_hub import try_to_load_from_cache

        if not is_hub_name(self.source):
            return None
        cached = try_to_load_from_cache(self.source, self.index, revision=self.revision or MAIN)
        return Path(cached) if isinstance(cached, str) else None


def hash_folder(folder: Path) -> str:
    """Compute a digest of a folder's settings files and samples of its weights."""
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder)
        if any(part.startswith(".") for part in name.parts):
            continue
        if file.suffix in SETTINGS_SUFFIXES:
            digest.update(frame_bytes(name.as_posix().encode()) + frame_bytes(file.read_bytes()))
        elif file.suffix in WEIGHTS_SUFFIXES:
            size = file.stat().st_size
            digest.update(frame_bytes(name.as_posix().encode()) + frame_bytes(b"%d" % size))
            for chunk in sample_weights(file):
                digest.update(chunk)
    return f"sha256:{digest.hexdigest()}"


Device = Annotated[str, StringConstraints(pattern=r"^(auto|cpu|mps|xpu|cuda(:\d{1,2})?)$")]
DEVICES_BY_SPEED = ("cuda", "xpu", "mps")


class LocalOptions(Section):
    """Parameters of a model in this process.

    Attributes:
        revision: Branch, tag or commit on the Hub; null for the main branch.
        dtype: How its numbers are kept.
        device: Where it runs; `auto` is the accelerator, or the processor without one.
    """

    revision: Words | None = None
    dtype: Literal["bfloat16", "float16", "float32"] = "bfloat16"
    device: Device = "auto"


def choose_device(options: LocalOptions, place: str) -> str:
    import torch

    available = [kind for kind in DEVICES_BY_SPEED if getattr(torch, kind).is_available()]
    if options.device == "auto":
        return next(iter(available), "cpu")
    kind, _, number = options.device.partition(":")
    count = torch.get_device_module(kind).device_count() if kind in available else 0
    if kind != "cpu" and int(number or 0) >= count:
        raise GenerationError(
            f"{place}: device is {options.device!r}, which this machine does not have: expected "
            f"one of {', '.join([*available, 'cpu'])}"
        )
    return options.device


def describe_model_error(error: BaseException) -> str:
    """Return the first line of an error, without the folders of this machine."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return remove_folders((lines or [""])[0])[:MAX_TEXT]


OptionsT = TypeVar("OptionsT", bound=LocalOptions)
LoadedT = TypeVar("LoadedT")


def _draw_runs(
    kind: Callable[[SystemConfig], LocalSystem[Any, Any]],
    config: SystemConfig,
    runs: ItemStreams[Task],
) -> Iterator[tuple[int, GenerationResult | EchoError]]:
    """Draw the tasks of a worker process; an error means that no task could succeed."""
    with kind(config) as system:
        for number, task in chain.from_iterable(runs):
            result: GenerationResult | EchoError
            try:
                result = system.draw(task)
            except EchoError as error:
                result = error
            yield number, result


class LocalSystem(ABC, Generic[OptionsT, LoadedT]):
    """Base of local models, in this process or one for each device; loaded for the first task."""

    determinism: str
    # Raised with each change that changes images, which are then all drawn again.
    wording: ClassVar[int]
    # Options about where the model runs, which are not in a signature.
    places: ClassVar[frozenset[str]]
    # For messages: what kind of model can be loaded, and what helps where memory is short.
    expected: ClassVar[str]
    smaller: ClassVar[str]

    def __init__(self, config: SystemConfig, options: OptionsT, index: str) -> None:
        self.config, self.options, self.place = config, options, f"system {config.name!r}"
        devices = config.limits.devices
        if devices is not None and options.device not in ("auto", "cpu"):
            raise GenerationError(
                f"{self.place}: parameters.device is {options.device!r}, and limits.devices says "
                "where it runs: leave one of them out"
            )
        self.concurrency = count_processes(devices or 1)
        if (config.limits.concurrency or self.concurrency) != self.concurrency:
            raise GenerationError(
                f"{self.place}: limits.concurrency is {config.limits.concurrency}: expected "
                f"{self.concurrency}, as a model draws one image at a time in each of its processes"
            )
        self.model = LocalModel(config.name, require_model(config), options.revision, index)
        self._loaded: LoadedT | None = None
        self._pool: WorkerPool[Task, GenerationResult] | None = None
        self._places: Sequence[WorkerFactory] | None = None
        self._starting = Lock()

    def work_at(self, places: Sequence[WorkerFactory]) -> None:
        """Let workers at these places draw instead of this process."""
        if self.config.limits.devices is not None:
            raise GenerationError(
                f"{self.place}: limits.devices is {self.config.limits.devices!r}, which are of "
                "this machine, and the runner is 'ray': leave it out"
            )
        self._places, self.concurrency = places, len(places)

    def signature(self) -> dict[str, Any]:
        """Return all that decides an image; the device does not."""
        return {
            "adapter": self.config.adapter,
            "seed": self.config.seed,
            "wording": self.wording,
            **self.model.identity,
            **self.options.model_dump(mode="json", exclude=set(self.places), exclude_defaults=True),
        }

    def preflight(self) -> None:
        """Look for the devices and the model; nothing is downloaded."""
        assign_devices(self.config, self.options.device == "cpu")
        self.model.find_index()

    @abstractmethod
    def load(self, device: str) -> LoadedT:
        """Load the model; errors of a config are found before the weights are read."""

    @abstractmethod
    def check_task(self, loaded: LoadedT, task: Task) -> GenerationResult | None:
        """Return why the model does not take a task; null where it does."""

    @abstractmethod
    def draw_with(
        self, loaded: LoadedT, task: Task, inputs: tuple[Image.Image, ...]
    ) -> GenerationResult:
        """Draw a task whose inputs are open."""

    def draw(self, task: Task) -> GenerationResult:
        """Draw the image of a task; an unexpected error is a failure of the task alone."""
        if self.config.limits.devices is not None or self._places is not None:
            with self._starting:
                pool = self._pool = self._pool or self._start_pool()
            try:
                return pool.submit(task)[0].result()
            except LostItemError as error:
                return failure_result(str(error), "workers_lost")
        loaded = self._loaded = self._loaded or self._load()
        if (unfit := self.check_task(loaded, task)) is not None:
            return unfit
        try:
            result = self.draw_with(loaded, task, open_inputs(task))
        except ImageError as error:
            code = str(error.reason) if isinstance(error, BadImageError) else None
            result = failure_result(describe_model_error(error), code, OutcomeStage.INPUT)
        except Exception as error:
            result = failure_result(describe_model_error(error), type(error).__name__)
            if is_out_of_memory(error):
                advice = "ask for a smaller size, or use a smaller model, dtype or offload"
                result = failure_result(f"out of memory: {advice}", "out_of_memory")
        if result.outcome is Outcome.FAILED:
            free_memory()  # after the failed call's variables are gone
        return result

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.close()
            self._pool = None
        if self._loaded is not None:
            self._loaded = None
            free_memory()

    def _start_pool(self) -> WorkerPool[Task, GenerationResult]:
        config, places = self.config, self._places
        if places is None:
            devices = assign_devices(config, self.options.device == "cpu")
            # Named: without a GPU, `auto` would silently be the processor.
            device = "cpu" if devices[0] is None else "cuda"
            alone = {"devices": None, "concurrency": None}
            changed = {
                "limits": config.limits.model_copy(update=alone),
                "parameters": {**config.parameters, "device": device},
            }
            config, places = config.model_copy(update=changed), make_processes(devices)
        service = partial(_draw_runs, type(self), config)
        return WorkerPool(self.place, service, places, GenerationError)

    def describe(self, device: str, *libraries: Any) -> dict[str, Any]:
        """Describe what decides an image about this machine."""
        return {
            "commit": self.model.commit,
            "dtype": self.options.dtype,
            "device": device,
            "versions": {library.__name__: str(library.__version__) for library in libraries},
        }

    def _load(self) -> LoadedT:
        device = choose_device(self.options, self.place)
        try:
            return self.load(device)
        except EchoError:
            raise
        except Exception as error:  # the driver, the memory and the files may raise anything
            kind, source = type(error).__name__, self.model.source
            reason = f"{kind}: {describe_model_error(error)}"
            message = f"cannot load {source!r} ({reason}): expected {self.expected}"
            if is_out_of_memory(error):
                message = f"model {source!r} does not fit into memory: use {self.smaller}"
            raise GenerationError(f"{self.place}: {message}") from error
