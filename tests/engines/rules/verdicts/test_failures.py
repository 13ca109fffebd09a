"""The lists of failures, held to what they promise."""

from __future__ import annotations

import re
from itertools import combinations

import pytest

from echo_hf.curate.feedback import LONGEST_KEYWORD
from echo_hf.engines.rules import verdicts as failures
from echo_hf.engines.rules import verdicts as words
from echo_hf.engines.rules.verdicts import SIGNS, Sign, read_han

LISTS = (failures.FAULTS, failures.TOPICS, failures.HAN_FAULTS, failures.HAN_TOPICS)
EVERY = {name for several in LISTS for name in several}


def test_names_are_keywords() -> None:
    """Every failure is one to four small English words, short enough for an answer."""
    for name in EVERY:
        assert re.fullmatch(r"[a-z]+(?: [a-z]+){0,3}", name)
        assert len(name) <= LONGEST_KEYWORD


def test_the_lists_know_each_other() -> None:
    """A name that decides something is the name of a failure."""
    named = failures.GENERAL | failures.FRAGILE | failures.CRITICAL | set(failures.WHEN_CHANGED)
    assert named <= EVERY
    assert set(failures.WHEN_CHANGED.values()) <= EVERY


def test_no_phrase_tells_two_failures() -> None:
    """A phrase stands under one failure, so that the order of the lists decides nothing."""
    for (one, said), (other, also_said) in combinations(failures.FAULTS.items(), 2):
        assert not said & also_said, (one, other)


@pytest.mark.parametrize("failure", failures.FAULTS)
def test_every_fault_is_found(failure: str) -> None:
    """A phrase for a failure, said alone, is found whole and means that failure."""
    for phrase in failures.FAULTS[failure] - words.NEUTRAL:
        found = list(SIGNS.find(phrase.split()))
        assert [(one.meaning.sign, one.meaning.failure) for one in found] == [
            (Sign.COMPLAINT, failure)
        ], phrase


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("整体偏黄", "colour cast"),
        ("有错别字", "misspelt text"),
        ("文字全是乱码", "text rendering"),
        ("手指有六根", "hands"),
        ("完全不像我", "identity shift"),
        ("被拒绝了", "refusal"),
        ("头被裁掉了", "cropping"),
        ("比例不对", "aspect ratio"),
        ("风格跑了", "style mismatch"),
        ("塑料感太强", "ai look"),
        ("全体的に黄色っぽい", "colour cast"),
        ("漢字が違う", "misspelt text"),
        ("文字が崩れてる", "text rendering"),
        ("指が6本ある", "hands"),
        ("顔が全然違う", "identity shift"),
        ("拒否された", "refusal"),
        ("頭が見切れてる", "cropping"),
        ("背景が透過されない", "transparency"),
        ("スタイルが全然違う", "style mismatch"),
        ("指示を無視された", "ignored instruction"),
    ],
)
def test_failures_in_chinese_and_japanese(text: str, failure: str) -> None:
    """Failures are found inside sentences that write no spaces."""
    said = list(read_han(text, removal=False))
    assert any(mark.failure == failure for one in said for mark in one.marks)
