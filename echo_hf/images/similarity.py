"""Tell re-encoded images from edited ones by signatures of their blocks, and find similar ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from echo_hf.images.loader import ImageSource, load_image, load_rgb
from echo_hf.reasons import ImageNotice

SIDE = 256
BLOCKS = 16
# Brightness, two color differences and opacity, as JPEG and video have them.
CHANNELS = 4
FROM_RGB = np.array(
    [[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]], np.float32
)
FLAT = 1.9
EDGES = np.array([0.08, 0.25, 0.25, 0.25], np.float32)
WHOLE = 1.5
DETAIL_BLOCK = 8
FLAT_DETAIL, EDGE_DETAIL = 7.0, 0.25
LARGEST_DETAIL_SIDE = 2048
MOST_RESCALING = 4
BLACK = (0, 0, 0)

Size = tuple[int, int]
Numbers = NDArray[np.float32]
Means = NDArray[np.float16]
Contrasts = NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class BlockSignature:
    size: Size
    means: Means
    contrasts: Contrasts


def block_signature(source: ImageSource) -> BlockSignature:
    on_white = load_image(source)
    colors = _small_blocks(on_white.image)
    opacity = np.full_like(colors[..., :1, :], 255)
    if ImageNotice.TRANSPARENT in on_white.notices:
        # White shines through where black does not, in all channels alike.
        opacity -= (colors - _small_blocks(load_rgb(source, background=BLACK)))[..., :1, :]
    blocks = np.concatenate([FROM_RGB @ colors, opacity], -2)
    return BlockSignature(
        on_white.image.size,
        blocks.mean(-1).astype(np.float16),
        blocks.std(-1).round().astype(np.uint8),
    )


def same_shape(one: Size, other: Size) -> bool:
    """Whether one size may be the other scaled, each side rounded up or down."""
    large, small = sorted((one, other), key=lambda size: size[0] * size[1], reverse=True)
    is_near = all(MOST_RESCALING * few >= many for few, many in zip(small, large, strict=True))
    return is_near and abs(large[0] * small[1] - large[1] * small[0]) <= sum(large)


def same_colors(
    means: Means, contrasts: Contrasts, many_means: Means, many_contrasts: Contrasts
) -> NDArray[np.bool_]:
    apart = many_means.astype(np.float32) - means
    edges = (many_contrasts.astype(np.float32) + contrasts) / 2
    blocks = (np.abs(apart) <= FLAT + EDGES * edges).all((-3, -2, -1))
    # Bright places say more of a tint: it multiplies.
    light = means[..., :1].astype(np.float32) + many_means[..., :1]
    whole = (light * apart).sum((-3, -2)) / np.maximum(light.sum((-3, -2)), 1)
    fine: NDArray[np.bool_] = blocks & (np.abs(whole) <= WHOLE).all(-1)
    return fine


def same_details(one: Image.Image, other: Image.Image) -> bool:
    """Whether two images of one shape have the same details, as far as packing leaves them."""
    smaller = min(one.size, other.size)
    shrunk = min(1.0, LARGEST_DETAIL_SIDE / max(smaller))
    size = max(1, round(smaller[0] * shrunk)), max(1, round(smaller[1] * shrunk))
    first, second = (_in_blocks(_brightness(image, size), DETAIL_BLOCK) for image in (one, other))
    apart = np.abs(first - second).mean(-1)
    edges = (first.std(-1) + second.std(-1)) / 2
    return bool((apart <= FLAT_DETAIL + EDGE_DETAIL * edges).all())


def _small_blocks(image: Image.Image) -> Numbers:
    small = image.resize((SIDE, SIDE), Image.Resampling.BILINEAR)
    return _in_blocks(np.asarray(small), SIDE // BLOCKS)


def _brightness(image: Image.Image, size: Size) -> NDArray[np.uint8]:
    grey = image.convert("L")
    grey = grey if size == grey.size else grey.resize(size, Image.Resampling.LANCZOS)
    padding = [(0, -side % DETAIL_BLOCK) for side in reversed(size)]
    return np.pad(np.asarray(grey), padding, "edge")[..., None]


def _in_blocks(pixels: NDArray[np.uint8], side: int) -> Numbers:
    """By row and column of the blocks and by channel: a block's pixels side by side, in memory."""
    height, width, channels = pixels.shape
    split = pixels.reshape(height // side, side, width // side, side, channels)
    blocks = split.transpose(0, 2, 4, 1, 3).reshape(height // side, width // side, channels, -1)
    return blocks.astype(np.float32)


CELLS = 4
# How much may differ grows with contrast: among images with little of it, less is near.
BANDS = (1.0, 2.0, 4.0, 8.0)
ROUNDING = 1e-3


class SignatureIndex:
    def __init__(self, means: Means, contrasts: Contrasts) -> None:
        from scipy.spatial import cKDTree

        self._places = _cells(means)
        # The most that edges allow anywhere in the image.
        self._slack = (_cells(contrasts) * np.tile(EDGES, CELLS * CELLS)).max(-1, initial=0.0)
        bands = np.digitize(self._slack, BANDS)
        members = [np.flatnonzero(bands == band) for band in np.unique(bands)]
        self._bands = [(some, cKDTree(self._places[some])) for some in members]

    def near(self, number: int) -> list[int]:
        found: set[int] = set()
        for members, tree in self._bands:
            reach = FLAT + (self._slack[number] + self._slack[members].max()) / 2 + ROUNDING
            near = tree.query_ball_point(self._places[number], reach, p=np.inf)
            found.update(members[near].tolist())
        return sorted(found - {number})


def _cells(blocks: Means | Contrasts) -> NDArray[np.float64]:
    """Means over the cells of each image, cell by cell and channel by channel in one row."""
    side = BLOCKS // CELLS
    split = blocks.reshape(len(blocks), CELLS, side, CELLS, side, -1)
    means: NDArray[np.float64] = split.mean((2, 4), dtype=np.float64)
    return means.reshape(len(blocks), CELLS * CELLS * blocks.shape[-1])
