"""A release on disk: write it whole, read it back, check it, take it apart again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Dataset

from echo_hf._infra.atomic import check_replaceable, complete, replaced_whole
from echo_hf.errors import ReleaseError, TableError, unknown
from echo_hf.hub.card import eval_file, render_card
from echo_hf.hub.facts import CONFIGS, SAMPLE_CONFIGS, ReleaseFacts
from echo_hf.hub.manifest import (
    BENCHMARK,
    CARD,
    HYDRATION,
    MANIFEST,
    SPLIT,
    STATS,
    ConfigEntry,
    FileEntry,
    Manifest,
    Stats,
    content_digest,
    facts_of,
    file_entry,
    make_manifest,
    make_stats,
    people_of,
    read_manifest,
    read_stats,
)
from echo_hf.hub.parquet import SHARD_BYTES, released_schema, write_shards
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.stage_runner import check_columns
from echo_hf.tables import Table


def is_complete(path: Path) -> bool:
    """Whether each file that the manifest lists is there with its size; contents are not read."""
    folder = complete(path.resolve())
    try:
        sizes = {entry.path: entry.bytes for entry in read_manifest(folder).files}
        return all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (ReleaseError, OSError):
        return False


def verify_release(path: Path, config: str | None = None) -> None:
    """Compares every file with the manifest; hidden files, which tools leave, are not looked at."""
    folder = complete(path.resolve())
    manifest = read_manifest(folder)
    listed = manifest.files if config is None else _part(folder, manifest, config)
    for entry in listed:
        _check_file(folder, entry)
    if config is None:
        _check_no_more(folder, listed)


def _part(folder: Path, manifest: Manifest, config: str) -> list[FileEntry]:
    if config not in manifest.configs:
        place = f"release {str(folder)!r}"
        raise ReleaseError(unknown("config", config, manifest.configs, place))
    return [*manifest.configs[config].files, *filter(None, [manifest.card])]


def _check_no_more(folder: Path, listed: Iterable[FileEntry]) -> None:
    extra = sorted(_visible(folder) - {MANIFEST, HYDRATION, *(entry.path for entry in listed)})
    if extra:
        raise ReleaseError(
            f"release {str(folder)!r} holds {extra[0]!r}, which its manifest does not list: "
            "move it elsewhere"
        )


def _check_file(folder: Path, entry: FileEntry) -> None:
    place = f"release {str(folder)!r}: {entry.path!r}"
    mend = "write or download the release again"
    if not (folder / entry.path).is_file():
        raise ReleaseError(f"{place} is missing: {mend}")
    found = file_entry(folder, entry.path)
    for name in ("bytes", "sha256"):
        if getattr(found, name) != getattr(entry, name):
            raise ReleaseError(
                f"{place} has changed: {name} is {getattr(found, name)!r}, the manifest says "
                f"{getattr(entry, name)!r}: {mend}"
            )


def _visible(folder: Path) -> set[str]:
    paths = (path.relative_to(folder) for path in folder.rglob("*") if not path.is_dir())
    return {
        path.as_posix() for path in paths if not any(part.startswith(".") for part in path.parts)
    }


NAMES = frozenset({CARD, MANIFEST, STATS, BENCHMARK, HYDRATION, *CONFIGS})


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
                f"cannot read {files[0]!r} through {cache!r} ({error}): fix that, or choose a "
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
        """The datasets by config, images as `Image`; each is read when it is asked for."""
        return ReleasedDatasets(self.path, self.manifest, self.cache)

    @property
    def stats(self) -> dict[str, Any]:
        """Rows, images and bytes of each config, and the counts of each stage.

        Where the release has its `stats.json` also what was measured in its samples, and what was
        left out.

        Raises:
            ReleaseError: That file is missing, or is not understood.
        """
        return read_stats(self.path, self.manifest).model_dump()


def write_release(
    folder: Path,
    configs: Mapping[str, Dataset],
    images: ImageStore,
    facts: ReleaseFacts,
    *,
    shard_bytes: int = SHARD_BYTES,
) -> Release:
    """Writes a release; one that is there already stays until the new one is complete."""
    _check_configs(configs)
    with replaced_whole(folder.resolve(), NAMES) as partial:
        _write(partial, configs, images, facts, shard_bytes)
    return read_release(folder)


def check_place(folder: Path) -> None:
    """Refuses a place where no release can be written, before much work is done for it."""
    check_replaceable(folder.resolve(), NAMES)


def read_release(path: Path, cache: Path | None = None) -> Release:
    """Opens a release, without reading its rows."""
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
    images: ImageStore,
    facts: ReleaseFacts,
    shard_bytes: int,
) -> None:
    entries = {
        name: _write_config(folder, name, configs[name], images, shard_bytes)
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
    folder: Path, name: str, dataset: Dataset, images: ImageStore, shard_bytes: int
) -> ConfigEntry:
    (folder / name).mkdir()
    table = CONFIGS[name].table
    written = write_shards(folder / name, dataset, table, images, shard_bytes)
    return ConfigEntry(
        rows=len(written.digests),
        pictures=written.images,
        loaded_bytes=written.loaded_bytes,
        digest=content_digest(written.digests),
        dehydrated=written.dehydrated,
        files=tuple(file_entry(folder, f"{name}/{path.name}") for path in written.paths),
    )


def released_facts(release: Release) -> ReleaseFacts:
    """What a release says of itself."""
    stats = read_stats(release.path, release.manifest)
    facts = facts_of(release.manifest)
    # A manifest's keys are sorted; the counts are in the order of the stages.
    return replace(
        facts,
        funnel=stats.funnel,
        provenance=dict(sorted(facts.provenance.items(), key=lambda each: _place(each[0], stats))),
        measured=stats.measured,
        left_out=stats.left_out,
        failed=stats.failed,
    )


def _place(stage: str, stats: Stats) -> int:
    names = list(stats.funnel)
    return names.index(stage) if stage in names else len(names)


DIGEST = re.compile("[0-9a-f]{64}")
STRUCTS = ("community_feedback", "picture_sources")


def unpacked(release: Release, images: ImageStore) -> dict[str, Dataset]:
    """The rows of a release as a run has them, one row group in memory at a time with images."""
    return {
        name: _dataset(release.path, entry, _table(release, name), images)
        for name, entry in release.manifest.configs.items()
    }


def rows_of(release: Release, config: str) -> Iterator[dict[str, Any]]:
    """The rows of a config, without reading its images."""
    table = _table(release, config)
    for entry in release.manifest.configs[config].files:
        path = release.path / entry.path
        for group in _groups(path, table, with_images=False):
            for row in group:
                for name in table.images:
                    named = [_named_digest(one["path"]) for one in _listed(row[name])]
                    row[name] = named if isinstance(row[name], list) else next(iter(named), None)
                yield row


def _table(release: Release, config: str) -> Table:
    if config not in CONFIGS:
        raise ReleaseError(unknown("config", config, CONFIGS, repr(str(release.path))))
    return CONFIGS[config].table


def _dataset(folder: Path, entry: ConfigEntry, table: Table, images: ImageStore) -> Dataset:
    rows = list(_rows(folder, entry, table, images))
    return Dataset(pa.Table.from_pylist(rows, table.features.arrow_schema))


def _rows(
    folder: Path, entry: ConfigEntry, table: Table, images: ImageStore
) -> Iterator[dict[str, Any]]:
    for listed in entry.files:
        path = folder / listed.path
        for group in _groups(path, table):
            yield from (_with_digests(row, path, table, images) for row in group)


def _groups(
    path: Path, table: Table, *, with_images: bool = True
) -> Iterator[list[dict[str, Any]]]:
    try:
        with pq.ParquetFile(path) as file:
            _check_columns(path, file.schema_arrow, released_schema(table))
            columns = None if with_images else _without_bytes(file, table)
            for number in range(file.num_row_groups):
                yield file.read_row_group(number, columns=columns).to_pylist()
    except pa.ArrowException as error:
        said = str(error).splitlines()[0]
        raise ReleaseError(
            f"{str(path)!r} cannot be read ({said}): write or download the release again"
        ) from error


def _without_bytes(file: pq.ParquetFile, table: Table) -> list[str]:
    """The places of all values but the bytes of images."""
    places = [file.schema.column(number).path for number in range(len(file.schema))]
    shown = {f"{name}." for name in table.images}
    return [
        place
        for place in places
        if not (place.endswith(".bytes") and place.startswith(tuple(shown)))
    ]


def _named_digest(name: str | None) -> str:
    stem = (name or "").partition(".")[0]
    return stem if DIGEST.fullmatch(stem) else ""


def _check_columns(path: Path, schema: pa.Schema, ours: pa.Schema) -> None:
    for name in sorted({*ours.names, *schema.names}):
        kinds = [each.field(name).type if name in each.names else None for each in (schema, ours)]
        if kinds[0] != kinds[1]:
            found, expected = ("no such column" if kind is None else str(kind) for kind in kinds)
            raise ReleaseError(
                f"{str(path)!r}: column {name!r} is {found[:80]!r}, expected {expected[:80]!r}: it "
                "was written by another version of echo-hf; use that one, or build the release "
                "again"
            )


def _with_digests(
    row: dict[str, Any], path: Path, table: Table, images: ImageStore
) -> dict[str, Any]:
    shown = [image for name in table.images for image in _listed(row[name])]
    if any(None in (row.get(name) or []) for name in STRUCTS) or not all(map(_has_bytes, shown)):
        raise ReleaseError(
            f"{str(path)!r}: row {next(iter(row.values()))!r} holds null where an image, or what "
            "is told of one, is expected: download the release again"
        )
    for name in table.images:
        digests = [images.put(one["bytes"]) for one in _listed(row[name])]
        row[name] = digests if isinstance(row[name], list) else next(iter(digests), None)
    return row


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _has_bytes(image: Any) -> bool:
    return image is not None and image["bytes"] is not None
