"""An older release with the outputs of a system that is gone, and runs that carry it along."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Dataset

from echo_hf.config.evaluation import CarriedRelease, EvaluationConfig
from echo_hf.hub.facts import ReleaseFacts
from echo_hf.hub.release import write_release
from echo_hf.images.store import ImageStore
from echo_hf.systems.evaluation_run import EvaluationRun
from echo_hf.systems.generate import generate
from echo_hf.tables import OUTPUTS, SAMPLES
from tests.systems.runs_for_tests import (
    TARGET,
    Acting,
    Row,
    benchmark,
    known,
    png,
    sample,
    sha,
    system,
    written,
)

PAST = system("past")


def old_samples(texts: int = 6, edits: int = 4) -> dict[str, list[Row]]:
    """Samples o0, o1, ... from words, and p0, p1, ..., each of a post of its own."""

    def post(name: str) -> list[str]:
        return [f"https://example.org/{name}"]

    return {
        "text_to_image": [
            sample(f"o{number}", post_urls=post(f"o{number}")) for number in range(texts)
        ],
        "image_to_image": [
            sample(f"p{number}", post_urls=post(f"p{number}"), input_images=[f"old{number}"])
            for number in range(edits)
        ],
    }


def write_old(
    folder: Path,
    samples: dict[str, list[Row]] | None = None,
    outputs: Iterable[Row] = (),
    name: str = "old",
) -> Path:
    """A release `old` with these samples, and such outputs."""
    images = ImageStore(folder / "pictures")
    configs = {}
    for split, rows in (old_samples() if samples is None else samples).items():
        for row in rows:
            words = row["input_images"]
            row["input_images"] = [images.put(png(each)) for each in words]
        columns = {column: [row[column] for row in rows] for column in SAMPLES.columns}
        configs[split] = Dataset.from_dict(columns, features=SAMPLES.features)
    if rows := list(outputs):
        table = pa.Table.from_pylist(rows, OUTPUTS.features.arrow_schema)
        configs["outputs"] = Dataset(table)
    facts = ReleaseFacts(name=name, target=TARGET)
    return write_release(folder / name, configs, images, facts).path


def older_release(folder: Path, *systems: Any, name: str = "old") -> Path:
    """A release `old` on whose samples systems drew, `past` unless others are named."""
    folder.mkdir(exist_ok=True)
    path, config = write_old(folder, name=name), None
    chosen = systems or (PAST,)
    config = EvaluationConfig(name="drawn", benchmark=str(path), systems=chosen)
    with known(Acting()):
        done = generate(config, runs=folder / "runs").path
    for file in (folder / "runs" / "drawn" / "pictures").glob("*/*"):
        ImageStore(folder / "pictures").put(file.read_bytes())
    return write_old(folder, outputs=pq.read_table(done).to_pylist(), name=name)


def carrying(folder: Path, *systems: Any, **values: Any) -> EvaluationRun:
    """A run over a small benchmark of its own that carries `old` along."""
    if not (folder / "release").exists():
        benchmark(folder)
    if not (folder / "then").exists():
        older_release(folder / "then")
    entry = {"release": str(folder / "then" / "old"), "samples": 2, **values}
    config = EvaluationConfig(
        name="measured",
        benchmark=str(folder / "release"),
        systems=systems or (system(),),
        carry=(CarriedRelease(**entry),),
    )
    return EvaluationRun.from_config(config, folder / "runs")


def sharing(folder: Path) -> Path:
    """A benchmark of which sample o0 is one, as it is in `old`."""
    return written(folder, [sample("o0"), sample("t1")], [sample("e0", input_images=["in"])])


def outputs_of(run: EvaluationRun) -> dict[tuple[str, str], Row]:
    (part,) = run.parts
    rows = pq.read_table(part.folder.root / "outputs.parquet").to_pylist()
    return {(row["sample_id"], row["system"]): row for row in rows}


__all__ = ["PAST", "carrying", "older_release", "outputs_of", "sha", "sharing", "write_old"]
