"""A small run as a report reads it, which a test states itself."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from PIL import Image

from echo_hf.config.sections import Target
from echo_hf.images.store import ImageStore
from echo_hf.judging.score import win_rates
from echo_hf.report.results import Results
from echo_hf.report.run_data import Output, Rating, ReportSample, RunData

TARGET = Target(name="Lumen Image", developer="Northlight", released="2026-03-02")
SYSTEMS = ("anole_two", "bravo")


def image(color: tuple[int, int, int], size: tuple[int, int] = (40, 20)) -> bytes:
    """A sheet of one color as a PNG."""
    sink = io.BytesIO()
    Image.new("RGB", size, color).save(sink, "PNG")
    return sink.getvalue()


def ratings_of(values: Mapping[str, Sequence[float | None]], judge: str = "mira") -> list[Rating]:
    """Ratings of one sample by system, repeats in order."""
    return [
        Rating(system, judge, "overall", at, value, f"{system} at {value}", "ok")
        for system, some in values.items()
        for at, value in enumerate(some)
    ]


def results(
    samples: Sequence[ReportSample], ratings: Mapping[str, Sequence[Rating]], **more: Any
) -> Results:
    """Figures as `score` computes them, without metrics unless they are given."""
    details: dict[str, Any] = {}
    for split in dict.fromkeys(one.split for one in samples):
        ids = [one.id for one in samples if one.split == split]
        rows = [
            {"sample_id": name, "system": one.system, "judge": one.judge, "rating": one.value}
            for name in ids
            for one in ratings.get(name, ())
        ]
        found = None
        if rows:
            found = win_rates(split, pa.Table.from_pylist(rows), None, "corrected", 100, {}).details
        details[split] = {"samples": len(ids), "win_rate": found, "metrics": more.get(split, ())}
    digests = dict.fromkeys(details, "0" * 64)
    written = {
        "benchmark": {"name": "lumen", "digests": digests},
        "protocol": "corrected",
        "details": details,
    }
    return Results.model_validate(written)


def run_data(
    folder: Path,
    samples: Sequence[ReportSample],
    outputs: Mapping[tuple[str, str], Output] | None = None,
    ratings: Mapping[str, Sequence[Rating]] | None = None,
    **values: Any,
) -> RunData:
    """A run with its images in a folder."""
    said = {name: tuple(some) for name, some in (ratings or {}).items()}
    known: dict[str, Any] = {
        "name": "invented",
        "title": TARGET.name,
        "target": TARGET,
        "results": results(samples, said),
        "stale": False,
        "agreement": None,
        "failures": {},
        "analysis": None,
        "samples": tuple(samples),
        "outputs": outputs or {},
        "ratings": said,
        "systems": SYSTEMS,
        "images": ImageStore(folder / "pictures"),
        "settings": {},
    }
    return RunData(**{**known, **values})
