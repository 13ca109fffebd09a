"""Where the work of a run is done; a stage does not know its runner."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa
from datasets import Dataset
from datasets.table import MemoryMappedTable, Table

from echo_hf._infra.atomic import stored_rows
from echo_hf._infra.worker_pool import Place
from echo_hf.config.checks import EngineChoice
from echo_hf.config.sections import RunnerOptions
from echo_hf.engines.base import Engine
from echo_hf.pipeline.progress import ProgressListener
from echo_hf.pipeline.stage import Stage, combined_fingerprint
from echo_hf.tables import rows_at


class Runner(ABC):
    """Does what a run's stages need: asks engines, and calls stages on rows.

    A context manager: leaving it gives back what the work took.
    """

    def engine(self, engine: Engine, choice: EngineChoice) -> Engine:
        """The engine that a config's choice made, asked where this runner works."""
        del choice
        return engine

    def places(self) -> Sequence[Place] | None:
        """Where workers of a model run; null for where the model's own options say."""
        return None

    def told(self, stats: object) -> object:
        """The stats of asking as they are told, with what this runner has to say beside them."""
        return stats

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


@dataclass(frozen=True)
class LocalRunner(Runner):
    """In this process."""

    def mapped(self, stage: Stage, dataset: Dataset, file: Path | None, *, anew: bool) -> Dataset:
        """What a stage makes of rows, a batch or a part after the other."""
        if stage.whole:  # of which `Dataset.map` would hold some copies
            return kept_in(file, stage, dataset, _of_parts(stage, dataset), anew)
        arguments = {**stage.map_arguments(dataset), "load_from_cache_file": not anew}
        name = str(file) if file else None
        return dataset.with_format("arrow").map(stage, **arguments, cache_file_name=name)


def _of_parts(stage: Stage, dataset: Dataset) -> Iterator[pa.Table]:
    parts = stage.parts(dataset)
    for part in (None,) if parts is None else map(np.asarray, parts):
        yield stage(rows_at(dataset, part))


def kept_in(
    file: Path | None, stage: Stage, dataset: Dataset, made: Iterable[pa.Table], anew: bool
) -> Dataset:
    """What a stage made, as `Dataset.map` keeps it; read back from a file that is there."""
    if file is not None and file.exists() and not anew:
        table: Table = MemoryMappedTable.from_file(str(file))
    else:
        table = stored_rows(made, stage.features.arrow_schema, file)
    return Dataset(table, fingerprint=combined_fingerprint(dataset._fingerprint, stage.digest()))


LOCAL = LocalRunner()


def runner_of(options: RunnerOptions, folder: Path, watch: ProgressListener) -> Runner:
    """The runner that a config asks for, for a run in this folder."""
    if options.kind == "local":
        return LOCAL
    from echo_hf.pipeline.ray_runner import RayRunner

    return RayRunner(options, folder, watch)
