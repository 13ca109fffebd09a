"""Analyze a benchmark: its prompts, what people say of results, and when, into `analysis.json`."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from echo_hf.builder.build import RUNS
from echo_hf.config.evaluation import OWN, AnalysisOptions, Evaluated
from echo_hf.config.sections import Target
from echo_hf.curate.splits import ANALYSIS, BENCHMARKS
from echo_hf.errors import EngineError, MissingExtraError, ReleaseError, RunError
from echo_hf.hub.load import load_manifest
from echo_hf.hub.manifest import Manifest, toolkit_version
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import NotAnalyzed
from echo_hf.report.analysis.activity import ActivityPart, activity, funnel_steps, word_cloud
from echo_hf.report.analysis.diversity import diversity, near_duplicates
from echo_hf.report.analysis.embedding import embedding_map
from echo_hf.report.analysis.failures import failures, interaction, post_times
from echo_hf.report.analysis.perplexity import perplexity
from echo_hf.report.analysis.prompts import PromptSet, languages, lengths, prompt_set
from echo_hf.report.analysis.references import read_reference
from echo_hf.report.analysis.result import FILE, Analysis, SetFacts, write_analysis
from echo_hf.report.analysis.tasks import (
    TaskPart,
    asked_tasks,
    rates_of_run,
    reference_tasks,
    tasks,
)
from echo_hf.scores.votes import Protocol
from echo_hf.systems.benchmark import (
    ON_HUB,
    Benchmark,
    benchmark_of,
    evaluation_folder,
    load_evaluation,
)
from echo_hf.tables import POSTS, arrow_rows

COLUMNS = ("id", "prompt", "task", "kind", "post_urls", "community_feedback")
POST_COLUMNS = ("url", "timestamp", "keywords")
POST_SCHEMA = pa.schema([POSTS.schema.field(name) for name in POST_COLUMNS])
LONGEST_SAID = 200
Sample = Mapping[str, Any]


@dataclass(frozen=True)
class Source:
    name: str
    samples: Sequence[Sample]
    posts: pa.Table | None
    manifest: Manifest | None
    folder: RunFolder
    benchmark: Benchmark
    identity: Mapping[str, Any]

    @property
    def prompts(self) -> PromptSet:
        ids = [sample["id"] for sample in self.samples]
        return prompt_set(OWN, (one["prompt"] for one in self.samples), ids=ids)


def read_source(name: str, benchmark: Benchmark, folder: RunFolder) -> Source:
    manifest = manifest_of(benchmark.reference)
    held = set(manifest.configs) if manifest else {ANALYSIS}
    configs = [ANALYSIS] if ANALYSIS in held else [one for one in BENCHMARKS if one in held]
    samples = {row["id"]: row for config in configs for row in _rows(benchmark, config)}
    identity = {**benchmark.identity(), "configs": configs}
    posts = _posts(folder.stage("collect") / "kept.parquet")
    return Source(name, tuple(samples.values()), posts, manifest, folder, benchmark, identity)


def manifest_of(reference: str) -> Manifest | None:
    repo, at, revision = reference.rpartition("@")
    on_hub = at and not Path(reference).exists()
    try:
        return load_manifest(repo, revision=revision) if on_hub else load_manifest(reference)
    except ReleaseError:
        if Path(reference).exists():
            raise
        return None


def _rows(benchmark: Benchmark, config: str) -> list[dict[str, Any]]:
    dataset = benchmark.load(config)
    held = [name for name in COLUMNS if name in dataset.column_names]
    rows = arrow_rows(dataset, held).to_pylist()
    return [{**dict.fromkeys(COLUMNS), **row} for row in rows]


def _posts(path: Path) -> pa.Table | None:
    if not path.exists():
        return None
    try:
        return pq.read_table(path, columns=list(POST_COLUMNS)).cast(POST_SCHEMA)
    except (OSError, pa.ArrowException, ValueError) as error:
        said = " ".join(str(error).split())
        raise RunError(
            f"cannot read {str(path)!r} ({said[:LONGEST_SAID]}): run `echo-hf collect` again"
        ) from None


CONFIG = "config.yaml"
Say = Callable[[str], None]
ANY_TARGET = Target(name="an image model", developer="its maker", released=datetime.date.min)


@dataclass(frozen=True)
class Analyzed:
    path: Path
    analysis: Analysis


def analyze(
    config: Evaluated | Path | str,
    *,
    runs: Path | str = RUNS,
    say: Say | None = None,
) -> Analyzed:
    """Analyzes a benchmark, and writes `analysis.json` into its run's folder."""
    source, options, protocol = _opened(config, runs)
    analysis = analysis_of(source, options, protocol=protocol, say=say or (lambda _: None))
    return Analyzed(write_analysis(source.folder.root / FILE, analysis), analysis)


def _opened(
    config: Evaluated | Path | str, runs: Path | str
) -> tuple[Source, AnalysisOptions, Protocol]:
    if not isinstance(config, Evaluated):
        given = str(config)
        if _names_release(given):
            return _released(given, runs), AnalysisOptions(), "corrected"
        config = load_evaluation(config)
    folder = evaluation_folder(config, runs)
    source = read_source(config.name, benchmark_of(config, folder), folder)
    return source, config.analysis, config.protocol


def _names_release(given: str) -> bool:
    if Path(given).exists():
        return Path(given).is_dir()
    # A misspelt config is not asked for on the Hub.
    return Path(given).suffix not in {".yaml", ".yml"} and bool(ON_HUB.fullmatch(given))


def _released(reference: str, runs: Path | str) -> Source:
    manifest = manifest_of(reference)
    name = manifest.name if manifest else reference.partition("@")[0].rpartition("/")[2]
    folder = RunFolder(Path(runs) / name)
    if (folder.root / CONFIG).exists() and Path(reference).resolve() != folder.release.resolve():
        raise RunError(
            f"{str(folder.root)!r} is the run of a config, with posts and ratings of its own: "
            f"analyze that config, or give another folder for {reference!r} (--runs)"
        )
    folder.root.mkdir(parents=True, exist_ok=True)
    return read_source(name, Benchmark(reference, cache=folder.cache), folder)


def analysis_of(
    source: Source, options: AnalysisOptions, *, protocol: Protocol, say: Say
) -> Analysis:
    """Computes every part of an analysis."""
    say("prompts and references")
    sets = [source.prompts, *map(read_reference, options.references)]
    times, draws, seed = post_times(source.posts), options.draws, options.seed
    failed = failures(source.samples, times, examples=options.examples)
    keywords = failed.found.keywords if failed.found else None
    parts = {
        "diversity": diversity(sets, at=options.at),
        "lengths": lengths(sets),
        "tasks": _tasks(source, options, sets[1:], protocol),
        "failures": failed,
        "word_cloud": word_cloud(keywords, font=options.font, seed=seed),
        "interaction": interaction(source.samples, times),
        "activity": _activity(source),
        "funnel": funnel_steps(source.manifest),
    }
    say("near-duplicates and languages")
    parts["near_duplicates"] = near_duplicates(sets, similarity=options.similarity, seed=seed)
    parts["languages"] = languages(sets)
    say("the map of prompts")
    parts["embedding_map"] = embedding_map(sets, options.embedding, seed=seed)
    say("perplexity")
    parts["perplexity"] = perplexity(sets, options.perplexity, draws=draws, seed=seed)
    return Analysis(
        name=source.name,
        toolkit=toolkit_version(),
        source=source.identity,
        samples=len(source.samples),
        sets=tuple(map(_facts, sets)),
        **parts,
    )


def _tasks(
    source: Source, options: AnalysisOptions, references: Sequence[PromptSet], protocol: Protocol
) -> TaskPart:
    if not source.samples:
        return TaskPart(reason=NotAnalyzed.NO_PROMPTS, detail=NotAnalyzed.NO_PROMPTS.meaning)
    counts: dict[str, Counter[str]] = {}
    untold = None
    try:
        counts = _reference_tasks(source, options, references)
    except (EngineError, MissingExtraError) as error:
        untold = str(error)
    rates, no_rates = rates_of_run(
        source.benchmark,
        source.folder,
        source.samples,
        protocol=protocol,
        draws=options.draws,
        seed=options.seed,
    )
    engine = options.task_engine.model_dump() if options.task_engine else None
    return tasks(
        source.samples, counts, rates, no_rates=no_rates, no_references=untold, engine=engine
    )


def _reference_tasks(
    source: Source, options: AnalysisOptions, references: Sequence[PromptSet]
) -> dict[str, Counter[str]]:
    inputs = [one.inputs for one in options.references]
    if options.task_engine is None:
        counts = reference_tasks(references, inputs)
    else:
        target = source.manifest.target if source.manifest else ANY_TARGET
        counts = asked_tasks(references, inputs, options.task_engine, target, source.folder)
    return {one.name: count for one, count in zip(references, counts, strict=True)}


def _activity(source: Source) -> ActivityPart:
    if source.manifest is None:
        return ActivityPart(reason=NotAnalyzed.NO_POSTS, detail=NotAnalyzed.NO_POSTS.meaning)
    return activity(source.posts, source.manifest.target.released)


def _facts(one: PromptSet) -> SetFacts:
    left_out = {str(reason): count for reason, count in sorted(one.left_out.items())}
    return SetFacts(name=one.name, prompts=len(one.prompts), left_out=left_out, source=one.source)
