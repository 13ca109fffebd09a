"""Lengths of prompts."""

from __future__ import annotations

import statistics

from echo_hf.report.analysis.prompts import lengths, prompt_set


def test_quartiles_are_those_of_the_standard_library() -> None:
    """Inclusive quartiles of words and characters, counted by plain split and len."""
    prompts = ["a", "a red cat", "a cat", "draw two cats on the roof", "one two three four"]
    (found,) = lengths([prompt_set("some", prompts)]).found or ()
    assert found.words is not None
    assert found.characters is not None
    for quartiles, counts in (
        (found.words, [len(one.split()) for one in prompts]),
        (found.characters, [len(one) for one in prompts]),
    ):
        expected = statistics.quantiles(counts, n=4, method="inclusive")
        assert [quartiles.low, quartiles.median, quartiles.high] == expected
    assert found.words_of == 5


def test_a_set_without_prompts_has_no_lengths() -> None:
    """Null, not zero."""
    (found,) = lengths([prompt_set("none", [])]).found or ()
    assert (found.words, found.characters, found.words_of) == (None, None, 0)
