"""Figures of tasks: how often people give them, who wins at them, how new prompts are."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import NonNegativeInt

from echo_hf.analysis.figures import Counts, Estimate, Figures
from echo_hf.analysis.prompt_figures import Quartiles


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
    """Win rates on the samples of one task.

    Attributes:
        split: Name of the split.
        task: Of the samples.
        samples: Rated samples of the task.
        few: Whether they are too few for an interval.
        rates: By system, best first.
        coverage: Share, 0 to 1, of each system's comparisons that count.
    """

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
