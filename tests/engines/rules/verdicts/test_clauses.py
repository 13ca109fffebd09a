"""Praise and complaint in single clauses; expected tones are decided by hand."""

from __future__ import annotations

import pytest

from echo_hf.engines.rules.verdicts import Asked, Clause, Mark, Tone
from echo_hf.engines.rules.words import plain_words

PLAIN = Asked()


def marks(text: str, asked: Asked = PLAIN) -> list[Mark]:
    """What one clause says."""
    clause = Clause(plain_words(text))
    return clause.marks(clause.topics, asked, first=True)


def tones(text: str, asked: Asked = PLAIN) -> set[Tone]:
    """How one clause speaks."""
    return {mark.tone for mark in marks(text, asked)}


@pytest.mark.parametrize(
    "text",
    [
        "not great",
        "it doesn't work",
        "it does not keep the pose",
        "no funciona",
        "ça marche pas",
        "ce n'est pas beau",
        "klappt bei mir leider nicht",
        "não gostei",
        "non mi piace",
        "i can't get it to do this",
    ],
)
def test_denied_praise_complains(text: str) -> None:
    """What is denied turns round, whether the denial stands before or, as in French, behind."""
    assert tones(text) == {Tone.COMPLAINT}


@pytest.mark.parametrize("text", ["no typos", "not bad", "without a single mistake", "pas mal"])
def test_denied_complaint_praises(text: str) -> None:
    """A failure that did not happen is praise."""
    assert tones(text) == {Tone.PRAISE}


@pytest.mark.parametrize(
    "text",
    ["i can't draw", "you don't follow me", "i would love to see more", "no idea", "no problem"],
)
def test_the_writer_is_not_the_model(text: str) -> None:
    """What writers cannot do, or only wish for, says nothing about the result."""
    assert tones(text) == set()


def test_a_wish_is_no_denial() -> None:
    """Who wishes that it hadn't says that it has."""
    assert Mark(Tone.COMPLAINT, "cropping") in marks("i wish it hadn't cropped her feet")


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("the face changed", "identity shift"),
        ("the person morphs a little", "identity shift"),
        ("the text changed", "altered text"),
        ("the colours shifted", "colour drift"),
    ],
)
def test_what_should_stay_must_not_change(text: str, failure: str) -> None:
    """That something changed is a complaint where it should have stayed."""
    assert Mark(Tone.COMPLAINT, failure) in marks(text)


@pytest.mark.parametrize("text", ["i changed the text", "the weather changed"])
def test_other_changes_are_no_complaint(text: str) -> None:
    """What writers change themselves, and what is no part of the picture, may change."""
    assert Tone.COMPLAINT not in tones(text)


def test_what_was_to_be_removed_may_be_gone() -> None:
    """Something gone is a failure, unless that was asked for."""
    assert tones("the tourists are gone") == {Tone.COMPLAINT}
    assert tones("the tourists are gone", Asked(removal=True)) == {Tone.WEAK_PRAISE}


def test_words_of_the_prompt_do_not_complain() -> None:
    """A broken robot that was asked for is not broken by mistake."""
    assert tones("the broken robot") == {Tone.COMPLAINT}
    assert tones("the broken robot", Asked(frozenset({"broken", "robot"}))) == set()


@pytest.mark.parametrize(
    "text", ["too dark", "demasiado ruidoso", "trop sombre", "zu dunkel", "troppo scuro"]
)
def test_too_much_complains(text: str) -> None:
    """Too much of something is a complaint."""
    assert Tone.COMPLAINT in tones(text)


@pytest.mark.parametrize("text", ["me too", "trop beau", "too lazy to draw i am"])
def test_not_every_excess_complains(text: str) -> None:
    """Idioms of praise, and what people are themselves, are none."""
    assert Tone.COMPLAINT not in tones(text)


def test_how_often_is_worth_saying_of_failures() -> None:
    """A word such as "always" complains alone, and only strengthens praise."""
    assert tones("it is always a lamp") == {Tone.WEAK_COMPLAINT}
    assert tones("it always works") == {Tone.WEAK_PRAISE}
    assert tones("i still use this daily") == set()
