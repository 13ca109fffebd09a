"""Runners decide where the work of a run is done; stages do not know them."""

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

from echo_hf._infra.atomic import GC_THRESHOLD, store_rows
from echo_hf._infra.worker_pool import WorkerFactory
from echo_hf.config.checks import EngineChoice
from echo_hf.config.sections import RunnerOptions
from echo_hf.engines.base import Engine
from echo_hf.errors import RunError
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.answers import StoredAnswers
from echo_hf.pipeline.progress import NullProgress, ProgressListener
from echo_hf.pipeline.stage import BATCH_ROWS, ModelStage, Stage, join_digests, table_bytes
from echo_hf.tables import get_rows

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
# Stages take 10 to 500 microseconds a row, a process or a node some time to begin.
MIN_PARALLEL_ROWS = 20_000
MAX_PROCESSES = 16


class Runner(ABC):
    """Does the work of a run's stages: asks engines, and calls stages on rows.

    A context manager: leaving it gives back what the work took.
    """

    processes = 1  # of this machine

    def place_engine(self, place_engine: Engine, choice: EngineChoice) -> Engine:
        """Return an engine such that it is asked where this runner works."""
        del choice
        return place_engine

    def make_workers(self) -> Sequence[WorkerFactory] | None:
        """Return factories of a model's workers; null where the model's own options decide."""
        return None

    def describe_stats(self, stats: object) -> object:
        """Add what this runner has to say to the statistics of asking."""
        return stats

    @abstractmethod
    def map_rows(self, stage: Stage, dataset: Dataset, file: Path | None, *, anew: bool) -> Dataset:
        """Call a stage on rows, and keep its output with control columns in `file`, if given.

        Equal rows in equal order whatever the runner; there is at least one row. What the file
        holds already is read back, unless it is to be computed anew.
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:  # noqa: B027 - one in this process holds nothing
        pass


@dataclass(frozen=True)
class LocalRunner(Runner):
    """Works on this machine, with several processes for large tables.

    Attributes:
        processes: How many; they are forks of this one, which load nothing again.
        watch: Told how far they are.
        least_rows: With fewer rows, a stage is called in this process.
    """

    processes: int = 1
    watch: ProgressListener = field(default_factory=NullProgress, repr=False)
    least_rows: int = MIN_PARALLEL_ROWS

    def map_rows(self, stage: Stage, dataset: Dataset, file: Path | None, *, anew: bool) -> Dataset:
        """Call a stage on rows, batch by batch or part by part."""
        return store_result(file, stage, dataset, self._iterate_tables(stage, dataset), anew)

    def _iterate_tables(self, stage: Stage, dataset: Dataset) -> Iterator[pa.Table]:
        is_small = self.processes == 1 or len(dataset) < self.least_rows
        batches = split_batches(stage, dataset)
        if batches is None or is_small or reads_memory(stage):
            for numbers in batches or [range(len(dataset))]:
                yield stage(select_rows(dataset, numbers))
            return
        done, started = 0, time.perf_counter()

        def start_worker() -> Callable[[Sequence[int]], pa.Buffer]:
            own_stage = _open_own_store(stage)
            # A table as it is would be sent with all that it is a slice of.
            return lambda numbers: table_bytes(own_stage(select_rows(dataset, numbers)))

        for chunk, buffer in fork_map(
            start_worker, batches, self.processes, f"stage {stage.name!r}"
        ):
            yield pa.ipc.open_stream(buffer).read_all()
            done += len(chunk)
            rate = done / (time.perf_counter() - started)
            rate_text = f"{rate:,.0f} rows/s in {self.processes} processes"
            self.watch.report_progress(stage.name, done, rate_text, len(dataset))


def fork_map(
    begin: Callable[[], Callable[[ItemT], ResultT]],
    items: Iterable[ItemT],
    processes: int,
    place: str,
) -> Iterator[tuple[ItemT, ResultT]]:
    """Process items in forks of this process, or in itself for one; yield in order."""
    if processes == 1:
        process_item = begin()
        yield from ((item, process_item(item)) for item in items)
        return
    remaining, waiting = iter(items), deque[tuple[ItemT, Future[ResultT]]]()
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(processes, context, _start_fork, (begin,)) as pool:
        try:
            while True:
                for item in islice(remaining, 2 * processes - len(waiting)):
                    waiting.append((item, pool.submit(_call_worker, item)))
                if not waiting:
                    return
                item, future = waiting.popleft()
                yield item, future.result()
        except BrokenProcessPool:
            raise RunError(
                f"{place}: a process was killed at its work, for want of memory perhaps: the same "
                "command goes on; `processes: 1` of the runner takes least"
            ) from None


_process_item: Callable[[Any], Any]  # of a process that was forked for it


def _start_fork(begin: Callable[[], Callable[[Any], Any]]) -> None:
    """Prepare a fork for its work; it ends with the run."""
    global _process_item
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the run, which ends its processes
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    Thread(target=_end_with_parent, daemon=True).start()
    gc.freeze()  # what is there stays
    gc.set_threshold(GC_THRESHOLD)
    _process_item = begin()


def _open_own_store(stage: Stage) -> Stage:
    if isinstance(stage, ModelStage) and isinstance(stage.answers, StoredAnswers):
        store = Store(stage.answers.store.path)
        return stage.answered_by(StoredAnswers(store, stage.answers.signature))
    return stage


def _end_with_parent() -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)


def _call_worker(item: Any) -> Any:
    return _process_item(item)


def count_cores() -> int:
    """Count the processes to use; elsewhere than on Linux a fork may break libraries."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1
    return min(cores, MAX_PROCESSES)


def split_batches(stage: Stage, dataset: Dataset) -> Iterator[Sequence[int]] | None:
    """Return the row numbers of each call of a stage; null for a single call with all rows."""
    if stage.whole:
        return stage.parts(dataset)
    count = len(dataset)
    return (range(start, min(start + BATCH_ROWS, count)) for start in range(0, count, BATCH_ROWS))


def select_rows(dataset: Dataset, numbers: Sequence[int]) -> pa.Table:
    if isinstance(numbers, range):
        return get_rows(dataset, slice(numbers.start, numbers.stop))
    return get_rows(dataset, np.asarray(numbers))


def reads_memory(stage: Stage) -> bool:
    """Return whether a stage reads answers that only this process has."""
    answers = stage.answers if isinstance(stage, ModelStage) else None
    return isinstance(answers, StoredAnswers) and not answers.store.path.exists()


def store_result(
    file: Path | None, stage: Stage, dataset: Dataset, tables: Iterable[pa.Table], anew: bool
) -> Dataset:
    """Store a stage's output as `Dataset.map` does, or read it back from the file."""
    if file is not None and file.exists() and not anew:
        table: Table = MemoryMappedTable.from_file(str(file))
    else:
        table = store_rows(tables, stage.features.arrow_schema, file)
    return Dataset(table, fingerprint=join_digests(dataset._fingerprint, stage.digest()))


LOCAL = LocalRunner()


def make_runner(options: RunnerOptions, folder: Path, watch: ProgressListener) -> Runner:
    if options.kind == "local":
        if sys.platform != "linux":
            return LOCAL
        return LocalRunner(options.processes or count_cores(), watch)
    from echo_hf.pipeline.ray_runner import RayRunner

    return RayRunner(options, folder, watch)
