"""Take inputs and outputs as users have them, and pair them by sample."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from PIL import Image
from xxhash import xxh3_128

from echo_hf.errors import ScoreError
from echo_hf.images.decode import ImageSource

Protocol = Literal["published", "corrected"]
IMAGES = "an image of Pillow's, a path, bytes, or a dict with 'bytes' or 'path'"
ONE_IMAGE = (str, bytes, bytearray, memoryview, os.PathLike, Mapping, Image.Image)


@dataclass(frozen=True, slots=True)
class MetricSample:
    inputs: tuple[ImageSource | None, ...]
    output: ImageSource | None
    task: str = ""  # the digest of its prompt, where it is measured without its inputs


def samples_of(inputs: Iterable[Any], outputs: Iterable[Any]) -> Iterator[MetricSample]:
    """Pairs inputs with outputs, one sample at a time."""
    _check_columns(inputs=inputs, outputs=outputs)
    return _paired(inputs, outputs)


def prompted(
    prompts: Iterable[str], outputs: Iterable[Any]
) -> tuple[list[str], Iterator[MetricSample]]:
    """Pairs prompts with outputs, one sample at a time."""
    _check_columns(prompts=prompts)
    texts = list(prompts)
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise ScoreError(f"prompts[{number}]: {type(text).__name__!r} is not text")
    _check_columns(prompts=texts, outputs=outputs)
    digests = (xxh3_128(text.encode(errors="surrogatepass")).hexdigest() for text in texts)
    pairs = zip(digests, _paired([None] * len(texts), outputs), strict=True)
    return texts, (MetricSample((), sample.output, digest) for digest, sample in pairs)


def _check_columns(**columns: Iterable[Any]) -> None:
    """Refuses what is not one entry for each sample."""
    for name, column in columns.items():
        if isinstance(column, ONE_IMAGE) or not isinstance(column, Iterable):
            raise ScoreError(
                f"{name}: {type(column).__name__!r} is not one entry for each sample: expected a "
                "list, or a column of a dataset"
            )
    counts = [len(one) for one in columns.values() if isinstance(one, Sequence)]
    if len(set(counts)) > 1:
        said = " and ".join(f"{count} {name}" for count, name in zip(counts, columns, strict=True))
        raise ScoreError(
            f"{said}: expected one of each for a sample, and null for an output that is missing"
        )


def _paired(inputs: Iterable[Any], outputs: Iterable[Any]) -> Iterator[MetricSample]:
    ended: Any = object()
    pairs = zip_longest(_stored(inputs), _stored(outputs), fillvalue=ended)
    for number, (given, made) in enumerate(pairs):
        if given is ended or made is ended:
            fewer = "inputs" if given is ended else "outputs"
            raise ScoreError(f"{fewer} end after {number} samples: expected one for each sample")
        several = isinstance(given, Sequence) and not isinstance(given, ONE_IMAGE)
        found = (_source(one, f"inputs[{number}]") for one in (given if several else [given]))
        yield MetricSample(tuple(found), _source(made, f"outputs[{number}]"))


def _source(given: Any, place: str) -> ImageSource | None:
    """An image as the loader takes it, null where there is none."""
    if isinstance(given, Mapping):
        if "bytes" not in given and "path" not in given:  # a whole row is no missing image
            keys = reprlib.repr(list(given))
            raise ScoreError(
                f"{place}: a dict with the keys {keys} is not an image: expected {IMAGES}; of a "
                "row, give the column that holds the image"
            )
        data = given.get("bytes")
        given = given.get("path") if data is None else data
    if given is None or isinstance(given, Image.Image | bytes):
        return given
    if isinstance(given, bytearray | memoryview):
        return bytes(given)
    if isinstance(given, str | os.PathLike):
        return Path(os.fsdecode(given))
    raise ScoreError(f"{place}: {type(given).__name__!r} is not an image: expected {IMAGES}")


def _stored(values: Iterable[Any]) -> Iterable[Any]:
    """A column of a Dataset with its images as files; whatever else is given, as it is."""
    if type(values).__module__ != "datasets.arrow_dataset":  # which takes long to import
        return values
    from datasets import Dataset

    source, name = getattr(values, "source", None), getattr(values, "column_name", "")
    # A transform of the user's own says what the rows are.
    if not isinstance(source, Dataset) or source.format["type"] == "custom":
        return values
    rows = source.select_columns([name]).with_format("arrow")
    return (row for table in rows.iter(1) for row in table[name].to_pylist())
