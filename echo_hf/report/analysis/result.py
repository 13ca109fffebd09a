"""`analysis.json`: everything that the analysis of a benchmark found, part by part."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError

from echo_hf._infra.atomic import write_json
from echo_hf.errors import RunError
from echo_hf.reasons import NotAnalyzed, Unscored

Found = TypeVar("Found")
Counts = Mapping[str, NonNegativeInt]


class Figures(BaseModel):
    """Figures that JSON can hold: immutable, closed to unknown keys, without NaN or infinity."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)


class Estimate(Figures):
    """A number with its interval at 95 %.

    Attributes:
        value: Null where there is none.
        low: Lower end, null where there is no interval.
        high: Upper end, likewise.
        reason: Why there is no number, or no interval.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: NotAnalyzed | Unscored | None = None


class AnalysisPart(Figures, Generic[Found]):
    """One part of an analysis, which stands or falls alone.

    Attributes:
        found: Its figures, null where there are none.
        reason: Why there are none.
        detail: The same in one line, for a person.
        definition: What exactly was computed, with what models and numbers.
    """

    found: Found | None = None
    reason: NotAnalyzed | None = None
    detail: str | None = None
    definition: Mapping[str, Any] = {}


class Example(Figures):
    """Words of a post: its address, when it was posted (ISO 8601, UTC), its first characters."""

    post_url: str | None
    time: str | None
    text: str | None


class FailureKeyword(Figures):
    """One kind of failure that people speak of."""

    keyword: str
    comments: NonNegativeInt
    samples: NonNegativeInt
    spellings: Counts
    by_month: Counts
    examples: tuple[Example, ...]


class Failures(Figures):
    """What people say failed."""

    keywords: tuple[FailureKeyword, ...]
    verdicts: Counts
    unnamed: NonNegativeInt
    untimed: NonNegativeInt


class WordCloud(Figures):
    """A word cloud of the failures."""

    svg: str
    words: NonNegativeInt
    left_out: Counts


class Workaround(Figures):
    """A comment that speaks of success where another one spoke of a failure."""

    id: str
    prompt: str | None
    failed: tuple[str, ...]
    comment: Example


class Probe(Figures):
    """A request that explores the model itself."""

    id: str
    prompt: str | None
    post: Example
    comments: NonNegativeInt


class Interaction(Figures):
    """How people work with the model (figure 5): ways round failures, and probes."""

    workarounds: tuple[Workaround, ...]
    probes: tuple[Probe, ...]


class Day(Figures):
    """Posts of one day, 0:00 to 24:00 UTC."""

    date: str
    since_release: int
    posts: NonNegativeInt
    found: NonNegativeInt
    came_along: NonNegativeInt
    unknown: NonNegativeInt


class Activity(Figures):
    """Posts over time (figure 5c)."""

    days: tuple[Day, ...]
    keywords: Counts
    undated: NonNegativeInt


class FunnelStep(Figures):
    """One stage of the build (figure 2).

    Attributes:
        stage: Name.
        rows_in: Rows it read.
        kept: Rows that went on.
        reads: What those rows are.
        makes: What these rows are.
        lost: Rows rejected or in quarantine, by reason.
        headline: What the stage says of itself, null where it says nothing.
    """

    stage: str
    rows_in: NonNegativeInt
    kept: NonNegativeInt
    reads: str
    makes: str
    lost: Counts
    headline: str | None


class SetFacts(Figures):
    """What a prompt set is.

    Attributes:
        name: As the config calls it; `benchmark` for the benchmark's own prompts.
        prompts: How many there are to analyze.
        left_out: How many rows are no prompts, by reason.
        source: Where they come from: file and sha256, or dataset and revision.
    """

    name: str
    prompts: NonNegativeInt
    left_out: Counts
    source: Mapping[str, Any]


class SetDiversity(Figures):
    """First bigrams of one prompt set.

    Attributes:
        name: Of the set.
        counted: Prompts with a first bigram.
        left_out: Prompts without one, by reason.
        unique: How many different first bigrams those have, whatever their number.
        at: The number of prompts that sets are compared at.
        expected: How many different ones `at` prompts drawn without replacement have on average.
        deviation: Standard deviation of that number over such draws.
        ratio: The benchmark's expected number through this set's, at `ratio_at`; null for itself.
        ratio_at: The smaller of the two numbers of counted prompts.
        most_common: The most frequent first bigrams with their counts.
    """

    name: str
    counted: NonNegativeInt
    left_out: Counts
    unique: NonNegativeInt
    at: NonNegativeInt
    expected: Estimate
    deviation: float | None
    ratio: Estimate | None
    ratio_at: NonNegativeInt | None
    most_common: tuple[tuple[str, NonNegativeInt], ...]


class Quartiles(Figures):
    """The middle of a distribution."""

    low: float
    median: float
    high: float


class SetLengths(Figures):
    """Lengths of the prompts of one set.

    Attributes:
        name: Of the set.
        characters: Code points, white space at the ends left out; null without prompts.
        words: Words; null without prompts whose words can be told.
        words_of: Of how many prompts.
    """

    name: str
    characters: Quartiles | None
    words: Quartiles | None
    words_of: NonNegativeInt


class SetLanguages(Figures):
    """Languages of the prompts of one set: counts by two- or three-letter code, or `unknown`."""

    name: str
    prompts: Counts


class SetDuplicates(Figures):
    """Near-duplicates within one prompt set."""

    name: str
    prompts: NonNegativeInt
    clusters: NonNegativeInt
    in_clusters: NonNegativeInt
    share: float | None
    largest: NonNegativeInt


class SetPerplexity(Figures):
    """How probable a language model finds the prompts of one set; lower is more natural.

    Attributes:
        name: Of the set.
        prompts: Prompts with at least one scored token, and a finite perplexity.
        tokens: Scored tokens.
        left_out: Prompts without a perplexity, by reason.
        token_level: exp of the mean negative log-likelihood over all tokens.
        prompt_level: Mean over prompts of each one's own perplexity.
        median: Median over prompts of each one's own perplexity.
        ratio: This set's token-level perplexity through the benchmark's; null for itself.
        prompt_ratio: The same of the prompt-level ones.
    """

    name: str
    prompts: NonNegativeInt
    tokens: NonNegativeInt
    left_out: Counts
    token_level: Estimate
    prompt_level: Estimate
    median: float | None
    ratio: Estimate | None
    prompt_ratio: Estimate | None


class TaskCount(Figures):
    """Samples of one kind of task.

    Attributes:
        task: As `tables.SAMPLES` names it, or `unknown`.
        samples: How many samples.
        share: Of all samples, 0 to 1.
        in_references: How many prompts of each reference set have it.
        absent_from: Reference sets without any such prompt.
    """

    task: str
    samples: NonNegativeInt
    share: float
    in_references: Counts
    absent_from: tuple[str, ...]


class TaskRate(Figures):
    """Win rates on the samples of one task."""

    split: str
    task: str
    samples: NonNegativeInt
    few: bool
    rates: Mapping[str, Estimate]
    coverage: Mapping[str, float | None]


class Tasks(Figures):
    """Tasks of the benchmark: counts, the most frequent first; win rates where there are ratings.

    Attributes:
        counts: By task.
        kinds: Samples by kind: task, probe, unknown.
        rates: By split and task; empty where nothing is rated.
        no_rates: Why there are none, in one line.
        no_references: Why the tasks of references are not known, in one line; null where they are.
    """

    counts: tuple[TaskCount, ...]
    kinds: Counts
    rates: tuple[TaskRate, ...]
    no_rates: str | None
    no_references: str | None = None


class Point(Figures):
    """A prompt on the map.

    Attributes:
        prompt_set: Name of its set.
        id: The sample's, or the place in the set from 0 as text.
        x: First principal component.
        y: Second principal component.
        nearest: Cosine distance, 0 to 2, to the nearest prompt of any reference; null for those.
    """

    prompt_set: str
    id: str
    x: float
    y: float
    nearest: float | None


class NovelPrompt(Figures):
    """A prompt far from every reference: its sample, the first words, the nearest one's words."""

    id: str
    prompt: str
    distance: float
    nearest_set: str
    nearest_prompt: str


class EmbeddingMap(Figures):
    """Prompts and references in the plane of the two main directions.

    Attributes:
        points: Each prompt.
        explained: Shares of the variance along x and y, 0 to 1.
        nearest: Quartiles of the distance to the nearest reference; null without references.
        most_novel: The prompts that are farthest from every reference, the farthest first.
        left_out: Prompts that are not on the map, by reason.
    """

    points: tuple[Point, ...]
    explained: tuple[float, float]
    nearest: Quartiles | None
    most_novel: tuple[NovelPrompt, ...]
    left_out: Counts


FORMAT: Literal[1] = 1
FILE = "analysis.json"


class Analysis(Figures):
    """All of `analysis.json`."""

    format: Literal[1] = FORMAT
    name: str
    toolkit: str
    source: Mapping[str, Any]
    samples: NonNegativeInt
    sets: tuple[SetFacts, ...]
    diversity: AnalysisPart[tuple[SetDiversity, ...]]
    lengths: AnalysisPart[tuple[SetLengths, ...]]
    languages: AnalysisPart[tuple[SetLanguages, ...]]
    near_duplicates: AnalysisPart[tuple[SetDuplicates, ...]]
    perplexity: AnalysisPart[tuple[SetPerplexity, ...]]
    tasks: AnalysisPart[Tasks]
    embedding_map: AnalysisPart[EmbeddingMap]
    failures: AnalysisPart[Failures]
    word_cloud: AnalysisPart[WordCloud]
    interaction: AnalysisPart[Interaction]
    activity: AnalysisPart[Activity]
    funnel: AnalysisPart[tuple[FunnelStep, ...]]


def write_analysis(path: Path, analysis: Analysis) -> Path:
    """Writes an analysis as a whole, so that a killed process leaves the old file or the new."""
    write_json(path, analysis.model_dump(mode="json"), ensure_ascii=False)
    return path


def read_analysis(path: Path) -> Analysis | None:
    if not path.exists():
        return None
    try:
        return Analysis.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        said = " ".join(str(error).splitlines()[:2])
        raise RunError(f"cannot read {str(path)!r} ({said}): run `echo-hf analyze` again") from None
