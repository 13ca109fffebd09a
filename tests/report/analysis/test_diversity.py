"""How different prompts are: first bigrams, rarefaction, ratios, near-duplicates."""

from __future__ import annotations

import json
import random
import re
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf._infra.bootstrap import Unscored
from echo_hf.config.evaluation import Reference
from echo_hf.report.analysis.diversity import (
    RarefiedCount,
    cluster,
    count_bigrams,
    estimate_ratio,
    find_duplicates,
    make_shingles,
    measure_diversity,
    rarefy,
)
from echo_hf.report.analysis.prompts import PromptSet, prompt_set, read_reference
from echo_hf.report.analysis.result import NotAnalyzed

SETS = {
    "GenEval": ("geneval/generation_prompts.txt", None, 553),
    "T2I-CompBench": ("t2i_compbench/*_val.txt", None, 2400),
    "PartiPrompts": ("partiprompts/PartiPrompts.tsv", "Prompt", 1632),
    "MagicBrush": ("magicbrush_imagenhub/instructions.tsv", "text", 179),
    "DPG": ("dpg_bench/prompts.tsv", "text", 1065),
    "DSG": ("dsg1k/prompts.tsv", "text", 1060),
}


def _reference(data: Path, name: str) -> PromptSet:
    pattern, column, _ = SETS[name]
    files = sorted((data / "prompts").glob(pattern))
    return read_reference(Reference(name=name, path=files, column=column))


@pytest.mark.parametrize("name", SETS)
def test_unique_counts_are_those_of_two_plain_lines(test_data: Path, name: str) -> None:
    """On every real set, as large as published; GenEval has exactly one."""
    one = _reference(test_data, name)
    found = count_bigrams(one.prompts)
    plain = [re.findall(r"\w+", prompt.lower())[:2] for prompt in one.prompts]
    assert len(found.counts) == len({tuple(words) for words in plain if len(words) == 2})
    assert found.counts.total() + found.left_out.total() == len(one.prompts) == SETS[name][2]
    if name == "GenEval":
        assert found.counts == {("a", "photo"): 553}


def test_posted_prompts_begin_in_more_ways_than_templates_and_edits(test_data: Path) -> None:
    """The direction of figure 3, at equal n: surely more than GenEval's and MagicBrush's."""
    cases = json.loads((test_data / "posts/gpt4o_prompt_posts/cases.json").read_text("utf-8"))
    posted = prompt_set("benchmark", [case["prompt_en"] for case in cases])
    references = [_reference(test_data, name) for name in ("GenEval", "MagicBrush")]
    own, geneval, magicbrush = measure_diversity([posted, *references]).found or ()
    assert (own.at, own.unique, own.expected.value) == (100, 61, pytest.approx(61))
    assert (geneval.ratio_at, geneval.ratio.value) == (100, pytest.approx(61))
    assert magicbrush.ratio.low is not None
    assert magicbrush.ratio.low > 1


def test_what_has_no_figure_has_a_reason() -> None:
    """At 3 prompts, a set of 2 has none, and the ratio is taken at 2; an empty one has no ratio."""
    texts = {"benchmark": ["a b", "c d", "e f", "bond", "!"], "two": ["a b"] * 2, "none": ["x"]}
    own, two, none = (
        measure_diversity([prompt_set(name, some) for name, some in texts.items()], at=3).found
        or ()
    )
    assert (own.counted, own.left_out, own.ratio) == (3, {"few_words": 2}, None)
    assert own.expected.value == pytest.approx(3)
    assert two.expected.reason is NotAnalyzed.FEW_PROMPTS
    assert (two.ratio_at, two.ratio and two.ratio.value) == (2, pytest.approx(2))
    assert none.ratio.reason is NotAnalyzed.NO_PROMPTS
    # A set that never varies says nothing of how others would.
    (alike,) = measure_diversity([prompt_set("benchmark", ["a photo of x"] * 20)]).found or ()
    assert alike.expected.value == pytest.approx(1)
    assert alike.expected.reason is Unscored.NO_SPREAD
    for some, reason in ([None], NotAnalyzed.NO_PROMPTS), (["bond"], NotAnalyzed.FEW_WORDS):
        part = measure_diversity([prompt_set("benchmark", some), prompt_set("two", ["a b"])])
        assert (part.found, part.reason) == (None, reason)


@pytest.mark.skipif(find_spec("icu4py") is not None, reason="icu4py is installed here")
def test_what_cuts_words_is_named_where_it_is_missing() -> None:
    part = measure_diversity([prompt_set("benchmark", ["将照片里的两个人转换成", "x"])])
    assert (part.found, part.reason) == (None, NotAnalyzed.MISSING_EXTRA)
    assert "echo-hf[analysis]" in (part.detail or "")


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_the_mean_is_that_of_all_subsamples(counts: list[int], data: st.DataObject) -> None:
    members = [kind for kind, seen in enumerate(counts) for _ in range(seen)]
    size = data.draw(st.integers(0, len(members)))
    shown = [len(set(drawn)) for drawn in combinations(members, size)]
    assert rarefy(counts, size).expected == pytest.approx(np.mean(shown), abs=1e-9)


def test_the_interval_is_that_of_another_sample() -> None:
    """By hand: 4 seen, f1 = 2, f2 = 1, Chao1 = 4 + 8/9 * 4/2; variance = 4 - 16 / Chao1.

    And of samples from one population about 95 % have intervals that hold its mean.
    """
    found = rarefy([5, 2, 1, 1], 9)
    assert found.expected == pytest.approx(4)
    assert found.error == pytest.approx((4 - 16 / (4 + 8 / 9 * 2)) ** 0.5)
    assert found.interval == pytest.approx((4 - 1.959964 * found.error, 4 + 1.959964 * found.error))
    low, high = rarefy([1] * 30, 30).interval  # others may be alike, but never more than 30
    assert low < 30 == high
    rng = np.random.default_rng(11)
    kinds = 1 / np.arange(1, 301) ** 1.1
    kinds /= kinds.sum()
    truth = float((1 - (1 - kinds) ** 60).sum())
    samples = (np.bincount(rng.choice(300, 200, p=kinds)) for _ in range(300))
    ends = [rarefy(seen[seen > 0].tolist(), 60).interval for seen in samples]
    assert 0.93 <= np.mean([low <= truth <= high for low, high in ends]) <= 1


def test_the_interval_of_a_ratio_is_that_of_drawing_both_numbers() -> None:
    """Draws of two normal numbers far from zero have nearly the same middle 95 %."""
    rng = np.random.default_rng(2)
    drawn = rng.normal(60, 3, 200_000) / rng.normal(40, 2, 200_000)
    low, high = np.quantile(drawn, [0.025, 0.975])
    found = estimate_ratio(RarefiedCount(1000, 60, 3), RarefiedCount(1000, 40, 2))
    assert found.value == pytest.approx(1.5)
    assert (found.low, found.high) == (pytest.approx(low, abs=0.02), pytest.approx(high, abs=0.02))
    certain = estimate_ratio(RarefiedCount(9, 6, 0), RarefiedCount(9, 2, 0))
    assert (certain.value, certain.low, certain.reason) == (3, None, Unscored.NO_SPREAD)
    # Thirty that all differ, one that never does: no other thirty are 42 times as many.
    assert estimate_ratio(RarefiedCount(30, 30, 5), RarefiedCount(30, 1, 0)).high == 30


@pytest.fixture
def minhash() -> None:
    pytest.importorskip("datasketch", reason="needs datasketch: see `make test-extras`")


def _varied(seed: int) -> list[str]:
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
    groups = [{at} for at in range(len(prompts))]
    runs = [make_shingles(prompt) for prompt in prompts]
    for one, other in combinations(range(len(prompts)), 2):
        if len(runs[one] & runs[other]) / len(runs[one] | runs[other]) >= similarity:
            mine, theirs = (next(g for g in groups if at in g) for at in (one, other))
            if mine is not theirs:
                groups.remove(theirs)
                mine |= theirs
    return sorted(sorted(group) for group in groups if len(group) > 1)


@pytest.mark.extras
@pytest.mark.usefixtures("minhash")
@pytest.mark.parametrize("seed", [1, 2])
def test_groups_are_those_of_comparing_every_pair(seed: int) -> None:
    prompts = _varied(seed)
    assert sorted(cluster(prompts, similarity=0.7)) == _joined(prompts, 0.7)


@pytest.mark.extras
@pytest.mark.usefixtures("minhash")
def test_counts_of_a_set() -> None:
    prompts = ["Draw a cat!", "draw a cat", "DRAW, a CAT", "a red car at night", "a red car by day"]
    part = find_duplicates([prompt_set("some", prompts), prompt_set("none", [])])
    found, none = part.found or ()
    assert (found.clusters, found.in_clusters) == (1, 3)
    assert found.share == pytest.approx(0.6)
    assert (none.clusters, none.share) == (0, None)
    # At 0.8 in 25 bands of 5 rows: (1 - 0.8^5)^25.
    assert "permutations, 5e-05 of pairs" in part.definition["candidates"]
    # Images of a cat and of a dog are not the same, though neither is a word.
    assert cluster(["\N{CAT}", "\N{DOG}", "?!", "\N{CAT} "], similarity=0.8) == [[0, 3]]
    # A template that everybody repeats takes no steps for each pair.
    assert cluster(["make it a plush toy"] * 10_000, similarity=0.8) == [list(range(10_000))]
