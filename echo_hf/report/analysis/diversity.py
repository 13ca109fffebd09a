"""How different prompts are: distinct bigrams at one number of prompts, and near-duplicates."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice

import numpy as np

from echo_hf.errors import MissingExtraError
from echo_hf.reasons import NotAnalyzed, Unscored
from echo_hf.report.analysis.prompts import (
    EXTRA,
    PromptSet,
    UnsegmentedError,
    first_bigram,
    word_definition,
    words,
)
from echo_hf.report.analysis.result import AnalysisPart, Estimate, SetDiversity, SetDuplicates

QUANTILE = 1.959963984540054  # of the normal distribution at 97.5 %
MOST_COMMON = 10


@dataclass(frozen=True)
class Rarefied:
    size: int
    expected: float
    deviation: float
    error: float

    @property
    def interval(self) -> tuple[float, float]:
        """Lower and upper end at 95 % for another such sample: from 0 to its size."""
        reach = QUANTILE * self.error
        return max(self.expected - reach, 0.0), min(self.expected + reach, float(self.size))


def rarefied(counts: Iterable[int], size: int) -> Rarefied:
    """How many kinds a subsample without replacement shows."""
    alike = Counter(counts)  # kinds by how often each was seen
    total = sum(seen * kinds for seen, kinds in alike.items())
    if min(alike, default=1) < 1 or not 0 <= size <= total:
        raise ValueError(f"size is {size}: expected 0 to {total}, and counts of 1 or more")
    seen, kinds = np.array(sorted(alike.items()), dtype=np.int64).reshape(-1, 2).T
    # By number of members, the probability that no member of a group is drawn; [total + 1].
    rest = np.arange(total, dtype=np.float64)
    with np.errstate(divide="ignore"):
        steps = np.log(np.maximum(total - size - rest, 0)) - np.log(total - rest)
    unseen = np.exp(np.concatenate([[0.0], np.cumsum(steps)]))
    missed = unseen[seen]
    expected = float(((1 - missed) * kinds).sum())
    both = unseen[np.minimum(seen[:, None] + seen, total)]
    covariance = (both - missed[:, None] * missed) * kinds[:, None] * kinds
    # Of one kind with itself: it is missed, or not.
    own = (missed - missed**2 - np.diagonal(both) + missed**2) * kinds
    variance = float(covariance.sum() + own.sum())
    # Chao's estimate of how many kinds there are, seen or not.
    once, twice = alike[1], alike[2]
    hidden = once**2 / (2 * twice) if twice else once * (once - 1) / 2
    every = max(alike.total() + (total - 1) / total * hidden if total else 0.0, 1.0)
    error = float(((1 - missed) ** 2 * kinds).sum() - expected**2 / every)
    return Rarefied(size, expected, math.sqrt(max(variance, 0.0)), math.sqrt(max(error, 0.0)))


def ratio(value: float, error: float, other: float, other_error: float) -> Estimate:
    """A ratio, its interval by the delta method on its logarithm."""
    if value <= 0 or other <= 0:
        return Estimate(value=None, reason=NotAnalyzed.NO_PROMPTS)
    share = value / other
    reach = QUANTILE * math.hypot(error / value, other_error / other)
    if not reach:
        return Estimate(value=share, reason=Unscored.NO_SPREAD)
    return Estimate(value=share, low=share * math.exp(-reach), high=share * math.exp(reach))


@dataclass(frozen=True)
class FirstBigrams:
    counts: Counter[tuple[str, str]]
    left_out: Counter[NotAnalyzed]

    def at(self, size: int) -> Rarefied | None:
        if not self.counts or size > self.counts.total():
            return None
        return rarefied(self.counts.values(), size)


def first_bigrams(prompts: Sequence[str]) -> FirstBigrams:
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


def diversity(
    sets: Sequence[PromptSet], *, at: int | None = None
) -> AnalysisPart[tuple[SetDiversity, ...]]:
    found = [first_bigrams(one.prompts) for one in sets]
    if not found[0].counts:
        left_out = found[0].left_out
        if left_out[NotAnalyzed.UNSEGMENTED]:  # what to install comes first
            detail = str(MissingExtraError("words where no spaces are written", EXTRA))
            return AnalysisPart.without(NotAnalyzed.MISSING_EXTRA, detail)
        return AnalysisPart.without(NotAnalyzed.FEW_WORDS if left_out else NotAnalyzed.NO_PROMPTS)
    size = min(one.counts.total() for one in found if one.counts) if at is None else at
    figures = []
    for one, bigrams in zip(sets, found, strict=True):
        rare, through, shared = bigrams.at(size), None, None
        if bigrams is not found[0]:
            shared = min(bigrams.counts.total(), found[0].counts.total())
            through = _ratio(found[0], bigrams, shared)
        expected = Estimate(value=None, reason=NotAnalyzed.FEW_PROMPTS)
        if rare:
            low, high = rare.interval if rare.error else (None, None)
            why = None if rare.error else Unscored.NO_SPREAD
            expected = Estimate(value=rare.expected, low=low, high=high, reason=why)
        ranked = sorted(bigrams.counts.items(), key=lambda pair: (-pair[1], pair[0]))
        figures.append(
            SetDiversity(
                name=one.name,
                counted=bigrams.counts.total(),
                left_out={str(why): count for why, count in sorted(bigrams.left_out.items())},
                unique=len(bigrams.counts),
                at=size,
                expected=expected,
                deviation=rare.deviation if rare else None,
                ratio=through,
                ratio_at=shared,
                most_common=tuple((" ".join(two), count) for two, count in ranked[:MOST_COMMON]),
            )
        )
    definition = {
        **word_definition(),
        "bigram": "the first two words of a prompt; a prompt of one word has none",
        "expected": "mean over all subsamples of `at` prompts without replacement, exact",
        "at": size,
        "interval": "95 %, for another sample of `at` prompts of the same kind (Colwell 2012)",
        "ratio": "the benchmark's expected number through the set's, at `ratio_at` prompts",
    }
    return AnalysisPart(found=tuple(figures), definition=definition)


def _ratio(own: FirstBigrams, other: FirstBigrams, size: int) -> Estimate:
    mine, theirs = own.at(size), other.at(size)
    if mine is None or theirs is None:
        return Estimate(value=None, reason=NotAnalyzed.NO_PROMPTS)
    found = ratio(mine.expected, mine.error, theirs.expected, theirs.error)
    if found.low is None or found.high is None:
        return found
    # One set has at most `size` different ones, the other at least one.
    ends = {"low": max(found.low, 1 / size), "high": min(found.high, float(size))}
    return found.model_copy(update=ends)


RUN = 3  # words
CHARACTERS = 5  # of a text whose words cannot be told, or that has none
PERMUTATIONS = 128
MISSED = 1e-4  # most of the pairs at the threshold that MinHash may miss: nobody compares those
Shingles = frozenset[str]


def shingles(prompt: str) -> Shingles:
    """The runs of three words of a prompt, or of five characters where it has no words."""
    try:
        pieces, size, between = list(words(prompt)), RUN, " "
    except UnsegmentedError:
        pieces = []
    if not pieces:
        pieces, size, between = list("".join(prompt.casefold().split())), CHARACTERS, ""
    last = max(len(pieces) - size, 0)
    return frozenset(between.join(pieces[at : at + size]) for at in range(last + 1))


def jaccard(one: Shingles, other: Shingles) -> float:
    return len(one & other) / len(one | other)


def bands(similarity: float) -> tuple[int, int]:
    """How MinHash's permutations are grouped: a pair is a candidate when one whole band agrees."""
    fitting = (
        rows
        for rows in range(PERMUTATIONS, 0, -1)
        if (1 - similarity**rows) ** (PERMUTATIONS // rows) <= MISSED
    )
    rows = next(fitting, 1)
    return PERMUTATIONS // rows, rows


def near_duplicates(
    sets: Sequence[PromptSet], *, similarity: float = 0.8, seed: int = 0
) -> AnalysisPart[tuple[SetDuplicates, ...]]:
    if not find_spec("datasketch"):
        detail = str(MissingExtraError("near-duplicates", EXTRA))
        return AnalysisPart.without(NotAnalyzed.MISSING_EXTRA, detail)
    found = []
    for one in sets:
        sizes = [len(group) for group in clusters(one.prompts, similarity=similarity, seed=seed)]
        total = len(one.prompts)
        figures = SetDuplicates(
            name=one.name,
            prompts=total,
            clusters=len(sizes),
            in_clusters=sum(sizes),
            share=sum(sizes) / total if total else None,
            largest=max(sizes, default=0),
        )
        found.append(figures)
    number, rows = bands(similarity)
    missed = (1 - similarity**rows) ** number
    definition = {
        "similarity": similarity,
        "measure": f"Jaccard of runs of {RUN} words, exact for candidates",
        "candidates": f"MinHash of {PERMUTATIONS} permutations, {missed:.0e} of pairs at it missed",
        "bands_and_rows": [number, rows],
        "seed": seed,
    }
    return AnalysisPart(found=tuple(found), definition=definition)


def clusters(prompts: Sequence[str], *, similarity: float, seed: int = 0) -> list[list[int]]:
    """Groups of prompts that are joined by pairs which are near enough."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    runs = [shingles(prompt) for prompt in prompts]
    pairs = list(_pairs(runs, similarity, seed))
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(pairs)), (ends[0], ends[1])), shape=(len(runs), len(runs)))
    _, labels = connected_components(graph, directed=False)
    groups: dict[int, list[int]] = defaultdict(list)
    for at, label in enumerate(labels.tolist()):
        groups[label].append(at)
    return [group for group in groups.values() if len(group) > 1]


def _pairs(runs: Sequence[Shingles], similarity: float, seed: int) -> Iterator[tuple[int, int]]:
    """Pairs that are near enough; equal sets of runs are joined in a chain, not pair by pair."""
    from datasketch import MinHash, MinHashLSH

    equal: dict[Shingles, list[int]] = defaultdict(list)
    for at, one in enumerate(runs):
        equal[one].append(at)
    index = MinHashLSH(num_perm=PERMUTATIONS, params=bands(similarity))
    blank = MinHash(num_perm=PERMUTATIONS, seed=seed)  # whose making is most of the work
    for same in equal.values():
        yield from zip(same, islice(same, 1, None), strict=False)
        at, hashed = same[0], blank.copy()
        hashed.update_batch([run.encode() for run in runs[at]])
        for other in index.query(hashed):
            if jaccard(runs[at], runs[other]) >= similarity:
                yield other, at
        index.insert(at, hashed)
