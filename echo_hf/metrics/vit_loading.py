"""Load a ViT whose weights are known to the commit, and the grid of patches that it sees."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from echo_hf.engines.checkpoint import Checkpoint, find_checkpoint
from echo_hf.errors import EngineError, ScoreError, WeightsError
from echo_hf.metrics.result import check_extra, versions_of

CHANNELS = 3


@dataclass(frozen=True, slots=True)
class Grid:
    size: int
    patch: int
    trained: int

    @property
    def interpolated(self) -> bool:
        """Whether positions are interpolated, since the ViT has none for the size."""
        return self.size != self.trained

    @property
    def definition(self) -> Mapping[str, Any]:
        """What of it decides numbers."""
        learned = f"those for {self.trained} pixels, bicubic interpolation"
        return {
            "patch": self.patch,
            "tokens": (self.size // self.patch) ** 2 + 1,
            "positions": learned if self.interpolated else "as learned",
        }


def grid_of(config: Any, model: str, layer: int, size: int) -> Grid:
    """How a ViT divides images of a size."""
    named = f"model {model!r}"
    if config.model_type != "vit" or config.num_channels != CHANNELS:
        raise ScoreError(
            f"{named} is of type {config.model_type!r}: expected a 'vit' of {CHANNELS} channels, "
            "such as 'facebook/dino-vits16'"
        )
    last = config.num_hidden_layers - 1
    if layer > last:
        raise ScoreError(
            f"layer is {layer!r}: expected a number from 0 to {last}, the last block of {named}"
        )
    patch, trained = _side(config.patch_size, named), _side(config.image_size, named)
    if size % patch:
        raise ScoreError(
            f"size is {size!r}: expected a multiple of {patch}, the side of a patch of {named}, "
            f"such as {trained}, its own"
        )
    return Grid(size, patch, trained)


def _side(size: Any, named: str) -> int:
    sides = set(size) if isinstance(size, list | tuple) else {size}
    if len(sides) > 1:
        raise ScoreError(f"{named} takes {list(size)!r} pixels: expected a model of squares")
    return int(sides.pop())


PACKAGES, EXTRA = ("torch", "transformers"), "metrics"
# DINO was trained with it; its checkpoints on the Hub state another.
LAYER_NORM_EPS = 1e-6
ATTENTION = "sdpa"
# The weights of DINO ViT-S/16 are there as a pickle alone, which torch reads without running it.
FILES = ("config.json", "*.safetensors", "*.safetensors.index.json", "pytorch_model*.bin*")
LONGEST_REASON = 300


@dataclass(frozen=True, slots=True)
class VitOptions:
    model: str
    revision: str | None
    layer: int
    size: int
    device: str | None


@dataclass(frozen=True, slots=True, eq=False)
class LoadedVit:
    model: Any
    device: str
    interpolated: bool
    definition: Mapping[str, Any]
    key: str


def load_vit(options: VitOptions) -> LoadedVit:
    check_extra("structure_distance", EXTRA, PACKAGES)
    device = _device(options.device)
    checkpoint = _checkpoint(options)
    try:
        with _quiet():
            folder = _folder(checkpoint)
            config = _config(folder)
            grid = grid_of(config, options.model, options.layer, options.size)
            model = _model(folder, config).to(device)
    except ScoreError:
        raise
    except Exception as error:  # whatever the files, the memory or the driver are short of
        raise ScoreError(_explained(options.model, error)) from error
    definition = {
        **_definition(checkpoint, config, options),
        **grid.definition,
        # The kind: parts that were measured on two GPUs of a machine are of one result.
        "device": device.partition(":")[0],
    }
    key = json.dumps(definition, sort_keys=True)
    return LoadedVit(model.eval(), device, grid.interpolated, definition, key)


def _device(device: str | None) -> str:
    import torch

    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        return str(torch.empty(0, device=device).device)
    except Exception as error:  # each kind of device has its own
        raise ScoreError(
            f"device is {device!r}: expected one that torch has here, such as 'cpu', or null "
            f"({_first_line(error)})"
        ) from error


def _checkpoint(options: VitOptions) -> Checkpoint:
    try:
        return find_checkpoint(options.model, options.revision)
    except EngineError as error:
        if error.__cause__ is None:
            raise ScoreError(str(error)) from error
        raise WeightsError(
            f"no model {options.model!r} at revision {options.revision or 'main'!r}: neither a "
            f"folder, nor in the cache, nor on the Hub ({type(error.__cause__).__name__}): check "
            "the name and the revision"
        ) from error


def _folder(checkpoint: Checkpoint) -> str:
    """Where the files are, downloaded first where they are not."""
    from huggingface_hub import snapshot_download

    if checkpoint.commit is None:
        return checkpoint.source
    try:
        return snapshot_download(
            checkpoint.source, revision=checkpoint.commit, allow_patterns=list(FILES)
        )
    except Exception as error:  # the Hub's client passes on what its own libraries raise
        raise WeightsError(
            f"cannot fetch {checkpoint.source!r} ({type(error).__name__}: {_first_line(error)}): "
            "go online once, or name a folder"
        ) from error


def _config(folder: str) -> Any:
    from transformers import AutoConfig

    return AutoConfig.from_pretrained(folder, trust_remote_code=False)


def _model(folder: str, config: Any) -> Any:
    import torch
    from transformers import ViTModel

    config.layer_norm_eps = LAYER_NORM_EPS
    model, report = ViTModel.from_pretrained(
        folder,
        config=config,
        add_pooling_layer=False,
        dtype=torch.float32,
        attn_implementation=ATTENTION,
        weights_only=True,
        output_loading_info=True,
    )
    if report["missing_keys"]:
        first = min(report["missing_keys"])
        raise ValueError(f"{len(report['missing_keys'])} weights are missing, first {first!r}")
    return model


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the bars and reports of transformers, which belong to no result."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def _definition(checkpoint: Checkpoint, config: Any, options: VitOptions) -> dict[str, Any]:
    import torch

    return {
        "model": checkpoint.name,
        "revision": checkpoint.revision,
        "layer": options.layer,
        "size": options.size,
        "layer_norm_eps": config.layer_norm_eps,
        "attention": ATTENTION,
        "dtype": "float32",
        "matmul_precision": torch.get_float32_matmul_precision(),
        "versions": versions_of(*PACKAGES),
    }


def _explained(model: str, error: Exception) -> str:
    return (
        f"cannot load {model!r} ({type(error).__name__}: {_first_line(error)}): expected a ViT in "
        "the files of transformers, and a torchvision, if there is one, that fits torch"
    )


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "")[
        :LONGEST_REASON
    ]
