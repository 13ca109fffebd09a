"""Analyze a benchmark: its prompts, what people say of results, and when, into `analysis.json`."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from echo_hf.analysis.activity import ActivityPart, activity
from echo_hf.analysis.analysis_file import write_analysis
from echo_hf.analysis.asked_tasks import asked_tasks
from echo_hf.analysis.diversity import diversity
from echo_hf.analysis.embedding_map import embedding_map
from echo_hf.analysis.failures import failures
from echo_hf.analysis.funnel_steps import funnel_steps
from echo_hf.analysis.interaction import interaction
from echo_hf.analysis.languages import languages
from echo_hf.analysis.lengths import lengths
from echo_hf.analysis.near_duplicates import near_duplicates
from echo_hf.analysis.options import AnalysisOptions
from echo_hf.analysis.perplexity import perplexity
from echo_hf.analysis.post_times import post_times
from echo_hf.analysis.prompt_set import PromptSet
from echo_hf.analysis.reference_tasks import reference_tasks
from echo_hf.analysis.references import read_reference
from echo_hf.analysis.result import FILE, Analysis, SetFacts
from echo_hf.analysis.source import Source, manifest_of, read_source
from echo_hf.analysis.task_rates import rates_of_run
from echo_hf.analysis.tasks import TaskPart, tasks
from echo_hf.analysis.word_cloud import word_cloud
from echo_hf.benchmark import Benchmark
from echo_hf.config_sections import Target
from echo_hf.errors import EngineError, MissingExtraError, RunError
from echo_hf.evaluated import Evaluated
from echo_hf.evaluation import ON_HUB, benchmark_of, evaluation_folder, load_evaluation
from echo_hf.hub.manifest import toolkit_version
from echo_hf.reasons import NotAnalyzed
from echo_hf.run import RUNS
from echo_hf.run_folder import RunFolder
from echo_hf.scores.rule import Protocol

CONFIG = "config.yaml"
Say = Callable[[str], None]
ANY_TARGET = Target(name="an image model", developer="its maker", released=datetime.date.min)


@dataclass(frozen=True)
class Analyzed:
    """An analysis, and where it was written.

    Attributes:
        path: `analysis.json`.
        analysis: What it holds.
    """

    path: Path
    analysis: Analysis


def analyze(
    config: Evaluated | Path | str,
    *,
    runs: Path | str = RUNS,
    say: Say | None = None,
) -> Analyzed:
    """Analyzes a benchmark, and writes `analysis.json` into its run's folder.

    Args:
        config: A config or the path of its file; or the folder of a release, or
            `ORGANISATION/NAME@TAG` on the Hub, analyzed without references or models.
        runs: Folder of runs.
        say: Told what is being done.

    Returns:
        The analysis. A part whose package, model or data is missing says so in its place.

    Raises:
        EchoError: The config, the benchmark, a reference or a table of the run cannot be read.
    """
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
    """Computes every part of an analysis.

    Args:
        source: What is analyzed.
        options: How.
        protocol: Whose arithmetic win rates use.
        say: Told what is being done.

    Returns:
        The analysis.

    Raises:
        EchoError: A reference or a table of the run cannot be read.
    """
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
