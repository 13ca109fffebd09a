"""What stands in front of a reviewer: what a sample is fit for, and what to look at."""

from __future__ import annotations

from typing import Any

import pytest

from echo_hf.builder.review import DOUBTFUL, PERSONAL, Fitness, Triage, triage
from echo_hf.reasons import Review
from tests.curate.reviewed_rows_for_tests import SHOT, A, row

CALM = {"safety": {"flagged": False, "categories": [], "model": "guard"}, "has_nsfw": False}
HAZARD = {"flagged": True, "categories": ["S1", "S8"], "model": "guard"}


def told(*notices: Any, duplicate_of: str | None = None, **values: Any) -> Triage:
    """The triage of a sample that is fit but for some values."""
    return triage(row(**{**CALM, **values}), notices, duplicate_of)


def test_a_sample_with_nothing_to_see_is_for_the_benchmark() -> None:
    """Screened, of good quality, with an output and words from the thread."""
    assert told() == Triage(Fitness.BENCHMARK, ())


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"quality": "Trash"}, "Trash"),
        ({"has_nsfw": True, "safety": HAZARD}, "flagged by the safety model: S1, S8"),
        ({"duplicate_of": "two"}, "equal to sample two"),
        ({"quality": "Analysis"}, "for analysis only"),
    ],
)
def test_what_cannot_be_in_the_benchmark_is_to_discard(values: dict[str, Any], said: str) -> None:
    """And the reason stands first."""
    found = told(**values)
    assert found.verdict == Fitness.DISCARD
    assert said in found.look_at[0]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"safety": None}, "no safety model has seen it"),
        ({"safety": HAZARD}, "hazards named: S1, S8"),
        ({"output_images": []}, "no output"),
        ({"prompt_modified": True}, "words that nobody wrote"),
        ({"prompt_fill_blank": True}, "blanks were filled in"),
        ({"prompt": "fox"}, "a prompt of 1 word: "),
        ({"prompt": "fox " * 301}, "a prompt of 301 words"),
        ({"input_images": [A] * 5}, "5 inputs"),
        ({"screenshot": SHOT}, "not cut: draw the boxes"),
        ({"screenshot": SHOT, "is_screenshot": True}, "check the boxes"),
        ({"review": ["may_show_minor"]}, "may be under 18"),
        ({"review": ["second_look"], "quality": "Analysis"}, "somebody left it to you"),
    ],
)
def test_what_a_person_has_to_look_at_is_named(values: dict[str, Any], said: str) -> None:
    """One thing each; everything else about the sample is as it should be."""
    found = told(**values)
    assert found.verdict == Fitness.MANUAL
    assert len(found.look_at) == 1
    assert said in found.look_at[0]


def test_a_script_without_spaces_has_no_short_prompts() -> None:
    """Words cannot be counted there by white space."""
    assert told(prompt="一只橘猫坐在窗台上看雨").verdict == Fitness.BENCHMARK


def test_doubts_on_the_way_are_named_once() -> None:
    """In the words of the list of reasons; what says nothing about the task is left out."""
    notices = [("two_roles", "x"), ("two_roles", "y"), ("masked_e_mail", None)]
    found = told(*notices)
    assert found.look_at == (next(one.meaning for one in DOUBTFUL if one == "two_roles"),)


def test_every_reason_for_review_has_words() -> None:
    """A reason that is new would else be shown by its name alone."""
    assert set(PERSONAL) == {str(one) for one in Review}


def test_the_most_doubtful_come_first() -> None:
    """Then those that are fit, then those that are not."""
    doubts = (
        told(safety=None, prompt_modified=True),
        told(safety=None),
        told(),
        told(quality="Trash"),
    )
    assert sorted(doubts, key=lambda one: one.turn) == list(doubts)
