"""Run systems over a benchmark (ECHO section 5): every output is kept the moment it comes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from echo_hf.errors import ConfigError, GenerationError, unknown
from echo_hf.evaluated import Evaluated
from echo_hf.evaluation import benchmark_of, evaluation_folder, load_evaluation
from echo_hf.reasons import NoTask, Outcome
from echo_hf.run import RUNS
from echo_hf.run_folder import RunFolder
from echo_hf.systems.base import Retired, System, Task, make_system
from echo_hf.systems.config import SystemConfig
from echo_hf.systems.drawing import Drawing
from echo_hf.systems.journal import Journal, digest_of, journals, locked
from echo_hf.systems.output_rows import write_outputs
from echo_hf.systems.plan import Plan, plan_of
from echo_hf.systems.watch import Unwatched, Watcher


@dataclass(frozen=True)
class Generated:
    """What became of a run of systems.

    Attributes:
        path: The table of all outputs; null for a dry run.
        plans: What each system had to do.
        outcomes: For each system, how many of its outputs for this benchmark ended how.
        cost_usd: What this run cost as far as it is known; null when nothing is.
        left_out: How many samples cannot be given to a system, by reason.
    """

    path: Path | None
    plans: tuple[Plan, ...]
    outcomes: Mapping[str, Mapping[Outcome, int]]
    cost_usd: float | None
    left_out: Mapping[NoTask, int]


@dataclass
class _Worker:
    """A system with its journal and what it has to do."""

    config: SystemConfig
    system: System
    journal: Journal
    plan: Plan
    retired: Retired | None = None


def generate(
    config: Evaluated | Path | str,
    *,
    runs: Path | str = RUNS,
    systems: Sequence[str] | None = None,
    limit: int | None = None,
    dry_run: bool = False,
    watch: Watcher | None = None,
) -> Generated:
    """Has systems draw the tasks of a benchmark; what is drawn already is not drawn again.

    Killed at any moment, the same call goes on: each output is durable when it comes. Refusals,
    texts in the place of pictures and tasks that a system cannot take are outcomes and settled;
    failures are tried again by the next call, and never scored.

    Args:
        config: The config, or the path of its file.
        runs: Folder of runs; this one goes into the sub-folder of the config's name.
        systems: Names of those to run; all of the config's when null.
        limit: Most samples of each split.
        dry_run: Only plan: nobody is asked.
        watch: Told of the plan and of each output.

    Returns:
        Where the table of outputs is, and what became of the tasks.

    Raises:
        ConfigError: The config names no system, or not one that was asked for.
        GenerationError: A system cannot be run, before anything is drawn; or had to be stopped,
            after the others have finished.
        EchoError: The benchmark cannot be read.
    """
    config = config if isinstance(config, Evaluated) else load_evaluation(config)
    chosen, watch = _chosen(config, systems), watch or Unwatched()
    folder = evaluation_folder(config, runs)
    tasks = benchmark_of(config, folder).tasks(folder.pictures, limit)
    with _workers(chosen, folder, tasks.tasks, dry_run) as workers:
        watch.planned([worker.plan for worker in workers], tasks.left_out)
        plans = tuple(worker.plan for worker in workers)
        if dry_run:
            return Generated(None, plans, {}, None, tasks.left_out)
        for worker in workers:
            worker.retired = worker.system.preflight() if worker.plan.todo else None
        try:
            stopped = [said for worker in workers if (said := _run(worker, folder, watch))]
        finally:
            path = write_outputs(folder.root, journals(folder.root))
    if stopped:
        raise GenerationError("; ".join(stopped))
    costs = [cost for worker in workers if (cost := _cost_usd(worker)) is not None]
    outcomes = {worker.config.name: _outcomes(worker, tasks.tasks) for worker in workers}
    return Generated(path, plans, outcomes, sum(costs) if costs else None, tasks.left_out)


def _chosen(config: Evaluated, names: Sequence[str] | None) -> list[SystemConfig]:
    by_name = {system.name: system for system in config.systems}
    if not by_name:
        raise ConfigError(
            f"config {config.name!r} names no systems: add some, for example "
            "`systems: [systems/flux_kontext.yaml]`; `echo-hf systems` lists those that are there"
        )
    for name in names or ():
        if name not in by_name:
            raise ConfigError(unknown("system", name, by_name, "--systems"))
    return [by_name[name] for name in dict.fromkeys(names or by_name)]


@contextmanager
def _workers(
    configs: Sequence[SystemConfig], folder: RunFolder, tasks: Sequence[Task], dry_run: bool
) -> Iterator[list[_Worker]]:
    systems = [make_system(config) for config in configs]
    with ExitStack() as stack:
        if not dry_run:
            for config in configs:
                stack.enter_context(locked(folder.root, config.name))
        pairs = zip(configs, systems, strict=True)
        yield [_worker(config, system, folder, tasks) for config, system in pairs]


def _worker(
    config: SystemConfig, system: System, folder: RunFolder, tasks: Sequence[Task]
) -> _Worker:
    journal = Journal(folder.root, config.name)
    concurrency = config.limits.concurrency or system.concurrency
    signature = digest_of(system.signature())
    plan = plan_of(config, tasks, journal.entries, signature, concurrency)
    return _Worker(config, system, journal, plan)


def _run(worker: _Worker, folder: RunFolder, watch: Watcher) -> str | None:
    """Runs one system; says why it had to be stopped, null when it was not."""
    signature = worker.journal.sign(worker.system.signature())
    limits = worker.config.limits
    drawing = Drawing(worker.system, worker.journal, folder.pictures, limits, signature, watch)
    said = None
    if worker.retired is not None:
        drawing.retire(worker.plan.todo, worker.retired)
    else:
        try:
            with worker.system:
                drawing.run(worker.plan.todo)
        except GenerationError as error:
            said = str(error)
    watch.finished(worker.config.name, said)
    return said


def _cost_usd(worker: _Worker) -> float | None:
    """What the tasks of this run cost, null when nothing is known."""
    entries = (worker.journal.entries.get(task.sample_id) for task in worker.plan.todo)
    costs = [entry.cost_usd for entry in entries if entry and entry.cost_usd is not None]
    return sum(costs) if costs else None


def _outcomes(worker: _Worker, tasks: Sequence[Task]) -> Mapping[Outcome, int]:
    entries = (worker.journal.entries.get(task.sample_id) for task in tasks)
    return Counter(entry.outcome for entry in entries if entry is not None)
