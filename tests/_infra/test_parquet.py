"""A Parquet file of others takes no more memory than a limit, whatever it stands for."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from echo_hf._infra import parquet
from echo_hf._infra.parquet import open_parquet, read_footer, read_parquet

MEGABYTE = 1 << 20
UTC = datetime.UTC
POOLS: list[pa.MemoryPool] = []
WHEN = pa.list_(pa.struct({"when": pa.timestamp("us")}))


def written(path: Path, columns: Any, **options: Any) -> Path:
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    pq.write_table(table, path, compression="zstd", **options)
    return path


@contextmanager
def memory() -> Iterator[pa.MemoryPool]:
    usual = pa.default_memory_pool()
    counted = pa.proxy_memory_pool(usual)
    POOLS.append(counted)  # what was read may outlive the test
    pa.set_memory_pool(counted)
    try:
        yield counted
    finally:
        pa.set_memory_pool(usual)


@pytest.mark.parametrize("groups", [7, 1000, 100_000])
@pytest.mark.parametrize("encoding", [None, "DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_rows_are_those_that_were_written(
    tmp_path: Path, groups: int, encoding: str | None
) -> None:
    """Of each kind of column, also where a dictionary grew too large to be one."""
    draw = random.Random(7)
    rows = [
        {
            "text": draw.choice([None, "fox", "é" * draw.randrange(50), str(draw.random())]),
            "image": draw.choice([None, {"bytes": draw.randbytes(300), "path": "a.png"}]),
            "said": [{"words": str(draw.random())} for _ in range(draw.randrange(4))],
            "when": datetime.datetime(2026, 3, 2, tzinfo=UTC) + datetime.timedelta(hours=at),
            "count": at,
        }
        for at in range(2000)
    ]
    options: dict[str, Any] = {"dictionary_pagesize_limit": 2000}
    if encoding:
        options = {"use_dictionary": False, "column_encoding": {"text": encoding}}
    table = pa.Table.from_pylist(rows)
    path = written(tmp_path / "a.parquet", table, row_group_size=groups, **options)
    assert read_parquet(path).equals(table)
    assert read_parquet(path, columns=["count", "none", "text"]).equals(
        table.select(["count", "text"])
    )
    assert read_parquet(path, columns=["none"]).num_columns == 0


def test_a_kilobyte_that_stands_for_gigabytes_takes_little(tmp_path: Path) -> None:
    """A text of 20 MB in each of 100 rows is read, few rows at a time, or refused in all."""
    text = pa.array(["x" * (20 * MEGABYTE)])
    table = pa.table({"text": pa.DictionaryArray.from_arrays(pa.array([0] * 100), text)})
    path = written(tmp_path / "a.parquet", table, store_schema=False)
    assert path.stat().st_size < 4000
    sizes: list[int] = []

    def read() -> None:
        with open_parquet(path) as file:
            sizes.extend(batch.nbytes for batch in file.iterate_batches())

    with memory() as used, pytest.raises(OSError, match="bytes of rows, expected at most 268,435,"):
        read()
    assert 0 < max(sizes) < 45 * MEGABYTE
    assert used.max_memory() < 200 * MEGABYTE
    with pytest.raises(OSError, match="bytes of rows, expected at most"):
        read_parquet(path)


ENDLESS: dict[str, tuple[Callable[[], Any], str]] = {
    "rows": (lambda: {"a": pa.nulls(60_000_000, pa.int8())}, "60,000,000 rows, expected at most"),
    "a list": (
        lambda: {
            "a": pa.ListArray.from_arrays(
                pa.array([0, 20_000_000], pa.int32()), pa.nulls(20_000_000, pa.int8())
            )
        },
        r"column 'a.list.element' of row group 0 has 20,000,000 values",
    ),
    "a row": (lambda: {"a": ["y" * (300 * MEGABYTE)]}, "a row has 314,572,800 bytes"),
    "one of bytes": (
        lambda: {"a": pa.array([bytes(60 * MEGABYTE)] * 5, pa.binary(60 * MEGABYTE))},
        "bytes of rows",
    ),
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_what_has_no_end_is_refused_by_its_size(tmp_path: Path, kind: str) -> None:
    make, said = ENDLESS[kind]
    path = written(tmp_path / "a.parquet", make(), row_group_size=1 << 30)
    assert path.stat().st_size < MEGABYTE
    with pytest.raises(OSError, match=said):
        read_parquet(path)


def test_a_row_group_or_a_footer_that_is_too_large_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "a.parquet", {"a": ["x" * 5000] * 10})
    for name, said in (("MAX_GROUP_BYTES", "row group 0 has"), ("MAX_FOOTER_BYTES", "a footer")):
        with monkeypatch.context() as limits:
            limits.setattr(parquet, name, 100)
            with pytest.raises(OSError, match=f"{said}.* bytes, expected at most 100"):
                read_footer(path)


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (pa.array([b"\xff\xfe"]).view(pa.string()), "UTF8"),
        (pa.array([2**62]).cast(pa.timestamp("us")), "a time that no calendar has"),
        (pa.array([[{"when": 2**62}]], WHEN), "a time"),
    ],
    ids=["text", "time", "time in a list"],
)
def test_a_value_that_python_cannot_hold_is_an_error_of_arrow(
    tmp_path: Path, column: pa.Array, said: str
) -> None:
    path = written(tmp_path / "a.parquet", {"a": column})
    with pytest.raises(pa.ArrowException, match=said):
        read_parquet(path)


def test_what_is_no_such_file_says_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    with pytest.raises(OSError, match=r"pointer of Git LFS .* run `git lfs pull`"):
        read_parquet(path)
    path.write_bytes(b"PAR1 cut")
    with pytest.raises(pa.ArrowException):
        read_parquet(path)
