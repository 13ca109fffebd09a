"""Write files and folders atomically, and lock them."""

from __future__ import annotations

import errno
import gc
import json
import os
import shutil
import uuid
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from echo_hf.errors import EchoError, ReleaseError, RunError

if TYPE_CHECKING:
    import pyarrow as pa
    from datasets.table import Table

ROWS_PER_BATCH = 1000  # that are written, and read back, together
# Rows are many objects without cycles, which collecting garbage would look at for nothing.
GC_THRESHOLD = 100_000


@contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """Open a temporary path that replaces the file when the block ends without an error."""
    if not path.name:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    # Two writers have two; a takedown knows what killed ones have left by this ending.
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}.partial")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def pause_gc() -> Iterator[None]:
    thresholds = gc.get_threshold()
    gc.set_threshold(GC_THRESHOLD)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def store_rows(batches: Iterable[pa.Table], schema: pa.Schema, file: Path | None) -> Table:
    """Store rows as datasets does: in a memory-mapped file, or in memory without a file."""
    import pyarrow as pa
    from datasets.table import InMemoryTable, MemoryMappedTable

    def write(sink: pa.NativeFile | str) -> None:
        with pa.ipc.new_stream(sink, schema) as writer:
            for rows in batches:
                table = rows.select(schema.names).cast(schema)
                for start in range(0, len(rows), ROWS_PER_BATCH):
                    writer.write_table(table.slice(start, ROWS_PER_BATCH).combine_chunks())

    with pause_gc():
        if file is None:
            write(sink := pa.BufferOutputStream())
            return InMemoryTable.from_buffer(sink.getvalue())
        with replace_file(file) as partial:
            write(str(partial))
        return MemoryMappedTable.from_file(str(file))


def write_json(path: Path, value: Any, **options: Any) -> None:
    """Write a value atomically, as the same text each time."""
    text = json.dumps(value, indent=1, sort_keys=True, allow_nan=False, **options)
    with replace_file(path) as partial:
        partial.write_text(text + "\n", "utf-8")


@contextmanager
def replace_folder(folder: Path, own_names: Collection[str] | None = None) -> Iterator[Path]:
    """Open an empty folder that replaces `folder` when the block ends without an error."""
    restore_folder(folder)
    if own_names is not None:
        check_replaceable(folder, own_names)
    partial = _sibling_path(folder, "partial")
    _discard(_sibling_path(folder, "previous"), partial)
    partial.mkdir(parents=True)
    try:
        yield partial
        previous = _sibling_path(folder, "previous")
        if folder.exists():
            folder.rename(previous)
        partial.rename(folder)
        _discard(previous, partial)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def check_replaceable(folder: Path, own_names: Collection[str]) -> None:
    if folder.exists() and not folder.is_dir():
        raise ReleaseError(f"{str(folder)!r} is a file, expected a folder: name another place")
    names = {path.name for path in folder.iterdir()} if folder.exists() else set()
    foreign = sorted(names - set(own_names))
    if foreign:
        raise ReleaseError(
            f"{str(folder)!r} holds {foreign[0]!r}, which is not a part of it and would be lost: "
            "move it, or name another folder"
        )


def find_complete(folder: Path) -> Path:
    """Return where to read a folder: the previous one while it is being replaced."""
    if not folder.name:  # `.` or a root, which nobody replaces
        return folder
    previous = _sibling_path(folder, "previous")
    return previous if previous.exists() and not folder.exists() else folder


def restore_folder(folder: Path) -> None:
    """Put the previous folder back if its replacement was killed; for writers only."""
    if (complete := find_complete(folder)) != folder:
        complete.rename(folder)


def _discard(previous: Path, partial: Path) -> None:
    shutil.rmtree(partial, ignore_errors=True)
    if previous.exists():
        # Deleting takes a while: under this name nobody mistakes what is left for a release.
        previous.rename(partial)
        shutil.rmtree(partial, ignore_errors=True)


def _sibling_path(folder: Path, role: str) -> Path:
    return folder.with_name(f".{folder.name}.{role}")


@contextmanager
def lock_file(path: Path, busy: EchoError, wait_s: float = 0) -> Iterator[None]:
    lock = FileLock(path)
    try:
        lock.acquire(timeout=wait_s)
    except Timeout:
        raise busy from None
    except OSError as error:
        raise RunError(
            f"cannot lock {str(path)!r} ({error.strerror or error}): choose a folder with --runs "
            "that can be written, on a disk that knows locks"
        ) from error
    try:
        yield
    finally:
        lock.release()
