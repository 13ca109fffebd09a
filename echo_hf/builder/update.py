"""Build from the current posts; explain why stages would run again, and what they would ask."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
from datasets import Dataset

from echo_hf._infra.atomic import find_complete, replace_folder
from echo_hf.builder.build import BuildRun, list_asking_stages, open_run
from echo_hf.builder.checks import ChecksResult, check_complaints
from echo_hf.collect.crawl_ledger import CRAWL_LEDGER_FILE
from echo_hf.collect.records import read_records
from echo_hf.config.loading import Config, load_config
from echo_hf.engines.base import Engine, Packing, Text, check_installed, check_vision
from echo_hf.engines.memory import check_gpu_memory
from echo_hf.engines.planner import (
    NO_WORK,
    TOKENS_PER_IMAGE,
    ZERO,
    ExpectedCost,
    Range,
    RequestPlan,
    estimate_calls,
    estimate_tokens,
)
from echo_hf.engines.prices import read_price_list
from echo_hf.errors import RunError, StageError
from echo_hf.hub.manifest import MANIFEST
from echo_hf.hub.release import Release, is_complete
from echo_hf.judging.judge import choose_judges
from echo_hf.pipeline.batch_inference import plan_packings
from echo_hf.pipeline.progress import ProgressListener
from echo_hf.pipeline.result import StageStats
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.pipeline.stage import ModelStage
from echo_hf.pipeline.stage_order import list_stages_through
from echo_hf.pipeline.trial import Trial, send_trial, take_requests

BACKUP_FOLDER = "release-before"
FILES_FIELD = "files"
MAX_VALUE_CHARACTERS = 120
SHARE_FACTOR = 2  # estimates from other posts may be off by this factor
WAYS = ("plain", "packed", "batched", "both")
USUAL_POSTS_PER_REQUEST = 16
TOKENS_PER_NUMBER = 4  # of a post and of its answer, where several are asked about in one request
SHARE_BASIS = "calls by the share of the bundled corpus, half to twice"


@dataclass(frozen=True)
class UpdateResult:
    release: Release
    changed: bool
    previous: Path | None
    stats: tuple[StageStats, ...]
    checks: ChecksResult | None = None  # null where the config keeps none up, or nobody is asked

    @property
    def calls_made(self) -> int:
        """The number of calls, second tries included."""
        return sum(stats.fill.calls for stats in self.stats)

    @property
    def reused_answers(self) -> int:
        """The number of reused answers of earlier runs, by stages with new or changed rows."""
        return sum(stats.fill.store_hits for stats in self.stats)


def update(
    config: Config | Path | str,
    *,
    runs: Path | str | None = None,
    offline: bool = False,
    with_responses: bool = False,
    allow_empty: bool = False,
    again: bool = False,
    keep_going: bool = False,
    runner: str | None = None,
    checks: bool = True,
    watch: ProgressListener | None = None,
) -> UpdateResult:
    """Build a benchmark from the current posts, and keep the release before it.

    With `checks` those of a config with such a section are kept up as well, and the release has
    them; not if offline.
    """
    config = load_config(config).run_by(runner)
    asking: dict[str, Any] = {"again": again, "keep_going": keep_going, "watch": watch}
    writing = {"with_responses": with_responses, "allow_empty": allow_empty}
    keeps_checks = checks and config.checks is not None and not offline
    if keeps_checks and config.checks is not None:  # before anything is paid for
        choose_judges(config, config.checks.judges or None, "answer")
    checked: ChecksResult | None = None
    with open_run(config, runs, offline=offline, **asking) as run:
        results, folder = list(run.results(run.stages[-1])), run.folder
        # A complete copy is from a killed update, and is still the previous release.
        backup = folder.cache / BACKUP_FOLDER
        if not is_complete(backup):
            shutil.rmtree(backup, ignore_errors=True)
            if is_complete(folder.release):
                # Hard links: the files stay when the release is replaced.
                shutil.copytree(find_complete(folder.release), backup, copy_function=_link)
        try:
            release = run.release(results, **writing)
        except Exception:
            shutil.rmtree(backup, ignore_errors=True)
            raise
        if not keeps_checks:
            changed, previous = _keep_previous(folder, release)
    if keeps_checks:  # the models of the stages have left the memory
        checked = check_complaints(config, runs=runs, **asking)
        with open_run(config, runs, offline=True) as run:
            if checked.checks != checked.before:
                release = run.release(list(run.results(run.stages[-1])), **writing)
            changed, previous = _keep_previous(folder, release)
    stats = tuple(result.stats for result in results)
    return UpdateResult(release, changed, previous, stats, checked)


def _keep_previous(folder: RunFolder, release: Release) -> tuple[bool, Path | None]:
    """Return whether a release differs from the one before, and the folder where that is kept."""
    backup, previous = folder.cache / BACKUP_FOLDER, None
    before = (backup / MANIFEST).read_bytes() if backup.exists() else None
    changed = before != (release.path / MANIFEST).read_bytes()
    if changed and before is not None:
        with replace_folder(folder.previous) as partial:
            shutil.copytree(backup, partial, copy_function=_link, dirs_exist_ok=True)
        previous = folder.previous
    shutil.rmtree(backup, ignore_errors=True)
    return changed, previous


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # a file system without hard links
        shutil.copy2(source, target)


class StageDifference(NamedTuple):
    """A difference that makes its stage and all after it run again."""

    stage: str
    field: str  # a path such as `engine.model`; `files` and a name; `result` where there is none
    before: str  # as JSON, or how long it is
    now: str
    extent: str  # which stages run again

    @property
    def sentence(self) -> str:
        """The change, and how many stages run again, in one line."""
        if self.field == "result":
            change_text = f"{self.stage} has not run yet"
        elif self.field.startswith(f"{FILES_FIELD}."):
            change_text = f"{self.field.removeprefix(f'{FILES_FIELD}.')} changed"
        else:
            change_text = f"{self.stage}: {self.field} changed"
        return f"{change_text}: {self.extent}"


def explain_changes(run: BuildRun, stage: str | None = None) -> list[StageDifference]:
    """Return what would make stages run again; nothing is run."""
    changes: list[StageDifference] = []
    last_stage = (list_asking_stages(run.config) if run.config.shard else run.stages)[-1]
    for name in list_stages_through(run.stages, stage or last_stage):
        count = len(run.stages) - run.stages.index(name)
        extent = f"{count} stages, from {name!r} on" if count > 1 else f"{name!r} alone"
        extent = extent if count < len(run.stages) else f"all {count} stages"
        record = run.folder.read_record(name)
        if record is None:
            changes += [] if changes else [StageDifference(name, "result", "", "", extent)]
            continue
        recorded, current = _flatten(record.describe), _flatten(run.describe(name))
        for path in sorted({*recorded, *current}):
            old, new = recorded.get(path), current.get(path)
            if old != new:
                changes.append(StageDifference(name, path, _format(old), _format(new), extent))
    return changes


def _flatten(description: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten a description to values by their paths; files are listed by their names."""
    files: dict[str, list[Any]] = {}
    for file in description.get(FILES_FIELD, ()):
        files.setdefault(file.get("name") or file["source"], []).append(sorted(file.items()))
    values: dict[str, Any] = {}
    pending: list[tuple[str, Any]] = [("", {**description, FILES_FIELD: files})]
    while pending:
        path, value = pending.pop()
        if isinstance(value, Mapping) and value:
            prefix = f"{path}." if path else ""
            pending += [(f"{prefix}{name}", child) for name, child in value.items()]
        else:
            values[path] = value
    return values


def _format(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= MAX_VALUE_CHARACTERS else f"{len(text):,} characters"


@dataclass(frozen=True)
class PlannedStage:
    """The calls that one stage will make; `todo` is estimated, or null, where not `counted`.

    `ways` is the price of the same work by how it could be asked: `plain`, `packed`, with several
    posts in a request, `batched`, and `both`; each null where nobody knows it.
    """

    stage: str
    todo: int | None
    stored: int
    counted: bool  # from the real input
    expected: ExpectedCost
    prompt_tokens: int | None = 0
    answer_tokens: int | None = 0
    ways: Mapping[str, Range | None] = field(default_factory=dict)
    posts_per_request: int = 1  # of the way `packed`


def plan_build(
    config: Config | Path | str, *, runs: Path | str | None = None
) -> tuple[int, tuple[PlannedStage, ...]]:
    """Return the number of posts of a build, and what each stage with a model would ask."""
    with open_run(config, runs, writes=False) as run:
        engine_names = sorted(filter(None, map(run.config.stages.get_engine, run.stages)))
        check_gpu_memory({name: run.config.engines[name] for name in engine_names})
        changes = explain_changes(run)
        first_number = run.stages.index(changes[0].stage) if changes else len(run.stages)
        if first_number:
            posts = pq.read_metadata(_kept_file(run, run.stages[0])).num_rows
        else:
            posts = len(read_records(run.config.posts, run.folder.root / CRAWL_LEDGER_FILE))
        planned_stages = [
            plan_stage(run, name, engine, posts, counted=number == first_number)
            for number, name in enumerate(run.stages)
            if posts and number >= max(first_number, 1) and (engine := run.engine(name)) is not None
        ]
    return posts, tuple(planned_stages)


def _kept_file(run: BuildRun, stage: str) -> str:
    return str(run.folder.stage_folder(stage) / "kept.parquet")


def plan_stage(
    run: BuildRun, name: str, engine: Engine, posts: int, *, counted: bool
) -> PlannedStage:
    """Plan a stage from its own input where that is to be `counted`, else by shares of posts."""
    stage = run.stage(name)
    if not isinstance(stage, ModelStage) or not engine.stored:  # answers that cost nothing
        return PlannedStage(name, 0, 0, counted, NO_WORK, ways=dict.fromkeys(WAYS, ZERO))
    own_size = getattr(stage, "posts_per_request", 1)
    size = own_size if own_size > 1 else USUAL_POSTS_PER_REQUEST
    packing, share = stage.make_packing(size), read_price_list()["stages"].get(name)
    if counted:
        input_path = _kept_file(run, run.stages[run.stages.index(name) - 1])
        dataset = Dataset.from_parquet(input_path, cache_dir=str(run.folder.cache))
        with closing(run.folder.open_store()) as store:
            stage = stage.prepared(dataset, offline=True, watch=run.watch)
            alone, packed = plan_packings(stage, dataset, engine, store, [None, packing])
    elif share is None:  # of another package
        return PlannedStage(name, None, 0, False, ExpectedCost(), None, None)
    else:
        alone, packed = _plan_by_share(stage, posts, share, packing)
    if share is not None:
        answer, count = share["answer"], alone.calls
        alone = replace(alone, answers=count, answer_tokens=count * answer)
        answer += TOKENS_PER_NUMBER if packing else 0
        packed = replace(packed, answers=count, answer_tokens=count * answer)
    costs = [estimate_calls(engine, plan) for plan in (alone, packed)]
    if not counted and alone.calls:
        costs = [_widen(cost) for cost in costs]
    plan, expected = (packed, costs[1]) if own_size > 1 else (alone, costs[0])
    prices = [*((cost.plain_usd or cost.usd) for cost in costs)]
    prices += [cost.batch_usd or price for cost, price in zip(costs, prices, strict=True)]
    tokens, size = (plan.prompt_tokens, plan.answer_tokens), size if packing else 1
    ways = dict(zip(WAYS, prices, strict=True))
    return PlannedStage(name, plan.calls, plan.stored, counted, expected, *tokens, ways, size)


def _plan_by_share(
    stage: ModelStage, posts: int, share: Mapping[str, float], packing: Packing | None
) -> tuple[RequestPlan, RequestPlan]:
    """Return what a stage may ask about so many posts, alone and as it could be packed."""
    calls = round(posts * share["calls"])
    images = round(calls * share["images"])
    tokens = round(calls * share["text"]) + images * TOKENS_PER_IMAGE
    alone = RequestPlan(requests=calls, prompt_tokens=tokens, images=images)
    if packing is None:
        return alone, alone
    instructions = sum(
        estimate_tokens(part.text) for part in packing.instructions.parts if isinstance(part, Text)
    )
    requests = -(-calls // packing.size)
    quoted = share["text"] - estimate_tokens(stage.prompt.text) + TOKENS_PER_NUMBER
    tokens = requests * instructions + round(calls * max(quoted, TOKENS_PER_NUMBER))
    return alone, RequestPlan(requests=requests, prompt_tokens=tokens)


def _widen(cost: ExpectedCost) -> ExpectedCost:
    """Widen what was estimated from the shares of other posts."""
    names = ("usd", "seconds", "plain_usd", "batch_usd")
    amounts = {name: getattr(cost, name) for name in names}
    ranges = {name: amount and amount.expand(SHARE_FACTOR) for name, amount in amounts.items()}
    basis = "; ".join(filter(None, (SHARE_BASIS, cost.basis)))
    return replace(cost, **ranges, basis=basis)


def try_stage(config: Config | Path | str, name: str, *, runs: Path | str | None = None) -> Trial:
    """Send the first request of a stage, and store nothing of it."""
    with open_run(config, runs, writes=False) as run:
        earlier = list_stages_through(run.stages, name)[:-1]
        stage, engine = run.stage(name), run.engine(name)
        if not isinstance(stage, ModelStage) or engine is None:
            asking = [step for step in run.stages if run.config.stages.get_engine(step)]
            raise StageError(f"stage {name!r} asks no model: expected {', '.join(asking)}")
        check_installed(run.config.engines[str(run.config.stages.get_engine(name))].kind)
        if stage.sends_images:
            check_vision(engine, f"stage {name!r}")
        last = earlier[-1]
        advice = f"run `echo-hf build` with --until {last} on this config first"
        if not Path(_kept_file(run, last)).exists():
            raise RunError(f"nothing in {str(run.folder.root)!r} to ask {name!r} about: {advice}")
        dataset = Dataset.from_parquet(_kept_file(run, last), cache_dir=str(run.folder.cache))
        stage = stage.prepared(dataset, offline=True, watch=run.watch)
        requests = take_requests(stage, dataset, engine, 1)
        if not requests:
            raise RunError(
                f"of {len(dataset):,} rows that {last!r} kept, {name!r} asks about none: "
                "expected one to try it on"
            )
        return send_trial(stage, requests[0], engine, f"stage {name!r}")
