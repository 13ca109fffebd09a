"""Ranges by hand, a list that has every model of the shipped configs, and plans of requests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student

from echo_hf.config.evaluation import read_judge, shipped_judges
from echo_hf.config.systems import shipped_configs
from echo_hf.engines.base import Request, make_engine
from echo_hf.engines.planner import (
    NO_WORK,
    ExpectedCost,
    Range,
    RequestPlan,
    add_expected,
    estimate_calls,
    estimate_tokens,
    extend_plan,
    extrapolate,
    format_dollars,
    format_seconds,
    plan_order,
    read_call_prices,
    read_image_prices,
)
from tests.stages_for_tests import request

# Ten calls, four answered before; 20,000 tokens of text beside 8 images at 1,280.
PLAN = RequestPlan(requests=10, stored=4, prompt_tokens=20_000 + 8 * 1280, images=8)
GPT_4O, QWEN = "gpt-4o-2024-11-20", "Qwen/Qwen2.5-VL-32B-Instruct"


def engine(model: str, **options: Any) -> Any:
    return make_engine("openai", model=model, **options)


def test_calls_cost_their_tokens_by_the_rule_of_their_model() -> None:
    """gpt-4o: 2.50 and 10 dollars a million; an image takes 255, 425 or 1,105 tokens."""
    found = estimate_calls(engine(GPT_4O, concurrency=3), PLAN)
    low = (0.8 * 20_000 + 8 * 255) * 2.5e-6 + 6 * 150 * 10e-6
    likely = (20_000 + 8 * 425) * 2.5e-6 + 6 * 400 * 10e-6
    high = (1.25 * 20_000 + 8 * 1105) * 2.5e-6 + 6 * 800 * 10e-6
    assert found.usd == pytest.approx((low, likely, high))
    assert found.seconds == pytest.approx((6 * 2 / 3, 6 * 6 / 3, 6 * 20 / 3))
    assert (found.gpu, found.cost_usd) == (None, found.usd and found.usd.likely)
    assert "2026-11-23" in found.basis


def test_a_model_that_is_not_listed_has_the_price_of_its_config_and_no_time() -> None:
    prices = {"usd_per_million_prompt_tokens": 1.0, "usd_per_million_completion_tokens": 2.0}
    found = estimate_calls(engine("mine", **prices), PLAN)
    assert found.cost_usd == pytest.approx((20_000 + 8 * 1280) * 1e-6 + 6 * 400 * 2e-6)
    assert found.seconds is None
    assert estimate_calls(engine("mine"), PLAN).usd is None
    answered = RequestPlan(requests=4, stored=4)
    assert estimate_calls(engine("mine"), answered) == NO_WORK


TWO_BY_TWO = {"model": QWEN, "devices": 4, "tensor_parallel_size": 2}


@pytest.mark.parametrize(
    ("kind", "options", "seconds", "gpu"),
    [
        # Weights of one's own bill nothing, and take the time of a GPU.
        ("vllm", {"model": QWEN}, (6 * 0.3, 6 * 0.8, 6 * 2.5), "an H100"),
        # Four GPUs are two processes of two GPUs each.
        ("vllm", TWO_BY_TWO, (0.9, 2.4, 7.5), "an H100"),
        ("moderation", {"concurrency": 2}, (0.6, 1.8, 9), None),
    ],
)
def test_what_bills_nothing_takes_time(
    kind: str, options: dict[str, Any], seconds: Any, gpu: str | None
) -> None:
    found = estimate_calls(make_engine(kind, **options), PLAN)
    assert (found.usd, found.gpu) == ((0, 0, 0), gpu)
    assert found.seconds == pytest.approx(seconds)


@pytest.mark.parametrize(("known", "more"), [(4, 100), (25, 25), (400, 5)])
def test_the_range_holds_as_often_as_two_standard_errors_say(known: int, more: int) -> None:
    """By drawing: 95 of 100 sums of what comes, a little less where little was measured."""
    draws, inside = np.random.default_rng(0), 0
    for _ in range(400):
        found = extrapolate(list(draws.normal(10, 2, known)), more)
        assert found is not None
        inside += found.low <= draws.normal(10, 2, more).sum() <= found.high
    assert inside / 400 == pytest.approx(1 - 2 * student.sf(2, known - 1), abs=0.03)


def test_the_price_of_two_is_known_where_both_are() -> None:
    one = ExpectedCost(Range(1, 2, 3), Range(10, 20, 30), None, "a")
    other = ExpectedCost(Range(4, 5, 6), None, "an H100", "b")
    assert add_expected(one, other) == ExpectedCost(Range(5, 7, 9), None, "an H100", "a; b")
    assert add_expected(one, ExpectedCost()).usd is None
    assert extrapolate([], 5) is None


@pytest.mark.parametrize(
    ("usd", "seconds", "shown"),
    [
        (None, None, ("unknown", "unknown")),
        (Range.exactly(0), Range.exactly(0), ("$0.00", "0.0 s")),
        (Range(1, 2.5, 1200), Range(5, 60, 119), ("$2.50 (1.00 to 1,200.00)", "60 s (5.0 to 119)")),
        (Range.exactly(3), Range(60, 300, 7200), ("$3.00", "5.0 min (1.0 to 120)")),
    ],
)
def test_ranges_for_people(usd: Range | None, seconds: Range | None, shown: Any) -> None:
    assert (format_dollars(usd), format_seconds(seconds)) == shown


# The list itself.


def image_models() -> set[str]:
    named = set[str]()
    for file in sorted(shipped_configs().glob("systems/*.yaml")):
        system = yaml.safe_load(file.read_bytes())
        parts = system.get("parameters", {})
        drawing = parts.get("artist", system) if system["adapter"] == "rewrite" else system
        named |= {drawing["model"]} if "model" in drawing else set()
    return named


def language_models() -> set[str]:
    """Those of judges, of writers, and of the engines of every config."""
    named = {str(read_judge(file).engine.options["model"]) for file in shipped_judges()}
    for file in sorted(shipped_configs().glob("**/*.yaml")):
        config = yaml.safe_load(file.read_bytes())
        if not isinstance(config, dict):
            continue
        engines = [*config.get("engines", {}).values()]
        engines.append((config.get("parameters") or {}).get("writer") or {})
        named |= {one["model"] for one in engines if "model" in one}
    return named


@pytest.mark.parametrize("model", sorted(image_models()))
def test_every_image_model_of_a_shipped_config_is_listed_with_a_price(model: str) -> None:
    rows = [row for row in read_image_prices() if model in row.models]
    assert rows
    for row in rows:
        assert row.gpu or {"text_in", "image_in", "image_out"} <= row.price.keys()
        assert row.gpu or row.tokens.keys() == {"image_in", "text_out", "image_out"}


@pytest.mark.parametrize("model", sorted(language_models()))
def test_every_language_model_of_a_shipped_config_is_listed_with_a_price(model: str) -> None:
    row = read_call_prices()[model]
    if row.gpu is None:
        google = {"base_url": "https://generativelanguage.googleapis.com/v1beta/openai/"}
        asked = engine(model, **(google if model.startswith("gemini") else {}))
        assert estimate_calls(asked, PLAN).usd is not None


def test_rows_are_ranges_with_a_source_that_say_what_was_published_and_what_was_not() -> None:
    for row in (*read_call_prices().values(), *read_image_prices()):
        ranges = [row.seconds, *getattr(row, "tokens", {}).values()]
        assert all(0 <= low <= likely <= high for low, likely, high in ranges), row.models
        assert re.search("published|estimate", row.basis), row.models
        assert all(one.startswith("https://") for one in row.sources)


# --- the order of requests, and what they hold ---

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
    planned = extend_plan(RequestPlan(), asked, 3, 4)
    assert planned == RequestPlan(requests=9, stored=3, repeated=4, prompt_tokens=tokens, images=2)
    assert planned.calls == 2
    assert extend_plan(extend_plan(RequestPlan(), asked[:1], 3, 1), asked[1:], 0, 3) == planned


def test_both_ways_are_priced_and_waited_for() -> None:
    """Half of each price at OpenAI; two batches that follow each other take 24 hours each."""
    plain = estimate_calls(engine("gpt-6-luna"), PLAN)
    batched = estimate_calls(engine("gpt-6-luna", batch=True), PLAN)
    assert plain.usd is not None
    assert plain.plain_usd == batched.plain_usd == plain.usd
    assert batched.usd == batched.batch_usd == plain.batch_usd
    assert plain.batch_usd == pytest.approx([usd / 2 for usd in plain.usd])
    assert (plain.is_batched, batched.is_batched, batched.seconds) == (False, True, None)
    both = add_expected(batched, batched)
    assert (both.batch_hours, both.is_batched) == (48, True)
    assert both.plain_usd == pytest.approx([2 * usd for usd in plain.usd])
    # What is sent in one way alone costs the same in the other.
    local = ExpectedCost(Range(1, 2, 3), Range(1, 1, 1))
    mixed = add_expected(plain, local)
    assert mixed.batch_usd is not None
    assert plain.batch_usd is not None
    assert mixed.batch_usd.likely == pytest.approx(plain.batch_usd.likely + 2)
    assert add_expected(local, local).batch_usd is None
    assert add_expected(batched, ExpectedCost()).batch_usd is None
