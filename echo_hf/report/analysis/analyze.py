"""Analyze a benchmark: its prompts, what people say of results, and when, into `analysis.json`."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from echo_hf._infra.atomic import complete, write_json
from echo_hf.config.evaluation import OWN, AnalysisOptions, Evaluated
from echo_hf.config.runs import RELEASE, is_run, runs_folder
from echo_hf.config.sections import Target
from echo_hf.curate.splits import ANALYSIS, BENCHMARKS
from echo_hf.errors import EngineError, MissingExtraError, ReleaseError, RunError
from echo_hf.hub.diff import drift, first_bigram
from echo_hf.hub.facts import UNKNOWN
from echo_hf.hub.manifest import Manifest, toolkit_version
from echo_hf.metrics.result import describe_error
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import NotAnalyzed
from echo_hf.report.analysis import feedback, result
from echo_hf.report.analysis.diversity import diversity, near_duplicates
from echo_hf.report.analysis.feedback import PostTimes
from echo_hf.report.analysis.models import embedding_map, perplexity
from echo_hf.report.analysis.prompts import (
    PromptSet,
    languages,
    lengths,
    prompt_set,
    read_references,
)
from echo_hf.report.analysis.result import BEFORE, FILE, Analysis, AnalysisPart
from echo_hf.report.analysis.tasks import (
    UNTOLD,
    ComparedPhrases,
    ReferenceTasks,
    open_tasks,
    rates_of_run,
    tasks,
    told_tasks,
)
from echo_hf.report.run_data import manifest_of
from echo_hf.scores.votes import ProtocolName
from echo_hf.systems.benchmark import (
    ON_HUB,
    Benchmark,
    benchmark_of,
    evaluation_folder,
    load_evaluation,
)
from echo_hf.tables import arrow_rows

COLUMNS = (
    *("id", "prompt", "task", "task_phrase", "kind", "post_urls", "community_feedback"),
    *("timestamp", "keywords"),
)
RULES_HAVE_NONE = "rules know no phrases for its prompts: name a model as analysis.task_engine"
CONFIG = "config.yaml"
ANY_TARGET = Target(name="an image model", developer="its maker", released=datetime.date.min)
Say = Callable[[str], None]
Samples = Sequence[Mapping[str, Any]]


class Analyzed(NamedTuple):
    path: Path
    analysis: Analysis


class Examined(NamedTuple):
    """A release: its samples, and what it says of itself."""

    benchmark: Benchmark
    manifest: Manifest | None
    identity: Mapping[str, Any]
    samples: Samples


def analyze(
    config: Evaluated | Path | str, *, runs: Path | str | None = None, say: Say = lambda _: None
) -> Analyzed:
    """Analyzes a benchmark, and writes `analysis.json` into its run's folder."""
    options = AnalysisOptions()
    protocol: ProtocolName = "corrected"
    if isinstance(config, Evaluated) or not names_release(str(config), runs):
        config = load_evaluation(config)
        folder, name = evaluation_folder(config, runs), config.name
        benchmark = benchmark_of(config, folder)
        options, protocol = config.analysis, config.protocol
        release = _examined(benchmark)
    else:
        reference = str(config)
        manifest = _manifest(reference)
        name = manifest.name if manifest else reference.partition("@")[0].rpartition("/")[2]
        folder = RunFolder(runs_folder(None, runs) / name)
        is_own = Path(reference).resolve() == folder.release.resolve()
        if (folder.root / CONFIG).exists() and not is_own:
            raise RunError(
                f"{str(folder.root)!r} is the run of a config, with posts and ratings of its own: "
                f"analyze that config, or give another folder for {reference!r} (--runs)"
            )
        folder.root.mkdir(parents=True, exist_ok=True)
        release = _examined(Benchmark(reference, cache=folder.cache))
    found = _analysis(name, release, folder, options, protocol, say)
    path = folder.root / FILE
    write_json(path, found.model_dump(mode="json"), ensure_ascii=False)
    return Analyzed(path, found)


def names_release(given: str, runs: Path | str | None = None) -> bool:
    """Whether a release is meant, and no config: neither a file nor one of the runs."""
    place = Path(given)
    if place.exists():
        folder = place.resolve()
        run = folder.parent if folder.name == RELEASE else folder
        is_there = runs is None or Path(runs).resolve() == run.parent
        return place.is_dir() and not (is_run(run) and is_there)
    # A misspelt config is not asked for on the Hub.
    return Path(given).suffix not in {".yaml", ".yml"} and bool(ON_HUB.fullmatch(given))


def _manifest(reference: str) -> Manifest | None:
    try:
        return manifest_of(reference)
    except ReleaseError:
        if Path(reference).exists():
            raise
        return None


def _examined(benchmark: Benchmark) -> Examined:
    manifest = _manifest(benchmark.reference)
    # The configs that hold every sample once or more.
    held = set(manifest.configs) if manifest else {ANALYSIS}
    configs = [ANALYSIS] if ANALYSIS in held else [one for one in BENCHMARKS if one in held]
    samples = {}
    for config in configs:
        dataset = benchmark.load(config)
        there = [column for column in COLUMNS if column in dataset.column_names]
        for row in arrow_rows(dataset, there).to_pylist():
            samples[row["id"]] = {**dict.fromkeys(COLUMNS), **row}
    identity = {**benchmark.identity(), "configs": configs}
    return Examined(benchmark, manifest, identity, tuple(samples.values()))


def _posts(folder: RunFolder, samples: Samples) -> tuple[pa.Table | None, str]:
    """The posts of a run, else those that its samples name; and which of both."""
    path = folder.stage("collect") / "kept.parquet"
    if not path.exists():
        return feedback.posts_of_samples(samples), feedback.OF_SAMPLES
    try:
        posts = pq.read_table(path, columns=list(feedback.POST_COLUMNS))
        return posts.cast(feedback.POST_SCHEMA), feedback.COLLECTED
    except (OSError, pa.ArrowException, ValueError) as error:
        raise RunError(
            f"cannot read {str(path)!r} ({describe_error(error)}): run `echo-hf collect` again"
        ) from None


def _analysis(
    name: str,
    release: Examined,
    folder: RunFolder,
    options: AnalysisOptions,
    protocol: ProtocolName,
    say: Say,
) -> Analysis:
    say("prompts and references")
    samples, manifest, draws, seed = release.samples, release.manifest, options.draws, options.seed
    texts, ids = ([one[name] for one in samples] for name in ("prompt", "id"))
    references, not_fetched = read_references(options.references, folder.root)
    sets = [prompt_set(OWN, texts, ids=ids), *references]
    posts, counted = _posts(folder, samples)
    times = PostTimes.of_table(posts)
    failed = feedback.failures(samples, times, examples=options.examples)
    keywords = failed.found.keywords if failed.found else None
    replaced = complete(folder.previous)
    named = options.before or (str(replaced) if replaced.exists() else None)
    before = _examined(Benchmark(named, cache=folder.cache)) if named else None
    rates = rates_of_run(
        release.benchmark, folder, samples, protocol=protocol, draws=draws, seed=seed
    )
    parts: dict[str, Any] = {
        "since": _since(before, name, samples, failed.found),
        "diversity": diversity(sets, at=options.at),
        "lengths": lengths(sets),
        **_tasks(release, options, references, rates, times, before, folder),
        "failures": failed,
        "word_cloud": feedback.word_cloud(keywords, font=options.font, seed=seed),
        "interaction": feedback.interaction(samples, times),
        # Without a manifest nothing says when the target was released.
        "activity": feedback.activity(posts, manifest.target.released, counted)
        if manifest
        else AnalysisPart.without(NotAnalyzed.NO_POSTS),
        "funnel": feedback.funnel_steps(manifest),
    }
    say("near-duplicates and languages")
    parts["near_duplicates"] = near_duplicates(sets, similarity=options.similarity, seed=seed)
    parts["languages"] = languages(sets)
    say("the map of prompts")
    parts["embedding_map"] = embedding_map(sets, options.embedding, seed=seed)
    say("perplexity")
    parts["perplexity"] = perplexity(sets, options.perplexity, draws=draws, seed=seed)
    facts = [
        result.SetFacts(
            name=one.name,
            prompts=len(one.prompts),
            left_out={str(reason): count for reason, count in sorted(one.left_out.items())},
            source=one.source,
        )
        for one in sets
    ]
    return Analysis(
        name=name,
        toolkit=toolkit_version(),
        source=release.identity,
        samples=len(samples),
        sets=tuple(facts),
        not_fetched=not_fetched,
        **parts,
    )


def _tasks(
    release: Examined,
    options: AnalysisOptions,
    references: Sequence[PromptSet],
    rates: Sequence[result.TaskRate],
    times: PostTimes,
    before: Examined | None,
    folder: RunFolder,
) -> dict[str, AnalysisPart[Any]]:
    if not release.samples:
        none: AnalysisPart[Any] = AnalysisPart.without(NotAnalyzed.NO_PROMPTS)
        return {"tasks": none, "open_tasks": none}
    told, untold, engine = list[ReferenceTasks](), None, options.task_engine
    target = release.manifest.target if release.manifest else ANY_TARGET
    try:
        told = told_tasks(references, options, target, folder)
    except (EngineError, MissingExtraError) as error:
        untold = str(error)
    why = untold or (UNTOLD if engine else RULES_HAVE_NONE)
    phrases = [phrases for _, phrases in told] or [()] * len(references)
    compared = [
        ComparedPhrases(one.name, len(one.prompts), some, why, one.source)
        for one, some in zip(references, phrases, strict=True)
    ]
    if before is not None:
        some = [one["task_phrase"] for one in before.samples]
        compared.append(ComparedPhrases(BEFORE, len(some), some, source=before.identity))
    counts = {one.name: counts for one, (counts, _) in zip(references, told, strict=False)}
    known = engine.model_dump() if engine else None
    return {
        "tasks": tasks(release.samples, counts, rates, no_references=untold, engine=known),
        "open_tasks": open_tasks(release.samples, times, compared, options.embedding),
    }


def _since(
    before: Examined | None, name: str, samples: Samples, failed: result.Failures | None
) -> AnalysisPart[result.Since]:
    if before is None:
        return AnalysisPart.without(NotAnalyzed.NO_RELEASE_BEFORE)
    both, spelled = (before.samples, samples), dict[str, str]()

    def keywords(found: result.Failures | None) -> dict[str, int]:
        told = found.keywords if found else ()
        forms = {feedback.keyword_form(one.keyword): one for one in told}
        return {spelled.setdefault(form, one.keyword): one.comments for form, one in forms.items()}

    # Today's spelling names a failure in both.
    now = keywords(failed)
    earlier = keywords(feedback.failures(before.samples, PostTimes()).found)
    bigrams = ((first_bigram(one["prompt"] or "") for one in some) for some in both)
    told = before.identity["on_hub"] or before.identity["name"]
    found = result.Since(
        name=BEFORE if told in (None, name) else str(told),
        target=before.manifest.target.name if before.manifest else None,
        samples=len(before.samples),
        shared=len(set.intersection(*({one["id"] for one in some} for some in both))),
        tasks=_shift(*(Counter(one["task"] or UNKNOWN for one in some) for some in both)),
        first_bigrams=_shift(*(Counter(filter(None, some)) for some in bigrams)),
        failures=_shift(earlier, now),
    )
    return AnalysisPart(found=found, definition={"before": dict(before.identity)})


def _shift(before: Mapping[str, int], now: Mapping[str, int]) -> result.Shift:
    found = drift(before, now)
    moved = [
        result.Moved(name=one.name, before=one.a, now=one.b, change=one.change)
        for one in found.movers
    ]
    return result.Shift(distance=found.distance, before=found.a, now=found.b, moved=tuple(moved))
