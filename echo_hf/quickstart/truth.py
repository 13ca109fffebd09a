"""The intended image of each task of the bundled posts, and the metrics that fit it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow as pa

from echo_hf.tables import APPLICABILITY, lengthen_rows

NO_TRUTH = "no_truth"  # a reason: no image is drawn for what a sample asks
FILE = "applicability.jsonl"


@dataclass(frozen=True)
class TruthImages:
    """The intended images of the bundled posts, by post and prompt."""

    images: Mapping[tuple[str, str], str]

    def find_image(self, sample: Mapping[str, Any]) -> str | None:
        """Return the intended image of a sample, or null."""
        prompt = strip_spaces(sample["prompt"])
        paths = (self.images.get((url, prompt)) for url in sample["post_urls"] or [])
        return next((path for path in paths if path), None)


def corpus_folder() -> Path:
    """Return the folder of the bundled posts."""
    return Path(str(files("echo_hf.quickstart")))


def read_truths() -> TruthImages:
    rows = read_json_lines(corpus_folder() / "truth.jsonl")
    return TruthImages(
        {(row["post_url"], strip_spaces(row["prompt"])): row["picture"] for row in rows}
    )


def strip_spaces(prompt: str) -> str:
    return "".join(prompt.split())  # which readers of a post set as they like


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """Read the objects of a bundled JSON Lines file."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def read_bundled_applicability(samples: pa.Table) -> pa.Table:
    """Read which metrics fit the samples of the bundled posts that have an input image."""
    by_url = {row["post_url"]: row for row in read_json_lines(corpus_folder() / FILE)}
    rows: list[Mapping[str, Any]] = []
    for sample in samples.select(["id", "post_urls"]).to_pylist():
        row = next((by_url[url] for url in sample["post_urls"] if url in by_url), None)
        if row is not None:
            flags = {name: flag for name, flag in row.items() if name != "post_url"}
            rows += lengthen_rows([{"sample_id": sample["id"], **flags, "outcome": "ok"}])
    return pa.Table.from_pylist(rows, APPLICABILITY.schema)
