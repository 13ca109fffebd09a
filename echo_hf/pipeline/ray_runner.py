"""Run engines, systems and stages on the nodes of a Ray cluster.

The run stays on the machine that started it. There are its files and its store, which nobody else
opens: every answer comes back by itself and is stored the moment it is there, so that none waits in
a second place to be stored, and a killed run goes on as it does on one machine. What goes out is
requests, and batches of rows.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
from datasets import Dataset

from echo_hf._infra.ray_pool import (
    RayNodes,
    alive_nodes,
    can_read_folder,
    connect_cluster,
    pin_to_node,
)
from echo_hf._infra.worker_pool import WorkerFactory
from echo_hf.config.checks import EngineChoice
from echo_hf.config.sections import RunnerOptions
from echo_hf.engines.base import Completion, Engine, make_engine
from echo_hf.engines.checkpoint import CheckpointEngine
from echo_hf.engines.pooled import PooledEngine
from echo_hf.errors import EchoError, EngineError, RunError
from echo_hf.images.store import ImageStore
from echo_hf.pipeline.answer_store import Store
from echo_hf.pipeline.answers import StoredAnswers
from echo_hf.pipeline.batch_inference import FillStats
from echo_hf.pipeline.progress import ProgressListener
from echo_hf.pipeline.runner import (
    LOCAL,
    MIN_PARALLEL_ROWS,
    Runner,
    reads_memory,
    select_rows,
    split_batches,
    store_result,
)
from echo_hf.pipeline.stage import ModelStage, Stage


class RayRunner(Runner):
    """Runs engines and large stages on the nodes of a cluster.

    Args:
        options: The cluster, and the share of a node that a worker takes.
        folder: The folder of the run.
        watch: Told what a runner of one machine has no reason to tell.
        least_rows: With fewer rows, a stage is called here.
    """

    def __init__(
        self,
        options: RunnerOptions,
        folder: Path,
        watch: ProgressListener,
        least_rows: int = MIN_PARALLEL_ROWS,
    ) -> None:
        self.options, self.folder, self.watch = options, folder, watch
        self.least_rows = least_rows
        self._cluster = ExitStack()
        self._pooled: PooledEngine | None = None
        self._can_read = dict[str, bool]()

    def __enter__(self) -> Self:
        share = (self.options.gpus_per_actor, self.options.cpus_per_actor, self.options.micro_batch)
        with ExitStack() as stack:
            self._is_own_cluster = stack.enter_context(connect_cluster(self.options.address))
            if self._is_own_cluster and self.options.address != "local":
                self.watch.report_notice(
                    "no Ray cluster runs here: one was started on this machine"
                )
            self.folder.mkdir(parents=True, exist_ok=True)
            self._nodes = RayNodes(*share, self.folder, self.options.shared)
            self._nodes.notice = self.watch.report_notice
            stack.callback(self._nodes.close)
            self._cluster = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._cluster.close()

    def place_engine(self, place_engine: Engine, choice: EngineChoice) -> Engine:
        """Return the engine, with workers on the nodes unless a server hosts its model."""
        self._pooled = None
        if not place_engine.stored or getattr(place_engine, "hosted", False):
            return place_engine
        devices = choice.options.get("devices")
        if devices is not None:
            raise EngineError(
                f"engine {choice.kind!r}: devices is {devices!r}, which are of this machine, and "
                "the runner is 'ray': leave it out, and say `actors` of the runner"
            )
        make_again = partial(make_engine, choice.kind, **choice.options)
        make = (
            place_engine.make_factory()
            if isinstance(place_engine, CheckpointEngine)
            else make_again
        )
        self._pooled = PooledEngine(place_engine, make, self.make_workers)
        return self._pooled

    def make_workers(self) -> Sequence[WorkerFactory]:
        gpus = self.options.gpus_per_actor
        gpus_shown = sum(node["Resources"].get("GPU", 0) for node in alive_nodes().values())
        if self._is_own_cluster and gpus_shown < gpus:  # nothing can join it
            raise RunError(
                f"runner.gpus_per_actor is {gpus:g}, and this machine shows Ray {gpus_shown:g} "
                "GPUs: expected 0, for models on the processor, or the address of a cluster "
                "with GPUs"
            )
        return [self._nodes] * self.options.actors

    def describe_stats(self, stats: object) -> object:
        if not isinstance(stats, FillStats) or self._pooled is None:
            return stats
        tokens = stats.usage.prompt + stats.usage.completion
        rate = tokens / stats.seconds if stats.seconds else 0.0
        workers = f"{self._pooled.alive} of {self.options.actors} workers"
        return f"{stats}, {rate:,.0f} tokens/s, {workers}"

    def map_rows(self, stage: Stage, dataset: Dataset, file: Path | None, *, anew: bool) -> Dataset:
        is_stored = file is not None and file.exists() and not anew
        is_local = is_stored or stage.stays or len(dataset) < self.least_rows or reads_memory(stage)
        batches = None if is_local else split_batches(stage, dataset)
        if batches is None or not self._can_all_read(stage):
            return LOCAL.map_rows(stage, dataset, file, anew=anew)
        return store_result(
            file, stage, dataset, self._iterate_results(stage, dataset, batches), anew
        )

    def _can_all_read(self, stage: Stage) -> bool:
        """Return whether every node sees the images that a stage reads or makes."""
        if not _find_stores(stage):
            return True
        if isinstance(token := self._nodes.token, bool):
            return token
        import ray

        nodes = alive_nodes()
        for node in nodes.keys() - self._can_read.keys():
            with suppress(ray.exceptions.RayError):  # it was lost meanwhile
                self._can_read[node] = ray.get(pin_to_node(can_read_folder, node).remote(token))
        return all(self._can_read.get(node, True) for node in nodes)

    def _iterate_results(
        self, stage: Stage, dataset: Dataset, batches: Iterator[Sequence[int]]
    ) -> Iterator[pa.Table]:
        """Yield the stage's output tables in order; those of a lost node are computed again."""
        import ray

        token, node = self._nodes.token, ray.get_runtime_context().get_node_id()
        images = {
            name: ImageStore(store.root.absolute()) for name, store in _find_stores(stage).items()
        }
        if images:
            stage = replace(stage, **images)
        if isinstance(stage, ModelStage) and isinstance(stage.answers, StoredAnswers):
            restarts = {"max_restarts": -1, "max_task_retries": -1}
            reader = pin_to_node(_AnswerReader, node, **restarts).remote(
                stage.answers.store.path.absolute()
            )
            answers = StoredAnswers(_ReadOnlyStore(reader), stage.answers.signature)
            stage = stage.answered_by(answers)
        # Without CPUs, all of which workers that wait for requests may hold: Ray Data's own tasks
        # ask for one each, and would wait for ever.
        call = ray.remote(num_cpus=0, scheduling_strategy="SPREAD")(_call_stage)
        sent = ray.put(stage)
        cpus = sum(node["Resources"].get("CPU", 0) for node in alive_nodes().values())
        max_waiting, done, started = max(2, int(cpus)), 0, time.perf_counter()
        waiting = deque[tuple[int, Any]]()
        while True:
            while len(waiting) < max_waiting and (numbers := next(batches, None)) is not None:
                table = select_rows(dataset, numbers)
                waiting.append((len(numbers), call.remote(sent, not images or token, table)))
            if not waiting:
                return
            count, pending = waiting.popleft()
            try:
                result: pa.Table = ray.get(pending)
            except ray.exceptions.RayTaskError as error:
                if isinstance(error.cause, EchoError):
                    raise error.cause from None
                raise
            done += count
            rate = done / (time.perf_counter() - started)
            rate_text = f"{rate:,.0f} rows/s on {len(alive_nodes())} nodes"
            self.watch.report_progress(stage.name, done, rate_text, len(dataset))
            yield result


def _find_stores(stage: Stage) -> dict[str, ImageStore]:
    values = ((field.name, getattr(stage, field.name)) for field in fields(stage))
    return {name: value for name, value in values if isinstance(value, ImageStore)}


def _call_stage(stage: Stage, token: str | bool, table: pa.Table) -> pa.Table:
    """Call a stage on a node; one that joined later may not see the images."""
    if not can_read_folder(token):
        folder = str(Path(str(token)).parent)
        raise RunError(
            f"a node that joined the cluster does not see {folder!r}: let all nodes see it, or say "
            "`shared: false` of the runner"
        )
    return stage(table)


class _AnswerReader:
    def __init__(self, path: Path) -> None:
        self._store = Store(path)

    def get(self, keys: Sequence[bytes]) -> Mapping[bytes, Completion]:
        return self._store.get(keys)


class _ReadOnlyStore(Store):
    """A read-only store, as other machines see it."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Completion]:
        import ray

        completions: dict[bytes, Completion] = ray.get(self._reader.get.remote(keys))
        return completions

    def __reduce__(self) -> Any:
        return _ReadOnlyStore, (self._reader,)
