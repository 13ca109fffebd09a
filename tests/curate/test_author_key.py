"""Authors as keyed hashes."""

from __future__ import annotations

import hmac

import pytest

from echo_hf.curate.privacy import VARIABLE, AuthorKey, account
from echo_hf.errors import ConfigError

PHRASE = "an invented key of a test"
KEY = AuthorKey(PHRASE.encode())
X, BLUESKY = "https://x.com/i/status/1", "https://bsky.app/profile/did:plc:abc/post/3k"


def test_a_hash_is_that_of_the_standard_library() -> None:
    """HMAC-SHA256 (RFC 2104) over platform, unit separator and name, cut to 64 bits."""
    expected = hmac.digest(PHRASE.encode(), b"x\x1fmira_draws", "sha256").hex()[:16]
    assert KEY.author(X, "mira_draws") == expected


@pytest.mark.parametrize("name", ["mira_draws", "@mira_draws", " Mira_Draws ", "ＭＩＲＡ＿draws"])
def test_spellings_of_a_name_are_one_author(name: str) -> None:
    """Case, an `@`, blanks and width do not tell people apart."""
    assert KEY.author("https://x.com/i/status/2", name) == KEY.author(X, "mira_draws")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((X, "mira"), (BLUESKY, "mira")),
        (("https://art.example/@mira/11111", "mira"), ("https://ink.example/@mira/1", "mira")),
        ((X, "mira"), (X, "mira_draws")),
        (("https://a.example/1", "mira"), ("https://b.example/1", "mira")),
    ],
)
def test_other_accounts_are_other_authors(one: tuple[str, str], other: tuple[str, str]) -> None:
    """A name is an account on its platform only, and where there are many servers on its own."""
    assert KEY.author(*one) != KEY.author(*other)


def test_an_account_seen_from_another_server_is_the_same() -> None:
    """A name with its server says more than the address that it was seen at."""
    seen = KEY.author("https://art.example/@mira@ink.example/11111", "mira@ink.example")
    assert seen == KEY.author("https://ink.example/@mira/22222", "mira")


@pytest.mark.parametrize("name", [None, "", " ", "@"])
def test_no_name_is_no_author(name: str | None) -> None:
    """Posts without an author are not all by one."""
    assert KEY.author(X, name) is None
    assert account(X, name) is None


def test_another_key_gives_other_hashes_and_another_fingerprint() -> None:
    """And what is shown of a key is neither the key nor a part of a hash."""
    other = AuthorKey(b"another key of the test")

    assert KEY.author(X, "mira") != other.author(X, "mira")
    assert KEY.fingerprint != other.fingerprint
    assert KEY.fingerprint == hmac.digest(PHRASE.encode(), b"fingerprint", "sha256").hex()[:8]


def test_the_key_is_shown_nowhere() -> None:
    """Not where an object is printed."""
    assert PHRASE not in f"{KEY!r} {KEY} {KEY.fingerprint}"


@pytest.mark.parametrize("environment", [{}, {VARIABLE: ""}, {VARIABLE: "  "}])
def test_without_the_variable_there_is_no_key(environment: dict[str, str]) -> None:
    """There is no default."""
    assert AuthorKey.from_environment(environment) is None


def test_the_key_is_read_from_the_environment() -> None:
    """Without the line end that a file may give it."""
    assert AuthorKey.from_environment({VARIABLE: f"{PHRASE}\n"}) == KEY


@pytest.mark.parametrize("secret", ["x", "correct horse 1", "é" * 15])
def test_a_short_key_is_refused_and_not_shown(secret: str) -> None:
    """Fifteen characters are guessed too easily; the message says how many there are, no more."""
    with pytest.raises(ConfigError) as caught:
        AuthorKey.from_environment({VARIABLE: secret})

    assert str(caught.value) == (
        f"{VARIABLE} has {len(secret)} characters, expected at least 16: make one with "
        "`python -c 'import secrets; print(secrets.token_hex(32))'`, and keep it: with another key "
        "every author has another hash"
    )
