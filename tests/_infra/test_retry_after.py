"""The headers in which servers ask to wait."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf._infra.retry import retry_after

# Wed, 21 Oct 2015 07:28:00 GMT is the example of RFC 9110; 1445412480 s after 1970.
DATE, SECONDS = "Wed, 21 Oct 2015 07:28:00 GMT", 1445412480


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "120"}, 120.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, float("inf")),
        ({"retry-after": "tomorrow"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": DATE, "date": "Wed, 21 Oct 2015 07:27:15 GMT"}, 45.0),
        ({"retry-after": DATE, "date": "Wed, 21 Oct 2015 07:29:00 GMT"}, 0.0),
        ({"retry-after": DATE}, 0.0),
    ],
    ids=str,
)
def test_seconds_and_dates_are_read(headers: dict[str, str], expected: float | None) -> None:
    """A date counts from the server's own clock; what cannot be read is no wish."""
    assert retry_after(headers) == expected


def test_a_date_counts_from_now_where_the_server_has_no_clock() -> None:
    """By this machine's."""
    assert retry_after({"retry-after": DATE}, now=SECONDS - 60) == 60.0


@given(st.text())
def test_no_header_breaks_it(text: str) -> None:
    """Whatever a server writes."""
    wait = retry_after({"retry-after": text, "date": text})
    assert wait is None or wait >= 0
