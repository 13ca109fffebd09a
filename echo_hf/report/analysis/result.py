"""The models of `analysis.json`: one part for each analysis of a benchmark."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Generic, Literal, Self, TypeVar

from pydantic import BaseModel, NonNegativeInt

from echo_hf._infra.bootstrap import Unscored
from echo_hf._infra.summary import SummaryMixin
from echo_hf.errors import MissingExtraError
from echo_hf.judging.figures import FigureModel, read_figures
from echo_hf.judging.validity import ComplaintMeasures
from echo_hf.reasons import Reason


class NotAnalyzed(Reason):
    """Why a part of the analysis has no figures, or leaves a row out."""

    MISSING_EXTRA = "missing_extra", "a package that it needs is not installed"
    NOT_CONFIGURED = "not_configured", "the config names no model for it"
    MODEL_UNAVAILABLE = "model_unavailable", "the model cannot be loaded, or fails"
    NO_PROMPTS = "no_prompts", "there is no prompt to look at"
    NO_COMMENTS = "no_comments", "no comment was judged, or none speaks of a failure"
    NO_POSTS = "no_posts", "the posts are not at hand, and no sample says when its was posted"
    NO_PHRASES = "no_phrases", "no task has a phrase: rules know none, and older releases have none"
    NO_RELEASE_BEFORE = "no_release_before", "no release before is named, nor was one replaced"
    NO_RUN = "no_run", "the stages' counts are not at hand"
    NO_TEXT = "no_text", "the row holds no text, or its words are left out of the release"
    BROKEN_TEXT = "broken_text", "the row holds half characters, which no file can hold"
    FEW_PROMPTS = "few_prompts", "the set has fewer prompts than sets are compared at"
    FEW_WORDS = "few_words", "the prompt has fewer than two words"
    UNSEGMENTED = "unsegmented", "its script has no spaces; the package to find words is missing"
    NO_SCORED_TOKEN = "no_scored_token", "a single token: nothing before it tells its probability"
    NOT_FINITE = "not_finite", "the model gives it no finite probability"
    NOT_SHOWN = "not_shown", "the plot shows a random draw of the set, and it is not in it"
    BAD_FONT = "bad_font", "the font cannot be read"
    NO_GLYPHS = "no_glyphs", "the font has no glyph for one of its characters"
    LEFT_OUT = "left_out", "words or images are left out: `echo-hf hydrate` puts them back"
    NO_SPACE = "no_space", "the image has no space left for it"


ResultT = TypeVar("ResultT")
FiguresT = TypeVar("FiguresT", bound=BaseModel)
CountsByName = Mapping[str, NonNegativeInt]
PREVIOUS = "the release before"  # names of references have no spaces


class IntervalFigure(FigureModel):
    """A number with its 95 % interval; where one of them is null, `reason` says why."""

    value: float | None
    low: float | None = None
    high: float | None = None
    reason: NotAnalyzed | Unscored | None = None


class AnalysisPart(FigureModel, Generic[ResultT]):
    """One independent part of an analysis: figures, or the reason why there are none.

    `definition` says what exactly was computed, with what models and numbers.
    """

    found: ResultT | None = None
    reason: NotAnalyzed | None = None
    detail: str | None = None
    definition: Mapping[str, Any] = {}

    @classmethod
    def omit(cls, reason: NotAnalyzed, detail: str | None = None) -> Self:
        return cls(reason=reason, detail=detail or reason.meaning)

    @classmethod
    def omit_without(cls, extra: str, feature: str) -> Self:
        return cls.omit(NotAnalyzed.MISSING_EXTRA, str(MissingExtraError(feature, extra)))


class SetFacts(FigureModel):
    name: str
    prompts: NonNegativeInt
    left_out: CountsByName
    source: Mapping[str, Any]


class SetDiversity(FigureModel):
    """The first bigrams of one prompt set.

    `expected` is how many different ones `at` prompts drawn without replacement have on average;
    `ratio` is the benchmark's expected number through this set's, at `ratio_at`, the smaller of
    the two numbers of counted prompts.
    """

    name: str
    counted: NonNegativeInt
    left_out: CountsByName
    unique: NonNegativeInt
    at: NonNegativeInt
    expected: IntervalFigure
    ratio: IntervalFigure | None
    ratio_at: NonNegativeInt | None


class Quartiles(FigureModel):
    low: float
    median: float
    high: float


class SetLengths(FigureModel):
    """Lengths of prompts in code points, and in words where they can be split."""

    name: str
    characters: Quartiles | None
    words: Quartiles | None
    words_of: NonNegativeInt


class SetLanguages(FigureModel):
    name: str
    prompts: CountsByName  # by two- or three-letter code, or `unknown`


class SetDuplicates(FigureModel):
    name: str
    prompts: NonNegativeInt
    clusters: NonNegativeInt
    in_clusters: NonNegativeInt
    share: float | None


class SetPerplexity(FigureModel):
    """The perplexity of one set's prompts under a language model; lower is more natural.

    `token_level` is exp of the mean negative log-likelihood over all tokens, `prompt_level` the
    mean over prompts of each one's own; `ratio` and `prompt_ratio` are through the benchmark's.
    """

    name: str
    prompts: NonNegativeInt
    tokens: NonNegativeInt
    left_out: CountsByName
    token_level: IntervalFigure
    prompt_level: IntervalFigure
    median: float | None
    ratio: IntervalFigure | None
    prompt_ratio: IntervalFigure | None


class TaskCount(FigureModel):
    task: str
    samples: NonNegativeInt
    share: float
    in_references: CountsByName
    absent_from: tuple[str, ...]


class TaskRate(FigureModel):
    split: str
    task: str
    samples: NonNegativeInt
    few: bool
    rates: Mapping[str, IntervalFigure]


class TaskAnalysis(FigureModel):
    """Tasks by frequency, and win rates by task; `no_references` says why none is compared."""

    counts: tuple[TaskCount, ...]
    rates: tuple[TaskRate, ...]
    no_references: str | None = None


class TaskGroup(FigureModel):
    """Samples whose task phrases mean the same, named by the most central phrase.

    `phrases` are the most frequent of `different` ones; `by_week` counts samples by the Mondays of
    their posts; `elsewhere` counts prompts of other sets, and `new_to` names those without any.
    """

    phrase: str
    samples: NonNegativeInt
    share: float
    phrases: CountsByName
    different: NonNegativeInt
    first_seen: datetime.date | None
    by_week: Mapping[datetime.date, NonNegativeInt]
    elsewhere: CountsByName
    new_to: tuple[str, ...]


class PhraseSet(FigureModel):
    """A set that task phrases are compared with; `untold` says why nothing can be compared."""

    name: str
    prompts: NonNegativeInt
    phrased: NonNegativeInt
    untold: str | None


class TaskPhraseAnalysis(FigureModel):
    """Tasks in the model's own words, by frequency; shares are of `phrased` samples."""

    groups: tuple[TaskGroup, ...]
    phrased: NonNegativeInt
    undated: NonNegativeInt
    compared: tuple[PhraseSet, ...]

    def share_before(self, group: TaskGroup) -> float | None:
        """Return a task's share in the previous release; null where that had no phrases."""
        phrased = {other.name: other.phrased for other in self.compared}.get(PREVIOUS, 0)
        return group.elsewhere[PREVIOUS] / phrased if phrased else None


class ChangedCount(FigureModel):
    """A count in the previous release and now, and the change of its share, from -1 to 1."""

    name: str
    before: NonNegativeInt
    now: NonNegativeInt
    change: float


class ShareShift(FigureModel):
    """The distance between the shares of two releases, 0 to 1; the largest change comes first."""

    distance: float | None
    before: NonNegativeInt
    now: NonNegativeInt
    moved: tuple[ChangedCount, ...]


class ReleaseComparison(FigureModel):
    """The changes in what people ask since the previous release, and the samples of both."""

    name: str
    target: str | None
    samples: NonNegativeInt
    shared: NonNegativeInt
    tasks: ShareShift
    first_bigrams: ShareShift
    failures: ShareShift


class MapPoint(FigureModel):
    """A prompt on the map, and its cosine distance, 0 to 2, to the nearest reference prompt."""

    prompt_set: str
    id: str
    x: float
    y: float
    nearest: float | None


class NovelPrompt(FigureModel):
    """A prompt far from every reference: its sample, its first words, and the nearest prompt's."""

    id: str
    prompt: str
    distance: float
    nearest_set: str
    nearest_prompt: str


class EmbeddingMap(FigureModel):
    """Prompts and references in the plane of their two principal components."""

    points: tuple[MapPoint, ...]
    explained: tuple[float, float]
    nearest: Quartiles | None
    most_novel: tuple[NovelPrompt, ...]
    left_out: CountsByName


class Example(FigureModel):
    """A quote from a post: its URL, its time (ISO 8601, UTC) and its first characters."""

    post_url: str | None
    time: str | None
    text: str | None


class FailureKeyword(FigureModel):
    keyword: str
    comments: NonNegativeInt
    samples: NonNegativeInt
    spellings: CountsByName
    by_month: CountsByName
    examples: tuple[Example, ...]


class FailureAnalysis(FigureModel):
    keywords: tuple[FailureKeyword, ...]
    verdicts: CountsByName


class WordCloud(FigureModel):
    svg: str
    words: NonNegativeInt
    left_out: CountsByName


class Workaround(FigureModel):
    """A comment about success after another comment named a failure."""

    id: str
    prompt: str | None
    failed: tuple[str, ...]
    comment: Example


class Probe(FigureModel):
    id: str
    prompt: str | None
    post: Example
    comments: NonNegativeInt


class Interaction(FigureModel):
    workarounds: tuple[Workaround, ...]
    probes: tuple[Probe, ...]


class DayCount(FigureModel):
    """The posts of one day, 0:00 to 24:00 UTC."""

    date: str
    since_release: int
    posts: NonNegativeInt


class Activity(FigureModel):
    days: tuple[DayCount, ...]
    keywords: CountsByName
    undated: NonNegativeInt


class FunnelStep(FigureModel):
    """One stage of the build (figure 2): rows read and kept, and rows lost by reason."""

    stage: str
    rows_in: NonNegativeInt
    kept: NonNegativeInt
    reads: str
    makes: str
    lost: CountsByName


class Analysis(SummaryMixin, FigureModel):
    """The whole analysis; `not_fetched` are sets missing from the Hub, each with the reason."""

    format: Literal[1] = 1
    name: str
    toolkit: str
    source: Mapping[str, Any]
    samples: NonNegativeInt
    sets: tuple[SetFacts, ...]
    not_fetched: Mapping[str, str] = {}
    diversity: AnalysisPart[tuple[SetDiversity, ...]]
    lengths: AnalysisPart[tuple[SetLengths, ...]]
    languages: AnalysisPart[tuple[SetLanguages, ...]]
    near_duplicates: AnalysisPart[tuple[SetDuplicates, ...]]
    perplexity: AnalysisPart[tuple[SetPerplexity, ...]]
    tasks: AnalysisPart[TaskAnalysis]
    # Analyses of older versions lack these parts.
    open_tasks: AnalysisPart[TaskPhraseAnalysis] = AnalysisPart.omit(NotAnalyzed.NO_PHRASES)
    since: AnalysisPart[ReleaseComparison] = AnalysisPart.omit(NotAnalyzed.NO_RELEASE_BEFORE)
    measures: AnalysisPart[ComplaintMeasures] = AnalysisPart.omit(NotAnalyzed.NO_COMMENTS)
    embedding_map: AnalysisPart[EmbeddingMap]
    failures: AnalysisPart[FailureAnalysis]
    word_cloud: AnalysisPart[WordCloud]
    interaction: AnalysisPart[Interaction]
    activity: AnalysisPart[Activity]
    funnel: AnalysisPart[tuple[FunnelStep, ...]]

    @property
    def parts(self) -> dict[str, AnalysisPart[Any]]:
        return {name: part for name, part in self if isinstance(part, AnalysisPart)}


def read_analysis(path: Path) -> Analysis | None:
    return read_figures(path, Analysis, "analyze")
