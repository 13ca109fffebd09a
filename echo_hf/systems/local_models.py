"""Models that run in this process: whether they are at hand, their weights, options and errors."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import StringConstraints

from echo_hf.config.checks import Section, Words
from echo_hf.config.systems import SystemConfig
from echo_hf.engines.checkpoint import framed, is_hub_name, pieces
from echo_hf.engines.transformers_model import is_out_of_memory
from echo_hf.errors import GenerationError, ImageError
from echo_hf.images.decode import BadImageError
from echo_hf.reasons import Outcome, OutcomeStage
from echo_hf.systems.base import GenerationResult, without_folders

# What decides an image; a README does not.
SETTINGS = frozenset({".json", ".jinja", ".model", ".txt", ".tiktoken"})
WEIGHTS = frozenset({".safetensors", ".ckpt", ".bin", ".pt"})
MAIN = "main"


@dataclass(frozen=True)
class LocalModel:
    system: str
    source: str
    revision: str | None
    index: str

    @property
    def folder(self) -> Path | None:
        folder = Path(self.source)
        return folder if folder.is_dir() else None

    @cached_property
    def identity(self) -> dict[str, str | None]:
        """Which weights it is: `model` without a path, and `revision`; a folder's is a digest."""
        folder = self.folder
        if folder is not None:
            return {"model": folder.resolve().name, "revision": folder_digest(folder)}
        return {"model": self.source, "revision": self.revision or MAIN}

    @property
    def commit(self) -> str | None:
        """Commit of the model in the cache; null for a folder, and for what is not there."""
        found = None if self.folder else self._cached()
        return found.parent.name if found else None

    @property
    def pinned(self) -> str | None:
        """What to load: the commit in the cache, so that all files are of one, else `revision`."""
        return self.commit or self.revision

    def index_at_hand(self) -> Path | None:
        """Finds the model's index without a download."""
        if self.folder is not None:
            return self._in_folder(self.folder)
        found = self._cached()
        if found is None:
            self._check_reachable()
        return found

    def _in_folder(self, folder: Path) -> Path:
        if self.revision is not None:
            raise GenerationError(
                f"system {self.system!r}: {self.source!r} is a folder, which has no revision "
                f"{self.revision!r}: leave it out"
            )
        if not (folder / self.index).is_file():
            raise GenerationError(
                f"system {self.system!r}: folder {self.source!r} holds no {self.index!r}: expected "
                "a model as its library saves it"
            )
        return folder / self.index

    def _cached(self) -> Path | None:
        from huggingface_hub import try_to_load_from_cache

        if not is_hub_name(self.source):
            return None
        found = try_to_load_from_cache(self.source, self.index, revision=self.revision or MAIN)
        return Path(found) if isinstance(found, str) else None

    def _check_reachable(self) -> None:
        from huggingface_hub import constants

        if not is_hub_name(self.source):
            raise GenerationError(
                f"system {self.system!r}: there is no folder {self.source!r}: expected one, or a "
                "name on the Hub such as ORGANISATION/NAME"
            )
        if constants.HF_HUB_OFFLINE:
            raise GenerationError(
                f"system {self.system!r}: model {self.source!r} is neither a folder nor in the "
                "cache, and HF_HUB_OFFLINE is set: download it first, or unset that"
            )


def folder_digest(folder: Path) -> str:
    """A digest of the settings in a folder, and of pieces of its weights."""
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder)
        if any(part.startswith(".") for part in name.parts):
            continue
        if file.suffix in SETTINGS:
            digest.update(framed(name.as_posix().encode()) + framed(file.read_bytes()))
        elif file.suffix in WEIGHTS:
            size = file.stat().st_size
            digest.update(framed(name.as_posix().encode()) + framed(b"%d" % size))
            for piece in pieces(file):
                digest.update(piece)
    return f"sha256:{digest.hexdigest()}"


def check_one_at_a_time(config: SystemConfig) -> None:
    """Checks that no config asks a model in this process for several images at a time."""
    if (config.limits.concurrency or 1) > 1:
        raise GenerationError(
            f"system {config.name!r}: limits.concurrency is {config.limits.concurrency}: expected "
            "1, as its model draws one image at a time in this process"
        )


Device = Annotated[str, StringConstraints(pattern=r"^(auto|cpu|mps|xpu|cuda(:\d{1,2})?)$")]
BY_SPEED = ("cuda", "xpu", "mps")


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


def dtype_of(options: LocalOptions) -> Any:
    import torch

    return getattr(torch, options.dtype)


def device_of(options: LocalOptions, place: str) -> str:
    import torch

    there = [kind for kind in BY_SPEED if getattr(torch, kind).is_available()]
    if options.device == "auto":
        return next(iter(there), "cpu")
    kind, _, number = options.device.partition(":")
    count = torch.get_device_module(kind).device_count() if kind in there else 0
    if kind != "cpu" and int(number or 0) >= count:
        raise GenerationError(
            f"{place}: device is {options.device!r}, which this machine does not have: expected "
            f"one of {', '.join([*there, 'cpu'])}"
        )
    return options.device


LONGEST_TEXT = 300
OUT_OF_MEMORY = "out_of_memory"


def one_line(error: BaseException) -> str:
    """The first line of what an error says, without the folders of this machine."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return without_folders((lines or [""])[0])[:LONGEST_TEXT]


def failure(error: Exception) -> GenerationResult:
    if is_out_of_memory(error):
        text = "out of memory: ask for a smaller size, or use a smaller model, dtype or offload"
        return GenerationResult(
            Outcome.FAILED, stage=OutcomeStage.REQUEST, code=OUT_OF_MEMORY, text=text
        )
    code = type(error).__name__
    return GenerationResult(
        Outcome.FAILED, stage=OutcomeStage.REQUEST, code=code, text=one_line(error)
    )


def bad_input(error: ImageError) -> GenerationResult:
    code = str(error.reason) if isinstance(error, BadImageError) else None
    return GenerationResult(
        Outcome.FAILED, stage=OutcomeStage.INPUT, code=code, text=one_line(error)
    )


def unsupported(stage: OutcomeStage, code: str, text: str) -> GenerationResult:
    return GenerationResult(Outcome.UNSUPPORTED, stage=stage, code=code, text=text)
