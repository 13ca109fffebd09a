"""Run systems over a benchmark (ECHO section 5), and list the available systems."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from echo_hf.config.evaluation import EvaluationBase
from echo_hf.config.systems import (
    FOLDER_KEY,
    MAX_OUTPUTS,
    SystemConfig,
    list_shipped_systems,
    read_system,
)
from echo_hf.engines.planner import ExpectedCost
from echo_hf.errors import ConfigError, EchoError, GenerationError, MissingExtraError, unknown
from echo_hf.pipeline.progress import NullProgress, ProgressListener
from echo_hf.pipeline.runner import make_runner
from echo_hf.systems.base import System, Task
from echo_hf.systems.benchmark import NoTask, load_evaluation
from echo_hf.systems.evaluation_run import EvaluationRun, RunOrConfig
from echo_hf.systems.journal import (
    OUTPUTS_FILE,
    NotTabled,
    build_outputs_table,
    count_untabled,
    lock_systems,
    read_kept,
    write_outputs,
)
from echo_hf.systems.registry import (
    AdapterRequirements,
    adapter_requirements,
    estimate_cost,
    get_price,
    iterate_mappings,
    make_system,
)
from echo_hf.systems.runner import GenerationPlan, SystemRun, list_draws
from echo_hf.tables import Outcome


@dataclass(frozen=True)
class GenerationSummary:
    path: Path | None
    plans: tuple[GenerationPlan, ...]
    outcomes: Mapping[str, Mapping[Outcome, int]]
    cost_usd: float | None
    left_out: Mapping[NoTask, int]
    not_tabled: Mapping[str, Mapping[NotTabled, int]] = field(default_factory=dict)
    stopped: tuple[str, ...] = ()
    spent: bool = False


def generate(
    config: RunOrConfig,
    *,
    runs: Path | str | None = None,
    systems: Sequence[str] | None = None,
    limit: int | None = None,
    outputs: int | None = None,
    dry_run: bool = False,
    again: bool = False,
    watch: ProgressListener | None = None,
) -> GenerationSummary:
    """Let systems draw the tasks of a benchmark; outputs that exist are not drawn again."""
    options: dict[str, Any] = {"dry_run": dry_run, "again": again, "watch": watch}
    options["outputs"] = outputs
    summary = generate_outputs(config, runs, systems, limit, **options)
    if summary.stopped:
        raise GenerationError("; ".join(summary.stopped))
    return summary


def generate_outputs(
    config: RunOrConfig,
    runs: Path | str | None = None,
    systems: Sequence[str] | None = None,
    limit: int | None = None,
    *,
    outputs: int | None = None,
    dry_run: bool = False,
    budget_usd: float | None = None,
    again: bool = False,
    watch: ProgressListener | None = None,
) -> GenerationSummary:
    """Let systems draw; a system that stops does not stop the others.

    Of samples in parts of the run, such as carried ones, each system draws one output.
    """
    run = EvaluationRun.from_config(config, runs)
    config, folder = run.config, run.folder
    if outputs is not None and not 1 <= outputs <= MAX_OUTPUTS:
        raise ConfigError(f"outputs is {outputs!r}: expected 1 to {MAX_OUTPUTS} of each sample")

    def count_outputs(settings: SystemConfig) -> int:
        return outputs or settings.outputs or config.outputs

    if limit is not None and limit < 1:
        raise ConfigError(f"limit is {limit!r}: expected 1 or more, or none for all samples")
    chosen, missing = _make_systems(config, systems)
    if not chosen and not dry_run:
        raise GenerationError("; ".join(missing.values()))
    watch, _ = watch or NullProgress(), run.benchmark
    with ExitStack() as stack:
        if not dry_run:
            names = [settings.name for settings, _ in chosen]
            stack.enter_context(lock_systems(folder.root, names))
            run.prepare().log_entry()
            for part in run.parts:
                stack.enter_context(lock_systems(part.folder.root, names))
            runner = stack.enter_context(make_runner(config.runner, folder.root, watch))
            for _, system in chosen:
                # Only local models can work at other places, where the runner has some.
                work_at = getattr(system, "work_at", None)
                if work_at is not None and (places := runner.make_workers()) is not None:
                    work_at(places)
        tasks = run.read_tasks(limit)
        beside = [(part, part.read_tasks(limit)) for part in run.parts]
        # Also where nothing is drawn: what was drawn of them before is in no plan.
        revealed = run.read_revealed(tasks)
        kept = [read_kept(part.folder.root) for part, _ in beside]
        groups = list[list[SystemRun]]()
        for settings, system in chosen:
            try:
                options: dict[str, Any] = {"retry": again}
                counted = {**options, "outputs": count_outputs(settings)}
                first = SystemRun(settings, system, folder, tasks.tasks, kept=revealed, **counted)
                group = [first]
                for (part, others), rows in zip(beside, kept, strict=True):
                    own: dict[str, Any] = {"main": first, "part": part.part, "kept": rows}
                    own |= options
                    group.append(SystemRun(settings, system, part.folder, others.tasks, **own))
                groups.append(group)
            except GenerationError as error:  # its files cannot be read; the others go on
                missing[settings.name] = str(error)
        works = [work for group in groups for work in group]
        for work in works:
            is_batched = getattr(work.system, "is_batched", False)  # at a share of the price
            has_price = get_price(work.config) is not None and not is_batched
            is_unknown = work.plan.cost_usd is None and not has_price
            if budget_usd is not None and is_unknown and work.plan.todo:
                raise GenerationError(
                    f"system {work.config.name!r} has no known price, so that no budget can be "
                    "kept: give it one, such as price: {usd_per_image: 0, as_of: 2026-03-02} for "
                    f"a local model{', and batch.price_share' if is_batched else ''}"
                )
        plans = [work.plan for work in works]
        for settings in config.systems if dry_run else ():
            if settings.name in missing:  # its price is known before its packages are installed
                own_tasks = list_draws(tasks.tasks, count_outputs(settings))
                expected = estimate_cost(settings, own_tasks)
                plans.append(GenerationPlan(settings.name, own_tasks, 0, 0, expected))
                for part, others in beside:
                    expected = estimate_cost(settings, others.tasks)
                    values = (settings.name, others.tasks, 0, 0, expected)
                    plans.append(GenerationPlan(*values, part=part.part))
        for plan in plans:
            watch.report_start(plan.label, len(plan.todo), plan)
        for part_run, part_tasks in ((run, tasks), *beside):
            place = f" ({part_run.part})" if part_run.part else ""
            for reason, count in sorted(part_tasks.left_out.items()):
                notice = f"{count:,} samples left out{place}, {reason}: {reason.meaning}"
                watch.report_notice(notice)
            for notice in part_run.notices:
                watch.report_notice(notice)
        for name in missing:
            watch.report_notice(f"{name} was stopped")
        if not dry_run:
            _run_systems(groups, run, budget_usd, watch)
    stopped = [f"{reason}; its {len(tasks.tasks):,} tasks wait" for reason in missing.values()]
    stopped += dict.fromkeys(work.stopped for work in works if work.stopped)
    costs = [work.cost_usd for work in works if work.cost_usd is not None]
    outcomes = dict[str, Mapping[Outcome, int]]()
    for work, *_ in () if dry_run else groups:
        entries = (work.journal.entries.get(task.output_key) for task in work.tasks)
        current = [entry for entry in entries if entry and entry.signature == work.journal.current]
        outcomes[work.config.name] = Counter(entry.outcome for entry in current)
    return GenerationSummary(
        path=None if dry_run else folder.root / OUTPUTS_FILE,
        plans=tuple(plans),
        outcomes=outcomes,
        cost_usd=sum(costs) if costs else None,
        left_out=tasks.left_out,
        not_tabled={} if dry_run else count_untabled(folder.root),
        stopped=tuple(stopped),
        spent=any(work.is_short for work in works),
    )


def _make_systems(
    config: EvaluationBase, names: Sequence[str] | None
) -> tuple[list[tuple[SystemConfig, System]], dict[str, str]]:
    """Make the chosen systems; of those that lack packages, return what to install."""
    by_name = {system.name: system for system in config.systems}
    if not by_name:
        raise ConfigError(
            f"config {config.name!r} names no systems: add some, for example "
            "`systems: [systems/flux_kontext.yaml]`; `echo-hf systems` lists those that are there"
        )
    systems, missing = list[tuple[SystemConfig, System]](), dict[str, str]()
    if unknown_name := next((name for name in names or () if name not in by_name), None):
        raise ConfigError(unknown("system", unknown_name, by_name, "--systems"))
    for name in dict.fromkeys(names or by_name):
        try:
            systems.append((by_name[name], make_system(by_name[name])))
        except MissingExtraError as error:  # the other systems go on
            missing[name] = str(error)
    return systems, missing


def _run_systems(
    groups: Sequence[Sequence[SystemRun]],
    run: EvaluationRun,
    budget_usd: float | None,
    watch: ProgressListener,
) -> None:
    """Run each system over the run and its parts, loaded once."""
    root = run.folder.root
    places = [root, *(part.folder.root for part in run.parts)]
    for place in places:
        build_outputs_table(place)  # a damaged table is found before anything is spent
    asking = [next((work for work in group if work.plan.todo), group[0]) for group in groups]
    retirements = [work.preflight() for work in asking]
    try:
        for group, asked, retired in zip(groups, asking, retirements, strict=True):
            group[0].stopped = asked.stopped
            try:
                with ExitStack() as stack:
                    load = cache(partial(stack.enter_context, group[0].system))
                    for work in group:
                        if work is not group[0] and group[0].stopped:
                            break  # as it has stopped already
                        work.run(retired, budget_usd, watch, load)
                        if budget_usd is not None:
                            budget_usd -= work.cost_usd or 0.0
            except EchoError as error:  # when the system was closed; the other systems go on
                group[0].stopped = str(error)
    finally:
        for place in places:
            write_outputs(place)
        run.write_carried()
        for system, counts in count_untabled(root).items():
            for reason, count in counts.items():
                text = f"{count:,} outputs not in the table, {reason}: {reason.meaning}"
                watch.report_notice(f"{system}: {text}")


# The task for which a listing estimates the price.
EXAMPLE_TASK = Task("example", "", "text_to_image", "A fox in the snow, drawn with a pencil")


@dataclass(frozen=True)
class SystemListing:
    """A system, and what is missing for it."""

    config: SystemConfig
    file: Path | None
    known: bool
    extra: str | None
    keys: Mapping[str, bool]
    no_folder: str | None
    image: ExpectedCost
    determinism: str | None = None


def list_systems(
    config: Path | str | None = None, environment: Mapping[str, str] = os.environ
) -> list[SystemListing]:
    """List the systems of a config, or those that come with echo-hf."""
    needs = adapter_requirements()
    if config is None:
        shipped = ((file, read_system(file)) for file in list_shipped_systems())
        return [_list_system(settings, file, needs, environment) for file, settings in shipped]
    listings = list[SystemListing]()
    for settings in load_evaluation(config).systems:
        listing = _list_system(settings, None, needs, environment)
        with suppress(EchoError):  # the listing says what is missing
            listing = replace(listing, determinism=make_system(settings).determinism)
        listings.append(listing)
    return listings


def _list_system(
    config: SystemConfig,
    file: Path | None,
    needs: Mapping[str, AdapterRequirements],
    environment: Mapping[str, str],
) -> SystemListing:
    """List a system with all that is missing for it or for systems in its parameters."""
    missing, keys = set[str](), dict[str, bool]()
    for options in iterate_mappings({**config.parameters, "adapter": config.adapter}):
        requirements = needs.get(str(options.get("adapter")), AdapterRequirements())
        if requirements.extra and requirements.missing:
            missing.add(requirements.extra)
        # The variable that the config names, or else the adapter's default.
        if (name := options.get("api_key_env", requirements.key)) is not None:
            keys[str(name)] = bool(environment.get(str(name), "").strip())
    folder = config.parameters.get(FOLDER_KEY)
    is_lost = isinstance(folder, str) and not Path(folder).is_dir()
    return SystemListing(
        config=config,
        file=file,
        known=config.adapter in needs,
        extra=",".join(sorted(missing)) or None,
        keys=keys,
        no_folder=Path(str(folder)).name if is_lost else None,
        image=estimate_cost(config, [EXAMPLE_TASK]),
    )
