"""How long a server asks to wait."""

from __future__ import annotations

import pytest

from echo_hf.collect.retry_after import retry_after

NOON = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0.0),
        (" 120 ", 120.0),
        ("Tue, 14 Nov 2023 22:13:50 GMT", 30.0),
        ("Tue, 14 Nov 2023 22:13:50 +0000", 30.0),
        ("Tue, 14 Nov 2023 22:12:20 GMT", 0.0),
        ("", None),
        ("-5", None),
        ("1e9", None),
        ("inf", None),
        ("9" * 400, None),
        ("٣", None),
        ("soon", None),
        ("Tue, 99 Nov 2023 22:13:50 GMT", None),
    ],
)
def test_seconds_and_dates_are_read_and_nothing_else(text: str, expected: float | None) -> None:
    """A time in the past is now; what cannot be read is not guessed."""
    assert retry_after({"retry-after": text}, NOON) == expected
    assert retry_after({}, NOON) is None
