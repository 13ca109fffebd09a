"""Measure how different prompts are: distinct bigrams at equal sizes, and near-duplicates."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from itertools import islice
from typing import NamedTuple

import numpy as np

from echo_hf._infra.bootstrap import Unscored
from echo_hf.report.analysis.prompts import (
    EXTRA,
    PromptSet,
    UnsegmentedError,
    define_words,
    first_two_words,
    split_words,
)
from echo_hf.report.analysis.result import (
    AnalysisPart,
    IntervalFigure,
    NotAnalyzed,
    SetDiversity,
    SetDuplicates,
)

QUANTILE = 1.959963984540054  # 97.5 % quantile of the normal distribution


class RarefiedCount(NamedTuple):
    size: int
    expected: float
    error: float

    @property
    def interval(self) -> tuple[float, float]:
        """Return the 95 % interval for another such sample, within 0 and its size."""
        margin = QUANTILE * self.error
        return max(self.expected - margin, 0.0), min(self.expected + margin, float(self.size))


def rarefy(counts: Iterable[int], size: int) -> RarefiedCount:
    """Estimate how many kinds a subsample without replacement has on average (Colwell 2012)."""
    frequencies = Counter(counts)  # by number of occurrences, how many kinds have it
    occurrences, kinds = np.array(sorted(frequencies.items()), dtype=np.int64).reshape(-1, 2).T
    total = int(occurrences @ kinds)
    # By number of members, the probability that none of them is drawn; its length is total + 1.
    others = np.arange(total, dtype=np.float64)
    with np.errstate(divide="ignore"):
        steps = np.log(np.maximum(total - size - others, 0)) - np.log(total - others)
    missed = np.exp(np.concatenate([[0.0], np.cumsum(steps)]))[occurrences]
    expected = float(((1 - missed) * kinds).sum())
    # Chao's estimate of the number of kinds, including those that were not observed.
    once, twice = frequencies[1], frequencies[2]
    hidden = once**2 / (2 * twice) if twice else once * (once - 1) / 2
    richness = max(frequencies.total() + (total - 1) / total * hidden if total else 0.0, 1.0)
    error = float(((1 - missed) ** 2 * kinds).sum() - expected**2 / richness)
    return RarefiedCount(size, expected, math.sqrt(max(error, 0.0)))


def estimate_ratio(own: RarefiedCount, other: RarefiedCount) -> IntervalFigure:
    """Estimate the ratio of two counts at one size; its interval is by the delta method on logs."""
    share = own.expected / other.expected
    margin = QUANTILE * math.hypot(own.error / own.expected, other.error / other.expected)
    if not margin:
        return IntervalFigure(value=share, reason=Unscored.NO_SPREAD)
    # One set has at most `size` different bigrams, the other at least one.
    low, high = max(share * math.exp(-margin), 1 / own.size), share * math.exp(margin)
    return IntervalFigure(value=share, low=low, high=min(high, float(own.size)))


class FirstBigrams(NamedTuple):
    counts: Counter[tuple[str, str]]
    left_out: Counter[NotAnalyzed]


def count_bigrams(prompts: Sequence[str]) -> FirstBigrams:
    bigrams = FirstBigrams(Counter(), Counter())
    for prompt in prompts:
        try:
            bigram = first_two_words(prompt)
        except UnsegmentedError:
            bigrams.left_out[NotAnalyzed.UNSEGMENTED] += 1
            continue
        if bigram is None:
            bigrams.left_out[NotAnalyzed.FEW_WORDS] += 1
        else:
            bigrams.counts[bigram] += 1
    return bigrams


def measure_diversity(
    sets: Sequence[PromptSet], *, at: int | None = None
) -> AnalysisPart[tuple[SetDiversity, ...]]:
    bigram_sets = [count_bigrams(prompt_set.prompts) for prompt_set in sets]
    own, left_out = bigram_sets[0]
    if not own:
        if left_out[NotAnalyzed.UNSEGMENTED]:  # the reason that a user can do something about
            return AnalysisPart.omit_without(EXTRA, "words where no spaces are written")
        return AnalysisPart.omit(NotAnalyzed.FEW_WORDS if left_out else NotAnalyzed.NO_PROMPTS)
    size = at or min(bigrams.counts.total() for bigrams in bigram_sets if bigrams.counts)
    figures = []
    for number, (prompt_set, (counts, left_out)) in enumerate(zip(sets, bigram_sets, strict=True)):
        shared = min(counts.total(), own.total())
        ratio = IntervalFigure(value=None, reason=NotAnalyzed.NO_PROMPTS)
        if shared:
            ratio = estimate_ratio(*(rarefy(counter.values(), shared) for counter in (own, counts)))
        expected = IntervalFigure(value=None, reason=NotAnalyzed.FEW_PROMPTS)
        if size <= counts.total():
            rare = rarefy(counts.values(), size)
            low, high = rare.interval if rare.error else (None, None)
            reason = None if rare.error else Unscored.NO_SPREAD
            expected = IntervalFigure(value=rare.expected, low=low, high=high, reason=reason)
        figures.append(
            SetDiversity(
                name=prompt_set.name,
                counted=counts.total(),
                left_out={str(reason): count for reason, count in sorted(left_out.items())},
                unique=len(counts),
                at=size,
                expected=expected,
                ratio=ratio if number else None,
                ratio_at=shared if number else None,
            )
        )
    definition = {
        **define_words(),
        "expected": "mean over all subsamples of `at` prompts without replacement, exact",
        "at": size,
        "interval": "95 %, for another sample of `at` prompts of the same kind (Colwell 2012)",
    }
    return AnalysisPart(found=tuple(figures), definition=definition)


SHINGLE_WORDS = 3  # words in a shingle
SHINGLE_CHARACTERS = (
    5  # characters in a shingle, of a text without words or whose words cannot be segmented
)
PERMUTATIONS = 128
MAX_MISSED = 1e-4  # share of pairs at the threshold that MinHash may miss; they are never compared
Shingles = frozenset[str]


def make_shingles(prompt: str) -> Shingles:
    """Return the runs of three words of a prompt, or of five characters where it has no words."""
    try:
        pieces, size, separator = list(split_words(prompt)), SHINGLE_WORDS, " "
    except UnsegmentedError:
        pieces = []
    if not pieces:
        pieces, size, separator = list("".join(prompt.casefold().split())), SHINGLE_CHARACTERS, ""
    last = max(len(pieces) - size, 0)
    return frozenset(separator.join(pieces[at : at + size]) for at in range(last + 1))


def choose_bands(similarity: float) -> tuple[int, int]:
    """Choose bands and rows of MinHash: a pair is a candidate when one whole band agrees."""
    fitting = (
        rows
        for rows in range(PERMUTATIONS, 0, -1)
        if (1 - similarity**rows) ** (PERMUTATIONS // rows) <= MAX_MISSED
    )
    rows = next(fitting, 1)
    return PERMUTATIONS // rows, rows


def find_duplicates(
    sets: Sequence[PromptSet], *, similarity: float = 0.8, seed: int = 0
) -> AnalysisPart[tuple[SetDuplicates, ...]]:
    if not find_spec("datasketch"):
        return AnalysisPart.omit_without(EXTRA, "near-duplicates")
    figures = []
    for prompt_set in sets:
        prompts = prompt_set.prompts
        sizes = list(map(len, cluster(prompts, similarity=similarity, seed=seed)))
        total = len(prompts)
        figures.append(
            SetDuplicates(
                name=prompt_set.name,
                prompts=total,
                clusters=len(sizes),
                in_clusters=sum(sizes),
                share=sum(sizes) / total if total else None,
            )
        )
    number, rows = choose_bands(similarity)
    missed = (1 - similarity**rows) ** number
    definition = {
        "similarity": similarity,
        "measure": f"Jaccard of runs of {SHINGLE_WORDS} words, exact for candidates",
        "candidates": f"MinHash of {PERMUTATIONS} permutations, {missed:.0e} of pairs at it missed",
        "bands_and_rows": [number, rows],
        "seed": seed,
    }
    return AnalysisPart(found=tuple(figures), definition=definition)


def cluster(prompts: Sequence[str], *, similarity: float, seed: int = 0) -> list[list[int]]:
    """Group prompts that are connected by pairs of near-duplicates."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    runs = [make_shingles(prompt) for prompt in prompts]
    pairs = list(_pair_up(runs, similarity, seed))
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(pairs)), (ends[0], ends[1])), shape=(len(runs), len(runs)))
    _, labels = connected_components(graph, directed=False)
    groups: dict[int, list[int]] = defaultdict(list)
    for at, label in enumerate(labels.tolist()):
        groups[label].append(at)
    return [group for group in groups.values() if len(group) > 1]


def _pair_up(runs: Sequence[Shingles], similarity: float, seed: int) -> Iterator[tuple[int, int]]:
    """Yield pairs of near-duplicates; prompts with equal shingles are joined in a chain."""
    from datasketch import MinHash, MinHashLSH

    equal: dict[Shingles, list[int]] = defaultdict(list)
    for at, shingles in enumerate(runs):
        equal[shingles].append(at)
    index = MinHashLSH(num_perm=PERMUTATIONS, params=choose_bands(similarity))
    # Copied for each prompt, since making one is most of the work.
    blank = MinHash(num_perm=PERMUTATIONS, seed=seed)
    for indices in equal.values():
        yield from zip(indices, islice(indices, 1, None), strict=False)
        at, hashed = indices[0], blank.copy()
        hashed.update_batch([run.encode() for run in runs[at]])
        for other in index.query(hashed):
            shared, union = runs[at] & runs[other], runs[at] | runs[other]
            if len(shared) / len(union) >= similarity:
                yield other, at
        index.insert(at, hashed)
