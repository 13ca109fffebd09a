"""Prompts that are nearly the same, found by MinHash and then compared word by word."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import islice

from echo_hf.analysis.figures import Part
from echo_hf.analysis.prompt_set import PromptSet
from echo_hf.analysis.result import SetDuplicates
from echo_hf.analysis.words import UnsegmentedError, words
from echo_hf.errors import MissingExtraError
from echo_hf.reasons import NotAnalyzed

EXTRA = "analysis"
RUN = 3  # words
CHARACTERS = 5  # of a text whose words cannot be told, or that has none
PERMUTATIONS = 128
MISSED = 1e-4  # most of the pairs at the threshold that MinHash may miss: nobody compares those
Shingles = frozenset[str]
Duplicates = Part[tuple[SetDuplicates, ...]]


def shingles(prompt: str) -> Shingles:
    """The runs of three words of a prompt; of five characters where it has none that can be told.

    Args:
        prompt: The prompt.

    Returns:
        The runs; a prompt of fewer words is one run.

    Example:
        >>> sorted(shingles("A photo of a cat"))
        ['a photo of', 'of a cat', 'photo of a']
        >>> shingles("?!"), shingles("...")
        (frozenset({'?!'}), frozenset({'...'}))
    """
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
    """The share of runs that two prompts have in common, of those that either has.

    Example:
        >>> jaccard(frozenset("abc"), frozenset("bcd"))
        0.5
    """
    return len(one & other) / len(one | other)


def bands(similarity: float) -> tuple[int, int]:
    """How MinHash's permutations are grouped: a pair is a candidate when one whole band agrees.

    Args:
        similarity: Jaccard similarity, above 0 to 1, of the pairs that are to be found.

    Returns:
        Bands, and rows of each: as many rows as leave at most `MISSED` of such pairs unfound, so
        that as few others as possible are candidates; 1 where none does.

    Example:
        >>> bands(0.8), bands(0.5)
        ((25, 5), (64, 2))
    """
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
    """Finds groups of prompts that are nearly the same, within each set.

    Args:
        sets: The prompt sets.
        similarity: Jaccard similarity, 0 to 1, from which two are nearly the same.
        seed: Of the hash functions, which decide what is compared.

    Returns:
        Counts by set. A group is joined through any chain of such pairs.
    """
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
    """Groups of prompts that are nearly the same.

    Args:
        prompts: The prompts.
        similarity: As for `near_duplicates`.
        seed: As for `near_duplicates`.

    Returns:
        Places of two or more prompts each, in order.
    """
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
