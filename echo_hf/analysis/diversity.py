"""How many different first bigrams prompts have, compared at one number of prompts (figure 3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from echo_hf.analysis.figures import Estimate, Part
from echo_hf.analysis.prompt_set import PromptSet
from echo_hf.analysis.rarefaction import Rarefied, rarefied
from echo_hf.analysis.ratio import ratio
from echo_hf.analysis.result import SetDiversity
from echo_hf.analysis.words import UnsegmentedError, first_bigram, word_definition
from echo_hf.errors import MissingExtraError
from echo_hf.reasons import NotAnalyzed, Unscored

EXTRA = "analysis"
MOST_COMMON = 10
Diversities = Part[tuple[SetDiversity, ...]]


@dataclass(frozen=True)
class FirstBigrams:
    """First bigrams of a prompt set.

    Attributes:
        counts: How many prompts begin with each.
        left_out: Prompts that have none, by reason.
    """

    counts: Counter[tuple[str, str]]
    left_out: Counter[NotAnalyzed]


def first_bigrams(prompts: Sequence[str]) -> FirstBigrams:
    """Counts how prompts begin.

    Args:
        prompts: The prompts, in any languages.

    Returns:
        Counts of their first two words.

    Example:
        >>> found = first_bigrams(["A photo of a cat", "a PHOTO, of a dog", "Draw a cat", "bond"])
        >>> found.counts[("a", "photo")], len(found.counts), found.left_out.total()
        (2, 2, 1)
    """
    counts: Counter[tuple[str, str]] = Counter()
    left_out: Counter[NotAnalyzed] = Counter()
    for prompt in prompts:
        try:
            bigram = first_bigram(prompt)
        except UnsegmentedError:
            left_out[NotAnalyzed.UNSEGMENTED] += 1
            continue
        if bigram is None:
            left_out[NotAnalyzed.FEW_WORDS] += 1
        else:
            counts[bigram] += 1
    return FirstBigrams(counts, left_out)


def diversity(sets: Sequence[PromptSet], *, at: int | None = None) -> Diversities:
    """Compares the first bigrams of prompt sets.

    Args:
        sets: The prompt sets, the benchmark's own first.
        at: The number of prompts to compare at; null for that of the smallest set.

    Returns:
        The figures of each set, in the same order. A set with fewer than `at` prompts has none at
        that number, and says so.
    """
    found = [first_bigrams(one.prompts) for one in sets]
    if not found or not found[0].counts:
        return _no_bigrams(found[0].left_out if found else Counter())
    sizes = [one.counts.total() for one in found if one.counts]
    size = min(sizes) if at is None else at
    own, *_ = found
    figures = tuple(
        _figures(one.name, bigrams, None if bigrams is own else own, size)
        for one, bigrams in zip(sets, found, strict=True)
    )
    return Diversities(found=figures, definition=_definition(size))


def _no_bigrams(left_out: Counter[NotAnalyzed]) -> Diversities:
    """Why no prompt of the benchmark has a first bigram: what to install comes first."""
    if left_out[NotAnalyzed.UNSEGMENTED]:
        detail = str(MissingExtraError("words where no spaces are written", EXTRA))
        return Diversities(reason=NotAnalyzed.MISSING_EXTRA, detail=detail)
    reason = NotAnalyzed.FEW_WORDS if left_out else NotAnalyzed.NO_PROMPTS
    return Diversities(reason=reason, detail=reason.meaning)


def _figures(name: str, found: FirstBigrams, own: FirstBigrams | None, at: int) -> SetDiversity:
    rare = _at(found, at)
    counted, shared = found.counts.total(), None
    if own is not None:
        shared = min(counted, own.counts.total())
    return SetDiversity(
        name=name,
        counted=counted,
        left_out={str(reason): count for reason, count in sorted(found.left_out.items())},
        unique=len(found.counts),
        at=at,
        expected=_estimate(rare),
        deviation=rare.deviation if rare else None,
        ratio=None if own is None or shared is None else _ratio(own, found, shared),
        ratio_at=shared,
        most_common=tuple((" ".join(pair), count) for pair, count in _ranked(found.counts)),
    )


def _at(found: FirstBigrams, size: int) -> Rarefied | None:
    if not found.counts or size > found.counts.total():
        return None
    return rarefied(found.counts.values(), size)


def _estimate(rare: Rarefied | None) -> Estimate:
    if rare is None:
        return Estimate(value=None, reason=NotAnalyzed.FEW_PROMPTS)
    if not rare.error:
        return Estimate(value=rare.expected, reason=Unscored.NO_SPREAD)
    low, high = rare.interval
    return Estimate(value=rare.expected, low=low, high=high)


def _ratio(own: FirstBigrams, other: FirstBigrams, size: int) -> Estimate:
    mine, theirs = _at(own, size), _at(other, size)
    if mine is None or theirs is None:
        return Estimate(value=None, reason=NotAnalyzed.NO_PROMPTS)
    found = ratio(mine.expected, mine.error, theirs.expected, theirs.error)
    if found.low is None or found.high is None:
        return found
    # One set has at most `size` different ones, the other at least one.
    ends = {"low": max(found.low, 1 / size), "high": min(found.high, float(size))}
    return found.model_copy(update=ends)


def _ranked(counts: Counter[tuple[str, str]]) -> list[tuple[tuple[str, str], int]]:
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:MOST_COMMON]


def _definition(at: int) -> dict[str, Any]:
    return {
        **word_definition(),
        "bigram": "the first two words of a prompt; a prompt of one word has none",
        "expected": "mean over all subsamples of `at` prompts without replacement, exact",
        "at": at,
        "interval": "95 %, for another sample of `at` prompts of the same kind (Colwell 2012)",
        "ratio": "the benchmark's expected number through the set's, at `ratio_at` prompts",
    }
