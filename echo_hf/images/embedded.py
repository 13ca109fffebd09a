"""Read image columns of strangers' tables: embedded bytes only, no path is followed.

`datasets` stores an image as `{"bytes": ..., "path": ...}`, and opens the path, or fetches the
address, where there are no bytes: a stranger's table would have this machine open its own files.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from echo_hf.errors import ImageError

if TYPE_CHECKING:
    import pyarrow as pa

EXPECTED = "expected its bytes: no path or address in a table is followed"


class NotEmbeddedError(ImageError):
    """An image that a table names, but does not hold."""


def read_embedded(image: Any, row: object) -> bytes:
    """Return an image's bytes, or raise with its row's name."""
    data = image.get("bytes") if isinstance(image, Mapping) else image
    if isinstance(data, bytes):
        return data
    path = image.get("path") if isinstance(image, Mapping) else image
    content = "no bytes" if path is None else f"{reprlib.repr(path)} in place of bytes"
    raise NotEmbeddedError(f"row {reprlib.repr(row)}: an image holds {content}; {EXPECTED}")


def check_embedded(table: pa.Table | pa.RecordBatch, earlier_rows: int = 0) -> None:
    """Check that each image of a table is embedded; `earlier_rows` came before."""
    import pyarrow as pa  # heavy, and `read_embedded` needs none of it

    for column in table.column_names:
        chunks = table[column].chunks if isinstance(table, pa.Table) else [table[column]]
        start = 0
        for chunk in chunks:
            rows = np.flatnonzero(_mark_missing(chunk))
            if len(rows):
                row = start + int(rows[0])
                name = (
                    table["id"][row].as_py() if "id" in table.column_names else earlier_rows + row
                )
                image = next(_find_images(chunk[int(rows[0])].as_py()))
                read_embedded(image, name)
            start += len(chunk)


def _mark_missing(values: pa.Array) -> npt.NDArray[np.bool_]:
    """Mark the values that hold an image without bytes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    arrow_type, is_missing = values.type, np.zeros(len(values), bool)
    if pa.types.is_struct(arrow_type):
        fields = {field.name: number for number, field in enumerate(arrow_type)}
        if fields.keys() == {"bytes", "path"}:
            data = values.field(fields["bytes"])
            return _to_bools(pc.and_(values.is_valid(), data.is_null()))
        for number in fields.values():
            is_missing |= _mark_missing(values.field(number))
        return is_missing & _to_bools(values.is_valid())
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if any(is_type(arrow_type) for is_type in lists):
        inner = _mark_missing(values.flatten())
        owners = pc.list_parent_indices(values).to_numpy(zero_copy_only=False)
        is_missing[owners[inner]] = True
    return is_missing


def _to_bools(values: pa.BooleanArray) -> npt.NDArray[np.bool_]:
    return np.asarray(values.to_numpy(zero_copy_only=False), bool)


def _find_images(value: Any) -> Iterator[Any]:
    """Yield the images without bytes in a value."""
    if isinstance(value, Mapping):
        if value.keys() == {"bytes", "path"}:
            yield from [value] if value["bytes"] is None else ()
        else:
            for inner in value.values():
                yield from _find_images(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _find_images(inner)
