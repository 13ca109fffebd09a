"""A small benchmark on disk, and a run whose outputs and ratings a test states itself."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from datasets import Dataset
from PIL import Image
from rich.console import Console
from typer.testing import CliRunner, Result

from echo_hf.cli import app
from echo_hf.config.sections import Target
from echo_hf.hub.facts import ReleaseFacts
from echo_hf.hub.release import write_release
from echo_hf.images.store import ImageStore
from echo_hf.judging.board import show_scores
from echo_hf.samples.sample import sample_digest
from echo_hf.tables import APPLICABILITY, OUTPUTS, RATINGS, SAMPLES, Table

TARGET = Target(name="Lumen Image", developer="Northlight", released="2026-03-02")
Row = dict[str, Any]


def stripes(*colors: tuple[int, int, int]) -> bytes:
    image = Image.new("RGB", (8 * len(colors), 8))
    for at, color in enumerate(colors):
        image.paste(color, (8 * at, 0, 8 * at + 8, 8))
    sink = io.BytesIO()
    image.save(sink, "PNG")
    return sink.getvalue()


def run(
    folder: Path,
    edits: Mapping[str, Iterable[bytes]],
    words: Iterable[str],
    applicability: Iterable[Row] = (),
) -> Path:
    images = ImageStore(folder / "made")
    samples = {
        "image_to_image": [
            sample(name, [images.put(one) for one in inputs]) for name, inputs in edits.items()
        ],
        "text_to_image": [sample(name, []) for name in words],
    }
    configs = {
        name: Dataset(pa.Table.from_pylist(rows, SAMPLES.features.arrow_schema))
        for name, rows in samples.items()
    }
    if rows := list(applicability):
        told = pa.Table.from_pylist(rows, APPLICABILITY.features.arrow_schema)
        configs["applicability"] = Dataset(told)
    write_release(folder / "benchmark", configs, images, ReleaseFacts("lumen", TARGET))
    config = folder / "evaluation.yaml"
    config.write_text(yaml.safe_dump({"name": "evaluation", "benchmark": "benchmark"}), "utf-8")
    root(folder).mkdir(parents=True)
    return config


def root(folder: Path) -> Path:
    return folder / "runs" / "evaluation"


def called(folder: Path, verb: str, *arguments: str | Path) -> Result:
    """A verb on the config of a run, in this process."""
    known = [verb, str(folder / "evaluation.yaml"), "--runs", str(folder / "runs")]
    return CliRunner().invoke(app, [*known, *map(str, arguments)], env={"COLUMNS": "200"})


def page_of(folder: Path) -> str:
    """What a terminal shows of a run's scores."""
    page = io.StringIO()
    show_scores(Console(file=page, width=200), root(folder) / "results.json")
    return page.getvalue()


def put(folder: Path, data: bytes) -> str:
    return ImageStore(root(folder) / "pictures").put(data)


def digest_of(name: str, inputs: Iterable[bytes] = ()) -> str:
    import hashlib

    return sample_digest(f"draw {name}", [hashlib.sha256(one).hexdigest() for one in inputs])


def output(name: str, system: str, inputs: Iterable[bytes] = (), **values: Any) -> Row:
    known = {"sample_id": name, "system": system, "sample_digest": digest_of(name, inputs)}
    return {**dict.fromkeys(OUTPUTS.columns), "outcome": "ok", **known, **values}


def rating(name: str, system: str, value: float | None, **values: Any) -> Row:
    known = {"sample_id": name, "system": system, "sample_digest": digest_of(name)}
    more = {"judge": "mira", "rubric": "overall", "repeat": 0, "outcome": "ok", "rating": value}
    return {**dict.fromkeys(RATINGS.columns), **known, **more, **values}


def fits(name: str, outcome: str = "ok", **flags: bool | None) -> list[Row]:
    """The rows about a sample: one for each metric that is named."""
    known = {"sample_id": name, "rationale": None, "outcome": outcome}
    return [{**known, "metric": metric, "applies": flag} for metric, flag in flags.items()]


def write(folder: Path, table: Table, rows: Iterable[Row]) -> None:
    path = root(folder) / f"{table.name}.parquet"
    pq.write_table(pa.Table.from_pylist(list(rows), table.schema), path)


def sample(name: str, inputs: list[str]) -> Row:
    prompt = f"draw {name}"
    return {
        **dict.fromkeys(SAMPLES.columns),
        "id": name,
        "prompt": prompt,
        "post_urls": [f"https://example.org/{name}"],
        "input_images": inputs,
        "output_images": [],
        "community_feedback": [],
        "picture_sources": [],
        "quality": "Benchmark",
        "sample_digest": sample_digest(prompt, inputs),
    }
