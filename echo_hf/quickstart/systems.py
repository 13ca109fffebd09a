"""Four stand-ins for image systems, so that the quickstart has outputs to compare.

`exact_copy` gives the picture that a task means, `yellow_tint` the same with a yellow cast,
`moved_layout` the same things in other places, `misspelt_text` the same with wrong letters. They
know the bundled posts alone; their pictures are drawn by `scripts/draw_systems.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from datasets import Dataset

from echo_hf.images.store import PictureStore
from echo_hf.quickstart.truth import NO_TRUTH, Truths, corpus, json_lines, read_truths, sample_rows
from echo_hf.tables import OUTPUTS

SYSTEMS = ("exact_copy", "yellow_tint", "moved_layout", "misspelt_text")
MADE_BY = "echo_hf.quickstart.systems"


def stand_in_systems() -> tuple[str, ...]:
    """Names of the stand-ins.

    Example:
        >>> len(stand_in_systems())
        4
    """
    return SYSTEMS


def outputs(samples: Dataset | pa.Table, pictures: PictureStore) -> pa.Table:
    """What the stand-ins make of samples.

    Args:
        samples: A table of samples, or a config of a release; of these, the samples of Benchmark
            quality are drawn.
        pictures: Where their pictures go.

    Returns:
        Rows of `OUTPUTS`, one for each sample and stand-in. A sample for which nothing is drawn,
        such as a template with its blanks empty, has the outcome `unsupported`.

    Raises:
        TableError: A column is missing or has another type.
    """
    truths, drawn = read_truths(), _drawn()
    rows = [
        row
        for sample in sample_rows(samples, MADE_BY)
        for row in _rows(sample, truths, drawn, pictures)
    ]
    return pa.Table.from_pylist(rows, OUTPUTS.schema)


def _drawn() -> Mapping[str, Mapping[str, str]]:
    """For each meant picture, the file that each stand-in shows."""
    rows = json_lines(corpus() / "systems" / "pictures.jsonl")
    return {row["truth"]: {name: row[name] for name in SYSTEMS} for row in rows}


def _rows(
    sample: Mapping[str, Any],
    truths: Truths,
    drawn: Mapping[str, Mapping[str, str]],
    pictures: PictureStore,
) -> Iterator[dict[str, Any]]:
    truth = truths.of(sample)
    for system in SYSTEMS:
        shared = {
            "sample_id": sample["id"],
            "system": system,
            "sample_digest": sample["sample_digest"],
        }
        if truth is None:
            made = {"outcome": "unsupported", "stage": "input", "code": NO_TRUTH}
            yield {**shared, **made, "provenance": json.dumps({"made_by": MADE_BY})}
            continue
        file = drawn[truth][system]
        image = pictures.put((corpus() / file).read_bytes())
        provenance = json.dumps({"made_by": MADE_BY, "picture": file})
        yield {**shared, "image": image, "outcome": "ok", "provenance": provenance}
