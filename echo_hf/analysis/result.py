"""`analysis.json`: everything that the analysis of a benchmark found, part by part.

Each part stands alone: where its package, its model or its data is missing, it says so in its place
and the others have their figures. A list of prompt sets begins with the benchmark's own prompts,
and the references follow in the order of the config.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import NonNegativeInt

from echo_hf.analysis.figures import Figures, Part
from echo_hf.analysis.people_figures import (
    Activity,
    Day,
    Example,
    FailureKeyword,
    Failures,
    FunnelStep,
    Interaction,
    Probe,
    WordCloud,
    Workaround,
)
from echo_hf.analysis.prompt_figures import (
    Quartiles,
    SetDiversity,
    SetDuplicates,
    SetFacts,
    SetLanguages,
    SetLengths,
    SetPerplexity,
)
from echo_hf.analysis.task_figures import (
    EmbeddingMap,
    NovelPrompt,
    Point,
    TaskCount,
    TaskRate,
    Tasks,
)

__all__ = [
    "FILE",
    "FORMAT",
    "Activity",
    "Analysis",
    "Day",
    "EmbeddingMap",
    "Example",
    "FailureKeyword",
    "Failures",
    "FunnelStep",
    "Interaction",
    "NovelPrompt",
    "Point",
    "Probe",
    "Quartiles",
    "SetDiversity",
    "SetDuplicates",
    "SetFacts",
    "SetLanguages",
    "SetLengths",
    "SetPerplexity",
    "TaskCount",
    "TaskRate",
    "Tasks",
    "WordCloud",
    "Workaround",
]

FORMAT: Literal[1] = 1
FILE = "analysis.json"


class Analysis(Figures):
    """All of `analysis.json`.

    Attributes:
        format: Version of this shape.
        name: Of the run or the release.
        toolkit: Version that wrote it.
        source: What was analyzed: its name, on the Hub or not, digests of its splits, and the
            configs that samples were read from.
        samples: How many samples.
        sets: The prompt sets: the benchmark's first.
        diversity: Unique first bigrams, by set (figure 3, top right).
        lengths: Words and characters, by set.
        languages: Languages, by set.
        near_duplicates: Near-duplicates, by set.
        perplexity: By set (figure 3, bottom right).
        tasks: Tasks, and win rates by task (figure 3, top left).
        embedding_map: Prompts against references.
        failures: What people say failed (figure 4).
        word_cloud: The same as a picture.
        interaction: Workarounds and probes (figures 5a and 5b).
        activity: Posts over time (figure 5c).
        funnel: What each stage kept (figure 2).
    """

    format: Literal[1] = FORMAT
    name: str
    toolkit: str
    source: Mapping[str, Any]
    samples: NonNegativeInt
    sets: tuple[SetFacts, ...]
    diversity: Part[tuple[SetDiversity, ...]]
    lengths: Part[tuple[SetLengths, ...]]
    languages: Part[tuple[SetLanguages, ...]]
    near_duplicates: Part[tuple[SetDuplicates, ...]]
    perplexity: Part[tuple[SetPerplexity, ...]]
    tasks: Part[Tasks]
    embedding_map: Part[EmbeddingMap]
    failures: Part[Failures]
    word_cloud: Part[WordCloud]
    interaction: Part[Interaction]
    activity: Part[Activity]
    funnel: Part[tuple[FunnelStep, ...]]
