"""Tasks, by kind and in free words: which there are, who wins, which are new (figures 1 and 3)."""

from __future__ import annotations

import datetime
import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset
from numpy.typing import NDArray

from echo_hf._infra.bootstrap import FEWEST_SAMPLES
from echo_hf.config.evaluation import AnalysisOptions, EmbeddingOptions
from echo_hf.config.sections import Target
from echo_hf.curate.feedback import Feedback
from echo_hf.engines.base import make_engine
from echo_hf.engines.rules import task_of
from echo_hf.errors import MissingExtraError
from echo_hf.judging.run_tables import read_run
from echo_hf.metrics.result import check_extra, get_versions
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.pipeline.stage_runner import run_stage
from echo_hf.reasons import NotAnalyzed, Unrated
from echo_hf.report.analysis import result
from echo_hf.report.analysis.feedback import PostTimes
from echo_hf.report.analysis.models import embedded, nearest, without_model
from echo_hf.report.analysis.prompts import EXTRA, UNKNOWN, PromptSet
from echo_hf.report.analysis.result import AnalysisPart, Estimate
from echo_hf.samples.sample import SAMPLES_IN_CONTEXT
from echo_hf.scores.rating_table import RUBRIC
from echo_hf.scores.votes import ProtocolName
from echo_hf.scores.win_rate import win_rate
from echo_hf.systems.benchmark import Benchmark
from echo_hf.tables import RATINGS

Sample = Mapping[str, Any]
NO_IMAGE = "0" * 64  # the stage asks how many images there are, not what they show


def tasks(
    samples: Sequence[Sample],
    references: Mapping[str, Counter[str]],
    rates: Sequence[result.TaskRate] = (),
    *,
    no_references: str | None = None,
    engine: Mapping[str, Any] | None = None,
) -> AnalysisPart[result.Tasks]:
    """Counts samples by task, and says which tasks reference sets lack."""
    every = Counter(sample["task"] or UNKNOWN for sample in samples)
    counts = []
    for task, number in sorted(every.items(), key=lambda pair: (-pair[1], pair[0])):
        known = {} if task == UNKNOWN else references
        # A task is absent from a set of which all prompts are known, and none is of it.
        absent = (
            name for name, found in known.items() if found and not (found[task] or found[UNKNOWN])
        )
        counts.append(
            result.TaskCount(
                task=task,
                samples=number,
                share=number / len(samples),
                in_references={name: found[task] for name, found in known.items()},
                absent_from=tuple(absent),
            )
        )
    found = result.Tasks(counts=tuple(counts), rates=tuple(rates), no_references=no_references)
    return AnalysisPart(found=found, definition={"engine": engine and dict(engine)})


def rates_of_run(
    benchmark: Benchmark, folder: RunFolder, samples: Sequence[Sample], **how: Any
) -> list[result.TaskRate]:
    """Win rates by task of every split, computed as told; none where nothing is rated."""
    if not (folder.root / f"{RATINGS.name}.parquet").exists():
        return []
    tables = read_run(benchmark, folder)
    task_of = {sample["id"]: sample["task"] or UNKNOWN for sample in samples}
    found: list[result.TaskRate] = []
    for split in tables.tasks:
        ratings, outputs = (tables.of_split(one, split) for one in (tables.ratings, tables.outputs))
        if ratings is not None:
            found += task_rates(split, ratings, outputs, task_of, **how)
    return found


def task_rates(
    split: str,
    ratings: pa.Table,
    outputs: pa.Table | None,
    task_of: Mapping[str, str],
    *,
    protocol: ProtocolName = "corrected",
    draws: int = 1000,
    seed: int = 0,
) -> Iterator[result.TaskRate]:
    overall = ratings.filter(pc.equal(ratings["rubric"], RUBRIC))
    # Of a sample that a judge was spared there is no vote.
    spared = overall.filter(pc.equal(overall["outcome"], Unrated.NOT_NEEDED.value))["sample_id"]
    voted = pc.invert(pc.is_in(overall["sample_id"], spared.unique()))
    overall = overall.filter(pc.and_(voted, pc.is_valid(overall["rating"])))
    by_task: dict[str, list[str]] = defaultdict(list)
    for sample in sorted(overall["sample_id"].unique().to_pylist()):
        by_task[task_of.get(sample, UNKNOWN)].append(sample)
    for task, samples in sorted(by_task.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        names = pa.array(samples, pa.string())
        rated, made = (
            table if table is None else table.filter(pc.is_in(table["sample_id"], names))
            for table in (overall, outputs)
        )
        found = win_rate(rated, made, protocol=protocol, n_boot=draws, seed=seed)
        rates = {}
        for system, value in found.win_rate.items():
            low, high = found.interval[system] or (None, None)
            reason = found.reasons.get(system)
            rates[system] = Estimate(value=value, low=low, high=high, reason=reason)
        yield result.TaskRate(
            split=split,
            task=task,
            samples=len(samples),
            few=len(samples) < FEWEST_SAMPLES,
            rates=rates,
        )


# The tasks of a reference set, counted, and the phrases of its prompts.
ReferenceTasks = tuple[Counter[str], Sequence[str | None]]


def told_tasks(
    references: Sequence[PromptSet], options: AnalysisOptions, target: Target, folder: RunFolder
) -> list[ReferenceTasks]:
    """By the answers of the config's engine, which the run's store keeps, else by plain rules.

    Rules tell a task as they do in the stage `feedback`, and know no phrases.
    """
    images, choice = {one.name: one.inputs for one in options.references}, options.task_engine
    if choice is None:
        return [
            (Counter(task_of(prompt, images[one.name]) or UNKNOWN for prompt in one.prompts), ())
            for one in references
        ]
    stage, told = Feedback(target), list[ReferenceTasks]()
    with make_engine(choice.kind, **choice.options) as engine, closing(folder.store()) as store:
        for one in references:
            rows = [
                {
                    **dict.fromkeys(SAMPLES_IN_CONTEXT.columns),
                    "id": name,
                    "prompt": prompt,
                    "quality": "Benchmark",
                    "post_urls": [f"reference:{one.name}"],
                    "input_images": [NO_IMAGE] * images[one.name],
                    "output_images": [],
                    "community_feedback": [],
                    "context": [],
                    "provenance": "{}",
                }
                for name, prompt in zip(one.ids, one.prompts, strict=True)
            ]
            samples = Dataset(pa.Table.from_pylist(rows, SAMPLES_IN_CONTEXT.schema))
            found = run_stage(stage, samples, engine=engine, store=store).dataset
            tasks = Counter(task or UNKNOWN for task in found["task"])
            told.append((tasks, found["task_phrase"]))
    return told


UNTOLD = "none of its prompts has a phrase"
MOST_LINKED = 5000  # phrases: each is compared with each
MOST_NAMED = 10  # phrases of a group
Vectors = Any  # a row each, dense or sparse


class PhraseSpace(NamedTuple):
    """Vectors of phrases, and the largest cosine distances, from 0 to 2, in a group and to one."""

    embed: Callable[[Sequence[str]], Vectors]
    together: float
    near: float
    definition: Mapping[str, Any]


@dataclass(frozen=True)
class ComparedPhrases:
    """Another set of prompts: their phrases, null where one has none, or why there are none."""

    name: str
    prompts: int
    phrases: Sequence[str | None] = ()
    untold: str = UNTOLD
    source: Mapping[str, Any] = field(default_factory=dict)

    @property
    def counts(self) -> Counter[str]:
        return Counter(one for one in self.phrases if one)


def open_tasks(
    samples: Sequence[Sample],
    times: PostTimes,
    compared: Sequence[ComparedPhrases] = (),
    embedding: EmbeddingOptions | None = None,
) -> AnalysisPart[result.OpenTasks]:
    """Groups the phrases of samples, and says which groups other sets of prompts lack."""
    counts = Counter(one["task_phrase"] for one in samples if one["task_phrase"])
    if not counts:
        return AnalysisPart.without(NotAnalyzed.NO_PHRASES)
    try:
        check_extra("open tasks", EXTRA, ("sklearn",))
    except MissingExtraError as error:
        return without_model(error)
    space = space_of(
        sorted({*counts, *(name for one in compared for name in one.counts)}), embedding
    )
    groups = phrase_groups(counts, space)
    days: dict[str, list[datetime.date]] = defaultdict(list)
    for sample in samples:
        if moment := times.of((sample["post_urls"] or [None])[0]):
            days[sample["task_phrase"]].append(moment.astimezone(datetime.UTC).date())
    beside = {one.name: group_counts(groups, one.counts, space) for one in compared if one.counts}
    found = []
    for at, group in enumerate(groups):
        size, own = sum(group.values()), sorted(day for phrase in group for day in days[phrase])
        found.append(
            result.TaskGroup(
                phrase=next(iter(group)),
                samples=size,
                share=size / counts.total(),
                phrases=dict(Counter(dict(sorted(group.items()))).most_common(MOST_NAMED)),
                different=len(group),
                first_seen=own[0] if own else None,
                by_week=Counter(day - datetime.timedelta(days=day.weekday()) for day in own),
                elsewhere={name: counted[at] for name, (_, counted) in beside.items()},
                new_to=tuple(name for name, (known, _) in beside.items() if at not in known),
            )
        )
    others = [
        result.PhraseSet(
            name=one.name,
            prompts=one.prompts,
            phrased=one.counts.total(),
            untold=None if one.counts else one.untold,
        )
        for one in compared
    ]
    named = result.OpenTasks(
        groups=tuple(sorted(found, key=lambda one: (-one.samples, one.phrase))),
        phrased=counts.total(),
        undated=counts.total() - sum(len(days[phrase]) for phrase in counts),
        compared=tuple(others),
    )
    definition = {
        "group": "agglomerative clustering, complete linkage, cosine distance: any two phrases of "
        f"a group lie at most {space.together} apart; of more than {MOST_LINKED} different "
        "phrases the rarer ones go to the group of the nearest, or stand alone",
        "new": f"no phrase of the set lies within {space.near} of any phrase of the group",
        "compared": {one.name: dict(one.source) for one in compared},
        **space.definition,
        **get_versions("scikit-learn"),
    }
    return AnalysisPart(found=named, definition=definition)


def space_of(phrases: Sequence[str], options: EmbeddingOptions | None) -> PhraseSpace:
    """The vectors of a sentence encoder; where there is none, of the words and their letters."""
    instead = "no model is named as analysis.embedding"
    if options is not None:
        try:
            prompts = PromptSet("phrases", tuple(phrases), tuple(phrases))
            (vectors,), about = embedded([prompts], options)
            at = {phrase: row for row, phrase in enumerate(phrases)}
            # Of 158 phrases for 54 tasks, groups of them are 0.97 homogeneous, 0.96 complete.
            return PhraseSpace(lambda some: vectors[[at[one] for one in some]], 0.55, 0.4, about)
        except Exception as error:  # of whatever the driver, memory or files are short
            instead = str(without_model(error).detail)
    # Of the same phrases 0.97 and 0.89: the same in other words is told apart.
    by = "TF-IDF of words but for common ones, and of runs of 3 to 5 letters in words"
    return PhraseSpace(tfidf, 0.7, 0.65, {"vectors": by, "instead_of": {"embedding": instead}})


def tfidf(phrases: Sequence[str]) -> Vectors:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline, make_union
    from sklearn.preprocessing import Normalizer

    letters = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), sublinear_tf=True)
    words = TfidfVectorizer(stop_words="english", sublinear_tf=True)
    # It refuses to have nothing to count.
    kinds = [letters, *([words] if any(map(words.build_analyzer(), phrases)) else [])]
    return make_pipeline(make_union(*kinds), Normalizer()).fit_transform(phrases)


def phrase_groups(counts: Mapping[str, int], space: PhraseSpace) -> list[dict[str, int]]:
    """Groups of phrases with their counts, in each the most central phrase first."""
    from sklearn.metrics.pairwise import cosine_distances

    phrases = sorted(counts)  # so that their order among the samples counts for nothing
    vectors, weights = space.embed(phrases), np.array([counts[one] for one in phrases])
    labels = _labels(phrases, vectors, weights, space)
    groups = []
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        # Rounded: equal sums differ in their last bits. The first of them is the first by text.
        sums = (cosine_distances(vectors[rows]) @ weights[rows]).round(6)
        names = dict.fromkeys(phrases[row] for row in [rows[sums.argmin()], *rows])
        groups.append({name: counts[name] for name in names})
    return groups


def _labels(
    phrases: Sequence[str], vectors: Vectors, weights: NDArray[np.int64], space: PhraseSpace
) -> NDArray[np.int64]:
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.metrics.pairwise import cosine_distances

    digests = [hashlib.sha256(one.encode()).digest() for one in phrases]
    order = sorted(range(len(phrases)), key=lambda row: (-weights[row], digests[row]))
    linked, rest = np.sort(order[:MOST_LINKED]), np.sort(order[MOST_LINKED:]).astype(np.int64)
    labels = np.arange(len(phrases))
    if len(linked) > 1:
        clustering = AgglomerativeClustering(
            n_clusters=None,
            metric="precomputed",
            linkage="complete",
            distance_threshold=np.nextafter(space.together, 2),  # at it, two are still together
        )
        labels[linked] = clustering.fit_predict(cosine_distances(vectors[linked]))
    near = nearest(vectors[rest], vectors[linked])
    joins = near.distance <= space.near
    labels[rest] = np.where(joins, labels[linked][near.place], rest + len(phrases))
    return labels


def group_counts(
    groups: Sequence[Iterable[str]], others: Mapping[str, int], space: PhraseSpace
) -> tuple[set[int], Counter[int]]:
    """The groups that another set has, and its prompts by their nearest group."""
    own = [(at, phrase) for at, group in enumerate(groups) for phrase in group]
    theirs = sorted(others)
    vectors = space.embed([*(phrase for _, phrase in own), *theirs])
    ours, rest = vectors[: len(own)], vectors[len(own) :]
    is_near = nearest(ours, rest).distance <= space.near
    counts = Counter[int]()
    found = nearest(rest, ours)
    for phrase, distance, place in zip(theirs, found.distance, found.place, strict=True):
        if distance <= space.near:
            counts[own[place][0]] += others[phrase]
    return {at for (at, _), near in zip(own, is_near, strict=True) if near}, counts
