"""The order of requests, and what they will cost."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.engines.base import Request
from echo_hf.engines.planner import (
    RequestPlan,
    estimate_tokens,
    extended,
    plan_order,
)
from tests.stages_for_tests import request

SHAPES = st.lists(
    st.tuples(st.sampled_from("ABC"), st.lists(st.sampled_from("xy"), max_size=2)), max_size=14
)


def _asked(shapes: Sequence[tuple[str, Sequence[str]]]) -> list[Request]:
    return [
        request(f"line {at}", f"Prompt {prompt}", images=images)
        for at, (prompt, images) in enumerate(shapes)
    ]


@given(SHAPES)
def test_shared_beginnings_follow_each_other(shapes: list[tuple[str, list[str]]]) -> None:
    """First prompts, then images in their order, each where it was seen first."""
    order = plan_order(_asked(shapes))
    assert sorted(order) == list(range(len(shapes)))
    kinds = [(prompt, (prompt, tuple(images))) for prompt, images in shapes]
    first = [[[kind[part] for kind in kinds].index(one[part]) for part in (0, 1)] for one in kinds]
    assert order == sorted(order, key=lambda at: (*first[at], at))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("ünïcödé", 2), ("画像", 2), ("画像 ab", 3)],
)
def test_tokens_are_estimated_by_script(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


def test_a_plan_counts_text_and_images() -> None:
    """Prompts by the estimate, 1280 tokens an image."""
    asked = [
        request("abcd", "instructions", images=["x", "y"]),
        request("abcdefgh", "instructions"),
    ]
    tokens = (3 + 1 + 2 * 1280) + (3 + 2)
    planned = extended(RequestPlan(), asked, 3, 4)
    assert planned == RequestPlan(requests=9, stored=3, repeated=4, prompt_tokens=tokens, images=2)
    assert planned.calls == 2
    assert extended(extended(RequestPlan(), asked[:1], 3, 1), asked[1:], 0, 3) == planned
