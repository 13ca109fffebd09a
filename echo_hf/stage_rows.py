"""A stage's output rows as they are found, each with the input row it came from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from echo_hf.answers import Failure
from echo_hf.reasons import Reason, Status
from echo_hf.stage import Remark, kept, ordered, remarks
from echo_hf.tables import Table


class StageRows:
    """Collects rows and remarks in any order; `table` gives them in the order of the input.

    Args:
        outputs: The table that the stage makes.
    """

    def __init__(self, outputs: Table) -> None:
        self._outputs = outputs
        self._kept: list[tuple[int, list[str], Mapping[str, Any]]] = []
        self._said: list[tuple[int, Remark]] = []

    def keep(self, row: int, key: str, values: Mapping[str, Any]) -> None:
        """Adds a row that goes on.

        Args:
            row: Number of the input row.
            key: Its key.
            values: Values of the columns.
        """
        self._kept.append((row, [key], values))

    def say(
        self, row: int, key: str, status: Status, reason: Reason, detail: str | None = None
    ) -> None:
        """Adds a remark on an input row.

        Args:
            row: Number of the input row.
            key: Its key.
            status: rejected, quarantined or noted.
            reason: Why.
            detail: What a person needs to see the cause.
        """
        self._said.append((row, Remark(status, [key], reason, detail)))

    def failed(self, row: int, key: str, failure: Failure) -> None:
        """Puts an input row into quarantine, for a call that gave no answer."""
        remark = Remark(Status.QUARANTINED, [key], failure.reason, failure.detail, failure.request)
        self._said.append((row, remark))

    def table(self) -> pa.Table:
        """The output rows with their control columns; those of one input row keep their order."""
        values = [values for *_, values in self._kept]
        columns = pa.Table.from_pylist(values, schema=self._outputs.schema)
        parents = pa.array([parents for _, parents, _ in self._kept], pa.list_(pa.string()))
        said = remarks(self._outputs, [remark for _, remark in self._said])
        rows = ([row for row, *_ in self._kept], [row for row, _ in self._said])
        return ordered(list(zip(rows, (kept(columns, parents), said), strict=True)))
