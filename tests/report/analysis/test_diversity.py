"""First bigrams of prompt sets."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from echo_hf.config.evaluation import Reference
from echo_hf.reasons import NotAnalyzed, Unscored
from echo_hf.report.analysis.diversity import diversity, first_bigrams
from echo_hf.report.analysis.prompts import PromptSet, prompt_set
from echo_hf.report.analysis.references import read_reference

SETS = {
    "GenEval": ("geneval/generation_prompts.txt", None),
    "T2I-CompBench": ("t2i_compbench/*_val.txt", None),
    "PartiPrompts": ("partiprompts/PartiPrompts.tsv", "Prompt"),
    "MagicBrush": ("magicbrush_imagenhub/instructions.tsv", "text"),
    "DPG": ("dpg_bench/prompts.tsv", "text"),
    "DSG": ("dsg1k/prompts.tsv", "text"),
}


def _plain_count(prompts: tuple[str, ...]) -> int:
    """The two lines that anybody would write."""
    first = [re.findall(r"\w+", prompt.lower())[:2] for prompt in prompts]
    return len({tuple(words) for words in first if len(words) == 2})


def _reference(data: Path, name: str) -> PromptSet:
    pattern, column = SETS[name]
    files = sorted((data / "prompts").glob(pattern))
    return read_reference(Reference(name=name, path=files, column=column))


@pytest.fixture(scope="module")
def posted(test_data: Path) -> PromptSet:
    """A hundred prompts that people posted, in English."""
    cases = json.loads((test_data / "posts/gpt4o_prompt_posts/cases.json").read_text("utf-8"))
    return prompt_set("benchmark", [case["prompt_en"] for case in cases])


@pytest.mark.parametrize("name", SETS)
def test_unique_counts_are_those_of_two_plain_lines(test_data: Path, name: str) -> None:
    """On every real set, the count of a plain regular expression; GenEval has exactly one."""
    one = _reference(test_data, name)
    found = first_bigrams(one.prompts)
    assert len(found.counts) == _plain_count(one.prompts)
    assert found.counts.total() + found.left_out.total() == len(one.prompts)
    if name == "GenEval":
        assert found.counts == {("a", "photo"): 553}


def test_the_sets_are_as_large_as_published(test_data: Path) -> None:
    """No row is swallowed by a stray quote, and no header is taken for a prompt."""
    sizes = {name: len(_reference(test_data, name).prompts) for name in SETS}
    assert sizes == {
        "GenEval": 553,
        "T2I-CompBench": 2400,
        "PartiPrompts": 1632,
        "MagicBrush": 179,
        "DPG": 1065,
        "DSG": 1060,
    }


def test_posted_prompts_begin_in_more_ways_than_templates_and_edits(
    posted: PromptSet, test_data: Path
) -> None:
    """The direction of figure 3, at equal n: surely more than GenEval's and MagicBrush's."""
    references = [_reference(test_data, name) for name in ("GenEval", "MagicBrush")]
    own, geneval, magicbrush = diversity([posted, *references]).found or ()
    assert (own.at, own.unique, own.expected.value) == (100, 61, pytest.approx(61))
    assert geneval.ratio is not None
    assert (geneval.ratio_at, geneval.ratio.value) == (100, pytest.approx(61))
    assert magicbrush.ratio is not None
    assert magicbrush.ratio.low is not None
    assert magicbrush.ratio.low > 1


def test_a_template_has_no_interval() -> None:
    """A set that never varies says nothing of how others would, and says so."""
    (found,) = diversity([prompt_set("benchmark", ["a photo of x"] * 20)]).found or ()
    assert found.expected.value == pytest.approx(1)
    assert found.expected.reason is Unscored.NO_SPREAD
    assert found.most_common == (("a photo", 20),)


def test_a_ratio_is_at_most_the_number_of_prompts() -> None:
    """Thirty that all differ against one that never does: no other thirty are 42 times as many."""
    own = prompt_set("benchmark", [f"word{at} x" for at in range(30)])
    _, other = diversity([own, prompt_set("same", ["a photo"] * 30)]).found or ()
    assert other.ratio is not None
    assert other.ratio.low is not None
    assert (other.ratio.low < 30, other.ratio.value, other.ratio.high) == (True, 30, 30)


def test_a_set_that_is_too_small_has_no_number_at_that_size() -> None:
    """At 3 prompts, a set of 2 has none, and the ratio is taken at 2."""
    sets = [prompt_set("benchmark", ["a b", "c d", "e f"]), prompt_set("two", ["a b", "a b"])]
    own, two = diversity(sets, at=3).found or ()
    assert own.expected.value == pytest.approx(3)
    assert two.expected.reason is NotAnalyzed.FEW_PROMPTS
    assert (two.ratio_at, two.ratio and two.ratio.value) == (2, pytest.approx(2))


def test_prompts_of_one_word_are_counted_out() -> None:
    """They have no first bigram, and are not one of their own."""
    (found,) = diversity([prompt_set("benchmark", ["bond", "a cat", "!"])]).found or ()
    assert (found.counted, found.left_out) == (1, {"few_words": 2})


def test_without_prompts_there_is_a_reason() -> None:
    """A benchmark whose words are left out has no diversity."""
    part = diversity([prompt_set("benchmark", [None]), prompt_set("two", ["a b"])])
    assert (part.found, part.reason) == (None, NotAnalyzed.NO_PROMPTS)


def test_prompts_of_one_word_alone_are_named_as_the_reason() -> None:
    """There are prompts, and it is not said that there are none."""
    part = diversity([prompt_set("benchmark", ["bond", "cat"])])
    assert (part.found, part.reason) == (None, NotAnalyzed.FEW_WORDS)


@pytest.mark.skipif(find_spec("icu4py") is not None, reason="icu4py is installed here")
def test_what_cuts_words_is_named_where_it_is_missing() -> None:
    """A benchmark in Chinese has prompts; the package that finds their words is to be installed."""
    part = diversity([prompt_set("benchmark", ["将照片里的两个人转换成", "x"])])
    assert (part.found, part.reason) == (None, NotAnalyzed.MISSING_EXTRA)
    assert "echo-hf[analysis]" in (part.detail or "")


def test_an_empty_reference_has_no_ratio() -> None:
    """The others have theirs."""
    own, none = diversity([prompt_set("benchmark", ["a b"]), prompt_set("none", ["x"])]).found or ()
    assert own.expected.value == pytest.approx(1)
    assert none.ratio is not None
    assert none.ratio.reason is NotAnalyzed.NO_PROMPTS
