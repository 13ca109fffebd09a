"""Analyze a benchmark's prompts and comments, and write `analysis.json`."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from echo_hf._infra.atomic import find_complete, write_json
from echo_hf._infra.console import Notify
from echo_hf.config.evaluation import OWN_NAME, AnalysisOptions, MetricsOptions
from echo_hf.config.runs import RELEASE_FOLDER, find_runs_folder, is_run
from echo_hf.config.sections import Target
from echo_hf.curate.feedback import normalize_keyword
from echo_hf.curate.splits import ANALYSIS
from echo_hf.errors import EngineError, MissingExtraError, ReleaseError, RunError
from echo_hf.hub.diff import first_bigram, measure_drift
from echo_hf.hub.facts import UNKNOWN
from echo_hf.hub.manifest import Manifest, get_version
from echo_hf.hub.run_tables import ANALYSIS_FILE
from echo_hf.judging.complaints import group_complaints, read_complaints
from echo_hf.judging.validity import (
    ComplaintMeasures,
    MeasureOptions,
    describe_measures,
    measure_complaints,
)
from echo_hf.metrics.result import describe_error
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.report.analysis import feedback, result
from echo_hf.report.analysis.diversity import find_duplicates, measure_diversity
from echo_hf.report.analysis.feedback import PostTimes
from echo_hf.report.analysis.models import build_embedding_map, measure_perplexity
from echo_hf.report.analysis.prompts import (
    PromptSet,
    detect_languages,
    measure_lengths,
    prompt_set,
    read_references,
)
from echo_hf.report.analysis.result import PREVIOUS, Analysis, AnalysisPart, NotAnalyzed
from echo_hf.report.analysis.tasks import (
    NO_PHRASE,
    ComparedPhrases,
    ReferenceTasks,
    compute_run_rates,
    count_tasks,
    group_task_phrases,
    read_reference_tasks,
)
from echo_hf.scores.votes import ProtocolName
from echo_hf.systems.benchmark import ON_HUB, Benchmark, NoTask, select_sample_configs
from echo_hf.systems.checks import read_checks
from echo_hf.systems.evaluation_run import EvaluationRun, RunOrConfig
from echo_hf.systems.run_tables import read_applicability
from echo_hf.tables import arrow_rows

SAMPLE_COLUMNS = (
    *("id", "prompt", "task", "task_phrase", "kind", "post_urls", "community_feedback"),
    *("timestamp", "keywords"),
)
NO_PHRASES_BY_RULES = "rules know no phrases for its prompts: name a model as analysis.task_engine"
CONFIG_FILE = "config.yaml"
ANY_TARGET = Target(name="an image model", developer="its maker", released=datetime.date.min)
SampleRows = Sequence[Mapping[str, Any]]


class AnalysisResult(NamedTuple):
    path: Path
    analysis: Analysis


class AnalyzedRelease(NamedTuple):
    """A release: its samples, manifest and identity."""

    benchmark: Benchmark
    manifest: Manifest | None
    identity: Mapping[str, Any]
    samples: SampleRows


def analyze(
    config: RunOrConfig, *, runs: Path | str | None = None, say: Notify = lambda _: None
) -> AnalysisResult:
    """Analyze a benchmark, and write `analysis.json` into its run's folder."""
    options, metrics = AnalysisOptions(), MetricsOptions({})
    protocol: ProtocolName = "corrected"
    if not isinstance(config, Path | str) or not is_release(str(config), runs):
        run = EvaluationRun.from_config(config, runs)
        folder, name = run.prepare(), run.config.name
        options, protocol = run.config.analysis, run.config.protocol
        metrics = run.config.metrics
        release = _read_release(run.benchmark)
    else:
        reference = str(config)
        manifest = _find_manifest(Benchmark(reference))
        name = manifest.name if manifest else reference.partition("@")[0].rpartition("/")[2]
        folder = RunFolder(find_runs_folder(None, runs) / name)
        is_own = Path(reference).resolve() == folder.release.resolve()
        if (folder.root / CONFIG_FILE).exists() and not is_own:
            raise RunError(
                f"{str(folder.root)!r} is the run of a config, with posts and ratings of its own: "
                f"analyze that config, or give another folder for {reference!r} (--runs)"
            )
        folder.root.mkdir(parents=True, exist_ok=True)
        release = _read_release(Benchmark(reference, cache=folder.cache))
    analysis = _analyze_release(name, release, folder, options, metrics, protocol, say)
    path = folder.root / ANALYSIS_FILE
    write_json(path, analysis.model_dump(mode="json"), ensure_ascii=False)
    return AnalysisResult(path, analysis)


def is_release(reference: str, runs: Path | str | None = None) -> bool:
    """Return whether a release is meant, and not a config file or a run."""
    path = Path(reference)
    if path.exists():
        folder = path.resolve()
        run = folder.parent if folder.name == RELEASE_FOLDER else folder
        is_there = runs is None or Path(runs).resolve() == run.parent
        return path.is_dir() and not (is_run(run) and is_there)
    # A misspelled config is not looked for on the Hub.
    return Path(reference).suffix not in {".yaml", ".yml"} and bool(ON_HUB.fullmatch(reference))


def _find_manifest(benchmark: Benchmark) -> Manifest | None:
    try:
        return benchmark.read_manifest()
    except ReleaseError:
        if Path(benchmark.reference).exists():
            raise
        return None


def _read_release(benchmark: Benchmark) -> AnalyzedRelease:
    manifest = _find_manifest(benchmark)
    configs = select_sample_configs(manifest.configs if manifest else {ANALYSIS})
    samples = {}
    for config in configs:
        dataset = benchmark.load(config)
        columns = [column for column in SAMPLE_COLUMNS if column in dataset.column_names]
        for row in arrow_rows(dataset, columns).to_pylist():
            samples[row["id"]] = {**dict.fromkeys(SAMPLE_COLUMNS), **row}
    identity = {**benchmark.identity(), "configs": configs}
    return AnalyzedRelease(benchmark, manifest, identity, tuple(samples.values()))


def _read_posts(folder: RunFolder, samples: SampleRows) -> tuple[pa.Table | None, str]:
    """Return the posts of a run, or else those of its samples, and which of both they are."""
    path = folder.stage_folder("collect") / "kept.parquet"
    if not path.exists():
        return feedback.build_sample_posts(samples), feedback.SAMPLE_POSTS
    try:
        posts = pq.read_table(path, columns=list(feedback.POST_COLUMNS))
        return posts.cast(feedback.POST_SCHEMA), feedback.COLLECTED
    except (OSError, pa.ArrowException, ValueError) as error:
        raise RunError(
            f"cannot read {str(path)!r} ({describe_error(error)}): run `echo-hf collect` again"
        ) from None


def _analyze_release(
    name: str,
    release: AnalyzedRelease,
    folder: RunFolder,
    options: AnalysisOptions,
    metrics: MetricsOptions,
    protocol: ProtocolName,
    say: Notify,
) -> Analysis:
    say("prompts and references")
    samples, manifest, draws, seed = release.samples, release.manifest, options.draws, options.seed
    texts, ids = ([sample[name] for sample in samples] for name in ("prompt", "id"))
    references, not_fetched = read_references(options.references, folder.root)
    sets = [prompt_set(OWN_NAME, texts, ids=ids), *references]
    posts, counted = _read_posts(folder, samples)
    times = PostTimes.from_table(posts)
    failures = feedback.analyze_failures(samples, times, examples=options.examples)
    keywords = failures.found.keywords if failures.found else None
    replaced = find_complete(folder.previous)
    reference = options.before or (str(replaced) if replaced.exists() else None)
    earlier = _read_release(Benchmark(reference, cache=folder.cache)) if reference else None
    rates = compute_run_rates(
        release.benchmark, folder, samples, protocol=protocol, draws=draws, seed=seed
    )
    parts: dict[str, Any] = {
        "since": _compare_releases(earlier, name, samples, failures.found),
        "diversity": measure_diversity(sets, at=options.at),
        "lengths": measure_lengths(sets),
        **_analyze_tasks(release, options, references, rates, times, earlier, folder),
        "failures": failures,
        "word_cloud": feedback.draw_word_cloud(keywords, font=options.font, seed=seed),
        "interaction": feedback.interaction(samples, times),
        # Without a manifest, the release date of the target is not known.
        "activity": feedback.count_activity(posts, manifest.target.released, counted)
        if manifest
        else AnalysisPart.omit(NotAnalyzed.NO_POSTS),
        "funnel": feedback.read_funnel(manifest),
    }
    say("complaints and measures")
    measured = MeasureOptions(
        metrics=metrics,
        protocol=protocol,
        applicability=read_applicability(release.benchmark, folder)[0],
        checks=read_checks(release.benchmark, folder),
        n_boot=draws,
        seed=seed,
    )
    parts["measures"] = _measure_complaints(release.benchmark, folder, measured)
    say("near-duplicates and languages")
    parts["near_duplicates"] = find_duplicates(sets, similarity=options.similarity, seed=seed)
    parts["languages"] = detect_languages(sets)
    say("the map of prompts")
    parts["embedding_map"] = build_embedding_map(sets, options.embedding, seed=seed)
    say("perplexity")
    parts["perplexity"] = measure_perplexity(sets, options.perplexity, draws=draws, seed=seed)
    facts = [
        result.SetFacts(
            name=set_.name,
            prompts=len(set_.prompts),
            left_out={str(reason): count for reason, count in sorted(set_.left_out.items())},
            source=set_.source,
        )
        for set_ in sets
    ]
    return Analysis(
        name=name,
        toolkit=get_version(),
        source=release.identity,
        samples=len(samples),
        sets=tuple(facts),
        not_fetched=not_fetched,
        **parts,
    )


def _measure_complaints(
    benchmark: Benchmark, folder: RunFolder, options: MeasureOptions
) -> AnalysisPart[ComplaintMeasures]:
    complaints = read_complaints(benchmark, folder)
    groups = group_complaints(complaints)
    if not groups:
        is_left_out = NoTask.DEHYDRATED in complaints.left_out
        return AnalysisPart.omit(NotAnalyzed.LEFT_OUT if is_left_out else NotAnalyzed.NO_COMMENTS)
    measured = measure_complaints(groups, folder.images, options, complaints.left_out)
    return AnalysisPart(found=measured, definition=describe_measures(options))


def _analyze_tasks(
    release: AnalyzedRelease,
    options: AnalysisOptions,
    references: Sequence[PromptSet],
    rates: Sequence[result.TaskRate],
    times: PostTimes,
    earlier: AnalyzedRelease | None,
    folder: RunFolder,
) -> dict[str, AnalysisPart[Any]]:
    if not release.samples:
        none: AnalysisPart[Any] = AnalysisPart.omit(NotAnalyzed.NO_PROMPTS)
        return {"tasks": none, "open_tasks": none}
    set_tasks, untold, engine = list[ReferenceTasks](), None, options.task_engine
    target = release.manifest.target if release.manifest else ANY_TARGET
    try:
        set_tasks = read_reference_tasks(references, options, target, folder)
    except (EngineError, MissingExtraError) as error:
        untold = str(error)
    reason = untold or (NO_PHRASE if engine else NO_PHRASES_BY_RULES)
    phrases = [phrases for _, phrases in set_tasks] or [()] * len(references)
    compared = [
        ComparedPhrases(set_.name, len(set_.prompts), texts, reason, set_.source)
        for set_, texts in zip(references, phrases, strict=True)
    ]
    if earlier is not None:
        old = [sample["task_phrase"] for sample in earlier.samples]
        compared.append(ComparedPhrases(PREVIOUS, len(old), old, source=earlier.identity))
    counts = {set_.name: counts for set_, (counts, _) in zip(references, set_tasks, strict=False)}
    model = engine.model_dump() if engine else None
    return {
        "tasks": count_tasks(release.samples, counts, rates, no_references=untold, engine=model),
        "open_tasks": group_task_phrases(release.samples, times, compared, options.embedding),
    }


def _compare_releases(
    earlier: AnalyzedRelease | None,
    name: str,
    samples: SampleRows,
    failed: result.FailureAnalysis | None,
) -> AnalysisPart[result.ReleaseComparison]:
    if earlier is None:
        return AnalysisPart.omit(NotAnalyzed.NO_RELEASE_BEFORE)
    releases, spelled = (earlier.samples, samples), dict[str, str]()

    def count_keywords(failures: result.FailureAnalysis | None) -> dict[str, int]:
        keywords = failures.keywords if failures else ()
        counts = {}
        for keyword in keywords:
            form = normalize_keyword(keyword.keyword)
            counts[spelled.setdefault(form, keyword.keyword)] = keyword.comments
        return counts

    # A keyword of both releases is spelled as in the current one.
    current = count_keywords(failed)
    old = count_keywords(feedback.analyze_failures(earlier.samples, PostTimes()).found)
    ids = [{sample["id"] for sample in rows} for rows in releases]
    tasks = [Counter(sample["task"] or UNKNOWN for sample in rows) for rows in releases]
    bigrams = [
        Counter(filter(None, (first_bigram(sample["prompt"] or "") for sample in rows)))
        for rows in releases
    ]
    release_name = earlier.identity["on_hub"] or earlier.identity["name"]
    comparison = result.ReleaseComparison(
        name=PREVIOUS if release_name in (None, name) else str(release_name),
        target=earlier.manifest.target.name if earlier.manifest else None,
        samples=len(earlier.samples),
        shared=len(set.intersection(*ids)),
        tasks=_compare(*tasks),
        first_bigrams=_compare(*bigrams),
        failures=_compare(old, current),
    )
    return AnalysisPart(found=comparison, definition={"before": dict(earlier.identity)})


def _compare(earlier: Mapping[str, int], current: Mapping[str, int]) -> result.ShareShift:
    drift = measure_drift(earlier, current)
    moved = tuple(
        result.ChangedCount(name=mover.name, before=mover.a, now=mover.b, change=mover.change)
        for mover in drift.movers
    )
    return result.ShareShift(distance=drift.distance, before=drift.a, now=drift.b, moved=moved)
