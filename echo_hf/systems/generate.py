"""Run systems over a benchmark (ECHO section 5), and list the systems that there are."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from echo_hf.builder.build import RUNS
from echo_hf.config.evaluation import Evaluated, Evaluation
from echo_hf.config.systems import OWN_FOLDER, SystemConfig, read_system, shipped_systems
from echo_hf.errors import ConfigError, EchoError, GenerationError, MissingExtraError, unknown
from echo_hf.pipeline.progress import TOLD, NullProgress, ProgressListener
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import NoTask, NotTabled, Outcome
from echo_hf.systems.base import Retired, System, Task, without_secrets
from echo_hf.systems.benchmark import benchmark_of, load_evaluation
from echo_hf.systems.journal import (
    FILE,
    Journal,
    digest_of,
    locked,
    not_tabled,
    outputs_table,
    write_outputs,
)
from echo_hf.systems.plan import GenerationPlan, Generations, plan_of
from echo_hf.systems.registry import Needs, adapter_needs, make_system
from echo_hf.systems.runner import GenerationRun, broken, concurrency_of

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Generated:
    path: Path | None
    plans: tuple[GenerationPlan, ...]
    outcomes: Mapping[str, Mapping[Outcome, int]]
    cost_usd: float | None
    left_out: Mapping[NoTask, int]
    not_tabled: Mapping[str, Mapping[NotTabled, int]] = field(default_factory=dict)
    stopped: tuple[str, ...] = ()
    spent: bool = False


@dataclass(frozen=True)
class _Worker:
    config: SystemConfig
    system: System
    journal: Journal
    plan: GenerationPlan


def generate(
    config: Evaluated | Path | str,
    *,
    runs: Path | str = RUNS,
    systems: Sequence[str] | None = None,
    limit: int | None = None,
    dry_run: bool = False,
    watch: ProgressListener | None = None,
) -> Generated:
    """Has systems draw the tasks of a benchmark; what is drawn already is not drawn again."""
    made = drawn_outputs(config, runs, systems, limit, dry_run=dry_run, watch=watch)
    if made.stopped:
        raise GenerationError("; ".join(made.stopped))
    return made


def drawn_outputs(
    config: Evaluated | Path | str,
    runs: Path | str = RUNS,
    systems: Sequence[str] | None = None,
    limit: int | None = None,
    *,
    dry_run: bool = False,
    budget_usd: float | None = None,
    watch: ProgressListener | None = None,
) -> Generated:
    """Has systems draw; what stopped one of them stands beside what the others made."""
    config = config if isinstance(config, Evaluated) else load_evaluation(config)
    if limit is not None and limit < 1:
        raise ConfigError(f"limit is {limit!r}: expected 1 or more, or none for all samples")
    chosen, watch = _chosen(config, systems), watch or NullProgress()
    made, missing = _made(chosen)
    folder = RunFolder(Path(runs) / config.name)
    benchmark = benchmark_of(config, folder)
    writing = nullcontext() if dry_run else _writing(config, folder, list(made))
    with TemporaryDirectory() as aside, writing:
        if not folder.root.exists():  # a plan leaves nothing there
            benchmark = replace(benchmark, cache=Path(aside))
        tasks = benchmark.tasks(None if dry_run else folder.images, limit)
        workers = list[_Worker]()
        for one in (one for one in chosen if one.name in made):
            try:
                workers.append(_worker(one, made[one.name], folder, tasks.tasks))
            except GenerationError as error:  # its files cannot be read: the others go on
                missing[one.name] = str(error)
        plans = tuple(worker.plan for worker in workers)
        if budget_usd is not None:
            _check_prices(workers)
        for plan in plans:
            watch.started(plan.system, len(plan.todo), plan)
        for reason, count in sorted(tasks.left_out.items()):
            watch.noticed(f"{count:,} samples left out, {reason}: {reason.meaning}")
        stopped = [f"{said}; its {len(tasks.tasks):,} tasks wait" for said in missing.values()]
        for name in missing:
            watch.noticed(f"{name} was stopped")
        ends = [] if dry_run else _run_all(workers, folder, budget_usd, watch)
    stopped += [end.stopped for end in ends if end.stopped]
    if dry_run:
        return Generated(None, plans, {}, None, tasks.left_out, stopped=tuple(stopped))
    outcomes = {worker.config.name: _outcomes(worker, tasks.tasks) for worker in workers}
    costs = [end.cost_usd for end in ends if end.cost_usd is not None]
    return Generated(
        folder.root / FILE,
        plans,
        outcomes,
        sum(costs) if costs else None,
        tasks.left_out,
        not_tabled(folder.root),
        tuple(stopped),
        any(end.spent for end in ends),
    )


@dataclass(frozen=True)
class _End:
    """How a system's work ended: what stopped it, what it cost, whether a budget was too small."""

    stopped: str | None = None
    cost_usd: float | None = None
    spent: bool = False


@contextmanager
def _writing(config: Evaluated, folder: RunFolder, systems: Sequence[str]) -> Iterator[None]:
    """Keeps others from drawing with the same systems; a benchmark from elsewhere gets a folder."""
    with ExitStack() as stack:
        for name in systems:
            stack.enter_context(locked(folder.root, name))
        if isinstance(config, Evaluation):
            folder.save_config(config)
        folder.enter()
        yield


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


def _made(configs: Sequence[SystemConfig]) -> tuple[dict[str, System], dict[str, str]]:
    """The systems by name, and what to install for those that cannot be made."""
    made: dict[str, System] = {}
    missing: dict[str, str] = {}
    for one in configs:
        try:
            made[one.name] = make_system(one)
        except MissingExtraError as error:  # the other systems go on
            missing[one.name] = str(error)
    if not made:
        raise GenerationError("; ".join(missing.values()))
    return made, missing


def _worker(
    config: SystemConfig, system: System, folder: RunFolder, tasks: Sequence[Task]
) -> _Worker:
    journal = Journal(folder.root, config.name)
    concurrency = concurrency_of(config.limits, system)
    signature = digest_of(system.signature())
    plan = plan_of(config, tasks, journal.entries, signature, concurrency, folder.images)
    return _Worker(config, system, journal, plan)


def _check_prices(workers: Sequence[_Worker]) -> None:
    for worker in workers:
        plan, config = worker.plan, worker.config
        if plan.todo and plan.cost_usd is None and config.price is None:
            raise GenerationError(
                f"system {config.name!r} has no known price, so that no budget can be kept: give "
                "it one, such as price: {usd_per_image: 0, as_of: 2026-03-02} for a local model"
            )


def _looked_for(worker: _Worker) -> Retired | _End | None:
    """What keeps a system from being run: its model is gone, or it cannot be found out."""
    if not worker.plan.todo:
        return None
    try:
        return worker.system.preflight()
    except EchoError as error:
        return _End(str(error))
    except Exception as error:
        said = without_secrets(" ".join(str(error).split()))
        return _End(
            f"system {worker.config.name!r} cannot be looked for ({type(error).__name__}: {said}): "
            "fix that, or choose other systems with --systems"
        )


def _run_all(
    workers: Sequence[_Worker],
    folder: RunFolder,
    budget_usd: float | None,
    watch: ProgressListener,
) -> list[_End]:
    """Runs the systems one after the other, and writes the table of outputs."""
    outputs_table(folder.root)  # what is damaged is told before anything is spent
    found = [_looked_for(worker) for worker in workers]
    ends = list[_End]()
    try:
        for worker, one in zip(workers, found, strict=True):
            spent = sum(end.cost_usd or 0.0 for end in ends)
            left = None if budget_usd is None else budget_usd - spent
            ends.append(_run(worker, one, folder, left, watch))
        return ends
    finally:
        write_outputs(folder.root)
        for system, counts in not_tabled(folder.root).items():
            for reason, count in counts.items():
                said = f"{count:,} outputs not in the table, {reason}: {reason.meaning}"
                watch.noticed(f"{system}: {said}")


def _run(
    worker: _Worker,
    retired: Retired | _End | None,
    folder: RunFolder,
    budget_usd: float | None,
    watch: ProgressListener,
) -> _End:
    if isinstance(retired, _End):
        watch.noticed(f"{worker.config.name} was stopped")
        return retired
    signature, limits = _signature(worker, retired), worker.config.limits
    is_free = worker.config.usd_per_image == 0  # what its files say was paid when they were made
    left = None if is_free else budget_usd
    given, plan = Generations(worker.config.name), worker.plan
    unstated = plan.cost_usd / len(plan.todo) if plan.cost_usd and plan.todo else 0.0
    drawing = GenerationRun(
        worker.system,
        worker.journal,
        folder.images,
        limits,
        signature,
        watch,
        given,
        left,
        unstated,
    )
    end = _End()
    if retired is not None:
        drawing.retire(plan.todo, retired)
    else:
        stopped = _drawn(drawing, plan)
        is_known = drawing.spent_usd or any(one.cost_usd is not None for one in given.entries)
        cost_usd = drawing.spent_usd if is_known and not is_free else None
        end = _End(stopped, cost_usd, drawing.is_spent and len(given.entries) < len(plan.todo))
    if given.entries:
        logger.info("system %s", given, extra=TOLD)
        watch.finished(given)
    for said in given.failures():
        watch.noticed(said)
    if end.stopped:  # why, the error at the end says
        watch.noticed(f"{worker.config.name} was stopped")
    return end


def _signature(worker: _Worker, retired: Retired | None) -> str:
    """What the outputs to come are written down under."""
    last = worker.journal.current
    if retired is not None and last is not None:
        return last
    return worker.journal.sign(worker.system.signature(), worker.system.determinism)


def _drawn(drawing: GenerationRun, plan: GenerationPlan) -> str | None:
    """Has a system draw its tasks; says what stopped it."""
    try:
        with drawing.system:
            entries = drawing.run(plan.todo)
    except EchoError as error:  # the other systems go on
        return str(error)
    if entries and not plan.stored and all(one.outcome == Outcome.FAILED for one in entries):
        return str(broken(plan.system, f"all {len(entries)} tasks failed", entries[-1]))
    return None


def _outcomes(worker: _Worker, tasks: Sequence[Task]) -> Mapping[Outcome, int]:
    journal = worker.journal
    entries = (journal.entries.get(task.sample_id) for task in tasks)
    return Counter(one.outcome for one in entries if one and one.signature == journal.current)


KEY_OPTION = "api_key_env"


@dataclass(frozen=True)
class SystemListing:
    config: SystemConfig
    file: Path | None
    known: bool
    extra: str | None
    keys: Mapping[str, bool]
    no_folder: str | None
    usd_per_image: float | None
    determinism: str | None = None


def list_systems(
    config: Path | str | None = None, environment: Mapping[str, str] = os.environ
) -> list[SystemListing]:
    """The systems that a config names, or those that echo-hf brings."""
    needs = adapter_needs()
    found = [_listed(one, file, needs, environment) for one, file in _systems(config)]
    if config is None:
        return found
    return [replace(one, determinism=_determinism(one.config)) for one in found]


def _determinism(config: SystemConfig) -> str | None:
    try:
        return make_system(config).determinism
    except EchoError:  # what is missing is told beside it
        return None


def _systems(config: Path | str | None) -> Iterable[tuple[SystemConfig, Path | None]]:
    if config is not None:
        return [(one, None) for one in load_evaluation(config).systems]
    return [(read_system(file), file) for file in shipped_systems()]


def _listed(
    config: SystemConfig,
    file: Path | None,
    needs: Mapping[str, Needs],
    environment: Mapping[str, str],
) -> SystemListing:
    parts = [needs[name] for name in _adapters(config) if name in needs]
    missing = sorted({one.extra for one in parts if one.extra and one.missing})
    keys = dict.fromkeys(_keys(config, needs))
    return SystemListing(
        config=config,
        file=file,
        known=config.adapter in needs,
        extra=",".join(missing) or None,
        keys={name: bool(environment.get(name, "").strip()) for name in keys},
        no_folder=_no_folder(config),
        usd_per_image=config.usd_per_image,
    )


def _no_folder(config: SystemConfig) -> str | None:
    folder = config.parameters.get(OWN_FOLDER)
    return Path(folder).name if isinstance(folder, str) and not Path(folder).is_dir() else None


def _adapters(config: SystemConfig) -> Iterator[str]:
    yield config.adapter
    yield from (str(one["adapter"]) for one in _mappings(config.parameters) if "adapter" in one)


def _keys(config: SystemConfig, needs: Mapping[str, Needs]) -> Iterator[str]:
    """Environment variables of keys: those that are named, else those that adapters ask for."""
    own = needs.get(config.adapter, Needs()).key
    yield from _key_of(config.parameters, own)
    for one in _mappings(config.parameters):
        yield from _key_of(one, needs.get(str(one.get("adapter")), Needs()).key)


def _key_of(options: Mapping[str, Any], default: str | None) -> Iterator[str]:
    name = options.get(KEY_OPTION, default)
    if name is not None:
        yield str(name)


def _mappings(options: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for value in options.values():
        if isinstance(value, Mapping):
            yield value
            yield from _mappings(value)
        elif isinstance(value, list | tuple):
            yield from _mappings({"": dict(enumerate(value))})
