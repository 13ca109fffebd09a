"""Check how well an engine does each stage, against what careful readers wrote down."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from echo_hf._infra.summary import SummaryMixin
from echo_hf.builder.build import describe_stage
from echo_hf.builder.gold.folder import HALVES, POSTS_FILE, read_gold
from echo_hf.builder.gold.measures import Measure
from echo_hf.builder.gold.posts import check_agreement, make_dataset, read_gold_posts
from echo_hf.builder.gold.stages import CHECKS, GoldMaterial, choose_stages, name_half, score_stage
from echo_hf.config.checks import EngineChoice, format_value
from echo_hf.config.loading import Config, load_config
from echo_hf.config.runs import find_runs_folder
from echo_hf.config.sections import PostsSource
from echo_hf.config.systems import shipped_config
from echo_hf.engines.base import RunEngines
from echo_hf.engines.recorded import KIND as RECORDED
from echo_hf.errors import ConfigError, GoldError, unknown
from echo_hf.pipeline.batch_inference import FillStats, plan_requests
from echo_hf.pipeline.progress import NullProgress, ProgressListener
from echo_hf.pipeline.result import StageResult
from echo_hf.pipeline.run_folder import RunFolder, StageRecord
from echo_hf.pipeline.stage_order import load_stage_class
from echo_hf.pipeline.stage_runner import run_stage

if TYPE_CHECKING:
    from echo_hf.pipeline.stage import ModelStage

CHECK_FOLDER = "check-engine"


def read_gold_setting(
    config: Config | Path | str | None, engine: EngineChoice | None, gold: Path | str | None
) -> tuple[Config, Path, tuple[PostsSource, ...], str]:
    """Return the config, the gold's folder, its posts, and where people find those."""
    if config is None and (engine is None or gold is not None):
        raise ConfigError(
            "say which engine: echo-hf check-engine CONFIG [--gold DIR] checks those of a config, "
            "echo-hf check-engine --engine KIND --model ID one without it, on the bundled gold"
        )
    bundled = load_config(shipped_config())
    setting = load_config(config or shipped_config())
    if engine is not None:
        setting = setting.model_copy(update={"engines": dict.fromkeys(setting.engines, engine)})
    if gold is None:
        setting = setting.model_copy(update={"target": bundled.target})
        folder = Path(str(files("echo_hf.quickstart").joinpath("gold")))
        return setting, folder, bundled.posts, "the bundled posts"
    own_posts = Path(gold) / POSTS_FILE
    if own_posts.exists():
        return setting, Path(gold), (PostsSource(source="jsonl", path=own_posts),), str(own_posts)
    sources = ", ".join(str(entry.path or entry.source) for entry in setting.posts)
    return setting, Path(gold), setting.posts, format_value(sources)[1:-1]


@dataclass(frozen=True)
class StageCheck:
    """The measures of one stage under one engine."""

    stage: str
    engine: EngineChoice
    digest: str
    describe: Mapping[str, Any]
    measures: tuple[Measure, ...]
    failed: Mapping[str, int]
    fill: FillStats


@dataclass(frozen=True)
class PackingCheck:
    """Scores of posts that were asked about together, compared with those of the same one by one.

    Attributes:
        posts_per_request: Most posts of a request.
        posts: How many were scored; one without an answer is not right.
        right: How many were right.
        right_alone: How many are right one by one.
        points: The difference of the two shares, in percentage points.
        low: Lower end of its interval at 95 %, for paired shares (Agresti and Min 2005).
        high: Its upper end.
        prompt_tokens: Those of both ways, together and one by one; 0 where nobody counts them.
        cost_usd: Their prices; null where they are unknown.
    """

    posts_per_request: int
    posts: int
    right: int
    right_alone: int
    points: float
    low: float
    high: float
    prompt_tokens: tuple[int, int]
    cost_usd: tuple[float | None, float | None]


def compare_packing(
    stage: ModelStage, material: GoldMaterial, packed: StageResult, alone: StageResult
) -> PackingCheck:
    """Compare the scores of posts that were asked about together with those one by one."""
    wrong, posts = list[set[str]](), 0
    for result in (packed, alone):
        measures, _ = score_stage(stage.name, material, result, errors=True)
        (accuracy,) = (measure for measure in measures if measure.name == "score_accuracy")
        wrong.append({item.place for item in accuracy.errors})
        posts = accuracy.asked
    lost, won = len(wrong[0] - wrong[1]), len(wrong[1] - wrong[0])
    # Half a post is added to each of the four cells.
    difference, count = won - lost, posts + 2
    error = 1.96 * math.sqrt(won + lost + 1 - difference**2 / count)
    fill, fill_alone = packed.stats.fill, alone.stats.fill
    return PackingCheck(
        posts_per_request=getattr(stage, "posts_per_request", 1),
        posts=posts,
        right=posts - len(wrong[0]),
        right_alone=posts - len(wrong[1]),
        points=100 * difference / posts if posts else 0.0,
        low=100 * (difference - error) / count,
        high=100 * (difference + error) / count,
        prompt_tokens=(fill.stage_usage.prompt, fill_alone.stage_usage.prompt),
        cost_usd=(fill.stage_cost_usd, fill_alone.stage_cost_usd),
    )


@dataclass(frozen=True, repr=False)
class CheckResult(SummaryMixin):
    """How well an engine does.

    Attributes:
        target: The model that people talk about.
        posts: Where they do.
        half: Which half of the gold.
        gold: Sha256 of its lines.
        threads: How many threads they are about.
        stages: Each stage that was checked.
        notes: What was left out, and why.
        packing: What it costs that posts are scored together; null where they are not.
    """

    target: str
    posts: str
    half: str
    gold: str
    threads: int
    stages: tuple[StageCheck, ...]
    notes: tuple[str, ...]
    packing: PackingCheck | None = None

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures of all stages, in order."""
        return tuple(measure for check in self.stages for measure in check.measures)


def check_engine(
    config: Config | Path | str | None = None,
    *,
    engine: EngineChoice | None = None,
    gold: Path | str | None = None,
    half: str = "held_out",
    stages: Sequence[str] | None = None,
    errors: bool = False,
    runs: Path | str | None = None,
    offline: bool = False,
    watch: ProgressListener | None = None,
) -> CheckResult:
    """Check how well an engine does each stage, given input without mistakes.

    Args:
        config: Names engines and options of stages, and for `gold` its target; or its file.
        engine: Takes the place of all of the config's engines.
        gold: A folder as `echo_hf/quickstart/gold/README.md` describes; the bundled one when null,
            whose target and posts are its own.
        half: `held_out`, `tune` or `all`.
        stages: Only these; those that there is gold for when null.
        errors: Keep what was not right in `Measure.errors`; only of the half `tune`.
        runs: Folder of runs, null for that of the config; answers are kept in
            `check-engine/<name of the config>` there.
        offline: Ask no model: what no stored answer covers lowers the coverage.
        watch: Told of each plan and call, and of results by their counts.

    Returns:
        The measures.

    Raises:
        EchoError: The config, the gold or an engine is not usable; the message says how to go on.
    """
    if half not in HALVES:
        raise ConfigError(unknown("half", half, HALVES))
    if errors and half != "tune":
        raise ConfigError(
            f"errors of half {half!r} are not shown, so that nobody tunes on them: look at those "
            'of half \'tune\', of lines with "half": "tune"'
        )
    setting, gold_folder, entries, posts_source = read_gold_setting(config, engine, gold)
    all_gold, watch = read_gold(gold_folder), watch or NullProgress()
    lines = all_gold.select_half(half)
    if not any(lines.values()):
        raise GoldError(
            f"{str(gold_folder)!r} has no line{name_half(half)}: choose another --half; a line is "
            'of half \'held_out\' unless it says "half": "tune"'
        )
    chosen, notes = choose_stages(lines, half, stages)
    folder = RunFolder(find_runs_folder(setting, runs) / CHECK_FOLDER / setting.name)
    with (
        folder.lock(),
        RunEngines(setting.engines) as engines,
        closing(folder.open_store()) as store,
    ):
        for name in chosen:
            kind = str(setting.stages.get_engine(name))
            if setting.engines[kind].kind == RECORDED:
                raise ConfigError(
                    f"engine {RECORDED!r} of stage {name!r} repeats what somebody wrote down, "
                    "which tells of no engine: name one with --engine"
                )
            engines.use(kind)  # so that wrong options fail before posts are read
        urls = {url for line in all_gold.iterate_lines() for url in line.addresses}
        posts = read_gold_posts(entries, urls, folder.images)
        watch.report_result(posts.read)
        check_agreement(all_gold, posts, posts_source)
        material, checks = GoldMaterial(setting, lines, posts), list[StageCheck]()
        packing: PackingCheck | None = None
        for name in chosen:
            stage = cast("ModelStage", load_stage_class(name).from_config(setting, folder.images))
            kind = str(setting.stages.get_engine(name))
            stage_engine = engines.use(kind)
            inputs = make_dataset(stage.inputs, getattr(material, CHECKS[name].reads))
            asked, results = [stage], list[StageResult]()
            if stage_engine.stored and getattr(stage, "posts_per_request", 1) > 1:
                asked.append(replace(stage, posts_per_request=1))  # type: ignore[call-arg]
            for way in asked:
                if stage_engine.stored and not offline:
                    request_plan = plan_requests(way, inputs, stage_engine, store)
                    watch.report_start(name, request_plan.calls, request_plan)
                results.append(
                    run_stage(
                        way,
                        inputs,
                        engine=stage_engine,
                        store=store,
                        offline=offline,
                        progress=partial(advance_progress, watch, name),
                    )
                )
            result = results[0]
            if len(results) > 1:
                packing = compare_packing(stage, material, *results)
            # Do not show which posts of the held-out half went wrong.
            stats = replace(result.stats, rejected={}, noted={})
            shown = replace(result, stats=stats, quarantine=result.quarantine.select([]))
            watch.report_result(shown)
            measures, lost_notes = score_stage(name, material, result, errors=errors)
            notes += lost_notes
            describe = describe_stage(stage, stage_engine)
            record = StageRecord(name, describe, inputs._fingerprint, result.dataset._fingerprint)
            check = StageCheck(
                name,
                setting.engines[kind],
                record.digest,
                describe,
                measures,
                failed=result.stats.quarantined,
                fill=result.stats.fill,
            )
            checks.append(check)
    digest = hashlib.sha256()
    for name, file_lines in lines.items():
        for text in sorted(line.model_dump_json() for line in file_lines):
            digest.update(f"{name} {text}\n".encode())
    return CheckResult(
        setting.target.name,
        posts_source,
        half,
        digest.hexdigest(),
        len({posts.root_of[line.key[0]] for line in lines.iterate_lines()}),
        tuple(checks),
        tuple(notes),
        packing,
    )


def advance_progress(watch: ProgressListener, name: str, stats: FillStats) -> None:
    watch.report_progress(name, stats.calls, stats)
