"""A release on disk: write it whole, read it back, and tell whether it is still what was written.

```
release/  README.md  manifest.json  stats.json  eval.yaml
          image_to_image/test-00000-of-0000N.parquet  text_to_image/...  outputs/...
```
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import datasets
import pyarrow.parquet as pq
from datasets import Dataset

from echo_hf.apply import check_columns
from echo_hf.errors import ReleaseError, TableError, unknown
from echo_hf.hub.card import render_card
from echo_hf.hub.configs import CONFIGS, SAMPLE_CONFIGS
from echo_hf.hub.eval_file import eval_file
from echo_hf.hub.facts import ReleaseFacts
from echo_hf.hub.manifest import (
    BENCHMARK,
    CARD,
    HYDRATION,
    MANIFEST,
    SPLIT,
    STATS,
    ConfigEntry,
    Manifest,
    content_digest,
    file_entry,
    make_manifest,
    read_manifest,
)
from echo_hf.hub.people import people_of
from echo_hf.hub.shards import SHARD_BYTES, write_shards
from echo_hf.hub.stats import make_stats, read_stats
from echo_hf.hub.verify import is_complete, verify_release
from echo_hf.pictures import PictureStore
from echo_hf.swap import check_replaceable, complete, replaced_whole

NAMES = frozenset({CARD, MANIFEST, STATS, BENCHMARK, HYDRATION, *CONFIGS})

__all__ = [
    "Release",
    "ReleaseFacts",
    "check_place",
    "is_complete",
    "read_release",
    "verify_release",
    "write_release",
]


class ReleasedDatasets(Mapping[str, Dataset]):
    """The datasets of a release by config, each read when it is first asked for."""

    def __init__(self, path: Path, manifest: Manifest, cache: Path | None) -> None:
        self._path, self._manifest, self._cache = path, manifest, cache
        self._loaded: dict[str, Dataset] = {}

    def __getitem__(self, config: str) -> Dataset:
        if config not in self._loaded:
            self._loaded[config] = self._load(self._manifest.configs[config])
        return self._loaded[config]

    def __iter__(self) -> Iterator[str]:
        return iter(self._manifest.configs)

    def __len__(self) -> int:
        return len(self._manifest.configs)

    def _load(self, entry: ConfigEntry) -> Dataset:
        files = [str(self._path / file.path) for file in entry.files]
        if not entry.rows:  # datasets refuses to prepare a split without rows
            return Dataset(pq.read_table(files[0]), split=SPLIT)
        cache = str(self._cache or datasets.config.HF_DATASETS_CACHE)
        try:
            return Dataset.from_parquet(files, split=SPLIT, cache_dir=cache)
        except OSError as error:
            raise ReleaseError(
                f"cannot read {files[0]!r} through {cache!r} ({error}): mend that, or choose a "
                "place on another disk"
            ) from error


@dataclass(frozen=True)
class Release:
    """A release on disk.

    Attributes:
        path: Its folder.
        manifest: What it holds and what made it.
        cache: Where its rows are copied to when they are read; null for the cache of datasets.
    """

    path: Path
    manifest: Manifest
    cache: Path | None = field(default=None, compare=False)

    @cached_property
    def datasets(self) -> Mapping[str, Dataset]:
        """The datasets by config, pictures as `Image`; each is read when it is asked for."""
        return ReleasedDatasets(self.path, self.manifest, self.cache)

    @property
    def stats(self) -> dict[str, Any]:
        """Rows, pictures and bytes of each config, and the counts of each stage.

        Where the release has its `stats.json` also what was measured in its samples, and what was
        left out.

        Raises:
            ReleaseError: That file is missing, or is not understood.
        """
        return read_stats(self.path, self.manifest).model_dump()


def write_release(
    folder: Path,
    configs: Mapping[str, Dataset],
    pictures: PictureStore,
    facts: ReleaseFacts,
    *,
    shard_bytes: int = SHARD_BYTES,
) -> Release:
    """Writes a release; one that is there already stays until the new one is complete.

    The same rows and facts give the same bytes. One writer at a time: a run holds a lock.

    Args:
        folder: Where to; absent, empty, or a release.
        configs: Rows of each config, with the columns of its table and no others.
        pictures: Where the pictures are that the rows name.
        facts: What the release says of itself.
        shard_bytes: Bytes of rows and pictures after which a new Parquet file begins.

    Returns:
        The release, read back.

    Raises:
        ReleaseError: A config has an unknown name, or `folder` holds something else.
        TableError: A dataset lacks a column, or has one too many.
        PictureError: A picture is missing or has changed; the old release stays.
    """
    _check_configs(configs)
    with replaced_whole(folder.resolve(), NAMES) as partial:
        _write(partial, configs, pictures, facts, shard_bytes)
    return read_release(folder)


def check_place(folder: Path) -> None:
    """Refuses a place where no release can be written, before much work is done for it.

    Args:
        folder: Where one is to go.

    Raises:
        ReleaseError: It is a file, or holds something else than a release.
    """
    check_replaceable(folder.resolve(), NAMES)


def read_release(path: Path, cache: Path | None = None) -> Release:
    """Opens a release, without reading its rows.

    Args:
        path: Its folder.
        cache: As of `Release`.

    Returns:
        The release.

    Raises:
        ReleaseError: There is none, or its manifest is not understood.
    """
    path = complete(path.resolve())
    return Release(path, read_manifest(path), cache)


def _check_configs(configs: Mapping[str, Dataset]) -> None:
    if not configs:
        raise ReleaseError(f"a release needs a config, expected some of {', '.join(CONFIGS)}")
    for name, dataset in configs.items():
        if name not in CONFIGS:
            raise ReleaseError(unknown("config of a release", name, CONFIGS))
        table = CONFIGS[name].table
        check_columns(table, dataset, f"release of {name}")
        extra = sorted(set(dataset.column_names) - set(table.columns))
        if extra:
            raise TableError(
                f"config {name!r} has column {extra[0]!r}, which table {table.name!r} does not: "
                "remove it, or declare it in echo_hf.tables"
            )


def _write(
    folder: Path,
    configs: Mapping[str, Dataset],
    pictures: PictureStore,
    facts: ReleaseFacts,
    shard_bytes: int,
) -> None:
    entries = {
        name: _write_config(folder, name, configs[name], pictures, shard_bytes)
        for name in CONFIGS
        if name in configs
    }
    samples = {name: configs[name] for name in SAMPLE_CONFIGS if name in configs}
    _seal(folder, make_manifest(facts, entries, people_of(samples)), facts)


def _seal(folder: Path, manifest: Manifest, facts: ReleaseFacts) -> None:
    texts = {
        "stats": (STATS, make_stats(manifest, facts).text()),
        "benchmark": (BENCHMARK, eval_file(facts, manifest)),
        "card": (CARD, render_card(facts, manifest)),
    }
    entries = {}
    for key, (name, text) in texts.items():
        if text is not None:
            (folder / name).write_text(text, "utf-8", newline="\n")
            entries[key] = file_entry(folder, name)
    sealed = manifest.model_copy(update=entries)
    (folder / MANIFEST).write_text(sealed.text(), "utf-8", newline="\n")


def _write_config(
    folder: Path, name: str, dataset: Dataset, pictures: PictureStore, shard_bytes: int
) -> ConfigEntry:
    (folder / name).mkdir()
    table = CONFIGS[name].table
    written = write_shards(folder / name, dataset, table, pictures, shard_bytes)
    return ConfigEntry(
        rows=len(written.digests),
        pictures=written.pictures,
        loaded_bytes=written.loaded_bytes,
        digest=content_digest(written.digests),
        dehydrated=written.dehydrated,
        files=tuple(file_entry(folder, f"{name}/{path.name}") for path in written.paths),
    )
