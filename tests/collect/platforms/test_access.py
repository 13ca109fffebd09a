"""What all platforms need to be asked."""

from __future__ import annotations

import pytest

from echo_hf.collect.platforms.access import key_of
from echo_hf.errors import PlatformError


@pytest.mark.parametrize("value", ["", " ", "\n"])
def test_an_empty_variable_is_no_key(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named, with what it should hold."""
    monkeypatch.setenv("X_BEARER_TOKEN", value)
    with pytest.raises(PlatformError, match="'X_BEARER_TOKEN' is not set, and 'x' wants a token"):
        key_of("x", "X_BEARER_TOKEN", "a token")


@pytest.mark.parametrize("value", ["sécret", "two\nlines", "a\x07b"])
def test_a_key_that_no_header_can_hold_is_refused_unseen(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message does not show it."""
    monkeypatch.setenv("X_BEARER_TOKEN", value)
    with pytest.raises(PlatformError, match="plain letters") as trouble:
        key_of("x", "X_BEARER_TOKEN", "a token")

    assert value not in str(trouble.value)


def test_a_key_does_not_show_when_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blanks around it are no part of it."""
    monkeypatch.setenv("X_BEARER_TOKEN", " s3cr3t\n")
    key = key_of("x", "X_BEARER_TOKEN", "a token")

    assert key.get_secret_value() == "s3cr3t"
    assert "s3cr3t" not in f"{key} {key!r}"
