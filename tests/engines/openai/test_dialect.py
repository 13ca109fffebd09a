"""In which way a server is asked, first and after it did not understand."""

from __future__ import annotations

from typing import Any

import pytest

from echo_hf._infra.http_errors import ApiError
from echo_hf.engines.openai_messages import Dialect, Dialects, read_options

LOCAL = "http://127.0.0.1:8000/v1"
NO_SCHEMA = ApiError(400, "response_format is not supported")
NO_FIELD = ApiError(400, "Unrecognized request argument supplied: max_tokens")


def _dialects(**options: Any) -> Dialects:
    return Dialects(read_options({"model": "tiny", "base_url": LOCAL, **options}))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, Dialect("json_schema", "max_tokens")),
        (
            {"base_url": "https://api.openai.com/v1"},
            Dialect("json_schema", "max_completion_tokens"),
        ),
        ({"structured": "json_object"}, Dialect("json_object", "max_tokens")),
        ({"structured": "text"}, Dialect("text", "max_tokens")),
        (
            {"max_tokens_field": "max_completion_tokens"},
            Dialect("json_schema", "max_completion_tokens"),
        ),
    ],
    ids=str,
)
def test_the_first_way_is_the_likeliest_or_the_configs(
    options: dict[str, Any], expected: Dialect
) -> None:
    """Schemas enforced; OpenAI's own newer models do not know the older name of the limit."""
    assert _dialects(**options).current == expected


def test_each_way_is_tried_once() -> None:
    """A server that knows neither is not asked in a circle."""
    dialects = _dialects()
    first = dialects.current
    words = dialects.other(first, NO_SCHEMA)
    assert words == Dialect("text", "max_tokens")
    assert dialects.other(words, NO_SCHEMA) is None
    both = dialects.other(words, NO_FIELD)
    assert both == Dialect("text", "max_completion_tokens")
    assert dialects.other(both, ApiError(400, "max_completion_tokens is not supported")) is None


@pytest.mark.parametrize(
    "fault",
    [
        ApiError(400, "the image is too large"),
        ApiError(400, "max_tokens must be at most 4096"),
        ApiError(400, "bad words: " + "x" * 600 + " response_format"),
        ApiError(429, "response_format is not supported"),
    ],
    ids=lambda fault: fault.message[:20],
)
def test_other_failures_have_nothing_to_do_with_the_way(fault: ApiError) -> None:
    """Nor has what an error quotes of the posts further on."""
    dialects = _dialects()
    assert dialects.other(dialects.current, fault) is None
