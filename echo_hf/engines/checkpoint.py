"""Which weights a model's name stands for, and how its family resizes images."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

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
CONFIG = "config.json"
COMMIT = re.compile(r"[0-9a-f]{40}")
# What a tokenizer, a template and a processor are made of; a README decides no answer.
SETTINGS = ("*.json", "*.jinja", "*.model", "*.txt", "*.tiktoken")
WEIGHTS = ("*.safetensors", "*.gguf", "*.bin", "*.pt")
PIECES = 64
PIECE = 4096


def family_of(model: str) -> str | None:
    """The family whose rule a model's images follow: by a folder's config, else by its name."""
    config, name = Path(model) / CONFIG, model
    if config.is_file():
        try:
            name = str(json.loads(config.read_text("utf-8")).get("model_type", ""))
        except (OSError, ValueError, AttributeError) as error:
            raise EngineError(f"cannot read {str(config)!r}: {error}") from error
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
    return Checkpoint(model, model, snapshot.name, family_of(str(snapshot)))


def is_hub_name(model: str) -> bool:
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    try:
        validate_repo_id(model)
    except HFValidationError:
        return False
    return True


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    found = (sorted(folder.glob(pattern)) for pattern in WEIGHTS)
    weights = next((files for files in found if files), [])
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
