"""Parts of a batch, set aside until the whole batch is known to be right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile

import pyarrow as pa
from datasets import Features

from echo_hf.hub.evaluate_columns import Stored


@contextmanager
def whole(parts: Iterable[Stored], features: Features) -> Iterator[Iterator[Stored]]:
    """Takes all parts before it gives any, with one of them in memory at a time.

    `evaluate` cannot take back what it has written. So that nothing of a batch stays whose last
    row is wrong, parts lie in a file of their own first, which goes when the block is left.

    Args:
        parts: Rows by column; taken one after the other, and what that raises passes through.
        features: Of the columns.

    Yields:
        The same parts, and one without rows where there are none.
    """
    schema = features.arrow_schema
    with TemporaryFile() as file:
        with pa.ipc.new_stream(file, schema) as writer:
            for part in parts:
                writer.write_table(pa.Table.from_pydict(dict(part), schema))
        file.seek(0)
        yield _read(file, schema)


def _read(file: object, schema: pa.Schema) -> Iterator[Stored]:
    empty = True
    for batch in pa.ipc.open_stream(file):
        empty = False
        yield batch.to_pydict()
    if empty:
        yield {name: [] for name in schema.names}
