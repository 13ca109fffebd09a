"""Which image is meant by a task of the bundled posts, and which metrics fit it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow as pa

from echo_hf.tables import APPLICABILITY

NO_TRUTH = "no_truth"  # a reason: no image is drawn for what a sample asks


@dataclass(frozen=True)
class Truths:
    """The meant images of the bundled posts."""

    images: Mapping[tuple[str, str], str]

    def of(self, sample: Mapping[str, Any]) -> str | None:
        """The image that a sample asks for."""
        prompt = without_spaces(sample["prompt"])
        found = (self.images.get((url, prompt)) for url in sample["post_urls"] or [])
        return next((path for path in found if path), None)


def corpus() -> Path:
    """The folder of the bundled posts."""
    return Path(str(files("echo_hf.quickstart")))


def read_truths() -> Truths:
    rows = json_lines(corpus() / "truth.jsonl")
    return Truths(
        {(row["post_url"], without_spaces(row["prompt"])): row["picture"] for row in rows}
    )


def without_spaces(prompt: str) -> str:
    return "".join(prompt.split())  # which readers of a post set as they like


def json_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a bundled file, one a line."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


FILE = "applicability.jsonl"
IMAGE_METRICS = ("face_identity", "color_shift", "structure_distance")


def written_applicability(samples: pa.Table) -> pa.Table:
    """Which metrics fit the samples of the bundled posts that start from an image."""
    said = {row["post_url"]: row for row in json_lines(corpus() / FILE)}
    rows = []
    for sample in samples.select(["id", "post_urls"]).to_pylist():
        known = next((said[url] for url in sample["post_urls"] if url in said), None)
        if known is not None:
            flags = {name: known[name] for name in (*IMAGE_METRICS, "rationale")}
            rows.append({"sample_id": sample["id"], **flags, "outcome": "ok"})
    return pa.Table.from_pylist(rows, APPLICABILITY.schema)
