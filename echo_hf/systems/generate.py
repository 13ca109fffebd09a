"""Run systems over a benchmark (ECHO section 5), and list the systems that there are."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from echo_hf.config.evaluation import Evaluated, Evaluation
from echo_hf.config.systems import OWN_FOLDER, SystemConfig, read_system, shipped_systems
from echo_hf.engines.planner import Expected
from echo_hf.errors import ConfigError, EchoError, GenerationError, MissingExtraError, unknown
from echo_hf.pipeline.progress import NullProgress, ProgressListener
from echo_hf.pipeline.runner import runner_of
from echo_hf.pipeline.runs import run_folder
from echo_hf.reasons import NoTask, NotTabled, Outcome
from echo_hf.systems.base import System, Task
from echo_hf.systems.benchmark import benchmark_of, load_evaluation
from echo_hf.systems.journal import FILE, locked, not_tabled, outputs_table, write_outputs
from echo_hf.systems.registry import (
    Needs,
    adapter_needs,
    expected_images,
    make_system,
    mappings,
    price_of,
)
from echo_hf.systems.runner import GenerationPlan, SystemRun


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


def generate(
    config: Evaluated | Path | str,
    *,
    runs: Path | str | None = None,
    systems: Sequence[str] | None = None,
    limit: int | None = None,
    dry_run: bool = False,
    again: bool = False,
    watch: ProgressListener | None = None,
) -> Generated:
    """Has systems draw the tasks of a benchmark; what is drawn already is not drawn again."""
    how: dict[str, Any] = {"dry_run": dry_run, "again": again, "watch": watch}
    made = drawn_outputs(config, runs, systems, limit, **how)
    if made.stopped:
        raise GenerationError("; ".join(made.stopped))
    return made


def drawn_outputs(
    config: Evaluated | Path | str,
    runs: Path | str | None = None,
    systems: Sequence[str] | None = None,
    limit: int | None = None,
    *,
    dry_run: bool = False,
    budget_usd: float | None = None,
    again: bool = False,
    watch: ProgressListener | None = None,
) -> Generated:
    """Has systems draw; what stopped one of them stands beside what the others made."""
    config = load_evaluation(config)
    if limit is not None and limit < 1:
        raise ConfigError(f"limit is {limit!r}: expected 1 or more, or none for all samples")
    made, missing = _made(config, systems)
    if not made and not dry_run:
        raise GenerationError("; ".join(missing.values()))
    watch, folder = watch or NullProgress(), run_folder(config, runs)
    benchmark = benchmark_of(config, folder)
    with ExitStack() as stack:
        if not dry_run:
            stack.enter_context(locked(folder.root, [one.name for one, _ in made]))
            if isinstance(config, Evaluation):
                folder.save_config(config)
            folder.enter()
            runner = stack.enter_context(runner_of(config.runner, folder.root, watch))
            for own in (getattr(system, "work_at", None) for _, system in made):
                if own is not None and (places := runner.places()) is not None:
                    own(places)
        elif not folder.root.exists():  # a plan leaves nothing there
            aside = stack.enter_context(TemporaryDirectory())
            benchmark = replace(benchmark, cache=Path(aside))
        tasks = benchmark.tasks(None if dry_run else folder.images, limit)
        works = list[SystemRun]()
        for one, system in made:
            try:
                works.append(SystemRun(one, system, folder, tasks.tasks, again=again))
            except GenerationError as error:  # its files cannot be read: the others go on
                missing[one.name] = str(error)
        for work in works:
            is_unknown = work.plan.cost_usd is None and price_of(work.config) is None
            if budget_usd is not None and is_unknown and work.plan.todo:
                raise GenerationError(
                    f"system {work.config.name!r} has no known price, so that no budget can be "
                    "kept: give it one, such as price: {usd_per_image: 0, as_of: 2026-03-02} for "
                    "a local model"
                )
        plans = [work.plan for work in works]
        for one in config.systems if dry_run else ():
            if one.name in missing:  # what it would cost, before anything is installed for it
                expected = expected_images(one, tasks.tasks)
                plans.append(GenerationPlan(one.name, tasks.tasks, 0, 0, expected))
        for planned in plans:
            watch.started(planned.system, len(planned.todo), planned)
        for reason, count in sorted(tasks.left_out.items()):
            watch.noticed(f"{count:,} samples left out, {reason}: {reason.meaning}")
        for name in missing:
            watch.noticed(f"{name} was stopped")
        if not dry_run:
            _run_all(works, folder.root, budget_usd, watch)
    stopped = [f"{said}; its {len(tasks.tasks):,} tasks wait" for said in missing.values()]
    stopped += [work.stopped for work in works if work.stopped]
    costs = [work.cost_usd for work in works if work.cost_usd is not None]
    outcomes = dict[str, Mapping[Outcome, int]]()
    for work in () if dry_run else works:
        entries = (work.journal.entries.get(task.sample_id) for task in tasks.tasks)
        ours = [one for one in entries if one and one.signature == work.journal.current]
        outcomes[work.config.name] = Counter(one.outcome for one in ours)
    return Generated(
        path=None if dry_run else folder.root / FILE,
        plans=tuple(plans),
        outcomes=outcomes,
        cost_usd=sum(costs) if costs else None,
        left_out=tasks.left_out,
        not_tabled={} if dry_run else not_tabled(folder.root),
        stopped=tuple(stopped),
        spent=any(work.is_short for work in works),
    )


def _made(
    config: Evaluated, names: Sequence[str] | None
) -> tuple[list[tuple[SystemConfig, System]], dict[str, str]]:
    """The systems that are chosen, and what to install for those that cannot be made."""
    by_name = {system.name: system for system in config.systems}
    if not by_name:
        raise ConfigError(
            f"config {config.name!r} names no systems: add some, for example "
            "`systems: [systems/flux_kontext.yaml]`; `echo-hf systems` lists those that are there"
        )
    made, missing = list[tuple[SystemConfig, System]](), dict[str, str]()
    if strange := next((name for name in names or () if name not in by_name), None):
        raise ConfigError(unknown("system", strange, by_name, "--systems"))
    for name in dict.fromkeys(names or by_name):
        try:
            made.append((by_name[name], make_system(by_name[name])))
        except MissingExtraError as error:  # the other systems go on
            missing[name] = str(error)
    return made, missing


def _run_all(
    works: Sequence[SystemRun], root: Path, budget_usd: float | None, watch: ProgressListener
) -> None:
    outputs_table(root)  # what is damaged is told before anything is spent
    found = [work.preflight() for work in works]
    try:
        for work, retired in zip(works, found, strict=True):
            work.run(retired, budget_usd, watch)
            if budget_usd is not None:
                budget_usd -= work.cost_usd or 0.0
    finally:
        write_outputs(root)
        for system, counts in not_tabled(root).items():
            for reason, count in counts.items():
                said = f"{count:,} outputs not in the table, {reason}: {reason.meaning}"
                watch.noticed(f"{system}: {said}")


# What a listing says the price of: a drawing from a few words.
EXAMPLE = Task("example", "", "text_to_image", "A fox in the snow, drawn with a pencil")


@dataclass(frozen=True)
class SystemListing:
    """A system, and what is missing for it."""

    config: SystemConfig
    file: Path | None
    known: bool
    extra: str | None
    keys: Mapping[str, bool]
    no_folder: str | None
    image: Expected
    determinism: str | None = None


def list_systems(
    config: Path | str | None = None, environment: Mapping[str, str] = os.environ
) -> list[SystemListing]:
    """The systems that a config names, or those that echo-hf brings."""
    needs = adapter_needs()
    if config is None:
        shipped = ((file, read_system(file)) for file in shipped_systems())
        return [_listed(one, file, needs, environment) for file, one in shipped]
    found = list[SystemListing]()
    for one in load_evaluation(config).systems:
        listed = _listed(one, None, needs, environment)
        with suppress(EchoError):  # what is missing is told beside it
            listed = replace(listed, determinism=make_system(one).determinism)
        found.append(listed)
    return found


def _listed(
    config: SystemConfig,
    file: Path | None,
    needs: Mapping[str, Needs],
    environment: Mapping[str, str],
) -> SystemListing:
    """A system with what is missing, whatever of it stands in its parameters."""
    missing, keys = set[str](), dict[str, bool]()
    for options in mappings({**config.parameters, "adapter": config.adapter}):
        need = needs.get(str(options.get("adapter")), Needs())
        if need.extra and need.missing:
            missing.add(need.extra)
        # The variable that is named, else the one that the adapter asks for.
        if (name := options.get("api_key_env", need.key)) is not None:
            keys[str(name)] = bool(environment.get(str(name), "").strip())
    folder = config.parameters.get(OWN_FOLDER)
    is_lost = isinstance(folder, str) and not Path(folder).is_dir()
    return SystemListing(
        config=config,
        file=file,
        known=config.adapter in needs,
        extra=",".join(sorted(missing)) or None,
        keys=keys,
        no_folder=Path(str(folder)).name if is_lost else None,
        image=expected_images(config, [EXAMPLE]),
    )
