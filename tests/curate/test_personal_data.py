"""Finding personal data in a text, and masking it."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.curate.personal_data import KINDS, masked, personal_data

PIECES = [
    "@", "@mira", "noor", "noor@example.org", "example.org", ".bsky.social", "u/", "u/noor_k",
    "x.com/", "bsky.app/profile/", "wa.me/", "https://", "+1 650-253-0000", "+1", "650", "253",
    "030 901820", "06 12 34 56 78", "1024x1536", "2024-03-25", "(", ")", "[", "]", "[handle]",
    "[e-mail]", "GB33", "BUKB20201555555555", "4111 1111", "203.0.", "2001:db8:", "hf_", "x1" * 8,
    "-", "_", ".", ":", "/", " ", "\n", "é", "＠", "½", "\u200b", "猫", "ひ", "x",
]  # fmt: skip
TEXTS = st.text() | st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


def hidden(text: str, *products: str) -> str:
    """The text as it is published."""
    return masked(text, personal_data(text, products))


@pytest.mark.parametrize(
    ("text", "published"),
    [
        ("@mira so good! noor@example.org", "[handle] so good! [e-mail]"),
        ("call +1 650-253-0000 (@mira)", "call [phone] ([handle])"),
        ("ｎｏｏｒ＠ｅｘａｍｐｌｅ．ｏｒｇ ＋１ ６５０ ２５３ ００００", "[e-mail] [phone]"),
        ("noo\u200br@exam\u200bple.org, ＠mi\u200bra\u200b!", "[e-mail], [handle]\u200b!"),
        ("nöör@bücher.example.de", "[e-mail]"),
        ("@mіra and иван@example.org", "[handle] and [e-mail]"),  # the i is Cyrillic
        ("noor@example.org@mira", "[e-mail][handle]"),
        ("@mir℆/noor", "[handle]/noor"),  # one character, read as "c/u": the name ends in it
        ("`x = 'noor@example.org'`", "`x = '[e-mail]'`"),
        ("https://noor:secret@example.org/", "https://noor:[e-mail]/"),
        ("https://x.com/mira/status/1", "https://x.com/[handle]/status/1"),
        ("tiny cat, 1024x1536, seed 2125550123, $1,299.99", None),
        ("", None),
    ],
)
def test_what_is_published(text: str, published: str | None) -> None:
    """By hand, the last two as they are."""
    assert hidden(text) == (text if published is None else published)


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        # Numbers that issuers of cards publish for tests, and that the registry of IBANs gives.
        ("4111 1111 1111 1111", "card"), ("4111111111111111", "card"), ("378282246310005", "card"),
        ("5555-5555-5555-4444", "card"), ("6011111111111117", "card"), ("30569309025904", "card"),
        ("4111.1111.1111.1111", "card"), ("4111_1111_1111_1111", "card"),
        ("4111‑1111‑1111‑1111", "card"), ("4111 1111\n1111 1111", "card"),
        ("DE89.3704.0044.0532.0130.00", "iban"), ("ghp_" + "aXbY" * 9, "key"),
        ("GB33BUKB20201555555555", "iban"), ("GB33 BUKB 2020 1555 5555 55", "iban"),
        ("nl91 abna 0417 1643 00", "iban"), ("NO9386011117947", "iban"),
        ("MT31MALT01100000000000000000123", "iban"),
        # Addresses that are set aside for documents, and a network at home.
        ("203.0.113.7", "ip"), ("192.168.1.20", "ip"), ("2001:db8::8a2e:370:7334", "ip"),
        ("fe80::1ff:fe23:4567:890a", "ip"), ("fd12:3456:789a:1::1", "ip"),
        ("sk-proj-" + "a1B2" * 9, "key"), ("hf_" + "aXbY" * 8 + "cd", "key"),
        ("AIza" + "a1B-" * 8, "key"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "key"),
        ("hooks.slack.com/services/T0/B0/x1", "key"),
        ("ghp_" + "a1B2" * 9, "key"), ("AKIAIOSFODNN7EXAMPLE", "key"), ("r8_" + "a1B2" * 9, "key"),
        ("sk_live_" + "a1B2" * 6, "key"), ("123456789:AA" + "a1B2" * 8, "key"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTYifQ.abcDEF123456_-", "key"),
    ],
)  # fmt: skip
def test_numbers_that_name_somebody(number: str, kind: str) -> None:
    """Cards, bank accounts, machines and keys, wherever they stand in a sentence."""
    for around in ("it is {} thank you", "({})", "{}.", "https://example.org/?n={}&x", "号码{}的"):
        if not (kind == "card" and "=" in around):  # numbers in addresses of pages are others
            assert hidden(around.format(number)) == around.format(f"[{kind}]")


@pytest.mark.parametrize(
    "text",
    [
        "4111 1111 1111 1112", "seed 4111111111111111", "--seed: 4111111111111111",
        "GB34BUKB20201555555555", "DE12 red foxes in the snow", "1024 1536 2048 4096",
        "1.2.3", "v1.2.3.4", "version 1.2.3.4", "V 1.2.3.4", "1.2.3.4.5",
        "300.1.2.3", "http://127.0.0.1:7860", "0.0.0.0:8080",
        "cat::2 dog::1", "face::2", "12:30:45", "16:9", "dead::beef", "std::face",
        "sk-ii-facial-treatment", "hf_hub_download_of_it", "sk-12", "task-1234567890abcdef",
    ],
)  # fmt: skip
def test_numbers_that_name_nobody(text: str) -> None:
    """A wrong last digit, seeds, sizes, versions, weights of a prompt, names in code."""
    assert hidden(text) == text


@pytest.mark.parametrize("part", ["06 12 34 56 78 90 ", "wa.me/06901820", "4111 ", "u/mira½"])
def test_what_is_not_searched_is_not_shown(part: str) -> None:
    """However long a text is, it takes no longer than its first part; the rest is one place."""
    text = (part * 100_000)[:40_000] + " noor@example.org"
    began = time.process_time()
    found = personal_data(text)

    assert time.process_time() - began < 5
    assert found[-1][1:] == (len(text), "unsearched")
    assert 11_500 < found[-1][0] <= 12_000
    assert hidden(text).endswith("[unsearched]")


@pytest.mark.parametrize("begins", range(11_560, 11_640, 8))
def test_what_begins_in_what_is_shown_is_masked_whole(begins: int) -> None:
    """Wherever the rest begins, no half of an address is left before it."""
    text = "x " * (begins // 2) + "noor.k.of.the.north@mail.example.org" + " y" * 5000
    assert "noor" not in hidden(text)
    assert "example" not in hidden(text)


def test_a_prompt_is_searched_to_its_end() -> None:
    """As long as one may be."""
    text = "x" * 11_980 + " noor@example.org"
    assert len(text) <= 12_000
    assert hidden(text) == "x" * 11_980 + " [e-mail]"


def test_places_are_those_of_the_text() -> None:
    """Invisible characters inside a name belong to it, those beside it do not."""
    assert personal_data("\u200b＠mi\u200bra\u200b!") == [(1, 7, "handle")]


def test_a_product_stays() -> None:
    """Who is asked for an image is no person."""
    assert hidden("@lumen draw me, says @mira", "lumen") == "@lumen draw me, says [handle]"


@given(TEXTS)
def test_a_masked_text_holds_nothing_more(text: str) -> None:
    """So masking twice is masking once."""
    assert personal_data(hidden(text)) == []
    assert hidden(hidden(text)) == hidden(text)


@given(TEXTS)
def test_all_else_stays_as_it_was(text: str) -> None:
    """Places are in order and apart, and what is between them stands in the masked text."""
    found = personal_data(text)
    edges = [0, *(edge for start, end, _ in found for edge in (start, end)), len(text)]
    between = [text[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True)]

    assert edges == sorted(edges)
    assert all(start < end and kind in KINDS for start, end, kind in found)
    pattern = rf"\[(?:{'|'.join(KINDS)})\]".join(map(re.escape, between))
    assert re.fullmatch(pattern, hidden(text))


@pytest.mark.parametrize(
    ("link", "kind"),
    [
        ("½mira.bsky.social", "handle"),
        ("u/mira½", "handle"),
        ("@x.+", "handle"),
        ("wa.me/06901820", "phone"),
    ],
)
def test_a_long_chain_is_masked_whole(link: str, kind: str) -> None:
    """Each link hides the next: after a few searches the chain is one mask, not a search each."""
    assert hidden(f"before {link * 300} after") == f"before [{kind}] after"


@pytest.mark.parametrize("name", ["@mira@b.example ", "(030) 901820, "])
def test_what_is_not_joined_is_masked_one_by_one(name: str) -> None:
    """However many there are."""
    assert hidden(f"before {name * 300}after").count("[") == 300
