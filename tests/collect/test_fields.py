"""Reading single fields: what fits is taken, what does not is said."""

from __future__ import annotations

import datetime
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from echo_hf.collect.fields import Fields, read_moment, short_repr, text_of_html
from echo_hf.collect.sources.base import PostNotice


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-03-02T17:12:40.000Z", "2026-03-02T17:12:40"),
        ("2026-03-02T17:12:40+02:00", "2026-03-02T15:12:40"),
        (" 2026-03-02 17:12:40 ", "2026-03-02T17:12:40"),
        ("2026-03-02", "2026-03-02T00:00:00"),
        ("20260302T171240Z", "2026-03-02T17:12:40"),
        (86400.5, "1970-01-02T00:00:00.500000"),
        (-86400, "1969-12-31T00:00:00"),
    ],
)
def test_times_are_read_in_utc(value: object, expected: str) -> None:
    read = read_moment(value)

    assert read == datetime.datetime.fromisoformat(f"{expected}+00:00")


@pytest.mark.parametrize(
    "value",
    [
        *("yesterday", "", "2026-02-30", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"),
        *(1e18, 1_772_471_560_000, 10**400, float("nan"), float("inf"), True, [], {"$date": 0}),
    ],
)
def test_what_is_no_time_is_null_and_said(value: object) -> None:
    fields = Fields({"date": value})

    assert fields.moment("date") is None
    assert [finding.reason for finding in fields.findings] == [PostNotice.BAD_TIMESTAMP]
    assert fields.findings[0].detail.startswith("date is ")


def test_what_is_no_count_is_null_and_said() -> None:
    for value in (-1, 2**63, 1.0, "3", True, [1]):
        fields = Fields({"likes": value})
        assert fields.count("likes") is None
        assert [finding.reason for finding in fields.findings] == [PostNotice.BAD_FIELD]
    assert Fields({"likes": 2**63 - 1}).count("likes") == 2**63 - 1


def test_values_are_shown_short_whatever_their_depth() -> None:
    deep = json.loads("[" * 900 + "]" * 900)

    assert short_repr(deep) == "[[[...]]]"
    assert len(short_repr({str(n): "x" * 50 for n in range(9)})) <= 80


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>one</p><p>two<br>three<br />four</p>", "one\n\ntwo\nthree\nfour"),
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
)
def test_a_reader_sees_the_words_and_their_lines(html: str, text: str) -> None:
    assert text_of_html(html) == text


@pytest.mark.parametrize("part", ["<", "<a ", "<a b='", "<p>", "<![", "<script>", "&#32;"])
def test_a_flood_of_beginnings_is_read_like_any_text(part: str) -> None:
    assert len(text_of_html(part * 100_000)) <= len(part) * 100_000


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\0")))
def test_escaped_text_comes_back(text: str) -> None:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

    assert text_of_html(f"<p>{escaped}</p>").split() == text.split()
