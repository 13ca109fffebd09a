"""Texts are cut to the room there is, and shown by Markdown as they are."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from echo_hf._infra.text import (
    escape_markdown,
    format_interval,
    format_rounded,
    format_table,
    shorten_texts,
)
from tests.markdown_for_tests import cells

MARK = re.compile(r"\n\[\.\.\. (\d+) characters left out\]\Z")


@given(st.lists(st.none() | st.text("ab", max_size=12), max_size=6), st.integers(0, 9), st.data())
def test_texts_keep_as_much_as_fits(
    texts: list[str | None], longest: int, data: st.DataObject
) -> None:
    together = data.draw(st.integers(0, 40))
    lengths = [len(text) for text in texts if text]
    best = max(n for n in range(longest + 1) if sum(min(one, n) for one in lengths) <= together)

    for text, short in zip(texts, shorten_texts(texts, longest, together), strict=True):
        if text is None or len(text) <= best:
            assert short == text
        else:
            assert short is not None
            lost = MARK.search(short)
            assert lost is not None
            assert int(lost.group(1)) == len(text) - best
            assert short[: lost.start()] == text[:best]


WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30).filter(
    lambda text: text.strip()
)


@given(WORDS)
def test_escaped_text_is_shown_as_it_is(text: str) -> None:
    line = " ".join(text.split())
    page = format_table(["a", "b"], [["x", f"{escape_markdown(text)} y"]], numbers=1)
    assert cells(page) == [["a", "b"], ["x", f"{line} y"]]


def test_no_zero_has_a_minus() -> None:
    assert (format_rounded(-0.0004), format_rounded(-0.0006)) == ("0.000", "-0.001")
    assert format_interval((-0.0004, -0.0001)) == "0.000 to 0.000"
