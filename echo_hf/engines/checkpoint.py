"""Find the checkpoint that a model's name stands for; the base of engines that load one."""

from __future__ import annotations

import hashlib
import json
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, Literal

from PIL import Image
from pydantic import Field, FilePath, StringConstraints

from echo_hf._infra.worker_pool import WorkerFactory, assign_gpus, make_processes, visible_gpus
from echo_hf.config.checks import Devices, Section, StrictInt
from echo_hf.engines.base import (
    Completion,
    CompletionStream,
    ImageRef,
    Request,
    StreamingEngine,
    check_installed,
    read_options,
)
from echo_hf.engines.pixels import PixelBudget, pixel_budget, prepare_image_ref
from echo_hf.engines.pooled import PooledEngine
from echo_hf.errors import EchoError, EngineError

FAMILIES = (
    (re.compile(r"qwen[-_]?2[._]5[-_]?vl"), "qwen2_5_vl"),
    (re.compile(r"qwen[-_]?2[-_]?vl"), "qwen2_vl"),
    (re.compile(r"qwen[-_]?3([-_]?vl|[._]5)"), "qwen3_vl"),
    # Made of Qwen2.5-VL and Qwen2-VL, with their processors.
    (re.compile(r"ui[-_]?tars[-_]?1[._]5"), "qwen2_5_vl"),
    (re.compile(r"ui[-_]?tars[-_]?\d+b"), "qwen2_vl"),
)
CONFIG = "config.json"
VISION_KEY = re.compile(r"(^|_)(vision|visual|images?|img|vit)(_|$)")  # keys of a config
COMMIT = re.compile(r"[0-9a-f]{40}")
# What a tokenizer, a template and a processor are made of; a README decides no answer.
SETTINGS_PATTERNS = ("*.json", "*.jinja", "*.model", "*.txt", "*.tiktoken")
WEIGHT_PATTERNS = ("*.safetensors", "*.gguf", "*.bin", "*.pt")
SAMPLED_PIECES, PIECE_BYTES = 64, 4096
# 1280 patches of Qwen2.5-VL: what its authors advise, and what the planner counts for an image.
MAX_PIXELS = 1280 * 28 * 28
MAX_REASON = 400

NonEmptyText = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
PositiveCount = Annotated[StrictInt, Field(ge=1)]
FiniteNumber = Annotated[float, Field(strict=True, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    source: str
    name: str
    revision: str
    family: str | None
    sees_images: bool | None = None  # null where nothing here tells

    @property
    def commit(self) -> str | None:
        """The revision to load from the Hub, null for a folder."""
        return None if self.revision.startswith("sha256:") else self.revision


def model_family(model: str) -> str | None:
    """Return the model family whose resize rule applies, by the config file or the name."""
    config, name = Path(model) / CONFIG, model
    if config.is_file():
        try:
            name = str(json.loads(config.read_text("utf-8")).get("model_type", ""))
        except (OSError, ValueError, AttributeError) as error:
            raise EngineError(f"cannot read {str(config)!r}: {error}") from error
    return next((family for pattern, family in FAMILIES if pattern.search(name.lower())), None)


def find_checkpoint(
    model: str, revision: str | None = None, *, before_asking: Callable[[], None] | None = None
) -> Checkpoint:
    """Find the commit or the folder that a name stands for, without reading all weights."""
    folder = Path(model)
    if folder.is_dir():
        if revision is not None:
            raise EngineError(
                f"model {model!r} is a folder, which has no revision {revision!r}: leave it out"
            )
        name, digest = folder.resolve().name, _hash_folder(folder)
        return Checkpoint(str(folder), name, digest, model_family(model), can_see_images(folder))
    from huggingface_hub import hf_hub_download, try_to_load_from_cache

    revision = revision or "main"
    is_pinned, is_name = bool(COMMIT.fullmatch(revision)), is_hub_name(model)
    config_path = try_to_load_from_cache(model, CONFIG, revision=revision) if is_name else None
    if not isinstance(config_path, str):
        if before_asking and is_name and not is_pinned:
            before_asking()
        try:
            config_path = hf_hub_download(model, CONFIG, revision=revision)
        except Exception as error:  # the Hub's client passes on what its own libraries raise
            if is_pinned:  # its answers are only read back where the model is not
                return Checkpoint(model, model, revision, model_family(model))
            message = " ".join(str(error).split())
            raise EngineError(
                f"no model {model!r} at revision {revision!r}: neither a folder, nor in the cache, "
                f"nor on the Hub ({type(error).__name__}: {message[:200]}): check the name, or "
                "give the commit as `revision` to read stored answers without the model"
            ) from error
    snapshot = Path(config_path).parent
    family, can_see = model_family(str(snapshot)), can_see_images(snapshot)
    return Checkpoint(model, model, snapshot.name, family, can_see)


def can_see_images(folder: Path) -> bool | None:
    """Whether the model reads images; null while that is unknown before loading."""
    try:
        config = json.loads((folder / CONFIG).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(config, dict):
        return None
    if any(map(VISION_KEY.search, config)):
        return True
    names = config.get("architectures") or [""]
    return False if all(str(name).endswith("ForCausalLM") for name in names) else None


def is_hub_name(model: str) -> bool:
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    try:
        validate_repo_id(model)
    except HFValidationError:
        return False
    return True


def _hash_folder(folder: Path) -> str:
    candidates = (sorted(folder.glob(pattern)) for pattern in WEIGHT_PATTERNS)
    weights = next((files for files in candidates if files), [])
    if not (folder / CONFIG).is_file() or not weights:
        raise EngineError(
            f"folder {str(folder)!r} holds no model: expected {CONFIG!r} and weights such as "
            "'model.safetensors'"
        )
    digest = hashlib.sha256()
    settings = {file for pattern in SETTINGS_PATTERNS for file in folder.glob(pattern)}
    for file in sorted(settings - set(weights)):
        digest.update(frame_bytes(file.name.encode()) + frame_bytes(file.read_bytes()))
    for file in weights:
        digest.update(frame_bytes(file.name.encode()) + b"%d:" % file.stat().st_size)
        digest.update(b"".join(sample_weights(file)))
    return f"sha256:{digest.hexdigest()}"


def sample_weights(file: Path) -> Iterator[bytes]:
    """Yield samples of bytes from all over a weights file, to tell trainings apart."""
    last = max(0, file.stat().st_size - PIECE_BYTES)
    with file.open("rb") as weights:
        for number in range(SAMPLED_PIECES):
            weights.seek(last * number // (SAMPLED_PIECES - 1))
            yield weights.read(PIECE_BYTES)


def frame_bytes(data: bytes) -> bytes:
    """Prefix bytes with their length, so that joined pieces stay distinguishable."""
    return b"%d:" % len(data) + data


def describe_error(error: BaseException) -> str:
    """Describe an error in one line; other libraries' errors with their type."""
    message = " ".join(str(error).split())
    is_own_error = isinstance(error, EchoError)
    return (message if is_own_error else f"{type(error).__name__}: {message}")[:MAX_REASON]


def failed_completion(error: BaseException) -> Completion:
    return Completion(None, describe_error(error), "error")


class CheckpointOptions(Section):
    """The model, its images and its sampling; code that comes with a model is never run.

    Attributes:
        model: A name on the Hub, or a folder.
        revision: Branch, tag or commit on the Hub; null for the one in the local cache.
        family: Whose rule its images follow; null to read it from the model.
        dtype: Type of the weights in memory.
        min_pixels: Fewest pixels of an image; null for the family's own.
        max_pixels: Most pixels; a larger image is reduced before it is sent.
        temperature: 0 for the likeliest answer.
        top_p: Share of likeliest tokens that are drawn from.
        seed: Of the draws.
        chat_template: A Jinja file instead of the model's own template.
        chat_template_kwargs: Values for the template's switches.
        devices: One process on each of these: `all` GPUs, a number of them (of processes, where
            there is no GPU), or GPUs such as `[0, 1]`; null for one model, in this process.
    """

    model: NonEmptyText
    revision: NonEmptyText | None = None
    family: str | None = None
    dtype: Literal["auto", "bfloat16", "float16", "float32"] = "auto"
    min_pixels: PositiveCount | None = None
    max_pixels: PositiveCount | None = MAX_PIXELS
    temperature: Annotated[FiniteNumber, Field(ge=0)] = 0.0
    top_p: Annotated[FiniteNumber, Field(gt=0, le=1)] = 1.0
    seed: StrictInt = 0
    chat_template: FilePath | None = None
    chat_template_kwargs: Mapping[str, Any] = {}
    devices: Devices | None = None


class CheckpointEngine(StreamingEngine):
    """Base of engines that load a checkpoint, in this process or in one per device."""

    kind: str
    # What of the options decides an answer, beside what every model has.
    signed_options: tuple[str, ...]
    options: CheckpointOptions

    def __init__(self, model: type[CheckpointOptions], options: Mapping[str, Any]) -> None:
        super().__init__()
        checked = self.options = read_options(model, options, self.kind)
        place = f"engine {self.kind!r}"
        pixel_budget(checked.family, checked.min_pixels, checked.max_pixels, place=place)
        self._loaded: Any = None
        self._pooled: PooledEngine | None = None

    @property
    @abstractmethod
    def window(self) -> int:
        """Number of requests that a model takes at a time, with those being prepared."""

    @abstractmethod
    def _compute_completions(self, requests: Iterator[Request]) -> CompletionStream:
        """Answer with the model in this process."""

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        if self._pooled is not None:
            self._pooled.__exit__(*exception)
            self._pooled = None

    def _iterate_completions(self, requests: Iterator[Request]) -> CompletionStream:
        if self.options.devices is None:
            yield from self._compute_completions(requests)
            return
        if self._pooled is None:
            self._pooled = PooledEngine(self, self.make_factory(), self._make_worker_factories)
        yield from self._pooled.stream(requests)

    def make_factory(self) -> Callable[[], CheckpointEngine]:
        """Return a factory of an equal engine, which loads the model in another process."""
        options = self.options.model_dump(exclude_unset=True, exclude={"devices"})
        if commit := self._checkpoint.commit:  # all load what the signature names
            options["revision"] = commit
        return partial(type(self), **options)

    def _make_worker_factories(self) -> list[WorkerFactory]:
        gpus = getattr(self.options, "tensor_parallel_size", 1)
        try:
            return make_processes(assign_gpus(self.options.devices or 1, visible_gpus(), gpus))
        except ValueError as error:
            raise EngineError(f"engine {self.kind!r}: devices is {error}") from None

    def signature(self) -> dict[str, Any]:
        """Return what decides an answer; memory, devices and batch sizes do not."""
        options, template = self.options, self.options.chat_template
        sampling = {"top_p": options.top_p, "seed": options.seed} if options.temperature else {}
        return {
            "kind": self.kind,
            "model": self._checkpoint.name,
            "revision": self._checkpoint.revision,
            **{name: getattr(options, name) for name in self.signed_options},
            "sampling": {"temperature": options.temperature, **sampling},
            "pixels": list(self._budget),
            # The model's own template belongs to its revision.
            "chat_template": template and hashlib.sha256(template.read_bytes()).hexdigest(),
            "chat_template_kwargs": dict(options.chat_template_kwargs),
        }

    @property
    def sees_images(self) -> bool | None:
        """Whether the model reads images; null while that is unknown before loading."""
        return self._checkpoint.sees_images

    def _read_image(self, reference: ImageRef) -> Image.Image:
        return prepare_image_ref(reference, self._budget)

    @property
    def _budget(self) -> PixelBudget:
        options = self.options
        family = options.family or self._checkpoint.family
        return pixel_budget(family, options.min_pixels, options.max_pixels)

    @cached_property
    def _checkpoint(self) -> Checkpoint:
        options, check_libraries = self.options, partial(check_installed, self.kind)
        return find_checkpoint(options.model, options.revision, before_asking=check_libraries)
