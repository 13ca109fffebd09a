"""How a ViT divides pictures of a size into patches, and what it cannot take, in one line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from echo_hf.errors import ScoreError

CHANNELS = 3


@dataclass(frozen=True, slots=True)
class Grid:
    """How a picture is divided.

    Attributes:
        size: Pixels a side of the picture.
        patch: Pixels a side of a patch.
        trained: Pixels a side of the pictures whose positions the ViT has learned.
    """

    size: int
    patch: int
    trained: int

    @property
    def interpolated(self) -> bool:
        """Whether positions are interpolated, since the ViT has none for the size."""
        return self.size != self.trained

    @property
    def definition(self) -> Mapping[str, Any]:
        """What of it decides numbers.

        Example:
            >>> Grid(224, 16, 224).definition
            {'patch': 16, 'tokens': 197, 'positions': 'as learned'}
            >>> Grid(448, 16, 224).definition["positions"]
            'those for 224 pixels, bicubic interpolation'
        """
        learned = f"those for {self.trained} pixels, bicubic interpolation"
        return {
            "patch": self.patch,
            "tokens": (self.size // self.patch) ** 2 + 1,
            "positions": learned if self.interpolated else "as learned",
        }


def grid_of(config: Any, model: str, layer: int, size: int) -> Grid:
    """How a ViT divides pictures of a size.

    Args:
        config: Its settings, as transformers reads them.
        model: What messages call it.
        layer: Number of the block whose keys are taken, the first being 0.
        size: Pixels a side of a picture.

    Returns:
        The grid.

    Raises:
        ScoreError: It is no ViT of three channels and squares, it has no such block, or its
            patches do not fill such a picture.
    """
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
