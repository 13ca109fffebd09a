"""The text of a post that its platform writes as HTML."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.collect.fields import text_of_html


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>one</p><p>two<br>three<br />four</p>", "one\n\ntwo\nthree\nfour"),
        ("plain", "plain"),
        ("", ""),
        ("<p>1 &lt; 2 &amp;amp; &quot;3&quot; &#39;4&#39; &eacute;</p>", "1 < 2 &amp; \"3\" '4' é"),
        ("<p>two  blanks\nand a line</p>", "two blanks and a line"),
        ("<ul><li>a fox</li><li>a hare</li></ul>", "a fox\n\na hare"),
        # what a page hides of a link
        (
            '<a href="https://a.example/foxes/1"><span class="invisible">https://</span>'
            '<span class="ellipsis">a.example/fo</span><span class="invisible">xes/1</span></a>',
            "https://a.example/foxes/1",
        ),
        (
            '<a href="https://a.example/?q=1&amp;r=2">https://a.exam...</a>',
            "https://a.example/?q=1&r=2",
        ),
        ('<a href="https://a.example/">a fox...</a>', "a fox..."),
        ('<a href="javascript:alert(1)">see</a>', "see"),
        ("</a>a < b > c", "a < b > c"),
        ("<pre>{\n  a\n}</pre>", "{\n  a\n}"),
        ("a <br> b", "a\nb"),
        ("<p>a<script>alert(1)</script>b<style>p{}</style>c</p>", "abc"),
        ("<img src=x onerror=alert(1)>", ""),
        ("a < b <3 c", "a < b <3 c"),
        ("<![CDATA[a]]> <!DOCTYPE x> <? y ?>", "<![CDATA[a]]> <!DOCTYPE x> <? y ?>"),
        ("&#" + "9" * 5000 + ";", "\ufffd"),
        ("\u202etxt", "\u202etxt"),
    ],
)  # fmt: skip
def test_a_reader_sees_the_words_and_their_lines(html: str, text: str) -> None:
    """No tag and nothing of what a tag holds is part of the text."""
    assert text_of_html(html) == text


@pytest.mark.parametrize(
    "part", ["<", "<a ", "<a b='", "<!--", "<p>", "</", "<![", "&", "<script>", "&#32;"]
)
def test_a_flood_of_beginnings_is_read_like_any_text(part: str) -> None:
    """A hundred thousand of them end, and give no more than what stood there."""
    assert len(text_of_html(part * 100_000)) <= len(part) * 100_000


@given(st.text())
def test_escaped_text_comes_back(text: str) -> None:
    """What an author typed is what is read, but for blanks."""
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

    assert text_of_html(f"<p>{escaped}</p>").split() == text.replace("\x00", "").split() or (
        "\x00" in text or "\r" in text
    )
