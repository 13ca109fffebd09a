"""Plain text of markup that platforms write, and of what is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.collect.html_text import text_of_html


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("", ""),
        ("<p>a</p><p>b</p>", "a\n\nb"),
        ("a<br>b<br />c", "a\nb\nc"),
        ("a<p>b<p>c", "a\n\nb\n\nc"),
        ("it&#x27;s &lt;b&gt; &amp; &quot;c&quot;", 'it\'s <b> & "c"'),
        ("<i>a</i><b>b</b>", "ab"),
        ("a<script>alert(1)</script>b<style>p{}</style>c", "abc"),
        ("<script>never closed", ""),
        (
            '<a href="https://a.example/?q=1&amp;r=2">https://a.exam...</a>',
            "https://a.example/?q=1&r=2",
        ),
        ('<a href="https://a.example/">a fox...</a>', "a fox..."),
        ('<a href="javascript:alert(1)">see</a>', "see"),
        (
            '<a href="https://a.example/b"><span class="invisible">https://</span>'
            '<span class="ellipsis">a.example/b</span></a>',
            "https://a.example/b",
        ),
        ("</a>a < b > c", "a < b > c"),
        ("1 < 2", "1 < 2"),
        ("<!-- a --><!x>b<![foo[ c", "b<![foo[ c"),
        ("&#" + "9" * 5000 + ";", "&#" + "9" * 5000 + ";"),
        ("a\n b\t\tc", "a b c"),
        ("<pre>{\n  a\n}</pre>", "{\n  a\n}"),
        ("a <br> b", "a\nb"),
        ("<ul><li>a</li><li>b</li></ul>", "a\n\nb"),
    ],
)
def test_a_text_is_what_is_shown(markup: str, text: str) -> None:
    """Tags are gone, and escapes undone once."""
    assert text_of_html(markup) == text


@given(st.text(alphabet="<>a/&#;\"'p x=!-[]9\n", max_size=60))
def test_no_markup_is_an_error(markup: str) -> None:
    """Whatever it holds."""
    assert isinstance(text_of_html(markup), str)


@pytest.mark.parametrize("piece", ["<", "<a ", "<a href='", "</", "&", "<p>", "&#9", "<script>"])
def test_a_long_text_takes_no_longer_than_its_length(piece: str) -> None:
    """A hundred thousand of the same piece: a quadratic reader would not end."""
    assert len(text_of_html(piece * 100_000)) <= len(piece) * 100_000
