"""Take inputs and outputs as users have them, and pair them sample by sample."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from PIL import Image

from echo_hf.errors import ScoreError
from echo_hf.open_picture import PictureSource

PICTURES = "a picture of Pillow's, a path, bytes, or a dict with 'bytes' or 'path'"
ONE_PICTURE = (str, bytes, bytearray, memoryview, os.PathLike, Mapping, Image.Image)


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample as a metric takes it.

    Attributes:
        inputs: Its input pictures, not opened yet; null for one that is missing.
        output: What the system made of them, null when there is nothing.
    """

    inputs: tuple[PictureSource | None, ...]
    output: PictureSource | None


def samples_of(inputs: Iterable[Any], outputs: Iterable[Any]) -> Iterator[Sample]:
    """Pairs inputs with outputs, one sample at a time.

    Args:
        inputs: For each sample one picture, a list of them, or null. A picture is one of Pillow's,
            a path, bytes of a file, or a dict with `bytes` or `path`, as `datasets` stores it. A
            column of a Dataset is read as the files that it holds, so that no broken one stops it.
        outputs: For each sample a picture in one of these forms, or null.

    Yields:
        The samples, in order.

    Raises:
        ScoreError: The two differ in length, or an element is no picture.

    Example:
        >>> [sample.output for sample in samples_of(["in.png", ["a.png", "b.png"]], [b"", None])]
        [b'', None]
    """
    sides = {"inputs": inputs, "outputs": outputs}
    for name, side in sides.items():
        if isinstance(side, ONE_PICTURE) or not isinstance(side, Iterable):
            raise ScoreError(
                f"{name}: {type(side).__name__!r} is not one entry for each sample: expected a "
                "list, or a column of a dataset"
            )
    _check_lengths(inputs, outputs)
    return _paired(inputs, outputs)


def _check_lengths(inputs: Iterable[Any], outputs: Iterable[Any]) -> None:
    if isinstance(inputs, Sequence) and isinstance(outputs, Sequence):
        counts = len(inputs), len(outputs)
        if counts[0] != counts[1]:
            raise ScoreError(
                f"{counts[0]} inputs and {counts[1]} outputs: expected one of each for a sample, "
                "and null for an output that is missing"
            )


def _paired(inputs: Iterable[Any], outputs: Iterable[Any]) -> Iterator[Sample]:
    ended = object()
    pairs = zip_longest(_stored(inputs), _stored(outputs), fillvalue=ended)
    for number, (given, made) in enumerate(pairs):
        if given is ended or made is ended:
            fewer = "inputs" if given is ended else "outputs"
            raise ScoreError(f"{fewer} end after {number} samples: expected one for each sample")
        found = tuple(_source(one, f"inputs[{number}]") for one in _listed(given))
        yield Sample(found, _source(made, f"outputs[{number}]"))


def _listed(given: Any) -> Sequence[Any]:
    several = isinstance(given, Sequence) and not isinstance(given, ONE_PICTURE)
    return given if several else [given]


def _source(given: Any, place: str) -> PictureSource | None:
    """A picture as the loader takes it, null where there is none."""
    if isinstance(given, Mapping):
        _check_keys(given, place)
        data, path = given.get("bytes"), given.get("path")
        return _source(path if data is None else data, place)
    if given is None or isinstance(given, Image.Image | bytes):
        return given
    if isinstance(given, bytearray | memoryview):
        return bytes(given)
    if isinstance(given, str | os.PathLike):
        return Path(os.fsdecode(given))
    raise ScoreError(f"{place}: {type(given).__name__!r} is no picture: expected {PICTURES}")


def _check_keys(given: Mapping[Any, Any], place: str) -> None:
    """A whole row is no missing picture."""
    if "bytes" not in given and "path" not in given:
        keys = reprlib.repr(list(given))
        raise ScoreError(
            f"{place}: a dict with the keys {keys} is no picture: expected {PICTURES}; of a row, "
            "give the column that holds the picture"
        )


def _stored(values: Iterable[Any]) -> Iterable[Any]:
    """A column of a Dataset with its pictures as files; whatever else is given, as it is."""
    if type(values).__module__ != "datasets.arrow_dataset":  # which takes long to import
        return values
    from datasets import Dataset

    source, name = getattr(values, "source", None), getattr(values, "column_name", "")
    # A transform of the user's own says what the rows are.
    if not isinstance(source, Dataset) or source.format["type"] == "custom":
        return values
    rows = source.select_columns([name]).with_format("arrow")
    return (row for table in rows.iter(1) for row in table[name].to_pylist())
