"""Finding a prompt in the text it came from."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.samples.spans import SpanIndex, paragraph, span_start

VOCABULARY = ["a", "red", "fox", "draws", "nine", "small", "boats", "at", "night", "画", "像"]
WORDS = st.lists(st.sampled_from(VOCABULARY), max_size=30)


@pytest.mark.parametrize(
    ("prompt", "texts", "expected"),
    [
        ("draw a red fox", ["Prompt: draw a red fox, please"], True),
        ("draw  a\nred fox", ["Prompt: draw a red fox"], True),
        ("draw a red fox in the snow at night", ["draw a red fox", "in the snow at night"], True),
        ("draw a blue fox", ["Prompt: draw a red fox"], False),
        ("a fox", ["Prompt: draw a red fox"], False),
        ("fox", ["a fox!"], True),
        ("draw a red fox with a hat", ["draw a red fox"], False),
        ("画一只狐狸在雪地里", ["提示词：画一只狐狸在雪地里"], True),
        ("画一只蓝狐狸", ["提示词：画一只狐狸在雪地里"], False),
        ("", ["anything"], False),
        ("  ", ["anything"], False),
        ("anything", [], False),
    ],
)
def test_a_prompt_is_unmodified_only_when_spans_of_the_text_make_it(
    prompt: str, texts: list[str], expected: bool
) -> None:
    """Leaving text out is no modification; a word that nobody wrote is one."""
    assert SpanIndex(texts).holds(prompt) is expected


@given(WORDS, st.data())
def test_every_span_of_a_text_is_held(words: list[str], data: st.DataObject) -> None:
    """Any run of a text's words is made of its spans."""
    start = data.draw(st.integers(0, len(words)))
    end = data.draw(st.integers(start, len(words)))
    prompt = " ".join(words[start:end])

    assert SpanIndex([" ".join(words)]).holds(prompt) is bool(prompt)


@given(WORDS)
def test_a_foreign_word_is_never_held(words: list[str]) -> None:
    """A prompt with a word that stands nowhere is modified, wherever it stands."""
    text = " ".join(words)

    assert not SpanIndex([text]).holds(f"{text} zebra")
    assert not SpanIndex([text]).holds(f"zebra {text}")


def test_a_hundred_snippets_are_a_modification() -> None:
    """A prompt pieced together from more than eight places is not the author's any more."""
    texts = [f"word{n} then{n} next{n}" for n in range(9)]

    assert SpanIndex(texts[:8]).holds(" ".join(texts[:8]))
    assert not SpanIndex(texts).holds(" ".join(texts))


def _anchor(prompt: str, text: str) -> int:
    return paragraph(text, span_start(prompt, text))


def test_the_anchor_survives_a_cleaner_cut() -> None:
    """A prompt cut from the same paragraph more or less generously has the same place."""
    text = "Look what I made\n\nPrompt: a castle made of cheese, morning light, 35mm\n\nEnjoy!"
    place = text.index("Prompt")

    assert _anchor("a castle made of cheese, morning light, 35mm", text) == place
    assert _anchor("Prompt: a castle made of cheese, morning light", text) == place
    assert _anchor("Create a castle made of cheese in morning light", text) == place


def test_prompts_in_two_paragraphs_have_two_anchors() -> None:
    """Two prompts of one post are told apart by their paragraphs."""
    text = "1. a fox in the snow\n2. a fox in the sand"

    assert _anchor("a fox in the snow", text) == 0
    assert _anchor("a fox in the sand", text) == text.index("2.")


def test_a_prompt_from_elsewhere_has_no_anchor() -> None:
    """What shares no span with the post has no place in it."""
    assert _anchor("entirely different words here", "a fox in the snow") == -1
    assert _anchor("x", "") == -1


@pytest.mark.parametrize("text", ["a " * 50_000, "画" * 50_000, "[" * 50_000, "ab " * 30_000])
def test_a_hostile_text_costs_no_more_than_a_long_one(text: str) -> None:
    """Endless repetition is looked up in bounded time."""
    started = time.perf_counter()
    SpanIndex([text]).holds(text[: len(text) // 2] + "zebra")

    assert time.perf_counter() - started < 20


@given(WORDS, WORDS)
def test_the_shortest_spans_find_every_word_that_is_there(
    words: list[str], text: list[str]
) -> None:
    """With spans of a single token, a token begins none only where it stands nowhere."""
    cut = SpanIndex([" ".join(text)], shortest=1).spans(" ".join(words))
    lacking = sum(1 for word in words if word not in text)
    assert cut.count(None) == lacking
