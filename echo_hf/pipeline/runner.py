"""Where the work of a run is done; a stage does not know its runner."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
from datasets import Dataset
from datasets.table import MemoryMappedTable, Table

from echo_hf._infra.atomic import stored_rows
from echo_hf.config.checks import EngineChoice
from echo_hf.engines.base import Engine
from echo_hf.pipeline.stage import BATCH, Stage, combined_fingerprint
from echo_hf.tables import arrow_batches, arrow_rows, rows_at


class Runner(ABC):
    """Does what a run's stages need: asks engines, and calls stages on rows.

    A context manager: leaving it gives back what the work took.
    """

    def engine(self, engine: Engine, choice: EngineChoice) -> Engine:
        """The engine that a config's choice made, asked where this runner works."""
        del choice
        return engine

    @abstractmethod
    def mapped(self, stage: Stage, dataset: Dataset, file: Path | None, *, anew: bool) -> Dataset:
        """What a stage makes of rows, control columns included; kept in `file` where it is given.

        Equal rows in equal order whatever the runner; there is at least one row. What the file
        holds already is read back, unless it is to be computed anew.
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:  # noqa: B027 - one in this process holds nothing
        pass


class LocalRunner(Runner):
    """In this process."""

    def mapped(self, stage: Stage, dataset: Dataset, file: Path | None, *, anew: bool) -> Dataset:
        """What a stage makes of rows, a batch or a part after the other."""
        schema = stage.features.arrow_schema
        if file is not None and file.exists() and not anew:
            table: Table = MemoryMappedTable.from_file(str(file))
        else:
            table = stored_rows(map(stage, batches(stage, dataset)), schema, file)
        return Dataset(
            table, fingerprint=combined_fingerprint(dataset._fingerprint, stage.digest())
        )


def batches(stage: Stage, dataset: Dataset) -> Iterator[pa.Table]:
    """The rows that a stage is called on at once."""
    if not stage.whole:
        return arrow_batches(dataset, BATCH)
    parts = stage.parts(dataset)
    if parts is None:
        return iter([arrow_rows(dataset)])
    return (rows_at(dataset, np.asarray(part)) for part in parts)


LOCAL = LocalRunner()
