"""Pictures as predictions and references: each stays a file until it is measured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

from datasets import Features, Image, List

from echo_hf.errors import ScoreError
from echo_hf.hub.evaluate_columns import EvaluateColumns, Stored
from echo_hf.hub.stored_picture import stored_picture
from echo_hf.metrics.samples import Sample, samples_of

File = dict[str, Any] | None
Row = tuple[File, list[File]]


# A part of samples ends with the one that reaches either.
MOST_SAMPLES, MOST_BYTES = 8, 2**26


def store(predictions: Any, references: Any) -> Iterator[Stored]:
    """Outputs and inputs as `evaluate` stores them.

    Args:
        predictions: For each sample the output, or null.
        references: For each sample its input, a list of inputs, or null.

    Yields:
        Files by their bytes or their paths; `references` has a list for each sample. A few
        samples at once, so that pictures of one part are encoded when the last is forgotten.

    Raises:
        ScoreError: The two differ in length, or an element is no picture.
    """
    try:
        rows = map(_row, count(), samples_of(references, predictions))
        while part := _part(rows):
            made, given = zip(*part, strict=True)
            yield {"predictions": list(made), "references": list(given)}
    except ScoreError as error:
        raise ScoreError(f"references are inputs, predictions are outputs: {error}") from None


def _part(rows: Iterator[Row]) -> list[Row]:
    """The next rows, up to a number of samples and of bytes."""
    part: list[Row] = []
    held = 0
    for row in rows:
        part.append(row)
        held += sum(len(one["bytes"] or b"") for one in (row[0], *row[1]) if one)
        if len(part) == MOST_SAMPLES or held >= MOST_BYTES:
            break
    return part


def _row(number: int, sample: Sample) -> Row:
    """An output and its inputs as files."""
    return (
        stored_picture(sample.output, f"predictions[{number}]"),
        [stored_picture(one, f"references[{number}]") for one in sample.inputs],
    )


def read(*, predictions: Any, references: Any) -> tuple[Iterator[Any], Iterator[Any]]:
    """Inputs and outputs, read from the store one at a time.

    Args:
        predictions: The stored outputs, in Arrow.
        references: The stored inputs, in Arrow.

    Returns:
        Inputs and outputs, as the metrics take them.
    """
    return _one_by_one(references), _one_by_one(predictions)


def _one_by_one(column: Iterable[Any]) -> Iterator[Any]:
    return (value.as_py() for value in column)


PICTURES = EvaluateColumns(
    # Undecoded: decoding would be for evaluate to keep all of them in memory, and to trip over
    # the first broken one.
    Features({"predictions": Image(decode=False), "references": List(Image(decode=False))}),
    {
        "predictions": "the system's output for each sample: a picture, or None for none",
        "references": "the inputs of each sample: one picture, or a list of pictures",
    },
    store,
    read,
    at_once=MOST_SAMPLES,
)
