"""Releases on disk: write, read, verify and unpack them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Dataset, Features
from datasets.table import MemoryMappedTable
from datasets.table import Table as DatasetsTable

from echo_hf._infra.atomic import find_complete, pause_gc, replace_folder, store_rows
from echo_hf._infra.parquet import open_parquet, read_footer, read_schema
from echo_hf._infra.summary import SummaryMixin
from echo_hf.config.runs import find_release
from echo_hf.errors import ImageError, ReleaseError, unknown
from echo_hf.hub.card import read_searches, render_card, render_eval_file
from echo_hf.hub.facts import CONFIGS, SAMPLE_CONFIGS, ReleaseFacts, get_table
from echo_hf.hub.manifest import (
    CARD,
    EVAL_FILE,
    HYDRATION,
    MANIFEST,
    PROOFS,
    ROWS_PER_BATCH,
    SPLIT,
    STATS,
    ConfigEntry,
    Manifest,
    canonical_json,
    catch_read_errors,
    file_entry,
    get_version,
    hash_rows,
    make_manifest,
    make_stats,
    read_manifest,
    read_openings,
    read_stats,
)
from echo_hf.hub.run_tables import released_models
from echo_hf.images.embedded import check_embedded, read_embedded
from echo_hf.images.loader import detect_format
from echo_hf.images.store import DIGEST_PATTERN, ImageStore
from echo_hf.pipeline.runner import MIN_PARALLEL_ROWS, fork_map
from echo_hf.pipeline.stage import table_bytes
from echo_hf.pipeline.stage_runner import check_columns
from echo_hf.tables import (
    ADDED_COLUMNS,
    APPLICABILITY,
    Table,
    arrow_batches,
    get_rows,
    is_wide,
    lengthen_rows,
    make_wide_table,
)

NAMES = frozenset({CARD, MANIFEST, STATS, EVAL_FILE, PROOFS, HYDRATION, *CONFIGS})


@dataclass(frozen=True, repr=False)
class Release(SummaryMixin):
    """A release on disk.

    Attributes:
        path: Its folder.
        manifest: What it holds and what made it.
        cache: Where its rows are copied to when they are read; null for the cache of datasets.
    """

    path: Path
    manifest: Manifest
    cache: Path | None = field(default=None, compare=False)

    def _facts(self) -> dict[str, Any]:
        rows = {name: entry.rows for name, entry in self.manifest.configs.items()}
        return {"name": self.manifest.name, "path": self.path, **rows}

    @cached_property
    def datasets(self) -> Mapping[str, Dataset]:
        """The datasets by config, images as `Image`; each is read when it is asked for."""
        return ReleasedDatasets(self)

    @property
    def stats(self) -> dict[str, Any]:
        """Rows, images and bytes of each config, and the counts of each stage.

        Where the release has its `stats.json` also what was measured in its samples, and what was
        left out.

        Raises:
            ReleaseError: That file is missing, or is not understood.
        """
        return read_stats(self.path, self.manifest).model_dump()


MAX_MEMORY_BYTES = 32_000_000  # of files: more is read through a cache on the disk


def config_files(release: Release, config: str) -> list[Path]:
    """Return the Parquet files of a config, none where the release lacks it."""
    entry = release.manifest.configs.get(config)
    return [release.path / file.path for file in entry.files] if entry else []


class ReleasedDatasets(Mapping[str, Dataset]):
    """The datasets of a release by config, each read when first asked for."""

    def __init__(self, release: Release) -> None:
        self._release = release
        self._load = cache(self._read_config)

    def __getitem__(self, config: str) -> Dataset:
        return self._load(config)

    def __iter__(self) -> Iterator[str]:
        return iter(self._release.manifest.configs)

    def __len__(self) -> int:
        return len(self._release.manifest.configs)

    def _read_config(self, config: str) -> Dataset:
        entry, file = self._release.manifest.configs[config], None
        schema = _read_features(self._release, config).arrow_schema
        if max(sum(part.bytes for part in entry.files), entry.loaded_bytes) > MAX_MEMORY_BYTES:
            folder = Path(self._release.cache or datasets.config.HF_DATASETS_CACHE)
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / f"release-{_compute_state(self._release, config)}.arrow"
        if file is not None and file.exists():
            rows: DatasetsTable = MemoryMappedTable.from_file(str(file))
        else:
            rows = store_rows(_iterate_tables(self._release, config), schema, file)
        return Dataset(rows, split=SPLIT, fingerprint=entry.digest[-16:])


def _read_features(release: Release, config: str) -> Features:
    """Return a config's features: declared ones, and plain types for other columns.

    What a file says itself is not believed: some features open a path when a row is looked at.
    """
    table, path = find_table(release, config), config_files(release, config)[0]
    with catch_read_errors(path):
        schema = read_schema(read_footer(path, release.path))
    if is_wide(table, schema.names):
        return table.released_features
    check_released(path, schema, table)
    other_columns = pa.schema([field for field in schema if field.name not in table.columns])
    with catch_read_errors(path):
        features = Features.from_arrow_schema(other_columns)
    all_features = {**features, **table.released_features}
    return Features({name: all_features[name] for name in schema.names})


def check_released(
    path: Path,
    schema: pa.Schema,
    table: Table,
    *,
    closed: bool = False,
    needed: Collection[str] | None = None,
) -> None:
    """Refuse a file that lacks columns of a table; if `closed`, also other columns."""
    expected_schema = make_released_schema(table)
    for name in sorted({*expected_schema.names, *(schema.names if closed else ())}):
        types = [
            columns.field(name).type if name in columns.names else None
            for columns in (schema, expected_schema)
        ]
        can_lack = name in ADDED_COLUMNS or (needed is not None and name not in needed)
        if types[0] != types[1] and not (types[0] is None and can_lack):
            actual, expected = (str(arrow_type or "no such column")[:80] for arrow_type in types)
            raise ReleaseError(
                f"{str(path)!r}: column {name!r} is {actual!r}, expected {expected!r}: it was "
                "written by another version of echo-hf; use that one, or build the release again"
            )


def _compute_state(release: Release, config: str) -> str:
    """Return a digest of a config's files as they are now."""
    files = [(str(path), *_stat_file(path)) for path in config_files(release, config)]
    text = json.dumps([get_version(), release.manifest.configs[config].digest, files])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _iterate_tables(release: Release, config: str) -> Iterator[pa.Table]:
    """Yield a config's rows in batches; each id occurs once."""
    table, rows_before = find_table(release, config), 0
    ids: set[Any] = set()
    for path in config_files(release, config):
        with catch_read_errors(path), open_parquet(path, release.path) as file:
            wide = is_wide(table, file.schema.names)
            check_released(path, file.schema, make_wide_table(file.schema) if wide else table)
            for batch in file.iterate_batches():
                check_embedded(batch, rows_before)
                rows_before += batch.num_rows
                if config in SAMPLE_CONFIGS:
                    check_ids(path, batch["id"].to_pylist(), ids)
                part = pa.Table.from_batches([batch])
                if wide:
                    part = pa.Table.from_pylist([*lengthen_rows(part.to_pylist())], table.schema)
                yield part


def check_ids(path: Path, names: Iterable[Any], known_ids: set[Any]) -> None:
    """Refuse two samples with one id, and record the ids."""
    for name in names:
        if name is None or name in known_ids:
            what = "no id" if name is None else f"id {str(name)[:80]!r}, as another one has"
            raise ReleaseError(f"{str(path)!r}: a sample has {what}: build the release again")
        known_ids.add(name)


def read_release(path: Path, cache: Path | None = None) -> Release:
    """Open a release, without reading its rows."""
    path = find_complete(find_release(path.resolve()))
    return Release(path, read_manifest(path), cache)


def is_complete(path: Path) -> bool:
    """Return whether each listed file exists with its size; contents are not read."""
    folder = find_complete(find_release(path.resolve()))
    try:
        files = read_manifest(folder).files
        return all((folder / entry.path).stat().st_size == entry.bytes for entry in files)
    except (ReleaseError, OSError):
        return False


def verify_release(path: Path, config: str | None = None) -> None:
    """Compare every file with the manifest; hidden files are ignored."""
    folder = find_complete(find_release(path.resolve()))
    manifest = read_manifest(folder)
    place = f"release {str(folder)!r}"
    if config is not None and config not in manifest.configs:
        raise ReleaseError(unknown("config", config, manifest.configs, place))
    files = manifest.files
    if config is not None:
        beside = filter(None, [manifest.card, manifest.proofs])
        files = [*manifest.configs[config].files, *beside]
    for entry in files:
        file_place, advice = f"{place}: {entry.path!r}", "write or download the release again"
        if not (folder / entry.path).is_file():
            raise ReleaseError(f"{file_place} is missing: {advice}")
        with catch_read_errors(folder / entry.path):
            actual = file_entry(folder, entry.path)
        for name in ("bytes", "sha256"):
            if getattr(actual, name) != getattr(entry, name):
                raise ReleaseError(
                    f"{file_place} has changed: {name} is {getattr(actual, name)!r}, the manifest "
                    f"says {getattr(entry, name)!r}: {advice}"
                )
    known_names = {MANIFEST, HYDRATION, *(entry.path for entry in files)}
    for file in sorted(folder.rglob("*")) if config is None else ():
        name = file.relative_to(folder).as_posix()
        if name not in known_names and not file.is_dir() and not re.search(r"(^|/)\.", name):
            raise ReleaseError(
                f"{place} holds {name!r}, which its manifest does not list: move it elsewhere"
            )


SHARD_BYTES = 500_000_000
# The Hub's viewer refuses to read more than 300 MB at once; this is a row group's size at most,
# but for the last row in it.
BATCH_BYTES = 32_000_000
BATCH_ROWS = 100
IMAGELESS_BATCH_ROWS = 1000
EXTENSIONS = {"JPEG": "jpg", "TIFF": "tif"}  # of other formats their names


def write_release(
    folder: Path,
    configs: Mapping[str, Dataset],
    images: ImageStore,
    facts: ReleaseFacts,
    *,
    shard_bytes: int = SHARD_BYTES,
    processes: int = 1,
) -> Release:
    """Write a release; an existing one stays until the new one is complete."""
    if not configs:
        raise ReleaseError(f"a release needs a config, expected some of {', '.join(CONFIGS)}")
    for name, dataset in configs.items():
        if name not in CONFIGS:
            raise ReleaseError(unknown("config of a release", name, CONFIGS))
        check_columns(get_table(name, facts.columns), dataset, f"release of {name}")
    names = [name for name in CONFIGS if name in configs]
    with replace_folder(folder.resolve(), NAMES) as partial:
        entries = {
            name: _write_config(
                partial,
                name,
                get_table(name, facts.columns),
                configs[name],
                images,
                shard_bytes,
                processes,
            )
            for name in names
        }
        samples = [configs[name] for name in SAMPLE_CONFIGS if name in configs]
        manifest = make_manifest(facts, entries, samples)
        models = released_models(configs.get("results"))
        texts = {
            "stats": (STATS, make_stats(manifest, facts).model_dump_json(indent=2) + "\n"),
            "benchmark": (EVAL_FILE, render_eval_file(manifest)),
            "card": (CARD, render_card(facts, manifest, models, configs.get("checks"))),
            "proofs": (PROOFS, "".join(f"{each.model_dump_json()}\n" for each in facts.openings)),
        }
        entries_beside = {}
        for key, (name, text) in texts.items():
            # Proofs are missed by their reader where there ought to be some, so none are a file.
            if text or (key == "proofs" and facts.revealed):
                (partial / name).write_text(text or "", "utf-8", newline="\n")
                entries_beside[key] = file_entry(partial, name)
        text_sealed = manifest.model_copy(update=entries_beside).to_text()
        (partial / MANIFEST).write_text(text_sealed, "utf-8", newline="\n")
    return read_release(folder)


def _write_config(
    folder: Path,
    name: str,
    table: Table,
    dataset: Dataset,
    store: ImageStore,
    shard_bytes: int,
    processes: int,
) -> ConfigEntry:
    """Write a config as `test-00000-of-0000N.parquet`, with one row group in memory."""
    (folder / name).mkdir()
    schema = make_released_schema(table)
    paths: list[Path] = []
    digests: list[bytes] = []
    images = dehydrated = loaded_bytes = 0
    shard_size, ids = shard_bytes, set[Any]()
    with ExitStack() as stack, pause_gc():
        for group in _iterate_groups(
            name, table, dataset, store, min(BATCH_BYTES, shard_bytes), processes
        ):
            if shard_size >= shard_bytes:
                stack.close()
                paths.append(folder / name / f"{SPLIT}-{len(paths):05d}.parquet")
                file, shard_size = stack.enter_context(_open_writer(paths[-1], schema)), 0
            if name in SAMPLE_CONFIGS:
                check_ids(paths[-1], group.rows["id"].to_pylist(), ids)
            file.write_table(group.rows)
            shard_size += group.size
            digests.extend(group.digests)
            images += group.images
            if "dehydrated" in schema.names:
                dehydrated += group.rows["dehydrated"].to_pylist().count(True)
            loaded_bytes += group.rows.nbytes
    if not paths:
        # A row group of no rows would be a batch size of 0 to readers, which they refuse.
        paths.append(folder / name / f"{SPLIT}-00000.parquet")
        _open_writer(paths[0], schema).close()
    final_paths = [path.with_stem(f"{path.stem}-of-{len(paths):05d}") for path in paths]
    for path, final in zip(paths, final_paths, strict=True):
        path.rename(final)
    return ConfigEntry(
        rows=len(digests),
        pictures=images,
        loaded_bytes=loaded_bytes,
        digest=hash_rows(digests),
        dehydrated=dehydrated,
        files=tuple(file_entry(folder, f"{name}/{path.name}") for path in final_paths),
    )


class _RowGroup(NamedTuple):
    """Rows with embedded images, and the digests and size of their content."""

    rows: pa.Table
    digests: list[bytes]
    images: int
    size: int


def _iterate_groups(
    name: str, table: Table, dataset: Dataset, store: ImageStore, limit: int, processes: int
) -> Iterator[_RowGroup]:
    schema = make_released_schema(table)
    max_rows = BATCH_ROWS if table.images else IMAGELESS_BATCH_ROWS

    def digest_rows(start: int) -> tuple[pa.Buffer, list[bytes], list[int]]:
        numbers = slice(start, start + ROWS_PER_BATCH)
        rows = get_rows(dataset, numbers, list(table.columns))
        texts = [canonical_json(row) for row in rows.to_pylist()]
        digests = [hashlib.sha256(text).digest() for text in texts]
        return table_bytes(rows), digests, list(map(len, texts))

    if len(dataset) < MIN_PARALLEL_ROWS:
        processes = 1
    starts = range(0, len(dataset), ROWS_PER_BATCH)
    pieces: list[pa.Table] = []
    cells: dict[str, list[Any]] = {column: [] for column in table.images}
    group: list[bytes] = []
    images = size = 0
    for start, outcome in fork_map(lambda: digest_rows, starts, processes, f"release of {name!r}"):
        chunk, digests, sizes = pa.ipc.open_stream(outcome[0]).read_all(), *outcome[1:]
        digests_by_column = {column: chunk[column].to_pylist() for column in table.images}
        group_start = 0
        for position, digest in enumerate(digests):
            group.append(digest)
            size += sizes[position]
            for column, values in digests_by_column.items():
                embedded = _map_images(values[position], lambda sha256: _embed_image(sha256, store))
                byte_sizes = [len(image["bytes"]) for image in _to_list(embedded) if image]
                images, size = images + len(byte_sizes), size + sum(byte_sizes)
                cells[column].append(embedded)
            is_last = start + position + 1 == len(dataset)
            if len(group) >= max_rows or size >= limit or is_last:
                pieces.append(chunk.slice(group_start, position + 1 - group_start))
                yield _RowGroup(_join(pieces, cells, schema), group, images, size)
                pieces, cells, group = [], {column: [] for column in cells}, []
                group_start, images, size = position + 1, 0, 0
        pieces.append(chunk.slice(group_start))


def _join(
    pieces: Iterable[pa.Table], cells: Mapping[str, list[Any]], schema: pa.Schema
) -> pa.Table:
    # Without the masks of columns that hold no null: they would count as bytes.
    rows = pa.ipc.open_stream(table_bytes(pa.concat_tables(pieces))).read_all()
    columns = [
        pa.array(cells[field.name], field.type) if field.name in cells else rows[field.name]
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _map_images(value: Any, change: Callable[[Any], Any]) -> Any:
    """Map a column's image, or each of its list of images; null stays null."""
    if isinstance(value, list):
        return [None if image is None else change(image) for image in value]
    return None if value is None else change(value)


def store_row_images(row: Mapping[str, Any], table: Table, images: ImageStore) -> dict[str, Any]:
    """Return a released row with digests in place of its images, which are stored."""
    name = next(iter(row.values()))

    def store(image: Any) -> str:
        return images.put(read_embedded(image, name))

    return {**row, **{column: _map_images(row[column], store) for column in table.images}}


def _embed_image(digest: str, store: ImageStore) -> dict[str, Any]:
    data = store.open(digest)
    image_format = detect_format(data)
    if image_format is None:
        raise ImageError(f"image {digest!r} has no known format: take its sample out")
    return {"bytes": data, "path": f"{digest}.{EXTENSIONS.get(image_format, image_format.lower())}"}


def make_released_schema(table: Table) -> pa.Schema:
    """Return a table's Arrow schema in releases, with features for `load_dataset`."""

    def convert_lists(feature: Any) -> Any:
        """Convert a list to the form that older versions of datasets read."""
        if not isinstance(feature, dict):
            return feature
        if feature.get("_type") == "List":
            return [convert_lists(feature["feature"])]
        return {name: convert_lists(inner) for name, inner in feature.items()}

    released = table.released_features
    features = {name: convert_lists(feature) for name, feature in released.to_dict().items()}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    return released.arrow_schema.with_metadata(metadata)


def _iterate_leaves(path: str, arrow_type: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """Yield the leaves of a column, by the paths that Parquet reads them under."""
    if pa.types.is_struct(arrow_type):
        for inner in arrow_type:
            yield from _iterate_leaves(f"{path}.{inner.name}", inner.type)
    elif pa.types.is_list(arrow_type):
        yield from _iterate_leaves(f"{path}.list.element", arrow_type.value_type)
    else:
        yield path, arrow_type


def non_image_columns(schema: pa.Schema) -> list[str]:
    """Return the leaf columns of a release's rows, apart from image bytes."""
    leaves = (leaf for column in schema for leaf in _iterate_leaves(column.name, column.type))
    return [path for path, arrow_type in leaves if not pa.types.is_binary(arrow_type)]


def _open_writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    # An image is compressed already and no two are equal: a dictionary of them is a second copy.
    without_images = non_image_columns(schema)
    leaves = [path for column in schema for path, _ in _iterate_leaves(column.name, column.type)]
    return pq.ParquetWriter(
        path,
        schema,
        # Pages end where the content says so: a revision with a few new rows uploads little more.
        use_content_defined_chunking=True,
        # The viewer reads the pages of the rows that it shows, and not the whole row group.
        write_page_index=True,
        compression={leaf: "zstd" if leaf in without_images else "none" for leaf in leaves},
        use_dictionary=sorted(without_images),
    )


def read_release_facts(release: Release) -> ReleaseFacts:
    manifest, stats = release.manifest, read_stats(release.path, release.manifest)
    # A manifest's keys are sorted; the counts are in the order of the stages.
    stages = [*filter(manifest.provenance.__contains__, stats.funnel), *manifest.provenance]
    origins = {name: manifest.provenance[name] for name in dict.fromkeys(stages)}
    return ReleaseFacts(
        name=manifest.name,
        target=manifest.target,
        protocol=manifest.protocol,
        funnel=stats.funnel,
        provenance={
            name: origin.model_dump(exclude={"prompt"} if origin.prompt is None else None)
            for name, origin in origins.items()
        },
        rules_built=manifest.rules_built,
        measured=stats.measured,
        left_out=stats.left_out,
        failed=stats.failed,
        columns=manifest.columns,
        sealed=manifest.sealed,
        revealed=manifest.revealed,
        openings=read_openings(release.path, manifest),
        searches=read_searches(release.path / CARD) if manifest.card else {},
        **vars(manifest.statements),
    )


STRUCTS = ("community_feedback", "picture_sources")


def unpack_release(release: Release, images: ImageStore) -> dict[str, Dataset]:
    """Unpack a release's rows as a run has them, in files beside their images."""
    images.root.mkdir(parents=True, exist_ok=True)
    return {
        name: store_table_rows(
            read_config_rows(release, name, images),
            find_table(release, name),
            images.root / f"{name}.arrow",
        )
        for name in release.manifest.configs
    }


def store_table_rows(rows: Iterable[Mapping[str, Any]], table: Table, file: Path) -> Dataset:
    """Store rows of a table in a file, without holding all in memory."""
    remaining = iter(rows)
    chunks = iter(lambda: list(islice(remaining, ROWS_PER_BATCH)), [])
    return store_batches(
        (pa.Table.from_pylist(chunk_rows, table.schema) for chunk_rows in chunks), table, file
    )


def store_batches(batches: Iterable[pa.Table], table: Table, file: Path) -> Dataset:
    """Store batches of a table's rows in a file, one in memory at a time."""
    rows = store_rows(batches, table.features.arrow_schema, file)
    return Dataset(rows, fingerprint=file.stem)


def iterate_rows(
    dataset: Dataset, size: int = ROWS_PER_BATCH, columns: Sequence[str] | None = None
) -> Iterator[dict[str, Any]]:
    """Iterate the rows of a dataset, batch by batch."""
    for batch in arrow_batches(dataset, size, columns):
        yield from batch.to_pylist()


RowGroups = tuple[Path, Sequence[int] | None]  # row groups of a file, null for all


def split_row_groups(release: Release, config: str) -> Iterator[RowGroups]:
    """Yield parts of a config with about as many rows as fit in memory."""
    for path in config_files(release, config):
        with catch_read_errors(path):
            count = read_footer(path, release.path).num_row_groups
        groups_per_part = ROWS_PER_BATCH // BATCH_ROWS
        # A file without rows is a part as well: its columns are looked at.
        for start in range(0, max(count, 1), groups_per_part):
            yield path, range(start, min(start + groups_per_part, count))


def read_config_rows(
    release: Release,
    config: str,
    images: ImageStore | None = None,
    parts: Iterable[RowGroups] | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield a config's rows with image digests; a store makes it read the images."""
    table = find_table(release, config)
    released, pictures = make_released_schema(table), table.images

    def choose_columns(schema: pa.Schema) -> list[str] | None:
        stored = make_wide_table(schema) if is_wide(table, schema.names) else table
        check_released(path, schema, stored, closed=True)
        return None if images else non_image_columns(schema)

    def get_digest(image: Mapping[str, Any]) -> str:
        if images:
            return images.put(read_embedded(image, name))
        stem = (image["path"] or "").partition(".")[0]
        return stem if DIGEST_PATTERN.fullmatch(stem) else ""

    ids: set[Any] = set()
    for path, groups in parts or ((path, None) for path in config_files(release, config)):
        rows: Iterator[Mapping[str, Any]] = read_rows(path, choose_columns, groups)
        if config == APPLICABILITY.name:
            rows = chain.from_iterable(
                lengthen_rows([row]) if is_wide(APPLICABILITY, row) else [row] for row in rows
            )
        for row in rows:
            if config in SAMPLE_CONFIGS:
                check_ids(path, [row["id"]], ids)
            row = {**dict.fromkeys(released.names), **row}
            name = next(iter(row.values()))
            embedded = [image for column in pictures for image in _to_list(row[column])]
            if None in embedded or any(None in (row.get(column) or []) for column in STRUCTS):
                raise ReleaseError(
                    f"{str(path)!r}: row {name!r} holds null where an image, or what is told of "
                    "one, is expected: download the release again"
                )
            with catch_read_errors(path, "download the release again"):
                digests = {column: _map_images(row[column], get_digest) for column in pictures}
            yield {**row, **digests}


def find_table(release: Release, config: str) -> Table:
    if config not in CONFIGS:
        raise ReleaseError(unknown("config", config, CONFIGS, repr(str(release.path))))
    return get_table(config, release.manifest.columns)


def read_rows(
    path: Path,
    columns: Callable[[pa.Schema], list[str] | None],
    groups: Sequence[int] | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file by row group, with columns chosen by its schema."""
    with (
        catch_read_errors(path),
        open_parquet(path, path.parents[1], _read_footer(path, *_stat_file(path))) as file,
    ):
        for batch in file.iterate_batches(columns(file.schema), groups):
            yield from batch.to_pylist()


@lru_cache(maxsize=1)
def _read_footer(path: Path, *file_state: int) -> pq.FileMetaData:
    """Read a file's footer, once for all of its parts."""
    del file_state
    return read_footer(path, path.parents[1])


def _stat_file(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_ino, status.st_mtime_ns


def _to_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]
