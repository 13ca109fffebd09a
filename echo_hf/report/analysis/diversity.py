"""How different prompts are: distinct bigrams at one number of prompts, and near-duplicates."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from itertools import islice
from typing import NamedTuple

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


class Rarefied(NamedTuple):
    size: int
    expected: float
    error: float

    @property
    def interval(self) -> tuple[float, float]:
        """Lower and upper end at 95 % for another such sample: from 0 to its size."""
        reach = QUANTILE * self.error
        return max(self.expected - reach, 0.0), min(self.expected + reach, float(self.size))


def rarefied(counts: Iterable[int], size: int) -> Rarefied:
    """How many kinds a subsample without replacement shows on average (Colwell 2012)."""
    alike = Counter(counts)  # kinds by how often each was seen
    seen, kinds = np.array(sorted(alike.items()), dtype=np.int64).reshape(-1, 2).T
    total = int(seen @ kinds)
    # By number of members, the probability that no member of a group is drawn; [total + 1].
    rest = np.arange(total, dtype=np.float64)
    with np.errstate(divide="ignore"):
        steps = np.log(np.maximum(total - size - rest, 0)) - np.log(total - rest)
    missed = np.exp(np.concatenate([[0.0], np.cumsum(steps)]))[seen]
    expected = float(((1 - missed) * kinds).sum())
    # Chao's estimate of how many kinds there are, seen or not.
    once, twice = alike[1], alike[2]
    hidden = once**2 / (2 * twice) if twice else once * (once - 1) / 2
    every = max(alike.total() + (total - 1) / total * hidden if total else 0.0, 1.0)
    error = float(((1 - missed) ** 2 * kinds).sum() - expected**2 / every)
    return Rarefied(size, expected, math.sqrt(max(error, 0.0)))


def ratio(own: Rarefied, other: Rarefied) -> Estimate:
    """The ratio of two numbers at one size, its interval by the delta method on its logarithm."""
    share = own.expected / other.expected
    reach = QUANTILE * math.hypot(own.error / own.expected, other.error / other.expected)
    if not reach:
        return Estimate(value=share, reason=Unscored.NO_SPREAD)
    # One set has at most `size` different ones, the other at least one.
    low, high = max(share * math.exp(-reach), 1 / own.size), share * math.exp(reach)
    return Estimate(value=share, low=low, high=min(high, float(own.size)))


class FirstBigrams(NamedTuple):
    counts: Counter[tuple[str, str]]
    left_out: Counter[NotAnalyzed]


def first_bigrams(prompts: Sequence[str]) -> FirstBigrams:
    found = FirstBigrams(Counter(), Counter())
    for prompt in prompts:
        try:
            bigram = first_bigram(prompt)
        except UnsegmentedError:
            found.left_out[NotAnalyzed.UNSEGMENTED] += 1
            continue
        if bigram is None:
            found.left_out[NotAnalyzed.FEW_WORDS] += 1
        else:
            found.counts[bigram] += 1
    return found


def diversity(
    sets: Sequence[PromptSet], *, at: int | None = None
) -> AnalysisPart[tuple[SetDiversity, ...]]:
    found = [first_bigrams(one.prompts) for one in sets]
    own, left_out = found[0]
    if not own:
        if left_out[NotAnalyzed.UNSEGMENTED]:  # what to install comes first
            detail = str(MissingExtraError("words where no spaces are written", EXTRA))
            return AnalysisPart.without(NotAnalyzed.MISSING_EXTRA, detail)
        return AnalysisPart.without(NotAnalyzed.FEW_WORDS if left_out else NotAnalyzed.NO_PROMPTS)
    size = at or min(one.counts.total() for one in found if one.counts)
    figures = []
    for number, (one, (counts, left_out)) in enumerate(zip(sets, found, strict=True)):
        shared = min(counts.total(), own.total())
        through = Estimate(value=None, reason=NotAnalyzed.NO_PROMPTS)
        if shared:
            through = ratio(*(rarefied(some.values(), shared) for some in (own, counts)))
        expected = Estimate(value=None, reason=NotAnalyzed.FEW_PROMPTS)
        if size <= counts.total():
            rare = rarefied(counts.values(), size)
            low, high = rare.interval if rare.error else (None, None)
            why = None if rare.error else Unscored.NO_SPREAD
            expected = Estimate(value=rare.expected, low=low, high=high, reason=why)
        figures.append(
            SetDiversity(
                name=one.name,
                counted=counts.total(),
                left_out={str(why): count for why, count in sorted(left_out.items())},
                unique=len(counts),
                at=size,
                expected=expected,
                ratio=through if number else None,
                ratio_at=shared if number else None,
            )
        )
    definition = {
        **word_definition(),
        "expected": "mean over all subsamples of `at` prompts without replacement, exact",
        "at": size,
        "interval": "95 %, for another sample of `at` prompts of the same kind (Colwell 2012)",
    }
    return AnalysisPart(found=tuple(figures), definition=definition)


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
        found.append(
            SetDuplicates(
                name=one.name,
                prompts=total,
                clusters=len(sizes),
                in_clusters=sum(sizes),
                share=sum(sizes) / total if total else None,
            )
        )
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
            shared, every = runs[at] & runs[other], runs[at] | runs[other]
            if len(shared) / len(every) >= similarity:
                yield other, at
        index.insert(at, hashed)
