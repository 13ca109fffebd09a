"""Colours that a prompt asks for, and pictures that have gained them."""

from __future__ import annotations

from pathlib import Path

import pytest

from echo_hf.engines.rules.images import gains_colours, look_at, wanted_colours
from tests.engines.rules.multimodal.drawn_pictures import DAY, portrait, saved, scene


@pytest.mark.parametrize(
    ("prompt", "colours"),
    [
        ("an orange suit in front of a plain blue wall", ["orange", "blue"]),
        ("change the red car to blue. Keep the green trees", ["blue"]),
        ("remove the yellow sign, make the door purple", ["purple"]),
        ("un coche rojo", ["red"]),
        ("把墙变成绿色，保持红色的门", ["green"]),
        ("make it bigger", []),
    ],
)
def test_wanted_colours_are_those_that_are_to_come(prompt: str, colours: list[str]) -> None:
    """Not those that are kept, removed or changed."""
    assert wanted_colours(prompt) == colours


@pytest.mark.parametrize(
    ("prompt", "weight"),
    [("a blue house", 1), ("a red house", -1), ("a house", 0), ("a purple house", 0)],
)
def test_the_picture_that_gained_them_came_out(tmp_path: Path, prompt: str, weight: int) -> None:
    """A red house and a blue one below the same blue sky: only what differs counts."""
    red, blue = scene(DAY._replace(house="#c92b2b")), scene(DAY._replace(house="#2b49c8"))
    one, other = (look_at(file) for file in saved(tmp_path, [red, blue]))
    assert one is not None
    assert other is not None

    found = gains_colours(prompt, one, other)

    assert (found > 0) - (found < 0) == weight
    assert gains_colours(prompt, other, one) == -found


def test_pictures_of_different_things_are_compared_as_wholes(tmp_path: Path) -> None:
    """An orange shirt before a green wall."""
    one, other = (
        look_at(file) for file in saved(tmp_path, [scene(), portrait("#f07a1c", "#3f9a4a")])
    )
    assert one is not None
    assert other is not None

    assert gains_colours("an orange suit", one, other) > 0
