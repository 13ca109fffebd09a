"""Windows and batches."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from echo_hf.report.analysis.perplexity import TokenWindow, batches, windows


@given(st.integers(0, 200), st.integers(2, 40), st.data())
def test_each_token_but_the_first_counts_once(tokens: int, size: int, data: st.DataObject) -> None:
    """Whatever the lengths, scored ranges cut the text into pieces without gap or overlap."""
    stride = data.draw(st.integers(1, size - 1))
    parts = list(windows(3, tokens, size, stride))
    scored = [at for part in parts for at in range(part.scored, part.end)]
    assert scored == list(range(1, tokens))
    for part in parts:
        assert part.text == 3
        assert 2 <= part.size <= size
        assert part.start < part.scored


@given(st.integers(50, 200), st.integers(4, 40), st.data())
def test_a_later_token_has_enough_before_it(tokens: int, size: int, data: st.DataObject) -> None:
    """In every window after the first, at least size - stride tokens are only looked back at."""
    stride = data.draw(st.integers(1, size - 1))
    later = list(windows(0, tokens, size, stride))[1:]
    assert all(part.scored - part.start >= size - stride for part in later)


@given(st.lists(st.integers(2, 30), max_size=30), st.integers(1, 100))
def test_batches_hold_every_window_once_and_no_more_than_fits(sizes: list[int], most: int) -> None:
    """Padding included, only a single window may be larger than a batch."""
    parts = [TokenWindow(at, 0, size, 1) for at, size in enumerate(sizes)]
    made = list(batches(parts, most))
    assert sorted(part.text for batch in made for part in batch) == list(range(len(sizes)))
    for batch in made:
        assert batch[0].size == max(part.size for part in batch)
        assert len(batch) == 1 or len(batch) * batch[0].size <= most
