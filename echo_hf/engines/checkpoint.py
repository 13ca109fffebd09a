"""The weights that a model's name stands for, and what engines share that load them here."""

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

from echo_hf._infra.worker_pool import Place, processes, shared_out, visible_gpus
from echo_hf.config.checks import Devices, Section, Whole
from echo_hf.engines.base import (
    Answers,
    Completion,
    ImageRef,
    Request,
    StreamingEngine,
    check_installed,
    read_options,
)
from echo_hf.engines.pixels import Budget, budget_of, sent_reference
from echo_hf.engines.pooled import PooledEngine
from echo_hf.errors import EchoError, EngineError

NAMES = (
    (re.compile(r"qwen[-_]?2[._]5[-_]?vl"), "qwen2_5_vl"),
    (re.compile(r"qwen[-_]?2[-_]?vl"), "qwen2_vl"),
    (re.compile(r"qwen[-_]?3([-_]?vl|[._]5)"), "qwen3_vl"),
    # Made of Qwen2.5-VL and Qwen2-VL, with their processors.
    (re.compile(r"ui[-_]?tars[-_]?1[._]5"), "qwen2_5_vl"),
    (re.compile(r"ui[-_]?tars[-_]?\d+b"), "qwen2_vl"),
)
CONFIG = "config.json"
OF_IMAGES = re.compile(r"(^|_)(vision|visual|images?|img|vit)(_|$)")  # keys of a config
COMMIT = re.compile(r"[0-9a-f]{40}")
# What a tokenizer, a template and a processor are made of; a README decides no answer.
SETTINGS = ("*.json", "*.jinja", "*.model", "*.txt", "*.tiktoken")
WEIGHTS = ("*.safetensors", "*.gguf", "*.bin", "*.pt")
PIECES, PIECE = 64, 4096
# 1280 patches of Qwen2.5-VL: what its authors advise, and what the planner counts for an image.
MAX_PIXELS = 1280 * 28 * 28
LONGEST_REASON = 400

Name = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
Count = Annotated[Whole, Field(ge=1)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]


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


def family_of(model: str) -> str | None:
    """The family whose rule a model's images follow: by a folder's config, else by its name."""
    config, name = Path(model) / CONFIG, model
    if config.is_file():
        try:
            name = str(json.loads(config.read_text("utf-8")).get("model_type", ""))
        except (OSError, ValueError, AttributeError) as error:
            raise EngineError(f"cannot read {str(config)!r}: {error}") from error
    return next((family for words, family in NAMES if words.search(name.lower())), None)


def find_checkpoint(
    model: str, revision: str | None = None, *, before_asking: Callable[[], None] | None = None
) -> Checkpoint:
    """Finds the commit or the folder that a name stands for, without reading all weights."""
    folder = Path(model)
    if folder.is_dir():
        if revision is not None:
            raise EngineError(
                f"model {model!r} is a folder, which has no revision {revision!r}: leave it out"
            )
        name, digest = folder.resolve().name, _digest(folder)
        return Checkpoint(str(folder), name, digest, family_of(model), sees_images(folder))
    from huggingface_hub import hf_hub_download, try_to_load_from_cache

    revision = revision or "main"
    is_pinned, is_name = bool(COMMIT.fullmatch(revision)), is_hub_name(model)
    found = try_to_load_from_cache(model, CONFIG, revision=revision) if is_name else None
    if not isinstance(found, str):
        if before_asking and is_name and not is_pinned:
            before_asking()
        try:
            found = hf_hub_download(model, CONFIG, revision=revision)
        except Exception as error:  # the Hub's client passes on what its own libraries raise
            if is_pinned:  # its answers are only read back where the model is not
                return Checkpoint(model, model, revision, family_of(model))
            said = " ".join(str(error).split())
            raise EngineError(
                f"no model {model!r} at revision {revision!r}: neither a folder, nor in the cache, "
                f"nor on the Hub ({type(error).__name__}: {said[:200]}): check the name, or give "
                "the commit as `revision` to read stored answers without the model"
            ) from error
    snapshot = Path(found).parent
    family, sees = family_of(str(snapshot)), sees_images(snapshot)
    return Checkpoint(model, model, snapshot.name, family, sees)


def sees_images(folder: Path) -> bool | None:
    """Whether a model reads images, as its config shows; null where it does not show it."""
    try:
        config = json.loads((folder / CONFIG).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(config, dict):
        return None
    if any(map(OF_IMAGES.search, config)):
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


def _digest(folder: Path) -> str:
    found = (sorted(folder.glob(pattern)) for pattern in WEIGHTS)
    weights = next((files for files in found if files), [])
    if not (folder / CONFIG).is_file() or not weights:
        raise EngineError(
            f"folder {str(folder)!r} holds no model: expected {CONFIG!r} and weights such as "
            "'model.safetensors'"
        )
    digest = hashlib.sha256()
    settings = {file for pattern in SETTINGS for file in folder.glob(pattern)}
    for file in sorted(settings - set(weights)):
        digest.update(framed(file.name.encode()) + framed(file.read_bytes()))
    for file in weights:
        digest.update(framed(file.name.encode()) + b"%d:" % file.stat().st_size)
        digest.update(b"".join(pieces(file)))
    return f"sha256:{digest.hexdigest()}"


def pieces(file: Path) -> Iterator[bytes]:
    """Pieces from all over a file of weights, which tell two trainings of a model apart."""
    last = max(0, file.stat().st_size - PIECE)
    with file.open("rb") as weights:
        for number in range(PIECES):
            weights.seek(last * number // (PIECES - 1))
            yield weights.read(PIECE)


def framed(data: bytes) -> bytes:
    """Bytes after their own number, so that what is joined can be told apart."""
    return b"%d:" % len(data) + data


def reason(error: BaseException) -> str:
    """An error in one line: ours as it is, another library's with its kind."""
    said = " ".join(str(error).split())
    is_ours = isinstance(error, EchoError)
    return (said if is_ours else f"{type(error).__name__}: {said}")[:LONGEST_REASON]


def failure(error: BaseException) -> Completion:
    return Completion(None, reason(error), "error")


class ModelOptions(Section):
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

    model: Name
    revision: Name | None = None
    family: str | None = None
    dtype: Literal["auto", "bfloat16", "float16", "float32"] = "auto"
    min_pixels: Count | None = None
    max_pixels: Count | None = MAX_PIXELS
    temperature: Annotated[Number, Field(ge=0)] = 0.0
    top_p: Annotated[Number, Field(gt=0, le=1)] = 1.0
    seed: Whole = 0
    chat_template: FilePath | None = None
    chat_template_kwargs: Mapping[str, Any] = {}
    devices: Devices | None = None


class CheckpointEngine(StreamingEngine):
    """Loads a checkpoint with its first request, here or once a device; leaving frees it."""

    kind: str
    # What of the options decides an answer, beside what every model has.
    keyed: tuple[str, ...]
    options: ModelOptions

    def __init__(self, model: type[ModelOptions], given: Mapping[str, Any]) -> None:
        super().__init__()
        options = self.options = read_options(model, given, self.kind)
        place = f"engine {self.kind!r}"
        budget_of(options.family, options.min_pixels, options.max_pixels, place=place)
        self._loaded: Any = None
        self._pooled: PooledEngine | None = None

    @property
    @abstractmethod
    def window(self) -> int:
        """How many requests a model takes at a time, with those that it prepares."""

    @abstractmethod
    def _computed(self, requests: Iterator[Request]) -> Answers:
        """Answers with the model in this process."""

    def __exit__(self, *exception: object) -> None:
        super().__exit__(*exception)
        if self._pooled is not None:
            self._pooled.__exit__(*exception)
            self._pooled = None

    def _answers(self, requests: Iterator[Request]) -> Answers:
        if self.options.devices is None:
            yield from self._computed(requests)
            return
        if self._pooled is None:
            self._pooled = PooledEngine(self, self.again(), self._processes)
        yield from self._pooled.stream(requests)

    def again(self) -> Callable[[], CheckpointEngine]:
        """Makes an engine like this in another process, which loads it for itself."""
        given = self.options.model_dump(exclude_unset=True, exclude={"devices"})
        if commit := self._checkpoint.commit:  # all load what the signature names
            given["revision"] = commit
        return partial(type(self), **given)

    def _processes(self) -> list[Place]:
        each = getattr(self.options, "tensor_parallel_size", 1)
        try:
            return processes(shared_out(self.options.devices or 1, visible_gpus(), each))
        except ValueError as error:
            raise EngineError(f"engine {self.kind!r}: devices is {error}") from None

    def signature(self) -> dict[str, Any]:
        """What decides an answer; memory, devices and the number of requests at a time do not."""
        options, template = self.options, self.options.chat_template
        drawn = {"top_p": options.top_p, "seed": options.seed} if options.temperature else {}
        return {
            "kind": self.kind,
            "model": self._checkpoint.name,
            "revision": self._checkpoint.revision,
            **{name: getattr(options, name) for name in self.keyed},
            "sampling": {"temperature": options.temperature, **drawn},
            "pixels": list(self._budget),
            # The model's own template belongs to its revision.
            "chat_template": template and hashlib.sha256(template.read_bytes()).hexdigest(),
            "chat_template_kwargs": dict(options.chat_template_kwargs),
        }

    @property
    def sees_images(self) -> bool | None:
        """Whether the model reads images; null where nobody can say before it is loaded."""
        return self._checkpoint.sees_images

    def _read(self, reference: ImageRef) -> Image.Image:
        return sent_reference(reference, self._budget)

    @property
    def _budget(self) -> Budget:
        options = self.options
        family = options.family or self._checkpoint.family
        return budget_of(family, options.min_pixels, options.max_pixels)

    @cached_property
    def _checkpoint(self) -> Checkpoint:
        options, before = self.options, partial(check_installed, self.kind)
        return find_checkpoint(options.model, options.revision, before_asking=before)
