"""The best window against all windows, by the plainest edit distance there is."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from echo_hf.metrics.ocr_scores import TextWindow, best_window

TEXTS = st.one_of(st.text("ab", max_size=9), st.text("abc漢𝄞", max_size=9))


def _distance(one: str, other: str) -> int:
    """Levenshtein's, letter by letter."""
    if not one or not other:
        return len(one) + len(other)
    return min(
        _distance(one[1:], other) + 1,
        _distance(one, other[1:]) + 1,
        _distance(one[1:], other[1:]) + (one[0] != other[0]),
    )


def _table(one: str, other: str) -> int:
    """The same, by rows."""
    row = list(range(len(other) + 1))
    for at, letter in enumerate(one, 1):
        last, row = row, [at]
        for to, wanted in enumerate(other, 1):
            row.append(min(last[to] + 1, row[-1] + 1, last[to - 1] + (letter != wanted)))
    return row[-1]


@given(st.text("abc", max_size=4), st.text("abc", max_size=4))
def test_the_reference_is_the_definition(one: str, other: str) -> None:
    """So that what is compared with is what it says."""
    assert _table(one, other) == _distance(one, other)


@pytest.mark.parametrize(
    ("wanted", "text", "window"),
    [
        ("kitten", "the sitting room", TextWindow(2, 4, 10)),
        ("hello", "xxhelloxx", TextWindow(0, 2, 7)),
        ("hello", "xxheloxx", TextWindow(1, 2, 6)),
        ("abab", "abcab", TextWindow(1, 0, 5)),
        ("abcd", "abxyzcd", TextWindow(2, 0, 2)),
        ("abc", "xyz", TextWindow(3, 0, 0)),
        ("abc", "", TextWindow(3, 0, 0)),
        ("", "abc", TextWindow(0, 0, 0)),
    ],
)
def test_windows_are_as_by_hand(wanted: str, text: str, window: TextWindow) -> None:
    """Wrong, missing and extra letters; the first window to end, and nothing like it."""
    assert best_window(wanted, text) == window


@given(TEXTS, TEXTS)
@example("abab", "abcab")
def test_no_window_is_nearer(wanted: str, text: str) -> None:
    """Of all parts of the text, of every length; the one that is given has the distance."""
    windows = [
        text[start:end] for start in range(len(text) + 1) for end in range(start, len(text) + 1)
    ]
    found = best_window(wanted, text)
    assert found.distance == min(_table(wanted, one) for one in windows)
    assert found.distance == _table(wanted, text[found.start : found.end])
    assert found.distance <= len(wanted)


@given(TEXTS, TEXTS, TEXTS)
def test_a_string_that_is_there_is_found(before: str, wanted: str, after: str) -> None:
    """At no distance, whatever is around it."""
    found = best_window(wanted, before + wanted + after)
    assert found.distance == 0
    assert (before + wanted + after)[found.start : found.end] == wanted


@given(TEXTS, TEXTS, TEXTS)
def test_more_text_is_never_further(wanted: str, text: str, more: str) -> None:
    """A window of the text is one of the longer text."""
    assert best_window(wanted, text + more).distance <= best_window(wanted, text).distance


def test_half_characters_are_letters_like_others() -> None:
    """Whoever wrote them, they are compared."""
    assert best_window("\ud800", "a\ud800") == TextWindow(0, 1, 2)
