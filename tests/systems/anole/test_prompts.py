"""A prompt and its inputs as tokens."""

from __future__ import annotations

import pytest

from echo_hf.errors import GenerationError
from echo_hf.systems.anole_tokens import AnoleWords, branches, words_of

WORDS = AnoleWords(start=0, image_starts=1, image_ends=2, end_of_turn=3, pad=9)
VOCABULARY = {"<s>": 0, "<racm3:break>": 1, "<eoss>": 2, "<reserved08706>": 3, "<pad>": 9}


def test_a_prompt_alone_is_compared_with_nothing_twice() -> None:
    """Without inputs the second branch is the third: guidance by inputs does nothing."""
    everything, inputs, nothing = branches([7, 8], [], WORDS)
    assert everything == [0, 7, 8, 3, 1]
    assert inputs == nothing == [0, 1]


def test_inputs_stand_before_the_prompt_in_their_order() -> None:
    """Each between its own beginning and end; every branch ends where the image starts."""
    everything, inputs, nothing = branches([7], [[4, 5], [6, 4]], WORDS)
    assert everything == [0, 1, 4, 5, 2, 1, 6, 4, 2, 7, 3, 1]
    assert inputs == [0, 1, 4, 5, 2, 1, 6, 4, 2, 1]
    assert nothing == [0, 1]


def test_words_are_found_by_their_names() -> None:
    """Whatever numbers a model gives them."""
    assert words_of(VOCABULARY, "system 'tiny'") == WORDS


@pytest.mark.parametrize("name", sorted(VOCABULARY))
def test_a_model_without_them_is_told(name: str) -> None:
    """In one line: it is none of this family."""
    rest = {other: number for other, number in VOCABULARY.items() if other != name}
    with pytest.raises(GenerationError) as caught:
        words_of(rest, "system 'tiny'")
    assert str(caught.value) == (
        f"system 'tiny': the model's vocabulary has no {name!r}: expected Anole, or a model that "
        "is trained from it"
    )
    with pytest.raises(GenerationError, match="vocabulary has no '<s>'"):
        words_of(None, "system 'tiny'")
