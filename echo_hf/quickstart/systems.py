"""Four stand-ins for image systems, so that the quickstart has outputs to compare."""

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
    """Names of the stand-ins."""
    return SYSTEMS


def outputs(samples: Dataset | pa.Table, pictures: PictureStore) -> pa.Table:
    """What the stand-ins make of samples."""
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
