"""Check how well an engine does each stage, against what careful readers wrote down."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from datasets import Dataset

from echo_hf.apply import run_stage
from echo_hf.check.agreement import addresses_of, check_agreement, root_of
from echo_hf.check.chosen import check_names, chosen_stages, not_checked
from echo_hf.check.gold import Gold
from echo_hf.check.gold_folder import read_gold
from echo_hf.check.gold_lines import Half
from echo_hf.check.gold_posts import read_posts
from echo_hf.check.left_out import left_out
from echo_hf.check.measures import Measure, measured
from echo_hf.check.setting import Setting, setting_of
from echo_hf.check.stages import CHECKS, Material
from echo_hf.config import Config
from echo_hf.config_fields import EngineChoice
from echo_hf.engines.base import Engine
from echo_hf.engines.loaded import Engines
from echo_hf.errors import ConfigError, GoldError, StageError, unknown
from echo_hf.fill_stats import FillStats
from echo_hf.filling import plan
from echo_hf.pipeline import description
from echo_hf.run import RUNS
from echo_hf.run_folder import RunFolder, StageRecord
from echo_hf.stage import ModelStage
from echo_hf.stage_result import StageResult
from echo_hf.steps import stage_class
from echo_hf.store import Store
from echo_hf.watch import Unwatched, Watcher

FOLDER = "check-engine"
HALVES = (*get_args(Half), "all")
TO_TUNE = 'write "half": "tune" into the lines of the threads to look at'
NO_LINE = {
    "tune": TO_TUNE,
    "held_out": "all are of half 'tune'; choose that one, or leave \"half\" out of some threads",
    "all": "write some, or name another folder",
}


@dataclass(frozen=True)
class StageCheck:
    """One stage under one engine.

    Attributes:
        stage: The stage.
        engine: Kind and options of the engine.
        digest: Sha256 of all that decided its answers: prompt, schema, parameters, engine.
        describe: What that was made from.
        measures: How well it did.
        failed: Rows without an answer, by reason.
        fill: Calls, tokens and cost.
    """

    stage: str
    engine: EngineChoice
    digest: str
    describe: Mapping[str, Any]
    measures: tuple[Measure, ...]
    failed: Mapping[str, int]
    fill: FillStats


@dataclass(frozen=True)
class CheckResult:
    """How well an engine does.

    Attributes:
        target: The model that people talk about.
        posts: Where they do.
        half: Which half of the gold.
        gold: Sha256 of its lines.
        threads: How many threads they are about.
        stages: Each stage that was checked.
        notes: What was left out, and why.
    """

    target: str
    posts: str
    half: str
    gold: str
    threads: int
    stages: tuple[StageCheck, ...]
    notes: tuple[str, ...]

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures of all stages, in order."""
        return tuple(measure for one in self.stages for measure in one.measures)


def check_engine(
    config: Config | Path | str | None = None,
    *,
    engine: EngineChoice | None = None,
    gold: Path | str | None = None,
    half: str = "held_out",
    stages: Sequence[str] | None = None,
    errors: bool = False,
    runs: Path | str = RUNS,
    offline: bool = False,
    watch: Watcher | None = None,
) -> CheckResult:
    """Checks how well an engine does each stage, given input without mistakes.

    Args:
        config: Names engines and options of stages, and for `gold` its target; or its file.
        engine: Takes the place of all of the config's engines.
        gold: A folder as `echo_hf/quickstart/gold/README.md` describes; the bundled one when null,
            whose target and posts are its own.
        half: `held_out`, `tune` or `all`.
        stages: Only these, at least one; those that there is gold for when null.
        errors: Keep what was not right in `Measure.errors`; only of the half `tune`.
        runs: Folder of runs; answers are kept in `check-engine/<name of the config>` there.
        offline: Ask no model: what no stored answer covers lowers the coverage.
        watch: Told of each plan and call, and of results by their counts.

    Returns:
        The measures.

    Raises:
        EchoError: The config, the gold or an engine is not usable; the message says how to go on.
    """
    _check_half(half, errors)
    check_names(stages)
    setting = setting_of(config, engine, gold)
    every = read_gold(setting.gold)
    _check_lines(every.of(half), half, setting.gold)
    chosen = chosen_stages(every.of(half), half, stages)
    folder = RunFolder(Path(runs) / FOLDER / setting.config.name)
    with (
        folder.locked(),
        Engines(setting.config.engines) as engines,
        closing(folder.store()) as store,
    ):
        _check_engines(setting.config, chosen, engines)
        given, threads = _material(setting, every, half, folder, watch or Unwatched())
        asking = _Asking(given, engines, store, folder, offline, watch or Unwatched(), errors)
        checked = tuple(asking.check(stage) for stage in chosen)
    notes = (*not_checked(given.gold, half, stages), *left_out(given, chosen))
    digest = _digest(given.gold)
    target = setting.config.target.name
    return CheckResult(target, setting.where, half, digest, threads, checked, notes)


@dataclass(frozen=True)
class _Asking:
    given: Material
    engines: Engines
    store: Store
    folder: RunFolder
    offline: bool
    watch: Watcher
    errors: bool

    def check(self, name: str) -> StageCheck:
        """Asks the engine of a stage, and measures its answers."""
        config = self.given.config
        stage = stage_class(name).from_config(config, self.folder.pictures)
        engine_name = config.stages.engine_of(name)
        if engine_name is None or not isinstance(stage, ModelStage):
            raise StageError(f"stage {name!r} asks no engine: nothing to check")
        engine = self.engines.use(engine_name)
        read = CHECKS[name].read(self.given)
        result = self._run(stage, read, engine)
        scored = CHECKS[name].score(self.given, read, result)
        describe = description(stage, engine)
        return StageCheck(
            name,
            config.engines[engine_name],
            StageRecord(name, describe, read._fingerprint, result.dataset._fingerprint).digest,
            describe,
            tuple(measured(name, one, errors=self.errors) for one in scored),
            result.stats.quarantined,
            result.stats.fill,
        )

    def _run(self, stage: ModelStage, read: Dataset, engine: Engine) -> StageResult:
        if engine.stored and not self.offline:
            self.watch.planned(stage.name, plan(stage, read, engine, self.store))
        result = run_stage(
            stage,
            read,
            engine=engine,
            store=self.store,
            offline=self.offline,
            progress=self.watch.called,
        )
        self.watch.finished(_without_places(result))
        return result


def _check_half(half: str, errors: bool) -> None:
    if half not in HALVES:
        raise ConfigError(unknown("half", half, HALVES))
    if errors and half != "tune":
        raise ConfigError(
            f"errors of half {half!r} are not shown, so that nobody tunes on them: look at those "
            f"of half 'tune'; in gold of your own {TO_TUNE}"
        )


def _check_lines(gold: Gold, half: str, folder: Path) -> None:
    if not any(gold.lines.values()):
        of = "" if half == "all" else f" of half {half!r}"
        raise GoldError(f"{str(folder)!r} has no line{of}: {NO_LINE[half]}")


def _check_engines(config: Config, stages: Sequence[str], engines: Engines) -> None:
    # Made, not loaded: options that it does not take are told before posts are read.
    for name in stages:
        engine = config.stages.engine_of(name)
        if engine is not None:
            engines.use(engine)


def _material(
    setting: Setting, every: Gold, half: str, folder: RunFolder, watch: Watcher
) -> tuple[Material, int]:
    posts = read_posts(setting.posts, addresses_of(every), folder.pictures)
    watch.finished(posts.read)
    check_agreement(every, posts, setting.where)
    gold = every.of(half)
    roots = {root_of(line, posts) for lines in gold.lines.values() for line in lines}
    return Material(setting.config, gold, posts), len(roots)


def _without_places(result: StageResult) -> StageResult:
    # What went wrong on which post of the held-out half is nobody's business.
    stats = dataclasses.replace(result.stats, rejected={}, noted={})
    nothing = result.quarantine.select([])
    return dataclasses.replace(result, stats=stats, quarantine=nothing)


def _digest(gold: Gold) -> str:
    digest = hashlib.sha256()
    for name, lines in gold.lines.items():
        for text in sorted(line.model_dump_json() for line in lines):
            digest.update(f"{name} {text}\n".encode())
    return digest.hexdigest()
