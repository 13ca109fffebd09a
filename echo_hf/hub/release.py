"""A release on disk: write it whole, read it back, check it, take it apart again."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Dataset, Features
from datasets.table import MemoryMappedTable
from datasets.table import Table as DatasetsTable

from echo_hf._infra.atomic import complete, few_collections, replaced_whole, stored_rows
from echo_hf._infra.parquet import opened_parquet, read_footer, schema_of
from echo_hf._infra.summary import Summarized
from echo_hf.config.runs import release_in
from echo_hf.errors import ImageError, ReleaseError, unknown
from echo_hf.hub.card import eval_file, render_card, searches_in
from echo_hf.hub.facts import CONFIGS, SAMPLE_CONFIGS, ReleaseFacts
from echo_hf.hub.manifest import (
    BENCHMARK,
    CARD,
    HYDRATION,
    MANIFEST,
    ROWS_AT_ONCE,
    SPLIT,
    STATS,
    ConfigEntry,
    Manifest,
    canonical,
    content_digest,
    file_entry,
    make_manifest,
    make_stats,
    read_manifest,
    read_stats,
    readable,
    toolkit_version,
)
from echo_hf.hub.run_tables import models_of
from echo_hf.images.embedded import check_embedded, embedded_bytes
from echo_hf.images.loader import format_of
from echo_hf.images.store import DIGEST, ImageStore
from echo_hf.pipeline.runner import LEAST_ROWS, forked
from echo_hf.pipeline.stage import table_bytes
from echo_hf.pipeline.stage_runner import check_columns
from echo_hf.tables import LATER, SAMPLES, Table, arrow_batches, rows_at

NAMES = frozenset({CARD, MANIFEST, STATS, BENCHMARK, HYDRATION, *CONFIGS})


@dataclass(frozen=True, repr=False)
class Release(Summarized):
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


IN_MEMORY_BYTES = 32_000_000  # of files: more is read through a cache on the disk


def files_of(release: Release, config: str) -> list[Path]:
    """The Parquet files of a config, none where the release does not have it."""
    entry = release.manifest.configs.get(config)
    return [release.path / file.path for file in entry.files] if entry else []


class ReleasedDatasets(Mapping[str, Dataset]):
    """The datasets of a release by config, each read when it is first asked for."""

    def __init__(self, release: Release) -> None:
        self._release = release
        self._load = cache(self._read)

    def __getitem__(self, config: str) -> Dataset:
        return self._load(config)

    def __iter__(self) -> Iterator[str]:
        return iter(self._release.manifest.configs)

    def __len__(self) -> int:
        return len(self._release.manifest.configs)

    def _read(self, config: str) -> Dataset:
        entry, file = self._release.manifest.configs[config], None
        schema = _features_of(self._release, config).arrow_schema
        if max(sum(one.bytes for one in entry.files), entry.loaded_bytes) > IN_MEMORY_BYTES:
            folder = Path(self._release.cache or datasets.config.HF_DATASETS_CACHE)
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / f"release-{_state_of(self._release, config)}.arrow"
        if file is not None and file.exists():
            rows: DatasetsTable = MemoryMappedTable.from_file(str(file))
        else:
            rows = stored_rows(_tables(self._release, config), schema, file)
        return Dataset(rows, split=SPLIT, fingerprint=entry.digest[-16:])


def _features_of(release: Release, config: str) -> Features:
    """The features of a config's rows: ours where a column is ours, plain values elsewhere.

    What a file says itself is not believed: some features open a path when a row is looked at.
    """
    ours, path = _table_of(release, config), files_of(release, config)[0]
    with readable(path):
        schema = schema_of(read_footer(path, release.path))
    check_released(path, schema, ours)
    theirs = pa.schema([field for field in schema if field.name not in ours.columns])
    with readable(path):
        features = Features.from_arrow_schema(theirs)
    known = {**features, **ours.released_features}
    return Features({name: known[name] for name in schema.names})


def check_released(
    path: Path,
    schema: pa.Schema,
    table: Table,
    *,
    closed: bool = False,
    needed: Collection[str] | None = None,
) -> None:
    """Refuses a file that lacks columns of a table, all or those needed; if closed, has others."""
    ours = released_schema(table)
    for name in sorted({*ours.names, *(schema.names if closed else ())}):
        types = [one.field(name).type if name in one.names else None for one in (schema, ours)]
        may_lack = name in LATER or (needed is not None and name not in needed)
        if types[0] != types[1] and not (types[0] is None and may_lack):
            found, expected = (str(kind or "no such column")[:80] for kind in types)
            raise ReleaseError(
                f"{str(path)!r}: column {name!r} is {found!r}, expected {expected!r}: it was "
                "written by another version of echo-hf; use that one, or build the release again"
            )


def _state_of(release: Release, config: str) -> str:
    """What tells the rows of a config from others: which files hold them, as they lie there now."""
    listed = [(str(path), *_written(path)) for path in files_of(release, config)]
    text = json.dumps([toolkit_version(), release.manifest.configs[config].digest, listed])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _tables(release: Release, config: str) -> Iterator[pa.Table]:
    """The rows of a config, a few at a time; one id stands in one row."""
    ours, before = _table_of(release, config), 0
    ids: set[Any] = set()
    for path in files_of(release, config):
        with readable(path), opened_parquet(path, release.path) as file:
            check_released(path, file.schema, ours)
            for batch in file.batches():
                check_embedded(batch, before)
                before += batch.num_rows
                if ours is SAMPLES:
                    check_ids(path, batch["id"].to_pylist(), ids)
                yield pa.Table.from_batches([batch])


def check_ids(path: Path, names: Iterable[Any], known: set[Any]) -> None:
    """Refuses two samples of one id, and notes ids as known."""
    for name in names:
        if name is None or name in known:
            said = "no id" if name is None else f"id {str(name)[:80]!r}, as another one has"
            raise ReleaseError(f"{str(path)!r}: a sample has {said}: build the release again")
        known.add(name)


def read_release(path: Path, cache: Path | None = None) -> Release:
    """Opens a release, without reading its rows."""
    path = complete(release_in(path.resolve()))
    return Release(path, read_manifest(path), cache)


def is_complete(path: Path) -> bool:
    """Whether each file that the manifest lists is there with its size; contents are not read."""
    folder = complete(release_in(path.resolve()))
    try:
        listed = read_manifest(folder).files
        return all((folder / entry.path).stat().st_size == entry.bytes for entry in listed)
    except (ReleaseError, OSError):
        return False


def verify_release(path: Path, config: str | None = None) -> None:
    """Compares every file with the manifest; hidden files, which tools leave, are not looked at."""
    folder = complete(release_in(path.resolve()))
    manifest = read_manifest(folder)
    place = f"release {str(folder)!r}"
    if config is not None and config not in manifest.configs:
        raise ReleaseError(unknown("config", config, manifest.configs, place))
    listed = manifest.files
    if config is not None:
        listed = [*manifest.configs[config].files, *filter(None, [manifest.card])]
    for entry in listed:
        where, mend = f"{place}: {entry.path!r}", "write or download the release again"
        if not (folder / entry.path).is_file():
            raise ReleaseError(f"{where} is missing: {mend}")
        with readable(folder / entry.path):
            found = file_entry(folder, entry.path)
        for name in ("bytes", "sha256"):
            if getattr(found, name) != getattr(entry, name):
                raise ReleaseError(
                    f"{where} has changed: {name} is {getattr(found, name)!r}, the manifest says "
                    f"{getattr(entry, name)!r}: {mend}"
                )
    known = {MANIFEST, HYDRATION, *(entry.path for entry in listed)}
    for file in sorted(folder.rglob("*")) if config is None else ():
        name = file.relative_to(folder).as_posix()
        if name not in known and not file.is_dir() and not re.search(r"(^|/)\.", name):
            raise ReleaseError(
                f"{place} holds {name!r}, which its manifest does not list: move it elsewhere"
            )


SHARD_BYTES = 500_000_000
# The Hub's viewer refuses to read more than 300 MB at once; this is a row group's size at most,
# but for the last row in it.
BATCH_BYTES = 32_000_000
BATCH_ROWS = 100
BATCH_ROWS_WITHOUT_IMAGES = 1000
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
    """Writes a release; one that is there already stays until the new one is complete."""
    if not configs:
        raise ReleaseError(f"a release needs a config, expected some of {', '.join(CONFIGS)}")
    for name, dataset in configs.items():
        if name not in CONFIGS:
            raise ReleaseError(unknown("config of a release", name, CONFIGS))
        check_columns(CONFIGS[name].table, dataset, f"release of {name}")
    held = [name for name in CONFIGS if name in configs]
    with replaced_whole(folder.resolve(), NAMES) as partial:
        entries = {
            name: _write_config(partial, name, configs[name], images, shard_bytes, processes)
            for name in held
        }
        samples = [configs[name] for name in SAMPLE_CONFIGS if name in configs]
        manifest = make_manifest(facts, entries, samples)
        texts = {
            "stats": (STATS, make_stats(manifest, facts).model_dump_json(indent=2) + "\n"),
            "benchmark": (BENCHMARK, eval_file(manifest)),
            "card": (CARD, render_card(facts, manifest, models_of(configs.get("results")))),
        }
        beside = {}
        for key, (name, text) in texts.items():
            if text is not None:
                (partial / name).write_text(text, "utf-8", newline="\n")
                beside[key] = file_entry(partial, name)
        sealed = manifest.model_copy(update=beside).text()
        (partial / MANIFEST).write_text(sealed, "utf-8", newline="\n")
    return read_release(folder)


def _write_config(
    folder: Path, name: str, dataset: Dataset, store: ImageStore, shard_bytes: int, processes: int
) -> ConfigEntry:
    """Writes a config as `test-00000-of-0000N.parquet`, holding one row group in memory."""
    (folder / name).mkdir()
    schema = released_schema(CONFIGS[name].table)
    paths: list[Path] = []
    digests: list[bytes] = []
    images = dehydrated = loaded_bytes = 0
    filled, ids = shard_bytes, set[Any]()
    with ExitStack() as opened, few_collections():
        for group in _groups(name, dataset, store, min(BATCH_BYTES, shard_bytes), processes):
            if filled >= shard_bytes:
                opened.close()
                paths.append(folder / name / f"{SPLIT}-{len(paths):05d}.parquet")
                file, filled = opened.enter_context(_writer(paths[-1], schema)), 0
            if CONFIGS[name].table is SAMPLES:
                check_ids(paths[-1], group.rows["id"].to_pylist(), ids)
            file.write_table(group.rows)
            filled += group.size
            digests.extend(group.digests)
            images += group.images
            if "dehydrated" in schema.names:
                dehydrated += group.rows["dehydrated"].to_pylist().count(True)
            loaded_bytes += group.rows.nbytes
    if not paths:
        # A row group of no rows would be a batch size of 0 to readers, which they refuse.
        paths.append(folder / name / f"{SPLIT}-00000.parquet")
        _writer(paths[0], schema).close()
    named = [path.with_stem(f"{path.stem}-of-{len(paths):05d}") for path in paths]
    for path, final in zip(paths, named, strict=True):
        path.rename(final)
    return ConfigEntry(
        rows=len(digests),
        pictures=images,
        loaded_bytes=loaded_bytes,
        digest=content_digest(digests),
        dehydrated=dehydrated,
        files=tuple(file_entry(folder, f"{name}/{path.name}") for path in named),
    )


class _Group(NamedTuple):
    """Rows with their images embedded, and the digests and size of what they hold."""

    rows: pa.Table
    digests: list[bytes]
    images: int
    size: int


def _groups(
    name: str, dataset: Dataset, store: ImageStore, limit: int, processes: int
) -> Iterator[_Group]:
    table, schema = CONFIGS[name].table, released_schema(CONFIGS[name].table)
    most = BATCH_ROWS if table.images else BATCH_ROWS_WITHOUT_IMAGES

    def digested(start: int) -> tuple[pa.Buffer, list[bytes], list[int]]:
        at = slice(start, start + ROWS_AT_ONCE)
        rows = rows_at(dataset, at, list(table.columns))
        texts = [canonical(row) for row in rows.to_pylist()]
        digests = [hashlib.sha256(text).digest() for text in texts]
        return table_bytes(rows), digests, list(map(len, texts))

    if len(dataset) < LEAST_ROWS:
        processes = 1
    starts = range(0, len(dataset), ROWS_AT_ONCE)
    pieces: list[pa.Table] = []
    shown: dict[str, list[Any]] = {column: [] for column in table.images}
    found: list[bytes] = []
    images = size = 0
    for start, made in forked(lambda: digested, starts, processes, f"release of {name!r}"):
        chunk, digests, sizes = pa.ipc.open_stream(made[0]).read_all(), *made[1:]
        named = {column: chunk[column].to_pylist() for column in table.images}
        first = 0
        for at, digest in enumerate(digests):
            found.append(digest)
            size += sizes[at]
            for column, values in named.items():
                some = _each_image(values[at], lambda one: _embedded(one, store))
                held = [len(one["bytes"]) for one in _listed(some) if one]
                images, size = images + len(held), size + sum(held)
                shown[column].append(some)
            is_last = start + at + 1 == len(dataset)
            if len(found) >= most or size >= limit or is_last:
                pieces.append(chunk.slice(first, at + 1 - first))
                yield _Group(_joined(pieces, shown, schema), found, images, size)
                pieces, shown, found = [], {column: [] for column in shown}, []
                first, images, size = at + 1, 0, 0
        pieces.append(chunk.slice(first))


def _joined(
    pieces: Iterable[pa.Table], shown: Mapping[str, list[Any]], schema: pa.Schema
) -> pa.Table:
    # Without the masks of columns that hold no null: they would count as bytes.
    rows = pa.ipc.open_stream(table_bytes(pa.concat_tables(pieces))).read_all()
    columns = [
        pa.array(shown[field.name], field.type) if field.name in shown else rows[field.name]
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _each_image(value: Any, change: Callable[[Any], Any]) -> Any:
    """A column's image, its list of images or null, each image changed."""
    if isinstance(value, list):
        return [None if one is None else change(one) for one in value]
    return None if value is None else change(value)


def _embedded(digest: str, store: ImageStore) -> dict[str, Any]:
    data = store.open(digest)
    kind = format_of(data)
    if kind is None:
        raise ImageError(f"image {digest!r} has no known format: take its sample out")
    return {"bytes": data, "path": f"{digest}.{EXTENSIONS.get(kind, kind.lower())}"}


def released_schema(table: Table) -> pa.Schema:
    """Arrow types of a table's released rows, with the features that `load_dataset` reads back."""

    def classic(feature: Any) -> Any:
        """A list as older versions of datasets read it, too."""
        if not isinstance(feature, dict):
            return feature
        if feature.get("_type") == "List":
            return [classic(feature["feature"])]
        return {name: classic(inner) for name, inner in feature.items()}

    released = table.released_features
    features = {name: classic(feature) for name, feature in released.to_dict().items()}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    return released.arrow_schema.with_metadata(metadata)


def _leaves(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """The leaves of a column, by the paths under which Parquet reads them alone."""
    if pa.types.is_struct(kind):
        for inner in kind:
            yield from _leaves(f"{path}.{inner.name}", inner.type)
    elif pa.types.is_list(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    else:
        yield path, kind


def without_images(schema: pa.Schema) -> list[str]:
    """The leaves of a release's rows but for the bytes of their images."""
    leaves = (leaf for column in schema for leaf in _leaves(column.name, column.type))
    return [path for path, kind in leaves if not pa.types.is_binary(kind)]


def _writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    # An image is compressed already and no two are equal: a dictionary of them is a second copy.
    small = without_images(schema)
    leaves = [path for column in schema for path, _ in _leaves(column.name, column.type)]
    return pq.ParquetWriter(
        path,
        schema,
        # Pages end where the content says so: a revision with a few new rows uploads little more.
        use_content_defined_chunking=True,
        # The viewer reads the pages of the rows that it shows, and not the whole row group.
        write_page_index=True,
        compression={leaf: "zstd" if leaf in small else "none" for leaf in leaves},
        use_dictionary=sorted(small),
    )


def released_facts(release: Release) -> ReleaseFacts:
    """What a release says of itself."""
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
            name: made.model_dump(exclude={"prompt"} if made.prompt is None else None)
            for name, made in origins.items()
        },
        rules_built=manifest.rules_built,
        measured=stats.measured,
        left_out=stats.left_out,
        failed=stats.failed,
        searches=searches_in(release.path / CARD) if manifest.card else {},
        **vars(manifest.statements),
    )


STRUCTS = ("community_feedback", "picture_sources")


def unpacked(release: Release, images: ImageStore) -> dict[str, Dataset]:
    """The rows of a release as a run has them, in files beside their images."""
    images.root.mkdir(parents=True, exist_ok=True)
    return {
        name: rows_on_disk(
            rows_of(release, name, images), _table_of(release, name), images.root / f"{name}.arrow"
        )
        for name in release.manifest.configs
    }


def rows_on_disk(rows: Iterable[Mapping[str, Any]], table: Table, file: Path) -> Dataset:
    """Rows of a table in a file, which are not in memory together."""
    left = iter(rows)
    some = iter(lambda: list(islice(left, ROWS_AT_ONCE)), [])
    return batches_on_disk((pa.Table.from_pylist(one, table.schema) for one in some), table, file)


def batches_on_disk(batches: Iterable[pa.Table], table: Table, file: Path) -> Dataset:
    """Batches of rows of a table in a file, each in memory alone."""
    rows = stored_rows(batches, table.features.arrow_schema, file)
    return Dataset(rows, fingerprint=file.stem)


def rows_in(
    dataset: Dataset, size: int = ROWS_AT_ONCE, columns: Sequence[str] | None = None
) -> Iterator[dict[str, Any]]:
    """The rows of a dataset, so many in memory at a time."""
    for batch in arrow_batches(dataset, size, columns):
        yield from batch.to_pylist()


Part = tuple[Path, Sequence[int] | None]  # row groups of a file, null for all


def parts_of(release: Release, config: str) -> Iterator[Part]:
    """About as many rows of a config as are in memory together, one part after the other."""
    for path in files_of(release, config):
        with readable(path):
            count = read_footer(path, release.path).num_row_groups
        some = ROWS_AT_ONCE // BATCH_ROWS
        # A file without rows is a part as well: its columns are looked at.
        for at in range(0, max(count, 1), some):
            yield path, range(at, min(at + some, count))


def rows_of(
    release: Release,
    config: str,
    images: ImageStore | None = None,
    parts: Iterable[Part] | None = None,
) -> Iterator[dict[str, Any]]:
    """The rows of a config, with digests for its images, which are read only for a store."""
    table = _table_of(release, config)
    ours, pictures = released_schema(table), table.images

    def columns(schema: pa.Schema) -> list[str] | None:
        check_released(path, schema, table, closed=True)
        return None if images else without_images(schema)

    def digest_of(image: Mapping[str, Any]) -> str:
        if images:
            return images.put(embedded_bytes(image, name))
        stem = (image["path"] or "").partition(".")[0]
        return stem if DIGEST.fullmatch(stem) else ""

    ids: set[Any] = set()
    for path, groups in parts or ((path, None) for path in files_of(release, config)):
        for row in read_rows(path, columns, groups):
            if table is SAMPLES:
                check_ids(path, [row["id"]], ids)
            row = {**dict.fromkeys(ours.names), **row}
            name = next(iter(row.values()))
            shown = [one for column in pictures for one in _listed(row[column])]
            if None in shown or any(None in (row.get(column) or []) for column in STRUCTS):
                raise ReleaseError(
                    f"{str(path)!r}: row {name!r} holds null where an image, or what is told of "
                    "one, is expected: download the release again"
                )
            with readable(path, "download the release again"):
                digests = {one: _each_image(row[one], digest_of) for one in pictures}
            yield {**row, **digests}


def _table_of(release: Release, config: str) -> Table:
    if config not in CONFIGS:
        raise ReleaseError(unknown("config", config, CONFIGS, repr(str(release.path))))
    return CONFIGS[config].table


def read_rows(
    path: Path,
    columns: Callable[[pa.Schema], list[str] | None],
    groups: Sequence[int] | None = None,
) -> Iterator[dict[str, Any]]:
    """The rows of a file, a row group at a time, of the leaves that are chosen by its schema."""
    with (
        readable(path),
        opened_parquet(path, path.parents[1], _footer(path, *_written(path))) as file,
    ):
        for batch in file.batches(columns(file.schema), groups):
            yield from batch.to_pylist()


@lru_cache(maxsize=1)
def _footer(path: Path, *written: int) -> pq.FileMetaData:
    """What stands at the end of a file, which grows with its row groups, once for its parts."""
    del written
    return read_footer(path, path.parents[1])


def _written(path: Path) -> tuple[int, int]:
    known = path.stat()
    return known.st_ino, known.st_mtime_ns


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]
