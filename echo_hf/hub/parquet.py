"""The Parquet files of a release: types that every datasets reads, and shards with the images."""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from datasets import Dataset
from PIL import Image, UnidentifiedImageError

from echo_hf.errors import ImageError
from echo_hf.hub.manifest import SPLIT, canonical
from echo_hf.images.store import FORMATS, ImageStore
from echo_hf.tables import Table


def released_schema(table: Table) -> pa.Schema:
    """Arrow types of a table's released rows, with the features that `load_dataset` reads back."""
    released = table.released_features
    features = {name: _classic(feature) for name, feature in released.to_dict().items()}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    return released.arrow_schema.with_metadata(metadata)


def writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    return pq.ParquetWriter(
        path,
        schema,
        # Pages end where the content says so: a revision with a few new rows uploads little more.
        use_content_defined_chunking=True,
        # The viewer reads the pages of the rows that it shows, and not the whole row group.
        write_page_index=True,
        **_column_options(schema),
    )


def leaves(schema: pa.Schema) -> dict[str, pa.DataType]:
    """The leaves of a schema's columns, by the paths under which Parquet reads them alone."""
    return dict(leaf for field in schema for leaf in _leaves(field.name, field.type))


def without_images(schema: pa.Schema) -> list[str]:
    """The leaves of a release's rows but for the bytes of their images."""
    return [path for path, kind in leaves(schema).items() if not pa.types.is_binary(kind)]


def _column_options(schema: pa.Schema) -> dict[str, Any]:
    # An image is compressed already and no two are equal: a dictionary of them is a second copy.
    plain = set(without_images(schema))
    return {
        "compression": {leaf: "zstd" if leaf in plain else "none" for leaf in leaves(schema)},
        "use_dictionary": sorted(plain),
    }


def _leaves(path: str, kind: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    if pa.types.is_struct(kind):
        for field in kind:
            yield from _leaves(f"{path}.{field.name}", field.type)
    elif pa.types.is_list(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    else:
        yield path, kind


def _classic(feature: Any) -> Any:
    if not isinstance(feature, dict):
        return feature
    if feature.get("_type") == "List":
        return [_classic(feature["feature"])]
    return {name: _classic(inner) for name, inner in feature.items()}


SHARD_BYTES = 500_000_000
# The Hub's viewer refuses to read more than 300 MB at once; this is a row group's size at most,
# but for the last row in it.
BATCH_BYTES = 32_000_000
BATCH_ROWS = 100
BATCH_ROWS_WITHOUT_IMAGES = 1000
EXTENSIONS = {
    "AVIF": "avif",
    "BMP": "bmp",
    "GIF": "gif",
    "JPEG": "jpg",
    "MPO": "jpg",
    "PNG": "png",
    "TIFF": "tif",
    "WEBP": "webp",
}


@dataclass
class Batch:
    """Rows that are held in memory together, and become one row group."""

    table: Table
    rows: list[dict[str, Any]] = field(default_factory=list)
    digests: list[bytes] = field(default_factory=list)
    images: int = 0
    dehydrated: int = 0
    size: int = 0

    def add(self, row: dict[str, Any], store: ImageStore) -> None:
        shown, text = embedded(row, store, self.table), canonical(row)
        sizes = [len(image["bytes"]) for image in _images(shown, self.table)]
        self.rows.append(shown)
        self.digests.append(hashlib.sha256(text).digest())
        self.images += len(sizes)
        self.dehydrated += bool(row.get("dehydrated"))
        self.size += len(text) + sum(sizes)

    def is_full(self, limit: int) -> bool:
        return len(self.rows) >= _most_rows(self.table) or self.size >= limit


@dataclass
class Written:
    paths: list[Path] = field(default_factory=list)
    digests: list[bytes] = field(default_factory=list)
    images: int = 0
    dehydrated: int = 0
    loaded_bytes: int = 0


def write_shards(
    folder: Path, dataset: Dataset, table: Table, store: ImageStore, shard_bytes: int
) -> Written:
    """Writes a config as `test-00000-of-0000N.parquet`, holding one batch in memory at a time."""
    written, schema = Written(), released_schema(table)
    batches = _batches(dataset, table, store, min(BATCH_BYTES, shard_bytes))
    numbered = _numbered(batches, shard_bytes)
    for number, shard in itertools.groupby(numbered, key=lambda pair: pair[0]):
        with _opened(folder, number, schema, written) as file:
            for _, batch in shard:
                _write(file, batch, schema, written)
    if not written.paths:
        # A row group of no rows would be a batch size of 0 to readers, which they refuse.
        _opened(folder, 0, schema, written).close()
    written.paths = [
        path.rename(folder / f"{SPLIT}-{number:05d}-of-{len(written.paths):05d}.parquet")
        for number, path in enumerate(written.paths)
    ]
    return written


def embedded(row: dict[str, Any], store: ImageStore, table: Table) -> dict[str, Any]:
    shown = dict(row)
    for column in table.images:
        value = row[column]
        if isinstance(value, list):
            shown[column] = [_image(digest, store) for digest in value]
        else:
            shown[column] = _image(value, store)
    return shown


def _batches(dataset: Dataset, table: Table, store: ImageStore, limit: int) -> Iterator[Batch]:
    batch = Batch(table)
    for row in _rows(dataset, table):
        batch.add(row, store)
        if batch.is_full(limit):
            yield batch
            batch = Batch(table)
    if batch.rows:
        yield batch


def _rows(dataset: Dataset, table: Table) -> Iterator[dict[str, Any]]:
    columns = dataset.select_columns(list(table.columns)).with_format("arrow")
    for rows in columns.iter(batch_size=_most_rows(table)):
        yield from rows.to_pylist()


def _most_rows(table: Table) -> int:
    return BATCH_ROWS if table.images else BATCH_ROWS_WITHOUT_IMAGES


def _numbered(batches: Iterator[Batch], shard_bytes: int) -> Iterator[tuple[int, Batch]]:
    number = filled = 0
    for batch in batches:
        yield number, batch
        filled += batch.size
        if filled >= shard_bytes:
            number, filled = number + 1, 0


def _opened(folder: Path, number: int, schema: pa.Schema, written: Written) -> pq.ParquetWriter:
    written.paths.append(folder / f"{SPLIT}-{number:05d}.parquet")
    return writer(written.paths[-1], schema)


def _write(file: pq.ParquetWriter, batch: Batch, schema: pa.Schema, written: Written) -> None:
    table = pa.Table.from_pylist(batch.rows, schema=schema)
    file.write_table(table)
    written.digests.extend(batch.digests)
    written.images += batch.images
    written.dehydrated += batch.dehydrated
    written.loaded_bytes += table.nbytes


def _image(digest: str | None, store: ImageStore) -> dict[str, Any] | None:
    if digest is None:
        return None
    data = store.open(digest)
    return {"bytes": data, "path": f"{digest}.{_extension(digest, data)}"}


def _extension(digest: str, data: bytes) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it was decoded, and judged, when it was stored
            with Image.open(io.BytesIO(data), formats=FORMATS) as image:
                return EXTENSIONS[str(image.format)]
    except UnidentifiedImageError:
        raise ImageError(
            f"image {digest!r} has no known format, expected one of {', '.join(FORMATS)}: "
            "update Pillow, or take its sample out"
        ) from None


def _images(shown: dict[str, Any], table: Table) -> Iterator[dict[str, Any]]:
    for column in table.images:
        value = shown[column]
        yield from filter(None, value if isinstance(value, list) else [value])
