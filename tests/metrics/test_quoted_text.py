"""What a prompt quotes: marks of several scripts, and apostrophes, which are none."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.metrics.ocr_scores import ELISIONS, MOST_LETTERS, SINGLE, quoted
from echo_hf.metrics.ocr_scores import PAIRS as PAIRS_OF_MARKS
from echo_hf.metrics.text_reader import normalized_text

PAIRS = ['""', "''", "“”", "‘’", "„“", "„”", "‚‘", "«»", "»«", "‹›", "「」", "『』", "《》", "＂＂"]
WORDS = st.lists(st.text("abcdefgäßñ漢字12", min_size=1, max_size=6), min_size=1, max_size=4).map(
    " ".join
)


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ('a sign that says "HELLO"', ["HELLO"]),
        ("“Fish & Chips”, then ‘Tea’", ["Fish & Chips", "Tea"]),
        ("a mug with 'World's best dad' on it", ["World's best dad"]),
        ("‘Don’t panic’ in large letters", ["Don’t panic"]),
        ("看板に「いらっしゃいませ」と『本日休業』", ["いらっしゃいませ", "本日休業"]),
        ('写着"你好"的牌子', ["你好"]),
        ("une affiche « Bonne année »", ["Bonne année"]),
        ("ein Schild „Geöffnet“", ["Geöffnet"]),
        ("en skylt ”Öppet”", ["Öppet"]),
        ("「彼は『はい』と言った」", ["彼は『はい』と言った"]),
        ("\"She said 'hi' to me\"", ["She said 'hi' to me"]),
        ('"two\nlines"', ["two\nlines"]),
        ('"SALE" and again "Sale"', ["SALE"]),
        ('"50%" off', ["50%"]),
    ],
)
def test_what_stands_in_marks_is_quoted(prompt: str, expected: list[str]) -> None:
    """Each string once, in order, without what is around it."""
    assert list(quoted(prompt)) == expected


@pytest.mark.parametrize(
    "prompt",
    [
        "a cat in the rain",
        "don't draw the dog's tail, it's odd",
        "the dogs' toys and the cats' beds",
        "rock 'n' roll in the '90s, and 'em all '85",
        'a 24" x 36" poster',
        "a 5'10\" tall man",
        '"..." and "!!" and ""',
        'an opening mark " alone',
        '"one paragraph\n\nanother"',
        "",
    ],
)
def test_apostrophes_inches_and_lone_marks_quote_nothing(prompt: str) -> None:
    """Nor do marks around nothing that could be read."""
    assert quoted(prompt) == ()


def test_inches_beside_a_quotation() -> None:
    """Each is what it is."""
    assert quoted('a 24" x 36" poster with the words "Jazz Night"') == ("Jazz Night",)


@given(WORDS, st.sampled_from(PAIRS), WORDS, WORDS)
def test_every_pair_of_marks_quotes(text: str, marks: str, before: str, after: str) -> None:
    """Whatever the words are, and around them."""
    opening, closing = marks
    assert quoted(f"{before} x {opening}{text}{closing} {after}") == (text,)


@given(st.text("ab 'ʼ’\"“”«»「」\n1", max_size=40))
def test_what_is_quoted_stands_in_the_prompt(prompt: str) -> None:
    """Hostile texts give parts of themselves, each once, with something to read."""
    found = quoted(prompt)
    assert all(text in prompt and any(map(str.isalnum, text)) for text in found)
    assert len(set(found)) == len(found)


def _by_pattern(prompt: str) -> list[str]:
    """Every quotation by one pattern for each kind of marks, which takes its time."""
    kinds = []
    for opening, closings in PAIRS_OF_MARKS.items():
        ends, inside = f"[{re.escape(closings)}]", r"(?!\n[ \t]*\n)"
        if opening in SINGLE:
            letter = rf"(?:{inside}(?:(?!{ends}).|{ends}(?=\w)))"
            kinds.append(rf"(?<!\w){opening}(?!\s|{ELISIONS})({letter}{{1,1000}}?){ends}(?!\w)")
        else:
            before = r"(?<!\d)" if opening == '"' else ""
            kinds.append(rf"{before}{opening}((?:{inside}(?!{ends}).){{1,1000}}){ends}")
    found = re.finditer("|".join(kinds), prompt, re.DOTALL | re.IGNORECASE)
    texts = [next(one for one in match.groups() if one is not None).strip() for match in found]
    return [one for one in texts if any(map(str.isalnum, one))]


@given(st.text("ab1 '’‘‚\"“”„«»「」\n\t", max_size=60))
def test_the_marks_that_belong_together_are_those_of_the_patterns(prompt: str) -> None:
    """In one walk over the prompt, whatever stands in it."""
    expected: dict[str, str] = {}
    for text in _by_pattern(prompt):
        expected.setdefault(normalized_text(text), text)
    assert list(quoted(prompt)) == list(expected.values())


@pytest.mark.parametrize("mark", ["'", '"', "‘", "«", "’", " '"])
def test_a_prompt_of_marks_ends(mark: str) -> None:
    """It is walked over once; nothing longer than a thousand letters is taken for a quotation."""
    quoted(f"{mark}a" * 300_000)
    long = "a" * MOST_LETTERS
    assert quoted(f'"{long}"') == (long,)
    assert quoted(f'"{long}a"') == ()
