"""Analyze a benchmark: its prompts, what people say of results, and when, into `analysis.json`."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from echo_hf._infra.atomic import complete, write_json
from echo_hf.builder.build import RUNS
from echo_hf.config.evaluation import OWN, AnalysisOptions, Evaluated
from echo_hf.config.sections import Target
from echo_hf.curate.splits import ANALYSIS, BENCHMARKS
from echo_hf.errors import EngineError, MissingExtraError, ReleaseError, RunError
from echo_hf.hub.diff import drift, first_bigram
from echo_hf.hub.facts import UNKNOWN
from echo_hf.hub.manifest import Manifest, toolkit_version
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.reasons import NotAnalyzed
from echo_hf.report.analysis import feedback
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
from echo_hf.report.analysis.result import (
    BEFORE,
    FILE,
    Analysis,
    AnalysisPart,
    Failures,
    Moved,
    SetFacts,
    Shift,
    Since,
)
from echo_hf.report.analysis.tasks import (
    UNTOLD,
    ComparedPhrases,
    ReferenceTasks,
    asked_tasks,
    open_tasks,
    rates_of_run,
    reference_tasks,
    tasks,
)
from echo_hf.report.run_data import manifest_of
from echo_hf.scores.votes import Protocol
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
LONGEST_SAID = 200
RULES_HAVE_NONE = "rules know no phrases for its prompts: name a model as analysis.task_engine"
CONFIG = "config.yaml"
ANY_TARGET = Target(name="an image model", developer="its maker", released=datetime.date.min)
Say = Callable[[str], None]


@dataclass(frozen=True)
class Analyzed:
    path: Path
    analysis: Analysis


@dataclass(frozen=True)
class Source:
    """What is analyzed: the samples of a benchmark, and the posts of its run, or of the samples."""

    name: str
    samples: Sequence[Mapping[str, Any]]
    posts: pa.Table | None
    manifest: Manifest | None
    folder: RunFolder
    benchmark: Benchmark
    identity: Mapping[str, Any]
    counted: str


def analyze(
    config: Evaluated | Path | str, *, runs: Path | str = RUNS, say: Say | None = None
) -> Analyzed:
    """Analyzes a benchmark, and writes `analysis.json` into its run's folder."""
    options = AnalysisOptions()
    protocol: Protocol = "corrected"
    if not isinstance(config, Evaluated) and _names_release(str(config)):
        source = _released(str(config), runs)
    else:
        config = config if isinstance(config, Evaluated) else load_evaluation(config)
        folder = evaluation_folder(config, runs)
        benchmark = benchmark_of(config, folder)
        manifest = _manifest(benchmark.reference)
        source = _source(config.name, benchmark, folder, manifest)
        options, protocol = config.analysis, config.protocol
    found = _analysis(source, options, protocol, say or (lambda _: None))
    path = source.folder.root / FILE
    write_json(path, found.model_dump(mode="json"), ensure_ascii=False)
    return Analyzed(path, found)


def _names_release(given: str) -> bool:
    if Path(given).exists():
        return Path(given).is_dir()
    # A misspelt config is not asked for on the Hub.
    return Path(given).suffix not in {".yaml", ".yml"} and bool(ON_HUB.fullmatch(given))


def _manifest(reference: str) -> Manifest | None:
    try:
        return manifest_of(reference)
    except ReleaseError:
        if Path(reference).exists():
            raise
        return None


def _released(reference: str, runs: Path | str) -> Source:
    manifest = _manifest(reference)
    name = manifest.name if manifest else reference.partition("@")[0].rpartition("/")[2]
    folder = RunFolder(Path(runs) / name)
    if (folder.root / CONFIG).exists() and Path(reference).resolve() != folder.release.resolve():
        raise RunError(
            f"{str(folder.root)!r} is the run of a config, with posts and ratings of its own: "
            f"analyze that config, or give another folder for {reference!r} (--runs)"
        )
    folder.root.mkdir(parents=True, exist_ok=True)
    return _source(name, Benchmark(reference, cache=folder.cache), folder, manifest)


def _source(
    name: str, benchmark: Benchmark, folder: RunFolder, manifest: Manifest | None
) -> Source:
    configs = _configs(manifest)
    identity = {**benchmark.identity(), "configs": configs}
    rows, path = _samples(benchmark, configs), folder.stage("collect") / "kept.parquet"
    posts, counted = feedback.posts_of_samples(rows), feedback.OF_SAMPLES
    if path.exists():
        try:
            posts = pq.read_table(path, columns=list(feedback.POST_COLUMNS)).cast(
                feedback.POST_SCHEMA
            )
            counted = feedback.COLLECTED
        except (OSError, pa.ArrowException, ValueError) as error:
            said = " ".join(str(error).split())[:LONGEST_SAID]
            raise RunError(
                f"cannot read {str(path)!r} ({said}): run `echo-hf collect` again"
            ) from None
    return Source(name, rows, posts, manifest, folder, benchmark, identity, counted)


def _configs(manifest: Manifest | None) -> list[str]:
    """The configs that hold every sample once or more."""
    held = set(manifest.configs) if manifest else {ANALYSIS}
    return [ANALYSIS] if ANALYSIS in held else [one for one in BENCHMARKS if one in held]


def _samples(benchmark: Benchmark, configs: Sequence[str]) -> tuple[Mapping[str, Any], ...]:
    samples = {}
    for config in configs:
        dataset = benchmark.load(config)
        there = [column for column in COLUMNS if column in dataset.column_names]
        for row in arrow_rows(dataset, there).to_pylist():
            samples[row["id"]] = {**dict.fromkeys(COLUMNS), **row}
    return tuple(samples.values())


def _analysis(source: Source, options: AnalysisOptions, protocol: Protocol, say: Say) -> Analysis:
    say("prompts and references")
    texts, ids = ([one[name] for one in source.samples] for name in ("prompt", "id"))
    references, not_fetched = read_references(options.references, source.folder.root)
    sets = [prompt_set(OWN, texts, ids=ids), *references]
    times, draws, seed = feedback.post_times(source.posts), options.draws, options.seed
    failed = feedback.failures(source.samples, times, examples=options.examples)
    keywords = failed.found.keywords if failed.found else None
    # Without a manifest nothing says when the target was released.
    posts = source.posts if source.manifest else None
    released = source.manifest.target.released if source.manifest else datetime.date.min
    before = _before(source, options)
    parts: dict[str, Any] = {
        "since": _since(before, source, failed),
        "diversity": diversity(sets, at=options.at),
        "lengths": lengths(sets),
        **_tasks(source, options, sets[1:], protocol, times, before),
        "failures": failed,
        "word_cloud": feedback.word_cloud(keywords, font=options.font, seed=seed),
        "interaction": feedback.interaction(source.samples, times),
        "activity": feedback.activity(posts, released, source.counted),
        "funnel": feedback.funnel_steps(source.manifest),
    }
    say("near-duplicates and languages")
    parts["near_duplicates"] = near_duplicates(sets, similarity=options.similarity, seed=seed)
    parts["languages"] = languages(sets)
    say("the map of prompts")
    parts["embedding_map"] = embedding_map(sets, options.embedding, seed=seed)
    say("perplexity")
    parts["perplexity"] = perplexity(sets, options.perplexity, draws=draws, seed=seed)
    facts = [
        SetFacts(
            name=one.name,
            prompts=len(one.prompts),
            left_out={str(reason): count for reason, count in sorted(one.left_out.items())},
            source=one.source,
        )
        for one in sets
    ]
    return Analysis(
        name=source.name,
        toolkit=toolkit_version(),
        source=source.identity,
        samples=len(source.samples),
        sets=tuple(facts),
        not_fetched=not_fetched,
        **parts,
    )


def _tasks(
    source: Source,
    options: AnalysisOptions,
    references: Sequence[PromptSet],
    protocol: Protocol,
    times: PostTimes,
    before: Before | None,
) -> dict[str, AnalysisPart[Any]]:
    if not source.samples:
        none: AnalysisPart[Any] = AnalysisPart.without(NotAnalyzed.NO_PROMPTS)
        return {"tasks": none, "open_tasks": none}
    shown = {one.name: one.inputs for one in options.references}
    inputs, engine = [shown[one.name] for one in references], options.task_engine
    told, untold = list[ReferenceTasks](), None
    try:
        if engine is None:
            told = reference_tasks(references, inputs)
        else:
            target = source.manifest.target if source.manifest else ANY_TARGET
            told = asked_tasks(references, inputs, engine, target, source.folder)
    except (EngineError, MissingExtraError) as error:
        untold = str(error)
    by_name = dict(zip((one.name for one in references), told, strict=False))
    why = untold or (UNTOLD if engine else RULES_HAVE_NONE)
    compared = [
        ComparedPhrases(
            one.name, len(one.prompts), by_name.get(one.name, ((), ()))[1], why, one.source
        )
        for one in references
    ]
    if before is not None:
        phrases = [one["task_phrase"] for one in before.samples]
        compared.append(ComparedPhrases(BEFORE, len(phrases), phrases, source=before.identity))
    how: dict[str, Any] = {"protocol": protocol, "draws": options.draws, "seed": options.seed}
    rates, unrated = rates_of_run(source.benchmark, source.folder, source.samples, **how)
    kinds = tasks(
        source.samples,
        {name: counts for name, (counts, _) in by_name.items()},
        rates,
        no_rates=unrated,
        no_references=untold,
        engine=engine.model_dump() if engine else None,
    )
    named = open_tasks(source.samples, times, compared, options.embedding)
    return {"tasks": kinds, "open_tasks": named}


class Before(NamedTuple):
    """The release before: its samples, and what it says of itself."""

    samples: Sequence[Mapping[str, Any]]
    identity: Mapping[str, Any]
    manifest: Manifest | None

    @property
    def name(self) -> str | None:
        found: str | None = self.identity["on_hub"] or self.identity["name"]
        return found


def _before(source: Source, options: AnalysisOptions) -> Before | None:
    """The one that is named, else the one that `update` replaced."""
    replaced = complete(source.folder.previous)
    named = options.before or (str(replaced) if replaced.exists() else None)
    if named is None:
        return None
    benchmark, manifest = Benchmark(named, cache=source.folder.cache), _manifest(named)
    return Before(_samples(benchmark, _configs(manifest)), benchmark.identity(), manifest)


def _since(
    before: Before | None, source: Source, failed: AnalysisPart[Failures]
) -> AnalysisPart[Since]:
    if before is None:
        return AnalysisPart.without(NotAnalyzed.NO_RELEASE_BEFORE)
    both, spelled = (before.samples, source.samples), dict[str, str]()

    def keywords(found: Failures | None) -> dict[str, int]:
        told = found.keywords if found else ()
        forms = {feedback.keyword_form(one.keyword): one for one in told}
        return {spelled.setdefault(form, one.keyword): one.comments for form, one in forms.items()}

    # Today's spelling names a failure in both.
    now = keywords(failed.found)
    earlier = keywords(feedback.failures(before.samples, PostTimes()).found)
    bigrams = ((first_bigram(one["prompt"] or "") for one in some) for some in both)
    found = Since(
        name=BEFORE if before.name in (None, source.name) else str(before.name),
        target=before.manifest.target.name if before.manifest else None,
        samples=len(before.samples),
        shared=len(set.intersection(*({one["id"] for one in some} for some in both))),
        tasks=_shift(*(Counter(one["task"] or UNKNOWN for one in some) for some in both)),
        first_bigrams=_shift(*(Counter(filter(None, some)) for some in bigrams)),
        failures=_shift(earlier, now),
    )
    definition = {
        "distance": "total variation distance of the shares, 0 to 1",
        "change": "share now minus share before; a failure is counted by its comments",
        "before": dict(before.identity),
    }
    return AnalysisPart(found=found, definition=definition)


def _shift(before: Mapping[str, int], now: Mapping[str, int]) -> Shift:
    found = drift(before, now)
    moved = (
        Moved(name=one.name, before=one.a, now=one.b, change=one.change) for one in found.movers
    )
    return Shift(distance=found.distance, before=found.a, now=found.b, moved=tuple(moved))
