"""The closed lists of reasons."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Callable
from typing import cast

import pytest

from echo_hf.reasons import Missing, Reason, Status

LISTS = tuple(Reason.__subclasses__())
EVERY = [reason for kind in LISTS for reason in kind]


def _named(kind: type[Reason], value: str) -> Reason:
    return cast("Callable[[str], Reason]", kind)(value)


@pytest.mark.parametrize("reason", EVERY, ids=str)
def test_a_reason_is_its_lower_case_name_with_a_meaning(reason: Reason) -> None:
    assert str(reason) == reason.value
    named = reason.value.replace("a_picture", "an_image").replace("picture", "image")
    assert named == reason.name.lower()
    assert json.dumps(reason) == f'"{reason.value}"'
    assert reason.meaning.strip() == reason.meaning
    assert len(reason.meaning) > 10
    assert "\n" not in reason.meaning


@pytest.mark.parametrize("reason", EVERY, ids=str)
def test_a_reason_is_found_by_its_value_and_survives_pickling(reason: Reason) -> None:
    assert _named(type(reason), str(reason)) is reason
    assert pickle.loads(pickle.dumps(reason)) is reason  # noqa: S301 - our own bytes


def test_no_value_stands_in_two_lists() -> None:
    assert [value for value, times in Counter(map(str, EVERY)).items() if times > 1] == []


@pytest.mark.parametrize("kind", LISTS)
def test_an_unknown_reason_is_refused(kind: type[Reason]) -> None:
    with pytest.raises(ValueError, match="gone_fishing"):
        _named(kind, "gone_fishing")


def test_the_reasons_for_missing_posts_are_the_five_of_the_design_and_removal() -> None:
    values = {"deleted", "protected", "blocked", "not_found", "not_fetched", "removed"}
    assert {str(reason) for reason in Missing} == values


def test_a_row_has_one_of_four_fates() -> None:
    assert [str(status) for status in Status] == ["kept", "rejected", "quarantined", "noted"]
