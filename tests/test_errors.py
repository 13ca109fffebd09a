"""User errors, the line that names the nearest name, and the closed lists of reasons."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import echo_hf
from echo_hf import errors
from echo_hf.config.sections import Hazard
from echo_hf.errors import EchoError, MissingExtraError, unknown
from echo_hf.reasons import Reason, Status, list_enums

for module in walk_packages(echo_hf.__path__, "echo_hf."):
    if not module.name.endswith("__main__"):
        import_module(module.name)
LISTS: list[Any] = [one for one in list_enums() if one.__module__.startswith("echo_hf.")]
EVERY: list[Reason] = [reason for kind in LISTS for reason in kind]


def test_one_except_clause_catches_every_user_error() -> None:
    ours = (
        one for one in vars(errors).values() if getattr(one, "__module__", "") == errors.__name__
    )
    found = {one for one in ours if isinstance(one, type)} - {EchoError}
    assert found
    assert all(issubclass(one, EchoError) for one in found)


def test_a_missing_extra_says_what_to_install() -> None:
    assert str(MissingExtraError("the vllm engine", "vllm")) == (
        'the vllm engine needs packages that are not here: pip install "echo-hf[vllm]", or '
        '".[vllm]" in a checkout'
    )


@pytest.mark.parametrize(
    ("name", "known", "said"),
    [
        ("engin", ["engine", "a"], "'engin'; did you mean 'engine'? known: a, engine"),
        ("zzz", ["b", "a"], "'zzz'; known: a, b"),
        ("zzz", [], "'zzz'; known: none"),
        (3, ["a"], "3; known: a"),
    ],
)
def test_an_unknown_name_has_the_nearest(name: object, known: list[str], said: str) -> None:
    assert unknown("key", name, known, "c.yaml") == f"c.yaml: unknown key {said}"


@given(st.text(), st.lists(st.from_regex(r"[a-z_]{1,12}", fullmatch=True), max_size=5))
def test_the_message_is_one_line(name: str, known: list[str]) -> None:
    assert unknown("engine", name, known).splitlines() == [unknown("engine", name, known)]


@pytest.mark.parametrize("kind", [*LISTS, Hazard])
def test_a_reason_is_its_lower_case_name_with_a_meaning(kind: Any) -> None:
    for reason in kind:
        named = reason.value.replace("a_picture", "an_image").replace("picture", "image")
        assert kind is Hazard or named == reason.name.lower()
        assert json.dumps(reason) == f'"{reason}"'
        assert reason.meaning.strip() == reason.meaning
        assert len(reason.meaning) > 3
        assert "\n" not in reason.meaning
        assert kind(str(reason)) is reason
        assert pickle.loads(pickle.dumps(reason)) is reason  # noqa: S301 - our own bytes
    with pytest.raises(ValueError, match="gone_fishing"):
        kind("gone_fishing")


def test_no_reason_stands_in_two_lists() -> None:
    """And a row has one of four statuses."""
    assert [value for value, times in Counter(map(str, EVERY)).items() if times > 1] == []
    assert [str(status) for status in Status] == ["kept", "rejected", "quarantined", "noted"]
