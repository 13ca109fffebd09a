"""Where the work of a run is done; a stage does not know its runner."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from threading import Thread
from typing import Any, Self, TypeVar

import numpy as np
import pyarrow as pa
from datasets import Dataset
from datasets.table import MemoryMappedTable, Table

from echo_hf._infra.atomic import OBJECTS_AT_ONCE, stored_rows
from echo_hf._infra.worker_pool import Place
from echo_hf.config.checks import EngineChoice
from echo_hf.config.sections import RunnerOptions
from echo_hf.engines.base import Engine
from echo_hf.errors import RunError
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.answers import StoredAnswers
from echo_hf.pipeline.progress import NullProgress, ProgressListener
from echo_hf.pipeline.stage import BATCH, ModelStage, Stage, combined_fingerprint, table_bytes
from echo_hf.tables import rows_at

Task = TypeVar("Task")
Made = TypeVar("Made")
# Stages take 10 to 500 microseconds a row, a process or a node some time to begin.
LEAST_ROWS = 20_000
MOST_PROCESSES = 16


class Runner(ABC):
    """Does what a run's stages need: asks engines, and calls stages on rows.

    A context manager: leaving it gives back what the work took.
    """

    processes = 1  # of this machine

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
    """On this machine, large tables in several processes.

    Attributes:
        processes: How many; they are forks of this one, which load nothing again.
        watch: Told how far they are.
        least_rows: With fewer rows, a stage is called in this process.
    """

    processes: int = 1
    watch: ProgressListener = field(default_factory=NullProgress, repr=False)
    least_rows: int = LEAST_ROWS

    def mapped(self, stage: Stage, dataset: Dataset, file: Path | None, *, anew: bool) -> Dataset:
        """What a stage makes of rows, a batch or a part after the other."""
        return kept_in(file, stage, dataset, self._made(stage, dataset), anew)

    def _made(self, stage: Stage, dataset: Dataset) -> Iterator[pa.Table]:
        is_small = self.processes == 1 or len(dataset) < self.least_rows
        batches = batches_of(stage, dataset)
        if batches is None or is_small or reads_memory(stage):
            for numbers in batches or [range(len(dataset))]:
                yield stage(rows_of(dataset, numbers))
            return
        done, started = 0, time.perf_counter()

        def begin() -> Callable[[Sequence[int]], pa.Buffer]:
            own = _with_own_store(stage)
            # A table as it is would be sent with all that it is a slice of.
            return lambda numbers: table_bytes(own(rows_of(dataset, numbers)))

        for some, made in forked(begin, batches, self.processes, f"stage {stage.name!r}"):
            yield pa.ipc.open_stream(made).read_all()
            done += len(some)
            rate = done / (time.perf_counter() - started)
            said = f"{rate:,.0f} rows/s in {self.processes} processes"
            self.watch.advanced(stage.name, done, said, len(dataset))


def forked(
    begin: Callable[[], Callable[[Task], Made]], tasks: Iterable[Task], processes: int, who: str
) -> Iterator[tuple[Task, Made]]:
    """What forks of this process, or it alone, make of each task, in the order of the tasks."""
    if processes == 1:
        work = begin()
        yield from ((task, work(task)) for task in tasks)
        return
    left, waiting = iter(tasks), deque[tuple[Task, Future[Made]]]()
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(processes, context, _begin, (begin,)) as pool:
        try:
            while True:
                for task in islice(left, 2 * processes - len(waiting)):
                    waiting.append((task, pool.submit(_called, task)))
                if not waiting:
                    return
                task, made = waiting.popleft()
                yield task, made.result()
        except BrokenProcessPool:
            raise RunError(
                f"{who}: a process was killed at its work, for want of memory perhaps: the same "
                "command goes on; `processes: 1` of the runner takes least"
            ) from None


_work: Callable[[Any], Any]  # of a process that was forked for it


def _begin(begin: Callable[[], Callable[[Any], Any]]) -> None:
    """What a fork does first; it ends with the run."""
    global _work
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the run, which ends its processes
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    Thread(target=_end_with_parent, daemon=True).start()
    gc.freeze()  # what is there stays
    gc.set_threshold(OBJECTS_AT_ONCE)
    _work = begin()


def _with_own_store(stage: Stage) -> Stage:
    if isinstance(stage, ModelStage) and isinstance(stage.answers, StoredAnswers):
        own = Store(stage.answers.store.path)
        return stage.answered_by(StoredAnswers(own, stage.answers.signature))
    return stage


def _end_with_parent() -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)


def _called(task: Any) -> Any:
    return _work(task)


def cores() -> int:
    """How many processes work at once; elsewhere than on Linux a fork may break libraries."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1
    return min(cores, MOST_PROCESSES)


def batches_of(stage: Stage, dataset: Dataset) -> Iterator[Sequence[int]] | None:
    """The rows of each call of a stage; null where it sees all of them at once."""
    if stage.whole:
        return stage.parts(dataset)
    count = len(dataset)
    return (range(at, min(at + BATCH, count)) for at in range(0, count, BATCH))


def rows_of(dataset: Dataset, numbers: Sequence[int]) -> pa.Table:
    if isinstance(numbers, range):
        return rows_at(dataset, slice(numbers.start, numbers.stop))
    return rows_at(dataset, np.asarray(numbers))


def reads_memory(stage: Stage) -> bool:
    """Whether a stage reads answers that only this process has."""
    answers = stage.answers if isinstance(stage, ModelStage) else None
    return isinstance(answers, StoredAnswers) and not answers.store.path.exists()


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
    if options.kind == "local":
        if sys.platform != "linux":
            return LOCAL
        return LocalRunner(options.processes or cores(), watch)
    from echo_hf.pipeline.ray_runner import RayRunner

    return RayRunner(options, folder, watch)
