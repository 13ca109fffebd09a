"""Faults that must lower a rating, drawn into pictures without a model."""

from __future__ import annotations

import io
import math

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from echo_hf._infra.registry import Registry
from echo_hf.images.tricks import Box, Color, Drawing, NotDrawn, PlacedText, Scene, fit_text

FAULTS: Registry[Drawing, None] = Registry("fault", "echo_hf.faults")
GRID = 4  # cells along each side, of which the most detailed are damaged
TINT = (1.0, 0.94, 0.55)  # what is left of red, green and blue
JPEG_QUALITY = 10
KEPT_SHARE = 0.6  # of each side, by a crop
BLUR_SHARE = 1 / 80  # of the shorter side
INK_SHARE = 0.05  # of a line's pixels, those that differ most from its ground
MIN_WORD_LETTERS = 4
FACE_EDGE_SHARE = 0.06  # of a face's width, over which it fades into the other


def rank_cells(image: Image.Image) -> list[Box]:
    """Return the cells of a grid over an image, the most detailed first."""
    width, height = image.width // GRID, image.height // GRID
    if not width or not height:
        return []
    levels = np.asarray(image.convert("L"), np.float64)
    cells = [
        (column * width, row * height, (column + 1) * width, (row + 1) * height)
        for row in range(GRID)
        for column in range(GRID)
    ]
    return sorted(
        cells, key=lambda cell: -float(levels[cell[1] : cell[3], cell[0] : cell[2]].std())
    )


def compute_median_color(levels: NDArray[np.uint8]) -> Color:
    red, green, blue = np.median(levels.reshape(-1, 3), axis=0).round().astype(int).tolist()
    return red, green, blue


@FAULTS.register("tint")
def tint(image: Image.Image, _: Scene) -> Image.Image:
    """Tint the whole image yellow."""
    return Image.fromarray((np.asarray(image) * np.array(TINT)).round().astype(np.uint8))


@FAULTS.register("mirrored_half")
def mirror_half(image: Image.Image, _: Scene) -> Image.Image:
    """Put the mirror image of the left half in the place of the right half."""
    half, mirrored = image.crop((0, 0, image.width // 2, image.height)), image.copy()
    mirrored.paste(half.transpose(Image.Transpose.FLIP_LEFT_RIGHT), (image.width - half.width, 0))
    return mirrored


@FAULTS.register("swapped_halves")
def swap_halves(image: Image.Image, _: Scene) -> Image.Image:
    return Image.fromarray(np.roll(np.asarray(image), image.width // 2, axis=1))


@FAULTS.register("copied_region")
def copy_region(image: Image.Image, _: Scene) -> Image.Image | NotDrawn:
    """Copy the most detailed cell of a grid over the next two."""
    if not (cells := rank_cells(image)):
        return NotDrawn.LOOKS_THE_SAME
    copied, source = image.copy(), image.crop(cells[0])
    for cell in cells[1:3]:
        copied.paste(source, cell[:2])
    return copied


@FAULTS.register("filled_region")
def fill_region(image: Image.Image, _: Scene) -> Image.Image | NotDrawn:
    """Fill the most detailed cell of a grid with the image's median color."""
    if not (cells := rank_cells(image)):
        return NotDrawn.LOOKS_THE_SAME
    filled = image.copy()
    filled.paste(compute_median_color(np.asarray(image)), cells[0])
    return filled


@FAULTS.register("blur")
def blur(image: Image.Image, _: Scene) -> Image.Image:
    return image.filter(ImageFilter.GaussianBlur(max(1.5, BLUR_SHARE * min(image.size))))


@FAULTS.register("jpeg_10")
def compress(image: Image.Image, _: Scene) -> Image.Image:
    """Save and load the image as a JPEG of quality 10."""
    sink = io.BytesIO()
    image.save(sink, "JPEG", quality=JPEG_QUALITY)
    return Image.open(sink, formats=("JPEG",)).convert("RGB")


@FAULTS.register("crop")
def crop(image: Image.Image, _: Scene) -> Image.Image | NotDrawn:
    """Keep the upper left part alone."""
    width, height = (math.ceil(KEPT_SHARE * side) for side in image.size)
    return image.crop((0, 0, width, height))


def misspell(text: str) -> str | None:
    """Swap two unequal neighbors inside the longest word; null where no word has any."""
    for word in sorted(set(text.split()), key=lambda word: (-len(word), word)):
        inner = range(len(word) // 2, len(word) - 1) if len(word) >= MIN_WORD_LETTERS else ()
        for position in inner:
            first, second = word[position], word[position + 1]
            if first.casefold() != second.casefold() and first.isalpha() and second.isalpha():
                swapped = word[:position] + second + first + word[position + 2 :]
                return text.replace(word, swapped, 1)
    return None


def rewrite(image: Image.Image, placed: PlacedText, text: str) -> Image.Image | NotDrawn:
    """Write a text in the place of another, in its colors and about its size."""
    left, top, right, bottom = placed.box
    block = fit_text(text, max(1, right - left) * 1.02, 1.35 * (bottom - top))
    if isinstance(block, NotDrawn):
        return block
    levels = np.asarray(image)
    line = levels[top:bottom, left:right].reshape(-1, 3)
    edges = [levels[top, left:right], levels[bottom - 1, left:right]]
    ground = compute_median_color(np.concatenate(edges))
    distances = np.abs(line.astype(int) - ground).sum(axis=1)
    strongest = np.argsort(-distances)[: max(1, round(INK_SHARE * len(line)))]
    written = image.copy()
    written.paste(ground, placed.box)
    place = (left, (top + bottom) / 2)
    ImageDraw.Draw(written).text(
        place, block.lines, compute_median_color(line[strongest]), block.font, anchor="lm"
    )
    return written


@FAULTS.register("misspelt_words")
def misspell_words(image: Image.Image, scene: Scene) -> Image.Image | NotDrawn:
    """Misspell the words that were asked for and read, as the reader placed them."""
    misspelt: Image.Image | NotDrawn = NotDrawn.NO_WORDS
    for placed in scene.words:
        if text := misspell(placed.text):
            before = image if isinstance(misspelt, NotDrawn) else misspelt
            rewritten = rewrite(before, placed, text)
            if not isinstance(rewritten, NotDrawn) or isinstance(misspelt, NotDrawn):
                misspelt = rewritten
    return misspelt


@FAULTS.register("other_face")
def swap_face(image: Image.Image, scene: Scene) -> Image.Image | NotDrawn:
    """Put another person's face in the place of the one that is there."""
    if scene.face is None:
        return NotDrawn.NO_OTHER_FACE
    left, top, right, bottom = scene.face.box
    size = right - left, bottom - top
    edge = max(1, round(FACE_EDGE_SHARE * size[0]))
    mask = Image.new("L", size)
    ImageDraw.Draw(mask).ellipse((edge, edge, size[0] - edge - 1, size[1] - edge - 1), 255)
    swapped = image.copy()
    face = scene.face.other.resize(size, Image.Resampling.LANCZOS)
    swapped.paste(face, (left, top), mask.filter(ImageFilter.GaussianBlur(edge / 2)))
    return swapped
