"""A judge for the bundled posts alone: it rates an output by its closeness to the meant picture.

It needs no model and no key, and it is no opinion: the pictures of these posts were drawn by a
script, so what a task means is known. Nothing of the kind is known about posts that people wrote,
and for them it refuses to speak.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from datasets import Dataset

from echo_hf.apply import check_columns
from echo_hf.errors import EchoError
from echo_hf.load_rgb import load_rgb
from echo_hf.pictures import PictureStore
from echo_hf.quickstart.closeness import Difference, Meant, Pixels, closeness
from echo_hf.quickstart.truth import NO_TRUTH, Truths, corpus, read_truths, sample_rows
from echo_hf.tables import OUTPUTS, RATINGS, Table

__all__ = ["JUDGE", "closeness", "drawn_truth"]

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
    """Rates outputs by their closeness to the pictures that the bundled posts mean.

    Args:
        samples: A table of samples of the bundled corpus, or a config of its release.
        outputs: What systems made of those of Benchmark quality, with the columns of `OUTPUTS`.
        pictures: Where their pictures are.

    Returns:
        Rows of `RATINGS` in the order of the outputs: 10 is the meant picture, 1 is no closer to it
        than a blank sheet. There is no rating, and `outcome` says why, where an output has no
        picture, was made for another prompt (`other_digest`), or belongs to a sample for which no
        picture is drawn (`no_truth`).

    Raises:
        EchoError: A sample is not of the bundled corpus, or an output is of none of the samples.
        TableError: A column is missing or has another type.
        PictureError: A picture is missing, has changed, or cannot be shown.
    """
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
            "provenance": json.dumps({"made_by": __name__, "rates": RATES, "truth": truth}),
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
    """A picture as an array, by `load_rgb`.

    Args:
        data: Bytes of an encoded picture, its first frame where it moves.

    Returns:
        Height x width x RGB, 8 bits.

    Raises:
        BadPictureError: It is no picture that can be shown.
    """
    return np.asarray(load_rgb(data))
