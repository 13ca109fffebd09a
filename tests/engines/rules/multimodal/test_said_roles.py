"""What authors say about the roles of their pictures, with roles decided by hand."""

from __future__ import annotations

import time

import pytest

from echo_hf.engines.rules.images import said_about
from echo_hf.engines.rules.words import names_of

NAMES = names_of(
    {
        "name": "Lumen Image",
        "developer": "Northlight",
        "aliases": ["lumen"],
        "others": ["Paintbox", "DreamMill"],
        "chat_window": "Lumen Chat",
    }
)
LETTERS = {"i": "input", "o": "output", "n": "neither"}


@pytest.mark.parametrize(
    ("said", "roles"),
    [
        ("before / after. 1st is my photo from saturday, 2nd is the edit 🌙", "io"),
        ("First picture: the result. Second picture: the scan I gave it.", "oi"),
        ("original first, result second", "io"),
        ("1) original 2) result", "io"),
        ("left: my sketch. right: lumen's version", "io"),
        ("the original is the second one", "-i"),
        ("2nd is my photo edited by lumen", "-o"),
        ("1st Paintbox, 2nd Lumen Image, same prompt", "no"),
        ("inputs: 1, 2. output: 3", "iio"),
        ("first two are mine, the last one is the result", "iio"),
        ("the first is the result, the others are what I uploaded", "oii"),
        ("Image 1: my cat. Image 2: my sofa. Image 3: both together by Lumen", "iio"),
        ("la primera es mi foto, la segunda el resultado", "io"),
        ("à gauche ma photo, à droite le résultat", "io"),
        ("erstes Bild: Original, zweites: bearbeitet", "io"),
        ("1枚目と2枚目が入力、3枚目が結果", "iio"),
        ("第一张是结果，第二张是原图", "oi"),
        ("first attempt was bad, second try is great", "--"),
        ("1st: original prompt, 2nd: with film grain", "--"),
        ("the 2nd beats Paintbox", "--"),
        ("the 3rd one is the result", "--"),
    ],
)
def test_each_picture_has_the_role_that_it_is_given(said: str, roles: str) -> None:
    """By place; a picture that is not spoken of has none, nor has one where more are counted."""
    expected = {at: LETTERS[one] for at, one in enumerate(roles, 1) if one != "-"}

    assert said_about(said, len(roles), NAMES).roles == expected


@pytest.mark.parametrize(
    ("said", "order"),
    [
        ("before and after", "io"),
        ("después / antes", "oi"),
        ("original → result", "io"),
        ("原图→效果图", "io"),
        ("my cat, my sofa, and what lumen made of them", "iio"),
        ("I gave it my photo and the result is great", None),
        ("never seen this before", None),
    ],
)
def test_an_order_is_weaker_than_a_role(said: str, order: str | None) -> None:
    """Words in a row tell an order, a story tells none; neither gives a role."""
    about = said_about(said, len(order or "--"), NAMES)

    assert about.roles == {}
    assert about.order == (tuple(LETTERS[one] for one in order) if order else None)


def test_what_is_mentioned_is_known() -> None:
    """Whose a picture is does not yet make it an input."""
    mine = said_about("my cat as a knight", 1, NAMES)
    original = said_about("the original, for reference", 1, NAMES)

    assert (mine.mentioned, mine.names_input) == ({"input"}, False)
    assert (original.mentioned, original.names_input) == ({"input"}, True)


@pytest.mark.parametrize("seed", ["my own ", "1, ", "first ", "before and ", "i ", "ich habe "])
def test_a_hostile_text_takes_no_time(seed: str) -> None:
    """Eight thousand characters, in processor time."""
    before = time.process_time()

    said_about((seed * 8000)[:8000], 4, NAMES)

    assert time.process_time() - before < 5
