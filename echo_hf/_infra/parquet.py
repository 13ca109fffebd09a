"""Read Parquet files that others may have written, in the memory that a limit allows.

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

MOST_FOOTER_BYTES = 1 << 26
MOST_ROWS = 50_000_000  # of a file
MOST_GROUP_BYTES = 1 << 30  # of a row group, uncompressed
MOST_VALUES = 1 << 24  # of a column in a row group: a row may hold a list of any length
MOST_ROW_BYTES = 1 << 28
# Rows say the same words again and again, and a file says them once.
MOST_TIMES, LEAST_BYTES = 1000, 1 << 28
AT_ONCE_BYTES = 1 << 25
AT_ONCE_ROWS = 1000
TAIL_BYTES, MARK = 8, b"PAR1"  # the length of the footer, and the mark
POINTER = b"version https://git-lfs"
DELTAS = ("DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY")
FIRST, LAST = (
    int(end.replace(tzinfo=datetime.UTC).timestamp())
    for end in (datetime.datetime.min, datetime.datetime.max)
)


@dataclass(frozen=True)
class ParquetRows:
    """An opened file, whose footer says that it fits the limits.

    Attributes:
        file: As Arrow reads it: texts as dictionaries.
        metadata: Its footer.
        most_bytes: What all its rows may have in memory.
    """

    file: pq.ParquetFile
    metadata: pq.FileMetaData
    most_bytes: int

    @property
    def schema(self) -> pa.Schema:
        """Its columns by name and type, without what the file says beside them."""
        return schema_of(self.metadata)

    def batches(
        self,
        columns: Sequence[str] | None = None,
        groups: Sequence[int] | None = None,
        rows: int = AT_ONCE_ROWS,
        *,
        check: bool = True,
    ) -> Iterator[pa.RecordBatch]:
        """The rows, so few at a time that they are in memory together.

        Where they are checked, texts are UTF-8, and times are such as Python has; anything else is
        an `ArrowException`.
        """
        rows, size = max(1, min(rows, AT_ONCE_BYTES // max(_widest(self.metadata), 1))), 0
        # One row group after the other: of a list or struct Arrow joins no two dictionaries.
        groups = range(self.metadata.num_row_groups) if groups is None else groups
        read = (
            self.file.iter_batches(rows, [group], columns, use_threads=False) for group in groups
        )
        for batch in chain.from_iterable(read):
            for part in _parts(batch):
                plain = [column.cast(_plain(column.type)) for column in part.columns]
                rows_read = pa.RecordBatch.from_arrays(plain, part.schema.names)
                rows_read.validate(full=check)
                for name, column in zip(part.schema.names, plain, strict=True) if check else ():
                    _check_times(name, column)
                size += rows_read.nbytes
                _check("it", size, self.most_bytes, "bytes of rows")
                yield rows_read


@contextmanager
def opened_parquet(
    source: Path | BinaryIO, folder: Path | None = None, metadata: pq.FileMetaData | None = None
) -> Iterator[ParquetRows]:
    """Opens a file, inside a folder where one is named; one that is open already is not closed."""
    with open_regular(source, folder) if isinstance(source, Path) else nullcontext(source) as file:
        metadata = metadata or _footer(file)
        texts = [leaf for leaf, is_text in _byte_leaves(metadata).items() if is_text]
        most = max(LEAST_BYTES, MOST_TIMES * file.seek(0, io.SEEK_END))
        with pq.ParquetFile(file, metadata=metadata, read_dictionary=texts) as opened:
            yield ParquetRows(opened, metadata, most)


def read_parquet(
    source: Path | BinaryIO, folder: Path | None = None, columns: Sequence[str] | None = None
) -> pa.Table:
    """All rows of a file, or some columns of them, those that it has."""
    with opened_parquet(source, folder) as file:
        names = file.schema.names if columns is None else columns
        kept = [name for name in names if name in file.schema.names]
        fields = [file.schema.field(name) for name in kept]
        schema = pa.schema([field.with_type(_plain(field.type)) for field in fields])
        # Without a column Arrow gives no row, and without a list of columns all of them.
        batches = file.batches(kept) if kept else iter(())
        return pa.Table.from_batches((batch.cast(schema) for batch in batches), schema)


def schema_of(metadata: pq.FileMetaData) -> pa.Schema:
    """The columns of a file by name and type, without what it says beside them."""
    return metadata.schema.to_arrow_schema().remove_metadata()


def read_footer(path: Path, folder: Path | None = None) -> pq.FileMetaData:
    """What stands at the end of a file, once it is sure that it fits the limits."""
    with open_regular(path, folder) as file:
        return _footer(file)


def _footer(file: BinaryIO) -> pq.FileMetaData:
    file.seek(0)
    if file.read(len(POINTER)) == POINTER:
        raise RefusedFileError(
            "pointer", "it is a pointer of Git LFS in place of the file: run `git lfs pull`"
        )
    size = file.seek(0, io.SEEK_END)
    file.seek(max(size - TAIL_BYTES, 0))
    tail = file.read(TAIL_BYTES)
    if tail[4:] == MARK:  # else Arrow says that it is no such file
        _check("a footer", int.from_bytes(tail[:4], "little"), MOST_FOOTER_BYTES, "bytes")
    file.seek(0)
    metadata = pq.read_metadata(file)
    _check("it", metadata.num_rows, MOST_ROWS, "rows")
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        chunks = [group.column(at) for at in range(group.num_columns)]
        size = sum(chunk.total_uncompressed_size for chunk in chunks)
        _check(f"row group {number}", max(size, group.total_byte_size), MOST_GROUP_BYTES, "bytes")
        _check(f"row group {number}", group.num_rows, metadata.num_rows, "rows")
        for chunk in chunks:
            said = f"column {chunk.path_in_schema!r} of row group {number}"
            _check(said, chunk.num_values, MOST_VALUES, "values")
    return metadata


def _check(what: str, count: int, most: int, unit: str) -> None:
    if not 0 <= count <= most:
        said = f"{what} has {count:,} {unit}, expected at most {most:,}"
        raise RefusedFileError("too_large", said)


def _byte_leaves(metadata: pq.FileMetaData) -> dict[str, bool]:
    """The leaves that hold bytes, and which of them Arrow can read as dictionaries."""
    leaves: dict[str, bool] = {}
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for at in range(group.num_columns):
            chunk = group.column(at)
            if chunk.physical_type == "BYTE_ARRAY":
                is_plain = not set(DELTAS).intersection(chunk.encodings)
                name = chunk.path_in_schema
                leaves[name] = leaves.get(name, True) and is_plain
    return leaves


def _widest(metadata: pq.FileMetaData) -> int:
    """The most bytes of a value of which Arrow makes no dictionary."""
    deltas = {leaf for leaf, is_text in _byte_leaves(metadata).items() if not is_text}
    fixed = [metadata.schema.column(at) for at in range(metadata.num_columns)]
    widest = max((column.length or 0 for column in fixed), default=0)
    for number in range(metadata.num_row_groups if deltas else 0):
        group = metadata.row_group(number)
        for chunk in map(group.column, range(group.num_columns)):
            if chunk.path_in_schema in deltas:  # a value may repeat all before it
                widest = max(widest, chunk.total_uncompressed_size)
    return widest


def _parts(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    size = sum(map(_size, batch.columns))
    if size > AT_ONCE_BYTES and batch.num_rows > 1:
        half = batch.num_rows // 2
        yield from _parts(batch.slice(0, half))
        yield from _parts(batch.slice(half))
    else:
        _check("a row", size, MOST_ROW_BYTES, "bytes")
        yield batch


def _size(values: pa.Array) -> int:
    """How many bytes values have where each stands for itself."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        lengths = pc.binary_length(values.dictionary)
        return int(pc.sum(lengths.take(values.indices)).as_py() or 0)
    if pa.types.is_struct(kind):
        return sum(map(_size, values.flatten()))
    if _is_list(kind):
        return _size(values.flatten()) + 4 * len(values)
    if pa.types.is_map(kind):
        return _size(values.keys) + _size(values.items)
    return int(values.nbytes)


def _is_list(kind: pa.DataType) -> bool:
    return any(
        is_it(kind)
        for is_it in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    )


def _plain(kind: pa.DataType) -> pa.DataType:
    """A type without the dictionaries in it."""
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_plain(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_plain(kind.value_type)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_plain(kind.value_type)))
    return kind


def _check_times(name: str, values: pa.Array) -> None:
    kind = values.type
    if pa.types.is_struct(kind):
        for inner in values.flatten():
            _check_times(name, inner)
    elif _is_list(kind):
        _check_times(name, values.flatten())
    elif pa.types.is_timestamp(kind):
        ends = pc.min_max(values.cast(pa.timestamp(kind.unit)).view(pa.int64())).as_py()
        units = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
        for moment in filter(None, ends.values()):
            if not FIRST <= moment // units <= LAST:
                raise pa.ArrowInvalid(f"column {name!r} holds a time that no calendar has")
