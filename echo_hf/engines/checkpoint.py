"""Which weights a model's name stands for, its family, and what a config says of a local model."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, FilePath, StringConstraints, ValidationError

from echo_hf.config.checks import Section, Whole, first_error
from echo_hf.engines.base import check_installed
from echo_hf.errors import EngineError, unknown


@dataclass(frozen=True, slots=True)
class Budget:
    """What a family makes of images, or what a config asks for.

    Attributes:
        factor: Both sides become multiples of it.
        min_pixels: A smaller image is enlarged.
        max_pixels: A larger one is reduced; null where none is too large.
    """

    factor: int
    min_pixels: int
    max_pixels: int | None


# The budgets are those of the published checkpoints' own preprocessor settings.
FAMILIES: Mapping[str, Budget] = MappingProxyType(
    {
        "qwen2_vl": Budget(28, 4 * 28**2, 16_384 * 28**2),
        "qwen2_5_vl": Budget(28, 4 * 28**2, 16_384 * 28**2),
        "qwen3_vl": Budget(32, 64 * 32**2, 16_384 * 32**2),
    }
)
ANY_SIZE = Budget(1, 1, None)
NAMES = (
    (re.compile(r"qwen[-_]?2[._]5[-_]?vl"), "qwen2_5_vl"),
    (re.compile(r"qwen[-_]?2[-_]?vl"), "qwen2_vl"),
    (re.compile(r"qwen[-_]?3([-_]?vl|[._]5)"), "qwen3_vl"),
)


def family_of(model: str) -> str | None:
    """The family whose rule a model's images follow."""
    config = Path(model) / "config.json"
    name = _model_type(config) if config.is_file() else model
    return next((family for words, family in NAMES if words.search(name.lower())), None)


def budget_of(
    family: str | None, min_pixels: int | None = None, max_pixels: int | None = None
) -> Budget:
    if family is not None and family not in FAMILIES:
        raise EngineError(unknown("family", family, FAMILIES))
    own = ANY_SIZE if family is None else FAMILIES[family]
    least = own.min_pixels if min_pixels is None else min_pixels
    most = own.max_pixels if max_pixels is None else max_pixels
    if least < 1 or (most is not None and most < max(least, own.factor**2)):
        raise EngineError(
            f"no image has min_pixels {least!r} and max_pixels {most!r}: expected 1 or more, and "
            f"a maximum of at least the minimum and one patch of {own.factor**2} pixels"
        )
    return Budget(own.factor, least, most)


def _model_type(config: Path) -> str:
    try:
        settings = json.loads(config.read_text("utf-8"))
        return str(settings.get("model_type", ""))
    except (OSError, ValueError, AttributeError) as error:
        raise EngineError(f"cannot read {str(config)!r}: {error}") from error


CONFIG = "config.json"
COMMIT = re.compile(r"[0-9a-f]{40}")
# What a tokenizer, a template and a processor are made of; a README decides no answer.
SETTINGS = ("*.json", "*.jinja", "*.model", "*.txt", "*.tiktoken")
WEIGHTS = ("*.safetensors", "*.gguf", "*.bin", "*.pt")
PIECES = 64
PIECE = 4096


@dataclass(frozen=True, slots=True)
class Checkpoint:
    source: str
    name: str
    revision: str
    family: str | None

    @property
    def commit(self) -> str | None:
        """The revision to load from the Hub, null for a folder."""
        return None if self.revision.startswith("sha256:") else self.revision


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
        return Checkpoint(str(folder), folder.resolve().name, _digest(folder), family_of(model))
    return _on_hub(model, revision or "main", before_asking)


def _on_hub(model: str, revision: str, before_asking: Callable[[], None] | None) -> Checkpoint:
    settings = _cached(model, revision)
    if settings is None:
        if before_asking and is_hub_name(model) and not COMMIT.fullmatch(revision):
            before_asking()
        settings = _downloaded(model, revision)
    # By the name, if a pinned commit's answers are only read back where the model is not.
    if settings is None:
        return Checkpoint(model, model, revision, family_of(model))
    return Checkpoint(model, model, settings.parent.name, family_of(str(settings.parent)))


def _cached(model: str, revision: str) -> Path | None:
    from huggingface_hub import try_to_load_from_cache

    if not is_hub_name(model):
        return None
    cached = try_to_load_from_cache(model, CONFIG, revision=revision)
    return Path(cached) if isinstance(cached, str) else None


def is_hub_name(model: str) -> bool:
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    try:
        validate_repo_id(model)
    except HFValidationError:
        return False
    return True


def _downloaded(model: str, revision: str) -> Path | None:
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(model, CONFIG, revision=revision))
    except Exception as error:  # the Hub's client passes on what its own libraries raise
        if COMMIT.fullmatch(revision):
            return None
        said = " ".join(str(error).split())
        raise EngineError(
            f"no model {model!r} at revision {revision!r}: neither a folder, nor in the cache, nor "
            f"on the Hub ({type(error).__name__}: {said[:200]}): check the name, or give the "
            "commit as `revision` to read stored answers without the model"
        ) from error


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    weights = _weights(folder)
    if not (folder / CONFIG).is_file() or not weights:
        raise EngineError(
            f"folder {str(folder)!r} holds no model: expected {CONFIG!r} and weights such as "
            "'model.safetensors'"
        )
    settings = {file for pattern in SETTINGS for file in folder.glob(pattern)}
    for file in sorted(settings - set(weights)):
        digest.update(framed(file.name.encode()) + framed(file.read_bytes()))
    for file in weights:
        digest.update(framed(file.name.encode()) + b"%d:" % file.stat().st_size)
        for piece in pieces(file):
            digest.update(piece)
    return f"sha256:{digest.hexdigest()}"


def _weights(folder: Path) -> list[Path]:
    found = (sorted(folder.glob(pattern)) for pattern in WEIGHTS)
    return next((files for files in found if files), [])


def pieces(file: Path) -> Iterator[bytes]:
    """Pieces from all over a file of weights, which tell two trainings of a model apart."""
    # Two trainings of one model differ in every layer: pieces tell them apart, and take no minutes.
    last = max(0, file.stat().st_size - PIECE)
    with file.open("rb") as weights:
        for number in range(PIECES):
            weights.seek(last * number // (PIECES - 1))
            yield weights.read(PIECE)


def framed(data: bytes) -> bytes:
    """Bytes after their own number, so that what is joined can be told apart."""
    return b"%d:" % len(data) + data


# 1280 patches of Qwen2.5-VL: what its authors advise, and what the planner counts for an image.
MAX_PIXELS = 1280 * 28 * 28

Name = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
Count = Annotated[Whole, Field(ge=1)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]


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


Options = TypeVar("Options", bound=ModelOptions)


def checked_as(kind: type[Options], options: Mapping[str, Any], place: str) -> Options:
    try:
        read = kind.model_validate(dict(options))
    except ValidationError as error:
        raise EngineError(first_error(error, place, kind)) from None
    if read.family is not None and read.family not in FAMILIES:
        raise EngineError(unknown("family", read.family, FAMILIES, place))
    budget_of(read.family, read.min_pixels, read.max_pixels)
    return read


class CheckpointEngine:
    """What engines have in common that load a checkpoint on this machine."""

    package: str
    options: ModelOptions

    @property
    def _sampling(self) -> dict[str, Any]:
        options = self.options
        drawn = {"top_p": options.top_p, "seed": options.seed} if options.temperature else {}
        return {"temperature": options.temperature, **drawn}

    @property
    def _family(self) -> str | None:
        return self.options.family or self._checkpoint.family

    @cached_property
    def _checkpoint(self) -> Checkpoint:
        return find_checkpoint(
            self.options.model,
            self.options.revision,
            before_asking=partial(check_installed, self.package),
        )

    @cached_property
    def _chat_template(self) -> str | None:
        file = self.options.chat_template
        return hashlib.sha256(file.read_bytes()).hexdigest() if file else None
