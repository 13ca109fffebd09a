"""Analyze tasks, by kind and in free words: frequencies, win rates, new ones (figures 1 and 3)."""

from __future__ import annotations

import datetime
import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasets import Dataset
from numpy.typing import NDArray

from echo_hf._infra.bootstrap import MIN_SAMPLES
from echo_hf.config.evaluation import AnalysisOptions, EmbeddingOptions
from echo_hf.config.sections import Target
from echo_hf.curate.feedback import Feedback
from echo_hf.engines.base import make_engine
from echo_hf.engines.rules import guess_task
from echo_hf.metrics.result import get_versions
from echo_hf.pipeline.run_folder import RunFolder
from echo_hf.pipeline.stage_runner import run_stage
from echo_hf.report.analysis import result
from echo_hf.report.analysis.feedback import PostTimes
from echo_hf.report.analysis.models import embed_prompts, find_nearest, omit_for_error
from echo_hf.report.analysis.prompts import EXTRA, UNKNOWN, PromptSet
from echo_hf.report.analysis.result import AnalysisPart, IntervalFigure, NotAnalyzed
from echo_hf.samples.sample import SAMPLES_IN_CONTEXT
from echo_hf.scores.rating_table import RUBRIC, Unrated
from echo_hf.scores.votes import ProtocolName
from echo_hf.scores.win_rate import win_rate
from echo_hf.systems.benchmark import Benchmark
from echo_hf.systems.run_tables import read_run
from echo_hf.tables import RATINGS, SampleRow

NO_IMAGE = "0" * 64  # the stage counts images, and does not look at them


def count_tasks(
    samples: Sequence[SampleRow],
    references: Mapping[str, Counter[str]],
    rates: Sequence[result.TaskRate] = (),
    *,
    no_references: str | None = None,
    engine: Mapping[str, Any] | None = None,
) -> AnalysisPart[result.TaskAnalysis]:
    """Count samples by task, and find the tasks that reference sets lack."""
    by_task = Counter(sample["task"] or UNKNOWN for sample in samples)
    counts = []
    for task, number in sorted(by_task.items(), key=lambda pair: (-pair[1], pair[0])):
        known_sets = {} if task == UNKNOWN else references
        # Absent are tasks without a prompt in a set of which every prompt's task is known.
        absent = []
        for name, tally in known_sets.items():
            if tally and not (tally[task] or tally[UNKNOWN]):
                absent.append(name)
        counts.append(
            result.TaskCount(
                task=task,
                samples=number,
                share=number / len(samples),
                in_references={name: tally[task] for name, tally in known_sets.items()},
                absent_from=tuple(absent),
            )
        )
    figures = {"counts": tuple(counts), "rates": tuple(rates), "no_references": no_references}
    definition = {"engine": engine and dict(engine)}
    return AnalysisPart(found=result.TaskAnalysis(**figures), definition=definition)


def compute_run_rates(
    benchmark: Benchmark, folder: RunFolder, samples: Sequence[SampleRow], **options: Any
) -> list[result.TaskRate]:
    """Compute the win rates of every split by task; empty where nothing is rated."""
    if not (folder.root / f"{RATINGS.name}.parquet").exists():
        return []
    tables = read_run(benchmark, folder)
    task_of = {sample["id"]: sample["task"] or UNKNOWN for sample in samples}
    rates: list[result.TaskRate] = []
    for split in tables.tasks:
        ratings = tables.select_split(tables.ratings, split)
        outputs = tables.select_split(tables.outputs, split)
        if ratings is not None:
            rates += compute_task_rates(split, ratings, outputs, task_of, **options)
    return rates


def compute_task_rates(
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
    # Samples that some judge was spared have no vote.
    spared = overall.filter(pc.equal(overall["outcome"], Unrated.NOT_NEEDED.value))["sample_id"]
    voted = pc.invert(pc.is_in(overall["sample_id"], spared.unique()))
    overall = overall.filter(pc.and_(voted, pc.is_valid(overall["rating"])))
    by_task: dict[str, list[str]] = defaultdict(list)
    for sample in sorted(overall["sample_id"].unique().to_pylist()):
        by_task[task_of.get(sample, UNKNOWN)].append(sample)
    for task, samples in sorted(by_task.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        names = pa.array(samples, pa.string())
        task_ratings, task_outputs = (
            table if table is None else table.filter(pc.is_in(table["sample_id"], names))
            for table in (overall, outputs)
        )
        win_rates = win_rate(task_ratings, task_outputs, protocol=protocol, n_boot=draws, seed=seed)
        rates = {}
        for system, value in win_rates.win_rate.items():
            low, high = win_rates.interval[system] or (None, None)
            reason = win_rates.reasons.get(system)
            rates[system] = IntervalFigure(value=value, low=low, high=high, reason=reason)
        yield result.TaskRate(
            split=split,
            task=task,
            samples=len(samples),
            few=len(samples) < MIN_SAMPLES,
            rates=rates,
        )


# The task counts of a reference set, and the phrases of its prompts.
ReferenceTasks = tuple[Counter[str], Sequence[str | None]]


def read_reference_tasks(
    references: Sequence[PromptSet], options: AnalysisOptions, target: Target, folder: RunFolder
) -> list[ReferenceTasks]:
    """Read tasks from the stored answers of the config's engine, or guess them by rules.

    Rules tell a task as they do in the stage `feedback`, and know no phrases.
    """
    images, choice = {set_.name: set_.inputs for set_ in options.references}, options.task_engine
    set_tasks = list[ReferenceTasks]()
    if choice is None:
        for set_ in references:
            count = images[set_.name]
            tasks = Counter(guess_task(prompt, count) or UNKNOWN for prompt in set_.prompts)
            set_tasks.append((tasks, ()))
        return set_tasks
    stage = Feedback(target)
    with (
        make_engine(choice.kind, **choice.options) as engine,
        closing(folder.open_store()) as store,
    ):
        for set_ in references:
            rows = [
                {
                    **dict.fromkeys(SAMPLES_IN_CONTEXT.columns),
                    "id": name,
                    "prompt": prompt,
                    "quality": "Benchmark",
                    "post_urls": [f"reference:{set_.name}"],
                    "input_images": [NO_IMAGE] * images[set_.name],
                    "output_images": [],
                    "community_feedback": [],
                    "context": [],
                    "provenance": "{}",
                }
                for name, prompt in zip(set_.ids, set_.prompts, strict=True)
            ]
            samples = Dataset(pa.Table.from_pylist(rows, SAMPLES_IN_CONTEXT.schema))
            answers = run_stage(stage, samples, engine=engine, store=store).dataset
            tasks = Counter(task or UNKNOWN for task in answers["task"])
            set_tasks.append((tasks, answers["task_phrase"]))
    return set_tasks


NO_PHRASE = "none of its prompts has a phrase"
MAX_LINKED = 5000  # the clustering compares each phrase with each
MAX_LISTED = 10  # phrases shown of a group
PhraseVectors = Any  # a row for each phrase, dense or sparse


class PhraseSpace(NamedTuple):
    """Vectors of phrases, and the largest cosine distances, 0 to 2, within a group and to it."""

    embed: Callable[[Sequence[str]], PhraseVectors]
    group_distance: float
    near_distance: float
    definition: Mapping[str, Any]


@dataclass(frozen=True)
class ComparedPhrases:
    """Phrases of another set of prompts, null where a prompt has none; or why there are none."""

    name: str
    prompts: int
    phrases: Sequence[str | None] = ()
    untold: str = NO_PHRASE
    source: Mapping[str, Any] = field(default_factory=dict)

    @property
    def counts(self) -> Counter[str]:
        return Counter(phrase for phrase in self.phrases if phrase)


def group_task_phrases(
    samples: Sequence[SampleRow],
    times: PostTimes,
    compared: Sequence[ComparedPhrases] = (),
    embedding: EmbeddingOptions | None = None,
) -> AnalysisPart[result.TaskPhraseAnalysis]:
    """Group the phrases of samples, and find the groups that other sets of prompts lack."""
    counts = Counter(sample["task_phrase"] for sample in samples if sample["task_phrase"])
    if not counts:
        return AnalysisPart.omit(NotAnalyzed.NO_PHRASES)
    if not find_spec("sklearn"):
        return AnalysisPart.omit_without(EXTRA, "open tasks")
    phrases = set(counts)
    for other in compared:
        phrases.update(other.counts)
    space = choose_space(sorted(phrases), embedding)
    groups = group_phrases(counts, space)
    days: dict[str, list[datetime.date]] = defaultdict(list)
    for sample in samples:
        if moment := times.get((sample["post_urls"] or [None])[0]):
            days[sample["task_phrase"]].append(moment.astimezone(datetime.UTC).date())
    phrased = [other for other in compared if other.counts]
    sets = {other.name: count_groups(groups, other.counts, space) for other in phrased}
    rows = []
    for index, group in enumerate(groups):
        size, own = sum(group.values()), sorted(day for phrase in group for day in days[phrase])
        rows.append(
            result.TaskGroup(
                phrase=next(iter(group)),
                samples=size,
                share=size / counts.total(),
                phrases=dict(Counter(dict(sorted(group.items()))).most_common(MAX_LISTED)),
                different=len(group),
                first_seen=own[0] if own else None,
                by_week=Counter(day - datetime.timedelta(days=day.weekday()) for day in own),
                elsewhere={name: counted[index] for name, (_, counted) in sets.items()},
                new_to=tuple(name for name, (owned, _) in sets.items() if index not in owned),
            )
        )
    others = [
        result.PhraseSet(
            name=other.name,
            prompts=other.prompts,
            phrased=other.counts.total(),
            untold=None if other.counts else other.untold,
        )
        for other in compared
    ]
    analysis = result.TaskPhraseAnalysis(
        groups=tuple(sorted(rows, key=lambda group: (-group.samples, group.phrase))),
        phrased=counts.total(),
        undated=counts.total() - sum(len(days[phrase]) for phrase in counts),
        compared=tuple(others),
    )
    definition = {
        "group": "agglomerative clustering, complete linkage, cosine distance: any two phrases of "
        f"a group lie at most {space.group_distance} apart; of more than {MAX_LINKED} different "
        "phrases the rarer ones go to the group of the nearest, or stand alone",
        "new": f"no phrase of the set lies within {space.near_distance} of any phrase of the group",
        "compared": {other.name: dict(other.source) for other in compared},
        **space.definition,
        **get_versions("scikit-learn"),
    }
    return AnalysisPart(found=analysis, definition=definition)


def choose_space(phrases: Sequence[str], options: EmbeddingOptions | None) -> PhraseSpace:
    """Choose vectors of a sentence encoder, or else TF-IDF of words and letters."""
    instead = "no model is named as analysis.embedding"
    if options is not None:
        try:
            prompts = PromptSet("phrases", tuple(phrases), tuple(phrases))
            (vectors,), about = embed_prompts([prompts], options)
            at = {phrase: row for row, phrase in enumerate(phrases)}
            # Chosen on 158 phrases for 54 tasks: groups are 0.97 homogeneous and 0.96 complete.
            return PhraseSpace(
                lambda part: vectors[[at[phrase] for phrase in part]], 0.55, 0.4, about
            )
        except Exception as error:  # loading or running a model may raise anything
            instead = str(omit_for_error(error).detail)
    # On the same phrases 0.97 and 0.89: paraphrases end up in different groups.
    by = "TF-IDF of words but for common ones, and of runs of 3 to 5 letters in words"
    return PhraseSpace(vectorize, 0.7, 0.65, {"vectors": by, "instead_of": {"embedding": instead}})


def vectorize(phrases: Sequence[str]) -> PhraseVectors:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline, make_union
    from sklearn.preprocessing import Normalizer

    letters = TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), sublinear_tf=True)
    words = TfidfVectorizer(stop_words="english", sublinear_tf=True)
    # The vectorizer raises an error where only stop words are left.
    kinds = [letters, *([words] if any(map(words.build_analyzer(), phrases)) else [])]
    return make_pipeline(make_union(*kinds), Normalizer()).fit_transform(phrases)


def group_phrases(counts: Mapping[str, int], space: PhraseSpace) -> list[dict[str, int]]:
    """Group phrases with their counts, in each group the most central phrase first."""
    from sklearn.metrics.pairwise import cosine_distances

    phrases = sorted(counts)  # sorted, so that the order of samples does not matter
    vectors, weights = space.embed(phrases), np.array([counts[phrase] for phrase in phrases])
    labels = _label_phrases(phrases, vectors, weights, space)
    groups = []
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        # Rounded, since equal sums differ in their last bits; ties go to the first by text.
        sums = (cosine_distances(vectors[rows]) @ weights[rows]).round(6)
        names = dict.fromkeys(phrases[row] for row in [rows[sums.argmin()], *rows])
        groups.append({name: counts[name] for name in names})
    return groups


def _label_phrases(
    phrases: Sequence[str], vectors: PhraseVectors, weights: NDArray[np.int64], space: PhraseSpace
) -> NDArray[np.int64]:
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.metrics.pairwise import cosine_distances

    digests = [hashlib.sha256(phrase.encode()).digest() for phrase in phrases]
    order = sorted(range(len(phrases)), key=lambda row: (-weights[row], digests[row]))
    linked, rare = np.sort(order[:MAX_LINKED]), np.sort(order[MAX_LINKED:]).astype(np.int64)
    labels = np.arange(len(phrases))
    if len(linked) > 1:
        clustering = AgglomerativeClustering(
            n_clusters=None,
            metric="precomputed",
            linkage="complete",
            distance_threshold=np.nextafter(space.group_distance, 2),  # inclusive
        )
        labels[linked] = clustering.fit_predict(cosine_distances(vectors[linked]))
    closest = find_nearest(vectors[rare], vectors[linked])
    joins = closest.distance <= space.near_distance
    labels[rare] = np.where(joins, labels[linked][closest.place], rare + len(phrases))
    return labels


def count_groups(
    groups: Sequence[Iterable[str]], others: Mapping[str, int], space: PhraseSpace
) -> tuple[set[int], Counter[int]]:
    """Return the groups that another set has, and the number of its prompts by nearest group."""
    own = [(index, phrase) for index, group in enumerate(groups) for phrase in group]
    phrases = sorted(others)
    vectors = space.embed([*(phrase for _, phrase in own), *phrases])
    own_vectors, other_vectors = vectors[: len(own)], vectors[len(own) :]
    is_near = find_nearest(own_vectors, other_vectors).distance <= space.near_distance
    counts = Counter[int]()
    closest = find_nearest(other_vectors, own_vectors)
    for phrase, distance, place in zip(phrases, closest.distance, closest.place, strict=True):
        if distance <= space.near_distance:
            counts[own[place][0]] += others[phrase]
    present = {index for (index, _), is_close in zip(own, is_near, strict=True) if is_close}
    return present, counts
