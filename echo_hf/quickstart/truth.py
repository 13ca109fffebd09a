"""Which picture is meant by a task of the bundled posts: the script that drew them knows.

`truth.jsonl` names it by the task's post and prompt, so that a sample of a benchmark that was built
from the posts finds its picture whatever engine built it. It speaks of the bundled posts alone:
for posts that people really wrote nobody knows the right picture.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow as pa
from datasets import Dataset

from echo_hf.apply import check_columns
from echo_hf.collect.urls import canonical_url
from echo_hf.tables import SAMPLES, Table

READ = ("id", "prompt", "post_urls", "quality", "sample_digest")
READ_SAMPLES = Table(
    SAMPLES.name, SAMPLES.about, SAMPLES.key, {name: SAMPLES.columns[name] for name in READ}
)
RATED_QUALITY = "Benchmark"
NO_TRUTH = "no_truth"  # a reason: no picture is drawn for what a sample asks


@dataclass(frozen=True)
class Truths:
    """The meant pictures of the bundled posts.

    Attributes:
        pictures: Paths below the corpus, by the task's post and its prompt without white space.
        addresses: All bundled posts.
    """

    pictures: Mapping[tuple[str, str], str]
    addresses: frozenset[str]

    def of(self, sample: Mapping[str, Any]) -> str | None:
        """The picture that a sample asks for.

        Args:
            sample: A row of samples; its posts are looked up in their order.

        Returns:
            A path below the corpus; null when none is drawn for such a prompt at these posts.
        """
        prompt = without_spaces(sample["prompt"])
        found = (self.pictures.get((url, prompt)) for url in sample["post_urls"] or [])
        return next((path for path in found if path), None)

    def bundled(self, sample: Mapping[str, Any]) -> bool:
        """Whether a sample was made from bundled posts, and from no others."""
        urls = sample["post_urls"] or []
        return bool(urls) and self.addresses.issuperset(urls)


def corpus() -> Path:
    """The folder of the bundled posts."""
    return Path(str(files("echo_hf.quickstart")))


def read_truths() -> Truths:
    """Reads which pictures are meant.

    Returns:
        The pictures, and the addresses of the posts that they are for.
    """
    folder = corpus()
    rows = json_lines(folder / "truth.jsonl")
    pictures = {(row["post_url"], without_spaces(row["prompt"])): row["picture"] for row in rows}
    addresses = (canonical_url(post["url"]) for post in json_lines(folder / "posts.jsonl"))
    return Truths(pictures, frozenset(filter(None, addresses)))


def without_spaces(prompt: str) -> str:
    """A prompt without its white space, which readers of a post set as they like.

    Example:
        >>> without_spaces("a paper fox,  teal")
        'apaperfox,teal'
    """
    return "".join(prompt.split())


def json_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a bundled file, one a line."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def sample_rows(samples: Dataset | pa.Table, reader: str) -> list[dict[str, Any]]:
    """The samples of Benchmark quality, in their order.

    Args:
        samples: A table of samples, or a config of a release; pictures in it are not decoded.
        reader: Who wants to read them, for the message.

    Returns:
        Rows with the columns `READ`.

    Raises:
        TableError: A column is missing or has another type.
    """
    dataset = samples if isinstance(samples, Dataset) else Dataset(samples)
    check_columns(READ_SAMPLES, dataset, reader)
    rows = dataset.select_columns(list(READ)).with_format("arrow")[:].to_pylist()
    return [row for row in rows if row["quality"] == RATED_QUALITY]
