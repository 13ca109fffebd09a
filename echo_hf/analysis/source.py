"""What is analyzed: the samples of a benchmark, and the posts and counts of its run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from echo_hf.analysis.options import OWN
from echo_hf.analysis.prompt_set import PromptSet, prompt_set
from echo_hf.benchmark import Benchmark
from echo_hf.curate.splits import ANALYSIS, BENCHMARKS
from echo_hf.errors import ReleaseError, RunError
from echo_hf.hub.load import load_manifest
from echo_hf.hub.manifest import Manifest
from echo_hf.run_folder import RunFolder
from echo_hf.tables import POSTS

COLUMNS = ("id", "prompt", "task", "kind", "post_urls", "community_feedback")
POST_COLUMNS = ("url", "timestamp", "keywords")
POST_SCHEMA = pa.schema([POSTS.schema.field(name) for name in POST_COLUMNS])
LONGEST_SAID = 200
Sample = Mapping[str, Any]


@dataclass(frozen=True)
class Source:
    """What an analysis is made of.

    Attributes:
        name: Of the run or the release.
        samples: Rows with `COLUMNS`, each sample once; a column that is not there is null.
        posts: Rows with `POST_COLUMNS`, null where only a release is at hand.
        manifest: What the release says of itself, null where it has no manifest.
        folder: The run's folder.
        benchmark: The benchmark that its systems were run on.
        identity: What tells it from another one.
    """

    name: str
    samples: Sequence[Sample]
    posts: pa.Table | None
    manifest: Manifest | None
    folder: RunFolder
    benchmark: Benchmark
    identity: Mapping[str, Any]

    @property
    def prompts(self) -> PromptSet:
        """The benchmark's own prompts."""
        ids = [sample["id"] for sample in self.samples]
        return prompt_set(OWN, (one["prompt"] for one in self.samples), ids=ids)


def read_source(name: str, benchmark: Benchmark, folder: RunFolder) -> Source:
    """Reads what is analyzed.

    Args:
        name: Of the run.
        benchmark: A release on disk, or a revision on the Hub. Its `analysis` samples are read,
            which hold all others; where it has none, those of its splits.
        folder: The run's folder, which may hold posts and tables.

    Returns:
        The source.

    Raises:
        RunError: The run's posts cannot be read.
        EchoError: The benchmark cannot be read.
    """
    manifest = manifest_of(benchmark.reference)
    held = set(manifest.configs) if manifest else {ANALYSIS}
    configs = [ANALYSIS] if ANALYSIS in held else [one for one in BENCHMARKS if one in held]
    samples = {row["id"]: row for config in configs for row in _rows(benchmark, config)}
    identity = {**benchmark.identity(), "configs": configs}
    posts = _posts(folder.stage("collect") / "kept.parquet")
    return Source(name, tuple(samples.values()), posts, manifest, folder, benchmark, identity)


def manifest_of(reference: str) -> Manifest | None:
    """What a release says of itself.

    Args:
        reference: Folder of a release, or `ORGANISATION/NAME@TAG` on the Hub.

    Returns:
        Its manifest; null for the dataset of ECHO's authors, which has none.

    Raises:
        EchoError: There is no such release.
    """
    repo, at, revision = reference.rpartition("@")
    on_hub = at and not Path(reference).exists()
    try:
        return load_manifest(repo, revision=revision) if on_hub else load_manifest(reference)
    except ReleaseError:
        if Path(reference).exists():
            raise
        return None


def _rows(benchmark: Benchmark, config: str) -> list[dict[str, Any]]:
    dataset = benchmark.load(config)
    held = [name for name in COLUMNS if name in dataset.column_names]
    rows = dataset.select_columns(held).with_format("arrow")[:].to_pylist()
    return [{**dict.fromkeys(COLUMNS), **row} for row in rows]


def _posts(path: Path) -> pa.Table | None:
    if not path.exists():
        return None
    try:
        return pq.read_table(path, columns=list(POST_COLUMNS)).cast(POST_SCHEMA)
    except (OSError, pa.ArrowException, ValueError) as error:
        said = " ".join(str(error).split())
        raise RunError(
            f"cannot read {str(path)!r} ({said[:LONGEST_SAID]}): run `echo-hf collect` again"
        ) from None
