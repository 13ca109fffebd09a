"""The tree of user errors, and the line that names the nearest name."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf import errors
from echo_hf.errors import EchoError, MissingExtraError, unknown


def _defined() -> list[str]:
    return [
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, EchoError) and value is not EchoError
    ]


def test_the_docstring_shows_the_whole_tree() -> None:
    shown = re.findall(r"[├└]── (\w+)", errors.__doc__ or "")
    assert shown == _defined()


@pytest.mark.parametrize("name", _defined())
def test_one_except_clause_catches_every_user_error(name: str) -> None:
    parents = {"WeightsError": errors.ScoreError}
    assert getattr(errors, name).__bases__ == (parents.get(name, EchoError),)


def test_a_missing_extra_says_what_to_install() -> None:
    assert str(MissingExtraError("the vllm engine", "vllm")) == (
        'the vllm engine needs packages that are not here: pip install "echo-hf[vllm]"'
    )


@pytest.mark.parametrize(
    ("name", "known", "message"),
    [
        (
            "relevence",
            ["extract", "relevance"],
            "c.yaml: unknown key 'relevence'; did you mean 'relevance'? known: extract, relevance",
        ),
        ("zzz", ["b", "a"], "c.yaml: unknown key 'zzz'; known: a, b"),
        ("zzz", [], "c.yaml: unknown key 'zzz'; known: none"),
        (3, ["a"], "c.yaml: unknown key 3; known: a"),
    ],
)
def test_an_unknown_name_is_told_with_the_nearest(
    name: object, known: list[str], message: str
) -> None:
    assert unknown("key", name, known, "c.yaml") == message


@given(st.text(), st.lists(st.from_regex(r"[a-z_]{1,12}", fullmatch=True), max_size=5))
def test_the_message_is_one_line(name: str, known: list[str]) -> None:
    assert unknown("engine", name, known).splitlines() == [unknown("engine", name, known)]
