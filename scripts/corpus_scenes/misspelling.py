"""Words as image models misspell them: two letters change places, or one comes twice."""

from __future__ import annotations

import re
from dataclasses import replace

from corpus_scenes.brushes import Framed, Placed, Sheet, Words
from corpus_scenes.canvas import Brush, Scene


def misspelt_scene(scene: Scene) -> Scene:
    """The scene with a mistake in every line of text; a scene without text is equal to it."""
    marks = [misspelt_mark(mark) for mark in scene.marks]
    return scene if marks == list(scene.marks) else replace(scene, marks=marks)


def misspelt_mark(mark: Brush) -> Brush:
    """The mark with a mistake in every line of text that it holds."""
    if isinstance(mark, Words):
        return replace(mark, text=misspelt(mark.text))
    if isinstance(mark, Framed):
        return replace(mark, scene=misspelt_scene(mark.scene))
    if isinstance(mark, Placed | Sheet):
        marks = [misspelt_mark(inner) for inner in mark.marks]
        return mark if marks == list(mark.marks) else replace(mark, marks=marks)
    return mark


def misspelt(text: str) -> str:
    """The text with a mistake in its longest word, the last of equally long ones.

    Example:
        >>> misspelt("BLUE HOUR"), misspelt("10.50"), misspelt("7"), misspelt("- -")
        ('BLUE HUOR', '10.05', '77', '- -')
    """
    words = list(re.finditer(r"[^\W_]+", text))
    if not words:
        return text
    found = max(words, key=lambda word: (len(word[0]), word.start()))
    return text[: found.start()] + misspelt_word(found[0]) + text[found.end() :]


def misspelt_word(word: str) -> str:
    """The word with the two letters in its middle swapped, or one doubled where all are equal.

    Example:
        >>> misspelt_word("MELLOW"), misspelt_word("oo")
        ('MELOLW', 'ooo')
    """
    middle = (len(word) - 1) / 2
    places = [place for place in range(len(word) - 1) if word[place] != word[place + 1]]
    if not places:
        return word + word[-1]
    first = min(places, key=lambda place: (abs(place + 0.5 - middle), -place))
    return word[:first] + word[first + 1] + word[first] + word[first + 2 :]
