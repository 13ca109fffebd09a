"""A judge for the bundled posts alone: it rates an output by its closeness to the meant image."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from datasets import Dataset
from PIL import Image

from echo_hf.errors import EchoError
from echo_hf.images.color import lab_of_light, light_of
from echo_hf.images.loader import load_rgb
from echo_hf.images.store import PictureStore
from echo_hf.pipeline.stage_runner import check_columns
from echo_hf.quickstart.truth import NO_TRUTH, Truths, corpus, read_truths, sample_rows
from echo_hf.tables import OUTPUTS, RATINGS, Table

Pixels = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]

TILE = 16
WORST_TILES = 0.01
WORST_COUNTS = 0.25
LEAST_TO_MISS = 0.1
# In CIELAB, where people begin to see a difference at about 2.
UNSEEN = 5.0
COLOUR_LIKE_ALL_DETAIL = 40.0

_LIGHT = light_of(np.arange(256))


class Parts(NamedTuple):
    """In what two pictures of one size differ."""

    detail: float
    worst: float
    colour: float

    @property
    def total(self) -> float:
        """All three on one scale, where 1 is all detail lost."""
        return self.detail + WORST_COUNTS * self.worst + self.colour / COLOUR_LIKE_ALL_DETAIL


class Difference(NamedTuple):
    """How far an output is from the meant picture, and how far it could be."""

    output: Parts
    blank: Parts
    shape: float

    @property
    def closeness(self) -> float:
        """How much of the meant picture is there, 0 to 1."""
        most = max(self.blank.total, LEAST_TO_MISS)
        return self.shape * max(0.0, 1 - self.output.total / most)


def closeness(output: Pixels, truth: Pixels) -> float:
    """How much of the meant picture an output shows, where a blank sheet shows nothing."""
    return Meant(truth).difference(output).closeness


class Meant:
    """A meant picture, made ready to be compared with many outputs."""

    def __init__(self, truth: Pixels) -> None:
        self._height, self._width = _checked(truth).shape[:2]
        self._tiles = _Tiles.of(truth)
        self._blank = _parts(self._tiles.blank(), self._tiles)

    def difference(self, output: Pixels) -> Difference:
        """What `closeness` is made of."""
        height, width = _checked(output).shape[:2]
        if (height, width) != (self._height, self._width):
            size = (self._width, self._height)
            output = np.asarray(Image.fromarray(output).resize(size, Image.Resampling.LANCZOS))
        ratio = (height * self._width) / (width * self._height)
        parts = _parts(_Tiles.of(output), self._tiles)
        return Difference(parts, self._blank, min(ratio, 1 / ratio))


def cielab(pixels: Pixels) -> Floats:
    """Colours as CIELAB, with the white of sRGB (D65)."""
    return lab_of_light(_LIGHT[pixels])


@dataclass(frozen=True)
class _Tiles:
    """A picture in tiles: the mean colour of each, and its lightness around the mean."""

    colours: Floats
    detail: Floats

    @classmethod
    def of(cls, pixels: Pixels) -> _Tiles:
        height, width = pixels.shape[:2]
        edge = ((0, -height % TILE), (0, -width % TILE), (0, 0))
        lab = np.pad(cielab(pixels), edge, mode="edge")
        tiles = lab.reshape(lab.shape[0] // TILE, TILE, -1, TILE, 3).swapaxes(1, 2)
        tiles = tiles.reshape(-1, TILE * TILE, 3)
        colours = tiles.mean(axis=1)
        return cls(colours, tiles[..., 0] - colours[:, :1])

    def blank(self) -> _Tiles:
        """The closest sheet of one colour: medians keep the sum of differences least."""
        colour = np.median(self.colours, axis=0)
        return _Tiles(np.broadcast_to(colour, self.colours.shape), np.zeros_like(self.detail))


def _parts(seen: _Tiles, meant: _Tiles) -> Parts:
    off = ((seen.detail - meant.detail) ** 2).mean(axis=1)
    both = (seen.detail**2 + meant.detail**2).mean(axis=1)
    # What is too faint to be seen is no difference, however large beside an even sky.
    shares = np.sort(np.minimum(1, off / (both + UNSEEN**2)))
    worst = shares[-max(1, round(WORST_TILES * len(shares))) :]
    in_place = np.abs(seen.colours - meant.colours)
    anywhere = np.abs(np.sort(seen.colours, axis=0) - np.sort(meant.colours, axis=0))
    return Parts(
        detail=min(1.0, float(off.sum() / (both.sum() + len(both)))),
        worst=float(worst.mean()),
        colour=float((in_place + anywhere).sum(axis=1).mean() / 2),
    )


def _checked(pixels: Pixels) -> Pixels:
    form = pixels.shape
    if pixels.dtype != np.uint8 or len(form) != 3 or form[2] != 3 or 0 in form:
        raise ValueError(
            f"an array of {pixels.dtype} in the form {form!r} is no picture: expected uint8, "
            "height x width x 3"
        )
    return pixels


JUDGE = "drawn_truth"
RUBRIC = "overall"
LOWEST, HIGHEST = 1, 10
RATES = "the bundled corpus only"
READ = ("sample_id", "system", "sample_digest", "image", "outcome")
READ_OUTPUTS = Table(
    OUTPUTS.name, OUTPUTS.about, OUTPUTS.key, {name: OUTPUTS.columns[name] for name in READ}
)


def drawn_truth(
    samples: Dataset | pa.Table, outputs: Dataset | pa.Table, pictures: PictureStore
) -> pa.Table:
    """Rates outputs by their closeness to the pictures that the bundled posts mean."""
    truths = read_truths()
    asked = {row["id"]: row for row in sample_rows(samples, JUDGE)}
    for sample in asked.values():
        _check_bundled(sample, truths)
    dataset = outputs if isinstance(outputs, Dataset) else Dataset(outputs)
    check_columns(READ_OUTPUTS, dataset, JUDGE)
    rows = dataset.select_columns(list(READ)).with_format("arrow")[:].to_pylist()
    judge = _Judge(truths, pictures)
    ratings = [judge.rating(row, _sample_of(row, asked)) for row in rows]
    return pa.Table.from_pylist(ratings, RATINGS.schema)


def _check_bundled(sample: Mapping[str, Any], truths: Truths) -> None:
    if not truths.bundled(sample):
        raise EchoError(
            f"sample {sample['id']!r} was made from {sample['post_urls']!r}: {JUDGE!r} rates "
            f"{RATES}, whose pictures a script drew; rate your own posts with another judge"
        )


def _sample_of(
    output: Mapping[str, Any], asked: Mapping[str, Mapping[str, Any]]
) -> Mapping[str, Any]:
    if output["sample_id"] not in asked:
        raise EchoError(
            f"an output of {output['system']!r} is of sample {output['sample_id']!r}, which is "
            "none of the Benchmark samples given: give the samples that it was made for"
        )
    return asked[output["sample_id"]]


class _Judge:
    """Rates one output after the other; a meant picture is made ready once for its outputs."""

    def __init__(self, truths: Truths, pictures: PictureStore) -> None:
        self._truths, self._pictures = truths, pictures
        self._meant = lru_cache(maxsize=1)(_read_meant)

    def rating(self, output: Mapping[str, Any], sample: Mapping[str, Any]) -> dict[str, Any]:
        truth = self._truths.of(sample)
        row = {
            "sample_id": sample["id"],
            "system": output["system"],
            "judge": JUDGE,
            "rubric": RUBRIC,
            "repeat": 0,
            "sample_digest": sample["sample_digest"],
            "output_sha256": output["image"],
            "provenance": json.dumps(
                {"made_by": "echo_hf.quickstart.drawn_truth", "rates": RATES, "truth": truth}
            ),
        }
        why = _unrated(output, sample, truth)
        if why or truth is None:
            return {**row, "outcome": why}
        off = self._meant(truth).difference(pixels(self._pictures.open(output["image"])))
        rating = LOWEST + (HIGHEST - LOWEST) * off.closeness
        return {**row, "outcome": "ok", "rating": rating, "explanation": _in_words(off)}


def _read_meant(path: str) -> Meant:
    return Meant(pixels((corpus() / path).read_bytes()))


def _unrated(output: Mapping[str, Any], sample: Mapping[str, Any], truth: str | None) -> str | None:
    if output["image"] is None:
        return "no_image" if output["outcome"] == "ok" else str(output["outcome"])
    if output["sample_digest"] != sample["sample_digest"]:
        return "other_digest"
    return None if truth else NO_TRUTH


def _in_words(off: Difference) -> str:
    parts = off.output
    return (
        f"closeness {off.closeness:.3f}: {parts.detail:.1%} of the detail differs, "
        f"{parts.worst:.1%} where it differs most; colours are {parts.colour:.1f} apart, on the "
        f"closest blank sheet {off.blank.colour:.1f}; aspect ratios agree to {off.shape:.1%}"
    )


def pixels(data: bytes) -> Pixels:
    """A picture as an array, by `load_rgb`."""
    return np.asarray(load_rgb(data))
