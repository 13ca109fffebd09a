"""Near-duplicates within a prompt set."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from echo_hf.report.analysis.diversity import clusters, jaccard, near_duplicates, shingles
from echo_hf.report.analysis.prompts import prompt_set

pytestmark = pytest.mark.extras
pytest.importorskip("datasketch", reason="needs datasketch: see `make test-extras`")


def _varied(seed: int) -> list[str]:
    """Sixty prompts, two thirds of them others with up to three words exchanged."""
    rng = random.Random(seed)
    vocabulary = [f"word{at}" for at in range(200)]
    prompts = [rng.choices(vocabulary, k=25) for _ in range(20)]
    for original in list(prompts) * 2:
        copy = list(original)
        for _ in range(rng.randint(0, 3)):
            copy[rng.randrange(len(copy))] = rng.choice(vocabulary)
        prompts.append(copy)
    return [" ".join(words) for words in prompts]


def _joined(prompts: list[str], similarity: float) -> list[list[int]]:
    """Every pair compared, and groups merged until nothing changes."""
    groups = [{at} for at in range(len(prompts))]
    runs = [shingles(prompt) for prompt in prompts]
    for one, other in combinations(range(len(prompts)), 2):
        if jaccard(runs[one], runs[other]) >= similarity:
            mine, theirs = (next(g for g in groups if at in g) for at in (one, other))
            if mine is not theirs:
                groups.remove(theirs)
                mine |= theirs
    return sorted(sorted(group) for group in groups if len(group) > 1)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_groups_are_those_of_comparing_every_pair(seed: int) -> None:
    """What MinHash finds faster is what comparing everything finds."""
    prompts = _varied(seed)
    assert sorted(clusters(prompts, similarity=0.7)) == _joined(prompts, 0.7)


def test_the_share_that_is_missed_is_that_of_its_bands() -> None:
    """At 0.8 in 25 bands of 5 rows: (1 - 0.8^5)^25; at 0.05 no banding keeps to 1 in 10,000."""
    for similarity, said in ((0.8, "5e-05"), (0.05, "1e-03")):
        part = near_duplicates([prompt_set("some", ["a b c"])], similarity=similarity)
        assert f"permutations, {said} of pairs" in part.definition["candidates"]


def test_counts_of_a_set() -> None:
    """Equal prompts but for case and signs are one group; a chain of equals needs no pairs."""
    prompts = ["Draw a cat!", "draw a cat", "DRAW, a CAT", "a red car at night", "a red car by day"]
    (found,) = near_duplicates([prompt_set("some", prompts)]).found or ()
    assert (found.clusters, found.in_clusters, found.largest) == (1, 3, 3)
    assert found.share == pytest.approx(0.6)


def test_prompts_without_a_word_are_compared_by_their_signs() -> None:
    """Images of a cat and of a dog are not the same, though neither is a word."""
    assert clusters(["\N{CAT}", "\N{DOG}", "?!", "\N{CAT} "], similarity=0.8) == [[0, 3]]


def test_ten_thousand_equal_prompts_take_no_ten_thousand_squared_steps() -> None:
    """A template that everybody repeats is one group."""
    assert clusters(["make it a plush toy"] * 10_000, similarity=0.8) == [list(range(10_000))]


def test_an_empty_set_has_no_share() -> None:
    """Nothing is divided by nothing."""
    (found,) = near_duplicates([prompt_set("none", [])]).found or ()
    assert (found.clusters, found.share, found.largest) == (0, None, 0)
