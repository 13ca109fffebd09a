"""How different prompts are: distinct bigrams at one number of prompts, and near-duplicates."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from echo_hf.errors import MissingExtraError
from echo_hf.reasons import NotAnalyzed, Unscored
from echo_hf.report.analysis.prompts import (
    PromptSet,
    UnsegmentedError,
    first_bigram,
    word_definition,
    words,
)
from echo_hf.report.analysis.result import AnalysisPart, Estimate, SetDiversity, SetDuplicates

QUANTILE = 1.959963984540054  # of the normal distribution at 97.5 %


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
    unseen = _unseen(total, size)
    missed = unseen[seen]
    expected = float(((1 - missed) * kinds).sum())
    both = unseen[np.minimum(seen[:, None] + seen, total)]
    covariance = (both - missed[:, None] * missed) * kinds[:, None] * kinds
    # Of one kind with itself: it is missed, or not.
    own = (missed - missed**2 - np.diagonal(both) + missed**2) * kinds
    variance = float(covariance.sum() + own.sum())
    error = ((1 - missed) ** 2 * kinds).sum() - expected**2 / _all_kinds(alike, total)
    deviation, spread = math.sqrt(max(variance, 0.0)), math.sqrt(max(float(error), 0.0))
    return Rarefied(size, expected, deviation, spread)


def _unseen(total: int, size: int) -> NDArray[np.float64]:
    """By number of members, the probability that no member of a group is drawn; [total + 1]."""
    rest = np.arange(total, dtype=np.float64)
    with np.errstate(divide="ignore"):
        steps = np.log(np.maximum(total - size - rest, 0)) - np.log(total - rest)
    unseen: NDArray[np.float64] = np.exp(np.concatenate([[0.0], np.cumsum(steps)]))
    return unseen


def _all_kinds(alike: Counter[int], total: int) -> float:
    """Chao's estimate of how many kinds there are, seen or not."""
    once, twice = alike[1], alike[2]
    unseen = once**2 / (2 * twice) if twice else once * (once - 1) / 2
    return max(alike.total() + (total - 1) / total * unseen if total else 0.0, 1.0)


def ratio(value: float, error: float, other: float, other_error: float) -> Estimate:
    """A ratio, its interval by the delta method on its logarithm."""
    if value <= 0 or other <= 0:
        return Estimate(value=None, reason=NotAnalyzed.NO_PROMPTS)
    share = value / other
    reach = QUANTILE * math.hypot(error / value, other_error / other)
    if not reach:
        return Estimate(value=share, reason=Unscored.NO_SPREAD)
    return Estimate(value=share, low=share * math.exp(-reach), high=share * math.exp(reach))


EXTRA = "analysis"
MOST_COMMON = 10
Diversities = AnalysisPart[tuple[SetDiversity, ...]]


@dataclass(frozen=True)
class FirstBigrams:
    counts: Counter[tuple[str, str]]
    left_out: Counter[NotAnalyzed]


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


def diversity(sets: Sequence[PromptSet], *, at: int | None = None) -> Diversities:
    """Compares the first bigrams of prompt sets."""
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


RUN = 3  # words
CHARACTERS = 5  # of a text whose words cannot be told, or that has none
PERMUTATIONS = 128
MISSED = 1e-4  # most of the pairs at the threshold that MinHash may miss: nobody compares those
Shingles = frozenset[str]
Duplicates = AnalysisPart[tuple[SetDuplicates, ...]]


def shingles(prompt: str) -> Shingles:
    """The runs of three words of a prompt, or of five characters where it has no words."""
    pieces, size, between = _words(prompt), RUN, " "
    if not pieces:
        pieces, size, between = list("".join(prompt.casefold().split())), CHARACTERS, ""
    last = max(len(pieces) - size, 0)
    return frozenset(between.join(pieces[at : at + size]) for at in range(last + 1))


def _words(prompt: str) -> list[str]:
    try:
        return list(words(prompt))
    except UnsegmentedError:
        return []


def jaccard(one: Shingles, other: Shingles) -> float:
    """The share of runs that two prompts have in common, of those that either has."""
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
) -> Duplicates:
    """Finds groups of prompts that are nearly the same, within each set."""
    if not find_spec("datasketch"):
        detail = str(MissingExtraError("near-duplicates", EXTRA))
        return Duplicates(reason=NotAnalyzed.MISSING_EXTRA, detail=detail)
    found = tuple(_of_set(one, similarity, seed) for one in sets)
    number, rows = bands(similarity)
    missed = (1 - similarity**rows) ** number
    definition = {
        "similarity": similarity,
        "measure": f"Jaccard of runs of {RUN} words, exact for candidates",
        "candidates": f"MinHash of {PERMUTATIONS} permutations, {missed:.0e} of pairs at it missed",
        "bands_and_rows": [number, rows],
        "seed": seed,
    }
    return Duplicates(found=found, definition=definition)


def _of_set(one: PromptSet, similarity: float, seed: int) -> SetDuplicates:
    sizes = [len(group) for group in clusters(one.prompts, similarity=similarity, seed=seed)]
    total = len(one.prompts)
    return SetDuplicates(
        name=one.name,
        prompts=total,
        clusters=len(sizes),
        in_clusters=sum(sizes),
        share=sum(sizes) / total if total else None,
        largest=max(sizes, default=0),
    )


def clusters(prompts: Sequence[str], *, similarity: float, seed: int = 0) -> list[list[int]]:
    import numpy as np
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
    equal: dict[Shingles, list[int]] = defaultdict(list)
    for at, one in enumerate(runs):
        equal[one].append(at)
    for same in equal.values():
        yield from zip(same, islice(same, 1, None), strict=False)
    different = [same[0] for same in equal.values()]
    for at, other in _candidates(runs, different, similarity, seed):
        if jaccard(runs[at], runs[other]) >= similarity:
            yield at, other


def _candidates(
    runs: Sequence[Shingles], places: Sequence[int], similarity: float, seed: int
) -> Iterator[tuple[int, int]]:
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(num_perm=PERMUTATIONS, params=bands(similarity))
    blank = MinHash(num_perm=PERMUTATIONS, seed=seed)  # whose making is most of the work
    for at in places:
        hashed = blank.copy()
        hashed.update_batch([run.encode() for run in runs[at]])
        for other in index.query(hashed):
            yield other, at
        index.insert(at, hashed)
