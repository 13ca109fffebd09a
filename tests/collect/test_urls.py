"""Addresses: one spelling a post, and nothing that is no web address."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from echo_hf.collect.platforms.x import x_status_url
from echo_hf.collect.urls import MAX_LENGTH, canonical_url, platform_of, post_id_of, web_url

X_SPELLINGS = [
    "HTTPS://X.COM/mira_draws/status/99",
    "http://www.x.com/mira_draws/status/99",
    "https://twitter.com/@mira_draws/status/99",
    "https://mobile.twitter.com/mira_draws/statuses/99",
    "https://m.twitter.com/mira_draws/status/99",
    "https://x.com/i/web/status/99",
    "https://twitter.com/i/status/99",
    "https://x.com/mira_draws/status/99/",
    "https://x.com/mira_draws/status/99/photo/1",
    "https://x.com/mira_draws/status/99?t=AbC-1_x&s=19#reversed-1",
    "https://x.com/mira_draws/status/0099",
    "https://x.com:443/mira_draws/status/99",
    "https://mira:secret@x.com/mira_draws/status/99",
    "  https://x.com/mira_draws/status/99\n",
    # sites that show posts of X
    "https://nitter.net/mira_draws/status/99?s=20",
    "https://www.fxtwitter.com/mira_draws/status/99",
    "https://xcancel.com/m/status/99",
]
BLUESKY_SPELLINGS = [
    "at://did:plc:abc/app.bsky.feed.post/3k",
    "https://bsky.app/profile/did:plc:abc/post/3k/",
    "https://www.bsky.app/profile/did:plc:abc/post/3k?ref_src=embed#top",
    "https://bsky.app/profile/did:plc:abc/post/3k/liked-by",
]
REFUSED = [
    *(None, "", "   ", "mira_draws", "x.com/mira_draws/status/99", "//x.com/m/status/99"),
    *(
        "javascript:alert(1)",
        "javascript://x.com/%0aalert(1)",
        "JavaScript:https://x.com/i/status/9",
    ),
    *("file:///etc/passwd", "data:text/html,<p>", "ftp://example.org/a", "blob:https://a.org/a"),
    *("https://", "https:///status/99", "https:example.org", "https://example.org:port/a"),
    *(
        "https://example.org:99999/a",
        "https://[::1/a",
        "https://[v1.x]/a",
        "https://exa mple.org/a",
    ),
    *("https://example.org/a b", "https://example.org/a\nb", "https://example.org/\x00"),
    *("https://example.org\\@example.com/a", "https://<b>.example.org/a", "https://.../a"),
    *("https://example..org\u3002\u3002/a", "https://example.org/\ud800", "https://ex\ud800.org/"),
    *("https://example.org/" + "a" * 2048, "at://did:plc:abc/app.bsky.feed.like/3k"),
    "at://did:plc:abc/app.bsky.feed.post/" + "3" * 2048,
]
OTHERS = {
    # not X: an unknown mirror, a look-alike, another port, and pages of X that are no post
    "https://nitter.example/mira_draws/status/99": "https://nitter.example/mira_draws/status/99",
    "https://notx.com/mira_draws/status/99": "https://notx.com/mira_draws/status/99",
    "https://x.com.example.org/m/status/99": "https://x.com.example.org/m/status/99",
    "https://x.com@example.org/m/status/99": "https://example.org/m/status/99",
    "https://x.com:8080/mira_draws/status/99": "https://x.com:8080/mira_draws/status/99",
    "https://x.com/mira_draws": "https://x.com/mira_draws",
    "https://x.com/m/status/٩٩": "https://x.com/m/status/%D9%A9%D9%A9",
    "https://bsky.app/profile/mira.example": "https://bsky.app/profile/mira.example",
    # tracking goes, all else stays as it is spelt
    "https://Example.org/A?utm_source=x&b=2&fbclid=1#c": "https://example.org/A?b=2",
    "https://example.org/a?UTM_Medium=x": "https://example.org/a",
    "https://example.org/a?utm%5Fsource=x": "https://example.org/a",
    "https://example.org/a?b=%FF&gclid=1&c=+&d": "https://example.org/a?b=%FF&c=+&d",
    "https://example.org/a?si=1&s=2&t=3": "https://example.org/a?si=1&s=2&t=3",
    # ports, credentials, hosts of other scripts
    "http://example.org:80/a": "http://example.org/a",
    "http://example.org:443/a": "http://example.org:443/a",
    "https://mira:secret@example.org:8443/a": "https://example.org:8443/a",
    "https://example.org": "https://example.org/",
    "https://[2001:DB8::1]:444/a": "https://[2001:db8::1]:444/a",
    "https://bücher.example/ä?ö=ü": "https://xn--bcher-kva.example/%C3%A4?%C3%B6=%C3%BC",
    "https://例え.example/": "https://xn--r8jz45g.example/",
    'https://example.org/"<b>': "https://example.org/%22%3Cb%3E",
}
ADDRESSES = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["https://", "HTTP://", "at://", "javascript:", "", "//"]),
        st.sampled_from(["", "u@", "u:p@", "@"]),
        st.sampled_from(["x.com", "m.x.com", "www.m.twitter.com", "bsky.app", "ü.example", "İ.tr"])
        | st.text(max_size=8),
        st.sampled_from(["", ":443", ":80", ":8080", ":", ":x"]),
        st.sampled_from(["", "/", "//", "/m/status/", "/profile/m/post/", "/%"]),
        st.text(max_size=8),
        st.sampled_from(["", "?", "?utm_source=1", "?a=%zz&&b", "?s=20", "#", "#?"]),
        st.text(max_size=8),
    ),
)


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        *((one, "https://x.com/i/status/99") for one in X_SPELLINGS),
        *((one, "https://bsky.app/profile/did:plc:abc/post/3k") for one in BLUESKY_SPELLINGS),
    ],
)
def test_a_post_has_one_address(spelling: str, expected: str) -> None:
    assert canonical_url(spelling) == expected


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_web_address_is_refused(text: str | None) -> None:
    assert canonical_url(text) is None


@pytest.mark.parametrize(("given", "expected"), OTHERS.items())
def test_other_addresses_keep_what_names_the_post(given: str, expected: str) -> None:
    assert canonical_url(given) == expected


@given(ADDRESSES | st.text())
@example("https://a.org/?utm_source=1&")
@example("https://a.org//b")
@example("https://ǰ.org/")
def test_a_canonical_address_is_its_own(text: str) -> None:
    once = canonical_url(text)
    if once is not None:
        assert canonical_url(once) == once
        assert once.isascii()
        assert once.startswith(("https://", "http://"))
        assert "@" not in once.split("/")[2]
        assert post_id_of(once)
        assert platform_of(once)


@given(st.integers(0, 10**25 - 1), st.sampled_from(X_SPELLINGS[:9]))
def test_the_number_alone_names_a_post_of_x(number: int, spelling: str) -> None:
    expected = f"https://x.com/i/status/{number}"
    assert canonical_url(spelling.replace("99", str(number))) == expected
    assert x_status_url(number) == x_status_url(str(number)) == expected


@pytest.mark.parametrize(
    "number", [None, True, 1.0, -1, 10**25, 10**4000, "", "²", "٩", "9" * 26, "1 ", [1], {}]
)
def test_what_is_no_identifier_has_no_address(number: object) -> None:
    assert x_status_url(number) is None


def test_the_longest_address_is_kept_and_no_longer_one() -> None:
    for begin in ("https://example.org/", "https://example.org/%20", "at://did:plc:a/app.bsky."):
        text = begin + "feed.post/" * begin.startswith("at:")
        text += "a" * (MAX_LENGTH - len(text))

        assert canonical_url(text) is not None
        assert canonical_url(text + "a") is None
    for text in ("https://example.org/" + "a" * 2028, "https://example.org/\u00e4" + "a" * 2022):
        assert len(web_url(text) or "") == MAX_LENGTH
        assert web_url(text + "a") is None
    part = "https://example.org/a#" + "b" * 2026
    assert (web_url(part), web_url(part + "b")) == ("https://example.org/a", None)


@pytest.mark.parametrize(
    ("url", "platform", "post_id"),
    [
        ("https://x.com/i/status/99", "x", "99"),
        ("https://x.com/mira_draws", "x", "https://x.com/mira_draws"),
        ("https://bsky.app/profile/did:plc:abc/post/3k", "bluesky", "3k"),
        ("https://art.example/users/mira/statuses/123456789", "mastodon", "123456789"),
        ("https://old.reddit.com/r/a/1", "reddit", "https://old.reddit.com/r/a/1"),
        ("https://news.ycombinator.com/item?id=1", "hackernews", None),
        ("https://discord.com/channels/1/2/3", "discord", None),
        ("https://api.fxtwitter.com/m/status/99", "x", "99"),
        ("https://x.com./m/status/99", "x", "99"),
        ("https://notx.com/m/status/99", "web", "https://notx.com/m/status/99"),
        ("https://nitter.example/m/status/99", "web", "https://nitter.example/m/status/99"),
    ],
)
def test_an_address_tells_platform_and_identifier(
    url: str, platform: str, post_id: str | None
) -> None:
    assert platform_of(url) == platform
    assert post_id_of(url) == (post_id or url)
