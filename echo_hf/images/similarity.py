"""Tell re-encoded images from edited ones by block signatures, and find similar ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from echo_hf.images.loader import ImageNotice, ImageSource, PixelSize, load_image, load_rgb

SIGNATURE_SIDE = 256
BLOCKS = 16
# Brightness, two color differences and opacity, as JPEG and video have them.
CHANNELS = 4
RGB_TO_YCC = np.array(
    [[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]], np.float32
)
FLAT_LEVELS = 1.9
EDGE_FACTORS = np.array([0.08, 0.25, 0.25, 0.25], np.float32)
MEAN_LEVELS = 1.5
DETAIL_BLOCK = 8
FLAT_DETAIL, EDGE_DETAIL = 7.0, 0.25
MAX_DETAIL_SIDE = 2048
MAX_RESCALING = 4
BLACK = (0, 0, 0)

FloatArray = NDArray[np.float32]
Means = NDArray[np.float16]
Contrasts = NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class BlockSignature:
    size: PixelSize
    means: Means
    contrasts: Contrasts


def compute_signature(source: ImageSource) -> BlockSignature:
    on_white = load_image(source)
    colors = _compute_blocks(on_white.image)
    opacity = np.full_like(colors[..., :1, :], 255)
    if ImageNotice.TRANSPARENT in on_white.notices:
        # White shines through where black does not, in all channels alike.
        opacity -= (colors - _compute_blocks(load_rgb(source, background=BLACK)))[..., :1, :]
    blocks = np.concatenate([RGB_TO_YCC @ colors, opacity], -2)
    return BlockSignature(
        on_white.image.size,
        blocks.mean(-1).astype(np.float16),
        blocks.std(-1).round().astype(np.uint8),
    )


def is_same_shape(size: PixelSize, other: PixelSize) -> bool:
    """Return whether one size may be the other scaled, up to rounding."""
    large, small = sorted((size, other), key=lambda sides: sides[0] * sides[1], reverse=True)
    is_near = all(MAX_RESCALING * short >= long for short, long in zip(small, large, strict=True))
    return is_near and abs(large[0] * small[1] - large[1] * small[0]) <= sum(large)


def match_colors(
    means: Means, contrasts: Contrasts, many_means: Means, many_contrasts: Contrasts
) -> NDArray[np.bool_]:
    differences = many_means.astype(np.float32) - means
    edges = (many_contrasts.astype(np.float32) + contrasts) / 2
    blocks = (np.abs(differences) <= FLAT_LEVELS + EDGE_FACTORS * edges).all((-3, -2, -1))
    # Bright places say more of a tint: it multiplies.
    light = means[..., :1].astype(np.float32) + many_means[..., :1]
    mean_difference = (light * differences).sum((-3, -2)) / np.maximum(light.sum((-3, -2)), 1)
    is_match: NDArray[np.bool_] = blocks & (np.abs(mean_difference) <= MEAN_LEVELS).all(-1)
    return is_match


def has_same_details(image: Image.Image, other: Image.Image) -> bool:
    """Return whether two images of one shape have equal details, up to compression."""
    smaller = min(image.size, other.size)
    scale = min(1.0, MAX_DETAIL_SIDE / max(smaller))
    size = max(1, round(smaller[0] * scale)), max(1, round(smaller[1] * scale))
    first, second = (
        _split_blocks(_compute_brightness(picture, size), DETAIL_BLOCK)
        for picture in (image, other)
    )
    differences = np.abs(first - second).mean(-1)
    edges = (first.std(-1) + second.std(-1)) / 2
    return bool((differences <= FLAT_DETAIL + EDGE_DETAIL * edges).all())


def _compute_blocks(image: Image.Image) -> FloatArray:
    small = image.resize((SIGNATURE_SIDE, SIGNATURE_SIDE), Image.Resampling.BILINEAR)
    return _split_blocks(np.asarray(small), SIGNATURE_SIDE // BLOCKS)


def _compute_brightness(image: Image.Image, size: PixelSize) -> NDArray[np.uint8]:
    grey = image.convert("L")
    grey = grey if size == grey.size else grey.resize(size, Image.Resampling.LANCZOS)
    padding = [(0, -side % DETAIL_BLOCK) for side in reversed(size)]
    return np.pad(np.asarray(grey), padding, "edge")[..., None]


def _split_blocks(pixels: NDArray[np.uint8], side: int) -> FloatArray:
    """Split an image into blocks: by row, column and channel, then a block's pixels."""
    height, width, channels = pixels.shape
    split = pixels.reshape(height // side, side, width // side, side, channels)
    blocks = split.transpose(0, 2, 4, 1, 3).reshape(height // side, width // side, channels, -1)
    return blocks.astype(np.float32)


CELLS_PER_SIDE = 4
# How much may differ grows with contrast: among images with little of it, less is near.
SLACK_BANDS = (1.0, 2.0, 4.0, 8.0)
ROUNDING = 1e-3


class SignatureIndex:
    def __init__(self, means: Means, contrasts: Contrasts) -> None:
        from scipy.spatial import cKDTree

        self._points = _average_cells(means)
        # The most that edges allow anywhere in the image.
        self._slack = (
            _average_cells(contrasts) * np.tile(EDGE_FACTORS, CELLS_PER_SIDE * CELLS_PER_SIDE)
        ).max(-1, initial=0.0)
        bands = np.digitize(self._slack, SLACK_BANDS)
        members = [np.flatnonzero(bands == band) for band in np.unique(bands)]
        self._bands = [(numbers, cKDTree(self._points[numbers])) for numbers in members]

    def find_near(self, number: int) -> list[int]:
        neighbors: set[int] = set()
        for members, tree in self._bands:
            radius = FLAT_LEVELS + (self._slack[number] + self._slack[members].max()) / 2 + ROUNDING
            matches = tree.query_ball_point(self._points[number], radius, p=np.inf)
            neighbors.update(members[matches].tolist())
        return sorted(neighbors - {number})


def _average_cells(blocks: Means | Contrasts) -> NDArray[np.float64]:
    """Average over the cells of each image: one row, by cell and channel."""
    side = BLOCKS // CELLS_PER_SIDE
    split = blocks.reshape(len(blocks), CELLS_PER_SIDE, side, CELLS_PER_SIDE, side, -1)
    means: NDArray[np.float64] = split.mean((2, 4), dtype=np.float64)
    return means.reshape(len(blocks), CELLS_PER_SIDE * CELLS_PER_SIDE * blocks.shape[-1])
