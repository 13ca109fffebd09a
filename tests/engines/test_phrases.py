"""Phrases of many languages are found as a whole, wherever a script lets them stand."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from echo_hf.engines.phrases import Phrases

PIECES = st.text("aé1_ '’-图İΣ.", max_size=4)


@given(st.lists(PIECES.filter(bool), min_size=1, max_size=4), st.lists(PIECES, max_size=4))
def test_phrases_are_in_a_text_where_their_pattern_is(phrases: list[str], parts: list[str]) -> None:
    text = "".join([*parts, *phrases[:1], *parts[::-1]]).replace("’", "'").lower()
    some = Phrases(phrases)
    assert some.match(text) == bool(re.search(some.pattern.pattern, text))
