"""Read Parquet files from strangers, within memory limits.

A file of a kilobyte may stand for gigabytes: its footer says how many rows and bytes there are, and
one value that stands in each row is in memory once until it is known how large the rows are.
"""

from __future__ import annotations

import datetime
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from echo_hf._infra.regular_file import RefusedFileError, open_regular

MAX_FOOTER_BYTES = 1 << 26
MAX_ROWS = 50_000_000  # of a file
MAX_GROUP_BYTES = 1 << 30  # of a row group, uncompressed
MAX_VALUES = 1 << 24  # of a column in a row group: a row may hold a list of any length
MAX_ROW_BYTES = 1 << 28
# Rows say the same words again and again, and a file says them once.
MAX_EXPANSION, MIN_ROWS_BYTES = 1000, 1 << 28
BATCH_BYTES = 1 << 25
BATCH_ROWS = 1000
TAIL_BYTES, MAGIC = 8, b"PAR1"  # the length of the footer, and the mark
LFS_POINTER = b"version https://git-lfs"
DELTA_ENCODINGS = ("DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY")
FIRST_SECOND, LAST_SECOND = (
    int(end.replace(tzinfo=datetime.UTC).timestamp())
    for end in (datetime.datetime.min, datetime.datetime.max)
)


@dataclass(frozen=True)
class ParquetRows:
    """An open Parquet file whose footer fits the limits.

    Attributes:
        file: As Arrow reads it: texts as dictionaries.
        metadata: Its footer.
        max_bytes: What all its rows may have in memory.
    """

    file: pq.ParquetFile
    metadata: pq.FileMetaData
    max_bytes: int

    @property
    def schema(self) -> pa.Schema:
        """Its columns by name and type, without its metadata."""
        return read_schema(self.metadata)

    def iterate_batches(
        self,
        columns: Sequence[str] | None = None,
        groups: Sequence[int] | None = None,
        rows: int = BATCH_ROWS,
        *,
        check: bool = True,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows in batches that fit in memory.

        Where they are checked, texts are UTF-8, and times are such as Python has; anything else is
        an `ArrowException`.
        """
        rows, size = max(1, min(rows, BATCH_BYTES // max(_measure_widest(self.metadata), 1))), 0
        # One row group after the other: of a list or struct Arrow joins no two dictionaries.
        groups = range(self.metadata.num_row_groups) if groups is None else groups
        batches = (
            self.file.iter_batches(rows, [group], columns, use_threads=False) for group in groups
        )
        for batch in chain.from_iterable(batches):
            for part in _split_batch(batch):
                columns_read = [column.cast(_plain_type(column.type)) for column in part.columns]
                rows_read = pa.RecordBatch.from_arrays(columns_read, part.schema.names)
                rows_read.validate(full=check)
                for name, column in (
                    zip(part.schema.names, columns_read, strict=True) if check else ()
                ):
                    _check_times(name, column)
                size += rows_read.nbytes
                _check("it", size, self.max_bytes, "bytes of rows")
                yield rows_read


@contextmanager
def open_parquet(
    source: Path | BinaryIO, folder: Path | None = None, metadata: pq.FileMetaData | None = None
) -> Iterator[ParquetRows]:
    """Open a Parquet file, inside a folder if given; an open file object stays open."""
    with open_regular(source, folder) if isinstance(source, Path) else nullcontext(source) as file:
        metadata = metadata or _read_footer(file)
        texts = [leaf for leaf, is_text in _find_byte_leaves(metadata).items() if is_text]
        max_bytes = max(MIN_ROWS_BYTES, MAX_EXPANSION * file.seek(0, io.SEEK_END))
        with pq.ParquetFile(file, metadata=metadata, read_dictionary=texts) as parquet:
            yield ParquetRows(parquet, metadata, max_bytes)


def read_parquet(
    source: Path | BinaryIO, folder: Path | None = None, columns: Sequence[str] | None = None
) -> pa.Table:
    """Read a file, or those of the columns that it has."""
    with open_parquet(source, folder) as file:
        names = file.schema.names if columns is None else columns
        present = [name for name in names if name in file.schema.names]
        fields = [file.schema.field(name) for name in present]
        schema = pa.schema([field.with_type(_plain_type(field.type)) for field in fields])
        # Without a column Arrow gives no row, and without a list of columns all of them.
        batches = file.iterate_batches(present) if present else iter(())
        return pa.Table.from_batches((batch.cast(schema) for batch in batches), schema)


def read_schema(metadata: pq.FileMetaData) -> pa.Schema:
    """Return a file's columns by name and type, without its metadata."""
    return metadata.schema.to_arrow_schema().remove_metadata()


def read_footer(path: Path, folder: Path | None = None) -> pq.FileMetaData:
    """Read a file's footer, after its size was checked."""
    with open_regular(path, folder) as file:
        return _read_footer(file)


def _read_footer(file: BinaryIO) -> pq.FileMetaData:
    file.seek(0)
    if file.read(len(LFS_POINTER)) == LFS_POINTER:
        raise RefusedFileError(
            "pointer", "it is a pointer of Git LFS in place of the file: run `git lfs pull`"
        )
    size = file.seek(0, io.SEEK_END)
    file.seek(max(size - TAIL_BYTES, 0))
    tail = file.read(TAIL_BYTES)
    if tail[4:] == MAGIC:  # else Arrow says that it is no such file
        _check("a footer", int.from_bytes(tail[:4], "little"), MAX_FOOTER_BYTES, "bytes")
    file.seek(0)
    metadata = pq.read_metadata(file)
    _check("it", metadata.num_rows, MAX_ROWS, "rows")
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        chunks = [group.column(number_in_group) for number_in_group in range(group.num_columns)]
        size = sum(chunk.total_uncompressed_size for chunk in chunks)
        _check(f"row group {number}", max(size, group.total_byte_size), MAX_GROUP_BYTES, "bytes")
        _check(f"row group {number}", group.num_rows, metadata.num_rows, "rows")
        for chunk in chunks:
            place = f"column {chunk.path_in_schema!r} of row group {number}"
            _check(place, chunk.num_values, MAX_VALUES, "values")
    return metadata


def _check(place: str, count: int, limit: int, unit: str) -> None:
    if not 0 <= count <= limit:
        message = f"{place} has {count:,} {unit}, expected at most {limit:,}"
        raise RefusedFileError("too_large", message)


def _find_byte_leaves(metadata: pq.FileMetaData) -> dict[str, bool]:
    """Return the leaves that hold bytes, and which of them Arrow can read as dictionaries."""
    leaves: dict[str, bool] = {}
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for position in range(group.num_columns):
            chunk = group.column(position)
            if chunk.physical_type == "BYTE_ARRAY":
                is_plain = not set(DELTA_ENCODINGS).intersection(chunk.encodings)
                name = chunk.path_in_schema
                leaves[name] = leaves.get(name, True) and is_plain
    return leaves


def _measure_widest(metadata: pq.FileMetaData) -> int:
    """Return the most bytes of a value that Arrow reads without a dictionary."""
    deltas = {leaf for leaf, is_text in _find_byte_leaves(metadata).items() if not is_text}
    fixed = [metadata.schema.column(position) for position in range(metadata.num_columns)]
    widest = max((column.length or 0 for column in fixed), default=0)
    for number in range(metadata.num_row_groups if deltas else 0):
        group = metadata.row_group(number)
        for chunk in map(group.column, range(group.num_columns)):
            if chunk.path_in_schema in deltas:  # a value may repeat all before it
                widest = max(widest, chunk.total_uncompressed_size)
    return widest


def _split_batch(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    size = sum(map(_count_bytes, batch.columns))
    if size > BATCH_BYTES and batch.num_rows > 1:
        half = batch.num_rows // 2
        yield from _split_batch(batch.slice(0, half))
        yield from _split_batch(batch.slice(half))
    else:
        _check("a row", size, MAX_ROW_BYTES, "bytes")
        yield batch


def _count_bytes(values: pa.Array) -> int:
    """Count the bytes of values, each repetition counted."""
    arrow_type = values.type
    if pa.types.is_dictionary(arrow_type):
        lengths = pc.binary_length(values.dictionary)
        return int(pc.sum(lengths.take(values.indices)).as_py() or 0)
    if pa.types.is_struct(arrow_type):
        return sum(map(_count_bytes, values.flatten()))
    if _is_list(arrow_type):
        return _count_bytes(values.flatten()) + 4 * len(values)
    if pa.types.is_map(arrow_type):
        return _count_bytes(values.keys) + _count_bytes(values.items)
    return int(values.nbytes)


def _is_list(arrow_type: pa.DataType) -> bool:
    return any(
        is_type(arrow_type)
        for is_type in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    )


def _plain_type(arrow_type: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(arrow_type):
        return arrow_type.value_type
    if pa.types.is_struct(arrow_type):
        return pa.struct([field.with_type(_plain_type(field.type)) for field in arrow_type])
    if pa.types.is_map(arrow_type):
        return pa.map_(_plain_type(arrow_type.key_type), _plain_type(arrow_type.item_type))
    if pa.types.is_large_list(arrow_type):
        return pa.large_list(arrow_type.value_field.with_type(_plain_type(arrow_type.value_type)))
    if pa.types.is_list(arrow_type):
        return pa.list_(arrow_type.value_field.with_type(_plain_type(arrow_type.value_type)))
    return arrow_type


def _check_times(name: str, values: pa.Array) -> None:
    arrow_type = values.type
    if pa.types.is_struct(arrow_type):
        for inner in values.flatten():
            _check_times(name, inner)
    elif _is_list(arrow_type):
        _check_times(name, values.flatten())
    elif pa.types.is_timestamp(arrow_type):
        bounds = pc.min_max(values.cast(pa.timestamp(arrow_type.unit)).view(pa.int64())).as_py()
        per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[arrow_type.unit]
        for moment in filter(None, bounds.values()):
            if not FIRST_SECOND <= moment // per_second <= LAST_SECOND:
                raise pa.ArrowInvalid(f"column {name!r} holds a time that no calendar has")
