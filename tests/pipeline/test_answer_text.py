"""Finding the value of an answer in what a model wrote."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.pipeline.answer_text import (
    RepeatedKeyError,
    find_answer_value,
    find_last_value,
    remove_cut_field,
    remove_thoughts,
)


@pytest.mark.parametrize(
    ("text", "outside"),
    [
        ("no thought", "no thought"),
        ("<think>a draft</think>answer", "answer"),
        ("So. <THINKING>a draft</THINKING> answer", "So.  answer"),
        ("<reasoning>a <think>b</think> c</reasoning>answer", "answer"),
        ("the question had the beginning</think>answer", "answer"),
        ("◁think▷a draft◁/think▷answer", "answer"),
        ("<think>a draft</think>answer<think>doubts</think>.", "answer."),
        ("answer <think>that never ends [[3]]", "answer "),
        ("<think>a <think> is a thought</think>answer", "answer"),
        ("a <thinker> is no thought", "a <thinker> is no thought"),
    ],
)
def test_thoughts_are_cut(text: str, outside: str) -> None:
    assert remove_thoughts(text) == outside


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1} and {"a": 2}', {"a": 2}),
        ('{"a": "}{"} [1]', {"a": "}{"}),
        ('a { in prose, {"a": 1}', {"a": 1}),
        ('```json\n[{"a": 1}, {"a": 2}]\n```', [{"a": 1}, {"a": 2}]),
        ('{"a": {"b": 1, "c": {"b": 2}}} {', {"a": {"b": 1, "c": {"b": 2}}}),
        ('{"a": "<think> is a word"}', {"a": "<think> is a word"}),
        ('{"a": {"b": 1}, "c": [{"b": 2}', None),  # what is a part of a cut value is no value
        ('{"a": "b", "c": "{\\"b\\": 2}', None),
        ("[1, 2]", None),
        ("", None),
    ],
)
def test_the_last_whole_value_counts(text: str, value: object) -> None:
    found = find_answer_value(text)
    assert (found if found is None else json.loads(found)) == value


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
        lambda inner: (
            st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner)
        ),
    ).filter(lambda value: isinstance(value, dict))
)
def test_any_object_is_read_as_it_was_written(value: object) -> None:
    for before in ("", "<think>{</think>", '{"a": 1} '):
        found = find_last_value(remove_thoughts(before) + json.dumps(value))
        assert found == json.dumps(value)


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '{"b": [{"a": "x", "a": "y"}]}'])
def test_a_key_with_two_values_is_refused(text: str) -> None:
    with pytest.raises(RepeatedKeyError, match="'a' occurs twice"):
        find_answer_value(text)
    assert find_answer_value('{"a": 1, "a": 1.0}') == '{"a": 1, "a": 1.0}'
    assert find_answer_value(text + ' {"c": 3}') == '{"c": 3}'
    assert find_answer_value('{"a": NaN}') == '{"a": NaN}'


def test_a_repeated_key_in_a_broken_value_does_not_stop_the_reading() -> None:
    broken = '{"c": 3} {"b": {"a": 1, "a": 2}'
    assert find_answer_value(broken + ', "c": ' + "[" * 100_000) == '{"c": 3}'
    assert find_answer_value(broken + ', X} {"c": 4}') == '{"c": 4}'
    with pytest.raises(RepeatedKeyError, match="'a' occurs twice"):
        find_answer_value(broken + ", X")


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ('{"score": 1, "note": "half a sen', '{"score": 1}'),
        ('Sure: {"score":1,"note":"a \\"word\\" and \\', '{"score":1}'),
        ('{"score": 1, "note": "whole"', None),
        ('{"note": "first, then the sco', None),
        ('{"score": 1, "notes": ["half', None),
        ('{"samples": [{"a": 1}, {"a": 2, "note": "half', '{"samples": [{"a": 1}, {"a": 2}'),
        ("", None),
    ],
)
def test_a_cut_note_is_left_out(text: str, rest: str | None) -> None:
    """One inside a list leaves what is no JSON."""
    assert remove_cut_field(text, "note") == rest


@pytest.mark.parametrize(
    "text",
    [
        "{" * 300_000,
        '{"a":' * 60_000,
        '{"a"' * 60_000,
        '[{"a":[' * 50_000,
        "<think>" * 50_000,
        "</think>{" * 50_000,
        '{"a":' + "9" * 300_000 + "}",
        '{"a":"' * 160_000,
        ('{"a":' * 900 + "x") * 200,
    ],
    ids=lambda text: text[:9],
)
def test_no_answer_takes_long(text: str) -> None:
    started = time.thread_time()
    find_answer_value(text)
    assert time.thread_time() - started < 5
