"""Figures of prompt sets: what they are, how they begin, their lengths, languages, perplexity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import NonNegativeInt

from echo_hf.analysis.figures import Counts, Estimate, Figures


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
    """Near-duplicates within one prompt set.

    Attributes:
        name: Of the set.
        prompts: How many were compared.
        clusters: Groups of two or more prompts that are nearly the same.
        in_clusters: Prompts in such groups.
        share: The same as a share of all, 0 to 1; null without prompts.
        largest: Size of the largest group, 0 where there is none.
    """

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
