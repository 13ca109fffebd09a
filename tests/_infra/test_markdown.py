"""Text from anywhere is shown by Markdown as it is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from echo_hf._infra.text import escaped, table
from tests.markdown_for_tests import cells

WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30).filter(
    lambda text: text.strip()
)


@given(WORDS)
def test_escaped_text_is_shown_as_it_is(text: str) -> None:
    """In the cell of a table any text is shown unchanged but for its white space."""
    line = " ".join(text.split())
    page = table(["a", "b"], [["x", f"{escaped(text)} y"]], numbers=1)
    assert cells(page) == [["a", "b"], ["x", f"{line} y"]]
